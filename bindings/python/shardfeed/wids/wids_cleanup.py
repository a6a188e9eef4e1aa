"""Deleting the oldest files of a folder."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import multiprocessing
import os
import time
from typing import IO


def keep_most_recent_files(
    pattern: str, maxsize: int = int(1e12), maxfiles: int = 1000, debug: bool = False
) -> None:
    """Keeps the youngest files of a pattern, as many as have less than `maxsize` bytes, and at most
    `maxfiles`; deletes the others, the oldest first.
    """
    files = []
    for name in glob.glob(pattern):
        with contextlib.suppress(FileNotFoundError):
            facts = os.stat(name)
            files.append((facts.st_mtime, name, facts.st_size))
    files.sort(reverse=True)
    kept, total = 0, 0
    for _, _, size in files[:maxfiles]:
        total += size
        if total >= maxsize:
            break
        kept += 1
    for _, name, _ in reversed(files[kept:]):
        if debug:
            print("deleting", name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


class ExclusiveLock:
    """A lock that other processes see; nobody waits for it."""

    def __init__(self, lockfile: str) -> None:
        self.lockfile = lockfile
        self.lock: IO[str] | None = None

    def try_lock(self) -> bool:
        """Whether it was free, and is now held."""
        lock = open(self.lockfile, "w")  # noqa: SIM115  # closed by release_lock
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return False
        self.lock = lock
        return True

    def release_lock(self) -> None:
        """Lets go of it."""
        if self.lock is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.lockfile)
            self.lock.close()
            self.lock = None


def _clean(pattern: str, maxsize: int, maxfiles: int, every: float) -> None:
    lock = ExclusiveLock(os.path.join(os.path.dirname(pattern), ".cleanup.lock"))
    if not lock.try_lock():
        return
    while True:
        keep_most_recent_files(pattern, maxsize=maxsize, maxfiles=maxfiles)
        time.sleep(every)


def create_cleanup_background_process(
    pattern: str, maxsize: int = int(1e12), maxfiles: int = 1000, every: float = 60
) -> multiprocessing.Process:
    """A process that does so every `every` seconds, unless another one does."""
    process = multiprocessing.Process(target=_clean, args=(pattern, maxsize, maxfiles, every))
    process.daemon = True
    process.start()
    return process
