"""tsv and json: tables of fields."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import fails, numbered, output, run, samples_of

Shard = Callable[..., Path]
HARD = b"a\tb\nc\r\\n \xff\x00 \xc3\xa4"


def rows(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


def test_a_table(shard: Shard) -> None:
    path = shard("a.tar", numbered(0, 3))
    assert output("tsv", path, "-f", "cls txt:nothing,txt").decode().splitlines() == [
        "__key__\tcls\ttxt",
        "0000\t0\ttext 0\\n",
        "0001\t1\ttext 1\\n",
        "0002\t2\ttext 2\\n",
    ]
    assert output("tar2tsv", path, "-f", "cls", "--nokey", "--noheader", "-c", 2) == b"0\n1\n"
    # Without -f the columns are those of the first sample.
    assert output("tsv", path, "-c", 1) == b"__key__\ttxt\tcls\n0000\ttext 0\\n\t0\n"


def test_every_byte_comes_back(shard: Shard, tmp_path: Path) -> None:
    samples = [("k", {"bin": HARD, "txt": b""}), ("l", {"bin": bytes(range(256)), "txt": b"\\"})]
    path = shard("a.tar", samples)
    table = output("tsv", path)
    assert table.count(b"\n") == 3
    assert rows(output("json", path))[0]["bin"] == {"base64": base64.b64encode(HARD).decode()}
    (tmp_path / "a.tsv").write_bytes(table)
    output("create", tmp_path / "a.tsv", "-o", tmp_path / "b.tar")
    assert samples_of(tmp_path / "b.tar") == samples_of(path)


def test_every_byte_comes_back_from_json(shard: Shard, tmp_path: Path) -> None:
    first = ("k", {"bin": HARD, "txt": b'"'})
    path = shard("a.tar", [first, ("m", {"bin": b"\xff", "json": b'{"base64": "AAAA"}'})])
    (tmp_path / "a.jsonl").write_bytes(
        b"".join(output("json", path, "--slice", f"{i}:{i + 1}") for i in range(2))
    )
    output("create", tmp_path / "a.jsonl", "-o", tmp_path / "b.tar")
    assert samples_of(tmp_path / "b.tar") == samples_of(path)
    (tmp_path / "bad.jsonl").write_text('{"__key__": "a", "bin": {"base64": "A"}}\n')
    message = fails(1, "create", tmp_path / "bad.jsonl", "-o", tmp_path / "c.tar")
    assert "bad.jsonl: line 1" in message


def test_lines_of_json(shard: Shard) -> None:
    path = shard("a.tar", [("ä/k", {"json": b'{"a": 1}', "txt": "ö\n".encode()})])
    assert rows(output("json", path)) == [{"__key__": "ä/k", "json": '{"a": 1}', "txt": "ö\n"}]
    assert rows(output("tar2json", path, "-k", "txt", "--nokey")) == [{"txt": "ö\n"}]


def test_base64_of_all_lengths(shard: Shard) -> None:
    fields = {f"f{size}": bytes([0xFF] * size) for size in range(1, 8)}
    (row,) = rows(output("json", shard("a.tar", [("k", fields)]), "--no-key"))
    assert {name: base64.b64decode(value["base64"]) for name, value in row.items()} == fields


def test_fields_that_are_missing(shard: Shard) -> None:
    path = shard("a.tar", [("a", {"cls": b"1"}), ("b", {"txt": b"x"}), ("c", {"cls": b"3"})])
    assert "sample b has no field cls" in fails(1, "tsv", path, "-f", "cls")
    assert "sample b has no field cls" in fails(1, "tsv", path)
    assert "sample b has the field txt" in fails(1, "tsv", path, "--missing", "keep")
    assert output("tsv", path, "-f", "cls", "--missing", "keep") == (
        b"__key__\tcls\na\t1\nb\t\nc\t3\n"
    )
    skipped = output("tsv", path, "-f", "cls", "--missing", "skip", "--no-header")
    assert skipped == b"a\t1\nc\t3\n"
    assert rows(output("json", path, "-f", "cls", "--missing", "keep"))[1] == {
        "__key__": "b",
        "cls": None,
    }


def test_what_comes_before_damage_is_printed(shard: Shard) -> None:
    path = shard("a.tar", numbered(0, 3))
    path.write_bytes(path.read_bytes()[: 2 * 1024 * 2])
    done = run("tsv", path, "-f", "cls")
    assert done.returncode == 1
    assert done.stdout.startswith(b"__key__\tcls\n0000\t0\n")
    assert b"a.tar" in done.stderr


@pytest.mark.parametrize("verb", ["tsv", "json"])
def test_no_samples(verb: str, shard: Shard) -> None:
    path = shard("empty.tar", [])
    header = b"__key__\tcls\n" if verb == "tsv" else b""
    assert output(verb, path, "-f", "cls", "--allow-empty") == header
