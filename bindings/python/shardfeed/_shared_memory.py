"""Shared memory that two processes keep and use again: made by one, mapped by both once.

It has no name: nothing is left of it when both processes are gone, however they ended. The first
two bytes of each piece say who uses it: byte 0 the process that it was sent to, byte 1 the one that
made it. Each sets its byte with the first thing that it makes of the memory, and clears it when all
of that is gone. The sender sets the byte of the receiver, before it sends.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import weakref
from typing import Any

# Bytes before the contents, which are aligned as those of batches.
HEADER = 64
RECEIVER, MAKER = 0, 1  # whose byte
# Pieces that nothing fits into: more are given back, or more bytes than these and those in use.
_MOST_FREE = 32
_LITTLE = 64 << 20

# Finalizers may run in any thread, and inside of anything that this lock is held for.
_lock = threading.RLock()


class Memory:
    """One piece of shared memory, as one process has it."""

    __slots__ = ("_holds", "_side", "map", "number", "size")

    def __init__(self, descriptor: int, number: int, side: int) -> None:
        """Maps the memory of a descriptor, which is then not needed any more."""
        self.map = mmap.mmap(descriptor, 0)
        self.number = number
        self.size = len(self.map) - HEADER
        self._side = side
        self._holds = 0

    @property
    def in_use(self) -> bool:
        return self.map[RECEIVER] != 0 or self.map[MAKER] != 0

    def mark(self, side: int) -> None:
        """Says that one side uses it."""
        self.map[side] = 1

    def hold(self) -> Any:
        """The contents, as a buffer. The memory is in use until that and all made of it is gone."""
        held = (ctypes.c_uint8 * self.size).from_buffer(self.map, HEADER)
        with _lock:
            self._holds += 1
            self.mark(self._side)
        weakref.finalize(held, self._release, os.getpid(), _forks).atexit = False
        return held

    def _release(self, pid: int, forks: int) -> None:
        # A process that was forked meanwhile may use it too: it is not used again.
        if pid != os.getpid() or forks != _forks:
            return
        with _lock:
            self._holds -= 1
            if self._holds == 0:
                self.map[self._side] = 0

    def address(self) -> int:
        """Of the contents."""
        return ctypes.addressof(ctypes.c_uint8.from_buffer(self.map, HEADER))


class Pool:
    """The pieces that one process made, to send them to another one. Any threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._made = 0
        self._pieces: dict[int, Memory] = {}
        self._descriptors: dict[int, int] = {}  # of those that were not sent yet
        self._dropped: list[int] = []  # which the other process still has

    def take(self, size: int, side: int) -> Memory:
        """A piece for so many bytes, in use by this side."""
        with self._lock:
            taken = self._free(size) or self._make(size + size // 8)
            taken.mark(side)
            return taken

    def _free(self, size: int) -> Memory | None:
        free = [piece for piece in self._pieces.values() if not piece.in_use]
        # Labels do not take the place of images.
        fitting = [piece for piece in free if size <= piece.size <= 2 * size]
        if fitting:
            return min(fitting, key=lambda piece: piece.size)
        # What is sent has other sizes now.
        used = sum(piece.size for piece in self._pieces.values() if piece.in_use)
        if len(free) >= _MOST_FREE or sum(piece.size for piece in free) > max(used, _LITTLE):
            for piece in free:
                del self._pieces[piece.number]
                unsent = self._descriptors.pop(piece.number, None)
                if unsent is None:
                    self._dropped.append(piece.number)
                else:
                    os.close(unsent)
        return None

    def _make(self, size: int) -> Memory:
        descriptor = os.memfd_create("shardfeed", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, HEADER + size)
            self._made += 1
            made = Memory(descriptor, self._made, MAKER)
        except BaseException:
            os.close(descriptor)
            raise
        self._pieces[made.number], self._descriptors[made.number] = made, descriptor
        return made

    def __getitem__(self, number: int) -> Memory:
        return self._pieces[number]

    def pieces(self) -> list[Memory]:
        with self._lock:
            return list(self._pieces.values())

    def unsent(self, number: int) -> int | None:
        """The descriptor of a piece that the other process does not have. The caller closes it."""
        with self._lock:
            return self._descriptors.pop(number, None)

    def dropped(self) -> list[int]:
        """The pieces that were given back since the last call, for the other process to unmap."""
        with self._lock:
            dropped, self._dropped = self._dropped, []
            return dropped

    def __del__(self) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)


_forks = 0  # of this process and of those that it comes from, but for those that copy nothing
_copies_nothing = threading.local()


class forks_copy_nothing:  # noqa: N801  a statement
    """A with block whose forked children use nothing that is in shared memory here."""

    def __enter__(self) -> None:
        _copies_nothing.now = True

    def __exit__(self, *_: object) -> None:
        _copies_nothing.now = False


def _count_fork() -> None:
    global _forks
    if not getattr(_copies_nothing, "now", False):
        _forks += 1


os.register_at_fork(before=_count_fork)
