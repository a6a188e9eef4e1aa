"""plan: what each rank and worker will read."""

import json
from pathlib import Path

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
    assert "URL is required" in fails(2, "plan")


def test_a_list_that_is_not_there(tmp_path: Path) -> None:
    assert f"{tmp_path}/list" in fails(1, "plan", f"@{tmp_path}/list")
