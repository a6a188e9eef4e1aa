"""Datasets in worker processes: used as they are after a fork, opened again after a pickle."""

from __future__ import annotations

import multiprocessing
import random
import subprocess
import sys

import pytest
import shardfeed
from conftest import numbered, write_tar
from test_archive_fork import in_children
from test_dataset import number_of

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

MiB = 1 << 20


def reads_right(data: shardfeed.Dataset, seed: int) -> bool:
    order = list(range(len(data))) * 3
    random.Random(seed).shuffle(order)
    return (
        all(number_of(data[n]) == n and data.find(data[n].key) == n for n in order[:300])
        and [number_of(sample) for sample in data.get_many(order)] == order
    )


@pytest.mark.parametrize("used", [False, True])
def test_opened_before_the_fork_and_read_by_8_children_at_once(shards, used):
    data = shardfeed.Dataset(shards(3, 50, size=5000))
    if used:
        assert reads_right(data, 99)
    assert in_children(8, lambda seed: reads_right(data, seed)) == [0] * 8
    assert reads_right(data, 99)


@pytest.mark.slow
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_pickled_to_workers(shards, method):
    data = shardfeed.Dataset(shards(2, 30))
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.starmap(reads_right, [(data, seed) for seed in range(4)]) == [True] * 4


PROGRAM = r"""
import gc, os, random, sys
import shardfeed

def private():
    "Memory that this process alone has, written pages of the parent's included."
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Private_"))

data = shardfeed.Dataset(sys.argv[1])
data[0], data.find(data[0].key)
gc.freeze()

def work(rounds, number):
    order = list(range(len(data)))
    for seed in range(rounds):
        random.Random(seed + number).shuffle(order)
        for n in order[::5]: data[n]["txt"]
        for first in range(0, len(order), 256): data.get_many(order[first:first + 256])
        for n in order[::50]: data.find(data[n].key)

children = []
for number in range(8):
    child = os.fork()
    if not child:
        work(1, number)
        first = private()
        work(2, number)
        os.write(1, f"{first} {private() - first}\n".encode())  # whole, among eight
        os._exit(0)
    children.append(child)
for child in children: assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.slow
def test_memory_of_8_workers_does_not_grow_with_use(tmp_path):
    """20,000 samples, whose table the workers share with the parent."""
    path = write_tar(tmp_path / "t.tar", numbered(0, 20_000))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 8
    for line in lines:
        first, grown = map(int, line.split())
        assert grown < MiB
        assert first < 24 * MiB  # an interpreter
