"""Columns of batches against what numpy wrote and reads."""

from __future__ import annotations

import numpy as np
import pytest
import shardfeed
from batches import DTYPES, npy, npz, rows_tar


def values(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Numbers of any kind, extremes among them."""
    bits = np.random.default_rng(seed).integers(0, 256, (*shape, np.dtype(dtype).itemsize), "u1")
    if dtype == "?":
        return (bits[..., 0] > 127).reshape(shape)
    return np.ascontiguousarray(bits).view(dtype).reshape(shape)


def only_batch(path: str, **options: object) -> shardfeed.Batch:
    (batch,) = shardfeed.Stream(path).batches(100, **options)
    return batch


def assert_same(found: np.ndarray, wanted: np.ndarray) -> None:
    assert found.dtype == wanted.dtype.newbyteorder("=")
    assert found.shape == wanted.shape
    # NaN and its payload included
    assert found.tobytes() == wanted.astype(found.dtype, copy=False).tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("endian", ["<", ">"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_order_and_endianness(tmp_path, dtype, endian, order):
    rows = [values(dtype, (3, 5, 2), seed) for seed in range(7)]
    stored = [np.array(row.astype(endian + row.dtype.str[1:]), order=order) for row in rows]
    assert stored[0].flags.f_contiguous == (order == "F")
    path = rows_tar(tmp_path / "t.tar", ({"x.npy": npy(row)} for row in stored))
    batch = only_batch(path)
    native = np.stack([np.ascontiguousarray(row) for row in rows])
    found = batch["x.npy"]
    assert found.dtype == native.dtype
    assert found.tobytes() == native.tobytes()
    assert found.shape == (7, 3, 5, 2)
    assert found.flags.c_contiguous
    assert found.flags.aligned
    assert found.ctypes.data % 64 == 0


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (2, 1, 2, 1, 2, 1, 2)])
def test_every_version_and_shape(tmp_path, version, shape):
    rows = [values("f4", shape, seed) for seed in range(3)]
    path = rows_tar(tmp_path / "t.tar", ({"x.npy": npy(row, version)} for row in rows))
    assert_same(only_batch(path)["x.npy"], np.stack(rows))


def test_members_of_npz(tmp_path):
    rows = [{"image": values("u1", (4, 4), n), "box": values("f8", (4,), n)} for n in range(5)]
    path = rows_tar(tmp_path / "t.tar", ({"npz": npz(**row)} for row in rows))
    for name in rows[0]:
        batch = only_batch(path, decode=f"npz:npz/{name}")
        assert_same(batch["npz"], np.stack([row[name] for row in rows]))
    with pytest.raises(shardfeed.FormatError, match="mask"):
        only_batch(path, decode="npz:npz/mask")


def test_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    import io

    pixels = [values("u1", (5, 4, 3), n) for n in range(3)]
    rows = []
    for array in pixels:
        file = io.BytesIO()
        image.fromarray(array).save(file, "png")
        rows.append({"png": file.getvalue()})
    path = rows_tar(tmp_path / "t.tar", rows)
    assert_same(only_batch(path)["png"], np.stack(pixels))
    channels_first = np.stack(pixels).transpose(0, 3, 1, 2)
    assert_same(only_batch(path, decode="png:image/rgb8/chw")["png"], channels_first)
    floats = only_batch(path, decode="png:image/rgb")["png"]
    assert floats.dtype == "f4"
    assert np.abs(floats - np.stack(pixels) / 255).max() < 1e-6
    assert only_batch(path, decode="png:image/l8/resize=3x2")["png"].shape == (3, 2, 3)
    (sample, *_) = shardfeed.Stream(path)
    assert_same(sample.array("png"), pixels[0])


def test_numbers_as_text(tmp_path):
    texts = [b"3", b" -7\n", b"9223372036854775807"]
    path = rows_tar(
        tmp_path / "t.tar", ({"cls": text, "score": b"1e3", "id": b"5"} for text in texts)
    )
    batch = only_batch(path, decode="cls, score:float, id:float")
    assert_same(batch["cls"], np.array([3, -7, 2**63 - 1]))
    assert_same(batch["score"], np.array([1e3] * 3))
    assert_same(batch["id"], np.array([5.0] * 3))


def test_floats_are_those_of_python(tmp_path):
    texts = [
        "1e-400", "1e400", "-1e-400", "-1e400", "0." + "0" * 400 + "1", "1" + "0" * 400, "4.9e-324",
        "1" + "0" * 400 + "e-395", "0." + "0" * 400 + "1e401", "1e-99999999999999999999", "0e999",
        "1e99999999999999999999", "inf", "-inf", "1.7976931348623157e308", "+2.5", ".5", "5.",
        "1.8e308", "2e-324", "3e-324",
    ]  # fmt: skip
    path = rows_tar(tmp_path / "t.tar", ({"x": text.encode()} for text in texts))
    found = only_batch(path, decode="x:float")["x"]
    for text, number in zip(texts, found):
        assert (number, np.signbit(number)) == (float(text), np.signbit(float(text))), text
    for text in ("1e", "1e400x", "x1e400", "1e400.0", "", "1_0"):
        wrong = rows_tar(tmp_path / "w.tar", [{"x": text.encode()}])
        with pytest.raises(shardfeed.FormatError, match="is not a number of float64"):
            only_batch(wrong, decode="x:float")
    large = rows_tar(tmp_path / "l.tar", [{"x": b"9223372036854775808"}])
    with pytest.raises(shardfeed.FormatError, match="does not fit"):
        only_batch(large, decode="x:int")


@pytest.mark.parametrize("what", [np.array([object()]), np.array(["text"]), np.zeros(2, "i4,f4")])
def test_what_has_no_numbers_is_unsupported(tmp_path, what):
    import io

    file = io.BytesIO()
    np.save(file, what, allow_pickle=True)
    path = rows_tar(tmp_path / "t.tar", [{"x.npy": file.getvalue()}])
    with pytest.raises(shardfeed.UnsupportedError, match=r"000000\.x\.npy"):
        only_batch(path)


def test_mapping_of_columns_and_length_of_rows(tmp_path):
    rows = [{"x.npy": npy([n, n]), "cls": b"%d" % n, "txt": b"t"} for n in range(3)]
    batch = only_batch(rows_tar(tmp_path / "t.tar", rows))
    assert len(batch) == 3
    assert list(batch) == batch.keys() == ["x.npy", "cls", "txt"]
    assert [name for name, _ in batch.items()] == batch.keys()
    assert batch.values()[1] is batch["cls"]
    assert dict(batch)["cls"].tolist() == [0, 1, 2]
    assert "cls" in batch
    assert "jpg" not in batch
    assert batch.get("jpg") is None
    assert batch.get("jpg", 5) == 5
    with pytest.raises(KeyError, match=r"'jpg'.*'x\.npy', 'cls', 'txt'"):
        batch["jpg"]
    assert repr(batch) == (
        "<shardfeed.Batch 3 rows x.npy: int64 (3, 2), cls: int64 (3,), txt: text>"
    )
    column = batch.column("x.npy")
    assert (column.kind, column.dtype, column.shape, column.row_ndim) == (
        "array",
        "int64",
        (3, 2),
        1,
    )
    assert column.offsets is None
    assert column.shapes is None
    assert not column.is_ragged


def test_keys_and_urls(tmp_path):
    names = ["a/é", "b\udcff", "c"]
    from conftest import write_tar

    paths = [
        write_tar(tmp_path / f"{n}.tar", [(f"{name}.cls", b"1") for name in names])
        for n in range(2)
    ]
    (batch,) = shardfeed.Stream(paths).batches(100)
    assert batch.sample_keys == names * 2
    assert batch.urls == [str(paths[0])] * 3 + [str(paths[1])] * 3
    assert list(batch["__key__"]) == batch.sample_keys
    assert batch["__url__"][-1] == str(paths[1])


def test_alternatives_have_the_first_name(tmp_path):
    rows = [{"a.npy": npy([1])}, {"b.npy": npy([2])}]
    batch = only_batch(rows_tar(tmp_path / "t.tar", rows), decode="a.npy;b.npy")
    assert batch["a.npy"].tolist() == [[1], [2]]


def test_bad_decode_points_at_the_character(tmp_path):
    stream = shardfeed.Stream(rows_tar(tmp_path / "t.tar", [{"cls": b"1"}]))
    with pytest.raises(shardfeed.UsageError, match=r'character 5: .*"cls: >>> number"'):
        stream.batches(2, decode="cls:number")
    assert next(stream.batches(2, decode="cls:int"))["cls"].tolist() == [1]
