"""What the tests of Ray and of Dask share: shards, and what holds under every executor."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from resharding import keys

KEYS = [f"{number:06}" for number in range(100)]


def write_shards(folder: Path) -> str:
    """Four shards of 25 samples; the first two have indexes."""
    for shard in range(4):
        path = write_tar(folder / f"s-{shard}.tar", numbered(25 * shard, 25))
        if shard < 2:
            shardfeed.Dataset(path).close()
    return f"{folder}/s-{{0..3}}.tar"


def die_once(flag: str) -> None:
    """Kills this worker, the first time."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def check_a_killed_worker(urls: str, folder: Path, executor: Any) -> None:
    flag = str(folder / "died")

    def deadly(sample: Any) -> Any:
        if sample.key == "000060":
            die_once(flag)
        return None if sample.key.endswith("7") else sample

    report = shardfeed.map_shards(urls, f"{folder}/out/", deadly, executor=executor)
    assert os.path.exists(flag)
    assert report.is_complete  # what a worker has published before it died is there
    assert report.outputs == [f"{folder}/out/s-{number}.tar" for number in range(4)]
    assert keys(report.outputs) == [key for key in KEYS if key[-1] != "7"]
    local = shardfeed.map_shards(urls, f"{folder}/local/", deadly, workers=0)
    for made, same in zip(report.outputs, local.outputs):
        assert Path(made).read_bytes() == Path(same).read_bytes()


def check_what_fails(urls: str, folder: Path, executor: Any) -> None:
    def wrong(sample: Any) -> Any:
        return sample if sample.key != "000060" else 1 / 0

    with pytest.raises(shardfeed.cluster.MapError) as raised:
        shardfeed.map_shards(urls, f"{folder}/out/", wrong, executor=executor)
    assert raised.value.key == "000060"
    assert raised.value.report.counts == {"made": 3, "failed": 1}


def check_reshard(urls: str, folder: Path, executor: Any) -> None:
    ways: dict[str, Any] = {
        "shuffled": {"shuffle": True, "seed": 3},
        "scattered": {"shuffle": True, "seed": 3, "scratch": f"{folder}/tmp/"},
        "sorted": {"sort": True, "scratch": f"{folder}/tmp/"},
    }
    for name, way in ways.items():
        local = shardfeed.reshard(urls, f"{folder}/l-{name}/", samples=30, workers=0, **way)
        report = shardfeed.reshard(urls, f"{folder}/{name}/", samples=30, executor=executor, **way)
        assert report.counts == {"made": 4}
        for made, same in zip(report.outputs, local.outputs):
            assert Path(made).read_bytes() == Path(same).read_bytes()
        found = keys(report.outputs)
        assert sorted(found) == KEYS
        assert (found == KEYS) == (name == "sorted")
