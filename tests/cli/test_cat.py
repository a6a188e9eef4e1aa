"""cat: what is picked, in which order, and what is written."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from conftest import Fields, fails, keys_of, numbered, output, run, samples_of, tar_bytes

Shard = Callable[[str, Sequence[tuple[str, Fields]]], Path]


def test_inputs_follow_one_another(shard: Shard) -> None:
    a, b = shard("a.tar", numbered(0, 5)), shard("b.tar", numbered(5, 3))
    assert samples_of(output("cat", b, a)) == numbered(5, 3) + numbered(0, 5)


def test_compressed_and_standard_input(tmp_path: Path) -> None:
    packed = tmp_path / "a.tar.gz"
    packed.write_bytes(gzip.compress(tar_bytes(numbered(0, 4))))
    made = output("cat", packed, "-", data=tar_bytes(numbered(4, 2)))
    assert samples_of(made) == numbered(0, 6)


def test_fields_are_renamed_and_have_alternatives(shard: Shard) -> None:
    a = shard("a.tar", [("x", {"png": b"P", "cls": b"1", "no": b""}), ("y", {"jpg": b"J"})])
    made = output("cat", a, "-f", "img:jpg,png cls", "--missing", "keep")
    assert samples_of(made) == [("x", {"img": b"P", "cls": b"1"}), ("y", {"img": b"J"})]
    assert keys_of(output("cat", a, "-f", "img:jpg,png", "-f", "cls", "--missing=skip")) == ["x"]
    message = fails(1, "cat", a, "-f", "cls", "-o", a.parent / "out.tar")
    assert "a.tar: sample y has no field cls" in message
    assert not (a.parent / "out.tar").exists()


@pytest.mark.parametrize("bad", [":jpg", "img:", "a,,b", "img:a,"])
def test_bad_lists_of_fields(shard: Shard, bad: str) -> None:
    assert bad in fails(2, "cat", shard("a.tar", numbered(0, 1)), "-f", bad)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ("3", [3]),
        ("2:5", [2, 3, 4]),
        (":2", [0, 1]),
        ("8:", [8, 9]),
        ("1:9:3", [1, 4, 7]),
        ("::4", [0, 4, 8]),
    ],
)
def test_slices(shard: Shard, spec: str, wanted: list[int]) -> None:
    a = shard("a.tar", numbered(0, 10))
    assert keys_of(output("cat", a, "--slice", spec)) == [f"{i:04d}" for i in wanted]


def test_steps_of_tarp_count_from_zero(shard: Shard) -> None:
    a = shard("a.tar", numbered(0, 10))
    made = output("cat", a, "--slice", "1:9:3", "--tarp-compat")
    assert keys_of(made) == ["0003", "0006"]


@pytest.mark.parametrize("bad", ["a", "-3:", "1:2:0", "1:2:3:4", "1 :2"])
def test_bad_slices(shard: Shard, bad: str) -> None:
    done = run("cat", shard("a.tar", numbered(0, 1)), f"--slice={bad}")
    assert done.returncode == 2


def test_slice_of_each_shard(shard: Shard) -> None:
    a, b = shard("a.tar", numbered(0, 5)), shard("b.tar", numbered(5, 5))
    assert keys_of(output("cat", a, b, "--shardslice", ":2")) == ["0000", "0001", "0005", "0006"]


def test_keys_are_selected_and_excluded(shard: Shard, tmp_path: Path) -> None:
    a = shard("a.tar", numbered(0, 30))
    listed = tmp_path / "keys.txt"
    listed.write_text("0003\r\n\n002*\n")
    made = output("cat", a, "--select", f"@{listed}", "--select", "0001", "--exclude", "*5")
    assert keys_of(made) == ["0001", "0003"] + [f"002{i}" for i in range(10) if i != 5]
    # A word behind a key or a list is an input.
    assert keys_of(output("cat", "--select", "0001", "-f", "cls", a)) == ["0001"]
    # Numbers of a slice are those of the samples that are left.
    made = output("cat", a, "--exclude", "000?", "--slice", "0")
    assert keys_of(made) == ["0010"]
    assert "no-such-file" in fails(1, "cat", a, "--select", "@no-such-file")


def test_round_robin_as_in_the_documentation_of_tarp(shard: Shard) -> None:
    urls = [shard(f"{x}.tar", [(f"{x}{i}", {"t": b""}) for i in (1, 2, 3)]) for x in "abc"]
    assert keys_of(output("cat", *urls, "-m", 2)) == [
        "a1",
        "b1",
        "a2",
        "b2",
        "a3",
        "b3",
        "c1",
        "c2",
        "c3",
    ]
    braces = urls[0].parent / "{a,b,c}.tar"
    assert keys_of(output("cat", braces, "-m", 2)) == [
        "a1",
        "b1",
        "a2",
        "b2",
        "a3",
        "b3",
        "c1",
        "c2",
        "c3",
    ]


def test_shuffle_has_all_samples_and_follows_the_seed(shard: Shard) -> None:
    a = shard("a.tar", numbered(0, 200))
    orders = [keys_of(output("cat", a, "-s", 50, "--seed", seed)) for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0])
    assert all(sorted(order) == keys_of(a) for order in orders)
    # A sample comes at most as early as the buffer allows.
    assert all(int(key) <= place + 50 for place, key in enumerate(orders[0]))


def test_new_keys(shard: Shard) -> None:
    a = shard("a.tar", numbered(7, 3))
    assert keys_of(output("cat", a, "-R", "#")) == [f"{i:09d}" for i in range(3)]
    assert keys_of(output("cat", a, "--rekey", "x%%/%03d")) == [f"x%/{i:03d}" for i in range(3)]
    for bad in ("x", "%s", "%d%d", "%6d"):
        assert "pattern" in fails(2, "cat", a, "--rekey", bad)


def test_shards_are_cut_and_reported(shard: Shard, tmp_path: Path) -> None:
    a = shard("a.tar", numbered(0, 25))
    out = tmp_path / "out-%03d.tar"
    lines = output("cat", a, "-o", out, "--max-samples", 10, "--json").splitlines()
    reports = [json.loads(line) for line in lines]
    assert [report["samples"] for report in reports] == [10, 10, 5]
    paths = [Path(report["shard"]) for report in reports]
    assert list(itertools.chain(*map(keys_of, paths))) == keys_of(a)
    assert [report["bytes"] for report in reports] == [path.stat().st_size for path in paths]


def test_nothing_is_overwritten(shard: Shard) -> None:
    a, b = shard("a.tar", numbered(0, 3)), shard("b.tar", numbered(3, 3))
    before = b.read_bytes()
    assert "b.tar" in fails(1, "cat", a, "-o", b)
    assert b.read_bytes() == before
    output("cat", a, "-o", b, "--overwrite")
    assert keys_of(b) == keys_of(a)


def test_damage_publishes_nothing_or_is_left_out(shard: Shard, tmp_path: Path) -> None:
    a = shard("a.tar", numbered(0, 20))
    cut = tmp_path / "cut.tar"
    cut.write_bytes(a.read_bytes()[: 20 * 512])
    out = tmp_path / "out.tar"
    message = fails(1, "cat", cut, a, "-o", out)
    assert "cut.tar: " in message
    assert "at byte" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar", "cut.tar"]
    done = run("cat", cut, "-o", out, "--max-errors", 1)
    assert done.returncode == 0
    assert b"shardfeed: warning: " in done.stderr
    assert keys_of(out) == keys_of(a)[: len(keys_of(out))]
    b = shard("b.tar", numbered(50, 3))
    done = run("cat", cut, b, "-m", 2, "-o", tmp_path / "mixed.tar", "--max-errors", 1)
    assert (done.returncode, done.stderr.count(b"warning: ")) == (0, 1), done
    assert run("cat", cut, "-o", tmp_path / "q.tar", "--max-errors", 1, "-q").stderr == b""


def test_empty_input(shard: Shard) -> None:
    assert "empty shard" in fails(1, "cat", shard("a.tar", []))


def test_options_of_the_library(shard: Shard, tmp_path: Path) -> None:
    a = shard("a.tar", numbered(0, 3))
    bare = tmp_path / "bare.tar"
    bare.write_bytes(a.read_bytes().rstrip(b"\0") + bytes(512))
    size = -bare.stat().st_size % 512
    bare.write_bytes(bare.read_bytes() + bytes(size))
    fails(1, "cat", bare)
    for words in (["--end-marker", "optional"], ["--end_marker=optional"]):
        assert keys_of(output("cat", bare, *words)) == keys_of(a)
    assert "memory" in fails(2, "cat", a, "--memory", "many")


@pytest.mark.parametrize("words", [["--overwrite", "true"], ["--overwrite=true"], ["--overwrite"]])
def test_switches_of_the_library_take_a_value_in_either_form(
    shard: Shard, tmp_path: Path, words: list[str]
) -> None:
    made = tmp_path / "made.tar"
    for _ in range(2):
        output("cat", *words, shard("a.tar", numbered(0, 2)), "-o", made)
    assert keys_of(made) == ["0000", "0001"]
    assert "nothing is overwritten" in fails(
        1, "cat", "--overwrite", "false", shard("a.tar", numbered(0, 2)), "-o", made
    )
