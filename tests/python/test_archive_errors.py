"""Damaged archives, seen from Python. tests/unit has the rules one by one."""

from __future__ import annotations

import bz2
import os
import struct
import zipfile

import pytest
import shardfeed
from archives import images, write_zip
from conftest import write_tar


def damaged(path, position: int, offset: int, method: int = zipfile.ZIP_STORED):
    """A ZIP file of ten images with one byte of the data of one changed."""
    write_zip(path, images(10), method)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        info = file.infolist()[position]
        data[info.header_offset + 30 + len(info.filename) + offset] ^= 0xFF
    path.write_bytes(data)
    return shardfeed.Archive(path)


@pytest.mark.parametrize("position", [4, 9])  # below and above 64 KiB
def test_bad_crc_is_the_error_of_that_member_only(tmp_path, position):
    archive = damaged(tmp_path / "t.zip", position, 5)
    whole = images(10)
    for _ in range(2):
        for call in (archive.read, archive.open, lambda p: archive.read_many([0, p, 1])):
            with pytest.raises(shardfeed.IntegrityError, match=f"img_0000{position}") as caught:
                call(position)
            assert str(tmp_path / "t.zip") in str(caught.value)
            assert "help: " in str(caught.value)
            assert isinstance(caught.value, ValueError)
            assert caught.value.offset == archive[position].offset
    for n in range(10):
        if n != position:
            assert archive.read(n) == whole[n][1]
    others = [n for n in range(10) if n != position]
    assert [bytes(view) for view in archive.read_many(others)] == [whole[n][1] for n in others]


def test_bad_deflate_data(tmp_path):
    archive = damaged(tmp_path / "t.zip", 3, 0, zipfile.ZIP_DEFLATED)
    with pytest.raises((shardfeed.FormatError, shardfeed.IntegrityError), match=r"img_00003"):
        archive.read(3)
    assert archive.read(4) == images(10)[4][1]


def test_read_many_raises_the_first_error_of_the_list(tmp_path):
    path = tmp_path / "t.zip"
    damaged(path, 7, 5)
    data = bytearray(path.read_bytes())
    data[struct.unpack_from("<I", data, len(data) - 6)[0] - 500] ^= 0xFF  # in number 9
    path.write_bytes(data)
    archive = shardfeed.Archive(path)
    with pytest.raises(shardfeed.IntegrityError, match="img_00009"):
        archive.read_many([1, 9, 7, 2])
    with pytest.raises(shardfeed.IntegrityError, match="img_00007"):
        archive.read_many([1, 7, 9, 2])


def test_file_that_was_cut_under_the_reader(tmp_path):
    path = write_zip(tmp_path / "t.zip", images(10))
    archive = shardfeed.Archive(path)
    os.truncate(path, 3000)
    for call in (archive.read, lambda position: archive.read_many([position])):
        with pytest.raises((shardfeed.TruncatedError, shardfeed.ChangedError)):
            call(8)


def test_file_that_was_written_again_under_the_reader(tmp_path):
    path = write_zip(tmp_path / "t.zip", images(10))
    archive = shardfeed.Archive(path)
    other = [(name, data[::-1]) for name, data in images(10)]
    with path.open("r+b") as file:  # the same file, in place
        file.write(write_zip(tmp_path / "u.zip", other).read_bytes())
    os.utime(path, ns=(1, 1))
    for position in range(10):
        with pytest.raises(shardfeed.ChangedError, match="changed"):
            archive.read(position)


def test_file_that_was_replaced_is_read_on(tmp_path):
    """A rename leaves the open file as it is."""
    path = write_zip(tmp_path / "t.zip", images(10))
    archive = shardfeed.Archive(path)
    write_zip(tmp_path / "u.zip", images(3, 10)).rename(path)
    assert archive.read(9) == images(10)[9][1]


def test_no_prefix_of_a_zip_opens_short(tmp_path):
    whole = write_zip(tmp_path / "t.zip", images(3)).read_bytes()
    for cut in range(len(whole)):
        with pytest.raises(shardfeed.Error):
            shardfeed.Archive(whole[:cut])


def test_neither_tar_nor_zip(tmp_path):
    path = tmp_path / "t.zip"
    path.write_bytes(b"<html>not found</html>" * 100)
    with pytest.raises(shardfeed.FormatError, match=r"t\.zip"):
        shardfeed.Archive(path)


