"""Worker processes of transforms: killed, hanging, started in every way, and what they leave."""

from __future__ import annotations

import contextlib
import gc
import logging
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")

import shardfeed  # noqa: E402
import transforms as given  # noqa: E402
from killed_workers import campaign, left_over, workers  # noqa: E402
from transforms import ROWS, batches, numbers  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
ORDERED = [list(range(first, first + 8)) for first in range(0, ROWS, 8)]
HERE = Path(__file__).parent


@pytest.fixture
def url(tmp_path: Path) -> str:
    return given.rows(tmp_path / "rows.tar")


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
    skips: list[shardfeed.Skip] = []
    stream = shardfeed.Stream(url, on_error="skip_sample", log=None, on_skip=skips.append)
    read = batches(stream, transform=given.hangs_at_13, transform_workers=2, transform_timeout=3)
    assert numbers(read) == [[n for n in batch if n != 13] for batch in ORDERED]
    (skip,) = skips
    assert (skip.key, skip.url) == ("000013", url)
    assert "not returned within 3 s" in str(skip.error)


def test_closing_while_another_thread_waits(url):
    stream = shardfeed.Stream(url)
    read = batches(stream, transform=given.hangs_at_13, transform_workers=1)
    next(read)
    threading.Timer(0.3, stream.close).start()
    with pytest.raises((shardfeed.UsageError, shardfeed.CancelledError)):
        next(read)
    limit = time.monotonic() + 30
    while workers() and time.monotonic() < limit:
        time.sleep(0.05)
    assert not workers()


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("place", [{"transform_threads": 2}, {"transform_workers": 2}])
def test_interrupts_lose_nothing(url, place):
    """Ctrl-C at any moment, also in the middle of an answer of a worker."""
    stream = shardfeed.Stream(url)
    chance = random.Random(3)
    caught = 0

    here = sys._getframe()

    def interrupt(signum: int, frame: object) -> None:
        # What next() has returned, and this function has not stored, would be lost by this one.
        if frame is not here:
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(6):
            read, interrupts = [], 0
            iterator = batches(stream, transform=given.in_place, **place)
            while True:
                batch = None
                try:
                    # Few enough for workers to get to work on a slow machine.
                    if interrupts < 4:
                        signal.setitimer(signal.ITIMER_REAL, 0.0005 + chance.random() / 100)
                    batch = next(iterator)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt:
                    interrupts += 1
                except StopIteration:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    break
                if batch is not None:
                    wanted = 1000 + batch["cls"].reshape(-1, 1, 1)
                    assert (batch["x.npy"] == wanted).all()
                    read.append(batch["cls"].tolist())
            assert read == ORDERED
            caught += interrupts
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert caught
    stream.close()
    # None came while Python held a lock around a fork.
    other = threading.Thread(target=logging.getLogger, args=("shardfeed",), daemon=True)
    other.start()
    other.join(10)
    assert not other.is_alive()


def test_a_signal_during_a_fork_comes_after_it(url):
    """In the hooks of Python it would be dropped."""
    came = []
    previous = signal.signal(signal.SIGUSR1, lambda number, frame: came.append(number))
    active = [True]

    def signal_itself() -> None:
        if active:
            signal.raise_signal(signal.SIGUSR1)  # the handler would run here
            assert not came

    os.register_at_fork(before=signal_itself)
    try:
        with shardfeed.Stream(url) as stream:
            iterator = batches(stream, transform=given.same, transform_workers=1)
            next(iterator)
            assert came == [signal.SIGUSR1]
    finally:
        active.clear()
        signal.signal(signal.SIGUSR1, previous)


