"""TarWriter and ShardWriter beside those of webdataset: members, headers and bytes."""

from __future__ import annotations

import bz2
import gc
import gzip
import hashlib
import inspect
import io
import json
import lzma
import random
import subprocess
import sys
import tarfile

import numpy as np
import pytest
from shardfeed.wds import writer as ours

webdataset = pytest.importorskip("webdataset")
from webdataset import writer as theirs  # noqa: E402


def written(module, samples, **keywords) -> bytes:
    stream = io.BytesIO()
    with module.TarWriter(stream, **keywords) as writer:
        sizes = [writer.write(dict(sample)) for sample in samples]
    assert sizes == [int(size) for size in sizes]
    return stream.getvalue()


def read_back(data: bytes) -> list[dict]:
    source = [{"url": "x", "stream": io.BytesIO(data)}]
    members = webdataset.tariterators.tar_file_expander(source)
    return [
        {name: value for name, value in sample.items() if name != "__url__"}
        for sample in webdataset.tariterators.group_by_keys(members)
    ]


def headers(data: bytes) -> list[tuple]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return [
            (m.name, m.size, m.mode, m.uid, m.gid, m.uname, m.gname, m.type, m.mtime)
            for m in tar.getmembers()
        ]


def random_sample(rng: random.Random, number: int) -> dict:
    array = np.frombuffer(rng.randbytes(24), "u1").reshape(2, 4, 3)
    values = {
        "txt": "grün" * rng.randrange(4),
        "cls": rng.randrange(10**6),
        "json": {"a": [1, None, 2.5], "b": "ü"},
        "npy": array.astype("f4"),
        "ten": [array, array[0]],
        "mp": {"n": rng.randrange(9)},
        "pyd": ("a", 1),
        "npz": {"left": array},
        "bin": rng.randbytes(rng.choice([0, 1, 511, 512, 513, 5000, 300_000])),
        "seg.png": array,
        "jpg": rng.random() * np.ones((8, 8, 3)),
        "ppm": array[:, :, 0],
        "a.b.html": "<p>",
        "index": np.int64(5),
        "JSON": [1],
    }
    names = rng.sample(sorted(values), rng.randrange(1, 8))
    if "JSON" in names and "json" in names:
        names.remove("JSON")
    key = rng.choice(["{}", "d/{}", "a.b/{}", "grün/{}", "n" * 60 + "/" + "m" * 50 + "{}", "{}x"])
    return {"__key__": key.format(number), "__url__": "u", **{n: values[n] for n in names}}


@pytest.mark.parametrize("seed", range(40))
def test_random_samples_make_the_same_tar(seed):
    rng = random.Random(seed)
    samples = [random_sample(rng, number) for number in range(rng.randrange(12))]
    keywords = {"mtime": rng.choice([0, 1700000000])}
    if rng.random() < 0.3:
        keywords |= {"user": "mé", "group": "staff", "mode": 0o644}
    assert written(ours, samples, **keywords) == written(theirs, samples, **keywords)


@pytest.mark.parametrize("mtime", [None, 1.5, 3.0])
def test_times_are_those_of_webdataset(mtime):
    samples = [{"__key__": "a", "txt": "hi", "cls": 3}, {"__key__": "b", "txt": "ho"}]
    mine, its = (
        headers(written(ours, samples, mtime=mtime)),
        headers(written(theirs, samples, mtime=mtime)),
    )
    assert [entry[:-1] for entry in mine] == [entry[:-1] for entry in its]
    for a, b in zip(mine, its):
        assert abs(a[-1] - b[-1]) <= (2 if mtime is None else 0)
    # The time of writing is in whole seconds, which takes no extended header.
    assert len(written(ours, samples)) == 10240


def test_the_golden_vector():
    sample = {"__key__": "a", "txt": "hi", "cls": 3, "json": {"x": 1}}
    data = written(ours, [sample], mtime=0)
    known = "0f98f06289e2cfdf5344c62d238622a9dc45c6b2ce6bf80abcb7b4722ccfae0a"
    assert hashlib.sha256(data).hexdigest() == known


