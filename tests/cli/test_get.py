"""get: one sample or field, by random access or from the start."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from conftest import Fields, fails, numbered, output, samples_of, tar_bytes

Shard = Callable[[str, Sequence[tuple[str, Fields]]], Path]


def zipped(path: Path, samples: Sequence[tuple[str, Fields]]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, fields in samples:
            for name, data in fields.items():
                archive.writestr(f"{key}.{name}", data)
    return path


@pytest.mark.parametrize("kind", ["plain", "indexed", "zip", "stdin"])
def test_by_key_and_by_number(kind: str, shard: Shard, tmp_path: Path) -> None:
    samples = numbered(0, 20)
    path: Path | str = shard("a.tar", samples)
    data = b""
    if kind == "indexed":
        output("ls", "--samples", "--write-index", path)
        assert (tmp_path / "a.tar.sfidx").exists()
    elif kind == "zip":
        path = zipped(tmp_path / "a.zip", samples)
    elif kind == "stdin":
        path, data = "-", tar_bytes(samples)
    assert output("get", path, "0012", "txt", data=data) == b"text 12\n"
    assert output("get", path, "--key", "0012", "-f", "no;cls", data=data) == b"0"
    assert output("get", path, "--number", 13, "cls", data=data) == b"1"
    assert samples_of(output("get", path, "--number", 13, data=data)) == samples[13:14]
    assert "no sample has the key 0020" in fails(1, "get", path, "0020", data=data)
    assert "the shards have 20" in fails(1, "get", path, "--number", 20, data=data)
    assert "it has txt, cls" in fails(1, "get", path, "0001", "png", data=data)
    if kind != "indexed":
        assert list(tmp_path.glob("*.sfidx")) == []


def test_numbers_go_on_over_shards_and_reading_ends_at_the_sample(
    shard: Shard, tmp_path: Path
) -> None:
    shard("a.tar", numbered(0, 3))
    second = shard("b.tar", numbered(3, 100))
    second.write_bytes(second.read_bytes()[:20_000])  # damaged far behind the sample
    assert output("get", tmp_path / "{a,b}.tar", "--number", 4, "txt") == b"text 4\n"


def test_words_that_say_too_little_or_too_much(shard: Shard) -> None:
    path = shard("a.tar", numbered(0, 1))
    for words in (
        [],
        ["--key", "a", "--number", "1"],
        ["--number", "0", "cls", "txt"],
        ["a", "b", "c"],
    ):
        fails(2, "get", path, *words)


def test_fields_become_files_of_a_folder(shard: Shard, tmp_path: Path) -> None:
    path = shard("a.tar", [("x/y/1", {"txt": b"a", "cls": b"2"})])
    folder = tmp_path / "out"
    output("get", path, "x/y/1", "-o", folder)
    assert (folder / "x/y/1.txt").read_bytes() == b"a"
    assert (folder / "x/y/1.cls").read_bytes() == b"2"
    assert "File exists" in fails(1, "get", path, "x/y/1", "-o", folder)
    output("get", path, "x/y/1", "cls", "-o", tmp_path / "one")
    assert [p.name for p in (tmp_path / "one/x/y").iterdir()] == ["1.cls"]


@pytest.mark.parametrize(
    "key", ["../up", "a/../../up", "/tmp/up", "a//b", "./a", "a\\..\\up", "C:up", "nul", "a/COM1"]
)
def test_no_name_leads_out_of_the_folder(key: str, shard: Shard, tmp_path: Path) -> None:
    path = shard("a.tar", [(key, {"txt": b"a"})])
    message = fails(1, "get", path, "--number", 0, "-o", tmp_path / "deep/out")
    assert "No such file" in message  # of the folder above
    message = fails(1, "get", path, "--number", 0, "-o", tmp_path / "out")
    assert "is not written to the folder" in message
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.tar", "out"]


def test_no_link_is_followed(shard: Shard, tmp_path: Path) -> None:
    path = shard("a.tar", [("x/1", {"txt": b"a"})])
    (tmp_path / "out").mkdir()
    (tmp_path / "else").mkdir()
    os.symlink(tmp_path / "else", tmp_path / "out/x")
    fails(1, "get", path, "x/1", "-o", tmp_path / "out")
    assert list((tmp_path / "else").iterdir()) == []
