"""Mixes in shardfeed.torch: shares, epochs, states. Skipped without PyTorch."""

from __future__ import annotations

import itertools
import json
import pickle
from collections import Counter
from typing import Any

import pytest
import shardfeed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*suggested max number of worker"),
]


@pytest.fixture
def mixed(shards):
    """Makes mixes of two streams, of 4 x 10 and 4 x 5 samples, by the options of the streams."""
    urls = [shards(4, 10, name="a"), shards(4, 5, name="b")]

    def make(more: dict[str, Any] | None = None, **options: Any) -> shardfeed.Mix:
        options = {"shuffle": 6, "shuffle_shards": True, "seed": 3, **options}
        parts = [shardfeed.Stream(url, **options) for url in urls]
        return shardfeed.mix(parts, weights=[2, 1], seed=9, **(more or {}))

    return make


def name(sample: shardfeed.Sample) -> str:
    return sample.shard.rpartition("/")[2][0] + sample.key


def names(batch: shardfeed.Batch) -> list[str]:
    return [url.rpartition("/")[2][0] + key for url, key in zip(batch.urls, batch.sample_keys)]


def taken(mix: shardfeed.Mix, epochs: int = 1) -> list[list[str]]:
    """The epochs of a mix, read by itself."""
    return [[name(sample) for sample in mix] for _ in range(epochs)]


def workers_of(torch, stream, workers: int, method: str | None = "fork"):
    return torch.utils.data.DataLoader(
        stream,
        batch_size=None,
        num_workers=workers,
        multiprocessing_context=method if workers else None,
        timeout=120 if workers else 0,
    )


def in_turn(parts: list[list[str]]) -> list[str]:
    """What a DataLoader makes of the samples of its workers."""
    rows = itertools.zip_longest(*parts)
    return [item for row in rows for item in row if item is not None]


def test_every_iter_is_the_next_epoch(datasets, mixed):
    wanted = taken(mixed(), 3)
    assert len(set(map(tuple, wanted))) == 3
    stream = datasets.Stream(mixed(), transform=name)
    assert [list(stream) for _ in range(3)] == wanted
    stream.set_epoch(1)
    assert list(stream) == wanted[1]
    assert list(pickle.loads(pickle.dumps(stream))) == wanted[2]
    first = next(iter(datasets.Stream(mixed())))
    assert first["__key__"] == wanted[0][0][1:]
    assert "shardfeed.torch.Stream [" in repr(stream)


def test_epochs_begin_where_the_streams_do(datasets, mixed):
    stream = datasets.Stream(mixed(epoch=4), transform=name)
    assert list(stream) == taken(mixed(epoch=4))[0]
    assert list(stream) == taken(mixed(epoch=5))[0]


def test_ranks_share_every_stream(torch, datasets, mixed, monkeypatch):
    parts = []
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", "2")
        stream = datasets.Stream(mixed(), transform=name)
        parts.append(list(stream))
        assert parts[rank] == taken(mixed(rank=rank, world_size=2))[0]
        monkeypatch.delenv("RANK")
        monkeypatch.delenv("WORLD_SIZE")
        # The same said by arguments, and by the streams.
        given = datasets.Stream(mixed(), transform=name, rank=rank, world_size=2)
        assert list(given) == parts[rank]
        given = datasets.Stream(mixed(rank=rank, world_size=2), transform=name)
        assert list(given) == parts[rank]
        # Workers share what the rank has.
        given.set_epoch(0)
        assert sorted(workers_of(torch, given, 2)) == sorted(
            key
            for worker in range(2)
            for key in taken(mixed(rank=rank, world_size=2, worker=worker, num_workers=2))[0]
        )
    assert sorted(parts[0] + parts[1]) == sorted(taken(mixed())[0])
    assert Counter(key[0] for key in parts[0]) == {"a": 20, "b": 10}


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_share_an_epoch_and_count_epochs(torch, datasets, mixed, method):
    stream = datasets.Stream(mixed(), transform=name)
    loader = workers_of(torch, stream, 2, method)
    parts = [taken(mixed(worker=worker, num_workers=2), 3) for worker in range(2)]
    wanted = [in_turn(list(epoch)) for epoch in zip(*parts)]
    assert list(loader) == wanted[0]
    if method == "fork":
        assert list(loader) == wanted[1]
    stream.set_epoch(2)
    assert list(loader) == wanted[2]


def test_batches(torch, datasets, mixed):
    wanted = taken(mixed())[0]
    stream = datasets.Stream(mixed(), transform=names, batch=8, last="drop")
    batches = list(stream)
    assert list(itertools.chain(*batches)) == wanted[:56]
    assert sorted(map(len, workers_of(torch, stream, 2))) == [8] * 6
    loader = datasets.loader(mixed({"decode": "cls:int"}), batch=8, keys=True)
    items = list(loader)
    assert [key for item in items for key in item["__key__"]] == [key[1:] for key in wanted]
    assert torch.cat([item["cls"] for item in items]).tolist() == [
        int(key[1:]) % 10 for key in wanted
    ]


