"""A shell command as a function of samples, with the files that `shardfeed map -c` gives it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .. import ChildError, UsageError

if TYPE_CHECKING:
    from .. import Sample

_KEY = "__key__"
_MOST_SHOWN = 2000  # bytes of what the command printed


@dataclass(frozen=True)
class Command:
    """Runs a command in a folder of its own with the files sample.FIELD and sample.__key__.

    The files sample.* that are there when it ends are the new sample.
    """

    command: str

    def __call__(self, sample: Sample) -> dict[str, str | bytes]:
        with tempfile.TemporaryDirectory(prefix="shardfeed-") as name:
            folder = Path(name)
            for field, data in sample.items():
                if field == _KEY or "/" in field:
                    raise UsageError(
                        f"the field {field!r} cannot be a file; help: drop it with --fields"
                    )
                (folder / f"sample.{field}").write_bytes(data)
            (folder / f"sample.{_KEY}").write_bytes(os.fsencode(sample.key))
            shell = "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"
            ended = subprocess.run(
                [shell, "-c", self.command],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
            if ended.returncode:
                said = ended.stdout[-_MOST_SHOWN:].decode("utf-8", "backslashreplace").strip()
                raise ChildError(
                    f"the command failed with status {ended.returncode}{': ' if said else ''}{said}"
                )
            return _sample_in(folder, sample)


def _sample_in(folder: Path, before: Sample) -> dict[str, str | bytes]:
    files = {path.name[len("sample.") :]: path for path in folder.glob("sample.*")}
    key = files.pop(_KEY, None)
    made: dict[str, str | bytes] = {
        _KEY: before.key if key is None else os.fsdecode(key.read_bytes().removesuffix(b"\n"))
    }
    # Fields that were there keep their order; new ones come after.
    for field in [*(f for f in before if f in files), *sorted(set(files) - set(before))]:
        if files[field].is_file():
            made[field] = files[field].read_bytes()
    if len(made) == 1:
        raise ChildError("the command left no file sample.FIELD")
    return made
