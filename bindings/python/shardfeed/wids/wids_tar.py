"""The files of a tar by number, as older programs ask for them."""

from __future__ import annotations

import os
import re
from typing import Any

from .wids_mmtar import MMIndexedTar


def find_index_file(file: str) -> str:
    """The name of the index that wids keeps beside a tar."""
    prefix, suffix = os.path.splitext(file)
    return prefix + ".index" if re.match("._[0-9]+_$", suffix) else file + ".index"


class TarFileReader(MMIndexedTar):
    """The regular files of a tar, by number. There is no index beside it: none is needed, and a
    pickled one of another program is not read.
    """

    def __init__(self, file: Any, index_file: Any = find_index_file, verbose: bool = True) -> None:
        super().__init__(file, verbose=verbose)
        self.index_file = index_file(file) if callable(index_file) and self.fname else None

    @property
    def fnames(self) -> list[str]:
        """The names of all files."""
        return self.names()
