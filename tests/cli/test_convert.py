"""convert between shards and folders; tests/python/test_convert.py has the other formats."""

from __future__ import annotations

import os
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from conftest import COMMAND, Fields, fails, keys_of, numbered, output, run, samples_of

Shard = Callable[[str, Sequence[tuple[str, Fields]]], Path]


@pytest.mark.parametrize("end", [".tar", ".tar.gz", ".tar.zst", ".tar.xz", ".tar.bz2", ".tar.lz4"])
def test_shards_to_shards_and_back(shard: Shard, tmp_path: Path, end: str) -> None:
    samples = [*numbered(0, 50), ("a/b", {"seg.png": os.urandom(70_000), "x": b""})]
    source = shard("a.tar", samples)
    output("convert", source, "-o", tmp_path / f"there{end}")
    output("convert", tmp_path / f"there{end}", "-o", tmp_path / "b.zip")
    output("convert", tmp_path / "b.zip", "-o", tmp_path / "back.tar")
    assert samples_of(tmp_path / "back.tar") == samples
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        assert archive.testzip() is None
        assert len(archive.namelist()) == 102


def test_folder_and_back(shard: Shard, tmp_path: Path) -> None:
    samples = [("a/0", {"jpg": b"\xff\xd8"}), ("a/1", {"jpg": b"", "cls": b"7"}), ("b", {"c": b""})]
    output("convert", shard("a.tar", samples), "-o", f"{tmp_path}/files/")
    assert (tmp_path / "files/a/1.cls").read_bytes() == b"7"
    output("convert", tmp_path / "files", "-o", tmp_path / "back.tar")
    assert samples_of(tmp_path / "back.tar") == [
        ("a/0", {"jpg": b"\xff\xd8"}),
        ("a/1", {"cls": b"7", "jpg": b""}),
        ("b", {"c": b""}),
    ]
    assert "there already" in fails(1, "convert", tmp_path / "a.tar", "-o", f"{tmp_path}/files/")


def test_columns_are_chosen(shard: Shard, tmp_path: Path) -> None:
    source = shard("a.tar", numbered(0, 3))
    output("convert", source, "--columns", "cls", "-o", tmp_path / "b.tar")
    assert samples_of(tmp_path / "b.tar")[1] == ("0001", {"cls": b"1"})
    output("convert", source, "--columns", "txt", "-o", f"{tmp_path}/f/")
    assert sorted(p.name for p in (tmp_path / "f").iterdir()) == [f"000{i}.txt" for i in range(3)]


def test_create_of_a_zip_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for key, fields in numbered(0, 5):
            for name, data in fields.items():
                archive.writestr(f"{key}.{name}", data)
    output("create", tmp_path / "a.zip", "-o", tmp_path / "a.tar")
    assert samples_of(tmp_path / "a.tar") == numbered(0, 5)
    message = fails(2, "create", tmp_path / "a.zip", "--by-folder", "-o", tmp_path / "b.tar")
    assert "other sources" in message


def test_wrong_words(shard: Shard, tmp_path: Path) -> None:
    source = shard("a.tar", numbered(0, 3))
    (tmp_path / "folder").mkdir()
    fails(2, "convert", source, "-o", "x", "--to", "nothing")
    assert "to shards first" in fails(2, "convert", tmp_path / "folder", "-o", "a.parquet")
    assert "one folder" in fails(
        2, "convert", tmp_path, tmp_path, "--from", "folder", "-o", "a.tar"
    )
    done = run("convert", tmp_path / "nothing.tar", "-o", tmp_path / "b.tar")
    assert done.returncode == 1
    assert not (tmp_path / "b.tar").exists()


def test_a_python_without_the_package(shard: Shard, tmp_path: Path) -> None:
    source = shard("a.tar", numbered(0, 3))
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nexec python3 -I -S "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        [COMMAND, "convert", source, "-o", tmp_path / "a.parquet"],
        env={**os.environ, "SHARDFEED_PYTHON": str(python)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert b"help: pip install 'shardfeed[convert]'" in done.stderr
    missing = subprocess.run(
        [COMMAND, "convert", source, "-o", tmp_path / "a.parquet"],
        env={**os.environ, "SHARDFEED_PYTHON": str(tmp_path / "nothing")},
        capture_output=True,
        check=False,
    )
    assert missing.returncode == 1
    assert b"help: " in missing.stderr


def test_options_of_the_writer_hold(shard: Shard, tmp_path: Path) -> None:
    output(
        "convert", shard("a.tar", numbered(0, 5)), "--max-samples", 2, "-o", tmp_path / "b%d.tar"
    )
    assert [keys_of(tmp_path / f"b{i}.tar") for i in range(3)] == [
        ["0000", "0001"],
        ["0002", "0003"],
        ["0004"],
    ]