@pytest.mark.parametrize("compress", [None, False, True, "gz", "bz2", "xz"])
@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz", "a.tar.bz2", "a.tar.xz"])
def test_compression_is_chosen_as_there(tmp_path, name, compress):
    samples = [{"__key__": str(n), "bin": bytes([n]) * 1000} for n in range(30)]
    plain = {}
    for module in (ours, theirs):
        path = tmp_path / module.__name__ / name
        path.parent.mkdir()
        with module.TarWriter(str(path), mtime=0, compress=compress) as writer:
            for sample in samples:
                writer.write(sample)
        data = path.read_bytes()
        magics = ((b"\x1f\x8b", gzip), (b"BZh", bz2), (b"\xfd7z", lzma))
        opened = [codec for magic, codec in magics if data.startswith(magic)]
        plain[module] = (opened, opened[0].decompress(data) if opened else data)
    assert plain[ours] == plain[theirs]


def test_both_read_what_both_write(tmp_path):
    import shardfeed

    samples = [{"__key__": f"d/{n}", "txt": f"{n}", "bin": bytes(n)} for n in range(20)]
    expected = [
        {"__key__": s["__key__"], "bin": s["bin"], "txt": s["txt"].encode()} for s in samples
    ]
    for module in (ours, theirs):
        data = written(module, samples)
        assert read_back(data) == expected
        (tmp_path / "a.tar").write_bytes(data)
        with shardfeed.Stream(str(tmp_path / "a.tar")) as stream:
            got = [{"__key__": s.key, **s.to_dict()} for s in stream]
        assert got == expected


def test_keep_meta_and_encoders():
    sample = {"__key__": "a", "_note": "x", "v": b"1", "w.gz": "text"}
    for keywords in (
        {"keep_meta": True, "mtime": 0},
        {"encoder": lambda s: {"__key__": s["__key__"], "n": b"2"}, "mtime": 0},
        {"encoder": {"q": lambda v: b"q"}, "mtime": 0},
    ):
        mine = read_back(written(ours, [sample], **keywords))
        its = read_back(written(theirs, [sample], **keywords))
        for got in (mine, its):
            for fields in got:
                if "w.gz" in fields:
                    fields["w.gz"] = gzip.decompress(fields["w.gz"])
        assert mine == its
    raw = [{"__key__": "a", "x": bytearray(b"1"), "y": memoryview(b"23")}]
    keywords = {"encoder": False, "mtime": 0}
    assert written(ours, raw, **keywords) == written(theirs, raw, **keywords)


@pytest.mark.parametrize(
    ("sample", "keywords", "message"),
    [
        ({"txt": "a"}, {}, "object must contain a __key__"),
        ({"__key__": "a", "x": 1}, {}, "no handler found for x"),
        ({"__key__": "a", "x": "s"}, {"encoder": False}, "x doesn't map to a bytes after encoding"),
        ({"__key__": 1, "x": b""}, {}, "the values of metadata must be of string type"),
    ],
)
def test_bad_samples_are_the_same_errors(sample, keywords, message):
    for module in (ours, theirs):
        with pytest.raises(ValueError, match=message) as caught:
            written(module, [sample], **keywords)
        assert module is theirs or "help:" in str(caught.value)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([{"__key__": "", "x": b""}], "pass over"),
        ([{"__key__": "__m__/a", "x": b""}], "pass over"),
        ([{"__key__": "d.e/.h", "x": b""}], "pass over"),
        ([{"__key__": "a", "x": b""}] * 2, "read as one"),
        ([{"__key__": "a.1", "x": b""}, {"__key__": "a.2", "x": b""}], "read as one"),
        ([{"__key__": "a", "x": b"", "X": b""}], "a field twice"),
        ([{"__key__": "a"}], "no field"),
        ([{"__key__": "a\0b", "x": b""}], "cut"),
        ([{"__key__": "a", "x/y": b""}], "cut"),
    ],
)
@pytest.mark.filterwarnings("ignore:the sample")
def test_samples_that_would_not_come_back_are_errors(samples, message):
    # What webdataset reads of its own tar is not what was written.
    its = written(theirs, samples, mtime=0)
    try:
        back = read_back(its)
    except ValueError:
        back = None
    wanted = [dict(s) for s in samples]
    assert back != wanted
    with pytest.raises(ValueError, match=message):
        written(ours, samples)


