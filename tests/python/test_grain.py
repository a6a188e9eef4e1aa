"""Streams and data sets in grain. Skipped without grain."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys

import pytest
import shardfeed

grain = pytest.importorskip("grain")
streams = pytest.importorskip("shardfeed.grain")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning"),
]


@pytest.fixture(scope="session", autouse=True)
def flags():
    """What grain reads its settings from, as absl.app.run() would leave it."""
    from absl import flags

    flags.FLAGS(["pytest"])


def number(sample: shardfeed.Sample) -> int:
    return int(bytes(sample["txt"]).rstrip(b"."))


def classes(batch: shardfeed.Batch) -> list[int]:
    return batch["cls"].tolist()


# ---- Random access ------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 2])
def test_dataset_is_a_random_access_data_source(shards, workers):
    from grain.python import RandomAccessDataSource

    source = shardfeed.Dataset(shards(3, 10), index="memory")
    assert isinstance(source, RandomAccessDataSource)
    sampler = grain.samplers.IndexSampler(
        num_records=len(source),
        shard_options=grain.sharding.NoSharding(),
        shuffle=True,
        num_epochs=1,
        seed=4,
    )

    def loader():
        return grain.DataLoader(
            data_source=source,
            sampler=sampler,
            operations=[Number()],
            worker_count=workers,
        )

    seen = list(loader())
    assert sorted(seen) == list(range(30))
    assert seen != sorted(seen)
    first, second = iter(loader()), iter(loader())
    assert [next(first) for _ in range(11)] == seen[:11]
    second.set_state(first.get_state())
    assert list(second) == seen[11:]


class Number(grain.transforms.Map):
    def map(self, sample: shardfeed.Sample) -> int:
        return number(sample)


def test_dataset_as_the_source_of_a_map_dataset(shards):
    source = shardfeed.Dataset(shards(3, 10), index="memory")
    data = grain.MapDataset.source(source).shuffle(seed=3).map(number)
    assert len(data) == 30
    assert sorted(data) == list(range(30))
    iterator = iter(data.to_iter_dataset())
    assert sorted(iterator) == list(range(30))


def test_without_jax(shards):
    # With it a sample is a leaf of grain's trees, without it a Mapping that is built anew.
    program = """
import sys
sys.modules["jax"] = None  # as if it were not installed
import grain, shardfeed, shardfeed.grain
from absl import flags
from grain._src.core import tree_lib

def number(sample):
    return int(bytes(sample["txt"]).rstrip(b"."))

class Number(grain.transforms.Map):
    def map(self, sample):
        return number(sample)

if __name__ == "__main__":
    assert tree_lib.map_structure.__module__ == tree_lib.__name__
    flags.FLAGS(["program"])
    source = shardfeed.Dataset(sys.argv[1], index="memory")
    data = grain.MapDataset.source(source)
    assert (data[3].key, number(data[3])) == ("000003", 3), data[3]
    assert sorted(data.shuffle(seed=3).map(number)) == list(range(12))
    assert [number(sample) for sample in data.to_iter_dataset()] == list(range(12))
    sampler = grain.samplers.IndexSampler(
        num_records=12, shard_options=grain.sharding.NoSharding(), num_epochs=1
    )
    for workers in (0, 2):
        for operations in ([], [Number()]):
            loader = grain.DataLoader(
                data_source=source, sampler=sampler, operations=operations, worker_count=workers
            )
            found = list(loader)
            assert [n if operations else number(n) for n in found] == list(range(12)), found
    (batch,) = data.batch(12)
    assert batch["txt"].shape == (12, 10) and batch["cls"].shape == (12, 1), batch
    stream = shardfeed.grain.Stream(sys.argv[1], shuffle=4)
    assert sorted(map(number, stream)) == list(range(12))
    prefetched = stream.mp_prefetch(grain.MultiprocessingOptions(num_workers=2))
    assert sorted(map(number, prefetched)) == list(range(12))
    print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", program, shards(3, 4)], capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "done\n", done.stderr


# ---- Streams ------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"epochs": 3}, {"epoch_samples": 12}], ids=str)
def test_state_at_every_element(shards, options):
    from grain.experimental import assert_equal_output_after_checkpoint

    url = shards(3, 7)
    samples = streams.Stream(url, transform=number, shuffle=5, seed=2, **options)
    assert_equal_output_after_checkpoint(samples)
    batches = streams.Stream(url, transform=classes, batch=4, shuffle=5, seed=2, **options)
    assert_equal_output_after_checkpoint(batches)


