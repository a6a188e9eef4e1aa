"""A cache on a disk that is full: a real one, of every size up to what the cache needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import numbered, write_tar
from http_servers import Nginx

OWN = ["unshare", "-rm"]
PROGRAM = """
import hashlib, json, os, subprocess, sys
import shardfeed

url, place, kind, first, last = sys.argv[1:]

def digest(**options):
    total = hashlib.sha256()
    said = []
    stream = shardfeed.Stream(url, log=lambda _, text: said.append(text), **options)
    for sample in stream:
        for name, data in sample.items():
            total.update(f"{sample.key}.{name}".encode() + bytes(data))
    return total.hexdigest(), said, stream.stats()

expected = digest()[0]
found = []
for number in range(int(first), int(last)):
    limit = f"size={4 * number}k" if kind == "pages" else f"size=64m,nr_inodes={number}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", limit, "none", place], check=True)
    result = {"number": number, "warnings": [], "right": True}
    for epoch in range(2):
        total, said, stats = digest(cache=place + "/cache")
        result["right"] = result["right"] and total == expected
        result["warnings"].append(said)
        result["faults"] = stats["cache_faults"]
        result["cached"] = stats["cache_bytes"]
    result["left"] = [
        name for _, _, names in os.walk(place) for name in names if name.endswith(".part")
    ]
    subprocess.run(["umount", place], check=True)
    found.append(result)
print(json.dumps(found))
"""


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[Nginx]:
    server = Nginx(tmp_path)
    for shard in range(2):
        write_tar(server.root / f"s-{shard}.tar", numbered(20 * shard, 20, 5000))
    yield server
    server.stop()


@pytest.mark.parametrize(("kind", "first", "last"), [("pages", 1, 100), ("inodes", 2, 20)])
def test_every_write_finds_it_full(
    nginx: Nginx, tmp_path: Path, kind: str, first: int, last: int
) -> None:
    """What is read is right, with one warning, and nothing wrong or in the making is left."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        subprocess.run(
            [*OWN, "mount", "-t", "tmpfs", "none", place], check=True, capture_output=True
        )
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a process may not have mounts of its own here: {error}")
    words = [sys.executable, "-c", PROGRAM, nginx.url("s-{0..1}.tar"), place, kind, first, last]
    run = subprocess.run([*OWN, *map(str, words)], capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    for result in found:
        assert result["right"], result
        assert result["faults"] == 0, result
        assert result["left"] == [], result
        for said in result["warnings"]:
            assert len(said) <= 1, result
            assert all("without" in text and "cache" in text for text in said), result
    whole = [not any(result["warnings"]) for result in found]
    assert not whole[0], found
    assert whole[-1], found
    # Where nothing is said, the second epoch reads all of it from the cache. From which size on is
    # not certain: files in the making need room too, some of them at the same time as others.
    cached = {result["cached"] for result, kept in zip(found, whole) if kept}
    assert cached == {found[-1]["cached"]}, found
    assert found[-1]["cached"] > 2 * os.path.getsize(nginx.root / "s-0.tar")
