"""Archives in worker processes: used as they are after a fork, opened again after a pickle."""

from __future__ import annotations

import multiprocessing
import os
import random
import subprocess
import sys

import pytest
import shardfeed
from archives import FORMATS, images, write_archive, write_zip
from test_fork import child_status

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

MiB = 1 << 20


def reads_right(archive: shardfeed.Archive, seed: int) -> bool:
    """Reads every member in an order of its own, in all ways."""
    members = images(len(archive))
    order = list(range(len(archive))) * 5
    random.Random(seed).shuffle(order)
    views = archive.read_many(order)
    return all(
        archive.read(n) == archive[n].read() == view == members[n][1]
        and archive[members[n][0]].position == n
        for n, view in zip(order, views)
    )


def in_children(count: int, body) -> list[int]:
    """Exit statuses of children that run body(number) at the same time; 0 for True."""
    start, go = os.pipe()
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            status = 99
            try:
                os.close(go)
                os.read(start, 1)  # until all are there
                status = 0 if body(number) else 1
            finally:
                os._exit(status)
        children.append(child)
    os.close(start)
    os.close(go)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("used", [False, True])
def test_opened_before_the_fork_and_read_by_8_children_at_once(tmp_path, form, used):
    archive = shardfeed.Archive(write_archive(tmp_path / "t", images(40), form))
    if used:
        assert reads_right(archive, 99)
    assert in_children(8, lambda number: reads_right(archive, number)) == [0] * 8
    assert reads_right(archive, 99)


def test_opened_by_each_child(tmp_path):
    path = write_zip(tmp_path / "t.zip", images(40))
    body = lambda number: reads_right(shardfeed.Archive(path), number)  # noqa: E731
    assert in_children(8, body) == [0] * 8


def test_closed_in_the_child_is_open_in_the_parent(tmp_path):
    archive = shardfeed.Archive(write_zip(tmp_path / "t.zip", images(3)))

    def body() -> int:
        archive.read(0)
        archive.close()
        return 0

    assert child_status(body) == 0
    assert reads_right(archive, 1)


def test_fork_while_other_threads_read(tmp_path):
    import threading

    archive = shardfeed.Archive(write_zip(tmp_path / "t.zip", images(40)))
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            archive.read_many(range(40))
            archive.read(9)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for seed in range(20):
            assert child_status(lambda seed=seed: 0 if reads_right(archive, seed) else 1) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.parametrize("form", ["zip", "tar.gz", "memory.zip"])
def test_pickled_to_workers(tmp_path, method, form):
    archive = shardfeed.Archive(write_archive(tmp_path / "t", images(40), form))
    assert reads_right(archive, 99)
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.starmap(reads_right, [(archive, seed) for seed in range(4)]) == [True] * 4
        assert pool.map(bytes, archive.read_many([])) == []
        names = pool.map(name_of, [archive[3], archive[30]])
    assert names == ["img_00003.png", "img_00030.png"]


def name_of(member: shardfeed.Member) -> str:
    return member.name


PROGRAM = """
import gc, os, random, sys
import shardfeed

def private():
    "Memory that this process has written, pages of its parent included."
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Private_Dirty"))

archive = shardfeed.Archive(sys.argv[1])
archive.read(0)
gc.freeze()

def work(rounds):
    order = list(range(len(archive)))
    for seed in range(rounds):
        random.Random(seed).shuffle(order)
        for position in order: archive.read(position)
        for first in range(0, len(order), 256): archive.read_many(order[first:first + 256])
        for position in order[::10]: archive[archive[position].name].size

child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
work(1)
first = private()
work(5)
print(first, private() - first)
"""


@pytest.mark.slow
def test_memory_of_a_worker_does_not_grow_with_use(tmp_path):
    """50,000 members, whose names and table are some 5 MB that workers share with the parent."""
    path = write_zip(tmp_path / "t.zip", [(f"{n:032d}", b"x" * 100) for n in range(50_000)])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=True
    )
    first, grown = map(int, done.stdout.split())
    # The order of the members and what the allocator keeps of it; 20 bytes a member would be more.
    assert first < 8 * MiB
    assert grown < 2 * MiB
