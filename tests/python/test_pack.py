"""Rows of one length, packed from documents of tokens."""

from __future__ import annotations

import json
import random
import re
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import npy, rows_tar, saved_states

SHARDS, WIDTH, ROWS = 4, 16, 3


def documents_of(shard: int, longest: int = 40) -> list[np.ndarray]:
    """Documents whose tokens are all different; some are empty."""
    lengths = random.Random(shard)
    sizes = [lengths.choice([0, 1, WIDTH, lengths.randint(1, longest)]) for _ in range(30)]
    starts = np.cumsum([0, *sizes]) + 100_000 * shard
    return [np.arange(start, start + size, dtype="i4") for start, size in zip(starts, sizes)]


@pytest.fixture
def urls(tmp_path: Path) -> list[str]:
    """Shards of documents, with a weight beside each token."""
    return [
        rows_tar(
            tmp_path / f"{shard}.tar",
            [
                {"npy": npy(tokens), "mask.npy": npy((tokens % 2).astype("u1")), "txt": b"?"}
                for tokens in documents_of(shard)
            ],
        )
        for shard in range(SHARDS)
    ]


def batches(urls: Any, **options: Any) -> shardfeed.Stream:
    given = {"batch": ROWS, "pack": WIDTH, "decode": "npy", **options}
    return shardfeed.Stream(urls, **given)


def packed(stream: shardfeed.Stream) -> list[shardfeed.Batch]:
    return list(stream.batches())


def tokens_of(found: list[shardfeed.Batch]) -> list[int]:
    """The tokens in their order, without what fills the last row."""
    return [
        token
        for batch in found
        for token in batch["npy"][batch["__document__"] >= 0].ravel().tolist()
    ]


def tokens_in_order(urls: list[str], **options: Any) -> list[int]:
    """Those of the samples of a stream without pack."""
    return [
        token
        for sample in shardfeed.Stream(urls, **options)
        for token in sample.array("npy").tolist()
    ]


@pytest.mark.parametrize("threads", [1, 3])
def test_documents_are_joined_and_cut(urls, threads):
    found = packed(batches(urls, decode="npy,mask.npy", decode_threads=threads))
    assert tokens_of(found) == tokens_in_order(urls)
    assert [batch["npy"].shape for batch in found[:-1]] == [(ROWS, WIDTH)] * (len(found) - 1)
    assert 1 <= len(found[-1]) <= ROWS
    for batch in found:
        there = batch["__document__"] >= 0
        assert (batch["npy"].dtype, batch["mask.npy"].dtype) == (np.int32, np.uint8)
        assert (batch["mask.npy"][there] == batch["npy"][there] % 2).all()
        assert not batch["npy"][~there].any()
        assert not batch["mask.npy"][~there].any()
        assert there.all() or (batch is found[-1] and there[:-1].all())


def test_each_token_says_its_document_and_position(urls):
    begins = [int(tokens[0]) for n in range(SHARDS) for tokens in documents_of(n) if tokens.size]
    keys = {
        int(tokens[0]): f"{number:06d}"
        for n in range(SHARDS)
        for number, tokens in enumerate(documents_of(n))
        if tokens.size
    }
    for batch in packed(batches(urls)):
        rows = zip(
            batch["npy"].tolist(), batch["__document__"].tolist(), batch["__position__"].tolist()
        )
        for row, (tokens, documents, positions) in enumerate(rows):
            document = -1
            for place, token in enumerate(tokens):
                if documents[place] < 0:
                    assert set(documents[place:]) == set(positions[place:]) == {-1}
                    break
                # The document of the token begins with this one.
                first = token - positions[place]
                assert first in begins
                if place == 0 or token == first:
                    document += 1
                assert documents[place] == document
            first = tokens[0] - positions[0]
            assert batch.sample_keys[row] == keys[first]
            assert batch.urls[row].endswith(f"/{first // 100_000}.tar")


def test_last_rows(urls):
    kept, dropped = packed(batches(urls)), packed(batches(urls, last="drop"))
    assert tokens_of(dropped) == tokens_of(kept)[: len(dropped) * ROWS * WIDTH]
    assert len(kept) - len(dropped) == 1
    assert all(len(batch) == ROWS for batch in dropped)


def test_epochs_follow_one_another(urls):
    once = tokens_in_order(urls)
    assert tokens_of(packed(batches(urls, epochs=2))) == once * 2


def test_order_is_that_of_the_samples(urls):
    options: dict[str, Any] = {"shuffle": 20, "shuffle_shards": True, "seed": 3, "lanes": 2}
    assert tokens_of(packed(batches(urls, **options))) == tokens_in_order(urls, **options)