def test_directory_instead_of_a_file(tmp_path):
    with pytest.raises(shardfeed.Error, match=r"irectory"):
        shardfeed.Archive(tmp_path)


def test_memory_limit_of_a_compressed_tar(tmp_path):
    path = write_tar(tmp_path / "t.tar.gz", [("a", bytes(3 << 20))], mode="w:gz")
    with pytest.raises(shardfeed.LimitError, match="memory"):
        shardfeed.Archive(path, memory="1MiB")


def test_size_that_no_memory_holds(tmp_path):
    """A directory that claims an exbibyte for a member: an error, and not a crash."""
    path = tmp_path / "t.zip"
    write_zip(path, [("a", b"x" * 100)], zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    central = data.index(b"PK\1\2")
    for header, at in ((0, 22), (central, 24)):
        data[header + at : header + at + 4] = struct.pack("<I", 0xFFFFFFF0)
    path.write_bytes(data)
    expect_refused(shardfeed.Archive(path), shardfeed.FormatError)


@pytest.mark.parametrize("size", [1 << 40, (1 << 63) - 1])
def test_stored_size_that_no_memory_holds(tmp_path, size):
    """The same in ZIP64 and stored: it is looked at before memory is taken."""
    name, data = b"a.txt", b"some bytes"
    shared = struct.pack("<HHHIIIIHH", 45, 0, 0, 0x21, 7, 0xFFFFFFFF, 0xFFFFFFFF, len(name), 20)
    extra = struct.pack("<HHQQ", 1, 16, size, size)
    local = b"PK\3\4" + shared + name + extra + data
    central = b"PK\1\2" + struct.pack("<H", 45) + shared + bytes(14) + name + extra
    end = struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0)
    path = tmp_path / "t.zip"
    path.write_bytes(local + central + b"PK\5\6" + end)
    expect_refused(shardfeed.Archive(path), shardfeed.FormatError)


def expect_refused(archive, error):
    for call in (archive.read, archive.open, lambda position: archive.read_many([position])):
        with pytest.raises(error) as caught:
            call(0)
        assert not isinstance(caught.value, MemoryError)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damaged_data_says_what_to_do(tmp_path, method):
    archive = damaged(tmp_path / "t.zip", 3, 12, method)
    with pytest.raises(shardfeed.Error, match=r"img_00003.*; help: copy the file again"):
        archive.read(3)


def without_skips(error: pytest.ExceptionInfo[shardfeed.Error]) -> None:
    """Only a stream has the option on_error."""
    assert "; help: " in str(error.value)
    assert "on_error" not in str(error.value)


def test_help_says_to_skip_only_where_that_can_be(tmp_path):
    """A tar in bzip2 with one changed bit, and what is not decoded."""
    tar = write_tar(
        tmp_path / "t.tar", [("a.png", b"\x89PNG\r\n\x1a\n" + bytes(40)), ("b.txt", b"b")]
    )
    data = bytearray(bz2.compress(tar.read_bytes()))
    data[len(data) // 2] ^= 1
    path = tmp_path / "bad.tar.bz2"
    path.write_bytes(data)
    for openers in (shardfeed.Archive, lambda url: list(shardfeed.Members(url)), shardfeed.Dataset):
        with pytest.raises((shardfeed.IntegrityError, shardfeed.FormatError)) as caught:
            openers(path)
        without_skips(caught)
    with pytest.raises(
        (shardfeed.IntegrityError, shardfeed.FormatError), match="or use on_error=skip"
    ):
        list(shardfeed.Stream(path))

    with shardfeed.Dataset(tar, index="memory") as samples:
        for call in (lambda: samples.batch([0], decode="png:image"), lambda: samples[0].decode()):
            with pytest.raises(shardfeed.Error) as caught:
                call()
            without_skips(caught)
    skipping = pytest.raises(shardfeed.Error, match="or use on_error=skip_sample")
    with shardfeed.Stream(tar) as stream, skipping:
        next(stream.batches(1, decode="png:image"))
    with shardfeed.Stream(tar) as stream, pytest.raises(shardfeed.Error) as caught:
        next(iter(stream)).decode()
    without_skips(caught)
