"""Which samples would not come back as they were written."""

from __future__ import annotations

import re
import warnings
from typing import Any

_HELP = 'help: a key has no dot behind its last "/", as in "a/0001", and each sample one of its own'
# The names that readers pass over: a first folder, or all of the name, between two underscores.
_PASSED_OVER = re.compile(r"__[^/]*__(/|$)")


def read_name(name: str) -> tuple[str, str] | None:
    """Key and field that readers make of the name of a member; None when they leave it out."""
    if _PASSED_OVER.match(name):
        return None
    folder, slash, base = name.rpartition("/")
    key, dot, field = base.partition(".")
    if not dot or (not key and (not slash or "." in folder.rpartition("/")[2])):
        return None
    return folder + slash + key, field


class SampleNames:
    """Compares each sample with the one before it: readers make one of those with equal keys."""

    def __init__(self) -> None:
        self._key = ""
        self._read_key: str | None = None
        self._fields: set[str] = set()
        self._warned = False

    def check(self, key: str, members: list[tuple[str, Any]]) -> None:
        """Raises ValueError when this sample would be lost, or mixed with the one before it."""
        if not members:
            raise ValueError(f"the sample {key!r} has no field, so nothing of it would be written")
        if "\0" in key or any("\0" in name or "/" in name or not name for name, _ in members):
            names = [name for name, _ in members]
            raise ValueError(
                f"the sample {key!r} has a name that readers cut: {names}; help: fields are "
                'suffixes, such as "jpg" or "seg.png", and no name has a NUL'
            )
        read_key, fields = self._read(key, members)
        if len(fields) != len(members):
            raise ValueError(
                f"the sample {key!r} has a field twice, in upper and lower case: "
                f"{[name for name, _ in members]}; help: readers make all names lower case"
            )
        if read_key == self._read_key and (key != self._key or fields & self._fields):
            raise ValueError(
                f"the samples {self._key!r} and {key!r} would be read as one, with the key "
                f"{read_key!r}; {_HELP}"
            )

    def accept(self, key: str, members: list[tuple[str, Any]]) -> None:
        """The sample was written: it is the one to compare with."""
        read_key, fields = self._read(key, members)
        if read_key == self._read_key:
            fields |= self._fields
        self._key, self._read_key, self._fields = key, read_key, fields

    def _read(self, key: str, members: list[tuple[str, Any]]) -> tuple[str, set[str]]:
        """The key and the fields that readers see."""
        if key and "." not in key and key[0] != "_" and key[-1] != "/":
            return key, {name.lower() for name, _ in members}
        found = [read_name(f"{key}.{name}") for name, _ in members]
        if None in found:
            raise ValueError(f"readers pass over all files of the sample {key!r}; {_HELP}")
        read = [pair for pair in found if pair is not None]
        if read[0][0] != key and not self._warned:
            self._warned = True
            warnings.warn(
                f"the sample {key!r} is read as {read[0][0]!r} with the fields "
                f"{[field for _, field in read]}; {_HELP}",
                stacklevel=4,
            )
        return read[0][0], {field.lower() for _, field in read}


__all__ = ["SampleNames", "read_name"]