@pytest.mark.parametrize("used", [True, False])
def test_resume_in_the_middle_of_a_document(urls, used):
    options: dict[str, Any] = {"shuffle": 7, "seed": 5, "lanes": 2, "epochs": 2}
    whole = packed(batches(urls, **options))
    stops = range(0, len(whole), 3)
    for stop, state in saved_states(lambda: batches(urls, **options), stops, used):
        resumed = batches(urls, **options)
        resumed.load_state_dict(state)
        state = resumed.state_dict()  # also before its first batch
        again = batches(urls, decode_threads=2, **options)
        again.load_state_dict(state)
        rest = packed(again)
        assert tokens_of(rest) == tokens_of(whole[stop:])
        for found, wanted in zip(rest, whole[stop:]):
            for name in ("npy", "__document__", "__position__", "__key__"):
                assert found[name].tolist() == wanted[name].tolist()


def test_resume_twice(urls):
    """Also while the shuffle buffer is filled again, and where its first document is over."""
    for options in ({"shuffle": 7, "seed": 5, "lanes": 2}, {"shuffle": 40}):
        whole = packed(batches(urls, **options))
        for stop in range(len(whole) - 2):
            stream = batches(urls, **options)
            list(islice(stream.batches(), stop))
            for _ in range(2):
                resumed = batches(urls, **options)
                resumed.load_state_dict(stream.state_dict())
                iterator = resumed.batches()
                assert next(iterator)["npy"].tolist() == whole[stop]["npy"].tolist()
                stream, stop = resumed, stop + 1
            assert tokens_of(list(iterator)) == tokens_of(whole[stop:])


@pytest.mark.parametrize(("before", "after"), [(2, 1), (4, 2), (1, 4), (2, 4)])
def test_resume_with_another_number_of_ranks(urls, before, after):
    """Each rank stopped in the middle of a document of its own."""
    tokens, states = [], []
    for rank in range(before):
        stream = batches(urls, lanes=4, rank=rank, world_size=before)
        tokens += tokens_of(list(islice(stream.batches(), 2 + rank)))
        states.append(stream.state_dict())
    state = shardfeed.merge_states(states)
    for rank in range(after):
        stream = batches(urls, lanes=4, rank=rank, world_size=after)
        stream.load_state_dict(state)
        tokens += tokens_of(list(islice(stream.batches(), 1)))
        # Where others still stand in the middle of documents.
        again = batches(urls, lanes=4, rank=rank, world_size=after)
        again.load_state_dict(stream.state_dict())
        tokens += tokens_of(packed(again))
    assert sorted(tokens) == sorted(tokens_in_order(urls))


def test_other_widths_after_a_resume(urls):
    stream = batches(urls)
    first = list(islice(stream.batches(), 4))
    other = batches(urls, pack=5, batch=2)
    other.load_state_dict(stream.state_dict())
    assert tokens_of(first) + tokens_of(packed(other)) == tokens_in_order(urls)
    samples = shardfeed.Stream(urls)
    samples.load_state_dict(stream.state_dict())
    with pytest.raises(shardfeed.UsageError, match="in the middle of a sample that is packed"):
        next(iter(samples))


def test_mix(urls):
    def mixed(**options: Any) -> shardfeed.Stream:
        parts = [shardfeed.Stream(urls[:2]), shardfeed.Stream(urls[2:], lanes=2)]
        return shardfeed.mix(
            parts, weights=[3, 1], seed=1, batch=ROWS, pack=WIDTH, decode="npy", **options
        )

    whole = packed(mixed())
    assert sorted(tokens_of(whole)) == sorted(tokens_in_order(urls))
    for stop in (1, 4, 9):
        stream = mixed()
        list(islice(stream.batches(), stop))
        resumed = mixed()
        resumed.load_state_dict(stream.state_dict())
        assert tokens_of(packed(resumed)) == tokens_of(whole[stop:])


def test_bad_documents_are_skipped_whole(tmp_path):
    good = [np.arange(n * 100, n * 100 + 10, dtype="i4") for n in range(6)]
    rows = [{"npy": npy(tokens), "mask.npy": npy(tokens)} for tokens in good]
    rows[1]["npy"] = b"no array"
    rows[3]["mask.npy"] = npy(good[3][:4])
    rows[4]["npy"] = rows[4]["mask.npy"] = npy(good[4].reshape(2, 5))
    url = rows_tar(tmp_path / "t.tar", rows)
    given: dict[str, Any] = {"decode": "npy,mask.npy", "batch": 2, "pack": 7}
    stream = batches(url, on_error="skip_sample", **given)
    found = tokens_of(packed(stream))
    assert found == [token for n in (0, 2, 5) for token in good[n].tolist()]
    assert stream.stats()["skipped_samples"] == 3
    # What comes before is delivered; then the error says which sample.
    stream = batches(url, **{**given, "pack": 5})
    iterator = stream.batches()
    assert next(iterator)["npy"].tolist() == good[0].reshape(2, 5).tolist()
    with pytest.raises(shardfeed.FormatError, match=r"t\.tar: member \"000001\.npy\""):
        next(iterator)


def listed(tokens: np.ndarray) -> bytes:
    return json.dumps(tokens.tolist()).encode()