def test_a_mix_for_ever_continues(datasets, mixed):
    endless = {"until": "forever"}
    wanted = [name(sample) for sample in itertools.islice(mixed(endless), 200)]
    stream = datasets.Stream(mixed(endless), transform=name)
    seen = list(itertools.islice(stream, 90))
    seen += itertools.islice(stream, 50)
    state = json.loads(json.dumps(stream.state_dict()))
    other = datasets.Stream(mixed(endless), transform=name)
    other.load_state_dict(state)
    assert seen + list(itertools.islice(other, 60)) == wanted
    assert seen + list(itertools.islice(stream, 60)) == wanted


def stateful(datasets, mix: shardfeed.Mix, workers: int, batch: int):
    torchdata = pytest.importorskip("torchdata.stateful_dataloader")
    made = {"transform": names, "batch": batch} if batch else {"transform": name}
    return torchdata.StatefulDataLoader(
        datasets.Stream(mix, **made),
        batch_size=None,
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
        timeout=120 if workers else 0,
    )


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batch", [0, 4])
def test_resumed_anywhere(datasets, mixed, workers, batch):
    whole = stateful(datasets, mixed(), workers, batch)
    epochs = [list(whole) for _ in range(3)]
    assert len(set(map(str, epochs))) == 3
    last = len(epochs[1])
    for stop in {0, 1, last // 2, last - 1, last}:
        first = stateful(datasets, mixed(), workers, batch)
        assert list(first) == epochs[0]
        iterator = iter(first)
        before = list(itertools.islice(iterator, stop))
        state = pickle.loads(pickle.dumps(first.state_dict()))
        assert list(iterator) == epochs[1][stop:]
        second = stateful(datasets, mixed(), workers, batch)
        second.load_state_dict(state)
        assert before + list(second) == epochs[1]
        assert list(second) == epochs[2]


def test_node(datasets, mixed):
    nodes = pytest.importorskip("torchdata.nodes")

    def loader():
        root = datasets.node(datasets.Stream(mixed(), transform=names, batch=7))
        return nodes.Loader(nodes.Prefetcher(root, 2))

    whole = loader()
    epochs = [list(whole) for _ in range(2)]
    for stop in (0, 3, len(epochs[0]) - 1):
        first = loader()
        before = list(itertools.islice(iter(first), stop))
        second = loader()
        second.load_state_dict(first.state_dict())
        assert before + list(second) == epochs[0]
        assert list(second) == epochs[1]


def test_merged_states_go_on_with_other_ranks(datasets, mixed):
    def of_rank(rank: int, size: int):
        return datasets.Stream(mixed(lanes=4), transform=name, rank=rank, world_size=size)

    streams = [of_rank(rank, 2) for rank in range(2)]
    seen = [key for stream in streams for key in itertools.islice(stream, 12)]
    state = shardfeed.merge_states([stream.state_dict() for stream in streams])
    alone = of_rank(0, 1)
    alone.load_state_dict(state)
    assert sorted(seen + list(alone)) == sorted(taken(mixed())[0])


def test_a_plain_stream_is_a_recipe_too(datasets, shards):
    url = shards(3, 4)
    plain = shardfeed.Stream(url, shuffle=5, seed=4)
    next(iter(plain))  # which continues by itself
    wanted = [name(sample) for sample in shardfeed.Stream(url, shuffle=5, seed=4)]
    stream = datasets.Stream(plain, transform=name)
    assert list(stream) == wanted
    plain.close()
    assert len(list(stream)) == 12


def test_what_is_refused(datasets, mixed, shards):
    url = shards(2, 3)
    parts = [
        shardfeed.Stream(url, rank=0, world_size=1),
        shardfeed.Stream(url, rank=1, world_size=2),
    ]
    disagreeing = shardfeed.mix(parts)
    wrong = r"stream 0 of the mix has rank=0, world_size=1, and stream 1 rank=1, world_size=2; help"
    for make in (datasets.Stream, lambda mix: datasets.loader(mix, batch=3)):
        with pytest.raises(shardfeed.UsageError, match=wrong):
            make(disagreeing)
    nested = shardfeed.mix([shardfeed.mix([parts[0]]), shardfeed.Stream(url)])
    with pytest.raises(shardfeed.UsageError, match="stream 1 none of those"):
        datasets.Stream(nested)
    with pytest.raises(TypeError, match='"shuffle" is an option of stream only'):
        datasets.Stream(mixed(), shuffle=3)
    with pytest.raises(TypeError, match=r"length of a mix.*epoch_samples"):
        len(datasets.Stream(mixed()))
    with pytest.raises(TypeError, match=r"not Stream of shardfeed.torch; help: .*give the mix to"):
        shardfeed.mix([datasets.Stream(url)])
    loaded = mixed()
    loaded.load_state_dict(loaded.state_dict())
    with pytest.raises(shardfeed.UsageError, match="loaded state; help: load the state into"):
        datasets.Stream(loaded)
    closed = mixed()
    closed.close()
    with pytest.raises(shardfeed.UsageError, match="closed"):
        datasets.Stream(closed)
