"""Shards in a cluster of Ray on this machine: shardfeed.ray against ray.data.read_webdataset,
map_shards with nothing to do against `shardfeed cat`, and reshard with shuffle against `cp`.

    python bench/cluster.py [--rounds 3] [--only small,jpeg,map,reshard] [--cores 2]

Needs what tests/python/requirements-cluster.txt names, and Pillow. Both sides run in turn on the
same files in one cluster, whose worker processes were started before; the better of the rounds
counts. Every run must deliver each sample once.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
import ray.data
import shardfeed
import shardfeed.ray

if TYPE_CHECKING:
    from collections.abc import Callable

# How many times as fast as the other side each row is meant to be.
TARGETS = {"small": 5.0, "jpeg": 2.0, "map": 0.7, "reshard": 0.3}
SHARDS = 4


def write(folder: Path, name: str, samples: int, fields: Callable[[int], dict[str, bytes]]) -> str:
    """Shards with so many samples in all, and their indexes."""
    each = samples // SHARDS
    with shardfeed.Writer(f"{folder}/{name}-%d.tar", max_samples=each, index=True) as writer:
        for number in range(each * SHARDS):
            writer.write_bytes(f"{number:08}", fields(number))
    return f"{folder}/{name}-{{0..{SHARDS - 1}}}.tar"


def small_fields(number: int) -> dict[str, bytes]:
    """A sample of about 100 bytes."""
    return {"txt": f"{number}".encode().ljust(100, b"."), "cls": b"%d" % (number % 10)}


def photographs() -> Callable[[int], dict[str, bytes]]:
    """Samples with a JPEG of 320x240 that has something to decode."""
    from PIL import Image

    generator = random.Random(1)
    made = []
    for _ in range(8):
        rough = Image.frombytes("RGB", (40, 30), generator.randbytes(40 * 30 * 3))
        file = io.BytesIO()
        rough.resize((320, 240), Image.Resampling.BICUBIC).save(file, "jpeg", quality=90)
        made.append(file.getvalue())
    return lambda number: {"jpg": made[number % len(made)], "cls": b"%d" % (number % 10)}


def rows_of(data: Any, column: str) -> int:
    """Reads all of a data set; how many rows come."""
    return sum(
        len(batch[column]) for batch in data.iter_batches(batch_size=256, batch_format="numpy")
    )


def timed(run: Callable[[], int], samples: int) -> float:
    """The seconds of a run."""
    start = time.perf_counter()
    found = run()
    seconds = time.perf_counter() - start
    if found != samples:
        raise SystemExit(f"{found} samples came instead of {samples}")
    return seconds


def reading(url: str, decode: str, column: str, rounds: int, samples: int) -> tuple[float, float]:
    """Seconds of shardfeed.ray and of read_webdataset."""
    paths = shardfeed.expand_urls(url)

    def ours() -> int:
        return rows_of(shardfeed.ray.read_shards(url, decode=decode), column)

    def theirs() -> int:
        return rows_of(ray.data.read_webdataset(paths), column)

    pairs = [(timed(ours, samples), timed(theirs, samples)) for _ in range(rounds)]
    return min(a for a, _ in pairs), min(b for _, b in pairs)


def mapping(url: str, folder: Path, rounds: int, samples: int) -> tuple[float, float]:
    """Seconds of map_shards over Ray and of `shardfeed cat`."""
    out = folder / "out"

    def ours() -> int:
        shutil.rmtree(out, ignore_errors=True)
        report = shardfeed.map_shards(url, f"{out}/", _same, executor="ray")
        return sum(task.written for task in report)

    def theirs() -> int:
        target = folder / "cat.tar"
        target.unlink(missing_ok=True)
        words = [sys.executable, "-m", "shardfeed", "cat", url, "-o", str(target), "-q"]
        subprocess.run(words, check=True)
        return samples

    pairs = [(timed(ours, samples), timed(theirs, samples)) for _ in range(rounds)]
    return min(a for a, _ in pairs), min(b for _, b in pairs)


def resharding(
    url: str, folder: Path, rounds: int, samples: int, cores: int
) -> tuple[float, float]:
    """Seconds of a shuffle of all samples, in processes of this machine, and of `cp`."""
    shards = shardfeed.expand_urls(url)

    def emptied(name: str) -> Path:
        target = folder / name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        return target

    def ours() -> int:
        report = shardfeed.reshard(
            url,
            f"{emptied('new')}/",
            samples=1_000,
            shuffle=True,
            workers=cores,
            writer={"durable": False},  # as `cp`
        )
        return sum(task.written for task in report)

    def theirs() -> int:
        subprocess.run(["cp", *shards, str(emptied("copy"))], check=True)
        return samples

    pairs = [(timed(ours, samples), timed(theirs, samples)) for _ in range(rounds)]
    return min(a for a, _ in pairs), min(b for _, b in pairs)


def large_fields(number: int) -> dict[str, bytes]:
    """A sample of 100 kB."""
    return {"jpg": f"{number}".encode().ljust(100_000, b"."), "cls": b"%d" % (number % 10)}


def _same(sample: Any) -> Any:
    return sample


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="small,jpeg,map,reshard")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of samples")
    given = parser.parse_args()
    folder = os.path.dirname(os.path.dirname(shardfeed.__file__))
    path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    ray.init(
        num_cpus=given.cores,
        include_dashboard=False,
        logging_level=logging.ERROR,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    with tempfile.TemporaryDirectory() as name:
        for row in given.only.split(","):
            count = {"small": 100_000, "jpeg": 2_000, "map": 400_000, "reshard": 10_000}[row]
            samples = int(count * given.scale) // SHARDS * SHARDS
            if row == "jpeg":
                fields = photographs()
            else:
                fields = large_fields if row == "reshard" else small_fields
            url = write(Path(name), row, samples, fields)
            if row == "map":
                ours, theirs = mapping(url, Path(name), given.rounds, samples)
            elif row == "reshard":
                ours, theirs = resharding(url, Path(name), given.rounds, samples, given.cores)
            elif row == "jpeg":
                decode = "jpg:image/rgb8, cls:int"
                ours, theirs = reading(url, decode, "jpg", given.rounds, samples)
            else:
                ours, theirs = reading(url, "txt, cls:int", "txt", given.rounds, samples)
            verdict = "reached" if theirs / ours >= TARGETS[row] else "missed"
            print(
                f"{row}: {samples / ours:,.0f} samples/s, the other {samples / theirs:,.0f}; "
                f"{theirs / ours:.2f} times as fast (target {TARGETS[row]}: {verdict})",
                flush=True,
            )
    ray.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
