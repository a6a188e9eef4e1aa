"""shardfeed.torch.Dataset in PyTorch's own DataLoader. Skipped without PyTorch."""

from __future__ import annotations

import pickle

import pytest
import shardfeed

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
