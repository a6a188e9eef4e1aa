"""The reader and the example of docs/index-format.md, run as they stand there."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import random
import re
import tarfile
import zlib
from pathlib import Path
from typing import Any

import msgpack
import pytest
import xxhash
from conftest import write_tar
from shardfeed._native import ffi, lib

DOCUMENT = Path(__file__).parents[2] / "docs" / "index-format.md"


def block(language: str, containing: str) -> str:
    """The one code block of the document with this text in it."""
    text = DOCUMENT.read_text(encoding="utf-8")
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    (found,) = [block for block in blocks if containing in block]
    return found


@pytest.fixture(scope="module")
def reader() -> dict[str, Any]:
    """The names that the document's reader defines."""
    names: dict[str, Any] = {}
    exec(compile(block("python", "def read_index"), str(DOCUMENT), "exec"), names)
    return names


def build_index(shard: Path) -> Path:
    error = ffi.new("shf_error *")
    code = lib.shf_index_build(os.fsencode(shard), ffi.NULL, error)
    assert code == 0, ffi.string(error.message)
    return Path(f"{shard}.sfidx")


def test_hex_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(block("python", "tiny.tar"), {"tarfile": tarfile, "io": io, "os": os})
    lines = block("hex", "shardfeed-index").splitlines()
    expected = b"".join(bytes.fromhex(line.strip().split("  ")[0]) for line in lines)
    assert build_index(tmp_path / "tiny.tar").read_bytes() == expected
    assert f"has {len(expected)} bytes" in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_reader(tmp_path: Path, reader: dict[str, Any], kind: int) -> None:
    rng = random.Random(kind)
    members = []
    for number in range(200):
        folder = "" if kind == tarfile.USTAR_FORMAT else "f" * rng.randint(0, 200) + "\udcff\u00e4/"
        for field in rng.sample(["jpg", "CLS", "seg.png", "json", ""], rng.randint(1, 5)):
            data = rng.randbytes(rng.choice([0, 1, 511, 512, 513, rng.randint(0, 90000)]))
            members.append((f"{folder}Key{number}.{field}", data))
        if rng.random() < 0.2:
            members.append(("README", b"no sample"))
    shard = write_tar(tmp_path / "shard.tar", members, format=kind)
    index, samples = reader["read_index"](build_index(shard))

    def bytes_of(name: str) -> bytes:
        return name.encode("utf-8", "surrogateescape")

    expected: list[tuple[bytes, int, list[tuple[bytes, int, int]]]] = []
    with tarfile.open(shard) as tar:
        for member in tar:
            folder, _, base = bytes_of(member.name).rpartition(b"/")
            stem, dot, field = base.partition(b".")
            if not dot:
                continue
            key = folder + b"/" + stem if folder else stem
            if not expected or expected[-1][0] != key:
                expected.append((key, member.offset, []))
            expected[-1][2].append((field.lower(), member.offset_data, member.size))
    assert samples == expected
    contents = shard.read_bytes()
    found = [contents[at : at + size] for _, _, fields in samples for _, at, size in fields]
    assert found == [data for name, data in members if name != "README"]
    assert index["size"] == len(contents)
    assert not contents[index["end"] :].strip(b"\0")
    assert index["leniency"] == 0


def test_identity(tmp_path: Path, reader: dict[str, Any]) -> None:
    for number, size in enumerate([10, 60000, 300000]):
        data = hashlib.shake_128(b"seed").digest(size)
        shard = write_tar(tmp_path / f"{number}.tar", [("a.x", data)])
        index, _ = reader["read_index"](build_index(shard))
        is_of = reader["is_of"]
        assert is_of(index, shard)
        before = shard.stat()
        os.utime(shard, ns=(0, before.st_mtime_ns + 1))
        assert not is_of(index, shard)
        contents = bytearray(shard.read_bytes())
        contents[600 if size > 100 else 512] ^= 1
        shard.write_bytes(contents)
        os.utime(shard, ns=(0, before.st_mtime_ns))
        assert not is_of(index, shard)
        shard.write_bytes(contents + bytes(512))
        os.utime(shard, ns=(0, before.st_mtime_ns))
        assert not is_of(index, shard)
    early = write_tar(tmp_path / "early.tar", [("a.x", b"")])
    os.utime(early, ns=(0, -5))
    index, _ = reader["read_index"](build_index(early))
    assert is_of(index, early)


def test_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shards").mkdir()
    name = "n" * 240 + ".tar"
    shard = write_tar(tmp_path / "shards" / name, [("a.x", b"data")])
    folder = tmp_path / "made" / "here"
    options = ffi.gc(lib.shf_options_new(), lib.shf_options_free)
    error = ffi.new("shf_error *")
    assert lib.shf_options_set(options, b"index_dir", os.fsencode(folder), error) == 0
    for url in str(shard), f"shards/../shards/./{name}", f"file://{shard}":
        assert lib.shf_index_build(os.fsencode(url), options, error) == 0
    digest = xxhash.xxh3_64_hexdigest(os.fsencode(shard))
    assert [path.name for path in folder.iterdir()] == [f"{name[:200]}.{digest}.sfidx"]


def test_damage(tmp_path: Path, reader: dict[str, Any]) -> None:
    path = build_index(write_tar(tmp_path / "shard.tar", [("a.x", b"data")]))
    good = path.read_bytes()
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(ValueError, match="damaged"):
        reader["read_index"](path)
    magic, _, checksum, body = msgpack.unpackb(good)
    for version, message in ((2, "not of the version"), (3, "version 1 or 2")):
        path.write_bytes(msgpack.packb([magic, version, checksum, body]))
        with pytest.raises(ValueError, match=message):
            reader["read_index"](path)
    # Any msgpack library writes the same file.
    assert msgpack.packb([magic, 1, checksum, body]) == good
    assert msgpack.packb(msgpack.unpackb(body)) == body


def test_reader_of_a_compressed_tar(tmp_path: Path, reader: dict[str, Any]) -> None:
    rng = random.Random(1)
    members = [
        (f"{n:04d}.bin", rng.randbytes(rng.randint(0, 60_000)) + b"text " * 4000)
        for n in range(200)
    ]
    plain = write_tar(tmp_path / "t.tar", members).read_bytes()
    shard = tmp_path / "t.tar.gz"
    with gzip.open(shard, "wb") as file:
        file.write(plain)
    index, samples = reader["read_index"](build_index(shard))
    assert reader["is_of"](index, shard)
    assert index["codec"] == b"gzip"
    assert index["length"] == len(plain)
    assert len(index["starts"]) > 3
    assert any(place % 8 for place in index["places"])
    ends = [*index["starts"][1:], index["length"]]
    window_starts = [0, *index["window_ends"]]
    for n, (start, end) in enumerate(zip(index["starts"], ends)):
        assert xxhash.xxh3_64_intdigest(plain[start:end]) == index["sums"][n]
        window = index["windows"][window_starts[n] : index["window_ends"][n]]
        if n == 0:
            assert (window, index["places"][0]) == (b"", 0)
        else:
            assert zlib.decompress(window) == plain[start - 32768 : start]
    assert [plain[offset : offset + size] for _, _, [(_, offset, size)] in samples] == [
        data for _, data in members
    ]
