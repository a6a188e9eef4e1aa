"""index: indexes of shards, and those of other tools."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import fails, numbered, output

Shard = Callable[..., Path]


@pytest.fixture
def folder(shard: Shard, tmp_path: Path) -> Path:
    for number in range(3):
        shard(f"s-{number}.tar", numbered(10 * number, 4))
    return tmp_path


def rows(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


def test_indexes_are_made_and_used(folder: Path) -> None:
    assert output("index", f"{folder}/s-{{0..2}}.tar") == b""
    assert len(list(folder.glob("s-*.tar.sfidx"))) == 3
    plan = json.loads(output("plan", f"{folder}/s-{{0..2}}.tar", "--json"))
    assert plan["consumers"][0]["samples"] == 12
    said = rows(output("index", folder / "s-0.tar", "--index-dir", folder / "i", "--json"))
    assert said == [{"shard": f"{folder}/s-0.tar"}]
    assert len(list((folder / "i").iterdir())) == 1


def test_an_index_for_dali(folder: Path) -> None:
    output("index", folder / "s-0.tar", "--export", "dali", folder / "s-0.idx")
    version, *lines = (folder / "s-0.idx").read_text().splitlines()
    assert version == "v1.2 4"
    with tarfile.open(folder / "s-0.tar") as tar:
        first = tar.getmembers()[0]
    assert lines[0].split()[:4] == ["txt", str(first.offset_data), str(first.size), "0000.txt"]


def test_one_index_for_each_shard(folder: Path) -> None:
    said = rows(output("index", f"{folder}/s-*.tar", "--export", "energon", "{}.tar.idx", "--json"))
    assert [row["index"] for row in said] == [f"{folder}/s-{i}.tar.idx" for i in range(3)]
    assert (folder / "s-2.tar.idx").stat().st_size == 8 * 5
    message = fails(2, "index", f"{folder}/s-*.tar", "--export", "dali", folder / "all.idx")
    assert "one path for 3 indexes" in message
    assert not (folder / "all.idx").exists()
    output("index", f"{folder}/s-*.tar", "--import", "energon", "{}.tar.idx")
    assert len(list(folder.glob("*.sfidx"))) == 3


def test_wids_both_ways(folder: Path) -> None:
    output("index", f"{folder}/s-*.tar", "--export", "wids", folder / "all.json")
    listed = json.loads((folder / "all.json").read_text())
    assert [shard["nsamples"] for shard in listed["shardlist"]] == [4, 4, 4]
    output("index", "--import", "wids", folder / "all.json")
    assert len(list(folder.glob("*.sfidx"))) == 3


def test_an_index_that_says_something_else(folder: Path) -> None:
    output("index", folder / "s-0.tar", "--export", "dali", folder / "s-0.idx")
    text = (folder / "s-0.idx").read_text()
    (folder / "s-0.idx").write_text(text.replace("0001.txt", "9999.txt"))
    fails(1, "index", folder / "s-0.tar", "--import", "dali", folder / "s-0.idx")
    assert not list(folder.glob("*.sfidx"))


def test_wrong_command_lines(folder: Path) -> None:
    assert "URL is required" in fails(2, "index")
    assert "no format" in fails(2, "index", folder / "s-0.tar", "--export", "zip", "x")
    assert "give no URL" in fails(2, "index", "s.tar", "--import", "wids", "all.json")
    assert "excludes" in fails(2, "index", "s", "--import", "dali", "a", "--export", "dali", "b")
