"""Mixes of streams from Python."""

from __future__ import annotations

import json
import logging
import multiprocessing
import pickle
import random
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
import shardfeed

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def streams(shards: Callable[..., str]) -> Callable[..., list[shardfeed.Stream]]:
    """Three streams: of 80, 30 and 5 samples."""
    urls = [shards(4, 20, name="a"), shards(2, 15, name="b"), shards(1, 5, name="c")]

    def make(**options: Any) -> list[shardfeed.Stream]:
        return [shardfeed.Stream(url, **options) for url in urls]

    return make


def names(samples: Any, most: int | None = None) -> list[str]:
    """Which data set each sample is of, and its key."""
    return [sample.shard.rpartition("/")[2][0] + sample.key for sample in islice(samples, most)]


def of(name: str, keys: list[str]) -> list[str]:
    return [key for key in keys if key[0] == name]


def test_each_stream_keeps_its_order(streams) -> None:
    parts = streams(shuffle=10, seed=3)
    with shardfeed.mix(parts, weights=[4, 2, 1]) as mixed:
        keys = names(mixed)
    assert len(keys) == 115
    for name, part in zip("abc", parts):
        assert of(name, keys) == names(part)
    assert names(shardfeed.mix(parts, weights=[4, 2, 1], seed=1)) != keys
    assert isinstance(mixed, shardfeed.Stream)


def test_proportions(streams) -> None:
    mixed = shardfeed.mix(streams(epochs=0), weights=[3, 1, 4])
    counts = Counter(key[0] for key in names(mixed, 20000))
    for name, share in zip("abc", (3 / 8, 1 / 8, 4 / 8)):
        assert abs(counts[name] - 20000 * share) < 5 * (20000 * share * (1 - share)) ** 0.5


def test_until(streams) -> None:
    first = names(shardfeed.mix(streams(), until="first"))
    assert len(of("c", first)) == 5
    assert len(first) < 60
    assert names(shardfeed.mix(streams()))[: len(first)] == first
    forever = shardfeed.mix(streams(), until="forever")
    keys = names(forever, 1000)
    assert len(of("c", keys)) > 300
    # The next iterator continues.
    assert keys + names(forever, 100) == names(shardfeed.mix(streams(), until="forever"), 1100)


def test_every_iterator_is_the_next_epoch(streams) -> None:
    options = {"shuffle": 10, "epoch": 4}
    mixed = shardfeed.mix(streams(**options))
    first, second = names(mixed), names(mixed)
    assert first != second
    options["epoch"] = 5
    assert second == names(shardfeed.mix(streams(**options)))


def test_batches(streams) -> None:
    np = pytest.importorskip("numpy")
    mixed = shardfeed.mix(streams(), batch=16, decode="cls:int", last="drop")
    batches = list(mixed.batches())
    assert [len(batch) for batch in batches] == [16] * 7
    keys = [key for batch in batches for key in batch["__key__"]]
    assert keys == [name[1:] for name in names(shardfeed.mix(streams()))][:112]
    assert np.concatenate([batch["cls"] for batch in batches]).tolist() == [
        int(key) % 10 for key in keys
    ]
    assert [len(batch) for batch in mixed.batches(100, last="keep")] == [100, 15]


def nested(streams: Any, until: str = "all") -> shardfeed.Mix:
    a, b, c = streams(shuffle=7)
    return shardfeed.mix([a, shardfeed.mix([b, c], weights=[2, 1], seed=5)], until=until)


@pytest.mark.parametrize("until", ["first", "all", "forever"])
def test_resumes_with_the_next_sample_wherever_it_stopped(streams, until: str) -> None:
    whole = names(nested(streams, until), 400)
    for stop in random.Random(1).sample(range(len(whole)), 12):
        mixed = nested(streams, until)
        iterator = iter(mixed)
        keys = names(next(iterator) for _ in range(stop))
        state = json.loads(json.dumps(mixed.state_dict()))
        other = nested(streams, until)
        other.load_state_dict(state)
        assert keys + names(other, 400 - stop) == whole
        assert keys + names(iterator, 400 - stop) == whole  # the one that was saved


