"""Hooks with a name: weights of PyTorch, tables of Parquet and Arrow; pickles that run nothing."""

from __future__ import annotations

import io
import os
import pickle
import sys
import types
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import rows_tar

CUTS = 150


def batch_of(tmp_path: Path, datas: list[bytes], hook: str, **options: Any) -> shardfeed.Batch:
    path = rows_tar(tmp_path / "t.tar", [{"x": data} for data in datas])
    with shardfeed.Stream(path, **options) as stream:
        (batch,) = stream.batches(len(datas), hooks={"x": hook})
    return batch


def refused(tmp_path: Path, data: bytes, hook: str, good: bytes) -> str:
    """The message about the second of two fields."""
    batch = batch_of(tmp_path, [good, data], hook)
    with pytest.raises(shardfeed.FormatError) as info:
        batch["x"]
    message = str(info.value)
    assert "t.tar: 000001.x: " in message
    assert "; help: " in message
    return message


def cuts(data: bytes) -> list[bytes]:
    return [data[:size] for size in range(0, len(data), max(1, len(data) // CUTS))]


# ---- Weights ----


@pytest.fixture
def torch() -> Any:
    torch = pytest.importorskip("torch")
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
        pytest.skip("older than 2.6")
    return torch


def saved(torch: Any, value: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def test_weights(tmp_path, torch):
    values = [
        {"w": torch.arange(6.0).reshape(2, 3), "step": n, "names": ["a", "b"]} for n in range(3)
    ]
    path = rows_tar(tmp_path / "t.tar", [{"a.pth": saved(torch, value)} for value in values])
    with shardfeed.Stream(path, secure=True) as stream:
        (batch,) = stream.batches(3, hooks={"pth": "weights"})
    for found, value in zip(batch["a.pth"], values):
        assert torch.equal(found["w"], value["w"])
        assert found["step"] == value["step"]
        assert found["names"] == ["a", "b"]
    with shardfeed.Dataset(path) as data:
        assert data.batch([1], hooks={"a.pth": "weights"})["a.pth"][0]["step"] == 1


class Malicious:
    """Unpickled without care, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("form", ["zip", "old", "pickle", "within"])
def test_a_malicious_pickle_is_refused_and_not_run(tmp_path, torch, form):
    trace = tmp_path / "was_here"
    good = saved(torch, {"w": torch.zeros(2)})
    if form == "pickle":
        bad = pickle.dumps(Malicious(trace))
    elif form == "within":
        bad = saved(torch, {"w": torch.zeros(2), "more": [Malicious(trace)]})
    else:
        file = io.BytesIO()
        torch.save(Malicious(trace), file, _use_new_zipfile_serialization=form == "zip")
        bad = file.getvalue()
    assert "no weights that can be loaded" in refused(tmp_path, bad, "weights", good)
    assert not trace.exists()
    # It is one: the hook that unpickles makes the file.
    if form == "pickle":
        assert batch_of(tmp_path, [bad], "pickle")["x"] == [None]
        assert trace.exists()


def test_weights_that_are_cut_or_something_else(tmp_path, torch):
    good = saved(torch, {"w": torch.arange(1000.0)})
    for data in (*cuts(good), b"no weights", bytes(1000)):
        refused(tmp_path, data, "weights", good)


def test_an_older_pytorch_is_refused(tmp_path, monkeypatch):
    old = types.ModuleType("torch")
    old.__version__ = "2.5.1+cpu"
    monkeypatch.setitem(sys.modules, "torch", old)
    with pytest.raises(shardfeed.UnsupportedError, match=r"PyTorch 2\.6.*2\.5\.1"):
        batch_of(tmp_path, [b"x"], "weights")["x"]


# ---- Tables ----


def tables(pyarrow: Any) -> list[Any]:
    rng = np.random.default_rng(0)
    return [
        pyarrow.table(
            {
                "n": rng.integers(0, 9, 10 * n),
                "text": [f"row {row} ♥" for row in range(10 * n)],
                "lists": [list(range(row % 4)) for row in range(10 * n)],
            }
        )
        for n in range(1, 4)
    ]


def written(pyarrow: Any, table: Any, form: str, compression: str | None = None) -> bytes:
    sink = pyarrow.BufferOutputStream()
    if form == "parquet":
        pyarrow.parquet.write_table(table, sink, compression=compression or "NONE")
        return sink.getvalue().to_pybytes()
    new = pyarrow.ipc.new_file if form == "file" else pyarrow.ipc.new_stream
    options = pyarrow.ipc.IpcWriteOptions(compression=compression)
    with new(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=7)
    return sink.getvalue().to_pybytes()


@pytest.fixture
def pyarrow() -> Any:
    pytest.importorskip("pyarrow.parquet")
    return pytest.importorskip("pyarrow")


FORMS = ["parquet", "file", "stream"]


@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("form", FORMS)
def test_tables(tmp_path, pyarrow, form, compression):
    made = tables(pyarrow)
    hook = "parquet" if form == "parquet" else "arrow"
    datas = [written(pyarrow, table, form, compression) for table in made]
    found = batch_of(tmp_path, datas, hook, secure=True)["x"]
    assert [type(table) for table in found] == [pyarrow.Table] * 3
    assert [table.to_pydict() for table in found] == [table.to_pydict() for table in made]
    empty = written(pyarrow, made[0].slice(0, 0), form)
    assert batch_of(tmp_path, [empty], hook)["x"][0].num_rows == 0


def test_feather(tmp_path, pyarrow):
    feather = pytest.importorskip("pyarrow.feather")
    table = tables(pyarrow)[0]
    feather.write_feather(table, tmp_path / "f.feather")
    data = (tmp_path / "f.feather").read_bytes()
    assert batch_of(tmp_path, [data], "arrow")["x"][0].to_pydict() == table.to_pydict()


@pytest.mark.parametrize("form", FORMS)
def test_a_table_that_is_cut_or_something_else(tmp_path, pyarrow, form):
    hook = "parquet" if form == "parquet" else "arrow"
    good = written(pyarrow, tables(pyarrow)[2], form)
    for data in (*cuts(good), good[:-1], good[:-8], good[:-9], b"no table", bytes(1000)):
        refused(tmp_path, data, hook, good)


def test_a_stream_that_is_cut_behind_a_message_is_an_error(tmp_path, pyarrow):
    """Also where the last numbers of the message look like the end mark."""
    table = pyarrow.table({"n": np.array([7, 7, -1, 0] * 4, "i4")})
    sink = pyarrow.BufferOutputStream()
    ends = []
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        for _ in range(3):
            writer.write_table(table)
            ends.append(sink.tell())
    data = sink.getvalue().to_pybytes()
    assert data[: ends[0]].endswith(b"\xff\xff\xff\xff\0\0\0\0")
    for end in ends:
        assert "no end mark" in refused(tmp_path, data[:end], "arrow", data)
    assert batch_of(tmp_path, [data], "arrow")["x"][0].num_rows == 48
    assert "no end mark" in refused(tmp_path, data + b"more", "arrow", data)


@pytest.mark.parametrize("form", FORMS)
def test_damaged_tables_are_errors_or_tables(tmp_path, pyarrow, form):
    """None crashes, here or when the table is read."""
    hook = "parquet" if form == "parquet" else "arrow"
    good = written(pyarrow, tables(pyarrow)[1], form)
    rng = np.random.default_rng(3)
    errors = 0
    for _ in range(300):
        data = bytearray(good)
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        batch = batch_of(tmp_path, [bytes(data)], hook)
        try:
            batch["x"][0].combine_chunks()
        except shardfeed.FormatError:
            errors += 1
    assert errors > 10


# ---- All of them ----


def test_missing_fields_are_none(tmp_path, pyarrow):
    rows = [{"x": written(pyarrow, tables(pyarrow)[0], "file"), "y": b"1"}, {"y": b"2"}]
    path = rows_tar(tmp_path / "t.tar", rows)
    with shardfeed.Stream(path, missing="empty") as stream:
        (batch,) = stream.batches(2, decode="x:bytes, y:bytes", hooks={"x": "arrow"})
    assert batch["x"][0].num_rows == 10
    assert batch["x"][1] is None


@pytest.mark.parametrize(("hook", "package"), [("weights", "torch"), ("parquet", "pyarrow")])
def test_a_package_that_is_not_there(tmp_path, monkeypatch, hook, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=f"help: pip install {package}"):
        batch_of(tmp_path, [b"x"], hook)["x"]


def test_an_unknown_name_lists_those_that_are_known(tmp_path):
    with pytest.raises(shardfeed.UsageError, match="weights, parquet, arrow, pickle"):
        batch_of(tmp_path, [b"x"], "torch")


def test_a_zip_file_of_something_else_is_no_weights(tmp_path, torch):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as other:
        other.writestr("a.txt", "b")
    refused(tmp_path, file.getvalue(), "weights", saved(torch, {}))
