"""map: commands and functions of Python, in order, and what fails."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from conftest import (
    COMMAND,
    Fields,
    fails,
    interruptible,
    keys_of,
    numbered,
    output,
    run,
    samples_of,
)

Shard = Callable[[str, Sequence[tuple[str, Fields]]], Path]

MODULE = """
import os

def upper(sample):
    print("goes to standard error")
    sample["txt"] = sample["txt"].upper()
    return {**sample, "len": len(sample["txt"]), "json": {"cls": int(sample["cls"])}}

def several(sample):
    key = sample["__key__"]
    return [{"__key__": f"{key}-{i}", "n": i} for i in range(int(sample["cls"]))]

def odd(sample):
    if int(sample["__key__"]) % 2 == 0:
        raise ValueError("even")
    return sample

def reads(sample):
    import subprocess
    subprocess.run(["cat"], stdout=subprocess.DEVNULL, check=True)
    return sample

def dies(sample):
    os._exit(7)
"""


def test_the_command_sees_and_leaves_files(shard: Shard) -> None:
    a = shard("a.tar", numbered(0, 4))
    script = (
        "tr a-z A-Z < sample.txt > sample.big; rm sample.cls; "
        "echo x$(cat sample.__key__) > sample.__key__"
    )
    made = samples_of(output("map", a, "-c", script, "-p", 3))
    assert made == [
        (f"x{key}", {"txt": fields["txt"], "big": fields["txt"].upper()})
        for key, fields in numbered(0, 4)
    ]


def test_one_sample_makes_many(shard: Shard) -> None:
    a = shard("a.tar", numbered(0, 3))
    script = (
        "for i in $(seq $(cat sample.cls)); do echo $i > sample-00$i.n; done; "
        "test -e sample-002.n && printf own > sample-002.__key__; true"
    )
    made = samples_of(output("map", a, "-m", script))
    assert made == [
        ("0001/001", {"n": b"1\n"}),
        ("0002/001", {"n": b"1\n"}),
        ("own", {"n": b"2\n"}),
    ]


def test_commands_that_fail(shard: Shard, tmp_path: Path) -> None:
    a = shard("a.tar", numbered(0, 9))
    test = 'test "$(cat sample.cls)" != 1'
    out = tmp_path / "out.tar"
    message = fails(1, "map", a, "-c", test, "-o", out)
    assert "a.tar: sample 0001: the command failed: its status is 1" in message
    assert not out.exists()
    done = run("map", a, "-c", test, "-e", "skip")
    assert keys_of(done.stdout) == [key for key, fields in numbered(0, 9) if fields["cls"] != b"1"]
    assert b"3 samples were left out" in done.stderr
    assert keys_of(run("map", a, "-c", test, "-e", "keep").stdout) == keys_of(a)
    assert "left no file" in fails(1, "map", a, "-c", "rm sample.*")
    assert "removed its folder" in fails(1, "map", a, "-c", 'rm -rf "$PWD"')
    assert "what to run" in fails(2, "map", a)
    assert "slash" in fails(2, "map", a, "-c", "true", "-b", "../evil")
    assert fails(2, "map", a, "-c", "true", "-p", 100_000)
    assert "to keep" in fails(2, "map", a, "--python", "m:f", "-e", "keep")
    assert fails(2, "map", a, "-c", "true", "-m", "true")


def test_folders_are_removed(shard: Shard, tmp_path: Path) -> None:
    folder = tmp_path / "folders"
    folder.mkdir()
    a = shard("a.tar", numbered(0, 3))
    output("map", a, "-c", "mkdir deep; touch deep/file other", "--tmpdir", folder)
    assert list(folder.iterdir()) == []


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "functions.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("module")
def test_functions_of_python(shard: Shard) -> None:
    a = shard("a.tar", numbered(0, 20))
    done = run("map", a, "--python", "functions:upper", "-p", 2)
    assert done.returncode == 0
    assert done.stderr.count(b"goes to standard error") == 20
    assert samples_of(done.stdout) == [
        (
            key,
            {
                "txt": f["txt"].upper(),
                "cls": f["cls"],
                "len": b"%d" % len(f["txt"]),
                "json": b'{"cls": %s}' % f["cls"],
            },
        )
        for key, f in numbered(0, 20)
    ]
    assert samples_of(output("map", a, "--python", "functions:reads")) == numbered(0, 20)
    odd = shard("odd.tar", [("x", {"__y": b"1", "t": b"2"})])
    assert samples_of(output("map", odd, "--python", "functions:reads")) == samples_of(odd)
    assert keys_of(output("map", a, "--python", "functions:several", "--slice", ":3")) == [
        "0001-0",
        "0002-0",
        "0002-1",
    ]


@pytest.mark.usefixtures("module")
def test_functions_that_fail(shard: Shard) -> None:
    a = shard("a.tar", numbered(0, 6))
    message = fails(1, "map", a, "--python", "functions:odd")
    assert "a.tar: sample 0000: " in message
    assert "ValueError: even" in message
    done = run("map", a, "--python", "functions:odd", "-e", "skip")
    assert keys_of(done.stdout) == ["0001", "0003", "0005"]
    assert "status is 7" in fails(1, "map", a, "--python", "functions:dies")
    assert "no_such_module" in fails(1, "map", a, "--python", "no_such_module:f")


def test_an_interrupt_leaves_nothing(shard: Shard, tmp_path: Path) -> None:
    folder = tmp_path / "folders"
    folder.mkdir()
    a = shard("a.tar", numbered(0, 3))
    script = f"echo $$ >> {tmp_path}/pids; sleep 30; true"
    process = subprocess.Popen(
        [COMMAND, "map", a, "-c", script, "-o", tmp_path / "out.tar", "--tmpdir", folder],
        preexec_fn=interruptible,
    )
    deadline = time.monotonic() + 20
    while not (tmp_path / "pids").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == -signal.SIGINT
    assert list(folder.iterdir()) == []
    assert not [path for path in tmp_path.iterdir() if "out.tar" in path.name]
    for pid in (tmp_path / "pids").read_text().split():
        assert not Path(f"/proc/{pid}/cwd").exists()
