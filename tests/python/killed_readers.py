"""kill -9 of one of eight processes that fill one cold cache, at random points.

python killed_readers.py COUNT [SEED] does that so often. After each kill the others read all
samples and end, new processes do too, `shardfeed cache verify` finds no damage, and nothing is
locked.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import shardfeed
from conftest import numbered, write_tar
from http_servers import Nginx

PROCESSES = 8
SHARDS, SAMPLES, SIZE = 3, 8, 100_000
LONGEST = 30.0  # seconds that a process may take: a lock that sticks takes longer


def expected() -> list[tuple[str, bytes]]:
    members = [one for n in range(SHARDS) for one in numbered(n * SAMPLES, SAMPLES, SIZE)]
    return [(name[:-4], data) for name, data in members if name.endswith(".txt")]


def write_shards(folder: Path) -> None:
    for shard in range(SHARDS):
        write_tar(folder / f"k-{shard}.tar", numbered(shard * SAMPLES, SAMPLES, SIZE))


def reads_right(url: str, cache: Path, wanted: list[tuple[str, bytes]], number: int) -> bool:
    """Half of the processes stream, the others have a dataset, whose indexes are cached too."""
    if number % 2:
        stream = shardfeed.Stream(url, cache=str(cache), threads=2, retries=0)
        return [(s.key, bytes(s["txt"])) for s in stream] == wanted
    with shardfeed.Dataset(url, cache=str(cache), retries=0) as data:
        return [(s.key, bytes(s["txt"])) for s in data.get_many(range(len(data)))] == wanted


def start(body: Callable[[], bool], gate: tuple[int, int] | None = None) -> int:
    """A child that waits until the pipe `gate` has no writer any more."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            if gate is not None:
                os.close(gate[1])
                os.read(gate[0], 1)
            status = 0 if body() else 1
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def statuses(children: list[int]) -> list[int]:
    """Exit statuses; -9: killed. Fails when one hangs."""
    found: dict[int, int] = {}
    end = time.monotonic() + LONGEST
    while len(found) < len(children):
        for child in children:
            if child in found:
                continue
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                found[child] = os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            for child in set(children) - set(found):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            raise AssertionError(f"{len(children) - len(found)} processes hang: a lock sticks")
        time.sleep(0.001)
    return [found[child] for child in children]


def verified(cache: Path) -> bool:
    command = [sys.executable, "-m", "shardfeed", "cache", "verify", "--dir", cache]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0


def campaign(server: Nginx, folder: Path, count: int, seed: int) -> int:
    """So many kills of processes that had not ended; returns how many more came too late."""
    url = server.url(f"k-{{0..{SHARDS - 1}}}.tar")
    wanted = expected()
    cache = folder / "cache"
    chance = random.Random(seed)

    def start_all() -> list[int]:
        """They begin together: forks of a large process take longer than what a child does."""
        shutil.rmtree(cache, ignore_errors=True)
        gate = os.pipe()
        children = [
            start(lambda n=n: reads_right(url, cache, wanted, n), gate)  # type: ignore[misc]
            for n in range(PROCESSES)
        ]
        for end in gate:
            os.close(end)
        return children

    children = start_all()
    began = time.monotonic()
    assert statuses(children) == [0] * PROCESSES
    whole = time.monotonic() - began
    killed = late = 0
    while killed < count:
        what = f"kill {killed + late} of seed {seed}"
        children = start_all()
        victim = chance.randrange(PROCESSES)
        time.sleep(chance.random() * whole)
        os.kill(children[victim], signal.SIGKILL)
        found = statuses(children)
        in_time = found.pop(victim) == -signal.SIGKILL
        killed, late = killed + in_time, late + (not in_time)
        assert found == [0] * (PROCESSES - 1), (what, found)
        # Its work is done again, and nobody waits for what it had locked.
        after = [start(lambda n=n: reads_right(url, cache, wanted, n)) for n in range(2)]  # type: ignore[misc]
        after.append(start(lambda: verified(cache)))
        assert statuses(after) == [0] * 3, (what, "after it")
    return late


def main() -> None:
    count = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32)
    print(f"{count} kills, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        server = Nginx(Path(name))
        try:
            write_shards(server.root)
            began = time.monotonic()
            late = campaign(server, Path(name), count, seed)
            seconds = time.monotonic() - began
            print(f"{count} kills, and {late} that came too late: all right ({seconds:.0f} s)")
        finally:
            server.stop()


if __name__ == "__main__":
    main()
