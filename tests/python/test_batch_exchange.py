"""Batches in other packages: DLPack, Arrow, JAX. Each is skipped without its package."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys

import numpy as np
import pytest
import shardfeed
from batches import DTYPES, npy, ramps, rows_tar


@pytest.fixture
def ragged(tmp_path):
    """Ragged arrays, texts, bytes and numbers."""
    rows = [
        {
            "x.npy": npy(np.arange(2 * n, dtype="f4").reshape(n, 2)),
            "txt": b"t%d" % n,
            "bin": bytes([n]) * n,
            "cls": b"%d" % n,
        }
        for n in range(5)
    ]
    (batch,) = shardfeed.Stream(rows_tar(tmp_path / "t.tar", rows), ragged="offsets").batches(9)
    return batch


# ---- DLPack ----


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_takes_columns(even, dtype):
    column = even.column(f"{dtype}.npy")
    assert column.__dlpack_device__() == (1, 0)
    array = np.from_dlpack(column)
    wanted = even[f"{dtype}.npy"]
    assert array.ctypes.data == wanted.ctypes.data
    assert array.shape == wanted.shape
    if dtype != "?" or array.dtype == bool:  # before DLPack 1.0 a bool is uint8
        assert array.dtype == wanted.dtype
    assert array.tolist() == wanted.tolist()
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        assert array.flags.writeable


def test_capsules_keep_the_batch_and_let_it_go(tmp_path):
    stream = shardfeed.Stream(ramps(tmp_path / "t.tar", 2000, 4096), memory="8MiB")
    kept = []
    addresses = set()
    for number, batch in enumerate(stream.batches(10)):
        column = batch.column("x.npy")
        addresses.add(batch["x.npy"].ctypes.data)
        column.__dlpack__()  # nobody takes these two
        column.__dlpack__(max_version=(1, 0))
        if number % 50 == 7:
            kept.append((number, np.from_dlpack(column)))
    del batch, column
    stream.close()
    gc.collect()
    for number, array in kept:
        assert array[:, 0].tolist() == list(range(10 * number, 10 * number + 10))
    assert len(addresses) < 120  # memory was used again


def test_versions_devices_and_copies(even):
    column = even.column("f4.npy")
    assert "dltensor_versioned" in repr(column.__dlpack__(max_version=(1, 1)))
    assert "dltensor_versioned" not in repr(column.__dlpack__(max_version=(0, 8)))
    assert "dltensor_versioned" not in repr(column.__dlpack__())
    with pytest.raises(BufferError):
        column.__dlpack__(dl_device=(2, 0))
    column.__dlpack__(dl_device=(1, 0), copy=False)

    class Copied:
        def __dlpack__(self, **options: object) -> object:
            return column.__dlpack__(copy=True)

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    copy = np.from_dlpack(Copied())
    even["f4.npy"][:] = 99
    assert copy[1, 0, 0] == 1


def test_columns_of_copies(even):
    copy = pickle.loads(pickle.dumps(even))
    array = np.from_dlpack(copy.column("f4.npy"))
    assert array.tolist() == even["f4.npy"].tolist()
    assert array.ctypes.data == copy["f4.npy"].ctypes.data


JAX_PROGRAM = """
import gc, sys
import jax, numpy
import shardfeed

(batch,) = shardfeed.Stream(sys.argv[1], decode="f4.npy, i4.npy").batches(9)
for name in batch:
    for what in (batch[name], batch.column(name)):
        array = jax.dlpack.from_dlpack(what)
        assert array.dtype == batch[name].dtype, array.dtype
        assert array.shape == (5, 2, 3), array.shape
        assert array.unsafe_buffer_pointer() == batch[name].ctypes.data
        assert array.tolist() == batch[name].tolist()
del batch, what
gc.collect()
assert array[4].tolist() == [[4] * 3] * 2
print("passed")
"""


@pytest.mark.slow
def test_jax(even):
    # In a process of its own: JAX starts threads, and other tests fork.
    pytest.importorskip("jaxlib")
    program = [sys.executable, "-c", JAX_PROGRAM, even.urls[0]]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.stdout == "passed\n", done.stderr


# ---- Arrow ----


def test_arrow(ragged):
    pa = pytest.importorskip("pyarrow")
    table = ragged.arrow()
    assert isinstance(table, pa.RecordBatch)
    table.validate(full=True)
    assert table.num_rows == 5
    assert [name for name in table.schema.names if not name.endswith(".shape")] == [
        *ragged.keys(),
        "__key__",
        "__url__",
    ]
    assert table["cls"].to_pylist() == [0, 1, 2, 3, 4]
    assert table["txt"].to_pylist() == ["t0", "t1", "t2", "t3", "t4"]
    assert table["bin"].to_pylist() == [bytes([n]) * n for n in range(5)]
    assert table["__key__"].to_pylist() == ragged.sample_keys
    assert table["__url__"].to_pylist() == ragged.urls
    assert table["x.npy"].to_pylist() == [list(range(2 * n)) for n in range(5)]
    assert table["x.npy.shape"].to_pylist() == [[n, 2] for n in range(5)]
    assert table.schema.field("txt").type == pa.large_string()


def test_arrow_tensors_share_memory(even):
    pa = pytest.importorskip("pyarrow")
    table = even.arrow()
    for dtype in set(DTYPES) - {"?", "c8", "c16"}:
        column = table[f"{dtype}.npy"]
        assert isinstance(column.type, pa.FixedShapeTensorType)
        tensor = column.to_numpy_ndarray()
        assert tensor.dtype == dtype
        assert tensor.tolist() == even[f"{dtype}.npy"].tolist()
        assert tensor.ctypes.data == even[f"{dtype}.npy"].ctypes.data
    assert table["?.npy"].to_pylist()[1] == [1] * 6  # a bool is a byte
    assert table["c8.npy"].to_pylist()[3][0] == [3, 0]
    del even
    gc.collect()
    assert table["i4.npy"].to_pylist()[4] == [4] * 6


def test_arrow_capsules_that_nobody_takes(even):
    for _ in range(3):
        schema, array = even.__arrow_c_array__()
        assert "arrow_schema" in repr(schema)
        assert "arrow_array" in repr(array)
        del schema, array
    assert even["i4.npy"][4, 0, 0] == 4


def test_a_copy_has_no_arrow_form(even):
    with pytest.raises(shardfeed.UnsupportedError, match="pickled"):
        pickle.loads(pickle.dumps(even)).__arrow_c_array__()


def test_without_pyarrow(even, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pyarrow"):
        even.arrow()
