"""shardfeed.wids beside wids: samples, samplers, index files, and the command."""

from __future__ import annotations

import gzip
import importlib
import inspect
import io
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from conftest import numbered, write_tar
from http_servers import Answer, stand_in
from shardfeed import wids as ours
from shardfeed.wds import utils
from shardfeed.wids import wids as our_wids
from shardfeed.wids import wids_decode, wids_dl
from wds_workers import last_key

pytestmark = pytest.mark.filterwarnings("ignore:String specifications")


@pytest.fixture(scope="module")
def theirs():
    pytest.importorskip("torch")
    return pytest.importorskip("wids.wids")


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    monkeypatch.delenv("WIDS_CACHE", raising=False)
    monkeypatch.setattr(our_wids, "DEFAULT_DIR", str(tmp_path / "default-cache"))


def make_index(folder: Path, counts=(5, 3, 4), **more) -> Path:
    shards, first = [], 0
    for number, count in enumerate(counts):
        path = write_tar(folder / f"{number}.tar", numbered(first, count))
        shards.append({"url": path.name, "nsamples": count, "filesize": path.stat().st_size})
        first += count
    index = folder / "index.json"
    index.write_text(json.dumps({"wids_version": 1, "shardlist": shards, **more}))
    return index


def plain(sample: dict) -> dict:
    read = {k: v.getvalue() if isinstance(v, io.BytesIO) else v for k, v in sample.items()}
    return {**read, "__shardindex__": int(read["__shardindex__"])}


# ---- Samples ------------------------------------------------------------------------------------


def test_samples_are_those_of_wids(theirs, tmp_path, capsys):
    index = make_index(tmp_path, name="some", datasets=[])
    keywords = {"transformations": [], "cache_dir": str(tmp_path / "cache")}
    its = theirs.ShardListDataset(str(index), **keywords)
    banners = [capsys.readouterr().err]
    mine = ours.ShardListDataset(str(index), **keywords)
    banners.append(capsys.readouterr().err)
    assert banners[0] == banners[1] != ""
    assert len(mine) == len(its) == 12
    for number in range(12):
        left, right = mine[number], its[number]
        assert list(left) == list(right)
        assert plain(left) == plain(right)
    for name in ("lengths", "total_length", "dataset_name", "base", "shards", "cache_dir"):
        assert getattr(mine, name) == getattr(its, name), name
    assert (mine.cum_lengths == its.cum_lengths).all()
    assert mine.get_stats() == its.get_stats() == (12, 3)
    assert mine.add_transform(lambda sample: sample["__key__"]) is mine
    assert mine[3] == "000003"
    mine.close()
    assert mine[3] == "000003"


def test_numbers_count_as_in_a_list(tmp_path):
    data = ours.ShardListDataset(str(make_index(tmp_path)), transformations=[])
    assert data[-1]["__key__"] == "000011"  # wids has the last one of the first shard
    assert data[-12]["__key__"] == data[np.int64(0)]["__key__"] == "000000"
    for number in (12, -13):
        with pytest.raises(IndexError, match="help:"):
            data[number]
    with pytest.raises(IndexError, match="No shards found"):
        ours.ShardListDataset([])


def test_local_tars_are_read_where_they_are(tmp_path, monkeypatch):
    index = make_index(tmp_path)
    data = ours.ShardListDataset(str(index), transformations=[])
    assert data[11]["__key__"] == "000011"
    assert not (tmp_path / "default-cache").exists()
    for keywords in ({"cache_dir": str(tmp_path / "c")}, {"localname": lambda u: f"{tmp_path}/l"}):
        data = ours.ShardListDataset(str(index), transformations=[], **keywords)
        assert data[0]["__key__"] == "000000"
    assert (tmp_path / "c" / "0.tar").exists()
    assert (tmp_path / "l").exists()
    monkeypatch.setenv("WIDS_CACHE", str(tmp_path / "env"))
    data = ours.ShardListDataset(str(index), transformations=[])
    assert data[0]["__key__"] == "000000"
    (name,) = os.listdir(tmp_path / "env")
    assert name.endswith("0.tar")


def test_lists_of_shards(tmp_path):
    make_index(tmp_path)
    dicts = [{"url": str(tmp_path / f"{n}.tar"), "nsamples": c} for n, c in enumerate((5, 3, 4))]
    pairs = [(tmp_path / f"{n}.tar", c) for n, c in enumerate((5, 3, 4))]
    for shards in (dicts, pairs, io.StringIO(json.dumps({"wids_version": 1, "shardlist": dicts}))):
        data = ours.ShardListDataset(shards, transformations=[])
        assert [data[n]["__key__"] for n in (0, 5, 11)] == ["000000", "000005", "000011"]
    with pytest.raises(ValueError, match="is no shard; help:"):
        ours.ShardListDataset(["a.tar"])


