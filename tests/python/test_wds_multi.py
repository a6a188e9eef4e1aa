"""MultiLoader: all samples of all workers, and no worker that fails in silence."""

from __future__ import annotations

import os
import signal
import time

import pytest
from shardfeed.wds.multi import EOF, MultiLoader


class Part:
    """Every WORKER-th number."""

    def __init__(self, count: int, fail: str = "") -> None:
        self.count = count
        self.fail = fail

    def __iter__(self):
        worker, workers = int(os.environ["WORKER"]), int(os.environ["NUM_WORKERS"])
        for number in range(worker, self.count, workers):
            if number == 11 and self.fail == "raise":
                raise KeyError("eleven")
            if number == 11 and self.fail == "local":

                class OddError(Exception):
                    pass

                raise OddError("cannot be pickled")
            if number == 11 and self.fail == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            yield {"n": number, "data": bytes(1000)}


@pytest.mark.parametrize("workers", [1, 3])
def test_all_samples_come(workers):
    loader = MultiLoader(Part(100), workers=workers)
    for _ in range(2):
        assert sorted(sample["n"] for sample in loader) == list(range(100))
    assert loader.pids == [None] * workers
    assert sorted(s["n"] for s in MultiLoader(Part(1), workers=3)) == [0]


@pytest.mark.parametrize(
    ("fail", "kind", "message"),
    [
        ("raise", KeyError, "eleven"),
        ("local", RuntimeError, "OddError: cannot be pickled"),
        ("die", RuntimeError, "worker 2 has died with exit code -9.*help:"),
    ],
)
def test_a_worker_that_fails_is_an_error(fail, kind, message):
    loader = MultiLoader(Part(100, fail), workers=3)
    with pytest.raises(kind, match=message):
        list(loader)
    assert loader.pids == []


def test_giving_up_ends_the_workers():
    loader = MultiLoader(Part(10**9), workers=2)
    iterator = iter(loader)
    assert next(iterator)["n"] in (0, 1)
    processes = list(loader.pids)
    loader.kill()
    limit = time.monotonic() + 10
    while any(process.is_alive() for process in processes) and time.monotonic() < limit:
        time.sleep(0.01)
    assert not any(process.is_alive() for process in processes)
    assert EOF(index=3).__dict__ == {"index": 3}
