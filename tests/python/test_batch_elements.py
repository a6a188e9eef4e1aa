"""Batches by a budget of elements."""

from __future__ import annotations

import io
import random
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import different_arrays, npy, rows_tar, saved_states
from PIL import Image

SHARDS, BUDGET = 3, 60


def rows_of(shard: int) -> list[np.ndarray]:
    """Arrays whose numbers are all different; some are empty, some as large as a batch."""
    draw = random.Random(shard)
    sizes = [draw.choice([0, 1, 7, BUDGET, draw.randint(1, 30)]) for _ in range(40)]
    return different_arrays(shard, sizes)


@pytest.fixture
def urls(tmp_path: Path) -> list[str]:
    return [
        rows_tar(
            tmp_path / f"{shard}.tar",
            [{"npy": npy(row), "b.npy": npy(row[::2]), "txt": b"?"} for row in rows_of(shard)],
        )
        for shard in range(SHARDS)
    ]


def batches(urls: Any, **options: Any) -> shardfeed.Stream:
    given = {"batch": 1000, "batch_elements": BUDGET, "decode": "npy", "ragged": "pad", **options}
    return shardfeed.Stream(urls, **given)


def rows_in(batch: shardfeed.Batch) -> list[list[int]]:
    value = batch["npy"]
    if isinstance(value, shardfeed.Ragged):
        return [row.tolist() for row in value]
    sizes = batch.column("npy").shapes
    return [row[: int(size[0])].tolist() for row, size in zip(value, sizes)]


def rows_in_order(urls: list[str], **options: Any) -> list[list[int]]:
    return [sample.array("npy").tolist() for sample in shardfeed.Stream(urls, **options)]


def expected(rows: list[list[int]], most: int = 1000, *, pads: bool = True) -> list[Any]:
    """As many rows in each batch as there is room for."""
    found: list[Any] = []
    for row in rows:
        with_it = [*found[-1], row] if found else []
        sizes = [len(one) for one in with_it]
        elements = max(sizes, default=0) * len(sizes) if pads else sum(sizes)
        if found and elements <= BUDGET and len(sizes) <= most:
            found[-1] = with_it
        else:
            found.append([row])
    return found


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("ragged", ["pad", "offsets", "error"])
def test_as_many_rows_as_there_is_room_for(urls, threads, ragged):
    found = list(batches(urls, decode_threads=threads, ragged=ragged).batches())
    pads = ragged != "offsets"  # ragged=error, the default, is then pad
    assert [rows_in(batch) for batch in found] == expected(rows_in_order(urls), pads=pads)
    for batch in found:
        column = batch["npy"]
        assert (column.size if pads else column.values.size) <= BUDGET


def test_rows_are_bounded_as_well(urls):
    found = [rows_in(batch) for batch in batches(urls, batch=3).batches()]
    assert found == expected(rows_in_order(urls), 3)


def test_the_column_with_most_elements_counts(urls):
    options: dict[str, Any] = {"decode": "b.npy, npy, txt"}
    found = [rows_in(batch) for batch in batches(urls, **options).batches()]
    assert found == expected(rows_in_order(urls))


def test_elements_of_all_dimensions_count(tmp_path):
    shapes = [(2, 3), (3, 2), (1, 5), (4, 4), (1, 1)]
    url = rows_tar(tmp_path / "t.tar", [{"npy": npy(np.ones(shape))} for shape in shapes])
    # The first two are 2 x 3 x 3, and with (1, 5) they would be 3 x 3 x 5.
    found = [batch["npy"].shape for batch in batches(url, batch_elements=40).batches()]
    assert found == [(2, 3, 3), (2, 4, 5), (1, 1, 1)]


def test_order_is_that_of_the_samples(urls):
    options: dict[str, Any] = {"shuffle": 20, "shuffle_shards": True, "seed": 3, "lanes": 2}
    found = [rows_in(batch) for batch in batches(urls, **options).batches()]
    assert found == expected(rows_in_order(urls, **options))
    found = [rows_in(batch) for batch in batches(urls, epochs=2).batches()]
    assert found == expected(rows_in_order(urls) * 2)


def test_last_batch(urls):
    kept, dropped = (
        [rows_in(batch) for batch in batches(urls, last=last).batches()]
        for last in ("keep", "drop")
    )
    # The last one has room for more.
    assert dropped == kept[:-1]


@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": 7, "seed": 5, "lanes": 2, "epochs": 2},
        {"lanes": 3, "rank": 1, "world_size": 2},
        {"missing": "skip", "decode": "npy, txt"},
    ],
)
def test_resume(urls, used, options):
    whole = [rows_in(batch) for batch in batches(urls, **options).batches()]
    stops = range(0, len(whole), 4)
    for stop, state in saved_states(lambda: batches(urls, **options), stops, used):
        resumed = batches(urls, decode_threads=2, **options)
        resumed.load_state_dict(state)
        assert [rows_in(batch) for batch in resumed.batches()] == whole[stop:]


def test_resume_with_another_number_of_ranks(urls):
    rows, states = [], []
    for rank in range(2):
        stream = batches(urls, lanes=4, rank=rank, world_size=2)
        for batch in islice(stream.batches(), 3 + rank):
            rows += rows_in(batch)
        states.append(stream.state_dict())
    resumed = batches(urls, lanes=4)
    resumed.load_state_dict(shardfeed.merge_states(states))
    for batch in resumed.batches():
        rows += rows_in(batch)
    assert sorted(rows) == sorted(rows_in_order(urls))


def test_a_row_that_is_too_large(tmp_path):
    sizes = [3, 61, 4]
    url = rows_tar(tmp_path / "t.tar", [{"npy": npy(np.arange(size))} for size in sizes])
    with pytest.raises(
        shardfeed.LimitError,
        match=r't\.tar: member "000001\.npy".*int64 \(61,\) of 61 elements.*batch_elements=60.*'
        "help: raise batch_elements, or leave such samples out with on_error=skip_sample",
    ):
        list(batches(url).batches())
    stream = batches(url, on_error="skip_sample")
    assert [len(batch) for batch in stream.batches()] == [2]
    assert stream.stats()["skipped_samples"] == 1


def png(damaged: bool) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.arange(192, dtype="u1").reshape(8, 8, 3)).save(file, "png")
    data = bytearray(file.getvalue())
    if damaged:
        data[-20] ^= 0xFF
    return bytes(data)


def test_rows_that_fail_leave_their_batch_shorter(tmp_path):
    url = rows_tar(
        tmp_path / "t.tar",
        [{"npy": npy(np.arange(20)), "png": png(n == 1)} for n in range(9)],
    )
    options: dict[str, Any] = {"decode": "npy,png", "on_error": "skip_sample"}
    # It is not known to be bad before it is decoded, which is after the batch was cut.
    found = [batch.sample_keys for batch in batches(url, **options).batches()]
    assert found == [[f"{n:06d}" for n in part] for part in ((0, 2), (3, 4, 5), (6, 7, 8))]
    stream = batches(url, **options)
    first = next(stream.batches())
    assert first["npy"].tolist() == [list(range(20))] * 2
    resumed = batches(url, **options)
    resumed.load_state_dict(stream.state_dict())
    assert [batch.sample_keys for batch in resumed.batches()] == found[1:]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decode": "txt"}, "no column of decode has arrays of any length; help: name fields"),
        ({"pack": 4}, "rows of pack have one length"),
        ({"epoch_samples": 10}, "remove even and epoch_samples"),
    ],
)
def test_what_does_not_go_with_it(urls, options, message):
    with pytest.raises(shardfeed.UsageError, match=message):
        list(batches(urls, **options).batches())
