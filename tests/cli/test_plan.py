"""plan: what each rank and worker will read."""

import json
from pathlib import Path
from typing import Any

from conftest import fails, output


def test_the_plan_and_its_warnings() -> None:
    text = output("plan", "a-{0..3}.tar", "b.tar", "world_size=2", "lanes=2").decode()
    assert text.startswith("5 shards, 2 consumers ")
    assert "rank 1 worker 0: 1 lane, 2 shards\n" in text
    assert "\nwarning: " in text
    assert output("plan", "a-{0..3}.tar", "b.tar", "--world-size", 2, "--lanes=2").decode() == text


def test_the_plan_for_programs() -> None:
    plan = json.loads(output("plan", "a-{0..3}.tar", "world_size=2", "--json"))
    assert plan["shards"] == 4
    assert plan["consumers"][1] == {
        "rank": 1, "worker": 0, "lanes": 1, "shards": 2, "samples": None, "bytes": None
    }  # fmt: skip
    assert any("; help: " in warning for warning in plan["warnings"])


def test_a_file_with_an_equals_sign() -> None:
    assert output("plan", "./shuffle=3").startswith(b"1 shard,")
    assert output("plan", "A=3").startswith(b"1 shard,")


def test_wrong_command_lines() -> None:
    assert fails(2, "plan", "a.tar", "shufle=3") == (
        'shardfeed: unknown option "shufle"; help: did you mean "shuffle"?\n'
    )
    assert "shardfeed: option shuffle: bad value" in fails(2, "plan", "a.tar", "shuffle=many")
    assert "shardfeed: limit=1 for 2 " in fails(2, "plan", "a.tar", "limit=1", "num_workers=2")
    assert "max_samples is an option of writer" in fails(2, "plan", "a.tar", "max_samples=3")
    assert "at least one URL" in fails(2, "plan", "shuffle=3")
    assert "at least one URL" in fails(2, "plan")


def test_a_list_that_is_not_there(tmp_path: Path) -> None:
    assert f"{tmp_path}/list" in fails(1, "plan", f"@{tmp_path}/list")


MADE_UP = ["--shards", 40, "--samples-per-shard", 100, "--spread", 0.3, "world_size=4"]


def lines(*words: object, data: bytes = b"") -> list[dict[str, Any]]:
    return [json.loads(line) for line in output("plan", *words, "--json", data=data).splitlines()]


def test_shards_that_are_made_up() -> None:
    (plan,) = lines(*MADE_UP, "--sample-bytes", 7)
    samples = [consumer["samples"] for consumer in plan["consumers"]]
    assert plan["shards"] == 40
    assert sum(samples) != 4000
    assert 10 * 70 * 4 <= sum(samples) <= 10 * 130 * 4
    assert [consumer["bytes"] for consumer in plan["consumers"]] == [7 * n for n in samples]
    summary = plan["summary"]
    assert (summary["samples"]["min"], summary["samples"]["max"]) == (min(samples), max(samples))
    assert summary["samples"]["median"] == sorted(samples)[2]
    assert summary["even_drop_leaves_out"] == sum(samples) - 4 * min(samples)
    assert summary["even_pad_repeats"] == 4 * max(samples) - sum(samples)
    # What even does, says the plan itself.
    even = output("plan", *MADE_UP, "even=drop").decode()
    assert f"even=drop leaves out {summary['even_drop_leaves_out']:,}\n" in even
    text = output("plan", *MADE_UP).decode()
    assert f"samples of a consumer: {min(samples):,} to {max(samples):,}, median " in text
    assert f"even=pad repeats {summary['even_pad_repeats']:,} (" in text
    # The same numbers in every run, and others with another seed.
    assert lines(*MADE_UP, "--sample-bytes", 7) == [plan]
    assert lines(*MADE_UP, "--made-up-seed", 1)[0]["consumers"] != plan["consumers"]


def test_shards_of_a_list(tmp_path: Path) -> None:
    counts = tmp_path / "counts"
    counts.write_text("a.tar 10 1000\nb.tar\t20\t2000\n\nc.tar 30 3000\n")
    (plan,) = lines("--counts", counts, "world_size=3")
    assert [c["samples"] for c in plan["consumers"]] == [10, 20, 30]
    assert [c["bytes"] for c in plan["consumers"]] == [1000, 2000, 3000]
    (plan,) = lines("--counts", "-", data=b"a 1\nb 2\n")
    assert [(c["samples"], c["bytes"]) for c in plan["consumers"]] == [(3, None)]
    for bad, line in (
        ("a.tar\n", 1),
        ("a 1\nb 2 3\n", 2),
        ("a 1 2\nb 2\n", 2),
        ("a 1 2 3\n", 1),
        ("a -1\n", 1),
        ("a 1e3\n", 1),
        ("a 99999999999999999999\n", 1),
    ):
        counts.write_text(bad)
        assert f"{counts}: line {line} is no NAME" in fails(1, "plan", "--counts", counts)
    counts.write_text("\n")
    assert "no shards" in fails(1, "plan", "--counts", counts)
    assert "no shards" in fails(1, "plan", "--counts", tmp_path / "gone")
    counts.write_text("a 4294967296\n")
    assert "shard 0 has 4294967296 samples" in fails(2, "plan", "--counts", counts)


def test_when_shards_are_read(tmp_path: Path) -> None:
    counts = tmp_path / "counts"
    counts.write_text("".join(f"{name} {n}\n" for name, n in zip("abcd", (3, 2, 2, 4))))
    words = ["--counts", counts, "world_size=2", "lanes=2", "--reads"]
    plan, *ranks = lines(*words)
    assert plan["shards"] == 4
    # a and c, then b and d.
    assert ranks == [
        {"rank": 0, "worker": 0, "reads": [[0, 3, 0, 2], [2, 2, 3, 4]]},
        {"rank": 1, "worker": 0, "reads": [[1, 2, 0, 1], [3, 4, 2, 5]]},
    ]
    text = output("plan", *words).decode()
    assert text.endswith("rank 1 worker 0: shard 3, 4 samples, at 2 to 5\n")
    assert "epoch_samples" in fails(2, "plan", *words, "epoch_samples=5")
    assert "samples are not known" in output("plan", "gone.tar").decode()
    assert "what is read when is not known" in fails(2, "plan", "gone.tar", "--reads")


def test_a_large_run_is_planned() -> None:
    words = ["--shards", 100_000, "--spread", 0.2, "world_size=1024", "shuffle_shards=true"]
    plan, *ranks = lines(*words, "shuffle=1000", "even=drop", "--reads")
    assert len(ranks) == len(plan["consumers"]) == 1024
    assert sorted({read[0] for rank in ranks for read in rank["reads"]})[0] == 0
    (samples,) = {consumer["samples"] for consumer in plan["consumers"]}
    for rank in ranks:
        # All is read when the shuffle buffer is left.
        assert samples - 1000 <= rank["reads"][-1][3] < samples
        assert samples <= sum(read[1] for read in rank["reads"]) <= samples + 999


def test_wrong_simulations() -> None:
    assert "at least one URL" in fails(2, "plan", "a.tar", "--shards", 3)
    assert "give one of them" in fails(2, "plan", "--counts", "-", "--shards", 3)
    assert "--spread 0 to 1" in fails(2, "plan", "--shards", 3, "--spread", 1.5)
    assert "--spread 0 to 1" in fails(2, "plan", "--shards", 10**9)
