"""The options that leave out fields and samples: fields, select_keys and slice."""

from __future__ import annotations

import fnmatch
import zipfile
from pathlib import Path

import pytest
import shardfeed
from conftest import Members, numbered, write_tar


def write_zip(path: Path, members: Members) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


@pytest.fixture(params=["t.tar", "t.tar.gz", "t.zip"])
def shard(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A shard of 30 samples with the fields txt and cls."""
    path = tmp_path / request.param
    if path.suffix == ".zip":
        write_zip(path, numbered(0, 30))
    else:
        write_tar(path, numbered(0, 30), mode="w:gz" if path.suffix == ".gz" else "w")
    return str(path)


def keys_of(stream: shardfeed.Stream) -> list[str]:
    return [sample.key for sample in stream]


def test_fields(shard):
    stream = shardfeed.Stream(shard, fields="CLS, other")
    samples = list(stream)
    assert [dict(sample) for sample in samples] == [{"cls": b"%d" % (i % 10)} for i in range(30)]
    assert stream.stats()["filtered_samples"] == 0
    assert stream.stats()["bytes"] == 30
    assert list(shardfeed.Stream(shard, fields="other")) == []


@pytest.mark.parametrize("pattern", ["0000?5", "*1*", "00000[0-3]", "*", "x", "00002[!0-8],000001"])
def test_select_keys(shard, pattern):
    every = keys_of(shardfeed.Stream(shard))
    patterns = pattern.split(",")
    expected = [key for key in every if any(fnmatch.fnmatchcase(key, p) for p in patterns)]
    stream = shardfeed.Stream(shard, select_keys=pattern)
    assert keys_of(stream) == expected
    assert stream.stats()["filtered_samples"] == 30 - len(expected)


@pytest.mark.parametrize("text", ["3:7", ":", "::3", "5:", ":5", "1:28:9", "25:99", "7:3", "29::1"])
def test_slice_means_what_it_means_to_a_list(shard, text):
    parts = [int(part) if part else None for part in text.split(":")]
    expected = keys_of(shardfeed.Stream(shard))[slice(*parts)]
    assert keys_of(shardfeed.Stream(shard, slice=text)) == expected


def test_a_slice_is_of_each_shard(shards):
    url = shards(4, 10)
    expected = [f"{shard * 10 + number:06d}" for shard in range(4) for number in (1, 4, 7)]
    assert keys_of(shardfeed.Stream(url, slice="1:9:3", threads=3)) == expected
    for epoch in range(2):
        stream = shardfeed.Stream(url, slice="1:9:3", shuffle=5, epoch=epoch)
        assert sorted(keys_of(stream)) == expected


def test_keys_that_are_not_text(tmp_path):
    path = write_tar(
        tmp_path / "t.tar",
        [("a\udcff.txt", b"1"), ("aé.txt", b"2"), ("b.txt", b"3")],
        format=0,
        encoding="utf-8",
        errors="surrogateescape",
    )
    assert keys_of(shardfeed.Stream(path, select_keys="a*")) == ["a\udcff", "aé"]
    assert keys_of(shardfeed.Stream(path, select_keys="a\udcff")) == ["a\udcff"]
    assert keys_of(shardfeed.Stream(path, select_keys="aé")) == ["aé"]


def test_all_at_once_in_batches(shard):
    stream = shardfeed.Stream(shard, fields="cls", select_keys="*[02468]", slice="10:")
    (batch,) = stream.batches(100)
    assert set(batch) == {"cls"}
    assert list(batch["cls"]) == [i % 10 for i in range(10, 30, 2)]


def test_fields_of_a_dataset(tmp_path):
    members = [*numbered(0, 3, size=100_000), ("last.jpg", b"j")]
    for path in (write_tar(tmp_path / "d.tar", members), write_zip(tmp_path / "d.zip", members)):
        dataset = shardfeed.Dataset(path, fields="cls")
        assert len(dataset) == 4
        assert [dict(sample) for sample in dataset] == [
            {"cls": b"0"},
            {"cls": b"1"},
            {"cls": b"2"},
            {},
        ]
        assert dataset[3].key == "last"
        assert dict(shardfeed.Dataset(path)[3]) == {"jpg": b"j"}


def test_bad_values_are_refused_when_the_stream_is_opened(shard):
    for name, value, said in [
        ("fields", "jpg,", "option fields: character 5: no field name"),
        ("select_keys", "a,[b", "option select_keys: character 3: a '[' without ']'"),
        ("slice", "1:-1", "option slice: character 3: not a whole number from 0 up"),
        ("slice", "::0", "option slice: character 3: a step of 0"),
    ]:
        with pytest.raises(shardfeed.UsageError) as caught:
            next(iter(shardfeed.Stream(shard, **{name: value})))
        assert said in str(caught.value)
        assert "help: give" in str(caught.value)
    with pytest.raises(TypeError, match="option of stream only"):
        shardfeed.Dataset(shard, slice="1:")
