"""Calls that open something are ended by signals and by the option timeout."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import shardfeed
from conftest import tar_of, threads_run


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """A FIFO that no program writes into."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


OPENERS = {
    "archive": lambda fifo, **options: shardfeed.Archive(fifo, **options),
    "pipe": lambda fifo, **options: shardfeed.Archive("pipe:sleep 1000 | cat", **options),
    "dataset": lambda fifo, **options: shardfeed.Dataset(f"@{fifo}", **options),
    "stream": lambda fifo, **options: iter(shardfeed.Stream(f"@{fifo}", **options)),
    "plan": lambda fifo, **options: shardfeed.plan(f"@{fifo}", **options),
    "expand": lambda fifo, **options: shardfeed.expand_urls(f"@{fifo}", **options),
}


def interrupt_later(seconds: float) -> list[float]:
    """Sends SIGINT to this process; the list gets the time."""
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(seconds, interrupt).start()
    return sent


def children() -> set[int]:
    """The process ids of what this process has started and not waited for.

    Without the watcher of pipes, which stays while a stream of another test is not collected yet.
    """
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name of the program is in brackets, and may hold any byte.
            parent = int(stat.read_bytes().rpartition(b")")[2].split()[1])
            if b"shardfeed-pipe-watch" in stat.with_name("cmdline").read_bytes():
                continue
        except OSError:  # it is gone
            continue
        if parent == os.getpid():
            found.add(int(stat.parent.name))
    return found


@pytest.mark.parametrize("opener", OPENERS)
def test_ctrl_c_ends_an_opening(fifo, opener):
    before = children()
    for _ in range(3):
        sent = interrupt_later(0.2)
        with pytest.raises(KeyboardInterrupt):
            OPENERS[opener](fifo)
        late = time.monotonic() - sent[0]
        print(f"{opener}: {late * 1e3:.0f} ms")
        assert late < 5
    assert children() <= before


def test_a_handler_that_raises_nothing_lets_the_opening_go_on(fifo, tmp_path):
    heard: list[int] = []
    previous = signal.signal(signal.SIGALRM, lambda number, _: heard.append(number))
    whole = tar_of(3, tmp_path / "t.tar").read_bytes()

    def write() -> None:
        time.sleep(0.4)
        # The handler has run by now, while the archive was being opened.
        assert heard == [signal.SIGALRM]
        fifo.write_bytes(whole)

    writer = threading.Thread(target=write)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        writer.start()
        assert len(shardfeed.Archive(fifo)) == 6
    finally:
        signal.signal(signal.SIGALRM, previous)
        writer.join()
    assert heard == [signal.SIGALRM]


def test_the_exception_of_the_handler_is_raised_with_its_traceback(fifo):
    class AlarmError(Exception):
        pass

    def raise_alarm(number, frame):
        raise AlarmError("it rings")

    previous = signal.signal(signal.SIGALRM, raise_alarm)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(AlarmError, match="it rings") as caught:
            shardfeed.Archive(fifo)
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert any(entry.name == "raise_alarm" for entry in caught.traceback)


@pytest.mark.parametrize("opener", OPENERS)
def test_a_timeout_ends_an_opening(fifo, opener):
    before = children()
    for timeout in (0.2, "200ms"):
        start = time.monotonic()
        with pytest.raises(shardfeed.TimeoutError):
            OPENERS[opener](fifo, timeout=timeout)
        assert 0.2 <= time.monotonic() - start < 5
    assert children() <= before


def test_pipe_timeout_ends_the_wait_for_a_fifo(fifo):
    with pytest.raises(shardfeed.ReadError, match="pipe_timeout") as caught:
        shardfeed.Archive(fifo, pipe_timeout=0.2)
    assert caught.value.os_error != 0
    with pytest.raises(shardfeed.ReadError, match="pipe_timeout"):
        next(iter(shardfeed.Stream(fifo, pipe_timeout=0.2)))
    with pytest.raises(shardfeed.ReadError, match="pipe_timeout"):
        shardfeed.Dataset(f"@{fifo}", pipe_timeout=0.2)


def test_a_list_may_come_later_than_a_stream_waits_in_one_step(fifo, shards):
    url = shards(1, 100)

    def write() -> None:
        time.sleep(0.5)
        fifo.write_text(f"{url}\n")

    writer = threading.Thread(target=write)
    writer.start()
    assert len(list(shardfeed.Stream(f"@{fifo}"))) == 100
    writer.join()


def test_other_threads_run_while_an_archive_is_opened(fifo):
    with threads_run(), pytest.raises(shardfeed.TimeoutError):
        shardfeed.Archive(fifo, timeout=0.3)


def test_a_thread_opens_while_the_main_thread_gets_ctrl_c(fifo, tmp_path):
    """Only the main thread runs handlers: the opening of another one continues."""
    opened: list[int] = []
    thread = threading.Thread(target=lambda: opened.append(len(shardfeed.Archive(fifo))))
    thread.start()
    interrupt_later(0.2)
    with pytest.raises(KeyboardInterrupt):
        time.sleep(10)
    fifo.write_bytes(tar_of(3, tmp_path / "t.tar").read_bytes())
    thread.join(20)
    assert opened == [6]


def test_ctrl_c_in_a_program_that_opens(tmp_path, fifo):
    program = "import sys, shardfeed\nprint('ready', flush=True)\nshardfeed.Archive(sys.argv[1])\n"
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(fifo)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout.readline() == b"ready\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    _, complaints = child.communicate(timeout=10)
    assert child.returncode != 0
    assert b"KeyboardInterrupt" in complaints
