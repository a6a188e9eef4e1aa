"""Equal parts: every rank and worker gets the same number of samples, known before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import shardfeed
from conftest import write_tar

if TYPE_CHECKING:
    from pathlib import Path

COUNTS = [40, 3, 17, 90, 1, 25]


@pytest.fixture
def urls(tmp_path: Path) -> list[str]:
    paths = []
    for shard, count in enumerate(COUNTS):
        path = tmp_path / f"{shard}.tar"
        write_tar(path, [(f"{shard}-{i:03}.txt", b"x") for i in range(count)])
        paths.append(str(path))
    shardfeed.Dataset(paths).close()  # makes the index files
    return paths


@pytest.mark.parametrize("even", ["drop", "pad"])
@pytest.mark.parametrize("shuffle_shards", [False, True])
def test_len_is_what_comes(urls: list[str], even: str, shuffle_shards: bool) -> None:
    lengths = set()
    for rank in range(3):
        stream = shardfeed.Stream(
            urls, even=even, shuffle_shards=shuffle_shards, shuffle=9, rank=rank, world_size=3
        )
        for _ in range(3):
            promised = len(stream)
            iterator = iter(stream)
            next(iterator)
            assert len(stream) == promised
            assert 1 + sum(1 for _ in iterator) == promised
            if not shuffle_shards:
                lengths.add(promised)
    if not shuffle_shards:
        assert lengths == {min(130, 4, 42) if even == "drop" else max(130, 4, 42)}


def test_valid_tells_what_was_repeated(urls: list[str]) -> None:
    keys: list[str] = []
    rows = []
    for rank in range(2):
        stream = shardfeed.Stream(urls, even="pad", rank=rank, world_size=2)
        rows.append(0)
        for batch in stream.batches(16, decode="txt:bytes"):
            assert batch.valid.dtype == np.bool_
            assert "__valid__" not in list(batch)
            keys += [key for key, valid in zip(batch.sample_keys, batch.valid) if valid]
            rows[-1] += len(batch)
    assert rows[0] == rows[1]
    assert sorted(keys) == sorted(f"{s}-{i:03}" for s, n in enumerate(COUNTS) for i in range(n))


def test_valid_is_true_without_padding(urls: list[str]) -> None:
    for batch in shardfeed.Stream(urls).batches(50, decode="txt:bytes"):
        assert batch.valid.all()
        assert len(batch.valid) == len(batch)


def test_len_of_a_stream_that_is_not_even(urls: list[str], tmp_path: Path) -> None:
    for options in ({}, {"epochs": 2}, {"limit": 50}, {"lanes": 4}, {"resample": True}):
        for rank in range(2):
            shared = {"rank": rank, "world_size": 2, "worker": 0, "num_workers": 2}
            stream = shardfeed.Stream(urls, shuffle_shards=True, seed=1, **options, **shared)
            for _ in range(2):
                promised = len(stream)
                iterator = iter(stream)
                next(iterator)
                assert len(stream) == promised
                assert 1 + sum(1 for _ in iterator) == promised, options
    assert len(shardfeed.Stream(urls)) == sum(COUNTS)
    uncounted = [
        shardfeed.Stream(urls, epochs=0),
        shardfeed.Stream(urls, select_keys="0-*"),
        shardfeed.Stream([*urls, f"pipe:cat {urls[0]}"]),
        shardfeed.Stream([*urls, str(tmp_path / "missing.tar")], on_error="skip_shard"),
        shardfeed.mix([shardfeed.Stream(urls)]),
    ]
    for stream in uncounted:
        assert stream
        with pytest.raises(TypeError, match="the length of"):
            len(stream)
    assert len(list(uncounted[3])) == sum(COUNTS)  # list() asks for the length, too


def test_says_how_to_make_the_index(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [("a.txt", b"x")])
    with pytest.raises(shardfeed.Error, match=r"a\.tar.*write_index=true, or open .* dataset"):
        shardfeed.Stream(str(path), even="drop")


@pytest.mark.parametrize(
    ("chosen", "named"),
    [
        ({"slice": "0:5"}, "slice"),
        ({"select_keys": "0*"}, "select_keys"),
        ({"slice": "0:5", "select_keys": "0*"}, "slice and select_keys"),
    ],
)
def test_no_index_says_the_length_of_a_part(tmp_path, chosen, named):
    path = tmp_path / "t.tar"
    write_tar(path, [(f"{i:03}.txt", b"x") for i in range(9)])
    with shardfeed.Dataset(path):  # makes the index
        pass
    assert len(shardfeed.Stream(path)) == 9
    with pytest.raises(TypeError, match=f"stream with {named} is not known.*epoch_samples") as told:
        len(shardfeed.Stream(path, **chosen))
    assert "make the index" not in str(told.value)
    assert len(shardfeed.Stream(path, epoch_samples=3, **chosen)) == 3
