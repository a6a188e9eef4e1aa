"""Openers for the tests: files of a folder, as different kinds of objects."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

URLS = "memory://s-{000..003}.tar"
BRACES = "s-{000..003}.tar"


def numbers(samples: Any) -> list[int]:
    return [int(bytes(sample["txt"]).strip(b".")) for sample in samples]


class Files:
    """An opener of db://NAME that counts: files of a folder, as `kind` makes them."""

    def __init__(self, folder: Path, kind: Callable[[io.BufferedReader], Any] = lambda file: file):
        self.folder, self.kind = folder, kind
        self.opened: list[io.BufferedReader] = []
        self.threads: set[int] = set()

    def __call__(self, url: str) -> Any:
        self.threads.add(threading.get_ident())
        file = (self.folder / url.removeprefix("db://")).open("rb")
        self.opened.append(file)
        return self.kind(file)

    def all_closed(self) -> bool:
        return bool(self.opened) and all(file.closed for file in self.opened)


class OnlyRead:
    """What can be read alone, as the body of an answer."""

    def __init__(self, file: io.BufferedReader) -> None:
        self.read = file.read
        self.close = file.close


class ShortReads(io.RawIOBase):
    def __init__(self, file: io.BufferedReader) -> None:
        self.file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()

    def readinto(self, out: Any) -> int:
        return self.file.readinto(memoryview(out)[:1000])

    def close(self) -> None:
        self.file.close()
