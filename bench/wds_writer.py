"""ShardWriter of shardfeed.wds and of webdataset, in turn, with the same samples."""

from __future__ import annotations

import importlib
import statistics
import tempfile
import time
from typing import Any

PACKAGES = ("shardfeed.wds", "webdataset")


def seconds_of_writing(package: str, samples: list[dict[str, Any]]) -> float:
    """CPU seconds in which ShardWriter of a package writes the samples to four shards."""
    writer_of = importlib.import_module(f"{package}.writer").ShardWriter
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        with writer_of(f"{folder}/s-%06d.tar", maxcount=len(samples) // 4, verbose=0) as writer:
            for sample in samples:
                writer.write(sample)
        return time.process_time() - start


def rows(count: int = 20000, rounds: int = 5) -> list[tuple[str, float, float]]:
    """For each kind of sample: its name, and the median seconds of both packages."""
    kinds = {
        "tiny: cls, txt, 100 bytes": {"cls": 3, "txt": "hello", "bin": bytes(100)},
        "json and cls": {"json": {"a": [1, 2, 3]}, "cls": 3},
        "100 kB and cls": {"jpg": bytes(100_000), "cls": 3},
    }
    found = []
    for name, fields in kinds.items():
        number = count // 10 if "kB" in name else count
        samples = [{"__key__": f"{n:08d}", **fields} for n in range(number)]
        taken: dict[str, list[float]] = {package: [] for package in PACKAGES}
        for _ in range(rounds):
            for package in PACKAGES:
                taken[package].append(seconds_of_writing(package, samples))
        ours, theirs = (statistics.median(taken[package]) for package in PACKAGES)
        found.append((name, ours, theirs))
    return found


def main() -> None:
    """Prints a line for each kind of sample."""
    for name, ours, theirs in rows():
        print(f"{name:30} {ours:7.3f} s  {theirs:7.3f} s  {theirs / ours:5.1f} times")


if __name__ == "__main__":
    main()
