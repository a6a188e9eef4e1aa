"""Which epoch is next, for all workers that a DataLoader starts."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import weakref
from contextlib import contextmanager
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import DupFd
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ._ranks import Share

# How many times an epoch began, the number of the one that runs and of the one after it, and the
# iterator that began it. Then for each worker a slot, of which memory is only what was written:
# which beginning it took part in last, and the position of the stream at the end of an epoch.
_HEADER = struct.Struct("<QQQq")
_SEEN = struct.Struct("<Q")
_SIZE = struct.Struct("<Q")
_SLOT = 16 << 20

# Keys of iterators. Those of DataLoaders are not negative.
NO_LOADER = -1
_NOBODY = -2


class Epochs:
    """Counts the epochs of a stream, in memory that its copies in workers share.

    The workers of a DataLoader are usually made again for every epoch, from the stream in the main
    process, where nothing happens: without shared memory every epoch would be the first. And with
    persistent workers, which have copies made long ago, set_epoch() in the main process would do
    nothing.
    """

    def __init__(self, first: int) -> None:
        self._use(os.memfd_create("shardfeed epochs"))
        self._write(0, first, first, _NOBODY)

    def _use(self, file: int) -> None:
        self._file = file
        weakref.finalize(self, os.close, file)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # Locks of this kind belong to a process, also where processes got the file by fork().
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _read(self) -> tuple[int, int, int, int]:
        serial, current, following, key = _HEADER.unpack(os.pread(self._file, _HEADER.size, 0))
        return serial, current, following, key

    def _write(self, serial: int, current: int, following: int, key: int) -> None:
        os.pwrite(self._file, _HEADER.pack(serial, current, following, key), 0)

    @property
    def by_loader(self) -> bool:
        """Whether the epoch that runs is one of workers of a DataLoader."""
        with self._locked():
            return self._read()[3] >= 0

    def keep(self, share: Share, following: int, state: Mapping[str, Any]) -> None:
        """Keeps the position of the share of a worker before an epoch, for who reads it then."""
        text = json.dumps([share, following, dict(state)]).encode()
        if len(text) < _SLOT - _SEEN.size - _SIZE.size:
            place = _place(share.worker) + _SEEN.size
            os.pwrite(self._file, _SIZE.pack(len(text)) + text, place)

    def kept(self, share: Share, following: int) -> dict[str, Any] | None:
        """The position of this share before this epoch, if that is known."""
        place = _place(share.worker) + _SEEN.size
        (size,) = _SIZE.unpack(os.pread(self._file, _SIZE.size, place) or bytes(_SIZE.size))
        if size == 0:
            return None
        found = json.loads(os.pread(self._file, size, place + _SIZE.size))
        return found[2] if found[:2] == [list(share), following] else None

    @property
    def begun(self) -> int:
        """How many times an epoch has begun."""
        with self._locked():
            return self._read()[0]

    @property
    def following(self) -> int:
        """The number of the next epoch."""
        with self._locked():
            return self._read()[2]

    def peek(self) -> int:
        """The number of the next epoch, for every item: without the lock, as only set() writes."""
        return self._read()[2]

    def set(self, epoch: int) -> None:
        """Makes the next epoch this one."""
        with self._locked():
            serial, current, _, _ = self._read()
            self._write(serial, current, epoch, _NOBODY)

    def begin(self, worker: int, key: int, step: int, loaded: int | None = None) -> tuple[int, int]:
        """Begins an epoch, or takes part in the one that another worker has begun.

        The result is its number, and how many times an epoch has begun.

        key: the same for all workers of one iterator of a DataLoader. A worker that comes again
        with the same key (it is a persistent one) begins the next epoch.
        step: how many epochs go by.
        loaded: the epoch of a saved state, which counts whatever came before.
        """
        place = _place(worker)
        with self._locked():
            serial, current, following, last_key = self._read()
            (seen,) = _SEEN.unpack(os.pread(self._file, _SEEN.size, place) or bytes(_SEEN.size))
            if key != last_key or seen == serial:
                serial, current, following = serial + 1, following, following + step
            if loaded is not None:
                current, following = loaded, loaded + step
            self._write(serial, current, following, key)
            os.pwrite(self._file, _SEEN.pack(serial), place)
        return current, serial

    def __reduce__(self) -> tuple[object, ...]:
        # The memory goes to a child process that is being started; any other copy has its own.
        if get_spawning_popen() is None:
            return Epochs, (self.following,)
        return _shared, (DupFd(self._file),)


def _place(worker: int) -> int:
    return _HEADER.size + worker * _SLOT


def _shared(file: Any) -> Epochs:
    epochs = Epochs.__new__(Epochs)
    epochs._use(file.detach())
    return epochs
