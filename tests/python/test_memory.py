"""What a kept sample or view pins, measured as resident memory in processes of their own."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
import shardfeed
from conftest import numbered, write_tar

MiB = 1 << 20

PROGRAM = """
import gc, random, sys
import shardfeed

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))

urls = sys.argv[2:]
with shardfeed.Stream(urls[0]) as warm:
    for sample in warm: sample.values()
del sample
before = resident()
exec(sys.argv[1])
print(resident() - before, peak() - before)
"""


def grown(body: str, *urls: object) -> tuple[int, int]:
    """How much resident memory `body` keeps, and its peak."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, body, *map(str, urls)],
        capture_output=True,
        text=True,
        check=True,
    )
    kept, peak = done.stdout.split()
    return int(kept), int(peak)


@pytest.fixture(scope="module")
def many_tiny(tmp_path_factory) -> Path:
    """200,000 tiny samples, 400 MB of tar."""
    return write_tar(tmp_path_factory.mktemp("tiny") / "t.tar", numbered(0, 200_000, 20))


@pytest.mark.slow
@pytest.mark.parametrize("what", ["sample", "sample['txt']"])
def test_every_1000th_sample_of_a_large_stream(many_tiny, what):
    body = f"""
kept = []
for number, sample in enumerate(shardfeed.Stream(urls[0], memory="16MiB")):
    if number % 1000 == 0: kept.append({what})
del sample
assert len(kept) == 200
"""
    kept, peak = grown(body, many_tiny)
    # 64 KiB and 8 times its own size for each, and what an object of Python takes
    assert kept < 200 * (64 * 1024 + 8 * 21 + 4096) + 4 * MiB
    assert peak < kept + 48 * MiB


@pytest.mark.slow
def test_reservoir_of_1000_samples(many_tiny):
    body = """
reservoir = []
random.seed(1)
for number, sample in enumerate(shardfeed.Stream(urls[0], memory="16MiB")):
    if number < 1000: reservoir.append(sample)
    elif random.randrange(number + 1) < 1000: reservoir[random.randrange(1000)] = sample
    sample = None
"""
    kept, peak = grown(body, many_tiny)
    assert kept < 1000 * (64 * 1024 + 8 * 21 + 4096) + 4 * MiB
    assert peak < kept + 48 * MiB


@pytest.mark.slow
def test_list_with_a_budget_of_a_tenth(tmp_path):
    path = write_tar(
        tmp_path / "t.tar", [(f"{n}.bin", bytes([n % 256]) * 100_000) for n in range(1000)]
    )
    with shardfeed.Stream(path, memory="10MB") as stream:
        samples = list(stream)
        assert stream.stats()["memory_peak"] <= 10_000_000
    assert len(samples) == 1000
    for number in random.Random(0).sample(range(1000), 100):
        assert bytes(samples[number]["bin"]) == bytes([number % 256]) * 100_000


@pytest.mark.slow
def test_list_of_tiny_samples(many_tiny):
    kept, _ = grown("samples = list(shardfeed.Stream(urls[0], memory='16MiB'))", many_tiny)
    assert kept < 200_000 * 400


@pytest.mark.slow
def test_memory_of_epochs_does_not_grow(tmp_path):
    path = write_tar(tmp_path / "t.tar", numbered(0, 5000, 500))
    body = """
stream = shardfeed.Stream(urls[0])
for _ in range(5):
    for sample in stream: sample.key, sample.shard, sample.values()
sample = None
before = resident()
for _ in range(60):
    for sample in stream: sample.key, sample.shard, sample.values()
    it = iter(stream); next(it); del it
sample = None
"""
    kept, _ = grown(body, path)
    assert kept < 4 * MiB
