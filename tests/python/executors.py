"""What the tests of Ray and of Dask share: shards, and what holds under every executor."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from aws_servers import names_in, pending, put
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


def check_a_bucket(write: Any, server: str, folder: Path) -> None:
    """Shards of tasks in a bucket.

    `write(output, encoder, writer)` writes the 100 samples, with this encoder and these options of
    writers, by several tasks of at least two shards.
    """
    put(f"{server}/out")
    options = {"s3_endpoint": server, "s3_access_key": "testkey", "s3_secret_key": "testsecret"}
    flag = str(folder / "died")

    def deadly(sample: Any) -> Any:
        if sample["__key__"] == "000060":
            die_once(flag)  # with shards that are uploaded, and one that is being written
        return sample

    made = write("s3://out/a/%03d.tar", deadly, {"index": True, **options})
    assert os.path.exists(flag)
    urls = [shard.url for shard in made]
    assert keys(urls, **options) == KEYS
    nothing_waits(f"{server}/out")
    names = [url.removeprefix("s3://out/") for url in urls]
    assert names_in(f"{server}/out") == sorted(names + [name + ".sfidx" for name in names])
    kept = {"index": "require", "index_dir": str(folder / "kept"), **options}
    with shardfeed.Dataset(urls, **kept) as data:
        assert len(data) == 100
        assert bytes(data[99]["txt"]) == b"99........"

    def wrong(sample: Any) -> Any:
        if sample["__key__"] == "000060":
            raise ZeroDivisionError("as the test says")
        if sample["__key__"] < "000050":
            time.sleep(0.03)  # another task writes on
        return sample

    before = names_in(f"{server}/out")
    with pytest.raises(Exception, match="as the test says"):
        write("s3://out/b/%03d.tar", wrong, options)
    assert names_in(f"{server}/out") == before
    nothing_waits(f"{server}/out")
    # What is there is not overwritten.
    with pytest.raises(Exception, match="it is there already"):
        write("s3://out/a/%03d.tar", wrong, options)
    assert names_in(f"{server}/out") == before
    nothing_waits(f"{server}/out")
    assert keys(urls, **options) == KEYS


def nothing_waits(bucket: str) -> None:
    """Tasks that were interrupted need a moment to abort what they were uploading."""
    for _ in range(100):
        if not pending(bucket):
            break
        time.sleep(0.1)
    assert pending(bucket) == []
