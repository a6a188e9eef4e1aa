"""Rows of tokens that are filled best-fit."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import different_arrays, npy, rows_tar, saved_states

SHARDS, WIDTH, ROWS, WINDOW = 4, 16, 3, 20

Row = list[list[int]]


def documents_of(shard: int) -> list[np.ndarray]:
    """Documents whose tokens are all different; some are empty, and some longer than rows."""
    draw = random.Random(shard)
    sizes = [draw.choice([0, 1, 5, WIDTH, 35, draw.randint(1, 16)]) for _ in range(30)]
    return different_arrays(shard, sizes)


@pytest.fixture
def urls(tmp_path: Path) -> list[str]:
    return [
        rows_tar(
            tmp_path / f"{shard}.tar",
            [
                {"npy": npy(tokens), "mask.npy": npy((tokens % 2).astype("u1"))}
                for tokens in documents_of(shard)
            ],
        )
        for shard in range(SHARDS)
    ]


def batches(urls: Any, **options: Any) -> shardfeed.Stream:
    given = {"batch": ROWS, "pack": WIDTH, "pack_window": WINDOW, "decode": "npy", **options}
    return shardfeed.Stream(urls, **given)


def rows_of(batch: shardfeed.Batch) -> list[Row]:
    """The documents of each row."""
    rows = []
    for tokens, documents in zip(batch["npy"].tolist(), batch["__document__"].tolist()):
        row: Row = [[] for _ in range(max(documents) + 1)]
        for token, document in zip(tokens, documents):
            if document >= 0:
                row[document].append(token)
        rows.append(row)
    return rows


def documents_in_order(urls: list[str], **options: Any) -> Row:
    return [sample.array("npy").tolist() for sample in shardfeed.Stream(urls, **options)]


def fitted(documents: Row) -> list[Row]:
    """The rows of one window."""
    rows: list[tuple[int, Row]] = []
    rests = []
    for number, tokens in enumerate(documents):
        whole = len(tokens) // WIDTH * WIDTH
        rows += [(number, [tokens[at : at + WIDTH]]) for at in range(0, whole, WIDTH)]
        if tokens[whole:]:
            rests.append((number, tokens[whole:]))
    bins: list[list[tuple[int, list[int]]]] = []
    rests.sort(key=lambda rest: -len(rest[1]))
    for rest in rests:
        room = [WIDTH - sum(len(tokens) for _, tokens in one) for one in bins]
        fits = [left for left in room if left >= len(rest[1])]
        if fits:
            bins[room.index(min(fits))].append(rest)
        else:
            bins.append([rest])
    for one in bins:
        one.sort()
        rows.append((one[-1][0], [tokens for _, tokens in one]))
    rows.sort(key=lambda row: row[0])
    return [row for _, row in rows]


def expected(documents: Row) -> list[Row]:
    return [
        row
        for at in range(0, len(documents), WINDOW)
        for row in fitted(documents[at : at + WINDOW])
    ]


def rows_in(found: list[shardfeed.Batch]) -> list[Row]:
    return [row for batch in found for row in rows_of(batch)]


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_filled_best_fit(urls, threads):
    found = list(batches(urls, decode="npy,mask.npy", decode_threads=threads).batches())
    assert rows_in(found) == expected(documents_in_order(urls))
    assert [len(batch) for batch in found[:-1]] == [ROWS] * (len(found) - 1)
    assert 1 <= len(found[-1]) <= ROWS
    for batch in found:
        there = batch["__document__"] >= 0
        assert batch["npy"].shape == batch["mask.npy"].shape == (len(batch), WIDTH)
        assert (batch["mask.npy"][there] == batch["npy"][there] % 2).all()
        assert not batch["npy"][~there].any()
        assert not batch["mask.npy"][~there].any()
        assert (batch["__position__"][~there] == -1).all()
        assert (np.sort(there, axis=1)[:, ::-1] == there).all()  # zeros are at the ends of rows


def test_each_token_says_its_position(urls):
    begins = {
        int(tokens[0]): f"{number:06d}"
        for shard in range(SHARDS)
        for number, tokens in enumerate(documents_of(shard))
        if tokens.size
    }
    for batch in batches(urls).batches():
        there = batch["__document__"] >= 0
        first = batch["npy"] - batch["__position__"]
        assert set(first[there].tolist()) <= set(begins)
        assert batch.sample_keys == [begins[int(row[0])] for row in first]


def test_fewer_rows_than_as_many_documents(urls):
    """Only what is longer than a row is cut."""
    rows = rows_in(list(batches(urls, pack_window=1000).batches()))
    tokens = sum(len(document) for row in rows for document in row)
    assert len(rows) <= -(-tokens // WIDTH) + 2
    parts = [document for row in rows for document in row]
    longer = sum(1 for one in documents_in_order(urls) if len(one) > WIDTH)
    assert len(parts) <= sum(1 for one in documents_in_order(urls) if one) + 2 * longer


def test_last_rows_and_epochs(urls):
    rows = rows_in(list(batches(urls).batches()))
    dropped = list(batches(urls, last="drop").batches())
    assert all(len(batch) == ROWS for batch in dropped)
    assert rows_in(dropped) == rows[: len(rows) // ROWS * ROWS]
    twice = rows_in(list(batches(urls, epochs=2).batches()))
    assert twice == expected(documents_in_order(urls) * 2)


@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pack_window": 7, "batch": 2},
        {"pack_window": 50, "shuffle": 9, "seed": 2},
        {"shuffle": 7, "seed": 5, "lanes": 2, "epochs": 2},
        {"lanes": 4, "rank": 1, "world_size": 2, "last": "drop"},
    ],
)
def test_resume(urls, used, options):
    whole = [rows_of(batch) for batch in batches(urls, **options).batches()]
    stops = range(len(whole))
    for stop, state in saved_states(lambda: batches(urls, **options), stops, used):
        resumed = batches(urls, **options)
        resumed.load_state_dict(state)
        resumed.batches()
        state = resumed.state_dict()  # of the open stream, before its first batch
        resumed.close()
        again = batches(urls, decode_threads=2, **options)
        again.load_state_dict(state)
        found = [rows_of(batch) for batch in islice(again.batches(), 2)]
        last = batches(urls, **options)
        last.load_state_dict(again.state_dict())
        if stop + 2 < len(whole):
            found += [rows_of(batch) for batch in last.batches()]
        assert found == whole[stop:]


@pytest.mark.parametrize(("before", "after"), [(2, 1), (4, 2), (1, 4), (2, 4)])
def test_resume_with_another_number_of_ranks(urls, before, after):
    """Each rank stopped in a window, in the middle of documents."""
    rows, states = [], []
    options: dict[str, Any] = {"lanes": 4, "shuffle": 3}
    for rank in range(before):
        stream = batches(urls, rank=rank, world_size=before, **options)
        rows += rows_in(list(islice(stream.batches(), 2 + rank)))
        states.append(stream.state_dict())
    state = shardfeed.merge_states(states)
    for rank in range(after):
        stream = batches(urls, rank=rank, world_size=after, **options)
        stream.load_state_dict(state)
        rows += rows_in(list(islice(stream.batches(), 1)))
        again = batches(urls, rank=rank, world_size=after, **options)
        again.load_state_dict(stream.state_dict())
        rows += rows_in(list(again.batches()))
    tokens = [token for row in rows for document in row for token in document]
    wanted = [token for document in documents_in_order(urls) for token in document]
    assert sorted(tokens) == sorted(wanted)


def test_mix(urls):
    def mixed() -> shardfeed.Stream:
        parts = [shardfeed.Stream(urls[:2], shuffle=4), shardfeed.Stream(urls[2:], lanes=2)]
        return shardfeed.mix(
            parts, weights=[3, 1], seed=1, batch=ROWS, pack=WIDTH, pack_window=WINDOW, decode="npy"
        )

    whole = [rows_of(batch) for batch in mixed().batches()]
    for stop in (0, 1, 4, 9, 20):
        stream = mixed()
        list(islice(stream.batches(), stop))
        resumed = mixed()
        resumed.load_state_dict(stream.state_dict())
        assert [rows_of(batch) for batch in resumed.batches()] == whole[stop:]


def test_from_and_to_joined_rows(urls):
    """A state of rows that are joined in order resumes in windows, but not the other way."""
    wanted = sorted(token for document in documents_in_order(urls) for token in document)
    stream = batches(urls, pack_window=0)
    first = list(islice(stream.batches(), 4))
    other = batches(urls, pack=24)
    other.load_state_dict(stream.state_dict())
    rows = rows_in(first + list(other.batches()))
    assert sorted(token for row in rows for document in row for token in document) == wanted
    stream = batches(urls)
    list(islice(stream.batches(), 4))
    joined = batches(urls, pack_window=0)
    joined.load_state_dict(stream.state_dict())
    with pytest.raises(shardfeed.UsageError, match="in buckets or a window; help: open the stream"):
        next(joined.batches())


def test_bad_documents_are_skipped_whole(tmp_path):
    good = [np.arange(n * 100, n * 100 + 10, dtype="i4") for n in range(8)]
    rows = [{"npy": npy(tokens)} for tokens in good]
    rows[1]["npy"] = b"no array"
    rows[4]["npy"] = npy(good[4].reshape(2, 5))
    url = rows_tar(tmp_path / "t.tar", rows)
    options: dict[str, Any] = {"batch": 1, "pack_window": 3, "on_error": "skip_sample"}
    stream = batches(url, **options)
    whole = [rows_of(batch) for batch in stream.batches()]
    # Of the windows 0 1 2, 3 4 5 and 6 7; no two of 10 go into one row of 16.
    assert whole == [[[good[n].tolist()]] for n in (0, 2, 3, 5, 6, 7)]
    assert stream.stats()["skipped_samples"] == 2
    for stop in range(len(whole)):
        stream = batches(url, **options)
        list(islice(stream.batches(), stop))
        resumed = batches(url, **options)
        resumed.load_state_dict(stream.state_dict())
        assert [rows_of(batch) for batch in resumed.batches()] == whole[stop:]
        skipped = stream.stats()["skipped_samples"] + resumed.stats()["skipped_samples"]
        assert skipped == 2
    stream = batches(url, pack_window=3)
    with pytest.raises(shardfeed.FormatError, match=r't\.tar: member "000001\.npy"'):
        list(stream.batches())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pack": 0}, "pack_window says how its rows are filled; help: set pack"),
        ({"missing": "empty"}, "help: set missing=skip"),
        ({"epoch_samples": 10}, "remove even and epoch_samples"),
        ({"rank": 0, "world_size": 3, "lanes": 4}, "multiple of the consumers"),
    ],
)
def test_what_does_not_go_with_it(urls, options, message):
    with pytest.raises(shardfeed.UsageError, match=message.replace("filled;", "filled.*;")):
        list(batches(urls, **options).batches())


def test_window_above_memory(tmp_path):
    url = rows_tar(tmp_path / "t.tar", [{"npy": npy(np.zeros(5000))}] * 100)
    with pytest.raises(shardfeed.LimitError, match="memory=1048576; help: raise memory"):
        list(batches(url, memory="1MiB", pack=10, pack_window=100).batches())


def test_nothing_to_pack(tmp_path):
    url = rows_tar(tmp_path / "t.tar", [{"npy": npy(np.zeros(0, "i4"))}] * 50)
    assert list(batches(url).batches()) == []