def test_iterators_begin_alike_and_end(shards):
    data = streams.Stream(shards(3, 7), transform=number, shuffle=5, seed=2)
    assert isinstance(data, grain.IterDataset)
    iterator = iter(data)
    assert isinstance(iterator, grain.DatasetIterator)
    whole = list(iterator)
    assert sorted(whole) == list(range(21))
    assert list(data) == whole
    state = iterator.get_state()
    assert next(iterator, "over") == "over"
    assert iterator.get_state() == state
    again = iter(data)
    again.set_state(state)
    assert list(again) == []
    again.set_state(iter(data).get_state())  # back to the beginning
    assert list(again) == whole
    again.close()
    with pytest.raises(shardfeed.UsageError, match="no state of a stream"):
        iterator.set_state({"next": 3})
    with pytest.raises(TypeError, match="shuffle"):
        streams.Stream(shards(1, 1), shufle=3)


def test_transformations_after_it(shards):
    endless = streams.Stream(shards(3, 7), transform=number, shuffle_shards=True, seed=1, epochs=0)
    data = endless.map(float).batch(4)
    iterator = iter(data)
    seen = [next(iterator).tolist() for _ in range(30)]
    first = iter(data)
    for _ in range(13):
        next(first)
    second = iter(data)
    second.set_state(json.loads(json.dumps(first.get_state())))
    assert [next(second).tolist() for _ in range(17)] == seen[13:]
    assert [next(first).tolist() for _ in range(17)] == seen[13:]


def test_processes_of_grain(shards):
    stream = streams.Stream(shards(4, 5), transform=number)
    data = stream.mp_prefetch(grain.MultiprocessingOptions(num_workers=2))
    iterator = iter(data)
    seen = list(itertools.islice(iterator, 7))
    state = iterator.get_state()
    seen += iterator
    assert sorted(seen) == list(range(20))
    again = iter(data)
    again.set_state(state)
    assert list(again) == seen[7:]
    for each in (iterator, again):
        each.close()


def test_shares(shards):
    url = shards(4, 5)
    parts = [
        list(streams.Stream(url, transform=number, rank=rank, world_size=2)) for rank in range(2)
    ]
    assert sorted(itertools.chain(*parts)) == list(range(20))
    assert len(parts[0]) == 10
    given = streams.Stream(url, worker=1, num_workers=2)
    with pytest.raises(shardfeed.UsageError, match="worker's share already"):
        given.set_slice(slice(0, None, 2))


# ---- Mixes --------------------------------------------------------------------------------------


def test_mixes(shards):
    from grain.experimental import assert_equal_output_after_checkpoint

    urls = [shards(4, 6, name="a"), shards(2, 5, name="b")]

    def mixed(**options) -> shardfeed.Mix:
        parts = [shardfeed.Stream(url, shuffle=4, seed=2, **options) for url in urls]
        return shardfeed.mix(parts, weights=[2, 1], seed=7)

    wanted = list(map(number, mixed()))
    assert_equal_output_after_checkpoint(streams.Stream(mixed(), transform=number))
    batches = streams.Stream(mixed(), transform=classes, batch=4, last="drop")
    assert_equal_output_after_checkpoint(batches)
    assert list(itertools.chain(*batches)) == [n % 10 for n in wanted[:32]]
    shared = streams.Stream(mixed(), transform=number)
    prefetched = shared.mp_prefetch(grain.MultiprocessingOptions(num_workers=2))
    assert sorted(prefetched) == sorted(wanted)
    ranks = [list(streams.Stream(mixed(), transform=number, rank=r, world_size=2)) for r in (0, 1)]
    assert ranks[1] == list(map(number, mixed(rank=1, world_size=2)))
    assert sorted(itertools.chain(*ranks)) == sorted(wanted)
    given = streams.Stream(mixed(worker=1, num_workers=2))
    with pytest.raises(shardfeed.UsageError, match="worker's share already"):
        given.set_slice(slice(0, None, 2))
    one = shardfeed.Stream(urls[0], rank=1, world_size=2)
    odd = shardfeed.mix([one, shardfeed.Stream(urls[1])])
    with pytest.raises(shardfeed.UsageError, match="stream 1 none of those"):
        streams.Stream(odd)
