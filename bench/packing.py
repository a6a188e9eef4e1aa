#!/usr/bin/env python3
"""Rows of 4096 tokens from shards of documents: tokens a second.

    python3 packing.py [--documents N] [--repeat N]

Each reader gives batches of 8 rows from the same shards of uint16 arrays (.npy, 4 shards, lengths
log-normal with a median of 500), in this process; the runs are interleaved, and the best of each
counts. Every reader must deliver the same rows, or the exit status is 1. webdataset is left out
with a note where it cannot be imported.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import random
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

WIDTH, BATCH, SHARDS = 4096, 8, 4

# The batches of an epoch, whole ones only.
Reader = Callable[[list[str]], Iterator[Any]]


def write_shards(folder: Path, documents: int) -> list[str]:
    draw = random.Random(1)
    tokens = np.random.default_rng(1)
    paths = []
    for shard in range(SHARDS):
        paths.append(str(folder / f"{shard}.tar"))
        with tarfile.open(paths[-1], "w", format=tarfile.USTAR_FORMAT) as tar:
            for number in range(documents // SHARDS):
                length = max(1, int(draw.lognormvariate(6.2, 1)))
                file = io.BytesIO()
                np.save(file, tokens.integers(0, 50_000, length, dtype=np.uint16))
                member = tarfile.TarInfo(f"{number:07d}.npy")
                member.size = len(file.getvalue())
                tar.addfile(member, io.BytesIO(file.getvalue()))
    return paths


def shardfeed_pack(paths: list[str]) -> Iterator[Any]:
    import shardfeed

    for batch in shardfeed.Stream(paths).batches(BATCH, decode="npy", pack=WIDTH, last="drop"):
        yield batch["npy"]


def joined(documents: Iterator[Any]) -> Iterator[Any]:
    """As programs do it that have no option for it."""
    parts: list[Any] = []
    have = 0
    for tokens in documents:
        parts.append(tokens)
        have += len(tokens)
        while have >= BATCH * WIDTH:
            whole = np.concatenate(parts)
            yield whole[: BATCH * WIDTH].reshape(BATCH, WIDTH)
            parts = [whole[BATCH * WIDTH :]]
            have = len(parts[0])


def shardfeed_samples(paths: list[str]) -> Iterator[Any]:
    import shardfeed

    return joined(sample.array("npy") for sample in shardfeed.Stream(paths))


def webdataset_samples(paths: list[str]) -> Iterator[Any]:
    import webdataset

    data = webdataset.WebDataset(paths, shardshuffle=False).decode()
    return joined(sample["npy"] for sample in data)


READERS: dict[str, Reader] = {
    "shardfeed pack": shardfeed_pack,
    "shardfeed samples + numpy": shardfeed_samples,
    "webdataset + numpy": webdataset_samples,
}


def measure(reader: Reader, paths: list[str]) -> tuple[float, str]:
    """Seconds, and a digest of some of the rows."""
    digest = hashlib.sha256()
    start = time.perf_counter()
    count = 0
    for count, rows in enumerate(reader(paths), 1):
        if count % 16 == 1:
            digest.update(rows.tobytes())
    seconds = time.perf_counter() - start
    return seconds, f"{count} {digest.hexdigest()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=int, default=80_000)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = write_shards(Path(folder), arguments.documents)
        best: dict[str, float] = {}
        digests = set()
        for _ in range(arguments.repeat):
            for name, reader in READERS.items():
                try:
                    seconds, digest = measure(reader, paths)
                except ImportError as missing:
                    print(f"{name} is left out: {missing}", file=sys.stderr)
                    continue
                digests.add(digest)
                best[name] = min(seconds, best.get(name, seconds))
    tokens = int(next(iter(digests)).split()[0]) * BATCH * WIDTH
    fastest = best["shardfeed pack"]
    for name, seconds in best.items():
        rate = tokens / seconds / 1e6
        print(f"{name:26} {rate:8.1f} million tokens/s  {seconds / fastest:6.1f} times the time")
    if len(digests) > 1:
        print("the readers delivered different rows", file=sys.stderr)
    return int(len(digests) > 1)


if __name__ == "__main__":
    sys.exit(main())
