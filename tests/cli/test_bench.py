"""bench: how fast shards are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conftest import fails, numbered, output, run

Shard = Callable[..., Path]


def phases(*words: object) -> dict[str, Any]:
    said = json.loads(output("bench", "--quiet", "--json", *words))
    assert said["limit"]
    assert said["help"]
    return {phase["phase"]: phase for phase in said["phases"]}


def test_three_phases(shard: Shard) -> None:
    path = shard("a.tar", numbered(0, 100))
    found = phases(path)
    assert list(found) == ["read", "samples", "batches"]
    assert found["read"]["bytes"] == path.stat().st_size
    assert found["samples"]["samples"] == found["batches"]["samples"] == 100
    fields = sum(len(data) for _, all in numbered(0, 100) for data in all.values())
    assert found["samples"]["bytes"] == fields
    assert all(phase["whole"] and phase["seconds"] > 0 for phase in found.values())


def test_options(shard: Shard) -> None:
    path = shard("a.tar", numbered(0, 10))
    assert list(phases(path, "--no-decode", "--cold")) == ["read", "samples"]
    assert list(phases(f"pipe:cat {path}", "--no-decode")) == ["samples"]
    assert phases(path, "--limit", 4)["samples"]["samples"] == 4


def test_an_endless_stream_ends_in_time(shard: Shard) -> None:
    found = phases(shard("a.tar", numbered(0, 10)), "--epochs", 0, "--seconds", 0.2, "--no-decode")
    assert not found["samples"]["whole"]
    assert 0.2 <= found["samples"]["seconds"] < 2
    assert found["samples"]["samples"] > 10


def test_for_people(shard: Shard) -> None:
    done = run("bench", shard("a.tar", numbered(0, 10)))
    lines = done.stdout.decode().splitlines()
    assert [line.split()[0] for line in lines] == ["read", "samples", "batches", "limited"]
    assert " samples/s" in lines[1]
    assert "; help: " in lines[3]
    assert b"too short for good figures" in done.stderr


def test_failures(shard: Shard, tmp_path: Path) -> None:
    assert "nowhere.tar" in fails(1, "bench", tmp_path / "nowhere.tar")
    bad = shard("bad.tar", [("a", {"jpg": b"no image"})])
    assert "bad.tar" in fails(1, "bench", bad)
    assert "local files" in fails(2, "bench", "pipe:cat x", "--cold")
    assert "--seconds" in fails(2, "bench", bad, "--seconds", 0)
