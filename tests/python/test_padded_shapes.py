"""The shapes that padded rows had, among the tensors of a batch. Skipped without PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import npy, rows_tar

pytestmark = pytest.mark.slow

LENGTHS = [3, 0, 5, 2, 9, 1]


@pytest.fixture
def url(tmp_path: Path) -> str:
    rows = [
        {"npy": npy(np.full(n, 7)), "two.npy": npy(np.ones((n, 2), "f4")), "cls": b"%d" % n}
        for n in LENGTHS
    ]
    return rows_tar(tmp_path / "t.tar", rows)


def check(torch: Any, item: dict[str, Any]) -> None:
    lengths = item["npy.shape"]
    assert lengths.dtype is torch.int64
    assert lengths[:, 0].tolist() == item["cls"].tolist()
    assert item["two.npy.shape"].tolist() == [[n, 2] for n in item["cls"].tolist()]
    mask = torch.arange(item["npy"].shape[1]) < lengths
    assert torch.equal(mask, item["npy"] == 7)


def test_padded_rows(torch, datasets, url):
    items = list(datasets.loader(url, batch=4, ragged="pad"))
    assert [len(item["cls"]) for item in items] == [4, 2]
    for item in items:
        check(torch, item)
        assert set(item) == {"npy", "npy.shape", "two.npy", "two.npy.shape", "cls"}


def test_buckets(torch, datasets, url):
    items = list(datasets.loader(url, batch=2, bucket="4,16"))
    for item in items:
        check(torch, item)
    assert {item["npy"].shape[1] for item in items} == {4, 16}
    assert sorted(n for item in items for n in item["cls"].tolist()) == sorted(LENGTHS)


def test_items_of_workers_and_of_a_batch_transform(torch, datasets, url):
    stream = datasets.Stream(url, batch=4, ragged="pad")
    for item in torch.utils.data.DataLoader(stream, batch_size=None, num_workers=1):
        check(torch, item)
    seen = []

    def transform(item: dict[str, Any]) -> Any:
        check(torch, item)
        seen.append(True)
        return item["npy.shape"]

    items = list(datasets.loader(url, batch=4, ragged="pad", batch_transform=transform))
    assert [len(item) for item in items] == [4, 2]
    assert len(seen) == 2


def test_rows_of_a_transform(torch, datasets, url):
    def transform(row: dict[str, Any]) -> dict[str, Any]:
        return {name: row[name] for name in ("npy", "two.npy", "cls")}

    ragged = {"npy": "pad", "two.npy": "pad"}
    options: dict[str, Any] = {"ragged": "offsets", "transform": transform}
    for item in datasets.loader(url, batch=4, transform_ragged=ragged, **options):
        check(torch, item)


def test_where_there_are_none(torch, datasets, url, tmp_path):
    (item,) = datasets.loader(url, batch=9, decode="cls", ragged="pad")
    assert list(item) == ["cls"]
    (item,) = datasets.loader(url, batch=9, ragged="offsets")
    assert set(item) == {"npy", "two.npy", "cls"}
    # A field of that name is that field.
    rows = [{"npy": npy(np.ones(2)), "npy.shape": b"text"}]
    named = rows_tar(tmp_path / "u.tar", rows)
    (batch,) = shardfeed.Stream(named).batches(9, decode="npy, npy.shape:text", ragged="pad")
    assert list(batch.torch()["npy.shape"]) == ["text"]


def test_on_a_device(torch, datasets, url):
    for item in datasets.loader(url, batch=4, ragged="pad", device="meta"):
        assert item["npy.shape"].device.type == "meta"
