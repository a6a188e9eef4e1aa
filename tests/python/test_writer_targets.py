"""Shards that a Writer sends to commands and object stores arrive whole, or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import shardfeed


def write(pattern: str, count: int = 20, size: int = 2000, **options: object) -> shardfeed.Writer:
    """A finished writer."""
    with shardfeed.Writer(pattern, **options) as writer:
        for number in range(count):
            writer.write({"__key__": f"{number:04}", "bin": bytes([number % 251]) * size})
    return writer


def keys(url: str, **options: object) -> list[str]:
    with shardfeed.Stream(url, expand=False, **options) as stream:
        return [sample.key for sample in stream]


def processes(marker: str) -> list[int]:
    """Of which the command line has this text."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in line:
                found.append(int(entry.name))
    return found


# ---- Commands -----------------------------------------------------------------------------------


def test_pipe_gives_each_shard_to_a_command_of_its_own(tmp_path: Path) -> None:
    pattern = f"pipe:cat > {tmp_path}/%03d.tar"
    writer = write(pattern, 20, max_samples=8, compression="none")
    local = write(f"{tmp_path}/local-%03d.tar", 20, max_samples=8)
    assert [shard.samples for shard in writer.shards] == [8, 8, 4]
    assert [shard.digest for shard in writer.shards] == [shard.digest for shard in local.shards]
    assert writer.shards[1].url == f"pipe:cat > {tmp_path}/001.tar"
    assert keys(f"{tmp_path}/001.tar") == [f"{number:04}" for number in range(8, 16)]


def test_pipe_takes_more_than_fits_into_a_pipe(tmp_path: Path) -> None:
    write(f"pipe:sleep 0.2; tee {tmp_path}/a.tar", 5, 1 << 20)
    assert len(keys(f"{tmp_path}/a.tar")) == 5


@pytest.mark.parametrize(
    ("command", "size", "said"),
    [
        ("cat > /dev/null; echo no room >&2; exit 3", 10, r"status 3; its stderr ends: no room"),
        ("echo bye; exit 4", 1 << 20, r"status 4; its stderr ends: bye"),
        ("kill -9 $$", 10, r"ended by signal 9"),
        ("no-such-program-here", 10, r"status 127.*help: a program in the command was not found"),
        ("true", 10, r"status 0 before it had read everything.*up to its end"),
        ("head -c 100000 > /dev/null", 1 << 20, r"status 0 before it had read everything"),
        ("exec < /dev/null; sleep 60", 1 << 20, r"closed its standard input"),
        ("cat > /dev/null | exit 5", 10, r"status 5"),
    ],
)
def test_pipe_whose_command_fails(command: str, size: int, said: str) -> None:
    with pytest.raises(shardfeed.ChildError, match=said) as caught:
        write("pipe:" + command, 5, size)
    assert str(caught.value).startswith("pipe:" + command)


def test_pipe_raises_no_signal_in_the_program() -> None:
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # it would end this program
    try:
        with pytest.raises(shardfeed.ChildError):
            write("pipe:exit 0", 5, 1 << 20)
    finally:
        signal.signal(signal.SIGPIPE, before)


@pytest.mark.parametrize("command", ["sleep 61.25", "cat > /dev/null; sleep 61.25"])
def test_pipe_whose_command_is_silent(command: str) -> None:
    with pytest.raises(shardfeed.ChildError, match=r"for 50 ms.*help: raise .* pipe_timeout"):
        write("pipe:" + command, 5, 1 << 20, pipe_timeout="50ms")
    assert not processes("61.25")


def test_pipe_of_a_writer_that_is_dropped() -> None:
    writer = shardfeed.Writer("pipe:cat | cat > /dev/null; sleep 62.25")
    writer.write({"__key__": "a", "bin": b"x"})
    limit = time.monotonic() + 30
    while not processes("62.25") and time.monotonic() < limit:
        time.sleep(0.01)
    assert processes("62.25")
    writer.close()
    assert not processes("62.25")


def test_pipe_of_a_writer_that_is_dropped_gives_no_end_of_input(tmp_path: Path) -> None:
    whole = tmp_path / "whole.tar"
    # It survives SIGTERM, and its cat ends well only at the end of its input.
    reading = f"timeout --foreground -s KILL 0.5 cat > /dev/null && touch {whole}"
    writer = shardfeed.Writer(f"pipe:trap '' TERM; touch {tmp_path}/ready; {reading}")
    writer.write({"__key__": "a", "bin": b"x"})
    writer.flush()
    limit = time.monotonic() + 30
    while not (tmp_path / "ready").exists() and time.monotonic() < limit:
        time.sleep(0.01)
    writer.close()
    assert not whole.exists()


def test_pipe_of_a_writer_that_is_dropped_while_it_publishes() -> None:
    writer = shardfeed.Writer("pipe:cat > /dev/null; sleep 65.25")
    writer.write({"__key__": "a", "bin": b"x"})
    writer.next_shard()
    begun = time.monotonic()
    writer.close()
    assert time.monotonic() - begun < 2
    assert not processes("65.25")


def test_pipe_when_the_program_is_killed(tmp_path: Path) -> None:
    program = (
        "import shardfeed, time\n"
        f"w = shardfeed.Writer('pipe:cat > {tmp_path}/a.tar; sleep 63.25; touch {tmp_path}/end')\n"
        "w.write({'__key__': 'a', 'bin': b'x'})\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        process.kill()
    limit = time.monotonic() + 8
    while processes("63.25") and time.monotonic() < limit:
        time.sleep(0.02)
    assert not processes("63.25")


def test_pipe_beside_a_forked_child(tmp_path: Path) -> None:
    writer = shardfeed.Writer(f"pipe:cat > {tmp_path}/a.tar", pipe_timeout="5s")
    writer.write({"__key__": "a", "bin": b"x"})
    child = os.fork()
    if child == 0:
        time.sleep(20)
        os._exit(0)
    try:
        writer.finish()  # the command finds the end of its input all the same
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    writer.close()
    assert keys(f"{tmp_path}/a.tar") == ["a"]


def test_pipe_in_secure_mode(tmp_path: Path) -> None:
    with pytest.raises(shardfeed.UsageError, match="refused in secure mode"):
        write(f"pipe:cat > {tmp_path}/a.tar", secure=True)
    assert not list(tmp_path.iterdir())


def test_pipe_without_a_command_and_with_an_index() -> None:
    with pytest.raises(shardfeed.UsageError, match="pipe: without a command"):
        write("pipe: ")
    with pytest.raises(shardfeed.UsageError, match="has no index"):
        write("pipe:cat > /dev/null", index=True)


def test_pipe_cancelled_while_the_command_takes_nothing() -> None:
    with shardfeed.Writer("pipe:sleep 64.25") as writer:
        threading.Timer(0.2, writer.cancel).start()
        with pytest.raises(shardfeed.CancelledError):
            writer.write({"__key__": "a", "bin": bytes(10 << 20)})
        with pytest.raises(shardfeed.CancelledError):
            writer.finish()
        writer.close()
    assert not processes("64.25")
