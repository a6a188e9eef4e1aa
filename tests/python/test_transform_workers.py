"""Worker processes of transforms: killed, hanging, started in every way, and what they leave."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import shardfeed  # noqa: E402
import transforms as given  # noqa: E402
from transforms import ROWS, batches, numbers  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
ORDERED = [list(range(first, first + 8)) for first in range(0, ROWS, 8)]
HERE = Path(__file__).parent


@pytest.fixture
def url(tmp_path: Path) -> str:
    return given.rows(tmp_path / "rows.tar")


def workers() -> list[Any]:
    return [p for p in multiprocessing.active_children() if p.name.startswith("shardfeed-")]


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_other_start_methods(url, start):
    with shardfeed.Stream(url) as stream:
        options = {"transform": given.doubled, "transform_workers": 2, "transform_start": start}
        read = list(batches(stream, **options))
        assert numbers(read) == ORDERED
        assert all((b["x.npy"] == 2 * b["cls"].reshape(-1, 1, 1)).all() for b in read)
        first = {pid for batch in read for pid in batch["pid"].tolist()}
        # They stay for the next epoch.
        assert {pid for batch in batches(stream, **options) for pid in batch["pid"]} <= first
        assert len(workers()) == 2
        with pytest.raises(shardfeed.UsageError, match=r"cannot be sent.*fork"):
            batches(stream, **{**options, "transform": lambda row: row})
    assert not workers()


def test_a_killed_worker_is_replaced_and_its_work_done_again(url, tmp_path):
    stream = shardfeed.Stream(url)
    killed = given.KilledOnce(tmp_path / "counts", 1)
    assert numbers(batches(stream, transform=killed, transform_workers=2)) == ORDERED
    assert len(workers()) == 2
    stream.close()


def test_a_sample_that_kills_its_worker_twice(url, tmp_path):
    killed = given.KilledOnce(tmp_path / "counts", 100)
    read = batches(url, transform=killed, transform_workers=2)
    next(read)
    with pytest.raises(shardfeed.TransformError, match=r"2 times \(by signal SIGKILL\).*000013"):
        next(read)
    stream = shardfeed.Stream(url, on_error="skip_sample", log=None)
    read = batches(stream, transform=killed, transform_workers=2)
    assert numbers(read) == [[n for n in batch if n != 13] for batch in ORDERED]
    assert stream.stats()["skipped_samples"] == 1


def test_a_sample_that_hangs(url):
    options = {"transform_workers": 2, "transform_timeout": 0.5}
    read = batches(url, transform=given.hangs_at_13, **options)
    next(read)
    with pytest.raises(shardfeed.TransformError, match=r"not returned within 0.5 s.*000013"):
        next(read)
    stream = shardfeed.Stream(url, on_error="skip_sample", log=None)
    read = batches(stream, transform=given.hangs_at_13, **options)
    assert numbers(read) == [[n for n in batch if n != 13] for batch in ORDERED]


def test_the_time_limit_of_the_stream_counts_too(url):
    stream = shardfeed.Stream(url, timeout=0.3)
    read = batches(stream, transform=given.hangs_at_13, transform_workers=1)
    next(read)
    for _ in range(2):
        with pytest.raises(shardfeed.TimeoutError, match=r"within 0\.3 s"):
            next(read)
    stream.close()
    assert not workers()


def test_workers_killed_at_random_moments(url):
    """Nothing is lost, comes twice or changes its order."""
    chance = random.Random(5)
    stream = shardfeed.Stream(url)
    for _ in range(6):
        read = []
        for batch in batches(stream, transform=given.doubled, transform_workers=2):
            assert (batch["x.npy"] == 2 * batch["cls"].reshape(-1, 1, 1)).all()
            read.append(batch["cls"].tolist())
            if chance.random() < 0.5:
                os.kill(chance.choice(workers()).pid, signal.SIGKILL)
        assert read == ORDERED
    stream.close()
    assert not workers()


def test_workers_that_end_before_they_begin(url, tmp_path):
    program = tmp_path / "program.py"
    # Without a guard the main script runs again in each worker, where it can start none.
    program.write_text(
        "import shardfeed\n"
        "def same(row): return row\n"
        f"read = shardfeed.Stream({url!r}).batches(8, decode='cls:int', transform=same,"
        " transform_workers=1, transform_start='spawn')\n"
        "next(read)\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "ended before they had begun" in done.stderr
    assert "__main__" in done.stderr


def test_nothing_is_left_over(url):
    def epochs(count: int) -> tuple[int, int]:
        for _ in range(count):
            stream = shardfeed.Stream(url)
            for batch in batches(stream, transform=given.doubled, transform_workers=2):
                assert len(batch) == 8
            iterator = batches(stream, transform=given.doubled, transform_workers=2)
            next(iterator)
            os.kill(workers()[0].pid, signal.SIGKILL)
            next(iterator)
            del stream, iterator, batch  # without close()
        gc.collect()
        descriptors = os.listdir("/proc/self/fd")
        mapped = Path("/proc/self/maps").read_text().count("memfd:shardfeed")
        assert not workers()
        return len(descriptors), mapped

    before = epochs(2)
    after = epochs(3)
    assert after[0] <= before[0]
    assert after[1] == before[1] == 0
    assert not [name for name in os.listdir("/dev/shm") if name.startswith("shardfeed")]


def test_memory_is_used_again(url):
    stream = shardfeed.Stream(url)
    places = set()
    for _ in range(10):
        for batch in batches(stream, transform=given.doubled, transform_workers=1):
            places.add(batch["x.npy"].ctypes.data)
    assert len(places) <= 6  # of 50
    stream.close()


def test_a_batch_outlives_its_worker_and_a_fork(url):
    stream = shardfeed.Stream(url)
    read = batches(stream, transform=given.doubled, transform_workers=1)
    batch = next(read)
    kept = batch["x.npy"]
    child = os.fork()
    if child == 0:
        try:
            next(read)
        except shardfeed.ForkedError:
            del batch, kept, read, stream
            gc.collect()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    labels = batch["cls"].tolist()
    del batch
    assert numbers(read) == ORDERED[1:]
    stream.close()
    gc.collect()
    assert (kept == 2 * np.reshape(labels, (-1, 1, 1))).all()


def test_a_forked_child_starts_workers_of_its_own(url):
    stream = shardfeed.Stream(url)
    read = batches(stream, transform=given.doubled, transform_workers=1)
    next(read)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            own = numbers(batches(stream, transform=given.doubled, transform_workers=1))
            stream.close()
            status = 0 if own == ORDERED else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert numbers(read) == ORDERED[1:]
    stream.close()


PROGRAM = """
import multiprocessing, os, sys, time
import shardfeed, transforms
stream = shardfeed.Stream(sys.argv[1])
read = transforms.batches(
    stream, transform=getattr(transforms, sys.argv[2]), transform_workers=2
)
next(read)
print(*(p.pid for p in multiprocessing.active_children()), flush=True)
if sys.argv[3] == "wait":
    time.sleep(60)
