"""verify: every fault of every shard, and nothing else."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import COMMAND, Fields, fails, interruptible, numbered, output, run, tar_bytes
from images import npy, png

Shard = Callable[[str, Sequence[tuple[str, Fields]]], Path]


def report(*words: object, status: int = 0, data: bytes = b"") -> list[dict[str, Any]]:
    done = run("verify", "--json", *words, data=data)
    assert done.returncode == status, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def classes(verdict: dict[str, Any]) -> list[str]:
    assert verdict["whole"] == (verdict["fault_count"] == 0)
    return [fault["class"] for fault in verdict["faults"]]


def zip_bytes(tmp_path: Path) -> bytearray:
    path = tmp_path / "made.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(5):
            archive.writestr(f"{i}.txt", f"hello{i}")
        archive.writestr("README", b"words of a file")
    return bytearray(path.read_bytes())


def test_whole_shards(shard: Shard, tmp_path: Path) -> None:
    a = shard("a.tar", numbered(0, 30))
    b = tmp_path / "b.tar.gz"
    b.write_bytes(gzip.compress(tar_bytes(numbered(0, 5))))
    c = tmp_path / "c.zip"
    c.write_bytes(zip_bytes(tmp_path))
    found = report(a, b, c)
    assert [(v["shard"], v["format"], v["samples"], v["fields"]) for v in found] == [
        (str(a), "tar", 30, 60),
        (str(b), "tar.gz", 5, 10),
        (str(c), "zip", 5, 5),
    ]
    assert [classes(v) for v in found] == [[], [], []]
    assert output("verify", a).decode() == (
        f"whole  {a}  30 samples, 260 B\n1 shard, all whole: 30 samples, 260 B\n"
    )
    assert output("verify", "-q", a) == b""
    assert classes(report("-", data=b.read_bytes())[0]) == []


def test_it_goes_on_behind_bad_shards(shard: Shard, tmp_path: Path) -> None:
    whole = tar_bytes(numbered(0, 20))
    files = {
        "cut.tar": whole[:5000],
        "head.tar": whole[:1024] + b"\xff" + whole[1025:],
        "crc.tar.gz": bytearray(gzip.compress(whole)),
        "good.tar": whole,
    }
    files["crc.tar.gz"][-6] ^= 1
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    paths = [tmp_path / "none.tar", *(tmp_path / name for name in files)]
    found = report("--threads", 2, *paths, status=1)
    assert [v["shard"] for v in found] == [str(path) for path in paths]
    assert [classes(v) for v in found] == [
        ["IO"],
        ["TRUNCATED"],
        ["FORMAT"],
        ["INTEGRITY"],
        [],
    ]
    assert report(*paths, status=1) == found
    text = run("verify", *paths).stdout.decode()
    assert text.count("FAULTY ") == 4
    assert "\n5 shards, 4 with faults: " in text


def test_every_damaged_entry_of_a_zip_also_where_it_is_in_no_sample(tmp_path: Path) -> None:
    data = zip_bytes(tmp_path)
    for word in (b"hello1", b"hello3", b"words"):
        data[data.find(word)] ^= 1
    path = tmp_path / "bad.zip"
    path.write_bytes(data)
    (verdict,) = report(path, status=1)
    assert classes(verdict) == ["INTEGRITY"] * 3
    assert [fault["key"] for fault in verdict["faults"]] == ["1", "3", "README"]
    assert verdict["samples"] == 3


def test_fields_are_decoded(shard: Shard) -> None:
    good = {
        "png": png(3, 2),
        "cls": b"7",
        "json": b'{"a": [1, 2]}',
        "mp": b"\x81\xa1a\x01",
        "npy": npy("<f4", "(1,)", bytes(4)),
    }
    bad = {
        "a": {"png": png(3, 2)[:-20]},
        "b": {"cls": b"seven"},
        "c": {"json": b'{"a": '},
        "d": {"mp": b"\x81\xa1a"},
        "e": {"npy": npy("<f4", "(2,)", bytes(4))},
        "f": {"txt": b"\xff"},
        "g": {"json": b"[" * 100_000},
        "h": {"mp": b"\x91" * 100_000},
    }
    path = shard("a.tar", [("good", good), *bad.items(), ("last", good)])
    assert classes(report(path)[0]) == []
    (verdict,) = report("--decode", path, status=1)
    assert [fault["key"] for fault in verdict["faults"]] == list(bad)
    assert "nested" in verdict["faults"][6]["message"]
    assert verdict["samples"] == 10
    chosen = report(shard("b.tar", [("a", {"cls": b"x", "txt": b"1"})]), "--decode=txt:int")
    assert classes(chosen[0]) == []
    assert "decode" in fails(2, "verify", path, "--decode=txt:nonsense")


def test_the_index_beside_a_shard(shard: Shard, tmp_path: Path) -> None:
    path = shard("a.tar", numbered(0, 5))
    assert report(path)[0]["index"] == "none"
    output("ls", "--samples", "--write-index", path)
    assert report(path)[0]["index"] == "whole"
    index = tmp_path / "a.tar.sfidx"
    data = bytearray(index.read_bytes())
    data[len(data) // 2] ^= 1
    index.write_bytes(data)
    (verdict,) = report(path, status=1)
    assert (verdict["index"], verdict["fault_count"]) == ("faulty", 1)
    index.unlink()
    output("ls", "--samples", "--write-index", path)
    shard("a.tar", numbered(0, 6))
    assert classes(report(path, status=1)[0]) == ["CHANGED"]


def test_what_was_passed_over_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(tar_bytes(numbered(0, 2)))
    with tarfile.open(path, "a") as tar:
        link = tarfile.TarInfo("link.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "0000.txt"
        tar.addfile(link)
    assert report(path)[0]["counters"] == {"links": 1}
    assert ", links 1\n" in output("verify", path).decode()


def test_secrets_of_urls_are_not_shown() -> None:
    url = "http://user:word@127.0.0.1:9/a.tar?sig=word"
    for words in (["verify", "--retries", "0"], ["verify", "--json", "--retries", "0"]):
        done = run(*words, url)
        assert done.returncode == 1
        assert b"127.0.0.1:9/a.tar" in done.stdout
        assert b"word" not in done.stdout + done.stderr
    done = run("ls", "--json", "pipe:TOKEN=word cat /dev/null; false")
    assert b"word" not in done.stdout + done.stderr


def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = [COMMAND, "verify", pipe]
    with subprocess.Popen(words, stderr=subprocess.PIPE, preexec_fn=interruptible) as child:
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == -signal.SIGINT


@pytest.mark.parametrize("words", [["verify"], ["verify", "--threads", "no", "a.tar"]])
def test_wrong_words(words: list[str]) -> None:
    fails(2, *words)


def test_a_list_without_shards_is_no_success(tmp_path: Path) -> None:
    empty = tmp_path / "list"
    empty.write_text("# nothing\n")
    fails(1, "verify", f"@{empty}")
