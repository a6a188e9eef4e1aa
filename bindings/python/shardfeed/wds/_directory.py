"""A folder as a queue of shards, which processes take one after another."""

from __future__ import annotations

import os
import random
import re
import sys
import time
from glob import glob
from typing import TYPE_CHECKING

from ._torch import IterableDataset

if TYPE_CHECKING:
    from collections.abc import Iterator


def check_pid_is_running(pid: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def without_last_extension(fname: str) -> str:
    """A name up to its last dot."""
    return re.sub(r"\.[^./]*$", "", fname)


def get_pid_from_filename(fname: str) -> int | None:
    """The number of the process that has taken this shard."""
    found = re.match(r".*\._(\d+)_$", fname)
    return int(found[1]) if found else None


class DirectoryShardList(IterableDataset):
    """The shards of a folder, each taken by one process, which renames it for as long as it reads.

    fate: "unlink", "keep" or "resample" what was read; anything else leaves it taken.
    """

    def __init__(
        self,
        path: str,
        pattern: str = "*.{tar,tgz,tar.tgz}",
        poll: float | None = 1,
        timeout: float = 1e12,
        mode: str | None = "resample",
        select: str = "random",
        fate: str | None = None,
    ) -> None:
        assert path.endswith("/"), f"{path}: a folder ends with a slash"
        assert os.path.isdir(path), f"{path}: no such folder"
        self.path = path
        self.poll = poll
        self.pattern = pattern
        self.mode = mode
        self.select = select
        self.fate = fate
        self.timeout = timeout

    def recycle(self, activename: str) -> None:
        """Does with a shard that was read what `fate` says."""
        try:
            if self.fate == "unlink":
                os.unlink(activename)
            elif self.fate == "keep":
                os.rename(activename, without_last_extension(activename) + "._done_")
            elif self.fate == "resample":
                os.rename(activename, without_last_extension(activename))
        except FileNotFoundError:
            print(f"{activename} was taken away while it was read", file=sys.stderr)

    def cleanup_files_without_processes(self) -> None:
        """Does the same with shards whose processes are gone."""
        for name in glob(os.path.join(self.path, "*._*_")):
            pid = get_pid_from_filename(name)
            if pid is not None and not check_pid_is_running(pid):
                self.recycle(name)

    def __iter__(self) -> Iterator[dict[str, str]]:
        start = time.time()
        while time.time() - start < self.timeout:
            found = glob(os.path.join(self.path, self.pattern))
            if not found:
                if self.poll is None:
                    return
                time.sleep(self.poll)
                continue
            if self.select == "random":
                name = random.choice(found)
            elif self.select == "oldest":
                name = min(found, key=os.path.getmtime)
            else:
                raise ValueError(f"unknown selection strategy {self.select}")
            active = f"{name}._{os.getpid()}_"
            try:
                os.rename(name, active)
            except FileNotFoundError:  # another process was quicker
                time.sleep(self.poll or 0)
                continue
            yield {"url": active}
            self.recycle(active)
            self.cleanup_files_without_processes()
