"""Programs of examples/wds, run with this package and with the ones they were written for."""

from __future__ import annotations

import json

import pytest
from conftest import write_tar


@pytest.mark.slow
def test_wids_with_a_distributed_sampler(programs, torch, tmp_path):
    pytest.importorskip("wids")
    programs.run(
        "wids_sampler.py", "--make", "shards", "--shards", 4, "--samples", 51, folder=tmp_path
    )
    said = {}
    for package in ("shardfeed.wids", "wids"):
        options = ["--package", package, "--cache-dir", f"cache-{package}"]
        output = programs.run("wids_sampler.py", "shards/index.json", *options, folder=tmp_path)
        lines = [json.loads(line) for line in output.splitlines()]
        said[package] = sorted(lines, key=lambda line: (line["epoch"], line["rank"]))
    assert said["shardfeed.wids"] == said["wids"]
    assert [line["samples"] for line in said["wids"]] == [102] * 4


@pytest.mark.slow
def test_a_data_set_is_written_again(programs, tmp_path):
    pytest.importorskip("webdataset")
    for shard in range(3):
        members = []
        for number in range(40):
            key = f"s{shard}/{number:04d}"
            members += [(f"{key}.cls", b"%d" % (number % 10)), (f"{key}.jpg", bytes(100))]
            if number % 7:
                members.append((f"{key}.txt", f"text {number} ü".encode()))
        write_tar(tmp_path / f"in-{shard}.tar", members)
    said = {}
    for package in ("shardfeed.wds", "webdataset"):
        folder = tmp_path / package
        folder.mkdir()
        options = ["--maxcount", 25, "--list", "list.json", "--package", package]
        output = programs.run(
            "rewrite.py", "../in-{0..2}.tar", "o-%03d.tar", *options, folder=folder
        )
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        said[package] = json.loads(output), files
    assert said["shardfeed.wds"] == said["webdataset"]
    assert said["webdataset"][0] == {"left out": 18, "kept": 102, "shards": 5}
