"""Forks while threads of the parent read over TLS: every child reads right, and none hangs.

python forked_readers.py COUNT does that many forks. A thread may have a lock of OpenSSL at any
moment: without the library's care for forks about one child of a thousand waited for it for ever.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from pathlib import Path

import shardfeed
from archives import images, write_archive
from http_servers import Nginx
from test_fork import child_status

MEMBERS = 40


def reads_right(archive: shardfeed.Archive, seed: int, rounds: int = 1) -> bool:
    """All members of a file that write_archive() wrote, in any order, one by one and together."""
    members = images(MEMBERS)
    order = list(range(MEMBERS)) * rounds
    random.Random(seed).shuffle(order)
    views = archive.read_many(order)
    return all(archive.read(n) == bytes(v) == members[n][1] for n, v in zip(order, views))


def campaign(archive: shardfeed.Archive, count: int, seconds: float = float("inf")) -> int:
    """So many forks, or what fits into that time; two threads read meanwhile. Returns how many."""
    stop = threading.Event()
    failed: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            while not stop.is_set():
                assert reads_right(archive, seed)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    done = 0
    try:
        while done < count and time.monotonic() < end:
            status = child_status(lambda seed=done: 0 if reads_right(archive, seed) else 1)
            assert status == 0, f"fork {done}"
            done += 1
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failed == []
    assert reads_right(archive, 99)
    return done


def main() -> None:
    count = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        server = Nginx(Path(folder))
        try:
            write_archive(server.root / "i", images(MEMBERS), "tar")
            archive = shardfeed.Archive(
                server.https("i.tar"), retries=0, ca_file=str(server.certificates.ca)
            )
            began = time.monotonic()
            campaign(archive, count)
            print(f"{count} forks: every child reads right ({time.monotonic() - began:.0f} s)")
        finally:
            server.stop()


if __name__ == "__main__":
    main()
