"""What each rank and worker will read, before the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
