"""by_index: batches that are the same with any number of workers, ranks that are even by samples,
and states that are good for any number of both."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import shardfeed
from conftest import write_tar
from http_servers import Nginx

if TYPE_CHECKING:
    from pathlib import Path

# 24 shards of different sizes.
COUNTS = [7 + (number * 37) % 53 for number in range(24)]
TOTAL = sum(COUNTS)
OPTIONS: dict[str, Any] = {"shuffle": 60, "shuffle_shards": True, "seed": 4, "by_index": True}
BATCH = {"batch": 16, "decode": "cls:int"}


@pytest.fixture
def urls(tmp_path: Path) -> list[str]:
    paths = []
    number = 0
    for shard, count in enumerate(COUNTS):
        path = tmp_path / f"{shard:02}.tar"
        members = [(f"{number + i:05}.cls", str(number + i).encode()) for i in range(count)]
        write_tar(path, members)
        number += count
        paths.append(str(path))
    shardfeed.Dataset(paths).close()  # makes the index files
    return paths


def test_len_is_that_of_each_rank(urls: list[str]) -> None:
    for even, expected in (
        ("none", [TOTAL // 5 + (rank < TOTAL % 5) for rank in range(5)]),
        ("drop", [TOTAL // 5] * 5),
        ("pad", [-(-TOTAL // 5)] * 5),
    ):
        for rank in range(5):
            stream = shardfeed.Stream(urls, **OPTIONS, even=even, rank=rank, world_size=5)
            assert len(stream) == expected[rank]
            assert sum(1 for _ in stream) == expected[rank]
            assert sum(1 for _ in stream) == expected[rank]  # the next epoch


def test_three_ranks_over_24_uneven_shards_lose_less_than_a_batch(urls: list[str]) -> None:
    def rows(**options: Any) -> list[int]:
        return [
            sum(1 for _ in shardfeed.Stream(urls, rank=rank, world_size=3, **options))
            for rank in range(3)
        ]

    by_lane = rows(even="drop")
    by_sample = rows(even="drop", by_index=True)
    assert TOTAL - sum(by_lane) > 16
    assert TOTAL - sum(by_sample) < 3
    assert sum(rows(even="pad", by_index=True)) - TOTAL < 3


def test_a_dict_of_all_states_goes_to_another_number_of_ranks(urls: list[str]) -> None:
    keys: list[str] = []
    states = []
    for rank in range(3):
        stream = shardfeed.Stream(urls, **OPTIONS, lanes=4, even="drop", rank=rank, world_size=3)
        iterator = iter(stream)
        keys += [next(iterator).key for _ in range(50)]
        states.append(stream.state_dict())
    merged = shardfeed.merge_states(states)
    counts = []
    for rank in range(2):
        stream = shardfeed.Stream(urls, **OPTIONS, lanes=4, even="drop", rank=rank, world_size=2)
        stream.load_state_dict(merged)
        rest = [sample.key for sample in stream]
        counts.append(len(rest))
        keys += rest
    assert counts[0] == counts[1]
    assert len(set(keys)) == len(keys) == TOTAL - TOTAL % 2


def test_what_it_does_not_go_with_is_said(urls: list[str]) -> None:
    with pytest.raises(shardfeed.UsageError, match="even=drop or even=pad"):
        next(iter(shardfeed.Stream(urls, by_index=True, epoch_samples=10)))
    with pytest.raises(shardfeed.UsageError, match="by_index in a mix"):
        next(iter(shardfeed.mix([shardfeed.Stream(urls, by_index=True) for _ in range(2)])))


# ---- DataLoader ----


def loader(urls: list[str], workers: int, **options: Any) -> Any:
    torch_data = pytest.importorskip("torch.utils.data")
    from shardfeed.torch import Stream

    stream = Stream(urls, **{**OPTIONS, **BATCH, **options})
    return torch_data.DataLoader(stream, batch_size=None, num_workers=workers)


@pytest.mark.parametrize("last", ["keep", "drop"])
@pytest.mark.parametrize("even", ["none", "drop", "pad"])
def test_workers_give_the_batches_of_a_rank_without_workers(
    urls: list[str], even: str, last: str
) -> None:
    for rank in (0, 2):
        options = {"even": even, "last": last, "rank": rank, "world_size": 3}
        alone = loader(urls, 0, **options)
        expected = [[batch["cls"].tolist() for batch in alone] for _ in range(2)]  # two epochs
        assert expected[0] != expected[1]
        assert len(alone.dataset) == len(expected[0])
        for workers in (1, 2, 3):
            several = loader(urls, workers, **options)
            assert len(several) == len(expected[0])
            for epoch in expected:
                assert [batch["cls"].tolist() for batch in several] == epoch


def test_without_by_index_they_are_others(urls: list[str]) -> None:
    def batches(workers: int) -> list[list[int]]:
        return [batch["cls"].tolist() for batch in loader(urls, workers, by_index=False)]

    assert not any(batch in batches(0) for batch in batches(2))


def test_persistent_workers_and_threads_change_nothing(urls: list[str]) -> None:
    torch_data = pytest.importorskip("torch.utils.data")
    from shardfeed.torch import Stream

    expected = [batch["cls"].tolist() for batch in loader(urls, 0)]
    stream = Stream(urls, **{**OPTIONS, **BATCH}, threads=3)
    several = torch_data.DataLoader(
        stream, batch_size=None, num_workers=2, persistent_workers=True, prefetch_factor=4
    )
    assert [batch["cls"].tolist() for batch in several] == expected
    stream.set_epoch(0)
    assert [batch["cls"].tolist() for batch in several] == expected


@pytest.mark.parametrize("workers", [0, 2, 3])
def test_a_stateful_loader_resumes_at_each_batch(urls: list[str], workers: int) -> None:
    pytest.importorskip("torchdata.stateful_dataloader")
    from shardfeed.torch import Stream
    from torchdata.stateful_dataloader import StatefulDataLoader

    def stateful() -> Any:
        stream = Stream(urls, **{**OPTIONS, **BATCH})
        return StatefulDataLoader(stream, batch_size=None, num_workers=workers)

    expected = [batch["cls"].tolist() for batch in loader(urls, 0)]
    for before in (1, 6, 11):
        first = stateful()
        iterator = iter(first)
        got = [next(iterator)["cls"].tolist() for _ in range(before)]
        state = copy.deepcopy(first.state_dict())
        del iterator
        second = stateful()
        second.load_state_dict(state)
        got += [batch["cls"].tolist() for batch in second]
        assert got == expected


def test_the_loader_without_workers_gives_them_too(urls: list[str]) -> None:
    pytest.importorskip("torch")
    from shardfeed.torch import loader as batches_of

    expected = [batch["cls"].tolist() for batch in loader(urls, 2)]
    batches = batches_of(urls, **{**OPTIONS, **BATCH})
    assert len(batches) == len(expected)
    assert [np.asarray(batch["cls"]).tolist() for batch in batches] == expected


# ---- Remote ----


def test_workers_share_a_cache_of_shards_on_a_server(tmp_path: Path) -> None:
    server = Nginx(tmp_path)
    try:
        for shard in range(3):
            members = [(f"{shard}-{number:03}.bin", bytes(20_000)) for number in range(100)]
            write_tar(server.root / f"{shard}.tar", members)
        urls = [server.url(f"{shard}.tar") for shard in range(3)]
        options: dict[str, Any] = {"cache": str(tmp_path / "cache")}
        shardfeed.Dataset(urls, **options).close()
        local = [str(server.root / f"{shard}.tar") for shard in range(3)]
        shardfeed.Dataset(local).close()
        expected = [sample.key for sample in shardfeed.Stream(local, **OPTIONS)]
        everything = sum((server.root / f"{shard}.tar").stat().st_size for shard in range(3))
        keys, from_network = [], 0
        for worker in range(3):
            with shardfeed.Stream(
                urls, **OPTIONS, **options, worker=worker, num_workers=3
            ) as stream:
                keys.append([sample.key for sample in stream])
                from_network += stream.stats()["network_bytes"]
        assert [keys[i % 3][i // 3] for i in range(300)] == expected
        assert from_network <= 1.1 * everything  # each byte once
    finally:
        server.stop()
