"""kill -9 of workers of transforms, at random moments, and what is left when the stream is closed.

python killed_workers.py STREAMS [SEED] does that in three epochs of each: every batch comes once,
in its order, with what belongs into it; states that are saved resume with the next batch; and no
process, descriptor or shared memory is left over.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import shardfeed
import transforms as given
from transforms import batches, numbers


def workers() -> list[Any]:
    return [p for p in multiprocessing.active_children() if p.name.startswith("shardfeed-")]


def left_over() -> tuple[int, int, int]:
    """Processes, descriptors, and pieces of shared memory."""
    gc.collect()
    mapped = Path("/proc/self/maps").read_text().count("memfd:shardfeed")
    return len(workers()), len(os.listdir("/proc/self/fd")), mapped


def campaign(url: str, streams: int, seed: int) -> int:
    """How many workers were killed."""
    chance = random.Random(seed)
    kills = 0
    options = {"transform": given.doubled, "transform_workers": 2}
    wanted = numbers(batches(url))
    before = None
    for number in range(streams):
        with shardfeed.Stream(url) as stream:
            for _ in range(3):
                read: list[list[int]] = []
                for batch in batches(stream, **options):
                    labels = batch["cls"].tolist()
                    wrong = batch["x.npy"] != 2 * np.reshape(labels, (-1, 1, 1))
                    assert not wrong.any(), (number, labels)
                    read.append(labels)
                    if chance.random() < 0.3:
                        time.sleep(chance.random() / 500)
                        for worker in workers()[:1] if chance.random() < 0.5 else workers()[-1:]:
                            with contextlib.suppress(ProcessLookupError):  # of the last kill
                                os.kill(worker.pid, signal.SIGKILL)
                                kills += 1
                assert read == wanted, (number, read)
            iterator = batches(stream, **options)
            taken = chance.randrange(len(wanted))
            for _ in range(taken):
                next(iterator)
            resumed = shardfeed.Stream(url)
            resumed.load_state_dict(stream.state_dict())
            assert numbers(batches(resumed)) == wanted[taken:]
        del batch, iterator, resumed, stream
        left = left_over()
        before = before or left
        # Less: what earlier tests left was collected.
        assert all(now <= then for now, then in zip(left, before)), (number, left, before)
    return kills


def main() -> None:
    streams, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as folder:
        kills = campaign(given.rows(Path(folder) / "rows.tar"), streams, seed)
    print(f"{kills} kills in {3 * streams} epochs")


if __name__ == "__main__":
    main()
