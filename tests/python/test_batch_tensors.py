"""Columns of fields with several arrays: TenBin, as webdataset has it too, and safetensors."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import rows_tar, safetensors
from shardfeed.wds import tenbin

TEN_DTYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


def random_array(seed: int, dtype: str, shape: tuple[int, ...] = (3, 0, 2)) -> np.ndarray:
    bits = np.random.default_rng(seed).integers(0, 256, (*shape, np.dtype(dtype).itemsize), "u1")
    if dtype == "?":
        return np.asarray(bits[..., 0] > 127)
    return bits.reshape(-1).view(dtype).reshape(shape)


def ten(*arrays: Any) -> bytes:
    return bytes(tenbin.encode_buffer(list(arrays)))


def one(tmp_path: Path, data: bytes, decode: str, **options: Any) -> Any:
    """The first row of the only column."""
    path = rows_tar(tmp_path / "one.tar", [{"x": data}])
    with shardfeed.Stream(path) as stream:
        batch = next(stream.batches(1, decode=decode, **options))
    (column,) = [name for name in batch if not name.startswith("__")]
    return batch[column][0]


def assert_same(found: np.ndarray, wanted: np.ndarray) -> None:
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (2, 0), (1, 2, 1, 2, 1, 2, 1)])
@pytest.mark.parametrize("dtype", TEN_DTYPES)
def test_arrays_of_tenbin(tmp_path, dtype, shape):
    arrays = [random_array(seed, dtype, shape) for seed in range(3)]
    for part, wanted in enumerate(tenbin.decode_buffer(ten(*arrays))):
        assert_same(one(tmp_path, ten(*arrays), f"x:ten/part={part}"), wanted)
    assert_same(one(tmp_path, ten(arrays[0]), "x:ten"), arrays[0])


def test_what_webdataset_writes(tmp_path):
    theirs = pytest.importorskip("webdataset").tenbin
    for seed in range(60):
        rng = np.random.default_rng(seed)
        arrays = [
            random_array(seed, rng.choice(TEN_DTYPES[:9]), tuple(rng.integers(0, 5, 1 + part)))
            for part in range(rng.integers(1, 5))
        ]
        data = bytes(theirs.encode_buffer(arrays))
        for part, wanted in enumerate(arrays):
            assert_same(one(tmp_path, data, f"x:ten/part={part}"), wanted)


def accepted(act: Any, *arguments: Any) -> Any:
    """What is read, or nothing."""
    try:
        return act(*arguments)
    except (ValueError, OverflowError, shardfeed.FormatError, shardfeed.UnsupportedError):
        return None
    except shardfeed.LimitError as error:
        assert "dimensions" in str(error)
        return None


def damaged_files(data: bytes, count: int, seed: int) -> list[bytes]:
    """Files with a byte of another value, most of them in headers."""
    rng = np.random.default_rng(seed)
    files = []
    for _ in range(count):
        file = bytearray(data)
        file[rng.integers(len(data))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.integers(256)])
        files.append(bytes(file))
    return files


def test_damaged_tenbin_is_what_the_other_reader_makes_of_it(tmp_path):
    """What is read is the same. What only Python reads has chunks that are longer than arrays."""
    arrays = [np.arange(6, dtype="i2").reshape(2, 3), np.ones(3, "f8")]
    data = ten(*arrays)
    read = 0
    for file in damaged_files(data, 1000, 1):
        found = accepted(one, tmp_path, file, "x:ten/part=0")
        wanted = accepted(tenbin.decode_buffer, file)
        if found is not None:
            read += 1
            if wanted is None:  # a name that is not ASCII: names are not looked at here
                named = bytearray(file)
                for header in (16, 160 + 16):
                    named[header + 8 : header + 16] = bytes(8)
                wanted = tenbin.decode_buffer(bytes(named))
            assert_same(found, wanted[0])
        elif wanted is not None:
            lengths = [len(chunk) for chunk in tenbin.decode_chunks(file)]
            sizes = [array.nbytes for array in wanted]
            assert lengths[1::2] != sizes or lengths[::2] != [24 + 8 * a.ndim for a in wanted], file
    assert read > 100  # of elements, names and what fills chunks up


def test_cut_tenbin_is_an_error(tmp_path):
    data = ten(np.arange(6, dtype="i2"), np.ones(3, "f8"))
    for size in range(len(data)):
        assert accepted(one, tmp_path, data[:size], "x:ten/part=1") is None


def test_errors_say_where_they_are_and_what_there_is(tmp_path):
    rows = [{"x": ten(np.arange(3))}, {"x": ten(np.arange(3), np.arange(3))}]
    path = rows_tar(tmp_path / "t.tar", rows)
    with shardfeed.Stream(path) as stream, pytest.raises(shardfeed.FormatError) as info:
        list(stream.batches(2, decode="x:ten"))
    for part in ("t.tar", "000001.x", "has 2 arrays", "ten/part=0 to ten/part=1"):
        assert part in str(info.value)
    rows = [{"x": safetensors({"a": np.arange(3), "b": np.arange(3)})}]
    path = rows_tar(tmp_path / "s.tar", rows)
    with shardfeed.Stream(path) as stream, pytest.raises(shardfeed.FormatError) as info:
        list(stream.batches(2, decode="x:safetensors/tensor=c"))
    for part in ("s.tar", "000000.x", 'no tensor "c"', "a, b"):
        assert part in str(info.value)
    with shardfeed.Stream(path, on_error="skip_sample") as stream:
        assert list(stream.batches(2, decode="x:safetensors")) == []


def test_columns_of_both_in_a_batch(tmp_path):
    rows = [
        {
            "0.ten": ten(np.arange(4) + n, np.full((2, 2), n, "f4")),
            "model.safetensors": safetensors({"enc/w": np.full(3, n, "i1"), "b": np.zeros(n)}),
            "z.ten.gz": gzip.compress(ten(np.array([n], "u4"))),
        }
        for n in range(5)
    ]
    path = rows_tar(tmp_path / "t.tar", rows)
    decode = (
        "0.ten:ten/part=0, 0.ten:ten/part=1, model.safetensors:safetensors/tensor=enc/w, "
        "model.safetensors:safetensors/tensor=b, z.ten.gz:ten"
    )
    with shardfeed.Stream(path) as stream:
        (batch,) = stream.batches(5, decode=decode, ragged="offsets")
    assert [row.tolist() for row in batch["0.ten.0"]] == [list(range(n, n + 4)) for n in range(5)]
    assert [row.tolist() for row in batch["0.ten.1"]] == [[[n, n], [n, n]] for n in range(5)]
    assert [row.tolist() for row in batch["model.safetensors.enc/w"]] == [[n] * 3 for n in range(5)]
    assert [len(row) for row in batch["model.safetensors.b"]] == list(range(5))
    assert [row.tolist() for row in batch["z.ten.gz"]] == [[n] for n in range(5)]
    # By the suffix alone they stay bytes.
    with shardfeed.Stream(path) as stream:
        (batch,) = stream.batches(5)
    assert bytes(batch["0.ten"][2]) == rows[2]["0.ten"]
    assert bytes(batch["model.safetensors"][2]) == rows[2]["model.safetensors"]


SAFE_DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8"]


def test_what_the_package_safetensors_writes(tmp_path):
    theirs = pytest.importorskip("safetensors.numpy")
    for seed in range(60):
        rng = np.random.default_rng(seed)
        arrays = {
            f"layer.{part}": random_array(
                seed, rng.choice(SAFE_DTYPES), tuple(rng.integers(0, 5, rng.integers(0, 4)))
            )
            for part in range(rng.integers(1, 6))
        }
        for data in (theirs.save(arrays, {"step": "1"}), safetensors(arrays)):
            for name, wanted in arrays.items():
                assert_same(one(tmp_path, data, f"x:safetensors/tensor={name}"), wanted)
    assert_same(one(tmp_path, theirs.save({"a b": wanted}), "x:safetensors"), wanted)


def header_of(text: bytes, elements: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text + elements


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize("dtype", ["F8_E4M3", "F8_E5M2", "F8_E8M0", "F6_E2M3", "F6_E3M2", "F4"])
def test_sizes_of_dtypes_that_no_column_has(tmp_path, dtype):
    """They are those of the package: a tensor behind one of them is read by both or neither."""
    theirs = pytest.importorskip("safetensors")
    for size in range(4, 10):
        header = {"a": entry(dtype, [8], 0, size), "b": entry("U8", [2], size, size + 2)}
        file = header_of(json.dumps(header).encode(), bytes(size) + b"xy")
        try:
            theirs.deserialize(file)
            sound = True
        except theirs.SafetensorError:
            sound = False
        assert (accepted(one, tmp_path, file, "x:safetensors/tensor=b") is not None) == sound, size
        assert sound == (size == {"F8": 8, "F6": 6, "F4": 4}[dtype[:2]])


def test_damaged_safetensors_are_what_the_package_makes_of_them(tmp_path):
    """What is read is the same. The package takes some headers that are refused here."""
    theirs = pytest.importorskip("safetensors")
    arrays = {"a": np.arange(6, dtype="i2").reshape(2, 3), "b": np.ones(2, "f8")}
    data = safetensors(arrays)
    lenient = ("is there twice", 'has the unknown "')
    read = 0
    for file in damaged_files(data, 1000, 2):
        try:
            wanted = dict(theirs.deserialize(file)).get("a")
        except theirs.SafetensorError:
            wanted = None
        try:
            found = one(tmp_path, file, "x:safetensors/tensor=a")
        except shardfeed.Error as error:
            assert wanted is None or any(text in str(error) for text in lenient), (error, file)
            continue
        read += 1
        assert wanted is not None, file
        assert list(found.shape) == wanted["shape"]
        assert found.tobytes() == bytes(wanted["data"])
    assert read > 100


def test_a_cut_safetensors_is_an_error(tmp_path):
    data = safetensors({"a": np.arange(6, dtype="i2"), "b": np.ones(2)})
    for size in range(len(data)):
        assert accepted(one, tmp_path, data[:size], "x:safetensors/tensor=a") is None


def test_bfloat16(tmp_path):
    values = np.array([1.5, -2, 3e38], "f4").view("u4") >> 16
    header = json.dumps({"w": entry("BF16", [3], 0, 6)}).encode()
    found = one(tmp_path, header_of(header, values.astype("<u2").tobytes()), "x:safetensors")
    assert (found.view("u2") == values).all()


def test_large_fields_in_every_way_to_read_them(tmp_path):
    """A megabyte: in a stream, by number, of one sample, compressed shards."""
    array = np.random.default_rng(0).random((512, 256))
    data = {"t": ten(array), "s": safetensors({"w": array})}
    path = rows_tar(tmp_path / "t.tar", [data] * 3)
    packed = tmp_path / "t.tar.gz"
    packed.write_bytes(gzip.compress(Path(path).read_bytes(), 1))
    decode = "t:ten, s:safetensors/tensor=w"
    for url in (path, str(packed)):
        with shardfeed.Stream(url) as stream:
            (batch,) = stream.batches(3, decode=decode)
        with shardfeed.Dataset(url, decode=decode) as dataset:
            by_number = dataset.batch([2])
            sample = dataset[1].decode(decode)
        for found in (batch["t"][2], batch["s.w"][0], by_number["t"][0], by_number["s.w"][0]):
            assert np.array_equal(found, array)
        assert np.array_equal(sample["s.w"], array)