def test_a_dot_in_a_key_is_a_warning():
    with pytest.warns(UserWarning, match=r"'a\.1' is read as 'a' with the fields \['1\.x'\]"):
        data = written(ours, [{"__key__": "a.1", "x": b"1"}])
    assert read_back(data) == [{"__key__": "a", "1.x": b"1"}]


def test_parts_of_a_sample_may_be_written_one_after_another():
    parts = [{"__key__": "a", "x": b"1"}, {"__key__": "a", "y": b"2"}]
    assert read_back(written(ours, parts)) == [{"__key__": "a", "x": b"1", "y": b"2"}]


def test_a_bad_sample_leaves_the_tar_as_it_was():
    good = [{"__key__": "a", "x": b"1"}, {"__key__": "b", "x": b"2"}]
    stream = io.BytesIO()
    with ours.TarWriter(stream, mtime=0) as writer:
        writer.write(good[0])
        with pytest.raises(ValueError, match="no handler"):
            writer.write({"__key__": "c", "a": b"", "x": 5})
        ustar = ours.TarWriter(io.BytesIO(), format="USTAR_FORMAT")
        with pytest.raises(ValueError, match="name is too long"):
            ustar.write({"__key__": "k" * 300, "x": b""})
        ustar.close()
        writer.write(good[1])
    assert stream.getvalue() == written(theirs, good, mtime=0)


@pytest.mark.parametrize("layout", ["USTAR_FORMAT", "GNU_FORMAT", tarfile.PAX_FORMAT])
def test_format_is_obeyed(layout):
    name = "d" * 60 + "/" + "f" * 60
    data = written(ours, [{"__key__": name, "x": b"1"}], mtime=0, format=layout)
    assert headers(data)[0][0] == name + ".x"
    number = getattr(tarfile, layout) if isinstance(layout, str) else layout
    kinds = {tarfile.USTAR_FORMAT: b"0", tarfile.GNU_FORMAT: b"L", tarfile.PAX_FORMAT: b"x"}
    assert data[156:157] == kinds[number]


def test_images_are_those_of_webdataset():
    from PIL import Image

    rng = np.random.default_rng(0)
    pictures = [
        rng.integers(0, 255, (9, 7, 3), "u1"),
        rng.integers(0, 255, (9, 7), "u1"),
        rng.random((5, 6, 3)).astype("f4"),
        rng.random((5, 6)),
        Image.fromarray(rng.integers(0, 255, (9, 7, 3), "u1")),
    ]
    for picture in pictures:
        for kind in ("jpg", "jpeg", "png", "ppm", "tiff", "img"):
            assert ours.imageencoder(picture, kind) == theirs.imageencoder(picture, kind), kind
    for wrong in (np.full((2, 2, 3), 1.5), np.full((2, 2, 3), np.nan), np.zeros((2, 2, 7), "u1")):
        with pytest.raises(ValueError, match="help:"):
            ours.imageencoder(wrong)
    gray = Image.open(io.BytesIO(ours.imageencoder(pictures[0], "pgm")))
    assert (gray.mode, gray.size) == ("L", (7, 9))
    assert Image.open(io.BytesIO(ours.imageencoder(pictures[0], "pbm"))).mode == "1"


def test_a_scalar_tensor_is_its_number():
    torch = pytest.importorskip("torch")
    data = written(ours, [{"__key__": "a", "cls": torch.tensor(3), "pth": torch.ones(2)}])
    (sample,) = read_back(data)
    assert sample["cls"] == b"3"
    assert torch.load(io.BytesIO(sample["pth"])).tolist() == [1, 1]


@pytest.mark.parametrize(
    "limits", [{"maxcount": 3}, {"maxsize": 25}, {"maxcount": 2, "start_shard": 7}, {}]
)
def test_shards_are_those_of_webdataset(tmp_path, capsys, limits):
    made = {}
    for module in (ours, theirs):
        folder = tmp_path / module.__name__
        folder.mkdir()
        posted = []
        pattern = str(folder / "s-%03d.tar")
        with module.ShardWriter(pattern, post=posted.append, mtime=0, **limits) as writer:
            for number in range(10):
                writer.write({"__key__": str(number), "txt": "x" * number})
            state = (writer.count, writer.total, writer.size, writer.shard)
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        said = capsys.readouterr().out.replace(str(folder), "")
        made[module] = files, [name[-9:] for name in posted], said, state
    assert made[ours] == made[theirs]