@pytest.mark.parametrize("decode", ["json", "json:list", "meta.json:list/ids"])
def test_lists_in_json(tmp_path, urls, decode):
    lists = [
        rows_tar(
            tmp_path / f"lists{shard}.tar",
            [
                {"json": listed(tokens), "meta.json": b'{"x": [0.5], "ids": %s}' % listed(tokens)}
                for tokens in documents_of(shard)
            ],
        )
        for shard in range(SHARDS)
    ]
    wanted = packed(batches(urls, shuffle=9, seed=2))
    name = "meta.json.ids" if "/" in decode else "json"
    stream = batches(lists, shuffle=9, seed=2, decode=decode)
    iterator = stream.batches()
    found = [next(iterator) for _ in range(5)]
    resumed = batches(lists, shuffle=9, seed=2, decode=decode)
    resumed.load_state_dict(stream.state_dict())
    found += packed(resumed)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        assert one[name].dtype == np.int64
        assert one[name].tolist() == other["npy"].tolist()
        assert one["__position__"].tolist() == other["__position__"].tolist()


def test_lists_that_are_members_of_one_object(tmp_path):
    rows = [
        {"json": json.dumps({"mask": [n % 2] * n, "ids": list(range(n))}).encode()}
        for n in (3, 0, 5)
    ]
    url = rows_tar(tmp_path / "t.tar", rows)
    (batch,) = packed(batches(url, decode="json:list/ids,json:list/mask", pack=4))
    assert batch["json.ids"].tolist() == [[0, 1, 2, 0], [1, 2, 3, 4]]
    assert batch["json.mask"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 1]]
    # Without pack they are arrays as others are.
    (plain,) = shardfeed.Stream(url).batches(3, decode="json:list/ids", ragged="pad")
    assert plain["json.ids"].tolist() == [[0, 1, 2, 0, 0], [0] * 5, [0, 1, 2, 3, 4]]
    rows[1]["json"] = b'{"ids": [1], "mask": [0, 0]}'
    url = rows_tar(tmp_path / "u.tar", rows)
    with pytest.raises(
        shardfeed.FormatError, match=r'u\.tar: member "000001.json.*beside one of 1'
    ):
        packed(batches(url, decode="json:list/ids,json:list/mask", pack=4))


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (b"[1, 2.5]", r"\"2\.5\]\" at byte 4 of the field, where a whole number of 64 bits"),
        (b"[1, 9223372036854775808]", "at byte 4"),
        (b"[1", "the field ends at byte 2"),
        (b'{"ids": [1]}', "where a JSON list should be"),
    ],
)
def test_bad_lists_say_where(tmp_path, field, message):
    url = rows_tar(tmp_path / "t.tar", [{"json": b"[1, 2]"}, {"json": field}, {"json": b"[3]"}])
    with pytest.raises(shardfeed.FormatError, match=r"t\.tar: member \"000001\.json\"") as caught:
        packed(batches(url, decode="json", pack=2))
    assert re.search(message, str(caught.value).replace("\\", ""))
    stream = batches(url, decode="json", pack=3, on_error="skip_sample")
    assert [batch["json"].tolist() for batch in stream.batches()] == [[[1, 2, 3]]]
    assert stream.stats()["skipped_samples"] == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"npy": npy(np.zeros((2, 3)))}, r"float64 \(2, 3\), where pack joins arrays of one"),
        ({"npy": npy(np.zeros(3)), "b.npy": npy(np.zeros(4))}, "beside one of 3 elements"),
    ],
)
def test_arrays_that_cannot_be_packed(tmp_path, row, message):
    url = rows_tar(tmp_path / "t.tar", [row])
    with pytest.raises(shardfeed.FormatError, match=message):
        packed(batches(url, decode=",".join(row)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decode": "txt"}, 'the column "?txt"? has none; help: name the fields'),
        ({"decode": "auto"}, "pack joins arrays, and the column"),
        ({"decode": "npy", "missing": "empty"}, "help: set missing=skip"),
        ({"decode": "npy", "epoch_samples": 10}, "remove even and epoch_samples"),
        ({"decode": "npy", "rank": 0, "world_size": 3, "lanes": 4}, "multiple of the consumers"),
    ],
)
def test_what_does_not_go_with_pack(urls, options, message):
    with pytest.raises(shardfeed.UsageError, match=message):
        packed(batches(urls, **options))


def test_batch_above_memory(tmp_path):
    url = rows_tar(tmp_path / "t.tar", [{"npy": npy(np.zeros(1000))}] * 100)
    with pytest.raises(shardfeed.LimitError, match="memory=1048576; help: raise memory"):
        packed(batches(url, memory="1MiB", pack=50_000, batch=4))
    # Documents that are longer than a batch.
    stream = batches(url, pack=10, batch=2)
    assert sum(len(batch) for batch in stream.batches()) == 10_000


def test_nothing_to_pack(tmp_path):
    url = rows_tar(tmp_path / "t.tar", [{"npy": npy(np.zeros(0, "i4"))}] * 5)
    assert packed(batches(url)) == []
