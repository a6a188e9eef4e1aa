"""shardfeed.dask, and map_shards under Dask, on two worker processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from aws_servers import versitygw
from executors import (
    KEYS,
    check_a_bucket,
    check_a_killed_worker,
    check_reshard,
    check_what_fails,
    die_once,
    write_shards,
)
from resharding import keys

pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

shards_of_dask = pytest.importorskip("shardfeed.dask")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes, which come again when they die."""
    import dask

    dask.config.set({"distributed.worker.daemon": False})
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with versitygw(tmp_path_factory.mktemp("s3")) as url:
        yield url


@pytest.fixture
def urls(tmp_path: Path) -> str:
    return write_shards(tmp_path)


@pytest.mark.parametrize(("npartitions", "made"), [(1, 1), (3, 3), (7, 6)])
def test_a_bag_has_each_sample_once(cluster: Any, urls: str, npartitions: int, made: int) -> None:
    bag = shards_of_dask.read_shards(urls, npartitions=npartitions)
    samples = bag.compute()
    assert [sample["__key__"] for sample in samples] == KEYS
    assert samples[30]["txt"] == b"30........"
    assert samples[30]["__url__"].endswith("s-1.tar")
    assert bag.npartitions == made  # two shards cannot be divided


def test_a_bag_of_decoded_fields(cluster: Any, urls: str) -> None:
    bag = shards_of_dask.read_shards(urls, decode="cls:int")
    assert int(bag.pluck("cls").sum().compute()) == 450


def test_batches(cluster: Any, urls: str) -> None:
    import dask

    parts = dask.compute(*shards_of_dask.read_batches(urls, decode="cls:int", batch=10))
    batches = [batch for part in parts for batch in part]
    assert [key for batch in batches for key in batch.sample_keys] == KEYS
    assert max(map(len, batches)) == 10
    (part, *_) = dask.compute(*shards_of_dask.read_batches(urls, columns=["cls"]))
    assert list(part[0]) == ["cls"]


def test_a_frame_of_scalar_fields(cluster: Any, urls: str) -> None:
    frame = shards_of_dask.read_frame(urls, decode="cls:int, txt", npartitions=5)
    assert dict(frame.groupby("cls").size().compute()) == dict.fromkeys(range(10), 10)
    assert list(frame.index.compute()) == KEYS
    assert frame.txt.compute().iloc[99] == "99........"


def test_shards_appear_together(cluster: Any, urls: str, tmp_path: Path) -> None:
    bag = shards_of_dask.read_shards(urls, npartitions=3)
    output = tmp_path / "out"
    output.mkdir()
    made = shards_of_dask.to_shards(
        bag, output / "%03d.tar", max_samples=20, writer={"index": True}
    )
    names = sorted(path.name for path in output.iterdir() if not path.name.endswith(".sfidx"))
    assert names == [f"{number:03}.tar" for number in range(len(made))]
    assert keys([shard.url for shard in made]) == KEYS
    with shardfeed.Dataset([shard.url for shard in made], index="require") as data:
        assert len(data) == 100
    with pytest.raises(shardfeed.UsageError, match="it is there already"):
        shards_of_dask.to_shards(bag, output / "%03d.tar")
    assert keys([shard.url for shard in made]) == KEYS

    def wrong(sample: Any) -> Any:
        if sample["__key__"] == "000060":
            raise ZeroDivisionError
        return sample

    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(ZeroDivisionError):
        shards_of_dask.to_shards(bag.map(wrong), other / "%03d.tar")
    assert list(other.iterdir()) == []


def test_workers_that_are_killed(cluster: Any, urls: str, tmp_path: Path) -> None:
    flag = str(tmp_path / "died")

    def deadly(sample: Any) -> Any:
        if sample["__key__"] == "000060":
            die_once(flag)
        return sample

    bag = shards_of_dask.read_shards(urls, npartitions=4).map(deadly)
    output = tmp_path / "out"
    output.mkdir()
    made = shards_of_dask.to_shards(bag, output / "%03d.tar", max_samples=10)
    assert os.path.exists(flag)
    assert sorted(path.name for path in output.iterdir()) == [
        os.path.basename(shard.url) for shard in made
    ]
    assert keys([shard.url for shard in made]) == KEYS


def test_shards_in_a_bucket(cluster: Any, urls: str, tmp_path: Path, server: str) -> None:
    bag = shards_of_dask.read_shards(urls, npartitions=2)

    def write(output: str, encoder: Any, writer: dict[str, Any]) -> Any:
        return shards_of_dask.to_shards(bag, output, max_samples=20, encoder=encoder, writer=writer)

    check_a_bucket(write, server, tmp_path)


def test_map_shards_survives_a_killed_worker(cluster: Any, urls: str, tmp_path: Path) -> None:
    check_a_killed_worker(urls, tmp_path, "dask")


def test_map_shards_reports_what_fails(cluster: Any, urls: str, tmp_path: Path) -> None:
    check_what_fails(urls, tmp_path, "dask")


def test_reshard_makes_the_same_bytes(cluster: Any, urls: str, tmp_path: Path) -> None:
    check_reshard(urls, tmp_path, "dask")


def test_wrong_arguments(tmp_path: Path, urls: str) -> None:
    with pytest.raises(shardfeed.UsageError, match="the option shuffle is not for tasks"):
        shards_of_dask.read_shards(urls, reader={"shuffle": 10})
    with pytest.raises(shardfeed.UsageError, match="give 1 or more"):
        shards_of_dask.read_shards(urls, npartitions=0)
    bag = shards_of_dask.read_shards(urls)
    for output, said in [
        ("out.tar", "is no pattern"),
        ("hf://datasets/a/b/%03d.tar", "shards cannot appear together there"),
    ]:
        with pytest.raises(shardfeed.UsageError, match=said):
            shards_of_dask.to_shards(bag, output)