def test_names_that_wids_reads_wrong(tmp_path):
    long = "d" * 120 + "/" + "n" * 90
    members = [(f"{long}.txt", b"long"), ("ü.txt", b"u"), ("b.txt", b"1"), ("c.txt", b"2")]
    write_tar(tmp_path / "a.tar", members)
    data = ours.ShardListDataset([(tmp_path / "a.tar", 4)], transformations=[])
    assert [data[n]["__key__"] for n in range(4)] == [long, "ü", "b", "c"]
    # A name that is there twice shifts all later samples in wids.
    write_tar(tmp_path / "b.tar", [("x.txt", b"1"), ("y.txt", b"2"), ("x.txt", b"3")])
    data = ours.ShardListDataset([(tmp_path / "b.tar", 3)], transformations=[])
    assert [data[n][".txt"].getvalue() for n in range(3)] == [b"1", b"2", b"3"]
    write_tar(tmp_path / "c.tar", [("x.txt", b"1"), ("x.txt", b"2")])
    data = ours.ShardListDataset([(tmp_path / "c.tar", 1)], transformations=[])
    with pytest.raises(ValueError, match=r"twice; help:"):
        data[0]
    write_tar(tmp_path / "d.tar.gz", numbered(0, 3), mode="w:gz")
    data = ours.ShardListDataset([(tmp_path / "d.tar.gz", 3)], transformations=[])
    assert data[2]["__key__"] == "000002"


def test_an_index_that_does_not_fit_is_an_error(tmp_path):
    make_index(tmp_path)
    for shard, message in (
        ({"nsamples": 4}, "has 5 samples, and by its index 4; help:"),
        ({"nsamples": 5, "filesize": 7}, "bytes, and by its index 7; help:"),
    ):
        data = ours.ShardListDataset([{"url": str(tmp_path / "0.tar"), **shard}])
        with pytest.raises(ValueError, match=message):
            data[0]


def test_few_tars_are_open_at_once(tmp_path, capsys):
    counts = [1] * 130
    data = ours.ShardListDataset(str(make_index(tmp_path, counts)), transformations=[], lru_size=3)
    opened = len(os.listdir("/proc/self/fd"))
    for number in range(130):
        data[number]
    assert len(data.cache) == 3
    assert len(os.listdir("/proc/self/fd")) <= opened + 8
    assert capsys.readouterr().out.count("Warning: ShardListDataset has a cache miss rate") == 1
    with pytest.warns(UserWarning, match="LRU size is very large"):
        ours.ShardListDataset(str(tmp_path / "index.json"), transformations=[], lru_size=201)


def keys_of(data, numbers):
    return [data[number]["__key__"] for number in numbers]


def test_other_processes_read_too(tmp_path):
    data = ours.ShardListDataset(str(make_index(tmp_path)), transformations=[])
    expected = keys_of(data, range(12))
    torch_data = pytest.importorskip("torch.utils.data")
    data.add_transform(lambda sample: sample["__key__"])
    for workers in (0, 2):
        loader = torch_data.DataLoader(
            data, batch_size=4, num_workers=workers, sampler=ours.ChunkedSampler(data, seed=3)
        )
        assert sorted(key for batch in loader for key in batch) == expected


