"""Examples that webdataset 1.0.2 and wids have given once: these need neither package."""

from __future__ import annotations

import importlib
import io
import itertools
import pickle
import tarfile
from pathlib import Path
from typing import Any

import pytest
import shardfeed.wds as wds
from conftest import write_tar
from shardfeed.wds import tariterators


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split()]


@pytest.mark.parametrize(
    ("stage", "count", "expected"),
    [
        (wds.shuffle(10, 5, seed=0), 20, "3 7 8 0 4 12 10 9 13 15 6 5 2 18 1 11 16 14 17 19"),
        (wds.shuffle(5, initial=2, seed=0), 10, "1 2 0 4 8 6 9 3 7 5"),
        (wds.shuffle(1000, 100, seed=1), 10, "2 1 4 0 3 5 7 9 8 6"),
        (wds.shuffle(bufsize=100, seed="5"), 10, "5 4 0 8 1 3 7 2 6 9"),
        (wds.detshuffle(10, 5, 0), 20, "3 7 8 0 4 12 10 9 13 15 6 5 2 18 1 11 16 14 17 19"),
        (
            wds.detshuffle(10, 5, 0, epoch=0),
            20,
            "1 4 5 7 9 10 14 15 8 3 13 16 0 17 18 6 12 2 19 11",
        ),
    ],
)
def test_shuffles(stage: Any, count: int, expected: str) -> None:
    assert list(wds.DataPipeline(lambda: iter(range(count)), stage)) == numbers(expected)


def test_lists_of_shards() -> None:
    shards = [item["url"] for item in wds.SimpleShardList([*"0123456789"], seed=17)]
    assert "".join(shards) == "7305192468"
    drawn = wds.ResampledShards([*"0123456789"], deterministic=True, seed=3, worker_seed=lambda: 0)
    for expected in ("398259791907", "859030651645"):  # two epochs
        assert "".join(item["url"] for item in itertools.islice(drawn, 12)) == expected
    assert wds.utils.make_seed(1, 2, 3) == 1026
    assert wds.utils.make_seed(1001, 0, 0) == 961961


def test_samplers_of_wids() -> None:
    pytest.importorskip("torch")
    wids = importlib.import_module("shardfeed.wids")
    sampler = wids.ShardedSampler(range(15), lengths=[5, 5, 5])
    assert list(sampler) == numbers("2 1 0 4 3 5 7 6 8 9 11 10 14 12 13")
    assert list(sampler) == numbers("4 3 2 0 1 10 13 12 11 14 6 7 8 9 5")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{0009..11}", "0009 0010 0011"),
        ("{a}", "{a}"),
        ("x{a}{1..3}", "x{a}1 x{a}2 x{a}3"),
        ("{1..2}{a,b}", "1a 1b 2a 2b"),
        ("{3..1}", "3 2 1"),
        ("{Y..b}", "Y Z a b"),
        ("{a,{b,c}d}", "a bd cd"),
        (r"\{1,2\}", "{1,2}"),
        ("a::b{0..4..2}", "a b0 b2 b4"),
        ("pipe:awk '{print$1}'", "pipe:awk '{print$1}'"),
    ],
)
def test_texts_of_urls(text: str, expected: str) -> None:
    found = importlib.import_module("shardfeed.wds.shardlists").expand_urls(text)
    assert found == ([expected] if "'" in text else expected.split())


def test_mixes() -> None:
    assert list(wds.RoundRobin([[1, 2, 3], [10]])) == [1, 10, 2]
    assert list(wds.RoundRobin([[1, 2, 3], [10]], longest=True)) == [1, 10, 2, 3]


