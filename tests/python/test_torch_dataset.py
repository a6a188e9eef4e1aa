"""shardfeed.torch.Dataset in PyTorch's own DataLoader. Skipped without PyTorch."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys

import pytest
import shardfeed
from batches import rows_tar

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*pin_memory"),
    pytest.mark.filterwarnings("ignore:.*suggested max number of worker"),
]


def numbers(sample: shardfeed.Sample) -> tuple[int, int]:
    return int(bytes(sample["txt"]).rstrip(b".")), int(bytes(sample["cls"]))


def test_items(torch, datasets, shards):
    data = datasets.Dataset(shards(3, 10), numbers)
    assert isinstance(data, torch.utils.data.Dataset)
    assert len(data) == 30
    assert [data[n] for n in range(30)] == [(n, n % 10) for n in range(30)]
    assert data[torch.tensor(7)] == (7, 7)
    assert data[-1] == (29, 9)
    assert data.__getitems__([4, 0, 4]) == [(4, 4), (0, 0), (4, 4)]
    with pytest.raises(IndexError):
        data[30]
    assert data.samples.find("000012") == 12
    assert "30 items" in repr(data)
    plain = datasets.Dataset(shards(1, 3), index="memory")
    assert plain[2] == {"txt": b"2.........", "cls": b"2"}
    with pytest.raises(TypeError, match="shuffle"):
        datasets.Dataset(shards(1, 3), shuffle=10)


@pytest.mark.parametrize(
    ("method", "used", "workers"),
    [
        (None, False, 0),
        ("fork", False, 2),
        ("fork", True, 5),
        ("spawn", False, 2),
        ("forkserver", True, 2),
    ],
)
def test_in_a_dataloader(torch, datasets, shards, method, used, workers):
    data = datasets.Dataset(shards(3, 20), numbers)
    if used:
        assert data[5] == (5, 5)
    loader = torch.utils.data.DataLoader(
        data,
        batch_size=7,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
        multiprocessing_context=method,
    )
    for _ in range(2):  # epochs
        seen = []
        for many, classes in loader:
            assert (many % 10 == classes).all()
            seen += many.tolist()
        assert sorted(seen) == list(range(60))
        assert seen != sorted(seen)
    assert data[5] == (5, 5)


def test_pickles(datasets, shards):
    data = pickle.loads(pickle.dumps(datasets.Dataset(shards(1, 5), numbers)))
    assert data[4] == (4, 4)


def crops(sample: shardfeed.Sample) -> bytes:
    return sample.decode("png:image/l8/crop=random:5x5")["png"].tobytes()


@pytest.mark.parametrize(
    ("method", "persistent"),
    [(None, False), ("fork", False), ("fork", True), ("spawn", True), ("forkserver", False)],
)
def test_set_epoch_reaches_workers(torch, datasets, tmp_path, method, persistent):
    image = pytest.importorskip("PIL.Image")
    np = pytest.importorskip("numpy")
    file = io.BytesIO()
    image.fromarray(np.arange(60 * 40, dtype="u2").astype("u1").reshape(40, 60)).save(file, "png")
    path = rows_tar(tmp_path / "t.tar", [{"png": file.getvalue()} for _ in range(16)])
    data = datasets.Dataset(path, crops)
    wanted = {}
    for epoch in (0, 1, 2):
        data.set_epoch(epoch)
        assert data.epoch == epoch
        wanted[epoch] = [data[n] for n in range(16)]
    assert len({tuple(crop) for crop in wanted.values()}) == 3
    loader = torch.utils.data.DataLoader(
        data,
        batch_size=4,
        num_workers=0 if method is None else 2,
        persistent_workers=persistent,
        multiprocessing_context=method,
        collate_fn=list,
    )
    for epoch in (1, 0, 2):
        data.set_epoch(epoch)
        assert [crop for batch in loader for crop in batch] == wanted[epoch]


def test_a_copy_has_an_epoch_of_its_own(datasets, shards):
    data = datasets.Dataset(shards(1, 3), numbers, epoch=3)
    copy = pickle.loads(pickle.dumps(data))
    assert (data.epoch, copy.epoch) == (3, 3)
    copy.set_epoch(7)
    assert (data.epoch, copy.epoch) == (3, 7)
    assert copy[2] == (2, 2)


def test_workers_warn_once_where_no_epoch_was_set(tmp_path):
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.new("L", (60, 40)).save(file, "png")
    path = rows_tar(tmp_path / "t.tar", [{"png": file.getvalue()} for _ in range(16)])
    program = """
import sys
from torch.utils.data import DataLoader
import shardfeed.torch

def crop(sample):
    return sample.decode("png:image/l8/crop=random:8x8")["png"].tobytes()

data = shardfeed.torch.Dataset(sys.argv[1], crop, index="memory")
forked = {"num_workers": 2, "multiprocessing_context": "fork"}
for _ in DataLoader(data, batch_size=4, collate_fn=list, **forked):
    pass
"""
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("no epoch was set") == 1, done.stderr
