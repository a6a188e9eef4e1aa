"""The encoders by suffix, compared with those of webdataset: the same bytes where a format has one
way to say something, else the same value.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle

import numpy as np
import pytest
import shardfeed
from shardfeed._encoders import ENCODERS, encoded

writer = pytest.importorskip("webdataset.writer")

ARRAY = np.arange(24, dtype="<f4").reshape(2, 3, 4)
PIXELS = np.random.default_rng(1).integers(0, 256, (8, 9, 3), dtype=np.uint8)
NUMBERS = ("cls", "cls2", "class", "count", "index", "inx", "id")
TEXTS = ("txt", "text", "transcript", "html", "htm", "json", "cls")
OBJECTS = ({"a": [1, 2.5, None]}, "ü", [], 3)
SAME = [
    *((suffix, value) for suffix in NUMBERS for value in (0, 7, -1, 10**20)),
    *((suffix, "grün\n") for suffix in TEXTS),
    *((suffix, value) for suffix in ("json", "jsn") for value in OBJECTS),
    *((suffix, value) for suffix in ("pyd", "pickle") for value in (("p", 1), {"a": {1}})),
    *(("npy", value) for value in (ARRAY, np.zeros(0), np.float32(3), np.array(["a", "ß"]))),
    *((suffix, value) for suffix in ("ten", "tenbin", "tb")
      for value in (ARRAY, [ARRAY, np.arange(3)])),
    *((suffix, PIXELS) for suffix in ("png", "ppm", "tiff", "tif")),
    *((suffix, PIXELS[:, :, 0]) for suffix in ("png", "tiff")),
    *((suffix, PIXELS) for suffix in ("jpg", "jpeg", "img", "image")),
    ("bin", b"bytes"), ("seg.PNG", PIXELS), ("a.b.cls", 3),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), SAME)
def test_the_same_bytes_as_webdataset(field, value):
    theirs = writer.encode_based_on_extension1(value, field, writer.default_handlers)
    assert bytes(encoded(field, value, ENCODERS)) == theirs


@pytest.mark.parametrize("suffix", ["mp", "msgpack", "msg"])
def test_the_same_msgpack(suffix):
    pytest.importorskip("msgpack")
    for value in ({"a": [1, -2, 2.5, None, b"raw"]}, [], "ü"):
        theirs = writer.default_handlers[suffix](value)
        assert encoded(suffix, [value], ENCODERS) == writer.default_handlers[suffix]([value])
        assert value == "ü" or encoded(suffix, value, ENCODERS) == theirs


def test_the_same_npz():
    ours = np.load(io.BytesIO(encoded("npz", {"a": ARRAY, "b": ARRAY[0]}, ENCODERS)))
    theirs = np.load(io.BytesIO(writer.default_handlers["npz"]({"a": ARRAY, "b": ARRAY[0]})))
    assert sorted(ours) == sorted(theirs) == ["a", "b"]
    assert all((ours[name] == theirs[name]).all() for name in ours)


def test_the_same_cbor():
    pytest.importorskip("cbor2")
    cbor = pytest.importorskip("cbor")
    assert cbor.loads(encoded("cbor", {"a": [1, 2.5]}, ENCODERS)) == {"a": [1, 2.5]}


def test_the_same_torch_value():
    torch = pytest.importorskip("torch")
    value = {"a": torch.arange(5), "b": [1]}
    for data in (encoded("pth", value, ENCODERS), writer.default_handlers["pth"](value)):
        loaded = torch.load(io.BytesIO(data), weights_only=True)
        assert loaded["a"].tolist() == [0, 1, 2, 3, 4]
        assert loaded["b"] == [1]


@pytest.mark.parametrize(
    ("field", "value"),
    [("txt.gz", "packed"), ("json.gz", {"a": 1}), ("cls.gz", 7), ("bin.gz", b"raw"),
     ("pyd.gz", (1, 2)), ("txt.GZ", "packed")],
)  # fmt: skip
def test_gz_behind_a_suffix_compresses(field, value):
    theirs = writer.encode_based_on_extension1(value, field.lower(), writer.default_handlers)
    ours = encoded(field, value, ENCODERS)
    assert gzip.decompress(ours) == gzip.decompress(theirs)
    assert ours == encoded(field, value, ENCODERS)
    # Unlike there, what is compressed already is not compressed again.
    assert encoded(field, ours, ENCODERS) == ours


def test_no_suffix_of_webdataset_is_missing():
    assert set(writer.default_handlers) <= set(ENCODERS)


def test_floats_of_images_are_rounded_and_checked():
    # Where webdataset truncates: at most one step of 255 apart.
    from PIL import Image

    values = np.random.default_rng(2).random((6, 7, 3))
    ours, theirs = (
        np.asarray(Image.open(io.BytesIO(data))).astype(int)
        for data in (encoded("png", values, ENCODERS), writer.default_handlers["png"](values))
    )
    assert (ours == np.rint(values * 255)).all()
    assert 0 <= (ours - theirs).min() <= (ours - theirs).max() <= 1
    with pytest.raises(shardfeed.UsageError, match="from 0 to 1"):
        encoded("png", values + 1, ENCODERS)


@pytest.mark.parametrize(
    ("field", "value"), [("cls", 1.5), ("cls", None), ("xyz", 1), ("npy", np.array([object()]))]
)
def test_what_would_be_misread_is_refused(field, value):
    with pytest.raises(shardfeed.UsageError, match="help: "):
        encoded(field, value, ENCODERS)


def test_without_a_table_bytes_alone_are_taken():
    assert encoded("txt.gz", b"as it is", None) == b"as it is"
    with pytest.raises(shardfeed.UsageError, match="not bytes"):
        encoded("json", {}, None)


def test_threads_encode_the_same(tmp_path):
    samples = [
        {"__key__": f"{i}", "json": {"i": i}, "cls": i, "npy": ARRAY + i, "jpg": PIXELS}
        for i in range(20)
    ]
    for threads in (0, 3):
        with shardfeed.Writer(tmp_path / f"{threads}.tar", encode_threads=threads) as shards:
            shards.write_all(samples)
    data = (tmp_path / "0.tar").read_bytes()
    assert data == (tmp_path / "3.tar").read_bytes()
    for sample, read in zip(samples, shardfeed.Stream(str(tmp_path / "0.tar")), strict=True):
        assert json.loads(bytes(read["json"])) == sample["json"]
        assert pickle.loads(pickle.dumps(bytes(read["cls"]))) == b"%d" % sample["cls"]
