"""The command in the Python package, as a shell runs it; tests/cli has more of its verbs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import shardfeed
from shardfeed.__main__ import main

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


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"shard-\xff")
    message = fails(1, "cat", tmp_path / name)
    assert f"{tmp_path}/shard-\\xff" in message


def test_help() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "merge-states" in done.stdout
    assert "world_size=8" in run("plan", "--help").stdout
    assert run("--version").stdout == f"shardfeed {shardfeed.__version__}\n"


def test_a_call_leaves_signals_as_they_were(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert main(["--version"]) == 0
    assert capfd.readouterr().out.startswith("shardfeed ")
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN


def test_ctrl_c_ends_the_command(tmp_path: Path) -> None:
    fifo, output = tmp_path / "fifo", tmp_path / "out.tar"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "shardfeed", "cat", fifo, "-o", output]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        with fifo.open("wb") as file:  # opens when the command has begun to read
            file.write(b"\0" * 512)
            file.flush()
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == -signal.SIGINT
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert not output.exists()


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
