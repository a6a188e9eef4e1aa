"""The index that is made for wids, read by wids itself, which needs PyTorch."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import numbered, write_tar
from shardfeed._native import ffi, lib


def write_index(urls: list[str], path: Path) -> None:
    strings = [ffi.new("char[]", os.fsencode(url)) for url in urls]
    error = ffi.new("shf_error *")
    code = lib.shf_index_export(
        strings, len(strings), lib.SHF_INDEX_WIDS, os.fsencode(path), ffi.NULL, error
    )
    assert code == 0, ffi.string(error.message)


@pytest.fixture(scope="module")
def wids():
    pytest.importorskip("torch")
    return pytest.importorskip("wids")


def test_wids_finds_every_sample(wids, tmp_path):
    elsewhere = tmp_path / 'else where "ü"'
    elsewhere.mkdir()
    folder = tmp_path / "indexed"
    folder.mkdir()
    write_tar(folder / "0.tar", numbered(0, 5))
    # What shardfeed passes over, wids counts: metadata is a sample there, a README is not.
    write_tar(folder / "1.tar", [("__meta__/about.json", b"{}"), *numbered(5, 3)])
    write_tar(elsewhere / "2.tar", [*numbered(8, 4), ("README", b"read")])
    index = folder / "index.json"
    write_index([str(folder / "{0..1}.tar"), str(elsewhere / "2.tar")], index)

    data = wids.ShardListDataset(str(index), cache_dir=str(tmp_path / "cache"), transformations=[])
    keys = [data[number]["__key__"] for number in range(len(data))]
    numbers = [f"{number:06d}" for number in range(12)]
    assert keys == [*numbers[:5], "__meta__/about", *numbers[5:]]
    assert data[12][".txt"].getvalue().startswith(b"11")


def test_wids_counts_the_same(wids, tmp_path):
    path = write_tar(tmp_path / "s.tar", [*numbered(0, 3), (".hid", b""), ("d.1/x", b"")])
    write_index([str(path)], tmp_path / "index.json")
    shard = json.loads((tmp_path / "index.json").read_text())["shardlist"][0]
    assert shard == {
        "url": "s.tar",
        "nsamples": wids.wids.compute_num_samples(str(path)),
        "filesize": path.stat().st_size,
    }
