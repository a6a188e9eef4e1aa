"""Shards and functions for the tests of transforms. Functions can be pickled by their name."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import shardfeed
from batches import npy, rows_tar

ROWS, SIDE = 40, 40  # an array is larger than what goes through the pipe
DECODE = "x.npy, cls:int, txt:text"
# Where transforms run.
PLACES: list[dict[str, Any]] = [{}, {"transform_threads": 2}, {"transform_workers": 2}]


def rows(path: Path, count: int = ROWS) -> str:
    """A shard whose arrays consist of the number that is in cls."""
    return rows_tar(
        path,
        (
            {
                "x.npy": npy(np.full((SIDE, SIDE), n, "i4")),
                "cls": b"%d" % n,
                "txt": b"text %d" % n,
            }
            for n in range(count)
        ),
    )


def batches(source: Any, **options: Any) -> Any:
    stream = source if isinstance(source, shardfeed.Stream) else shardfeed.Stream(source)
    return stream.batches(8, decode=DECODE, **options)


def patient_next(read: Any) -> Any:
    """The next batch, on a machine that is slow beside a short time limit."""
    while True:
        try:
            return next(read)
        except shardfeed.TimeoutError:
            pass


def numbers(read: Any) -> list[list[int]]:
    return [batch["cls"].tolist() for batch in read]


# ---- Functions ----


def same(row: dict[str, Any]) -> dict[str, Any]:
    return row


def doubled(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "x.npy": row["x.npy"] * 2,
        "cls": row["cls"],
        "txt": row["txt"] + "!",
        "key": row["__key__"],
        "pid": os.getpid(),
        "pair": {"n": int(row["cls"])},
    }


def in_place(row: dict[str, Any]) -> dict[str, Any]:
    row["x.npy"] += 1000
    return row


def grown(row: dict[str, Any]) -> dict[str, Any]:
    """Boxes and tokens whose number is that of the row, and a picture of one size."""
    count = int(row["cls"]) % 5
    return {
        "boxes": np.full((count, 4), row["cls"], "f4"),
        "tokens": np.arange(count, dtype="i2"),
        "grid": np.full((count, 1 + count % 2), count, "c8"),
        "cls": row["cls"],
    }


def equal(row: dict[str, Any]) -> dict[str, Any]:
    return {"same": np.zeros((2, 3)), "none": np.zeros((0, 4)), "x.npy": row["x.npy"]}


def even_only(row: dict[str, Any]) -> dict[str, Any] | None:
    return None if row["cls"] % 2 else row


def fails_at_13(row: dict[str, Any]) -> dict[str, Any]:
    if row["cls"] == 13:
        raise ValueError("an unlucky number")
    return row


def other_shape_at_13(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "x.npy": row["x.npy"][:-1]} if row["cls"] == 13 else row


def random_numbers(row: dict[str, Any]) -> dict[str, Any]:
    return {"cls": row["cls"], "draw": random.random(), "array": np.random.rand(3)}


def seeds(row: dict[str, Any]) -> dict[str, Any]:
    return {"cls": row["cls"], "seed": str(row["__seed__"])}


class KilledOnce:
    """Kills its process with one sample, as often as a file is as long."""

    def __init__(self, counts: Path, times: int) -> None:
        self.counts = counts
        self.times = times

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        if row["cls"] == 13 and (
            not self.counts.exists() or self.counts.stat().st_size < self.times
        ):
            with self.counts.open("a") as file:
                file.write("x")
            os.kill(os.getpid(), signal.SIGKILL)
        return row


def hangs_at_13(row: dict[str, Any]) -> dict[str, Any]:
    if row["cls"] == 13:
        time.sleep(600)
    return row


def slow_at_the_start(row: dict[str, Any]) -> dict[str, Any]:
    if row["cls"] == 0:
        time.sleep(0.2)  # while the stream comes to its error
    return row


def sums(batch: Any) -> dict[str, Any]:
    return {"cls": batch["cls"], "sums": batch["x.npy"].sum(axis=(1, 2)), "all": batch["x.npy"]}


def fails_with_batch(batch: Any) -> Any:
    raise RuntimeError(f"a batch of {len(batch)}")


def nothing_of_the_second(batch: Any) -> Any:
    return None if 8 in batch["cls"] else batch
