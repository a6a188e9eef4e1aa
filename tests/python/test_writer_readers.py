"""Other programs read what a Writer makes: all of it, without a word on their standard error."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import zipfile
import zlib
from pathlib import Path

import pytest
import shardfeed

HERE = Path(__file__).parent
TARS = ["tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst", "tar.lz4"]
ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def samples():
    """Names and sizes at the borders of the formats."""
    keys = [
        *("a", "a b", "ä/ö", "-dash", "a'b\"c"),
        *("d/" * 60 + "e", "x" * 99, "x" * 96, "y" * 150 + "/" + "z" * 96, "w" * 240),
        *("p" * 155 + "/" + "q" * 96, "v" * 156 + "/" + "q"),
    ]
    for number, key in enumerate(keys):
        text = b"words and words " * (number * 40)
        yield {"__key__": key, "txt": text, "bin": bytes(511 + number % 3), "empty": b""}


WANTED = [
    (f"{sample['__key__']}.{name}", data)
    for sample in samples()
    for name, data in sample.items()
    if name != "__key__"
]


def shard(folder, suffix, **options):
    path = folder / f"a.{suffix}"
    with shardfeed.Writer(path, **options) as writer:
        writer.write_all(samples())
    return path


def said(*command, **options):
    """The standard output of a program that had nothing to complain about."""
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(
        command, capture_output=True, check=False, env=ENVIRONMENT, timeout=120, **options
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


@pytest.mark.parametrize("suffix", TARS)
@pytest.mark.parametrize("program", ["tar", "bsdtar"])
def test_tar_programs_extract_everything(tmp_path, program, suffix):
    path = shard(tmp_path, suffix)
    out = tmp_path / "out"
    out.mkdir()
    options = ["-I", "lz4"] if program == "tar" and suffix == "tar.lz4" else []
    said(program, *options, "-xf", str(path), "-C", str(out))
    for name, data in WANTED:
        assert (out / name).read_bytes() == data
    assert sum(path.is_file() for path in out.rglob("*")) == len(WANTED)


@pytest.mark.parametrize("options", [{}, {"zip_method": "store"}, {"zip_method": "deflate"}])
def test_zip_programs_test_and_extract_everything(tmp_path, options):
    path = shard(tmp_path, "zip", **options)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert [(info.filename, archive.read(info)) for info in archive.infolist()] == WANTED
    for program, flags in {"unzip": ["-tqq"], "7zz": ["t", "-bd"], "bsdtar": ["-tf"]}.items():
        output = said(program, *flags, str(path))
        assert program != "7zz" or b"Everything is Ok" in output
        assert b"arning" not in output


@pytest.mark.parametrize("suffix", TARS[:5])
def test_7z_finds_no_fault(tmp_path, suffix):
    path = shard(tmp_path, suffix)
    output = said("7zz", "t", "-bd", str(path))
    assert b"Everything is Ok" in output
    if suffix != "tar":
        with (tmp_path / "inner.tar").open("wb") as inner:
            inner.write(said("7zz", "e", "-so", "-bd", str(path)))
        output = said("7zz", "t", "-bd", str(tmp_path / "inner.tar"))
    assert b"Everything is Ok" in output
    assert b"arning" not in output


def test_go_reads_the_same(tmp_path):
    if not shutil.which("go"):
        pytest.skip("go is not installed")
    program = tmp_path / "archive_listing"
    subprocess.run(
        ["go", "build", "-o", program, HERE / "archive_listing.go"],
        check=True, env={**os.environ, "GO111MODULE": "off"},
    )  # fmt: skip
    wanted = [f"{name.encode().hex()} {len(data)} {zlib.crc32(data)}" for name, data in WANTED]
    for suffix in ("tar", "tar.gz", "zip"):
        listed = said(str(program), str(shard(tmp_path, suffix))).decode().splitlines()
        assert listed == wanted


@pytest.mark.parametrize("suffix", TARS[:4])
def test_webdataset_reads_the_same(tmp_path, suffix):
    webdataset = pytest.importorskip("webdataset")
    path = shard(tmp_path, suffix)
    read = list(webdataset.WebDataset(str(path), shardshuffle=False, empty_check=False))
    wanted = [{n: v for n, v in sample.items() if n != "__key__"} for sample in samples()]
    assert [sample["__key__"] for sample in read] == [sample["__key__"] for sample in samples()]
    assert [{n: v for n, v in sample.items() if n[0] != "_"} for sample in read] == wanted


def random_sample(source, number, most):
    """Any bytes in keys and names that readers do not take for something else."""
    allowed = [c for c in range(1, 256) if c not in b"./\\"]
    key = bytes(source.choices(allowed, k=source.randint(1, 12))) + b"-%d" % number
    if source.random() < 0.3:
        key = bytes(source.choices(allowed, k=source.randint(1, 170))) + b"/" + key
    sample = {"__key__": key.decode("utf-8", "surrogateescape")}
    for field in range(source.randint(1, 3)):
        # Names are read in lower case, and what begins with "_" is no field in Python.
        name = b"f%d" % field + bytes(c for c in source.choices(allowed, k=4) if not 65 <= c <= 90)
        size = 0 if source.random() < 0.1 else int(2 ** source.uniform(0, most))
        data = source.randbytes(size // 2) + bytes([number % 256]) * (size - size // 2)
        sample[name.decode("utf-8", "surrogateescape")] = data
    return sample


def random_samples(most, large):
    """10,000 of them, the same each time."""
    source = random.Random(14)
    for number in range(10_000):
        yield random_sample(source, number, most)
    for number, size in enumerate(large):
        block = source.randbytes(1 << 16)
        yield {"__key__": f"large-{number}", "bin": (block * (size // len(block) + 1))[:size]}


@pytest.mark.parametrize(
    ("suffix", "options", "most"),
    [
        ("tar", {}, 14),
        ("tar", {"index": True, "max_bytes": "20MB"}, 13),
        ("tar.gz", {"level": 1}, 11),
        ("tar.bz2", {"level": 1}, 9),
        ("tar.xz", {"level": 1}, 9),
        ("tar.zst", {"level": 1}, 12),
        ("tar.lz4", {}, 12),
        ("zip", {"zip_method": "store"}, 13),
        ("zip", {"zip_method": "deflate", "level": 1}, 11),
    ],
)
def test_ten_thousand_random_samples_come_back(tmp_path, suffix, options, most):
    large = [0, 1, (1 << 20) - 1, 1 << 20, 1 << 26]
    with shardfeed.Writer(
        tmp_path / f"a-%d.{suffix}", encoder=False, durable=False, **options
    ) as writer:
        writer.write_all(random_samples(most, large))
    read = shardfeed.Stream([shard.url for shard in writer.shards], max_ratio=10**9)
    wanted = random_samples(most, large)
    for sample, one in zip(read, wanted, strict=True):
        assert sample.key == one.pop("__key__")
        assert list(sample.keys()) == list(one)
        assert all(sample[name] == data for name, data in one.items())
