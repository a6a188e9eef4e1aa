"""Runs the built command as a shell does, on shards that Python's tarfile and zipfile make."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

Fields = dict[str, bytes]
COMMAND = os.environ["SHARDFEED_COMMAND"]
# What hangs fails. What takes a second on an idle machine takes a minute beside six compilers.
SECONDS_OF_COMMAND = 300


def interruptible() -> None:
    """For a child: Ctrl-C ends it, also where this process was started with SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(*words: object, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [COMMAND, *map(str, words)],
        input=data,
        capture_output=True,
        timeout=SECONDS_OF_COMMAND,
        check=False,
    )


def output(*words: object, data: bytes = b"") -> bytes:
    """What a verb prints, which must succeed without a message."""
    done = run(*words, data=data)
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout


def fails(status: int, *words: object, data: bytes = b"") -> str:
    """The message of a verb that must fail."""
    done = run(*words, data=data)
    assert done.returncode == status, done
    message = done.stderr.decode()
    assert message.startswith("shardfeed: "), message
    assert "help: " in message
    return message


def tar_bytes(samples: Sequence[tuple[str, Fields]]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for key, fields in samples:
            for name, data in fields.items():
                info = tarfile.TarInfo(f"{key}.{name}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return made.getvalue()


def samples_of(data: bytes | Path) -> list[tuple[str, Fields]]:
    """The samples of a tar, by Python's tarfile."""
    stream = io.BytesIO(data) if isinstance(data, bytes) else data.open("rb")
    made: list[tuple[str, Fields]] = []
    with stream, tarfile.open(fileobj=stream) as tar:
        for info in tar:
            folder, _, base = info.name.rpartition("/")
            stem, _, field = base.partition(".")
            key = f"{folder}/{stem}" if folder else stem
            if not made or made[-1][0] != key:
                made.append((key, {}))
            file = tar.extractfile(info)
            assert file is not None
            made[-1][1][field] = file.read()
    return made


def keys_of(data: bytes | Path) -> list[str]:
    return [key for key, _ in samples_of(data)]


def numbered(first: int, count: int) -> list[tuple[str, Fields]]:
    return [
        (f"{i:04d}", {"txt": b"text %d\n" % i, "cls": b"%d" % (i % 3)})
        for i in range(first, first + count)
    ]


@pytest.fixture
def shard(tmp_path: Path) -> Callable[[str, Sequence[tuple[str, Fields]]], Path]:
    """Writes a tar into the test's folder."""

    def write(name: str, samples: Sequence[tuple[str, Fields]]) -> Path:
        path = tmp_path / name
        path.write_bytes(tar_bytes(samples))
        return path

    return write
