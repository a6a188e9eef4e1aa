"""peek(): the batch that comes next, which is not given by that."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("numpy")

import shardfeed
import transforms as given
from batches import npy, ramps, rows_tar

HOWS: list[dict[str, Any]] = [
    {},
    {"transform": given.same},
    {"transform": given.same, "transform_threads": 2},
]
everyhow = pytest.mark.parametrize("how", HOWS, ids=["plain", "transform", "threads"])


@pytest.fixture
def url(tmp_path) -> str:
    return "::".join(ramps(tmp_path / f"{n}.tar", 10 + n) for n in range(4))


def classes(batches: Any) -> list[list[int]]:
    return [batch["cls"].tolist() for batch in batches]


def peeking(iterator: Any) -> list[list[int]]:
    """All batches, each looked at twice before it is taken."""
    found = []
    while (batch := iterator.peek()) is not None:
        assert iterator.peek() is batch
        assert next(iterator) is batch
        found.append(batch["cls"].tolist())
    return found


@everyhow
@pytest.mark.parametrize(
    "options", [{}, {"shuffle": 9, "lanes": 2}, {"epoch_samples": 24}, {"epochs": 2}], ids=str
)
def test_every_batch_once_and_the_end_when_next_says_it(url, how, options):
    stream = shardfeed.Stream(url, batch=5, seed=3, **options)
    plain = shardfeed.Stream(url, batch=5, seed=3, **options)
    for _ in range(3):
        iterator = stream.batches(**how)
        epoch = stream.epoch
        assert peeking(iterator) == classes(plain.batches())
        assert stream.epoch == epoch
        assert iterator.peek() is None
        assert next(iterator, None) is None
        assert stream.epoch > epoch
        assert iterator.peek() is None


@everyhow
@pytest.mark.parametrize(
    "options",
    [
        {"shuffle": 9, "lanes": 2},
        {"epoch_samples": 30},
        {"bucket": "16"},
        {"on_error": "skip_sample"},
    ],
    ids=str,
)
def test_states_are_those_before_the_batch_that_was_looked_at(url, how, options):
    made: dict[str, Any] = {"batch": 5, "seed": 3, "decode": "x.npy, cls", **options}
    whole = classes(shardfeed.Stream(url, **made).batches())
    stream = shardfeed.Stream(url, **made)
    iterator = stream.batches(**how)

    def rest(unread: int) -> list[list[int]]:
        resumed = shardfeed.Stream(url, **made)
        resumed.load_state_dict(json.loads(json.dumps(stream.state_dict(unread=unread))))
        return classes(resumed.batches())

    for given_out in range(len(whole) + 1):
        more = iterator.peek() is not None
        assert more == (given_out < len(whole))
        for unread in range(min(given_out, 2) + 1):
            assert rest(unread) == whole[given_out - unread :], (given_out, unread)
        assert (next(iterator, None) is not None) == more
    assert stream.state_dict()["epoch"] == 1


@everyhow
def test_an_epoch_that_is_left_loses_no_batch_where_the_next_one_continues(url, how):
    def epochs(peeks: bool) -> list[list[list[int]]]:
        found = []
        with shardfeed.Stream(url, epoch_samples=24, batch=4, shuffle=10, seed=2) as stream:
            for stop in (2, 6, 0, 1):
                iterator = stream.batches(**how)
                found.append(classes(next(iterator) for _ in range(stop)))
                if peeks:
                    iterator.peek()
        return found

    assert epochs(True) == epochs(False)


def test_an_error_comes_with_peek_and_next(tmp_path):
    rows = [{"x.npy": npy(range(3)), "cls": b"%d" % n} for n in range(6)]
    rows[4]["cls"] = b"?"
    stream = shardfeed.Stream(rows_tar(tmp_path / "bad.tar", rows), batch=2)
    iterator = stream.batches()
    assert classes(next(iterator) for _ in range(2)) == [[0, 1], [2, 3]]
    for call in (iterator.peek, iterator.__next__, iterator.peek):
        with pytest.raises(shardfeed.FormatError, match="whole number"):
            call()


def test_after_the_stream_was_closed(url):
    stream = shardfeed.Stream(url, batch=5)
    iterator = stream.batches()
    assert iterator.peek() is not None
    stream.close()
    assert iterator.peek() is None
    with pytest.raises(shardfeed.UsageError, match="closed"):
        next(iterator)
