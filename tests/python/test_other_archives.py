"""7z, cpio and ISO 9660 as real programs write them; .tar.lz and .tar.Z; libarchive at run time."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import shardfeed
from conftest import write_tar

needs_libarchive = pytest.mark.skipif(
    not shardfeed.features()["libarchive"], reason="there is no libarchive"
)


def program(*names: str) -> str:
    for name in names:
        if found := shutil.which(name):
            return found
    pytest.fail(f"there is no {names[0]}; help: scripts/install_dependencies.sh test installs it")


def run(*command: str | Path, folder: Path, stdin: bytes = b"") -> bytes:
    done = subprocess.run(command, cwd=folder, input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def bsdtar(form: str, *options: str) -> Callable[[Path, Path], object]:
    def write(folder: Path, path: Path) -> object:
        tool = program("bsdtar")
        return run(tool, "-cf", path, f"--format={form}", *options, *names(folder), folder=folder)

    return write


def seven_zip(*options: str) -> Callable[[Path, Path], object]:
    def write(folder: Path, path: Path) -> object:
        tool = program("7zz", "7z", "7za")
        return run(tool, "a", "-bd", "-t7z", *options, path, ".", folder=folder)

    return write


def cpio(form: str) -> Callable[[Path, Path], object]:
    def write(folder: Path, path: Path) -> object:
        tool = program("cpio")
        listed = "\n".join(names(folder)).encode()
        data = run(tool, "--quiet", "-o", "-H", form, folder=folder, stdin=listed)
        return path.write_bytes(data)

    return write


def image(*options: str) -> Callable[[Path, Path], object]:
    def write(folder: Path, path: Path) -> object:
        if tool := shutil.which("genisoimage"):
            return run(tool, "-quiet", *options, "-o", path, ".", folder=folder)
        tool = program("xorriso")
        return run(tool, "-as", "mkisofs", "-quiet", *options, "-o", path, ".", folder=folder)

    return write


WRITERS = {
    "7z-lzma2": seven_zip("-mx=1"),
    "7z-lzma": seven_zip("-m0=LZMA"),
    "7z-ppmd": seven_zip("-m0=PPMd"),
    "7z-bzip2": seven_zip("-m0=BZip2"),
    "7z-deflate": seven_zip("-m0=Deflate"),
    "7z-copy": seven_zip("-m0=Copy"),
    "7z-separate": seven_zip("-ms=off"),
    "7z-bsdtar": bsdtar("7zip"),
    "cpio-newc": cpio("newc"),
    "cpio-crc": cpio("crc"),
    "cpio-odc": cpio("odc"),
    "cpio-bin": cpio("bin"),
    "cpio-bsdtar": bsdtar("newc"),
    "iso-rockridge": image("-R"),
    "iso-joliet": image("-J"),
    "iso-bsdtar": bsdtar("iso9660"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for number in range(12):
        (folder / f"{number:03d}.cls").write_bytes(str(number).encode())
        (folder / f"{number:03d}.jpg").write_bytes(os.urandom(500 + 700 * number))
        (folder / f"{number:03d}.txt").write_bytes(f"text {number} ".encode() * 40)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@needs_libarchive
@pytest.mark.parametrize("writer", WRITERS)
def test_every_way_of_reading(files: Path, tmp_path: Path, writer: str) -> None:
    path = tmp_path / "shard.bin"
    WRITERS[writer](files, path)
    expected = contents(files)
    with shardfeed.Archive(path) as archive:
        read = {member.name: member.read() for member in archive if member.is_file}
        assert {name: bytes(data) for name, data in read.items()} == expected
        assert bytes(archive.read("007.jpg")) == expected["007.jpg"]
        with ThreadPoolExecutor(4) as pool:
            order = sorted(expected, reverse=True)
            assert [bytes(b) for b in pool.map(archive.read, order)] == [expected[n] for n in order]
        assert bytes(pickle.loads(pickle.dumps(archive)).read("003.txt")) == expected["003.txt"]
    with shardfeed.Archive(path.read_bytes()) as archive:
        assert bytes(archive.read("011.jpg")) == expected["011.jpg"]
    with shardfeed.Members(path) as members:
        seen = {m.name: b"".join(m.chunks(1000)) for m in members if m.is_file}
        assert seen == expected
    with shardfeed.Stream(path) as stream:
        streamed = {f"{s.key}.{field}": bytes(s[field]) for s in stream for field in s}
        assert streamed == expected
        assert stream.stats()["samples"] == 12
    with shardfeed.Dataset(path) as data:
        assert len(data) == 12
        for sample in (data[11], data[0], *data.get_many([5, 3])):
            assert {f"{sample.key}.{field}": bytes(sample[field]) for field in sample}.items() <= (
                expected.items()
            )


@needs_libarchive
def test_encrypted_archives(files: Path, tmp_path: Path) -> None:
    seven_zip("-pSecret")(files, tmp_path / "data.7z")
    seven_zip("-pSecret", "-mhe=on")(files, tmp_path / "all.7z")
    with shardfeed.Archive(tmp_path / "data.7z") as archive:
        assert len(archive) == 36
        with pytest.raises(shardfeed.UnsupportedError, match=r"encrypted member.*decrypt it first"):
            archive.read("000.txt")
    with pytest.raises(shardfeed.UnsupportedError, match="encrypted"):
        shardfeed.Archive(tmp_path / "all.7z")
    for name in ("data.7z", "all.7z"):
        with (
            shardfeed.Stream(tmp_path / name) as stream,
            pytest.raises(shardfeed.UnsupportedError, match="encrypted"),
        ):
            next(iter(stream))


@needs_libarchive
def test_a_volume_of_7z_is_cut(files: Path, tmp_path: Path) -> None:
    seven_zip("-v20k", "-m0=Copy")(files, tmp_path / "v.7z")
    with pytest.raises(shardfeed.TruncatedError):
        shardfeed.Archive(tmp_path / "v.7z.001")


@pytest.mark.parametrize("tool", ["lzip", "compress"])
def test_compressed_tars(files: Path, tmp_path: Path, tool: str) -> None:
    tar = write_tar(tmp_path / "t.tar", sorted(contents(files).items()))
    packed = run(program(tool), "-c", tar, folder=tmp_path)
    path = tmp_path / ("t.tar.lz" if tool == "lzip" else "t.tar.Z")
    path.write_bytes(packed)
    with shardfeed.Stream(path) as stream, shardfeed.Stream(tar) as plain:
        assert [dict(s) for s in stream] == [dict(s) for s in plain]
        assert stream.stats()["suffix_mismatches"] == 0
    with shardfeed.Archive(path) as archive:
        assert bytes(archive.read("007.jpg")) == contents(files)["007.jpg"]
    path.write_bytes(packed[: len(packed) // 2])
    with shardfeed.Stream(path) as stream, pytest.raises(shardfeed.TruncatedError):
        list(stream)


PROGRAM = """
import sys
import shardfeed

