"""What each rank and worker will read, before the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import shardfeed
from conftest import tar_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_plan_of_shards_that_are_not_there() -> None:
    plan = shardfeed.plan("/nonexistent/{0..5}.tar", world_size=2, num_workers=2, lanes=4)
    assert plan.consumers == [
        {"rank": r, "worker": w, "lanes": 1, "shards": n, "samples": None, "bytes": None}
        for r, w, n in [(0, 0, 2), (0, 1, 2), (1, 0, 1), (1, 1, 1)]
    ]
    (warning,) = plan.warnings
    assert "1 to 2 shards each" in warning
    assert "; help: set even=drop" in warning
    lines = str(plan).splitlines()
    assert lines[0] == "6 shards, 4 consumers (2 ranks x 2 workers), 4 lanes"
    assert lines[-1] == "warning: " + warning
    assert len(lines) == 3 + 4 + 1
    assert "6 shards" in repr(plan)


def test_samples_are_those_that_each_worker_gets(shards: Callable[..., str]) -> None:
    url = shards(6, 50)
    shardfeed.Dataset(url)  # makes the indexes
    options = {"shuffle_shards": True, "seed": 3, "epoch": 2, "lanes": 4, "num_workers": 2}
    plan = shardfeed.plan(url, **options)
    for consumer in plan.consumers:
        worker = consumer["worker"]
        assert consumer["samples"] == len(list(shardfeed.Stream(url, worker=worker, **options)))
    assert "300 samples" in str(plan)


def test_a_shard_that_was_written_again(tmp_path: Path) -> None:
    path = tar_of(3, tmp_path / "t.tar")
    shardfeed.Dataset(path)
    assert shardfeed.plan(path).consumers[0]["samples"] == 3
    assert shardfeed.plan(path).shards == [{"samples": 3, "bytes": path.stat().st_size}]
    tar_of(300, path)
    assert shardfeed.plan(path).consumers[0]["samples"] is None
    assert shardfeed.plan(path).shards == [{"samples": None, "bytes": None}]
    assert "its index is of another version of the shard" in str(shardfeed.plan(path))


def test_secrets_are_not_shown() -> None:
    plan = shardfeed.plan("https://user:password@host/t.tar?key=secret")
    assert "host/t.tar" in str(plan)
    assert "password" not in str(plan)
    assert "secret" not in str(plan)


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    plan = shardfeed.plan(f"{tmp_path}/\udcff.tar")
    assert "samples are not known" in str(plan)


def test_many_consumers() -> None:
    plan = shardfeed.plan("{000000..999999}.tar", world_size=1000, num_workers=2)
    assert len(plan.consumers) == 2000
    assert "... 1,991 more like these\n" in str(plan)
    assert len(str(plan).splitlines()) == 3 + 8 + 1 + 1 + len(plan.warnings)


def test_fewer_shards_than_consumers_is_a_warning_of_what_open_says() -> None:
    with pytest.raises(shardfeed.UsageError) as error:
        shardfeed.Stream("{0..2}.tar", num_workers=4, worker=0)
    assert shardfeed.plan("{0..2}.tar", num_workers=4).warnings == [str(error.value)]


def test_errors() -> None:
    with pytest.raises(shardfeed.UsageError, match="lanes=3"):
        shardfeed.plan("{0..9}.tar", lanes=3, num_workers=2, even="drop")
    with pytest.raises(shardfeed.UsageError, match="at least one URL"):
        shardfeed.plan([])
    with pytest.raises(shardfeed.NotFoundError):
        shardfeed.plan("@/nonexistent/list")
    with pytest.raises(TypeError, match='did you mean "shuffle"'):
        shardfeed.plan("a.tar", shufle=3)  # type: ignore[call-arg]


# ---- Shards that are not there -------------------------------------------------------------------


def test_a_plan_of_numbers() -> None:
    plan = shardfeed.simulate_plan([10, 20, 30, 40], [1, 2, 3, 4], world_size=2)
    assert [(c["rank"], c["samples"], c["bytes"]) for c in plan.consumers] == [
        (0, 40, 4),
        (1, 60, 6),
    ]
    assert plan.shards[3] == {"samples": 40, "bytes": 4}
    assert "100 samples" in str(plan)
    assert shardfeed.simulate_plan((5,)).shards == [{"samples": 5, "bytes": None}]
    assert shardfeed.simulate_plan(np.array([5, 6])).consumers[0]["samples"] == 11


def test_when_shards_are_read() -> None:
    plan = shardfeed.simulate_plan([10, 20, 30, 40], world_size=2)
    names = ("shard", "samples", "first", "last")
    assert plan.reads(0) == [
        dict(zip(names, read, strict=True)) for read in [(0, 10, 0, 9), (2, 30, 10, 39)]
    ]
    assert [read["shard"] for read in plan.reads(1)] == [1, 3]
    # The buffer has to be full before the first sample.
    (first, *_) = shardfeed.simulate_plan([10] * 5, shuffle=25).reads(0)
    assert (first["first"], first["last"]) == (0, 0)


def test_reads_are_those_of_streams(shards: Callable[..., str]) -> None:
    """The shards whose samples a stream delivers, and no sample before its shard is read."""
    url = shards(8, 40)
    options = {"shuffle_shards": True, "seed": 3, "lanes": 4, "shuffle": 15, "world_size": 2}
    plan = shardfeed.simulate_plan([40] * 8, **options)
    for rank in range(2):
        reads = plan.reads(rank)
        got: dict[int, list[int]] = {}
        for number, sample in enumerate(shardfeed.Stream(url, rank=rank, **options)):
            got.setdefault(int(sample.key) // 40, []).append(number)
        assert set(got) == {read["shard"] for read in reads}
        for read in reads:
            assert len(got[read["shard"]]) == read["samples"] == 40
            assert got[read["shard"]][0] >= read["first"]
            assert read["first"] <= read["last"] <= got[read["shard"]][-1]


def test_reads_of_a_plan_of_shards_with_indexes(shards: Callable[..., str]) -> None:
    url = shards(2, 5)
    with pytest.raises(shardfeed.UsageError, match="samples"):
        shardfeed.plan(url).reads(0)
    shardfeed.Dataset(url)
    assert [read["samples"] for read in shardfeed.plan(url).reads(0)] == [5, 5]


def test_wrong_numbers() -> None:
    with pytest.raises(shardfeed.UsageError, match="shard"):
        shardfeed.simulate_plan([])
    with pytest.raises(shardfeed.UsageError, match="2 shards, and bytes of 1"):
        shardfeed.simulate_plan([1, 2], [1])
    with pytest.raises(shardfeed.UsageError, match="shard 1 has -2"):
        shardfeed.simulate_plan([1, -2])
    with pytest.raises(shardfeed.UsageError, match="4294967295"):
        shardfeed.simulate_plan([2**32])
    with pytest.raises(TypeError):
        shardfeed.simulate_plan([1.5])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="shufle"):
        shardfeed.simulate_plan([1], shufle=3)  # type: ignore[call-arg]
    plan = shardfeed.simulate_plan([1, 2])
    for consumer in (1, -1, 2**40):
        with pytest.raises(shardfeed.UsageError, match=f"consumer {consumer}"):
            plan.reads(consumer)
    with pytest.raises(shardfeed.UsageError, match="epoch_samples"):
        shardfeed.simulate_plan([1, 2], epoch_samples=1).reads(0)
