from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest
import shardfeed

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


def child_status(body) -> int:
    """Runs body() in a forked child; its result is the exit status, 99 for an exception."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            status = body()
        finally:
            os._exit(status)
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


def read_all(stream: shardfeed.Stream) -> list[str]:
    return [sample.key for sample in stream]


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_workers_open_the_stream_again(shards, method):
    url = shards(2, 200)
    stream = shardfeed.Stream(url, shuffle=50, seed=9)
    first = read_all(shardfeed.Stream(url, shuffle=50, seed=9))
    second = read_all(shardfeed.Stream(url, shuffle=50, seed=9, epoch=1))
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(read_all, [stream] * 3) == [first] * 3
        assert read_all(stream) == first
        assert pool.map(read_all, [stream] * 3) == [second] * 3
        samples = pool.map(next, [iter([sample]) for sample in list(stream)[:5]])
    assert [sample.key for sample in samples] == second[:5]


def test_iterator_of_the_parent_is_refused_in_the_child(shards):
    stream = shardfeed.Stream(shards(2, 1000))
    iterator = iter(stream)
    sample = next(iterator)
    view = sample["txt"]

    def body() -> int:
        for _ in range(2):
            try:
                next(iterator)
                return 1
            except shardfeed.ForkedError:
                pass
        if bytes(view) != b"0........." or sample.key != "000000":
            return 2
        stream.stats()
        stream.cancel()  # has nothing to cancel in the child
        if len(list(stream)) != 2000:
            return 3
        stream.close()
        return 0

    assert child_status(body) == 0
    assert len(list(iterator)) == 1999
    assert len(list(stream)) == 2000


def test_stream_opened_before_the_fork_and_used_in_both(shards):
    stream = shardfeed.Stream(shards(2, 100), threads=2)
    assert child_status(lambda: len(list(stream)) - 200) == 0
    assert len(list(stream)) == 200


def test_child_that_only_exits(shards):
    stream = shardfeed.Stream(shards(4, 2000), threads=2, lanes=4)
    iterator = iter(stream)
    next(iterator)

    def body() -> int:
        nonlocal stream, iterator
        del stream, iterator
        return 0

    assert child_status(body) == 0


def test_whole_interpreter_exit_in_the_child(shards):
    """Destructors of the parent's streams run in a child that ends normally."""
    program = (
        "import os, sys, shardfeed\n"
        "stream = shardfeed.Stream(sys.argv[1], threads=2)\n"
        "iterator = iter(stream)\n"
        "next(iterator)\n"
        "child = os.fork()\n"
        "if child == 0: sys.exit(7)\n"
        "status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "sys.exit(status + sum(1 for _ in iterator))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, shards(2, 50)],
        capture_output=True,
        timeout=30,
    )
    assert done.stderr == b""
    assert done.returncode == 7 + 99


@pytest.mark.slow
def test_500_forks_in_the_middle_of_an_epoch(shards):
    stream = shardfeed.Stream(shards(4, 5000, 100), threads=2, lanes=4, memory="1MiB")
    inner = shardfeed.Stream(shards(2, 20, name="inner"))
    iterator = iter(stream)
    seen = 0

    def body() -> int:
        try:
            next(iterator)
            return 1
        except shardfeed.ForkedError:
            return len(list(inner)) - 40

    for _ in range(500):
        for _ in range(7):
            next(iterator)
            seen += 1
        assert child_status(body) == 0
    assert seen + sum(1 for _ in iterator) == 20000
