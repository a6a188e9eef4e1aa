"""Compressed tars by number: points in their indexes, random access, resumed streams, threads."""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import os
import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import msgpack
import pytest
import shardfeed
import xxhash
from conftest import write_tar
from http_servers import Nginx
from test_archive_fork import in_children

MiB = 1 << 20
SUFFIXES = [".gz", ".bz2", ".xz", ".zst", ".lz4"]


def samples(count: int, size: int, seed: int = 1) -> list[tuple[str, bytes]]:
    """Members that are half words, half noise: compressed, but not by much."""
    source = random.Random(seed)
    words = b"shard feed tar sample label " * (size // 56 + 1)
    members = []
    for number in range(count):
        half = size // 2 + number % 100
        members.append((f"{number:06d}.bin", words[:half] + source.randbytes(half)))
        members.append((f"{number:06d}.cls", str(number).encode()))
    return members


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tar of 8 MB."""
    return write_tar(tmp_path_factory.mktemp("plain") / "t.tar", samples(400, 20_000))


def packed(plain: Path, target: Path) -> Path:
    """As the command of the suffix compresses: one frame, but for our own writer."""
    data = plain.read_bytes()
    if target.suffix == ".gz":
        with target.open("wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as out:
            out.write(data)
    elif target.suffix == ".bz2":
        # As pbzip2 and lbzip2 write: streams of one block.
        blocks = range(0, len(data), 900_000)
        target.write_bytes(b"".join(bz2.compress(data[n : n + 900_000]) for n in blocks))
    elif target.suffix == ".xz":
        halves = (data[: 3 * MiB], data[3 * MiB :])
        target.write_bytes(b"".join(lzma.compress(half, preset=0) for half in halves))
    else:
        with shardfeed.Writer(target) as writer:
            for sample in shardfeed.Stream(plain):
                writer.write(sample)
    return target


def make_index(path: Path, **options: str) -> Path:
    """The index of a shard, made by one pass over it."""
    shardfeed.Dataset(path, index="rebuild", **options).close()
    folder = Path(options.get("index_dir", path.parent))
    (index,) = (name for name in folder.iterdir() if name.name.endswith(".sfidx"))
    return index


def contents(source: object) -> list[tuple[str, dict[str, bytes]]]:
    return [(s.key, {name: bytes(data) for name, data in s.items()}) for s in source]


@pytest.fixture(scope="module")
def truth(plain: Path) -> list[tuple[str, dict[str, bytes]]]:
    return contents(shardfeed.Stream(plain))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_dataset_of_every_compression(plain, truth, tmp_path, suffix):
    path = packed(plain, tmp_path / f"t.tar{suffix}")
    for _ in range(2):  # without an index, and with the one that is left
        with shardfeed.Dataset(path) as data:
            assert len(data) == 400
            order = list(range(400))
            random.Random(5).shuffle(order)
            assert contents(data[n] for n in order[:100]) == [truth[n] for n in order[:100]]
            assert contents(data.get_many(order)) == [truth[n] for n in order]
            assert contents(data) == truth
            assert data.find("000123") == 123
    assert (tmp_path / f"t.tar{suffix}.sfidx").exists()
    assert contents(shardfeed.Dataset(path, fields="cls", memory="1MiB")) == [
        (key, {"cls": fields["cls"]}) for key, fields in truth
    ]


def test_batches(plain, tmp_path):
    path = packed(plain, tmp_path / "t.tar.gz")
    with shardfeed.Dataset(path, decode="cls:int", fields="cls") as data:
        assert data.batch([7, 300, 7])["cls"].tolist() == [7, 300, 7]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_stream_resumes_in_the_middle(plain, truth, tmp_path, suffix, threads):
    path = packed(plain, tmp_path / f"t.tar{suffix}")
    make_index(path)
    with shardfeed.Stream(path, threads=threads) as stream:
        taken = contents(itertools.islice(stream, 333))
        state = stream.state_dict()
    assert taken == truth[:333]
    with shardfeed.Stream(path, threads=threads) as stream:
        stream.load_state_dict(state)
        assert contents(stream) == truth[333:]


@pytest.mark.parametrize("shuffle", [0, 8])
def test_a_resumed_stream_leaves_out_what_comes_before(plain, tmp_path, shuffle):
    """The bytes of the shard before the point are not even read: here they are damaged."""
    path = packed(plain, tmp_path / "t.tar.gz")
    make_index(path)
    options = {"shuffle": shuffle, "seed": 3}
    with shardfeed.Stream(path, **options) as stream:
        given = iter(stream)
        list(itertools.islice(given, 340))
        state = stream.state_dict()
        rest = contents(given)
    times = os.stat(path)
    with path.open("r+b") as file:
        file.seek(MiB)
        file.write(b"\0" * 1000)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with shardfeed.Stream(path, **options) as stream:
        stream.load_state_dict(state)
        assert contents(stream) == rest
    os.remove(f"{path}.sfidx")
    with shardfeed.Stream(path, **options) as stream:
        stream.load_state_dict(state)
        with pytest.raises(shardfeed.Error, match=r"t\.tar\.gz"):
            contents(stream)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_damaged_shard_ends_as_without_an_index(plain, truth, tmp_path, threads):
    path = packed(plain, tmp_path / "t.tar.gz")
    times = os.stat(path)
    make_index(path)
    with path.open("r+b") as file:
        file.seek(times.st_size // 2)
        file.write(b"damage")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def read(**options: object) -> tuple[list[object], shardfeed.Error]:
        seen: list[object] = []
        try:
            for sample in shardfeed.Stream(path, **options):
                seen += contents([sample])
        except shardfeed.Error as error:
            return seen, error
        raise AssertionError("the damage was not found")

    seen, error = read(threads=threads)
    os.remove(f"{path}.sfidx")
    before, plainly = read(threads=threads)
    assert type(error) is type(plainly)
    assert error.offset == plainly.offset
    assert seen[: len(before)] == before
    assert seen == truth[: len(seen)]
    assert len(seen) < 400


def test_damage_under_an_index(plain, truth, tmp_path):
    path = packed(plain, tmp_path / "t.tar.gz")
    data = shardfeed.Dataset(path)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"damage")
    with pytest.raises(shardfeed.ChangedError):
        contents(data)
    # It is made again, and that reads all of the shard.
    with pytest.raises(shardfeed.FormatError, match=r"t\.tar\.gz: at byte"):
        shardfeed.Dataset(path)


def test_an_index_of_another_version_is_made_again(plain, tmp_path):
    path = packed(plain, tmp_path / "t.tar.gz")
    make_index(path)
    other = write_tar(tmp_path / "other.tar", samples(100, 30_000, seed=9))
    packed(other, path)
    with pytest.raises(shardfeed.ChangedError, match="index=auto"):
        shardfeed.Dataset(path, index="require")
    assert contents(shardfeed.Dataset(path)) == contents(shardfeed.Stream(other))


def test_an_index_that_lies(plain, truth, tmp_path):
    path = packed(plain, tmp_path / "t.tar.gz")
    index = make_index(path)
    magic, version, _, body = msgpack.unpackb(index.read_bytes())
    assert version == 2
    parts = msgpack.unpackb(body)
    sums = bytearray(parts["sums"])
    sums[8] ^= 1
    parts["sums"] = bytes(sums)
    body = msgpack.packb(parts)
    index.write_bytes(msgpack.packb([magic, 2, xxhash.xxh3_64_intdigest(body), body]))
    data = shardfeed.Dataset(path)
    assert contents([data[0], data[399]]) == [truth[0], truth[399]]
    with pytest.raises(
        shardfeed.IntegrityError, match=r"t\.tar\.gz.*decompressed.*delete its index"
    ):
        contents(data)
    # A stream finds that the shard is right.
    assert contents(shardfeed.Stream(path, threads=3)) == truth


def test_forked_children_and_threads(plain, truth, tmp_path):
    path = packed(plain, tmp_path / "t.tar.gz")
    data = shardfeed.Dataset(path, memory="8MiB")

    def right(seed: int) -> bool:
        order = list(range(400))
        random.Random(seed).shuffle(order)
        return contents(data[n] for n in order[:60]) == [truth[n] for n in order[:60]] and (
            contents(data.get_many(order)) == [truth[n] for n in order]
        )

    assert right(0)
    stop = threading.Event()

    def keep_reading() -> None:
        while not stop.is_set():
            right(1)

    readers = [threading.Thread(target=keep_reading) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        assert in_children(4, right) == [0] * 4  # while the threads read
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert right(2)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_a_writer_leaves_is_what_one_pass_finds(plain, truth, tmp_path, suffix):
    path = tmp_path / f"w.tar{suffix}"
    with shardfeed.Writer(path, index=True) as writer:
        for sample in shardfeed.Stream(plain):
            writer.write(sample)
    written = Path(f"{path}.sfidx").read_bytes()
    assert [shard.index for shard in writer.shards] == [f"{path}.sfidx"]
    found = make_index(path, index_dir=str(tmp_path / "elsewhere"))
    assert found.read_bytes() == written
    assert contents(shardfeed.Dataset(path, index="require")) == truth
    # And what a stream leaves.
    os.remove(f"{path}.sfidx")
    list(shardfeed.Stream(path, write_index=True))
    assert Path(f"{path}.sfidx").read_bytes() == written


def test_over_http(plain, truth, tmp_path):
    server = Nginx(tmp_path)
    try:
        packed(plain, server.root / "t.tar.gz")
        url = server.url("t.tar.gz")
        options = {"index_dir": str(tmp_path / "indexes")}
        data = shardfeed.Dataset(url, **options)
        order = list(range(400))
        random.Random(5).shuffle(order)
        assert contents(data.get_many(order)) == [truth[n] for n in order]
        assert contents(data[n] for n in order[:20]) == [truth[n] for n in order[:20]]
        assert contents(shardfeed.Stream(url, threads=3, **options)) == truth
    finally:
        server.stop()


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shardfeed", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command(plain, tmp_path):
    path = packed(plain, tmp_path / "t.tar.gz")
    made = run("index", path)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "t.tar.gz.sfidx").exists()
    assert "400 samples" in run("plan", path).stdout
    assert shardfeed.plan(path).consumers[0]["samples"] == 400
    checked = run("verify", path)
    assert checked.returncode == 0, checked.stderr + checked.stdout
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"damage")
    assert run("verify", path).returncode == 1
    exported = run("index", "--export", "dali", path)
    assert exported.returncode != 0


@pytest.mark.skipif(shutil.which("gzip") is None, reason="gzip is not installed")
def test_gzip_of_the_system(plain, truth, tmp_path):
    shutil.copy(plain, tmp_path / "t.tar")
    for level in ("-1", "-9"):
        subprocess.run(["gzip", "-kf", level, "t.tar"], cwd=tmp_path, check=True)
        data = shardfeed.Dataset(tmp_path / "t.tar.gz")
        assert contents(data[n] for n in range(399, -1, -7)) == [
            truth[n] for n in range(399, -1, -7)
        ]