def test_resumes_with_the_next_batch(streams) -> None:
    def keys(batches: Any, most: int) -> list[Any]:
        return [list(batch["__key__"]) for batch in islice(batches, most)]

    whole = keys(nested(streams).batches(9), 100)
    mixed = nested(streams)
    first = keys(mixed.batches(9), 5)
    other = nested(streams)
    other.load_state_dict(mixed.state_dict())
    assert first + keys(other.batches(9), 100) == whole


def test_names_what_changed(streams) -> None:
    mixed = shardfeed.mix(streams(), weights=[1, 2, 3])
    next(iter(mixed))
    other = shardfeed.mix(streams(), weights=[1, 2, 4])
    other.load_state_dict(mixed.state_dict())
    with pytest.raises(shardfeed.UsageError, match=r"weights=1:2:3.*weights=1:2:4.*help: "):
        iter(other)


def test_pickled_and_forked(streams) -> None:
    mixed = nested(streams)
    keys = names(mixed)
    assert names(pickle.loads(pickle.dumps(nested(streams)))) == keys
    fresh = nested(streams)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(names, (fresh,)) == keys


def test_the_streams_stay_usable(streams) -> None:
    parts = streams()
    mixed = shardfeed.mix(parts)
    iterators = [iter(part) for part in parts]
    for iterator in iterators:
        next(iterator)
    for part in parts:
        part.close()
    assert len(names(mixed)) == 115


def test_what_is_refused(streams) -> None:
    parts = streams()
    with pytest.raises(shardfeed.UsageError, match="2 weights for 3 streams"):
        shardfeed.mix(parts, weights=[1, 2])
    with pytest.raises(shardfeed.UsageError, match="weight 1 of the mix"):
        shardfeed.mix(parts, weights=[1, 0, 1])
    with pytest.raises(shardfeed.UsageError, match="no streams"):
        shardfeed.mix([])
    with pytest.raises(shardfeed.UsageError, match=r"part 0 of the mix.*batch"):
        shardfeed.mix(streams(batch=3))
    with pytest.raises(TypeError, match="a Stream expected, not str"):
        shardfeed.mix(["a.tar"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match='"shuffle" is an option of stream only'):
        shardfeed.mix(parts, shuffle=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match='"until" is an option of mix only'):
        streams(until="first")
    with pytest.raises(shardfeed.UsageError, match="secure"):
        shardfeed.mix(streams(secure=True)).batches(3, hooks={"txt": "pickle"})
    parts[1].load_state_dict(parts[1].state_dict())
    with pytest.raises(shardfeed.UsageError, match="stream 1 of the mix has a loaded state"):
        shardfeed.mix(parts)
    parts[0].close()
    with pytest.raises(shardfeed.UsageError, match="stream 0 of the mix is closed"):
        shardfeed.mix(parts)


def test_logs_of_the_streams(streams, tmp_path) -> None:
    damaged = tmp_path / "b-000.tar"
    damaged.write_bytes(damaged.read_bytes()[:6000])
    messages: list[tuple[int, str]] = []
    parts = streams(on_error="skip_shard")
    parts[1] = shardfeed.Stream(
        parts[1].urls,
        on_error="skip_shard",
        log=lambda level, message: messages.append((level, message)),
    )
    mixed = shardfeed.mix(parts)
    assert len(names(mixed)) < 115
    assert len(messages) == 1
    assert messages[0][0] == logging.WARNING
    assert "b-000.tar" in messages[0][1]
    assert mixed.stats()["skipped_shards"] == 1


def test_closed_and_described(streams) -> None:
    mixed = shardfeed.mix(streams(), weights=[1, 2, 3], until="first")
    assert len(mixed.urls) == 3
    assert "weights=[1.0, 2.0, 3.0] until=first" in repr(mixed)
    iterator = iter(mixed)
    next(iterator)
    mixed.close()
    with pytest.raises(shardfeed.UsageError, match="closed"):
        names(iterator)
    with pytest.raises(shardfeed.UsageError, match="closed"):
        iter(mixed)
