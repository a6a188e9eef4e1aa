"""Cases that end in an error, and those of options that accept or skip what is wrong."""

from __future__ import annotations

from functools import partial

from case import Case, of_samples
from expected import Folder, Sample

stream = partial(of_samples, "stream")
expand = partial(of_samples, "expand")


def cases(archives: Folder) -> list[Case]:
    """All of them."""
    plain = archives.samples("sound.tar")

    def renamed(url: str, count: int) -> list[Sample]:
        return [s._replace(url=url.encode()) for s in plain[:count]]

    return [
        stream("cut_in_data", "a tar cut in a member's data", "cut_in_data.tar",
               renamed("cut_in_data.tar", 1), error=("TRUNCATED", 3584)),
        stream("no_such_file", "a file that is not there", "missing_file.tar", [],
               error=("IO", None)),
    ]  # fmt: skip
