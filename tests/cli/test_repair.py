"""shardfeed repair: what is whole is delivered as it was, and what is lost is listed."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import Fields, fails, numbered, output, run, samples_of, tar_bytes

BLOCK = 512


def repaired(
    path: Path, *words: object, status: int
) -> tuple[list[tuple[str, Fields]], list[dict[str, Any]]]:
    """The samples of the repaired shard, and the lines of the report."""
    out = path.with_name("repaired.tar")
    out.unlink(missing_ok=True)
    before = path.read_bytes()
    done = run("repair", path, "-o", out, "--json", *words)
    assert done.returncode == status, done
    assert path.read_bytes() == before
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return (samples_of(out) if out.exists() else []), lines


def losses(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in lines if line.get("lost") == kind]


def headers_of(data: bytes) -> list[tuple[str, int, int]]:
    """Name, first header and end of each member."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = tar.getmembers()
    starts = [member.offset for member in members]
    ends = [member.offset_data + (member.size + BLOCK - 1) // BLOCK * BLOCK for member in members]
    return [(member.name, a, b) for member, a, b in zip(members, starts, ends)]


def damaged(path: Path, data: bytes, at: int, new: bytes) -> Path:
    path.write_bytes(data[:at] + new + data[at + len(new) :])
    return path


def test_whole_shards_lose_nothing(tmp_path: Path) -> None:
    samples = numbered(0, 20)
    path = tmp_path / "a.tar"
    path.write_bytes(tar_bytes(samples))
    found, lines = repaired(path, status=0)
    assert found == samples
    assert lines[-1]["whole"] is True
    assert lines[-1]["samples"] == 20
    assert not losses(lines, "bytes")


def test_it_goes_on_behind_a_damaged_header(tmp_path: Path) -> None:
    samples = numbered(0, 10)
    data = tar_bytes(samples)
    place = {name: (start, end) for name, start, end in headers_of(data)}
    start, end = place["0004.cls"]
    path = damaged(tmp_path / "a.tar", data, start + 3, b"\xff")
    found, lines = repaired(path, status=1)
    # 0004 has lost its last member. 0005 may have lost its first one.
    assert found == samples[:4] + samples[6:]
    (gap,) = losses(lines, "bytes")
    assert (gap["from"], gap["to"]) == (start, end)
    assert "checksum" in gap["message"]
    assert [line["key"] for line in losses(lines, "sample")] == ["0004", "0005"]


def test_a_lost_first_member_takes_the_sample_before_it(tmp_path: Path) -> None:
    samples = numbered(0, 6)
    data = tar_bytes(samples)
    start = next(start for name, start, _ in headers_of(data) if name == "0003.txt")
    path = damaged(tmp_path / "a.tar", data, start + 150, b"9")
    found, lines = repaired(path, status=1)
    assert found == samples[:2] + samples[4:]
    dropped = losses(lines, "sample")
    assert [line["key"] for line in dropped] == ["0002", "0003"]
    assert dropped[0]["whole_fields"] == ["txt", "cls"]


def test_whole_fields_are_kept_on_request(tmp_path: Path) -> None:
    samples = numbered(0, 4)
    data = tar_bytes(samples)
    start = next(start for name, start, _ in headers_of(data) if name == "0002.cls")
    path = damaged(tmp_path / "a.tar", data, start, b"\xff")
    found, lines = repaired(path, "--keep-fields", status=1)
    # The first member behind the lost bytes may have had a longer name.
    assert found == [
        *samples[:2],
        ("0002", {"txt": samples[2][1]["txt"]}),
        ("0003", {"cls": samples[3][1]["cls"]}),
    ]
    assert [(line["key"], line["kept"]) for line in losses(lines, "sample")] == [
        ("0002", True),
        ("0003", True),
    ]
    assert [line["name"] for line in losses(lines, "member")] == ["0003.txt"]


def test_a_lost_long_name_takes_no_other_sample_with_it(tmp_path: Path) -> None:
    """The member whose pax header is lost has a shortened name of another key."""
    folder = "d" * 120
    samples = [(f"{folder}/{i}", {"a": b"A", "b": b"B"}) for i in range(6)]
    data = tar_bytes(samples)
    start = next(start for name, start, _ in headers_of(data) if name == f"{folder}/3.a")
    path = damaged(tmp_path / "a.tar", data, start + 1, b"\xff")  # of the pax header
    found, _ = repaired(path, status=1)
    assert found == samples[:2] + samples[4:]


def test_a_cut_shard_loses_what_is_behind_the_cut(tmp_path: Path) -> None:
    samples = numbered(0, 10)
    data = tar_bytes(samples)
    place = {name: (start, end) for name, start, end in headers_of(data)}
    path = tmp_path / "a.tar"
    path.write_bytes(data[: place["0007.txt"][0] + 515])  # within its data
    found, lines = repaired(path, status=1)
    assert found == samples[:7]
    (member,) = losses(lines, "member")
    assert (member["name"], member["offset"]) == ("0007.txt", place["0007.txt"][0])
    path.write_bytes(data[: place["0007.txt"][0]])  # between two samples: 0006 may have had more
    found, lines = repaired(path, status=1)
    assert found == samples[:6]
    assert "two zero blocks" in losses(lines, "bytes")[0]["message"]


def test_zeros_in_the_middle_are_no_end(tmp_path: Path) -> None:
    samples = numbered(0, 10)
    data = tar_bytes(samples)
    place = {name: (start, end) for name, start, end in headers_of(data)}
    start, end = place["0003.txt"][0], place["0004.cls"][1]
    path = damaged(tmp_path / "a.tar", data, start, bytes(end - start))
    found, lines = repaired(path, status=1)
    assert found == samples[:2] + samples[6:]
    (gap,) = losses(lines, "bytes")
    assert (gap["from"], gap["to"]) == (start, end)


def test_tars_inside_of_members_are_not_searched(tmp_path: Path) -> None:
    inner = tar_bytes([("inner/1", {"txt": b"inner"})])
    samples = [("1", {"tar": inner, "txt": b"1"}), ("2", {"tar": inner})]
    data = tar_bytes(samples)
    start = next(start for name, start, _ in headers_of(data) if name == "2.tar")
    path = tmp_path / "a.tar"
    path.write_bytes(data[: start + 512 + len(inner) - 100])  # within the data of 2.tar
    found, _ = repaired(path, status=1)
    assert found == samples[:1]


def test_what_is_no_sample_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        folder = tarfile.TarInfo("d")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name in ("d/1.txt", "d/README", "__meta__/x.txt"):
            info = tarfile.TarInfo(name)
            info.size = 3
            tar.addfile(info, io.BytesIO(b"abc"))
    found, lines = repaired(path, status=1)
    assert found == [("d/1", {"txt": b"abc"})]
    assert [line["name"] for line in losses(lines, "member")] == ["d/README", "__meta__/x.txt"]
    assert lines[-1]["left_out"] == 1


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_shards_give_what_a_checksum_covers(tmp_path: Path, compress: Any) -> None:
    rng = random.Random(5)
    samples = [(f"{i:04d}", {"bin": rng.randbytes(5000)}) for i in range(400)]
    data = compress(tar_bytes(samples))
    path = tmp_path / "a.tar.x"
    path.write_bytes(data)
    assert repaired(path, status=0)[0] == samples
    path.write_bytes(data[: len(data) * 3 // 4])
    found, lines = repaired(path, status=1)
    assert found == samples[: len(found)]  # bzip2 has a checksum for every 900 kB
    assert (compress is bz2.compress) == (len(found) > 0)
    assert len(found) < 300
    assert losses(lines, "sample")
    taken, _ = repaired(path, "--unverified", status=1)
    assert taken == samples[: len(taken)]
    assert 280 < len(taken) <= 300 or compress is bz2.compress


def test_compressed_pipes_cannot_be_read_twice(tmp_path: Path) -> None:
    samples = numbered(0, 3)
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(tar_bytes(samples)))
    out = tmp_path / "out.tar"
    assert "read twice" in fails(2, "repair", f"pipe:cat {path}", "-o", out)
    assert not out.exists()
    done = run("repair", f"pipe:cat {path}", "--unverified", "-o", out)
    assert done.returncode == 0
    assert samples_of(out) == samples


def test_damage_inside_a_sound_compressed_shard(tmp_path: Path) -> None:
    samples = numbered(0, 10)
    data = bytearray(tar_bytes(samples))
    start = next(start for name, start, _ in headers_of(bytes(data)) if name == "0004.cls")
    data[start] ^= 0xFF
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(bytes(data)))
    assert repaired(path, status=1)[0] == samples[:4] + samples[6:]


def zip_bytes(samples: list[tuple[str, Fields]], method: int) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for key, fields in samples:
            for name, data in fields.items():
                archive.writestr(zipfile.ZipInfo(f"{key}.{name}"), data, method)
    return made.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_zip_entries_with_the_right_checksum(tmp_path: Path, method: int) -> None:
    samples = [(f"{i:04d}", {"txt": b"text %d " % i * 50, "cls": b"%d" % i}) for i in range(20)]
    data = bytearray(zip_bytes(samples, method))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        offset = archive.getinfo("0005.txt").header_offset
    data[offset + 30 + len("0005.txt") + 4] ^= 0x55
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    found, lines = repaired(path, status=1)
    assert found == samples[:5] + samples[6:]
    assert [line["name"] for line in losses(lines, "member")] == ["0005.txt"]
    data[offset + 6] ^= 8  # the local header says something else than the directory
    path.write_bytes(data)
    assert repaired(path, status=1)[0] == samples[:5] + samples[6:]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_zip_without_its_directory(tmp_path: Path, method: int) -> None:
    samples = [(f"{i:04d}", {"txt": b"text %d " % i * 50, "cls": b"%d" % i}) for i in range(20)]
    data = zip_bytes(samples, method)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        directory = archive.start_dir
        last = archive.getinfo("0019.txt").header_offset
    path = tmp_path / "a.zip"
    path.write_bytes(data[: directory + 60])  # all entries, and a part of the directory
    found, lines = repaired(path, status=1)
    assert found == samples
    assert len(losses(lines, "bytes")) == 1
    path.write_bytes(data[: last + 50])  # a download that stopped
    found, lines = repaired(path, status=1)
    assert found == samples[:19]
    assert [line["name"] for line in losses(lines, "member")] == ["0019.txt"]
    path.write_bytes(data[:last])  # 0018 may have had another member
    assert repaired(path, status=1)[0] == samples[:18]


def test_nothing_whole_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(random.Random(1).randbytes(20000))
    found, lines = repaired(path, status=1)
    assert found == []
    assert not (tmp_path / "repaired.tar").exists()
    assert lines[-1]["samples"] == 0


def test_it_never_writes_over_its_input(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(tar_bytes(numbered(0, 3)))
    assert "never changes its input" in fails(2, "repair", path, "-o", path, "--overwrite")
    assert "standard output" in fails(2, "repair", path, "-o", "-")
    other = tmp_path / "b.tar"
    other.write_bytes(b"mine")
    fails(1, "repair", path, "-o", other)
    assert other.read_bytes() == b"mine"
    fails(1, "repair", tmp_path / "nothing.tar", "-o", tmp_path / "c.tar")


def test_other_formats_come_out(tmp_path: Path) -> None:
    samples = numbered(0, 5)
    path = tmp_path / "a.tar"
    path.write_bytes(tar_bytes(samples))
    output("repair", path, "-o", tmp_path / "b.zip", "-q")
    assert json.loads(run("verify", tmp_path / "b.zip", "--json").stdout)["samples"] == 5
    text = output("repair", path, "-o", tmp_path / "c.tar.gz").decode()
    assert text.endswith("5 samples written, nothing lost\n")


def random_samples(rng: random.Random) -> list[tuple[str, Fields]]:
    made = []
    for i in range(rng.randrange(1, 40)):
        key = f"{i:03d}" if rng.random() < 0.8 else f"{'k' * rng.randrange(90, 130)}/{i:03d}"
        fields = {
            name: rng.randbytes(rng.choice([0, 1, 511, 512, 513, 3000]))
            for name in rng.sample(["jpg", "cls", "json", "txt"], rng.randrange(1, 5))
        }
        made.append((key, fields))
    return made


def damage(rng: random.Random, data: bytearray) -> set[int]:
    """Changes the bytes of a shard. Returns the blocks that were touched."""
    at = rng.randrange(len(data))
    kind = rng.choice(["flip", "zeros", "noise", "cut"])
    if kind == "flip":
        data[at] ^= 1 << rng.randrange(8)
        return {at // BLOCK}
    if kind == "cut":
        blocks = set(range(at // BLOCK, len(data) // BLOCK + 1))
        del data[at:]
        return blocks
    size = min(rng.choice([1, 100, 600, 2000, 5000]), len(data) - at)
    data[at : at + size] = bytes(size) if kind == "zeros" else rng.randbytes(size)
    return set(range(at // BLOCK, (at + size - 1) // BLOCK + 1))


@pytest.mark.parametrize("seed", range(150))
def test_random_damage(tmp_path: Path, seed: int) -> None:
    """What is delivered is as it was, and all that damage did not touch is delivered."""
    rng = random.Random(seed)
    samples = random_samples(rng)
    data = bytearray(tar_bytes(samples))
    members = headers_of(bytes(data))
    # Which blocks have no checksum: data, and what pax says.
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        unchecked = {
            block
            for member in tar
            for block in [
                *range(
                    member.offset_data // BLOCK, (member.offset_data + member.size) // BLOCK + 1
                ),
                *range(member.offset // BLOCK + 1, member.offset_data // BLOCK - 1),
            ]
        }
    touched: set[int] = set()
    for _ in range(rng.randrange(1, 4)):
        if data:
            touched |= damage(rng, data)
    path = tmp_path / "a.tar"
    path.write_bytes(data)
    done = run("repair", path, "-o", tmp_path / "b.tar", "--json")
    found = samples_of(tmp_path / "b.tar") if (tmp_path / "b.tar").exists() else []

    blocks: dict[str, set[int]] = {key: set() for key, _ in samples}
    for name, start, end in members:
        key = name[: name.index(".", name.rfind("/") + 1)]
        blocks[key] |= set(range(start // BLOCK, end // BLOCK))
    whole = {key for key, fields in blocks.items() if not fields & touched}
    original = dict(samples)
    for key, fields in found:
        if key in original and not (blocks[key] & touched & unchecked):
            assert fields == original[key], key
        elif key not in original:
            # A name in a pax header has no checksum.
            assert touched & unchecked
    # Beside damage, a sample may have lost a member that nobody knows of.
    keys = [key for key, _ in samples]
    beside = {
        keys[i]
        for i in range(len(keys))
        if any(0 <= j < len(keys) and keys[j] not in whole for j in (i - 1, i + 1, i + 2, i - 2))
    }
    end = members[-1][2] // BLOCK
    if any(block >= end for block in touched):
        beside.add(keys[-1])  # what looks like the end may be zeros over other members
    delivered = {key for key, _ in found}
    assert whole - beside <= delivered
    if delivered != set(keys) and not touched & unchecked:
        assert done.returncode == 1