def test_handlers_that_raise_after_a_fork_are_all_called_and_back_in_place(url):
    came = []
    signals = [signal.SIGUSR1, signal.SIGUSR2]

    def handle(number: int, frame: object) -> None:
        came.append(number)
        raise InterruptedError(number)

    previous = [signal.signal(number, handle) for number in signals]
    active = [True]

    def signal_itself() -> None:
        if active:
            active.clear()
            # In this thread, before it returns: on a loaded machine kill() may come later.
            for number in signals:
                signal.raise_signal(number)

    os.register_at_fork(before=signal_itself)
    try:
        with shardfeed.Stream(url) as stream:
            with pytest.raises(InterruptedError):
                batches(stream, transform=given.same, transform_workers=1)
            assert sorted(came) == signals
            assert [signal.getsignal(number) for number in signals] == [handle, handle]
            read = batches(stream, transform=given.same, transform_workers=1)
            assert numbers(read) == ORDERED
        assert not workers()
    finally:
        active.clear()
        for number, handler in zip(signals, previous):
            signal.signal(number, handler)


@pytest.mark.parametrize("reaped", [1, 2])
def test_an_interrupt_while_a_worker_is_waited_for(url, monkeypatch, reaped):
    """The worker is not left on the list of those that live, and the work of a dead one is done."""
    came = []
    wait_for = os.waitpid

    def handle(number: int, frame: object) -> None:
        came.append(number)
        raise InterruptedError(number)

    def waitpid(pid: int, options: int) -> tuple[int, int]:
        nonlocal reaped
        found = wait_for(pid, options)
        if found[0] != 0:
            reaped -= 1
            if reaped == 0:
                signal.raise_signal(signal.SIGUSR1)  # before anything is noted of the process
        return found

    previous = signal.signal(signal.SIGUSR1, handle)
    try:
        with shardfeed.Stream(url) as stream:
            iterator = batches(stream, transform=given.doubled, transform_workers=2)
            read = [next(iterator)]
            pid = workers()[0].pid
            monkeypatch.setattr(os, "waitpid", waitpid)
            os.kill(pid, signal.SIGKILL)
            while True:
                try:
                    read.append(next(iterator))
                except InterruptedError:
                    continue
                except StopIteration:
                    break
            assert numbers(read) == ORDERED
            with contextlib.suppress(InterruptedError):
                stream.close()
        assert came == [signal.SIGUSR1]
        assert not workers()
    finally:
        signal.signal(signal.SIGUSR1, previous)


def test_the_time_limit_of_the_stream_counts_too(url):
    stream = shardfeed.Stream(url, timeout=0.3)
    read = batches(stream, transform=given.hangs_at_13, transform_workers=1)
    given.patient_next(read)
    for _ in range(2):
        with pytest.raises(shardfeed.TimeoutError, match=r"within 0\.3 s"):
            next(read)
    stream.close()
    assert not workers()


def test_workers_killed_at_random_moments(url):
    """A few of the kills of tests/faults/kill_workers.sh."""
    assert campaign(url, 2, seed=5) > 0


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


def test_a_traceback_where_others_are_pickled(url):
    """As in programs that import Dask."""
    pytest.importorskip("tblib")
    program = (
        "import shardfeed, tblib.pickling_support\n"
        "tblib.pickling_support.install()\n"
        "def fails(row): raise ValueError('unlucky')\n"
        f"read = shardfeed.Stream({url!r}).batches(8, decode='cls:int', transform=fails,"
        " transform_workers=1, transform_start='fork')\n"
        "try: next(read)\n"
        "except shardfeed.TransformError as error: print(error.__cause__.__cause__)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "in fails" in done.stdout, done.stderr
    assert "ValueError: unlucky" in done.stdout


def test_nothing_is_left_over(url):
    def epochs(count: int) -> tuple[int, int, int]:
        for _ in range(count):
            stream = shardfeed.Stream(url)
            for batch in batches(stream, transform=given.doubled, transform_workers=2):
                assert len(batch) == 8
            iterator = batches(stream, transform=given.doubled, transform_workers=2)
            next(iterator)
            os.kill(workers()[0].pid, signal.SIGKILL)
            next(iterator)
            del stream, iterator, batch  # without close()
        return left_over()

    before = epochs(2)
    left = epochs(3)
    assert all(now <= then for now, then in zip(left, before)), (left, before)
    assert left[0] == left[2] == 0


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