def loaded():
    with open("/proc/self/maps") as maps:
        return "libarchive" in maps.read()

for path in sys.argv[1:]:
    try:
        with shardfeed.Archive(path) as archive:
            print(ascii([member.name for member in archive]), loaded())
    except shardfeed.Error as error:
        print(error.code_name, error)
"""


def in_a_process(*paths: Path, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *paths],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def newc(name: bytes, data: bytes) -> bytes:
    """One member of a cpio archive."""
    fields = (1, 0o100644, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name + b"\0"
    return b"".join(part + b"\0" * (-len(part) % 4) for part in (head, data))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "a.cpio"
    path.write_bytes(newc("é.txt".encode(), b"a") + newc(b"TRAILER!!!", b""))
    return path


@needs_libarchive
def test_it_is_loaded_when_it_is_needed(tmp_path: Path, archive: Path) -> None:
    tar = write_tar(tmp_path / "t.tar", [("a.txt", b"a")])
    assert in_a_process(tar, archive) == ["['a.txt'] False", "['\\xe9.txt'] True"]


@needs_libarchive
def test_the_locale_changes_no_name(files: Path, tmp_path: Path, archive: Path) -> None:
    folder = tmp_path / "named"
    folder.mkdir()
    (folder / "日本.txt").write_bytes(b"text")
    seven_zip()(folder, tmp_path / "a.7z")
    for locale in ({"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}, {"LC_ALL": "C.UTF-8"}):
        lines = in_a_process(tmp_path / "a.7z", archive, **locale)
        assert lines == ["['\\u65e5\\u672c.txt'] True", "['\\xe9.txt'] True"]


@needs_libarchive
def test_one_that_cannot_be_used(tmp_path: Path, archive: Path) -> None:
    library = tmp_path / "libarchive.so.13"
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", library], check=True)
    folders = os.pathsep.join([str(tmp_path), os.environ.get("LD_LIBRARY_PATH", "")])
    (line,) = in_a_process(archive, LD_LIBRARY_PATH=folders)
    assert line.startswith("UNSUPPORTED ")
    assert "libarchive cannot be loaded: it has no function archive_" in line
    assert "help: install libarchive13" in line


@pytest.mark.skipif(bool(shardfeed.features()["libarchive"]), reason="there is libarchive")
def test_a_build_without_it_says_so(archive: Path) -> None:
    for form in (shardfeed.Archive, shardfeed.Dataset, shardfeed.Stream, shardfeed.Members):
        with (
            pytest.raises(shardfeed.UnsupportedError, match=r"a cpio archive.*no libarchive"),
            form(archive) as opened,
        ):
            next(iter(opened))
