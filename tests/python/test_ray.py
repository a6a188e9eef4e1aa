"""shardfeed.ray, and map_shards under Ray, on two worker processes."""

from __future__ import annotations

import io
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from aws_servers import versitygw
from conftest import write_tar
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

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")
np = pytest.importorskip("numpy")
shards_of_ray = pytest.importorskip("shardfeed.ray")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    # Its workers find the modules of this process.
    paths = [*map(os.path.dirname, (__file__, os.path.dirname(shardfeed.__file__)))]
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=100 << 20,
        # Else they leave the processor to all others, and the tests wait for them.
        _system_config={"worker_niceness": 0},
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(paths)}},
    )
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with versitygw(tmp_path_factory.mktemp("s3")) as url:
        yield url


@pytest.fixture
def urls(tmp_path: Path) -> str:
    return write_shards(tmp_path)


def test_a_data_set_has_each_sample_once(urls: str) -> None:
    data = shards_of_ray.read_shards(urls, decode="cls:int, txt", override_num_blocks=3)
    rows = data.take_all()
    assert [row["__key__"] for row in rows] == KEYS
    assert [row["cls"] for row in rows] == [number % 10 for number in range(100)]
    assert rows[30]["txt"] == "30........"
    assert rows[30]["__url__"].endswith("s-1.tar")


def test_tasks_are_dealt_out_by_bytes(urls: str) -> None:
    from shardfeed.cluster._pieces import reading_of

    source = shards_of_ray.ShardsDatasource(urls, reading_of("cls:int, txt", None, None, None))
    tasks = source.get_read_tasks(4)
    assert [task.metadata.num_rows for task in tasks] == [25, 25, None, None]
    assert [[Path(url).name for url in task.metadata.input_files] for task in tasks] == [
        [f"s-{number}.tar"] for number in range(4)
    ]
    many = source.get_read_tasks(16)  # shards with an index are divided
    assert len(many) == 4 + 4 + 1 + 1
    assert sum(task.metadata.num_rows or 25 for task in many) == 100
    read = [key for task in many for table in task() for key in table["__key__"].to_pylist()]
    assert read == KEYS
    size = sum(table.nbytes for task in tasks for table in task())
    assert 0.5 * size < source.estimate_inmemory_data_size() < 2 * size
    assert 0 < tasks[3].metadata.size_bytes < size
    assert len(source.get_read_tasks(1)) == 1
    assert source.usual_tasks(cores=1) == 2
    assert source.usual_tasks(cores=4) == 4 + 2  # two shards cannot be divided


def test_images_come_as_tensors(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    members = []
    for number in range(20):
        file = io.BytesIO()
        image.fromarray(np.full((8, 6, 3), number, np.uint8)).save(file, "png")
        members += [(f"{number}.png", file.getvalue()), (f"{number}.cls", b"%d" % number)]
    url = write_tar(tmp_path / "t.tar", members)
    data = shards_of_ray.read_shards(url, decode="png:image/rgb8, cls:int", columns=["png", "cls"])
    batches = list(data.iter_batches(batch_size=8))
    assert list(batches[0]) == ["png", "cls"]
    pixels = np.concatenate([batch["png"] for batch in batches])
    assert pixels.shape == (20, 8, 6, 3)
    assert [int(row.mean()) for row in pixels] == list(range(20))
    pytest.importorskip("torch")
    tensors = [batch["png"] for batch in data.iter_torch_batches(batch_size=8)]
    assert [tuple(tensor.shape) for tensor in tensors] == [(8, 8, 6, 3), (8, 8, 6, 3), (4, 8, 6, 3)]


def test_two_trainers_share_a_data_set(urls: str) -> None:
    data = shards_of_ray.read_shards(urls, decode="cls:int", override_num_blocks=4)
    found: list[list[str]] = [[], []]

    def train(rank: int, split: Any) -> None:
        for batch in split.iter_batches(batch_size=10):
            found[rank] += list(batch["__key__"])

    threads = [
        threading.Thread(target=train, args=pair)
        for pair in enumerate(data.streaming_split(2, equal=True))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(250)
        assert not thread.is_alive()
    assert sorted(found[0] + found[1]) == KEYS
    assert len(found[0]) == len(found[1]) == 50


def test_a_killed_worker_reads_again(urls: str, tmp_path: Path) -> None:
    flag = str(tmp_path / "died")

    def deadly(batch: Any) -> Any:
        if "000060" in batch["__key__"]:
            die_once(flag)
        return batch

    data = shards_of_ray.read_shards(urls, decode="txt", override_num_blocks=4)
    output = tmp_path / "out"
    output.mkdir()
    made = shards_of_ray.write_shards(
        data.map_batches(deadly), output / "%03d.tar", max_samples=30, writer={"index": True}
    )
    assert os.path.exists(flag)
    assert keys([shard.url for shard in made]) == KEYS
    assert sorted(path.name for path in output.glob("*.tar")) == [
        os.path.basename(shard.url) for shard in made
    ]
    assert not [path for path in output.iterdir() if path.name.endswith(".partial")]
    with shardfeed.Dataset([shard.url for shard in made], index="require") as indexed:
        assert bytes(indexed[99]["txt"]) == b"99........"


def test_shards_appear_together(urls: str, tmp_path: Path) -> None:
    data = shards_of_ray.read_shards(urls, decode="txt")
    (tmp_path / "001.tar").touch()
    with pytest.raises(shardfeed.UsageError, match="it is there already"):
        shards_of_ray.write_shards(data, tmp_path / "%03d.tar", max_samples=30)
    assert not (tmp_path / "000.tar").exists()
    assert not list(tmp_path.glob("*.partial"))
    with pytest.raises(shardfeed.UsageError, match="shards cannot appear together there"):
        shards_of_ray.write_shards(data, "hf://datasets/a/b/%03d.tar")
    with pytest.raises(shardfeed.UsageError, match="the option shuffle is not for tasks"):
        shards_of_ray.read_shards(urls, reader={"shuffle": 10})


def test_shards_in_a_bucket(urls: str, tmp_path: Path, server: str) -> None:
    data = shards_of_ray.read_shards(urls, decode="txt:bytes, cls:bytes", override_num_blocks=2)

    def write(output: str, encoder: Any, writer: dict[str, Any]) -> Any:
        return shards_of_ray.write_shards(
            data, output, max_samples=20, encoder=encoder, writer=writer
        )

    check_a_bucket(write, server, tmp_path)


def test_map_shards_survives_a_killed_worker(urls: str, tmp_path: Path) -> None:
    check_a_killed_worker(urls, tmp_path, "ray")


def test_map_shards_reports_what_fails(urls: str, tmp_path: Path) -> None:
    check_what_fails(urls, tmp_path, "ray")


def test_reshard_makes_the_same_bytes(urls: str, tmp_path: Path) -> None:
    check_reshard(urls, tmp_path, "ray")
