"""What reshard takes as done, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from resharding import contents, keys, shuffled

# ---- What is there ------------------------------------------------------------------------------


def test_what_is_published_is_skipped(tmp_path: Path, shards: Any) -> None:
    urls = shards(3, 20)
    common: Any = {"samples": 15, "shuffle": True, "workers": 2}
    first = shardfeed.reshard(urls, f"{tmp_path}/out/", **common)
    before = contents(first)
    os.remove(first.outputs[2])
    kept = {url: os.stat(url).st_mtime_ns for url in first.outputs if os.path.exists(url)}
    second = shardfeed.reshard(urls, f"{tmp_path}/out/", **common)
    assert [task.status for task in second] == ["there", "there", "made", "there"]
    assert contents(second) == before
    assert {url: os.stat(url).st_mtime_ns for url in kept} == kept


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seed": 2}, "seed is 0 there, and 2 here"),
        ({"samples": 10}, "samples_per_shard is 15 there, and 10 here"),
        ({"shuffle": False}, "order is 'random' there, and 'input' here"),
        ({"rekey": "#"}, "rekey is '' there, and '%09d' here"),
    ],
)
def test_another_order_is_refused(
    tmp_path: Path, shards: Any, changed: dict[str, Any], said: str
) -> None:
    urls = shards(3, 20)
    common: Any = {"samples": 15, "shuffle": True, "workers": 0}
    first = shardfeed.reshard(urls, f"{tmp_path}/out/", **common)
    os.remove(first.outputs[2])
    with pytest.raises(shardfeed.UsageError, match="another order is being written") as raised:
        shardfeed.reshard(urls, f"{tmp_path}/out/", **{**common, **changed})
    assert said in str(raised.value)
    assert not os.path.exists(first.outputs[2])


def test_other_inputs_and_other_outputs_are_refused(tmp_path: Path, shards: Any) -> None:
    urls, others = shards(2, 10), shards(2, 10, name="t")
    report = shardfeed.reshard(urls, f"{tmp_path}/out/", samples=6, workers=0)
    with pytest.raises(shardfeed.UsageError, match="inputs is"):
        shardfeed.reshard(others, f"{tmp_path}/out/", samples=6, workers=0)
    os.remove(f"{report.outputs[0]}.plan")
    with pytest.raises(shardfeed.UsageError, match="reshard did not make it"):
        shardfeed.reshard(urls, f"{tmp_path}/out/", samples=6, workers=0)


def test_inputs_are_told_apart_by_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in "ac":
        (tmp_path / folder).mkdir()
        for number in range(2):
            write_tar(tmp_path / folder / f"in-{number}.tar", numbered(10 * number, 10))
    common: Any = {"samples": 6, "workers": 0}
    monkeypatch.chdir(tmp_path)
    first = shardfeed.reshard("a/in-{0,1}.tar", "out/", **common)
    os.remove(first.outputs[1])
    with pytest.raises(shardfeed.UsageError, match="inputs is"):
        shardfeed.reshard("c/in-{0,1}.tar", "out/", **common)
    monkeypatch.chdir(tmp_path / "c")  # the same files by other names
    for same in ("../a/in-{0,1}.tar", f"file://{tmp_path}/a/in-{{0,1}}.tar"):
        again = shardfeed.reshard(same, f"{tmp_path}/out/", **common)
        assert again.is_complete


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"reader": {"fields": "cls"}}, "fields is '' there, and 'cls' here"),
        ({"reader": {"concat": True}}, "concat is 'false' there, and 'true' here"),
        ({"writer": {"compression": "zstd"}}, "compression is 'auto' there, and 'zstd' here"),
        ({"writer": {"format": "zip"}}, "format is 'auto' there, and 'zip' here"),
    ],
)
def test_other_samples_of_the_same_inputs_are_refused(
    tmp_path: Path, shards: Any, changed: dict[str, Any], said: str
) -> None:
    urls = shards(2, 10)
    common: Any = {"samples": 6, "workers": 0}
    first = shardfeed.reshard(urls, f"{tmp_path}/out/", **common)
    os.remove(first.outputs[1])
    with pytest.raises(shardfeed.UsageError, match="another order is being written") as raised:
        shardfeed.reshard(urls, f"{tmp_path}/out/", **common, **changed)
    assert said in str(raised.value)
    same: Any = {"reader": {"concat": "no", "retries": 1}, "writer": {"format": "auto"}}
    assert shardfeed.reshard(urls, f"{tmp_path}/out/", **common, **same).is_complete


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ([("plan.txt", b"x")], "json"),
        ([("plan.json", b"5")], "names no run"),
        ([("plan.json", b"{")], "Expecting"),
        ([("plan.json", b'{"run": "../x"}')], "names no run"),
        ([("a.json", b"{}"), ("b.json", b"{}")], "too many"),
        ([("plan.json", b"[" * 200_000)], ""),
        ([("plan.json", b" " * (2 << 20) + b"{}")], "max_member"),
        (b"no archive", ""),
        (b"", ""),
    ],
)
def test_a_mark_that_is_none(tmp_path: Path, shards: Any, samples: Any, said: str) -> None:
    urls = shards(2, 10)
    mark = tmp_path / "o-0.tar.plan"
    if isinstance(samples, bytes):
        mark.write_bytes(samples)
    else:
        write_tar(mark, samples)
    with pytest.raises(shardfeed.UsageError, match="this is no mark of reshard") as raised:
        shardfeed.reshard(urls, f"{tmp_path}/o-%d.tar", samples=6, workers=0)
    assert str(raised.value).startswith(f"{mark}: ")
    assert said in str(raised.value)
    assert not list(tmp_path.glob("o-*.tar"))


def test_two_outputs_with_one_name_are_refused(tmp_path: Path, shards: Any) -> None:
    urls = shards(2, 20)
    with pytest.raises(shardfeed.UsageError, match=r"would both make .*o-1\.tar"):
        shardfeed.reshard(urls, f"{tmp_path}/o-%.1s.tar", samples=2, workers=0)
    assert not list(tmp_path.glob("o-*"))


@pytest.mark.parametrize("overwrite", [True, "true", "yes", "1", 1])
def test_nothing_is_overwritten(tmp_path: Path, shards: Any, overwrite: Any) -> None:
    """A run that ends in the middle would leave shards of two orders."""
    urls = shards(3, 20)
    common: Any = {"samples": 15, "shuffle": True, "workers": 0}
    first = shardfeed.reshard(urls, f"{tmp_path}/out/", **common)
    before = contents(first)
    with pytest.raises(shardfeed.UsageError, match="writer: overwrite is not for reshard"):
        shardfeed.reshard(
            urls, f"{tmp_path}/out/", **common, seed=2, writer={"overwrite": overwrite}
        )
    assert contents(first) == before
    mark = Path(f"{first.outputs[0]}.plan").read_bytes()
    for no in (False, "false", "no", "0", "off", 0):
        again = shardfeed.reshard(urls, f"{tmp_path}/out/", **common, writer={"overwrite": no})
        assert again.counts == {"there": 4}
        with pytest.raises(shardfeed.UsageError, match="another order is being written"):
            shardfeed.reshard(urls, f"{tmp_path}/out/", **common, seed=2, writer={"overwrite": no})
    assert Path(f"{first.outputs[0]}.plan").read_bytes() == mark


@pytest.mark.parametrize("output", ["{}/s-%03d.tar", "file://{}/s-%03d.tar", "{}/link/s-%03d.tar"])
def test_outputs_that_are_inputs(tmp_path: Path, shards: Any, output: str) -> None:
    urls = shards(3, 20)
    (tmp_path / "link").symlink_to(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.glob("*.tar")}
    with pytest.raises(shardfeed.UsageError, match=r"is the input .*s-000\.tar; help"):
        shardfeed.reshard(urls, output.format(tmp_path), samples=15, workers=0)
    assert {path: path.read_bytes() for path in tmp_path.glob("*.tar")} == before
    assert not list(tmp_path.glob("*.plan"))


# ---- What is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"samples": 0}, "give 1 or more"),
        ({"samples": -5}, "give 1 or more"),
        ({"samples": 2.5}, "samples=2.5; help: give a whole number"),
        ({"samples": "5"}, "samples='5'; help: give a whole number"),
        ({"samples": True}, "give a whole number"),
        ({"seed": -1}, "from 0 to 2"),
        ({"seed": "3"}, "seed='3'; help: give a whole number"),
        ({"rekey": 7}, "is no pattern"),
        ({"reader": {"seed": 1}}, "the option seed is not for reshard"),
        ({"reader": {"epoch": 1}}, "the option epoch is not for reshard"),
        ({"executor": "cloud"}, "give one of local, array"),
        ({"output": "out.tar"}, "no number of the shard"),
        ({"output": "o-%s-%d.tar"}, "no number of the shard"),
        ({"rekey": "x"}, "is no pattern"),
        ({"memory": "much"}, "memory"),
        ({"reader": {"shuffle": 10}}, "the option shuffle is not for reshard"),
        ({"reader": {"select_keys": "a*"}}, "the option select_keys is not for reshard"),
        ({"writer": {"max_samples": 10}}, "give samples"),
        ({"scratch": "tmp"}, "give a folder, which ends in /"),
        ({"scratch": "tmp/", "shuffle": False}, "scratch is for shuffle"),
        ({"scratch": "tmp/", "sort": True}, "give one of them"),
        ({"sort": True, "shuffle": False}, "give scratch"),
        ({"scratch": "tmp/", "reader": {"duplicate_keys": "accept"}}, "neighbours"),
        ({"scratch": "tmp/", "writer": {"overwrite": True}}, "overwrite is not for reshard"),
        ({"output": "pipe:cat > %d"}, "a pipe keeps none"),
        ({"input": "-"}, "a pipe cannot be read"),
        ({"input": "pipe:cat a.tar"}, "a pipe cannot be read"),
        ({"workers": -1}, "give 0 or more"),
    ],
)
def test_wrong_arguments(
    tmp_path: Path, shards: Any, monkeypatch: pytest.MonkeyPatch, arguments: Any, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    usual: Any = {"input": shards(2, 2), "output": f"{tmp_path}/out/", "samples": 3}
    with pytest.raises(shardfeed.UsageError, match=said):
        shardfeed.reshard(**{**usual, "shuffle": True, **arguments})
    assert list(tmp_path.glob("out/*.tar")) == []


def test_a_fifo_and_nothing_are_refused(tmp_path: Path, silent_fifo: Path) -> None:
    with pytest.raises(shardfeed.UsageError, match="a pipe cannot be read"):
        shardfeed.reshard(str(silent_fifo), f"{tmp_path}/out/", samples=5)
    empty = write_tar(tmp_path / "empty.tar", [])
    with pytest.raises(shardfeed.UsageError, match="no samples"):
        shardfeed.reshard(str(empty), f"{tmp_path}/out/", samples=5, reader={"allow_empty": True})
    some = write_tar(tmp_path / "some.tar", numbered(0, 4))
    report = shardfeed.reshard(
        [str(empty), str(some), str(empty)],
        f"{tmp_path}/out/",
        samples=5,
        shuffle=True,
        scratch=f"{tmp_path}/tmp/",
        reader={"allow_empty": True},
        workers=0,
    )
    assert keys(report.outputs) == shuffled(0, 4)
