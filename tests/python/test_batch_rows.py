"""Rows of unequal shape, and samples without a field."""

from __future__ import annotations

import numpy as np
import pytest
import shardfeed
from batches import npy, rows_tar

SHAPES = [(2, 3), (0, 3), (4, 1), (1, 5), (2, 3)]


@pytest.fixture
def unequal(tmp_path):
    """Arrays of SHAPES, and the URL of their shard."""
    rows = [np.arange(np.prod(shape), dtype="f4").reshape(shape) + 1 for shape in SHAPES]
    return rows, rows_tar(tmp_path / "t.tar", ({"x.npy": npy(row)} for row in rows))


def test_error(unequal):
    _, path = unequal
    with pytest.raises(shardfeed.FormatError, match=r"000001\.x\.npy.*ragged"):
        list(shardfeed.Stream(path).batches(10))


def test_offsets(unequal):
    rows, path = unequal
    (batch,) = shardfeed.Stream(path, ragged="offsets").batches(10)
    ragged = batch["x.npy"]
    assert isinstance(ragged, shardfeed.Ragged)
    assert len(ragged) == 5
    assert ragged.values.tolist() == np.concatenate([row.ravel() for row in rows]).tolist()
    assert ragged.offsets.tolist() == [0, 6, 6, 10, 15, 21]
    assert ragged.shapes.tolist() == [list(shape) for shape in SHAPES]
    assert batch.shapes("x.npy").tolist() == ragged.shapes.tolist()
    for found, row in zip(ragged, rows):
        assert found.dtype == "f4"
        assert np.array_equal(found, row)
    assert np.array_equal(ragged[-1], rows[-1])
    assert [row.shape for row in ragged[1:3]] == SHAPES[1:3]
    with pytest.raises(IndexError):
        ragged[5]
    ragged[0][1, 2] = 77  # a view
    assert ragged.values[5] == 77
    with pytest.raises(ValueError, match="read-only"):
        ragged.offsets[0] = 1
    assert repr(ragged) == "<shardfeed.Ragged 5 rows float32>"
    assert batch.column("x.npy").is_ragged


def test_pad(unequal):
    rows, path = unequal
    (batch,) = shardfeed.Stream(path, ragged="pad").batches(10)
    padded = batch["x.npy"]
    assert padded.shape == (5, 4, 5)
    assert batch.shapes("x.npy").tolist() == [list(shape) for shape in SHAPES]
    for found, row in zip(padded, rows):
        wanted = np.zeros((4, 5), "f4")
        wanted[: row.shape[0], : row.shape[1]] = row
        assert np.array_equal(found, wanted)


def test_even_columns_have_no_shapes(tmp_path):
    path = rows_tar(tmp_path / "t.tar", ({"x.npy": npy([n]), "cls": b"1"} for n in range(3)))
    (batch,) = shardfeed.Stream(path).batches(10)
    assert batch.shapes("x.npy") is None
    assert batch.shapes("cls") is None


def test_ragged_numbers(tmp_path):
    rows = [{"x.npy": npy(np.float32(n)), "cls": b"1"} for n in range(3)]
    del rows[1]["x.npy"]
    path = rows_tar(tmp_path / "t.tar", rows)
    (batch,) = shardfeed.Stream(path, ragged="offsets", missing="empty").batches(10)
    found = list(batch["x.npy"])
    assert [row.shape for row in found] == [(), (0,), ()]
    assert (found[0], found[2]) == (0, 2)


@pytest.fixture
def incomplete(tmp_path):
    """Every third sample has no array, every fourth no text."""
    rows = []
    for n in range(24):
        row = {"x.npy": npy([n, n]), "txt": b"text %d" % n, "cls": b"%d" % n}
        if n % 3 == 1:
            del row["x.npy"]
        if n % 4 == 2:
            del row["txt"]
        rows.append(row)
    return rows_tar(tmp_path / "t.tar", rows)


def test_missing_is_an_error(incomplete):
    with pytest.raises(shardfeed.FormatError, match=r"000001.*x\.npy"):
        list(shardfeed.Stream(incomplete).batches(4))


def test_missing_skip(incomplete):
    stream = shardfeed.Stream(incomplete)
    batches = list(stream.batches(5, missing="skip"))
    kept = [n for n in range(24) if n % 3 != 1 and n % 4 != 2]
    assert np.concatenate([batch["cls"] for batch in batches]).tolist() == kept
    assert [len(batch) for batch in batches] == [5, 5, 2]
    assert stream.stats()["passed_over"] == 24 - len(kept)


def test_missing_empty(incomplete):
    (batch,) = shardfeed.Stream(incomplete).batches(24, missing="empty")
    for n in range(24):
        assert batch["x.npy"][n].tolist() == ([0, 0] if n % 3 == 1 else [n, n])
        assert batch["txt"].raw[n] == (b"" if n % 4 == 2 else b"text %d" % n)
        assert batch["txt"][n] == (None if n % 4 == 2 else f"text {n}")


def test_numbers_that_no_sample_has(tmp_path):
    path = rows_tar(tmp_path / "t.tar", [{"txt": b"t"}] * 3)
    decode = "cls:int, score:float"
    (batch,) = shardfeed.Stream(path, decode=decode).batches(3, missing="empty")
    assert (batch["cls"].dtype, batch["score"].dtype) == ("i8", "f8")
    assert batch["cls"].tolist() == batch["score"].tolist() == [0] * 3
    # What array it would be nobody knows.
    with pytest.raises(shardfeed.FormatError, match="not known"):
        list(shardfeed.Stream(path, decode="x:npy").batches(3, missing="empty"))
