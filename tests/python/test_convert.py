"""shardfeed.convert: samples come back from every format as they were."""

from __future__ import annotations

import importlib.util
import io
import random
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from shardfeed import Writer
from shardfeed.convert import FORMATS, ConvertError, ReadOptions, convert

Samples = list[tuple[str, dict[str, bytes]]]
PACKAGES = {
    "parquet": ["pyarrow"],
    "lmdb": ["lmdb"],
    "mds": ["streaming"],
    "litdata": ["litdata"],
    "tfrecord": ["tfrecord", "crc32c"],
    "hdf5": ["h5py"],
}
SAME_FIELDS = ("mds", "litdata", "hdf5")


def needs(name: str) -> None:
    for package in PACKAGES[name]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not there")


def shard(path: Path, samples: Samples, **options: Any) -> Path:
    with Writer(path, encoder=False, **options) as writer:
        for key, fields in samples:
            writer.write_bytes(key, fields)
    return path


def samples_of(path: Path) -> Samples:
    made: Samples = []
    with tarfile.open(path) as tar:
        for info in tar:
            folder, slash, base = info.name.rpartition("/")
            stem, _, field = base.partition(".")
            key = folder + slash + stem
            if not made or made[-1][0] != key:
                made.append((key, {}))
            file = tar.extractfile(info)
            assert file is not None
            made[-1][1][field] = file.read()
    return made


def random_samples(rng: random.Random, same: bool) -> Samples:
    names = ["jpg", "cls", "seg.png", "a b", "ünïcode", "json"]
    chosen = rng.sample(names, rng.randrange(1, 5))
    made: Samples = []
    for i in range(rng.randrange(1, 80)):
        key = rng.choice(["", "a/", "ä b/", "d/e/" * 10]) + f"{i:05d}"
        fields = chosen if same else rng.sample(names, rng.randrange(1, len(names)))
        sizes = [0, 1, 3, 1000, 70_000]
        made.append((key, {name: rng.randbytes(rng.choice(sizes)) for name in fields}))
    return made


def round_trip(tmp_path: Path, kind: str, samples: Samples) -> Samples:
    source = shard(tmp_path / "in.tar", samples)
    there, back = tmp_path / "there", tmp_path / "back.tar"
    convert([str(source)], str(there), source="shards", target=kind)
    convert([str(there)], str(back), source=kind, target="shards")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["back.tar", "in.tar", "there"]
    return samples_of(back)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("seed", range(8))
def test_round_trips(tmp_path: Path, kind: str, seed: int) -> None:
    needs(kind)
    samples = random_samples(random.Random(seed), kind in SAME_FIELDS)
    found = round_trip(tmp_path, kind, samples)
    if kind == "lmdb":  # the order of names
        assert found == sorted(samples, key=lambda sample: f"{sample[0]}.".encode())
        return
    assert found == samples
    if kind in ("litdata", "hdf5", "tfrecord"):  # also the order of fields
        assert [list(fields) for _, fields in found] == [list(fields) for _, fields in samples]


@pytest.mark.parametrize("kind", FORMATS)
def test_many_samples_need_many_groups(tmp_path: Path, kind: str) -> None:
    needs(kind)
    rng = random.Random(3)
    samples: Samples = [(f"{i:06d}", {"bin": rng.randbytes(3), "cls": b"7"}) for i in range(12_345)]
    assert round_trip(tmp_path, kind, samples) == samples


@pytest.mark.parametrize("kind", FORMATS)
def test_bytes_that_are_no_text(tmp_path: Path, kind: str) -> None:
    """A key of arbitrary bytes is carried, or an error that names it."""
    needs(kind)
    samples: Samples = [("k\udcff1", {"txt": b"\xff\0"})]
    if kind in ("lmdb", "tfrecord"):
        assert round_trip(tmp_path, kind, samples) == samples
        return
    with pytest.raises(ConvertError, match=r"k\\udcff1 is no UTF-8.*help: "):
        round_trip(tmp_path, kind, samples)
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("kind", SAME_FIELDS)
def test_samples_with_other_fields_are_named(tmp_path: Path, kind: str) -> None:
    needs(kind)
    with pytest.raises(ConvertError, match="sample 2 has no field txt"):
        round_trip(tmp_path, kind, [("1", {"txt": b"", "cls": b""}), ("2", {"cls": b""})])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.tar"]


@pytest.mark.parametrize("kind", FORMATS)
def test_nothing_is_overwritten(tmp_path: Path, kind: str) -> None:
    needs(kind)
    source = shard(tmp_path / "in.tar", [("1", {"txt": b"1"})])
    there = tmp_path / "there"
    there.write_bytes(b"mine")
    with pytest.raises(ConvertError, match="is there already"):
        convert([str(source)], str(there), source="shards", target=kind)
    assert there.read_bytes() == b"mine"