def test_servers(theirs, tmp_path):
    make_index(tmp_path)
    made = {f"/d/{name}": (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}

    def decide(request):
        body = made.get(request.path)
        return Answer(404, body=b"no such page") if body is None else Answer(200, {}, body)

    with stand_in(decide) as server:
        url = server.url("d/index.json")
        folder = str(tmp_path / "cache")
        data = ours.ShardListDataset(url, transformations=[], cache_dir=folder)
        assert data.shards[0]["url"] == server.url("d/0.tar")
        assert keys_of(data, range(12)) == [f"{n:06d}" for n in range(12)]
        assert sorted(os.listdir(folder)) == ["0.tar", "1.tar", "2.tar"]
        del made["/d/1.tar"]
        shutil.rmtree(folder)
        data = ours.ShardListDataset(url, transformations=[], cache_dir=folder)
        with pytest.raises(AssertionError, match=r"Command failed: curl .*exit 22"):
            data[6]
        assert os.listdir(folder) == []  # wids keeps the page that says 404 as the shard
        with pytest.raises(AssertionError, match="Command failed"):
            ours.ShardListDataset(server.url("d/none.json"))


def test_one_process_downloads_and_others_wait(tmp_path):
    make_index(tmp_path)
    body = (tmp_path / "0.tar").read_bytes()
    with stand_in(lambda _: Answer(200, {}, body, wait=lambda: time_passes())) as server:
        wanted = [(server.url("0.tar"), str(tmp_path / "cache"))] * 4
        with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
            assert list(pool.map(last_key, wanted)) == ["000004"] * 4
        assert len(server.requests) == 1
    assert os.listdir(tmp_path / "cache") == ["0.tar"]


def time_passes():
    import time

    time.sleep(0.3)


def test_two_urls_with_one_local_name_are_an_error(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        write_tar(tmp_path / name / "x.tar", numbered(ord(name), 1))
    shards = [(tmp_path / name / "x.tar", 1) for name in "ab"]
    data = ours.ShardListDataset(shards, transformations=[], cache_dir=str(tmp_path / "c"))
    assert data[0]["__key__"] == "000097"
    with pytest.raises(ValueError, match=r"have the same local file .*help:"):
        data[1]
    named = our_wids.hash_localname(str(tmp_path / "h"))
    data = ours.ShardListDataset(shards, transformations=[], localname=named)
    assert keys_of(data, (0, 1)) == ["000097", "000098"]


def test_names_of_local_files(theirs, tmp_path):
    urls = ["http://h/a/b.tar?x", "pipe:cat x", "/a/b.tar", "s3://b/c/d.tar", "gs://b/ü.tar"]
    for mine, its in (
        (our_wids.CacheLocalname("D"), theirs.CacheLocalname(str(tmp_path / "D"))),
        (our_wids.DefaultLocalname("D"), theirs.DefaultLocalname(str(tmp_path / "D"))),
        (our_wids.hash_localname("D"), theirs.hash_localname(str(tmp_path / "D"))),
    ):
        for url in urls:
            assert mine(url) == its(url).replace(str(tmp_path) + "/", "")


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_indexed_tar_samples(theirs, tmp_path, capsys):
    members = [*numbered(0, 3), ("README", b""), ("d/.hid", b"1"), ("e.1/x", b"2"), ("f.A.b", b"3")]
    path = str(write_tar(tmp_path / "a.tar", members))
    md5 = theirs.compute_file_md5sum(path)
    assert our_wids.compute_file_md5sum(path) == md5
    with open(path, "rb") as stream:
        assert our_wids.compute_file_md5sum(stream, 7) == md5
    its = theirs.IndexedTarSamples(path=path)
    for keywords in (
        {"path": path},
        {"stream": open(path, "rb")},  # noqa: SIM115
        {"path": path, "use_mmap": False},
        {"path": path, "md5sum": md5, "expected_size": len(its)},
        {"path": path, "stream": io.BytesIO(Path(path).read_bytes())},
    ):
        mine = our_wids.IndexedTarSamples(**keywords)
        assert len(mine) == len(its) == our_wids.compute_num_samples(path)
        for number in range(len(its)):
            left, right = mine[number], its[number]
            assert list(left) == list(right)
            assert all(
                a == b if isinstance(a, str) else a.read() == b.read()
                for a, b in zip(left.values(), right.values())
            )
        assert list(mine.reader.names()) == list(its.reader.names())
        mine.close()
    assert "Ignoring file README" in capsys.readouterr().out
    with pytest.raises(AssertionError, match=r"MD5 sum mismatch.*help:"):
        our_wids.IndexedTarSamples(path=path, md5sum="0")
    with pytest.raises(AssertionError, match=r"Expected 1 samples.*help:"):
        our_wids.IndexedTarSamples(path=path, expected_size=1)
    Path(path).write_bytes(Path(path).read_bytes()[:1500])
    with pytest.raises(Exception, match="help:"):
        our_wids.IndexedTarSamples(path=path)


# ---- Samplers -----------------------------------------------------------------------------------


class Sized:
    def __init__(self, lengths):
        self.lengths = lengths

    def __len__(self):
        return sum(self.lengths)


def epochs(sampler, count=3):
    return [list(sampler) for _ in range(count)]


@pytest.mark.parametrize("seed", range(60))
def test_samplers_give_the_same_numbers(theirs, seed):
    rng = random.Random(seed)
    data = Sized([rng.randrange(0, 30) for _ in range(rng.randrange(1, 9))])
    first = rng.random() < 0.5
    keywords = {"seed": seed * 7919, "shufflefirst": first}
    mine, its = ours.ShardedSampler(data, **keywords), theirs.ShardedSampler(data, **keywords)
    assert epochs(mine) == epochs(its)
    assert len(mine) == len(data)
    lengths = [3, 0, 5]
    assert epochs(ours.ShardedSampler(data, lengths=lengths)) == epochs(
        theirs.ShardedSampler(data, lengths=lengths)
    )
    low = rng.randrange(0, len(data) + 1)
    keywords |= {
        "num_samples": rng.choice([None, low, (low, len(data)), (low, low)]),
        "chunksize": rng.randrange(1, 40),
        "shuffle": rng.random() < 0.8,
        "dslength_per_replica": rng.choice([-1, 0, 17]),
    }
    mine, its = ours.ChunkedSampler(data, **keywords), theirs.ChunkedSampler(data, **keywords)
    assert len(mine) == len(its)
    assert epochs(mine) == epochs(its)
    mine.set_epoch(seed)
    its.set_epoch(seed)
    assert epochs(mine, 1) == epochs(its, 1)


def test_the_vectors():
    sampler = ours.ShardedSampler(Sized([5, 5, 5]))
    assert list(sampler) == [2, 1, 0, 4, 3, 5, 7, 6, 8, 9, 11, 10, 14, 12, 13]
    assert list(sampler) == [4, 3, 2, 0, 1, 10, 13, 12, 11, 14, 6, 7, 8, 9, 5]


def test_distributed_samplers_give_the_same_numbers(theirs, monkeypatch):
    import torch.distributed as dist

    rng = random.Random(0)
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    for _ in range(100):
        data = Sized([rng.randrange(1, 200)])
        world = rng.randrange(1, 7)
        monkeypatch.setattr(dist, "get_world_size", lambda world=world: world)
        keywords = {
            "seed": rng.randrange(10**6),
            "chunksize": rng.randrange(1, 60),
            "shuffle": rng.random() < 0.7,
            "shufflefirst": rng.random() < 0.5,
            "num_samples": rng.choice([None, rng.randrange(1, 100)]),
        }
        for rank in range(world):
            monkeypatch.setattr(dist, "get_rank", lambda rank=rank: rank)
            for given in ({}, {"num_replicas": world, "rank": rank}):
                mine = ours.DistributedChunkedSampler(data, **keywords, **given)
                its = theirs.DistributedChunkedSampler(data, **keywords, **given)
                assert len(mine) == len(its)
                assert epochs(mine, 2) == epochs(its, 2)


def test_what_is_given_counts_without_torch_distributed(theirs):
    data = Sized([10])
    parts = [
        list(ours.DistributedChunkedSampler(data, num_replicas=3, rank=r, shuffle=False))
        for r in range(3)
    ]
    assert parts == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    for module in (ours, theirs):
        with pytest.warns(UserWarning, match="assuming single process"):
            assert len(list(module.DistributedChunkedSampler(data))) == 10
        with pytest.warns(UserWarning, match="drop_last"):
            module.DistributedChunkedSampler(data, drop_last=True)
    with pytest.raises(ValueError, match="help: give both"):
        ours.DistributedChunkedSampler(data, rank=1)
    with pytest.raises(AssertionError, match="help:"):
        ours.DistributedChunkedSampler(data, rank=3, num_replicas=3)


def test_ranges(theirs):
    rng = random.Random(1)
    for _ in range(200):
        ranges = [tuple(rng.randrange(9) for _ in range(2)) for _ in range(4)]
        for a in ranges:
            for b in ranges:
                assert our_wids.intersect_range(a, b) == theirs.intersect_range(a, b)
        got = our_wids.intersect_ranges(ranges, (2, 6))
        assert got == theirs.intersect_ranges(ranges, (2, 6))


# ---- Decoding -----------------------------------------------------------------------------------


def encoded() -> dict:
    torch = pytest.importorskip("torch")
    pil = pytest.importorskip("PIL.Image")
    msgpack = pytest.importorskip("msgpack")
    png, npy, pt = io.BytesIO(), io.BytesIO(), io.BytesIO()
    pil.fromarray(np.arange(12, dtype="u1").reshape(2, 2, 3)).save(png, "PNG")
    np.save(npy, np.arange(3))
    torch.save(torch.ones(2), pt)
    return {
        ".txt": "ü".encode(),
        ".a.text": b"x",
        ".cls": b" 7\n",
        ".json": b'{"a": [1]}',
        ".npy": npy.getvalue(),
        ".mp": msgpack.packb({"b": 1}),
        ".pth": pt.getvalue(),
        ".pkl": pickle.dumps([1]),
        ".PNG": png.getvalue(),
        ".seg.png": png.getvalue(),
        ".png.gz": gzip.compress(png.getvalue()),
        ".c.txt.gz": gzip.compress(b"packed"),
        ".jpeg": b"not decoded",
        ".bin": b"raw",
        "__key__": "k",
    }


def comparable(value):
    if hasattr(value, "getvalue"):
        return value.getvalue()
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "tobytes"):
        return value.mode, value.tobytes()
    return value


@pytest.mark.parametrize("format", ["PIL", "numpy"])
@pytest.mark.parametrize("update", [False, True])
def test_decoding_is_that_of_wids(theirs, format, update):
    their_decode = importlib.import_module("wids.wids_decode")
    decoded = []
    for module in (wids_decode, their_decode):
        sample = {k: io.BytesIO(v) if isinstance(v, bytes) else v for k, v in encoded().items()}
        got = module.default_decoder(sample, format=format, gz_update_key=update)
        decoded.append({name: comparable(value) for name, value in got.items()})
        assert sample[".txt"].tell() >= 0
    assert decoded[0] == decoded[1]
    assert list(decoded[0]) == list(decoded[1])


def test_what_cannot_be_decoded(monkeypatch, tmp_path):
    write_tar(tmp_path / "a.tar", [("k.cls", b"abc")])
    with pytest.warns(UserWarning, match="deprecated"):
        data = ours.ShardListDataset([(tmp_path / "a.tar", 1)])
    with pytest.raises(ValueError, match=r"field '\.cls' of the sample 'k' in .*a\.tar: .*abc"):
        data[0]
    for name in (".pkl", ".pth"):
        monkeypatch.setattr(utils, "enforce_security", True)
        with pytest.raises(ValueError, match=r"not allowed for security reasons.*help:"):
            wids_decode.decode_basic({name: encoded()[name]})
    with pytest.raises(ValueError, match="Unknown format"):
        wids_decode.default_decoder({})
    with pytest.raises(AssertionError, match="must start with a dot"):
        wids_decode.check_keys({"txt": b""})
    with pytest.raises(AssertionError, match="is no transformation"):
        our_wids.interpret_transformations(["PNG"])
    with pytest.raises(ValueError, match="cannot open pipe URLs"):
        wids_dl.download_file("pipe:true", "x")


# ---- Names --------------------------------------------------------------------------------------


def test_every_name_and_signature(theirs):
    package = importlib.import_module("wids")
    assert set(ours.__all__) == set(package.__all__)
    assert ours.__version__ == package.__version__
    checked = 0
    for part in ("wids", "wids_dl", "wids_specs", "wids_decode", "wids_lru", "wids_mmtar",
                 "wids_tar", "wids_cleanup", "wids_index", "wids_bench", "wids_dir"):  # fmt: skip
        its = importlib.import_module(f"wids.{part}")
        mine = importlib.import_module(f"shardfeed.wids.{part}")
        for name, value in vars(its).items():
            if getattr(value, "__module__", "") != its.__name__ or name in INSIDE:
                continue
            had = list(inspect.signature(value).parameters.values())
            has = list(inspect.signature(getattr(mine, name)).parameters.values())
            for p, q in zip(had, has):
                assert (p.name, p.kind) == (q.name, q.kind), (part, name)
                if name not in DIRECTORIES and p.name not in (
                    "handlers",
                    "localname",
                    "index_file",
                ):
                    assert p.default == q.default, (part, name, p.name)
            assert len(has) - len(had) == (name == "LRUShards"), (part, name)
            checked += 1
    assert checked > 60


# Parts of a tar reader that the library has instead.
INSIDE = {"TarHeader", "parse_tar_header", "next_header", "T", "T_co"}
# The default is below the folder of temporary files, which is not /tmp everywhere.
DIRECTORIES = {"hash_localname", "DefaultLocalname"}


def test_it_works_without_torch_and_loads_nothing_large(tmp_path):
    index = make_index(tmp_path)
    script = f"""
import sys
sys.modules["torch"] = None
from shardfeed import wids
data = wids.ShardListDataset({str(index)!r}, transformations=[])
sampler = wids.ShardedSampler(data)
print(sorted(data[n]["__key__"] for n in sampler)[-1], "numpy" in sys.modules)
"""
    made = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert made.stdout == "000011 False\n", made.stderr


def test_no_warning_of_its_own(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = ours.ShardListDataset(str(make_index(tmp_path)), transformations=[])
        assert len(list(ours.ChunkedSampler(data))) == 12