if sys.argv[3] == "raise":
    raise KeyboardInterrupt
"""


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize(
    ("end", "transform"), [("leave", "same"), ("raise", "hangs_at_13"), ("kill", "hangs_at_13")]
)
def test_workers_end_with_the_program(url, end, transform):
    how = "wait" if end == "kill" else end
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url, transform, how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=HERE,
    ) as program:
        assert program.stdout is not None
        pids = list(map(int, program.stdout.readline().split()))
        assert len(pids) == 2
        if end == "kill":
            program.kill()
        stderr = program.communicate(timeout=60)[1]
    assert (program.returncode == 0) == (end == "leave")
    assert end != "leave" or stderr == ""
    limit = time.monotonic() + 30
    while not all(map(is_gone, pids)) and time.monotonic() < limit:
        time.sleep(0.05)
    assert all(map(is_gone, pids))


def test_workers_of_a_pool_have_no_workers(url):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        with pytest.raises(shardfeed.UsageError, match="no processes of its own"):
            pool.apply(read_with_workers, (url,))
        assert pool.apply(read_with_threads, (url,)) == ORDERED


def read_with_workers(url: str) -> list[list[int]]:
    return numbers(batches(url, transform=given.same, transform_workers=1))


def read_with_threads(url: str) -> list[list[int]]:
    return numbers(batches(url, transform=given.same, transform_threads=1))
