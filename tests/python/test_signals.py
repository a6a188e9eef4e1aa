from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import interrupted
import pytest
import shardfeed
from conftest import tar_of, threads_run


def test_ctrl_c_ends_a_blocked_next_within_100_ms(silent_fifo):
    iterator = iter(shardfeed.Stream(silent_fifo))
    for _ in range(3):
        sent = []

        def interrupt(sent=sent):
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(0.2, interrupt)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            next(iterator)
        late = time.monotonic() - sent[0]
        timer.join()
        assert late < 0.1


def test_ctrl_c_in_a_program(silent_fifo):
    program = (
        "import sys, shardfeed\n"
        "print('ready', flush=True)\n"
        "with shardfeed.Stream(sys.argv[1]) as stream:\n"
        "    for sample in stream: pass\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(silent_fifo)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout.readline() == b"ready\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    _, complaints = child.communicate(timeout=10)
    assert child.returncode != 0
    assert b"KeyboardInterrupt" in complaints


@pytest.mark.skipif(sys.version_info < (3, 11), reason="signals come between any two bytecodes")
def test_interrupts_lose_no_sample_and_repeat_none(shards):
    url = shards(4, 5000)
    iterator = iter(shardfeed.Stream(url))

    assert [s.key for s in interrupted.collect(iterator, 20000)] == [
        f"{n:06d}" for n in range(20000)
    ]


def test_signal_handler_may_close_the_stream(silent_fifo):
    stream = shardfeed.Stream(silent_fifo)
    previous = signal.signal(signal.SIGALRM, lambda *_: stream.close())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(shardfeed.Error):
            next(iter(stream))
    finally:
        signal.signal(signal.SIGALRM, previous)
    with pytest.raises(shardfeed.UsageError, match="closed"):
        iter(stream)


@pytest.mark.parametrize("end", ["cancel", "close"])
def test_cancel_and_close_from_another_thread(silent_fifo, end):
    stream = shardfeed.Stream(silent_fifo)
    called = []

    def call():
        called.append(time.monotonic())
        getattr(stream, end)()

    timer = threading.Timer(0.2, call)
    timer.start()
    iterator = iter(stream)
    with pytest.raises(shardfeed.CancelledError):
        next(iterator)
    late = time.monotonic() - called[0]
    timer.join()
    assert late < 0.1
    with pytest.raises(shardfeed.Error):
        next(iterator)


def test_cancel_ends_one_epoch_only(shards):
    for options in ({}, {"epoch_samples": 900}):
        stream = shardfeed.Stream(shards(2, 1000), **options)
        stream.cancel()
        with pytest.raises(shardfeed.CancelledError):
            list(stream)
        assert len(list(stream)) == options.get("epoch_samples", 2000)


def test_timeout_and_the_next_call_continues(tmp_path):
    whole = tar_of(1, tmp_path / "t.tar").read_bytes()
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    iterator = iter(shardfeed.Stream(path, timeout=0.2))
    for _ in range(2):
        start = time.monotonic()
        with pytest.raises(TimeoutError, match=r"0\.2 s") as caught:
            next(iterator)
        assert 0.2 <= time.monotonic() - start < 0.4
        assert isinstance(caught.value, shardfeed.TimeoutError)
    os.write(writer, whole)
    os.close(writer)
    assert [sample.key for sample in iterator] == ["000000"]


def test_timeout_as_text(silent_fifo):
    for text, seconds in (("30ms", 0.03), ("0.1s", 0.1), ("100000 us", 0.1)):
        iterator = iter(shardfeed.Stream(silent_fifo, timeout=text))
        start = time.monotonic()
        with pytest.raises(TimeoutError):
            next(iterator)
        assert seconds <= time.monotonic() - start < seconds + 0.15


def test_other_threads_run_while_next_waits(silent_fifo):
    iterator = iter(shardfeed.Stream(silent_fifo, timeout=0.3))
    with threads_run(), pytest.raises(TimeoutError):
        next(iterator)


def test_open_stream_at_exit(tmp_path):
    """A program that ends in the middle of an epoch ends cleanly."""
    path = tar_of(2000, tmp_path / "t.tar")
    program = (
        "import sys, shardfeed\n"
        "stream = shardfeed.Stream(sys.argv[1:], threads=2)\n"
        "iterator = iter(stream)\n"
        "sample = next(iterator)\n"
        "view = sample['txt']\n"
    )
    for urls in ([str(path)] * 3, [f"pipe:cat {path}"] * 2):
        done = subprocess.run(
            [sys.executable, "-c", program, *urls], capture_output=True, timeout=20
        )
        assert (done.returncode, done.stderr) == (0, b"")


def test_import_time():
    program = (
        "import time; t = time.perf_counter(); import shardfeed; print(time.perf_counter() - t)"
    )
    times = [
        float(subprocess.run([sys.executable, "-c", program], capture_output=True).stdout)
        for _ in range(5)
    ]
    print(f"import: {min(times) * 1e3:.1f} ms")
    assert min(times) < 1  # as long as that takes only what imports PyTorch or NumPy
