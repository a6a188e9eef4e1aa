#!/usr/bin/env python3
"""Measures members of ZIP files in random order: shardfeed.Archive and Python's zipfile.

Run it with an interpreter that has shardfeed. The first run writes 300 MB to data/. Files are in
the page cache. Rounds go over all rows in turn, and the best of each row counts. Slow is not an
error; wrong is: every reader must find the bytes that were written, else the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
import threading
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import shardfeed

DATA = Path(__file__).resolve().parent / "data"
BATCH = 256

Work = Callable[[list[int]], object]


# ---- Files ---------------------------------------------------------------------------------------


def members_file(name: str, count: int, method: int, data: Callable[[int], bytes]) -> Path:
    """A ZIP file with `count` members; made when it is not there."""
    path = DATA / f"{name}-{count}.zip"
    if not path.exists():
        DATA.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        with zipfile.ZipFile(unfinished, "w", method) as file:
            for number in range(count):
                file.writestr(f"{number % 100:02d}/img_{number:08d}.png", data(number))
        unfinished.rename(path)
    return path


def tiny(number: int) -> bytes:
    return b"%d" % number


def pixels(number: int) -> bytes:
    return random.Random(number).randbytes(10_000)


def text(number: int) -> bytes:
    """64 KiB of words, the n-th most frequent with a frequency of 1/n, as in real text."""
    chance = random.Random(number)
    words = chance.choices(WORDS, cum_weights=WEIGHTS, k=20_000)
    return b" ".join(words)[: 1 << 16]


def make_words() -> tuple[list[bytes], list[float]]:
    chance = random.Random(0)
    letters = b"etaoinshrdlucmfwypvbgkjqxz"
    weights = [1 / (n + 2) for n in range(26)]
    words = [bytes(chance.choices(letters, weights, k=chance.randint(1, 10))) for _ in range(5000)]
    cumulated, total = [], 0.0
    for rank in range(1, 5001):
        total += 1 / rank
        cumulated.append(total)
    return words, cumulated


WORDS, WEIGHTS = make_words()


# ---- Measuring -----------------------------------------------------------------------------------


def in_threads(work: Work, count: int) -> Work:
    """The same work, each thread doing its share."""

    def shared(order: list[int]) -> None:
        threads = [
            threading.Thread(target=work, args=(order[number::count],)) for number in range(count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return shared


def best_of(rows: dict[str, Work], order: list[int], rounds: int) -> dict[str, float]:
    """Seconds of each row."""
    best = dict.fromkeys(rows, float("inf"))
    for _ in range(rounds):
        for name, work in rows.items():
            start = time.perf_counter()
            work(order)
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def table(title: str, count: int, seconds: dict[str, float]) -> dict[str, object]:
    """Prints the rows with their ratio to the first; the figures."""
    print(f"## {title}")
    print(f"{'':40}{'us each':>10}{'members/s':>14}{'ratio':>8}")
    first = next(iter(seconds.values()))
    for name, taken in seconds.items():
        each = f"{taken / count * 1e6:10.2f}{count / taken:14,.0f}"
        print(f"{name:40}{each}{first / taken:8.2f}")
    print(flush=True)
    return {name: {"seconds": taken, "ratio": first / taken} for name, taken in seconds.items()}


def measure_opening(count: int, rounds: int) -> dict[str, object]:
    path = members_file("tiny", count, zipfile.ZIP_STORED, tiny)
    rows: dict[str, Work] = {
        "zipfile.ZipFile": lambda _: zipfile.ZipFile(path).close(),
        "shardfeed.Archive": lambda _: shardfeed.Archive(path).close(),
    }
    with zipfile.ZipFile(path) as theirs, shardfeed.Archive(path) as ours:
        if ours.names() != theirs.namelist():
            sys.exit(f"WRONG: names of {path}")
    return table(f"Opening {count:,} members", count, best_of(rows, [], rounds))


def measure_reading(
    title: str, path: Path, rounds: int, expected: Callable[[int], bytes]
) -> dict[str, object]:
    theirs, ours = zipfile.ZipFile(path), shardfeed.Archive(path)
    single = shardfeed.Archive(path, threads=1)
    names = theirs.namelist()
    order = list(range(len(names)))
    random.Random(1).shuffle(order)

    def batches(archive: shardfeed.Archive) -> Work:
        def work(order: list[int]) -> None:
            for first in range(0, len(order), BATCH):
                archive.read_many(order[first : first + BATCH])

        return work

    def unzip(order: list[int]) -> None:
        for position in order:
            theirs.read(names[position])

    def read(order: list[int]) -> None:
        for position in order:
            ours.read(position)

    def read_names(order: list[int]) -> None:
        for position in order:
            ours.read(names[position])

    for position in order[:BATCH]:
        data = expected(position)
        views = ours.read_many([position, order[0]])
        if not data == ours.read(position) == views[0] == theirs.read(names[position]):
            sys.exit(f"WRONG: member {position} of {path}")
    for position, view in zip(order, ours.read_many(order)):
        if zlib.crc32(view) != theirs.infolist()[position].CRC:
            sys.exit(f"WRONG: member {position} of {path}")
    rows = {
        "zipfile, read(name)": unzip,
        "zipfile, read(name), 2 threads": in_threads(unzip, 2),
        "shardfeed, read(position)": read,
        "shardfeed, read(name)": read_names,
        "shardfeed, read(position), 2 threads": in_threads(read, 2),
        f"shardfeed, read_many of {BATCH}, threads=1": batches(single),
        f"shardfeed, read_many of {BATCH}": batches(ours),
    }
    return table(title, len(order), best_of(rows, order, rounds))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="number of members (1)")
    parser.add_argument("--repeat", type=int, default=7, help="rounds; the best counts (7)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    arguments = parser.parse_args()

    def count(full: int) -> int:
        return max(300, round(full * arguments.scale))

    stored = members_file("stored", count(20_000), zipfile.ZIP_STORED, pixels)
    deflated = members_file("deflated", count(1_000), zipfile.ZIP_DEFLATED, text)
    figures = {
        "open": measure_opening(count(200_000), arguments.repeat),
        "stored": measure_reading(
            "Stored members of 10 kB, shuffled", stored, arguments.repeat, pixels
        ),
        "deflated": measure_reading(
            "Deflated members of 64 KiB of text, shuffled", deflated, arguments.repeat, text
        ),
    }
    load = os.getloadavg()[0]
    if load > 1.5:
        print(f"note: the load is {load:.1f}; measure again when the machine is idle")
    if arguments.json is not None:
        everything = {
            "python": platform.python_version(),
            "cores": len(os.sched_getaffinity(0)),
            "scale": arguments.scale,
            "load": load,
            **figures,
        }
        arguments.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
