"""What the pages show of the command runs, and says what they say."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import COMMAND, keys_of, output

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


def test_the_page_of_the_command(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(30):
            (tmp_path / "images" / name / f"{number}.jpg").write_bytes(
                b"%d of %s" % (number, name.encode())
            )
    folder = Path(COMMAND).resolve().parent
    path = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    for block in blocks("docs/command.md"):
        done = subprocess.run(
            ["bash", "-euc", block], cwd=tmp_path, env=path, capture_output=True, check=False
        )
        assert done.returncode == 0, (block, done.stderr)
    assert (tmp_path / "classes.txt").read_text() == "cat\ndog\n"
    train, val = (keys_of(tmp_path / f"{name}-000000.tar") for name in ("train", "val"))
    assert sorted(train + val) == sorted(keys_of(tmp_path / "all.tar"))
    assert keys_of(tmp_path / "picked.tar") == [f"x/{i:06d}" for i in range(30)]
    assert keys_of(tmp_path / "table.tar") == ["b/1"]


@pytest.mark.parametrize(
    "verb",
    [
        "create",
        "cat",
        "split",
        "sort",
        "map",
        "reshard",
        "convert",
        "repair",
        "tsv",
        "json",
        "index",
        "plan",
        "merge-states",
        "cache",
        "bench",
        "doctor",
    ],
)
def test_help_has_every_flag_and_examples_that_parse(verb: str) -> None:
    text = output("help", verb).decode()
    assert text == output(verb, "--help").decode()
    assert "examples:" in text
    described, _, _ = text.partition("\nexamples:")
    assert all(len(line) <= 80 for line in described.splitlines()[1:])
    assert verb in output("help").decode()


def test_the_options_of_the_library_fit_a_terminal() -> None:
    text = output("help", "options").decode()
    assert "  --compress-threads " in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_flags_of_tarp_are_there() -> None:
    page = (ROOT / "docs/from-tarp.md").read_text()
    for row in re.findall(
        r"^\| `(cat|create|sort|split|proc)\b[^`]*` \| the same", page, re.MULTILINE
    ):
        line = next(line for line in page.splitlines() if line.startswith(f"| `{row}"))
        text = output("help", row).decode()
        for flag in re.findall(r"(?<= )--?[a-zA-Z]+", line.split("|")[1]):
            assert re.search(rf"{flag}\b", text), (row, flag)


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["show", "a.tar", "--lines", "0"], "--lines: 0 is no number from 1 to 1000000"),
        (
            ["map", "a.tar", "-c", "true", "-p", "many"],
            "--parallel: many is no number from 1 to 1024",
        ),
        (["bench", "a.tar", "--seconds", "-1"], "--seconds: -1 is no number above 0"),
        (
            ["cat", "a.tar", "--missing", "no", "-o", "b.tar"],
            "--missing: no not in {fail,skip,keep}",
        ),
        (["map", "a.tar", "-c", "x", "-m", "y", "-o", "b.tar"], "--command excludes --multi"),
    ],
)
def test_a_wrong_word_is_named_with_what_is_right(words: list[str], cause: str) -> None:
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"shardfeed: {cause}; help: shardfeed help {words[0]}\n"