@pytest.mark.parametrize("kind", FORMATS)
def test_a_damaged_shard_publishes_nothing(tmp_path: Path, kind: str) -> None:
    needs(kind)
    source = shard(tmp_path / "in.tar", [(f"{i}", {"txt": b"1" * 600}) for i in range(9)])
    data = source.read_bytes()
    source.write_bytes(data[: len(data) // 2])
    with pytest.raises(Exception, match="the shard ends"):
        convert([str(source)], str(tmp_path / "there"), source="shards", target=kind)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.tar"]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_missing_package_is_named(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = ["tfrecord.example_pb2", "pyarrow.parquet", "streaming.base.format"]
    for name in (*PACKAGES[kind], *inside):
        monkeypatch.setitem(sys.modules, name, None)
    source = shard(tmp_path / "in.tar", [("1", {"txt": b"1"})])
    with pytest.raises(ConvertError, match=rf"help: pip install 'shardfeed\[{kind}\]'"):
        convert([str(source)], str(tmp_path / "there"), source="shards", target=kind)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "index.json").write_text('{"shards": [], "chunks": []}')
    (tmp_path / "there" / "a.parquet").touch()
    with pytest.raises((ConvertError, OSError)):
        convert([str(tmp_path / "there")], str(tmp_path / "b.tar"), source=kind, target="shards")
    assert not (tmp_path / "b.tar").exists()


def test_columns_of_other_parquet_files(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path, out = tmp_path / "a.parquet", tmp_path / "a.tar"
    table = arrow.table(
        {
            "id": [5, 6],
            "image": [{"bytes": b"JPEG", "path": "x.jpg"}, {"bytes": b"PEGJ", "path": None}],
            "text": ["hallo", None],
            "label": [1, 2],
            "score": [0.5, float("inf")],
            "ok": [True, False],
        }
    )
    parquet.write_table(table, path)
    options = ReadOptions(key="id")
    convert([str(path)], str(out), source="parquet", target="shards", options=options)
    assert samples_of(out) == [
        ("5", {"image": b"JPEG", "text": b"hallo", "label": b"1", "score": b"0.5", "ok": b"1"}),
        ("6", {"image": b"PEGJ", "label": b"2", "score": b"inf", "ok": b"0"}),
    ]
    out.unlink()
    convert(
        [str(path)],
        str(out),
        source="parquet",
        target="shards",
        options=ReadOptions(keys="x/%03d"),
        columns=["text", "id"],
    )
    assert samples_of(out) == [("x/000", {"text": b"hallo", "id": b"5"}), ("x/001", {"id": b"6"})]


def test_nested_columns_are_an_error_or_json(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path, out = tmp_path / "a.parquet", tmp_path / "a.tar"
    parquet.write_table(arrow.table({"boxes": [[[1, 2], [3, 4]]]}), path)
    with pytest.raises(ConvertError, match=r"row 0: column boxes: a list .*--nested json"):
        convert([str(path)], str(out), source="parquet", target="shards")
    assert not out.exists()
    nested = ReadOptions(nested="json")
    convert([str(path)], str(out), source="parquet", target="shards", options=nested)
    assert samples_of(out) == [("000000000", {"boxes": b"[[1, 2], [3, 4]]"})]


def test_entries_of_other_lmdb_files(tmp_path: Path) -> None:
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(tmp_path / "a.lmdb")) as environment, environment.begin(write=True) as put:
        put.put(b"0001", b"JPEG")
    source, out = [str(tmp_path / "a.lmdb")], tmp_path / "a.tar"
    with pytest.raises(ConvertError, match="the entry 0001 has no field"):
        convert(source, str(out), source="lmdb", target="shards")
    options = ReadOptions(field="jpg")
    convert(source, str(out), source="lmdb", target="shards", options=options)
    assert samples_of(out) == [("0001", {"jpg": b"JPEG"})]


def test_what_lmdb_cannot_carry(tmp_path: Path) -> None:
    needs("lmdb")
    with pytest.raises(ConvertError, match="names in LMDB have at most 511"):
        round_trip(tmp_path, "lmdb", [("k" * 600, {"txt": b""})])
    (tmp_path / "in.tar").unlink()
    source = shard(
        tmp_path / "in.tar",
        [("1", {"txt": b""}), ("2", {"txt": b""}), ("1", {"txt": b""})],
        duplicate_keys="accept",
    )
    with pytest.raises(ConvertError, match="the sample 1 comes twice"):
        convert(
            [str(source)],
            str(tmp_path / "there"),
            source="shards",
            target="lmdb",
            reader={"duplicate_keys": "accept"},
        )


def test_mds_of_other_programs(tmp_path: Path) -> None:
    streaming = pytest.importorskip("streaming")
    columns = {"id": "int", "text": "str", "image": "jpeg", "raw": "bytes", "half": "float16"}
    np = pytest.importorskip("numpy")
    image = pytest.importorskip("PIL.Image").new("L", (4, 4))
    jpeg = io.BytesIO()
    image.save(jpeg, "jpeg")
    jpeg.seek(0)
    image = pytest.importorskip("PIL.Image").open(jpeg)
    with streaming.MDSWriter(columns=columns, out=str(tmp_path / "a")) as writer:
        row = {"id": 7, "text": "hallo", "image": image, "raw": b"\0", "half": np.float16(1.5)}
        writer.write(row)
    out = tmp_path / "a.tar"
    options = ReadOptions(key="id")
    convert([str(tmp_path / "a")], str(out), source="mds", target="shards", options=options)
    ((key, fields),) = samples_of(out)
    assert key == "7"
    assert fields["image"].startswith(b"\xff\xd8")
    del fields["image"]
    assert fields == {"text": b"hallo", "raw": b"\0", "half": b"1.5"}


def test_hdf5_of_other_programs(tmp_path: Path) -> None:
    h5py, np = pytest.importorskip("h5py"), pytest.importorskip("numpy")
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["image"] = images
        file["label"] = np.array([3, 4])
        file["name"] = np.array(["eins", "zwei"], dtype=h5py.string_dtype())
    out = tmp_path / "a.tar"
    convert([str(tmp_path / "a.h5")], str(out), source="hdf5", target="shards")
    found = samples_of(out)
    assert [key for key, _ in found] == ["000000000", "000000001"]
    assert found[1][1]["label"] == b"4"
    assert found[1][1]["name"] == b"zwei"
    np.testing.assert_array_equal(np.load(io.BytesIO(found[1][1]["image.npy"])), images[1])


def test_tfrecords_of_other_programs(tmp_path: Path) -> None:
    tfrecord = pytest.importorskip("tfrecord")
    path, out = tmp_path / "a.tfrecord", tmp_path / "a.tar"
    writer = tfrecord.TFRecordWriter(str(path))
    for i in range(3):
        writer.write({"image": (b"JPEG%d" % i, "byte"), "label": (i, "int")})
    writer.close()
    convert([str(path)], str(out), source="tfrecord", target="shards")
    assert samples_of(out) == [
        (f"{i:09d}", {"image": b"JPEG%d" % i, "label": b"%d" % i}) for i in range(3)
    ]


def test_a_damaged_tfrecord_is_an_error(tmp_path: Path) -> None:
    needs("tfrecord")
    source = shard(tmp_path / "in.tar", [("1", {"txt": b"hallo" * 9})])
    path = tmp_path / "a.tfrecord"
    convert([str(source)], str(path), source="shards", target="tfrecord")
    data = bytearray(path.read_bytes())
    back = str(tmp_path / "b.tar")
    data[40] ^= 1
    path.write_bytes(data)
    with pytest.raises(ConvertError, match="checksum of the record at byte 0"):
        convert([str(path)], back, source="tfrecord", target="shards")
    data[40] ^= 1
    path.write_bytes(data[:-3])
    with pytest.raises(ConvertError, match="the file ends inside the record"):
        convert([str(path)], back, source="tfrecord", target="shards")


def test_our_tfrecords_are_read_by_the_package(tmp_path: Path) -> None:
    tfrecord = pytest.importorskip("tfrecord")
    source = shard(tmp_path / "in.tar", [("1", {"txt": b"hallo"}), ("2", {"txt": b"\xff"})])
    path = tmp_path / "a.tfrecord"
    convert([str(source)], str(path), source="shards", target="tfrecord")
    loader = tfrecord.tfrecord_loader(str(path), None, {"txt": "byte", "__key__": "byte"})
    assert [bytes(row["txt"]) for row in loader] == [b"hallo", b"\xff"]


def test_the_command(tmp_path: Path) -> None:
    """python -m shardfeed convert, by the names of files alone."""
    needs("parquet")
    samples: Samples = [(f"{i}", {"txt": b"%d" % i, "_x": b"kept"}) for i in range(5)]
    shard(tmp_path / "in.tar", samples)

    def run(*words: str, verb: str = "convert") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "shardfeed", verb, *words],
            cwd=tmp_path,
            capture_output=True,
            timeout=60,
        )

    assert run("in.tar", "-o", "a.parquet").returncode == 0
    done = run("a.parquet", "-o", "out-%03d.tar", "--max-samples", "3")
    assert (done.returncode, done.stderr) == (0, b"")
    assert samples_of(tmp_path / "out-000.tar") + samples_of(tmp_path / "out-001.tar") == samples
    done = run("a.parquet", "-o", "b.tar", "--key", "nothing")
    assert done.returncode == 1
    assert done.stderr.startswith(b"shardfeed: ")
    assert b"help: " in done.stderr
    assert not (tmp_path / "b.tar").exists()
    assert run("a.parquet", "-o", "d.tar", verb="create").returncode == 0
    assert samples_of(tmp_path / "d.tar") == samples
    assert b"must be known before" in run("pipe:cat in.tar", "-o", "c.parquet").stderr
    assert run("pipe:cat in.tar", "-o", "c.parquet", "--columns", "txt _x").returncode == 0
