"""split: where shards are cut, and shares that never change."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from conftest import Fields, fails, keys_of, numbered, output, run

Shard = Callable[[str, Sequence[tuple[str, Fields]]], Path]


def shards(folder: Path, pattern: str) -> list[list[str]]:
    return [keys_of(path) for path in sorted(folder.glob(pattern))]


def test_by_count(shard: Shard, tmp_path: Path) -> None:
    a = shard("a.tar", numbered(0, 25))
    output("split", a, "-c", 10, "-o", tmp_path / "s-%03d.tar")
    made = shards(tmp_path, "s-*.tar")
    assert [len(keys) for keys in made] == [10, 10, 5]
    assert [key for keys in made for key in keys] == keys_of(a)


def test_by_size_as_tarp_counts(shard: Shard, tmp_path: Path) -> None:
    # __key__ with its name counts 7 + 2, the field 1 + 991: 1,001 bytes a sample.
    a = shard("a.tar", [(f"{i:02d}", {"x": bytes(991)}) for i in range(10)])
    output("split", a, "-s", "3e3", "-o", tmp_path / "s-%d.tar")
    assert [len(keys) for keys in shards(tmp_path, "s-*.tar")] == [3, 3, 3, 1]


def test_by_the_size_of_the_file(shard: Shard, tmp_path: Path) -> None:
    a = shard("a.tar", numbered(0, 30))
    output("split", a, "--max-bytes", "20kB", "-o", tmp_path / "s-%d.tar")
    paths = list(tmp_path.glob("s-*.tar"))
    assert len(paths) > 1
    assert all(path.stat().st_size <= 20_480 for path in paths)


def test_something_must_say_where(shard: Shard) -> None:
    assert "where to cut" in fails(2, "split", shard("a.tar", numbered(0, 3)))


def test_shares_follow_the_key_alone(shard: Shard, tmp_path: Path) -> None:
    a = shard("a.tar", numbered(0, 2000))
    out = tmp_path / "{}.tar"
    reports = output("split", a, "--ratio", "train:0.9,val:0.1", "-o", out, "--json")
    counts = {Path(r["shard"]).stem: r["samples"] for r in map(json.loads, reports.splitlines())}
    assert sum(counts.values()) == 2000
    assert 150 < counts["val"] < 250
    # Half of the samples, in another order, go where they went.
    train, val = (set(keys_of(tmp_path / f"{name}.tar")) for name in ("train", "val"))
    b = shard("b.tar", numbered(1000, 1000)[::-1])
    output("split", b, "--ratio", "train:9,val:1", "-o", tmp_path / "b-{}.tar")
    assert set(keys_of(tmp_path / "b-train.tar")) <= train
    assert set(keys_of(tmp_path / "b-val.tar")) <= val


def test_wrong_shares(shard: Shard, tmp_path: Path) -> None:
    a = shard("a.tar", numbered(0, 3))
    for bad in ("train", "a:0", "a:-1,b:2", "a:1,a:2", ":1", "a:x", "a:nan"):
        assert "shares" in fails(2, "split", a, "--ratio", bad)
    assert "{}" in fails(2, "split", a, "--ratio", "a:1,b:1", "-o", tmp_path / "x-%d.tar")


def test_commands_for_each_shard(shard: Shard, tmp_path: Path) -> None:
    a = shard("a.tar", numbered(0, 4))
    out = tmp_path / "it's %d.tar"
    log = tmp_path / "log"
    command = f'test -s {{}} && echo %s "$SHARDFEED_SHARD" 100%% >> {log}'
    output("split", a, "-c", 2, "-o", out, "-p", command)
    names = [str(out) % i for i in range(2)]
    assert log.read_text() == "".join(f"{name} {name} 100%\n" for name in names)
    done = run("split", a, "-c", 2, "-o", tmp_path / "f-%d.tar", "-p", "exit 3")
    assert done.returncode == 1
    assert b"f-0.tar is published, but" in done.stderr
    assert b"status is 3" in done.stderr
