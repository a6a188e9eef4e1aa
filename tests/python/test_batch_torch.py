"""Batches as PyTorch tensors, and in its DataLoader. Skipped without PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import shardfeed
from batches import DTYPES, npy, ramps, rows_tar

pytestmark = pytest.mark.slow


def test_tensors_over_the_same_memory(torch, even):
    known = [name for name in even if hasattr(torch, even.column(name).dtype)]
    if known == even.keys():
        tensors = even.torch()
        assert list(tensors) == even.keys()
    else:  # before PyTorch 2.3
        with pytest.raises(shardfeed.UnsupportedError, match=r"no uint16.*batch\[\"u2\.npy\"\]"):
            even.torch()
        tensors = {name: even.column(name).torch() for name in known}
    assert len(tensors) >= 12
    for name, tensor in tensors.items():
        assert tensor.dtype is getattr(torch, even.column(name).dtype)
        assert tensor.data_ptr() == even[name].ctypes.data
        assert tuple(tensor.shape) == even[name].shape
        assert tensor.tolist() == even[name].tolist()


def test_other_columns_are_as_they_are(torch, tmp_path):
    rows = [
        {"x.npy": npy(np.ones((n, 2), "f4")), "txt": b"t%d" % n, "json": b"[%d]" % n}
        for n in range(4)
    ]
    (batch,) = shardfeed.Stream(rows_tar(tmp_path / "t.tar", rows), ragged="offsets").batches(9)
    tensors = batch.torch()
    assert tensors["txt"][2] == "t2"
    assert list(tensors["json"]) == [[0], [1], [2], [3]]
    ragged = tensors["x.npy"]
    assert isinstance(ragged, shardfeed.Ragged)
    assert [tuple(row.shape) for row in ragged] == [(n, 2) for n in range(4)]
    assert ragged.values.dtype is torch.float32
    assert ragged.values.data_ptr() == batch["x.npy"].values.ctypes.data
    assert ragged.offsets.tolist() == [0, 0, 2, 6, 12]


@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_takes_columns_of_dlpack(torch, even, dtype):
    column = even.column(f"{dtype}.npy")
    if dtype != "?" and not hasattr(torch, column.dtype):
        with pytest.raises((RuntimeError, BufferError)):
            torch.from_dlpack(column)
        return
    tensor = torch.from_dlpack(column)
    assert tensor.data_ptr() == even[f"{dtype}.npy"].ctypes.data
    assert tensor.shape == (5, 2, 3)
    assert tensor.tolist() == even[f"{dtype}.npy"].tolist()


def test_tensors_outlive_the_batch(torch, tmp_path):
    stream = shardfeed.Stream(ramps(tmp_path / "t.tar", 300, 4096), memory="8MiB")
    kept = [batch.torch()["x.npy"] for batch in stream.batches(10)]
    stream.close()
    assert [int(tensor[0, 0]) for tensor in kept] == list(range(0, 300, 10))


def test_empty_tensors(torch, tmp_path):
    path = rows_tar(tmp_path / "t.tar", [{"x.npy": npy(np.zeros((0, 3), "f4"))}] * 2)
    (batch,) = shardfeed.Stream(path).batches(2)
    assert batch.torch()["x.npy"].shape == (2, 0, 3)
    assert batch["x.npy"].shape == (2, 0, 3)


def test_pinned_memory(torch, even, monkeypatch):
    tensors = {"i8.npy": even.column("i8.npy").torch()}
    assert even.pin_memory() is even or torch.cuda.is_available()
    if not torch.cuda.is_available():  # what a machine with CUDA does, in ordinary memory
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor, *_: tensor.clone())
    pinned = even.pin_memory()
    assert pinned is not even
    assert pinned.keys() == even.keys()
    tensor = pinned.column("i8.npy").torch()
    assert torch.equal(tensor, tensors["i8.npy"])
    assert tensor.data_ptr() != tensors["i8.npy"].data_ptr()
    assert pinned["c16.npy"].tolist() == even["c16.npy"].tolist()
    assert pinned.sample_keys == even.sample_keys


@pytest.mark.filterwarnings("ignore:.*pin_memory")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("workers", [0, 1])
def test_dataloader_passes_batches_on(torch, tmp_path, workers):
    class Batches(torch.utils.data.IterableDataset):
        def __iter__(self):
            return shardfeed.Stream(url).batches(10)

    url = ramps(tmp_path / "t.tar", 40)
    loader = torch.utils.data.DataLoader(
        Batches(), batch_size=None, num_workers=workers, pin_memory=True
    )
    found = list(loader)
    assert all(isinstance(batch, shardfeed.Batch) for batch in found)
    assert torch.cat([batch.torch()["cls"] for batch in found]).tolist() == list(range(40))
