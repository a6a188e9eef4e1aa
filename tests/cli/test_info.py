"""info: figures of shards, and what is suspicious about them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from conftest import Fields, fails, numbered, output, run, tar_bytes

Shard = Callable[[str, Sequence[tuple[str, Fields]]], Path]


def facts(*words: object, status: int = 0) -> dict[str, Any]:
    done = run("info", "--json", *words)
    assert done.returncode == status, done
    made = json.loads(done.stdout)
    assert isinstance(made, dict)
    return made


def kinds(found: dict[str, Any]) -> list[str]:
    return [warning["kind"] for warning in found["warnings"]]


def test_counts_and_sizes(shard: Shard, tmp_path: Path) -> None:
    samples = [(f"{i:03d}", {"bin": bytes(i), "cls": b"1"}) for i in range(101)]
    a = shard("a.tar", samples)
    b = tmp_path / "b.tar.gz"
    b.write_bytes(gzip.compress(tar_bytes([("b" + key, fields) for key, fields in samples])))
    found = facts(a, b)
    assert found["formats"] == {"tar": 1, "tar.gz": 1}
    assert (found["samples"], found["field_count"], found["shards"]) == (202, 404, 2)
    size = found["fields"][0]["sizes"]
    assert (size["count"], size["total"], size["min"], size["max"]) == (202, 2 * 5050, 0, 100)
    assert abs(size["median"] - 50) <= 50 / 16
    assert size["histogram"] == [[0, 4], [2, 4], [4, 8], [8, 16], [16, 32], [32, 64], [64, 74]]
    assert found["file_sizes"]["total"] == a.stat().st_size + b.stat().st_size
    assert found["samples_of_shards"]["min"] == 101
    assert (found["warnings"], found["fault_count"], found["counters"]) == ([], 0, {})


def test_the_table_for_people(shard: Shard) -> None:
    samples = [("a", {"cls": b"1", "txt": b"x" * 5000}), ("b", {"cls": b"2"})]
    assert output("info", shard("a.tar", samples)).decode() == (
        "shards   1 tar, 10.2 kB\n"
        "samples  2, 3 fields, 5.00 kB\n"
        "\n"
        "field                share      total      min   median      max  sizes\n"
        "cls                  100 %        2 B      1 B      1 B      1 B  █\n"
        "txt                 50.0 %    5.00 kB  5.00 kB  5.00 kB  5.00 kB  █\n"
        "\n"
        "sample                        5.00 kB      1 B      1 B  5.00 kB  █           █\n"
        "file of a shard               10.2 kB  10.2 kB  10.2 kB  10.2 kB  █\n"
        "samples of a shard                  2        2        2        2  █\n"
        "\n"
        "warning: samples without a field that others have: txt (1); "
        "help: shardfeed cat -f LIST --missing skip leaves them out\n"
    )


def test_unequal_shards_but_for_a_smaller_last_one(shard: Shard) -> None:
    small, large = shard("s.tar", numbered(0, 10)), shard("l.tar", numbered(10, 40))
    same = shard("m.tar", numbered(50, 40))
    assert kinds(facts(large, same, small)) == []
    assert kinds(facts(large, small, same)) == ["unequal_shards"]


def test_keys_that_come_again_and_shards_sorted_by_suffix(shard: Shard) -> None:
    a, b = shard("a.tar", numbered(0, 10)), shard("b.tar", numbered(7, 10))
    found = facts(a, b)
    assert (kinds(found), found["repeated_keys"]) == (["duplicate_keys"], 3)
    assert "the first is 0007" in found["warnings"][0]["message"]
    by_suffix = [(k, {n: d}) for n in ("cls", "txt") for k, f in numbered(0, 50) for d in [f[n]]]
    assert kinds(facts(shard("c.tar", by_suffix))) == ["sorted_by_suffix"]


def test_damage_is_reported_and_the_rest_is_counted(shard: Shard) -> None:
    good, bad = shard("a.tar", numbered(0, 10)), shard("b.tar", numbered(10, 10))
    bad.write_bytes(bad.read_bytes()[:5000])
    found = facts(bad, good, status=1)
    assert found["fault_count"] == 1
    assert found["faults"][0]["class"] == "TRUNCATED"
    assert found["samples"] > 10
    assert kinds(found)[0] == "damage"
    assert run("info", bad, good).returncode == 1


def test_what_a_plan_and_the_counters_say(shard: Shard, tmp_path: Path) -> None:
    a = shard("a.tar", [*numbered(0, 4), ("x/", {"json": b"{}"})])
    found = facts(a, "--world-size", 4, "--num-workers", 2)
    assert "1 shard" in found["warnings"][1]["message"]
    assert "plan" in kinds(found)
    assert found["samples"] == 4
    assert found["counters"] == {"ignored_members": 1}
    fails(1, "info", tmp_path / "none.tar")
