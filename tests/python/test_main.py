"""The commands of python -m shardfeed, as a shell runs them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import shardfeed
from shardfeed import _command_line as command_line

if TYPE_CHECKING:
    from collections.abc import Callable


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "shardfeed", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def fails(status: int, *words: object) -> str:
    """What it says on standard error, and nothing on standard output."""
    done = run(*words)
    assert done.returncode == status, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


def test_plan() -> None:
    done = run("plan", "a-{0..3}.tar", "b.tar", "world_size=2", "lanes=2")
    assert (done.returncode, done.stderr) == (0, "")
    plan = shardfeed.plan(["a-{0..3}.tar", "b.tar"], world_size=2, lanes=2)
    assert done.stdout == str(plan)
    assert "5 shards, 2 consumers" in done.stdout
    assert "\nwarning: " in done.stdout


def test_plan_of_a_file_with_an_equals_sign() -> None:
    assert "1 shard," in run("plan", "./shuffle=3").stdout


def test_wrong_command_lines() -> None:
    assert fails(2, "plan", "a.tar", "shufle=3") == (
        'shardfeed: unknown option "shufle"; help: did you mean "shuffle"?\n'
    )
    assert "shardfeed: option shuffle: bad value" in fails(2, "plan", "a.tar", "shuffle=many")
    assert "shardfeed: limit=1 for 2 " in fails(2, "plan", "a.tar", "limit=1", "num_workers=2")
    assert "at least one URL" in fails(2, "plan", "shuffle=3")
    assert "usage: " in fails(2, "plan")
    assert "usage: " in fails(2)
    assert "usage: " in fails(2, "walk", "a.tar")
    assert "usage: " in fails(2, "merge-states", "out.json")


def test_failures() -> None:
    assert "/nonexistent/list" in fails(1, "plan", "@/nonexistent/list")


def test_help() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "merge-states" in done.stdout
    assert "world_size=8" in run("plan", "--help").stdout


def test_the_manual_page_says_what_the_help_says(tmp_path: Path) -> None:
    def words(text: str) -> set[str]:
        return set(re.findall("[A-Za-z_]{4,}", text))

    source, page = Path(command_line.__file__), tmp_path / "shardfeed.1"
    script = Path(__file__).parents[2] / "scripts" / "command_page.py"
    subprocess.run([sys.executable, script, source, "0.1.0", page], check=True)
    text = page.read_text()
    # What argparse itself says.
    own = words("usage: python shardfeed positional arguments optional options show message exit")
    own |= words("this")
    for command in ("plan", "merge-states", "cache"):
        said = run(command, "--help").stdout
        assert command.replace("-", "\\-") in text
        assert words(said) - own <= words(text)
    for number in command_line.EXIT_STATUS:
        assert f"\\fB{number}\\fR" in text
    # The examples can be said.
    for example, _ in command_line.EXAMPLES:
        program, *rest = shlex.split(example)
        assert command_line.parser(program).parse_args(rest).command in example
    assert "warning: " in run(*shlex.split(command_line.EXAMPLES[0][0])[1:]).stdout


@pytest.fixture
def saved(shards: Callable[..., str], tmp_path: Path) -> tuple[str, list[Path], list[str]]:
    """Shards, the states of two ranks after 30 samples each, and the keys that come after."""
    url = shards(4, 25)
    paths = []
    whole = [sample.key for sample in shardfeed.Stream(url, lanes=4, shuffle=10)]
    for rank in range(2):
        with shardfeed.Stream(url, lanes=4, shuffle=10, world_size=2, rank=rank) as stream:
            iterator = iter(stream)
            for _ in range(30):
                next(iterator)
            paths.append(tmp_path / f"{rank}.json")
            paths[-1].write_text(json.dumps(stream.state_dict()))
    return url, paths, whole[60:]


def test_merge_states(saved: tuple[str, list[Path], list[str]], tmp_path: Path) -> None:
    url, paths, rest = saved
    done = run("merge-states", tmp_path / "all.json", *paths)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    stream = shardfeed.Stream(url, lanes=4, shuffle=10)
    stream.load_state_dict(json.loads((tmp_path / "all.json").read_text()))
    assert [sample.key for sample in stream] == rest


def test_merge_states_never_writes_over_a_file(saved: tuple[str, list[Path], list[str]]) -> None:
    _, paths, _ = saved
    before = paths[0].read_bytes()
    message = fails(2, "merge-states", *paths)
    assert message.startswith(f"shardfeed: {paths[0]}: there is such a file already; help: ")
    assert paths[0].read_bytes() == before


def test_states_that_cannot_be_merged(
    saved: tuple[str, list[Path], list[str]], tmp_path: Path
) -> None:
    _, paths, _ = saved
    out = tmp_path / "out.json"
    assert "two of the states are of consumer 0" in fails(
        2, "merge-states", out, paths[0], paths[0]
    )
    assert "nowhere.json" in fails(1, "merge-states", out, paths[0], tmp_path / "nowhere.json")
    bad = tmp_path / "bad.json"
    for text in ("", "{", "[]", "3", '{"shardfeed": 1}', '{"epoch": 0}'):
        bad.write_text(text)
        message = fails(1, "merge-states", out, paths[0], bad)
        assert message.startswith(f"shardfeed: {bad}: "), text
        assert "help: " in message
    assert str(out) not in map(str, tmp_path.iterdir())


def test_output_that_cannot_be_written(
    saved: tuple[str, list[Path], list[str]], tmp_path: Path
) -> None:
    _, paths, _ = saved
    assert "no_folder" in fails(1, "merge-states", tmp_path / "no_folder" / "out.json", *paths)