def test_an_empty_writer_leaves_an_empty_tar(tmp_path):
    for module in (ours, theirs):
        module.ShardWriter(str(tmp_path / f"{module.__name__}-%d.tar"), verbose=0).close()
    left, right = sorted(tmp_path.iterdir())
    assert left.read_bytes() == right.read_bytes() == bytes(10240)


def test_opener_and_closing(tmp_path):
    seen = {}

    def check(name):
        with tarfile.open(tmp_path / name) as tar:  # whole by now, though nobody closed the stream
            seen[name] = tar.getnames()

    writer = ours.ShardWriter(
        "%d.tar",
        maxcount=1,
        post=check,
        verbose=0,
        opener=lambda name: open(tmp_path / name, "wb"),  # noqa: SIM115
    )
    for number in range(3):
        writer.write({"__key__": f"k{number}", "x": b""})
    writer.close()
    writer.close()
    assert seen == {f"{n}.tar": [f"k{n}.x"] for n in range(3)}
    with pytest.raises(ValueError, match="closed"):
        writer.write({"__key__": "x", "x": b""})
    with pytest.raises(TypeError, match=r"help: data-%06d\.tar"):
        ours.ShardWriter("plain.tar", verbose=0)
    with pytest.raises(ValueError, match=r"compress='zst'.*help:"):
        ours.TarWriter(str(tmp_path / "z.tar"), compress="zst")


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_a_writer_that_nobody_closes_ends_its_tar(tmp_path, name):
    path = tmp_path / name
    writer = ours.ShardWriter(str(path).replace("a.", "a%d."), verbose=0, mtime=0)
    for number in range(5):
        writer.write({"__key__": str(number), "x": bytes(1000)})
    with pytest.warns(RuntimeWarning, match=r"was not closed.*help: close\(\)"):
        del writer
    gc.collect()
    with tarfile.open(str(path).replace("a.", "a0.")) as tar:
        assert len(tar.getnames()) == 5
    script = "from shardfeed.wds.writer import TarWriter as W; w = W('b.tar');"
    script += "w.write({'__key__': 'a', 'x': b'1'})"
    made = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert "was not closed" in made.stderr
    with tarfile.open(tmp_path / "b.tar") as tar:
        assert tar.getnames() == ["a.x"]


class OneByOne(io.RawIOBase):
    """A file that takes three bytes at a time."""

    def __init__(self):
        super().__init__()
        self.data = bytearray()

    def writable(self):
        return True

    def write(self, data):
        self.data += bytes(data[:3])
        return min(3, len(data))


def test_a_stream_that_takes_parts_gets_all():
    stream = OneByOne()
    samples = [{"__key__": "a", "bin": bytes(range(256)) * 5}]
    with ours.TarWriter(stream, mtime=0) as writer:
        writer.write(samples[0])
    assert bytes(stream.data) == written(theirs, samples, mtime=0)


def test_tarstream_takes_headers_of_ones_own():
    made = []
    for module in (ours, theirs):
        stream = io.BytesIO()
        with module.TarWriter(stream, mtime=0) as writer:
            info = tarfile.TarInfo("README")
            info.size = 4
            writer.tarstream.addfile(info, io.BytesIO(b"read"))
            writer.write({"__key__": "a", "json": json.loads("[1]")})
        made.append(stream.getvalue())
    assert made[0] == made[1]


def test_every_name_and_signature():
    for name, value in vars(theirs).items():
        if not callable(value) or getattr(value, "__module__", "") != theirs.__name__:
            continue
        mine = getattr(ours, name)
        had, has = inspect.signature(value), inspect.signature(mine)
        assert [(p.name, p.default, p.kind) for p in has.parameters.values()] == [
            (p.name, p.default, p.kind) for p in had.parameters.values()
        ], name
        if inspect.isclass(value):
            for method in vars(value):
                if not method.startswith("_"):
                    assert hasattr(mine, method), (name, method)
    assert set(ours.default_handlers) == set(theirs.default_handlers)
