"""The files of a tar by number and by name."""

from __future__ import annotations

import fcntl
import io
import os
from typing import TYPE_CHECKING, Any

from .._archive import Archive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A tar that is compressed is taken into memory, up to so much.
_MEMORY = "64GiB"


class MMIndexedTar:
    """The regular files of a tar, by number and by name.

    fname: a path, or an open file. cleanup_callback(fname, descriptor, "start" or "end") is called
    when the tar is opened and closed.
    """

    def __init__(
        self,
        fname: Any,
        index_file: Any = None,
        verbose: bool = True,
        cleanup_callback: Callable[..., Any] | None = None,
    ) -> None:
        self.verbose = verbose
        self.cleanup_callback = cleanup_callback
        self.fname: str | None = None
        if isinstance(fname, (str, os.PathLike)):
            self.fname = os.fspath(fname)
            self.stream: Any = open(self.fname, "rb")  # noqa: SIM115  # as long as this
        else:
            self.stream = fname
        self.archive = Archive(_source_of(self.stream, self.fname), memory=_MEMORY)
        self._positions = [member.position for member in self.archive if member.is_file]
        names = self.archive.names()
        self._names = [names[position] for position in self._positions]
        if cleanup_callback:
            cleanup_callback(fname, self.stream.fileno(), "start")

    def close(self, dispose: bool = False) -> None:
        """Closes the tar."""
        if self.cleanup_callback and not self.stream.closed:
            self.cleanup_callback(self.fname, self.stream.fileno(), "end")
        self.archive.close()
        self.stream.close()

    def names(self) -> list[str]:
        """The names of all files, in their order."""
        return list(self._names)

    def get_at_index(self, index: int) -> tuple[str, bytes]:
        """Name and bytes of a file by its number."""
        return self._names[index], self.archive.read(self._positions[index])

    def get_by_name(self, name: str) -> tuple[str, bytes]:
        """Name and bytes of a file; KeyError without one."""
        return name, self.archive.read(name)

    def get_file(self, i: int) -> tuple[str, io.BytesIO]:
        """Name and bytes of a file by its number, as a file in memory."""
        name, data = self.get_at_index(i)
        return name, io.BytesIO(data)

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        return map(self.get_at_index, range(len(self)))

    def __getitem__(self, key: int | str) -> tuple[str, bytes]:
        return self.get_at_index(key) if isinstance(key, int) else self.get_by_name(key)

    def __len__(self) -> int:
        return len(self._positions)


def _source_of(stream: Any, path: str | None) -> Any:
    """What an Archive opens for a file that is open: the same file, or what can be read of it."""
    name = path or getattr(stream, "name", None)
    try:
        if isinstance(name, str) and os.path.samestat(os.stat(name), os.fstat(stream.fileno())):
            return os.path.abspath(name)
        return f"/proc/self/fd/{stream.fileno()}"  # deleted, or a file of another name by now
    except (OSError, AttributeError):
        return stream.read()


def keep_while_reading(fname: Any, fd: int, phase: str, delay: float = 0.0) -> None:
    """A cleanup_callback that deletes the file when its last reader closes it."""
    assert delay == 0.0, "delay not implemented; help: leave it out"
    if fd < 0 or fname is None:
        return
    if phase == "start":
        fcntl.flock(fd, fcntl.LOCK_SH)
    elif phase == "end":
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(fname)
        except (FileNotFoundError, BlockingIOError):
            pass  # it is gone, or somebody reads it
    else:
        raise ValueError(f'Unknown phase {phase}; help: "start" or "end"')
