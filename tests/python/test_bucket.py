"""Batches of samples of about one length."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import different_arrays, npy, rows_tar, saved_states

SHARDS, ROWS, BOUNDS = 4, 4, (8, 16, 40)


def rows_of(shard: int) -> list[np.ndarray]:
    """Arrays whose numbers are all different; few of them are long."""
    draw = random.Random(shard)
    sizes = [draw.choice([0, 3, 8, 9, 16, draw.randint(1, 12), draw.randint(1, 40)])
             for _ in range(50)]  # fmt: skip
    return different_arrays(shard, sizes)


@pytest.fixture
def urls(tmp_path: Path) -> list[str]:
    return [
        rows_tar(
            tmp_path / f"{shard}.tar",
            [{"npy": npy(row), "mask.npy": npy(row % 2 == 0), "txt": b"?"}
             for row in rows_of(shard)],
        )
        for shard in range(SHARDS)
    ]  # fmt: skip


def bucketed(urls: Any, **options: Any) -> shardfeed.Stream:
    given = {"batch": ROWS, "bucket": ",".join(map(str, BOUNDS)), "decode": "npy", **options}
    return shardfeed.Stream(urls, **given)


def keys_of(batches: Sequence[shardfeed.Batch]) -> list[list[str]]:
    return [
        [f"{Path(url).stem}/{key}" for url, key in zip(batch.urls, batch.sample_keys)]
        for batch in batches
    ]


def joined(lists: Iterable[list[Any]]) -> list[Any]:
    return [one for part in lists for one in part]


def samples_in_order(urls: list[str], **options: Any) -> list[tuple[str, int]]:
    return [
        (f"{Path(sample.shard).stem}/{sample.key}", sample.array("npy").size)
        for sample in shardfeed.Stream(urls, **options)
    ]


def expected(
    samples: list[tuple[str, int]], *, most: Sequence[int] = (ROWS,) * 3, wait: int = 16384
) -> tuple[list[list[str]], list[list[str]]]:
    """The batches as they become complete, and those of the end."""
    found: list[list[str]] = []
    waiting: list[list[tuple[int, str]]] = [[] for _ in BOUNDS]
    for number, (key, size) in enumerate(samples):
        bucket = next(n for n, bound in enumerate(BOUNDS) if size <= bound)
        waiting[bucket].append((number, key))
        if len(waiting[bucket]) == most[bucket]:
            found.append([key for _, key in waiting[bucket]])
            waiting[bucket] = []
        for own in waiting:
            if own and number - own[0][0] >= wait:
                found.append([key for _, key in own])
                own.clear()
    return found, [[key for _, key in own] for own in waiting if own]


@pytest.mark.parametrize("threads", [1, 3])
def test_batches_are_of_one_bucket(urls, threads):
    found = list(bucketed(urls, decode="npy,mask.npy", decode_threads=threads).batches())
    whole, rest = expected(samples_in_order(urls))
    assert rest
    assert keys_of(found) == whole + rest
    arrays = {f"{n}/{at:06d}": row for n in range(SHARDS) for at, row in enumerate(rows_of(n))}
    for batch, keys in zip(found, keys_of(found)):
        bound = batch["npy"].shape[1]
        assert bound in BOUNDS
        assert batch["mask.npy"].shape == batch["npy"].shape == (len(keys), bound)
        assert batch["mask.npy"].dtype == bool
        shapes = batch.shapes("npy")
        for row, mask, (size,), key in zip(batch["npy"], batch["mask.npy"], shapes, keys):
            wanted = arrays[key]
            assert size == wanted.size
            assert size <= bound
            assert bound == BOUNDS[0] or size > BOUNDS[BOUNDS.index(bound) - 1]
            assert row[:size].tolist() == wanted.tolist()
            assert mask[:size].tolist() == (wanted % 2 == 0).tolist()
            assert not row[size:].any()
            assert not mask[size:].any()


def test_last_batches(urls):
    whole, _ = expected(samples_in_order(urls))
    assert keys_of(list(bucketed(urls, last="drop").batches())) == whole
    assert keys_of(list(bucketed(urls, epochs=2).batches())) == joined(
        expected(samples_in_order(urls) * 2)
    )


def test_no_sample_waits_for_long(urls):
    samples = samples_in_order(urls)
    whole, rest = expected(samples, wait=10)
    assert any(len(keys) < ROWS for keys in whole)
    assert keys_of(list(bucketed(urls, bucket_wait=10).batches())) == whole + rest
    # They are no last batches.
    assert keys_of(list(bucketed(urls, bucket_wait=10, last="drop").batches())) == whole


def test_longest_array_counts(tmp_path):
    rows = [{"npy": npy(np.ones(2)), "b.npy": npy(np.ones((n, 3), "f4"))} for n in (1, 9, 2, 8)]
    url = rows_tar(tmp_path / "t.tar", rows)
    found = list(bucketed(url, batch=3, decode="npy,b.npy").batches())
    assert keys_of(found) == [["t/000000", "t/000002", "t/000003"], ["t/000001"]]
    assert [batch["b.npy"].shape for batch in found] == [(3, 8, 3), (1, 16, 3)]
    assert [batch["npy"].shape for batch in found] == [(3, 8), (1, 16)]
    assert found[0].shapes("b.npy").tolist() == [[1, 3], [2, 3], [8, 3]]


def test_budget_of_elements(urls):
    found = list(bucketed(urls, batch=10, batch_elements=80).batches())
    # 10 rows of 8, 5 of 16, 2 of 40.
    whole, rest = expected(samples_in_order(urls), most=(10, 5, 2))
    assert keys_of(found) == whole + rest
    assert all(batch["npy"].size <= 80 for batch in found)


def test_order_is_that_of_the_samples(urls):
    options: dict[str, Any] = {"shuffle": 20, "shuffle_shards": True, "seed": 3, "lanes": 2}
    found = keys_of(list(bucketed(urls, **options).batches()))
    assert found == joined(expected(samples_in_order(urls, **options)))


@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bucket_wait": 11},
        {"shuffle": 7, "seed": 5, "lanes": 2, "epochs": 2},
        {"shuffle": 9, "lanes": 3, "bucket_wait": 20, "batch": 7},
        {"lanes": 4, "rank": 1, "world_size": 2, "last": "drop"},
        {"batch": 30, "batch_elements": 80},
    ],
)
def test_resume(urls, used, options):
    whole = keys_of(list(bucketed(urls, **options).batches()))
    stops = range(len(whole) + 1)
    for stop, state in saved_states(lambda: bucketed(urls, **options), stops, used):
        resumed = bucketed(urls, **options)
        resumed.load_state_dict(state)
        if stop < len(whole):
            resumed.batches()
            state = resumed.state_dict()  # of the open stream, before its first batch
        resumed.close()
        again = bucketed(urls, decode_threads=2, **options)
        again.load_state_dict(state)
        if stop == len(whole):
            continue  # what follows is the next epoch
        rest = again.batches()
        found = keys_of(list(islice(rest, 2)))
        # And once more, where samples wait that waited before.
        last = bucketed(urls, **options)
        last.load_state_dict(again.state_dict())
        if stop + 2 < len(whole):
            found += keys_of(list(last.batches()))
        assert found == whole[stop:]


def test_resume_takes_few_samples_again(tmp_path):
    """A sample that waits in a rare bucket is no reason to read an epoch again."""
    sizes = [30, *[5] * 2000]
    url = rows_tar(tmp_path / "t.tar", [{"npy": npy(np.zeros(size, "u1"))} for size in sizes])
    stream = bucketed(url, bucket_wait=100)
    iterator = stream.batches()
    batches = list(islice(iterator, 400))
    assert [len(batch) for batch in batches if batch["npy"].shape[1] == 40] == [1]
    resumed = bucketed(url, bucket_wait=100, log=None)
    resumed.load_state_dict(stream.state_dict())
    rest = list(resumed.batches())
    assert sum(map(len, batches + rest)) == len(sizes)
    assert resumed.stats()["samples"] == sum(map(len, rest))


@pytest.mark.parametrize(("before", "after"), [(2, 1), (4, 2), (1, 4), (2, 4)])
def test_resume_with_another_number_of_ranks(urls, before, after):
    """Each rank stopped while samples waited."""
    keys, states = [], []
    for rank in range(before):
        stream = bucketed(urls, lanes=4, shuffle=5, rank=rank, world_size=before)
        keys += keys_of(list(islice(stream.batches(), 2 + rank)))
        states.append(stream.state_dict())
    state = shardfeed.merge_states(states)
    for rank in range(after):
        stream = bucketed(urls, lanes=4, shuffle=5, rank=rank, world_size=after)
        stream.load_state_dict(state)
        keys += keys_of(list(islice(stream.batches(), 1)))
        again = bucketed(urls, lanes=4, shuffle=5, rank=rank, world_size=after)
        again.load_state_dict(stream.state_dict())
        keys += keys_of(list(again.batches()))
    assert sorted(joined(keys)) == sorted(key for key, _ in samples_in_order(urls))


def test_mix(urls):
    def mixed(**options: Any) -> shardfeed.Stream:
        parts = [shardfeed.Stream(urls[:2], shuffle=4), shardfeed.Stream(urls[2:], lanes=2)]
        return shardfeed.mix(
            parts, weights=[3, 1], seed=1, batch=ROWS, bucket="8,16,40", decode="npy", **options
        )

    whole = keys_of(list(mixed().batches()))
    assert sorted(joined(whole)) == sorted(key for key, _ in samples_in_order(urls))
    for stop in (0, 1, 4, 9, 20):
        stream = mixed()
        list(islice(stream.batches(), stop))
        resumed = mixed()
        resumed.load_state_dict(stream.state_dict())
        assert keys_of(list(resumed.batches())) == whole[stop:]


def test_other_bounds_after_a_resume(urls):
    stream = bucketed(urls)
    first = keys_of(list(islice(stream.batches(), 6)))
    other = bucketed(urls, bucket="20,50", batch=7)
    other.load_state_dict(stream.state_dict())
    keys = joined(first + keys_of(list(other.batches())))
    assert sorted(keys) == sorted(key for key, _ in samples_in_order(urls))
    plain = shardfeed.Stream(urls, batch=3, decode="txt")
    plain.load_state_dict(stream.state_dict())
    with pytest.raises(shardfeed.UsageError, match="saved while samples waited in buckets"):
        list(plain.batches())


def test_longer_than_the_last_bound(tmp_path):
    sizes = [3, 41, 4, 5]
    url = rows_tar(tmp_path / "t.tar", [{"npy": npy(np.arange(size))} for size in sizes])
    with pytest.raises(
        shardfeed.LimitError,
        match=r't\.tar: member "000001\.npy".*int64 \(41,\) is longer than 40, the last bound of '
        "bucket; help: add a bound, or leave such samples out with on_error=skip_sample",
    ):
        list(bucketed(url).batches())
    stream = bucketed(url, on_error="skip_sample")
    assert keys_of(list(stream.batches())) == [["t/000000", "t/000002", "t/000003"]]
    assert stream.stats()["skipped_samples"] == 1
    with pytest.raises(shardfeed.LimitError, match="more than max_skips=0"):
        list(bucketed(url, on_error="skip_sample", max_skips=0).batches())
    # Nothing but such samples.
    stream = bucketed(url, on_error="skip_sample", bucket="2")
    assert list(stream.batches()) == []
    assert stream.stats()["skipped_samples"] == 4


def test_skipped_samples_count_once(tmp_path):
    sizes = [3, 41, 4, 20, 5, 41, 6, 7, 3, 3, 3]
    url = rows_tar(tmp_path / "t.tar", [{"npy": npy(np.arange(size))} for size in sizes])
    whole = keys_of(list(bucketed(url, batch=2, on_error="skip_sample").batches()))
    for stop in range(len(whole)):
        stream = bucketed(url, batch=2, on_error="skip_sample")
        list(islice(stream.batches(), stop))
        resumed = bucketed(url, batch=2, on_error="skip_sample")
        resumed.load_state_dict(stream.state_dict())
        assert keys_of(list(resumed.batches())) == whole[stop:]
        skipped = stream.stats()["skipped_samples"] + resumed.stats()["skipped_samples"]
        assert skipped == 2


def test_a_batch_that_one_row_is_missing_from(tmp_path):
    rows: list[dict[str, bytes]] = [{"npy": npy(np.arange(5)), "cls": b"1"} for _ in range(8)]
    rows[1]["cls"] = b"one"
    url = rows_tar(tmp_path / "t.tar", rows)
    found = list(bucketed(url, decode="npy,cls", on_error="skip_sample").batches())
    assert keys_of(found) == [[f"t/{n:06d}" for n in part] for part in ((0, 2, 3, 4), (5, 6, 7))]
    assert [batch["npy"].shape for batch in found] == [(4, 8), (3, 8)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([np.float32(1)], "a number, which has no length"),
        ([np.ones((2, 3)), np.ones((2, 4))], "differ in their first dimension alone"),
        ([np.ones(3, "i4"), np.ones(3, "i8")], "int64 .3,. in a column that begins with int32"),
    ],
)
def test_arrays_that_have_no_bucket(tmp_path, rows, message):
    url = rows_tar(tmp_path / "t.tar", [{"npy": npy(row)} for row in rows])
    with pytest.raises(shardfeed.FormatError, match=message):
        list(bucketed(url).batches())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bucket": "8,4"}, "bounds ascend"),
        ({"bucket": "8,"}, "a number from 1 to"),
        ({"bucket": "0"}, "a number from 1 to"),
        ({"bucket": "8,x"}, "a number from 1 to"),
        ({"bucket": ",".join(map(str, range(1, 70)))}, "more than 64 buckets"),
        ({"decode": "txt"}, "no column of decode has arrays of any length"),
        ({"pack": 4}, "rows of pack have one length"),
        ({"missing": "empty"}, "help: set missing=skip"),
        ({"ragged": "offsets"}, "leave out ragged=offsets"),
        ({"batch_elements": 39}, "has no room for a row of 40"),
        ({"rank": 0, "world_size": 3, "lanes": 4}, "multiple of the consumers"),
    ],
)
def test_what_does_not_go_with_it(urls, options, message):
    with pytest.raises(shardfeed.UsageError, match=message):
        list(bucketed(urls, **options).batches())


def test_batches_above_memory(tmp_path):
    url = rows_tar(tmp_path / "t.tar", [{"npy": npy(np.zeros(n))} for n in (10, 2000)])
    with pytest.raises(shardfeed.LimitError, match="memory=1048576; help: raise memory"):
        list(bucketed(url, bucket="16,4096", batch=4096, memory="1MiB").batches())


def test_columns_that_grow_are_within_memory_too(tmp_path):
    """Rows of the first round are small, and a text of a later one is not."""
    rows = [
        {"npy": npy(np.zeros(i % 64 + 1, "i4")), "txt": b"x" * (200_000 if i >= 64 else 1)}
        for i in range(320)
    ]
    url = rows_tar(tmp_path / "t.tar", rows)
    bounds = ",".join(str(length) for length in range(1, 65))
    stream = shardfeed.Stream(url, decode="npy, txt", bucket=bounds, batch=30, memory=8 << 20)
    with pytest.raises(shardfeed.LimitError, match="all buckets take more than memory=8388608"):
        list(stream.batches())
    assert stream.stats()["memory_peak"] < 24 << 20