def test_the_members_that_are_taken(tmp_path: Path) -> None:
    members = [
        ("adir", tarfile.DIRTYPE, b""),
        ("a.txt", tarfile.REGTYPE, b"1"),
        ("ln.txt", tarfile.SYMTYPE, b""),
        ("hl.txt", tarfile.LNKTYPE, b""),
        ("ct.txt", tarfile.CONTTYPE, b"2"),
        *((name, tarfile.REGTYPE, b"3") for name in ("a.CLS", "README", "__index__")),
        *((name, tarfile.REGTYPE, b"4") for name in ("__meta__.json", "__m__/x.txt")),
        *((name, tarfile.REGTYPE, b"5") for name in ("sub/__m__/x.txt", "__x.txt", "__x__y.txt")),
        ("b.txt", tarfile.REGTYPE, b""),
        ("a.txt", tarfile.REGTYPE, b"6"),
    ]
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        for name, kind, data in members:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, len(data)
            info.linkname = "a.txt" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            archive.addfile(info, io.BytesIO(data) if data else None)
    expected = ["a txt", "ct txt", "a cls", "__meta__ json", "sub/__m__/x txt", "__x txt"]
    expected += ["__x__y txt", "b txt", "a txt"]
    for stages in (
        wds.WebDataset(str(path), shardshuffle=False),
        wds.DataPipeline(wds.SimpleShardList(str(path)), wds.tarfile_to_samples()),
        wds.WebDataset(str(path), shardshuffle=False).engine(threads=2),
    ):
        found = [
            " ".join([sample["__key__"], *(name for name in sample if name[:2] != "__")])
            for sample in stages
        ]
        assert found == expected


def test_the_end_of_a_shard_is_an_empty_dict_and_for_older_programs_a_name_without_a_key(
    tmp_path: Path,
) -> None:
    shards = [write_tar(tmp_path / f"{n}.tar", [(f"{n}.x", b"1"), (f"{n}.y", b"2")]) for n in "ab"]
    opened = tariterators.url_opener({"url": str(path)} for path in shards)
    members = list(tariterators.tar_file_expander(opened))
    assert [member == {} for member in members] == [False, False, True] * 2
    end = members[2]
    assert (len(end), end.get("fname"), "fname" in end) == (0, None, False)
    with pytest.raises(KeyError, match="other"):
        end["other"]
    # As open_clip and programs made after it group members.
    found = []
    for member in pickle.loads(pickle.dumps(members)):
        name, data = member["fname"], member["data"]
        prefix, suffix = tariterators.base_plus_ext(name)
        if prefix is not None:
            found.append((prefix, suffix, data))
    assert found == [("a", "x", b"1"), ("a", "y", b"2"), ("b", "x", b"1"), ("b", "y", b"2")]


def test_the_order_of_fields(tmp_path: Path) -> None:
    path = str(write_tar(tmp_path / "a.tar", [("a.x", b"1"), ("a.Y.z", b"2"), ("a.w", b"")]))
    (sample,) = wds.WebDataset(path, shardshuffle=False)
    assert list(sample) == ["__key__", "__url__", "x", "__local_path__", "y.z", "w"]
    (sample,) = wds.DataPipeline(wds.SimpleShardList(path), wds.tarfile_samples)
    assert list(sample) == ["__key__", "__url__", "x", "y.z", "w"]


def test_collation() -> None:
    numpy = pytest.importorskip("numpy")
    rows = [(1, 2.5, True, "a", None, numpy.ones(2), numpy.int32(4))] * 3
    ((ints, floats, flags, texts, nothing, arrays, scalars),) = wds.batched(5)(iter(rows))
    assert [ints.dtype.kind, floats.dtype.kind, flags.dtype.kind] == ["i", "f", "b"]
    assert (texts, nothing, arrays.shape) == (["a"] * 3, [None] * 3, (3, 2))
    assert type(scalars) is list
    with pytest.raises(AssertionError, match="all shapes must be equal"):
        list(wds.batched(2)(iter([(numpy.ones(1),), (numpy.ones(2),)])))
    with pytest.raises(AssertionError, match="keys don't match"):
        list(wds.batched(2)(iter([{"a": 1}, {"b": 1}])))
    assert list(wds.unbatched()(iter([([1, 2], ["a", "b"])]))) == [(1, "a"), (2, "b")]
