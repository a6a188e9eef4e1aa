from __future__ import annotations

import array
import collections.abc
import copy
import gc
import io
import json
import os
import pickle
import random
import struct
import sys
import threading
import time
import zipfile
import zlib
from collections.abc import Callable

import pytest
import shardfeed
from archives import FORMATS, images, write_archive, write_zip
from closing import errors_of_closing
from conftest import write_tar


@pytest.fixture(params=FORMATS)
def pair(request, tmp_path):
    """An archive in each format, and what is in it."""
    members = [*images(25), ("empty", b""), ("a/b.json", b'{"n": [1, 2]}')]
    return shardfeed.Archive(write_archive(tmp_path / "t", members, request.param)), members


# ---- Members ------------------------------------------------------------------------------------


def test_sequence_of_members(pair):
    archive, members = pair
    assert isinstance(archive, collections.abc.Sequence)
    assert len(archive) == 27
    assert archive.names() == [name for name, _ in members]
    assert [(m.name, m.read()) for m in archive] == members
    assert [m.position for m in archive] == list(range(27))
    assert [m.position for m in reversed(archive)] == list(range(27))[::-1]
    assert archive[5].name == "img_00005.png"
    assert archive[-1] == archive[26]
    assert archive[-27] == archive[0]
    assert archive[2:5] == [archive[2], archive[3], archive[4]]
    assert [m.position for m in archive[::-10]] == [26, 16, 6]
    assert archive[50:] == []
    assert archive.index(archive[7]) == 7
    assert archive.count(archive[7]) == 1
    assert len({archive[1], archive[1], archive[2]}) == 2
    assert archive[1] != archive[2]
    for position in (27, -28, 2**64, -(2**64)):
        with pytest.raises(IndexError, match="27 members"):
            archive[position]
        with pytest.raises(IndexError, match="27 members"):
            archive.read(position)
        with pytest.raises(IndexError, match="27 members"):
            archive.read_many([0, position])


def test_mapping_by_name(pair):
    archive, members = pair
    for position, (name, data) in enumerate(members):
        assert archive[name].position == position
        assert archive[name.encode()].position == position
        assert archive[name].read() == archive.read(name) == archive.read(position) == data
        assert name in archive
        assert name.encode() in archive
    assert archive[3] in archive
    for missing in ("", "img", "img_00000.pn", "img_00000.png ", "\0", "\ud800", "a/b"):
        assert missing not in archive
        with pytest.raises(KeyError) as caught:
            archive[missing]
        assert isinstance(caught.value, shardfeed.NoMemberError)
        assert caught.value.code_name == "NOT_FOUND"
        assert pickle.loads(pickle.dumps(caught.value)).message == str(caught.value)
    for other in (None, 5, 1.5, object(), shardfeed.Archive):
        assert other not in archive
    for wrong in (None, 1.5, [1], object()):
        with pytest.raises(TypeError, match="position or a name"):
            archive[wrong]
        with pytest.raises(TypeError, match="position or a name"):
            archive.read(wrong)


def test_positions_of_any_integer_type(pair):
    archive, members = pair

    class Index:
        def __index__(self) -> int:
            return 4

    assert archive.read(Index()) == archive[Index()].read() == members[4][1]
    assert archive.read(True) == members[1][1]
    mixed = [Index(), -1, "empty", b"img_00009.png", 0]
    expected = [members[n][1] for n in (4, 26, 25, 9, 0)]
    assert [bytes(view) for view in archive.read_many(mixed)] == expected
    assert [bytes(view) for view in archive.read_many(range(3))] == [d for _, d in members[:3]]
    positions = array.array("Q", [4, 26, 25, 9, 0])
    assert [bytes(view) for view in archive.read_many(positions)] == expected


def test_what_a_member_says(tmp_path):
    text = b"all work and no play " * 1000
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.mkdir("d") if hasattr(file, "mkdir") else file.writestr("d/", b"")
        file.writestr("d/stored", b"abc")
        for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
            file.writestr(f"d/{method}", text, method)
        infos = file.infolist()
    archive = shardfeed.Archive(path)
    for member, info in zip(archive, infos):
        assert member.name == info.filename
        assert member.name_bytes == info.filename.encode()
        assert (member.size, member.stored_size) == (info.file_size, info.compress_size)
        assert (member.method, member.offset) == (info.compress_type, info.header_offset)
        assert member.crc32 == zlib.crc32(member.read())
        assert member.is_dir == info.is_dir()
        assert member.is_file != member.is_dir
        assert member.kind == ("directory" if info.is_dir() else "file")
    assert repr(archive[1]) == "<shardfeed.Member 1 'd/stored' 3 bytes>"

    tar = shardfeed.Archive(write_tar(tmp_path / "t.tar", [("a", b"1234"), ("b", b"")]))
    assert [m.crc32 for m in tar] == [None, None]
    assert [(m.size, m.stored_size, m.method) for m in tar] == [(4, 4, 0), (0, 0, 0)]
    assert [m.offset for m in tar] == [0, 1024]


def test_names_that_are_not_utf8(tmp_path):
    name = os.fsdecode(b"a\xff\x00b".replace(b"\0", b"\x80"))
    archive = shardfeed.Archive(write_tar(tmp_path / "t.tar", [(name, b"1"), ("ä", b"2")]))
    raw = name.encode("utf-8", "surrogateescape")
    assert archive.names() == [name, "ä"]
    assert archive[0].name_bytes == raw
    assert archive[name] == archive[raw] == archive[0]
    assert archive["ä"] == archive["ä".encode()] == archive[1]
    assert "ä".encode("latin-1") not in archive


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_names(tmp_path):
    members = [("a", b"1"), ("b", b"2"), ("a", b"3")]
    for path in (write_tar(tmp_path / "t.tar", members), write_zip(tmp_path / "t.zip", members)):
        archive = shardfeed.Archive(path)
        assert "a" in archive
        for call in (archive.__getitem__, archive.read, archive.open):
            with pytest.raises(shardfeed.AmbiguousError, match="0 and 2"):
                call("a")
        assert [m.read() for m in archive] == [b"1", b"2", b"3"]
        assert archive.read("b") == b"2"


# ---- Reading ------------------------------------------------------------------------------------


def test_read_gives_bytes(pair):
    archive, _ = pair
    data = archive.read("a/b.json")
    assert type(data) is bytes
    assert json.loads(data) == {"n": [1, 2]}
    large = archive.read(9)
    assert type(large) is bytes
    assert large == archive.read(9)
    assert large is not archive.read(9)


def test_views_of_read_many_are_read_only_and_outlive_everything(pair):
    archive, members = pair
    order = list(range(27)) * 3
    random.Random(1).shuffle(order)
    views = archive.read_many(order)
    archive.close()
    del archive
    gc.collect()
    assert [bytes(view) for view in views] == [members[n][1] for n in order]
    assert all(view.readonly for view in views)
    assert all(view.contiguous and view.format == "B" for view in views)


def test_read_many_of_nothing(pair):
    assert pair[0].read_many([]) == []
    assert pair[0].read_many(iter(())) == []


def test_small_views_share_at_most_64_kib(tmp_path):
    sizes = [1, 100, 10_000, 40_000, 65_536, 0, 65_537, 200_000]
    members = [(str(n), bytes([n % 251]) * size) for n, size in enumerate(sizes * 20)]
    random.Random(3).shuffle(members)
    archive = shardfeed.Archive(write_zip(tmp_path / "t.zip", members))
    for view, (_, data) in zip(archive.read_many(range(160)), members):
        assert view == data
        assert memoryview(view.obj).nbytes <= max(65_536, len(data))


def test_readinto(pair):
    archive, members = pair
    buffer = bytearray(200_000)
    for position in (0, 9, "empty", -1):
        data = archive.read(position)
        assert archive.readinto(position, buffer) == len(data)
        assert buffer[: len(data)] == data
    numbers = array.array("i", [0] * 250)
    assert archive.readinto(3, numbers) == 1000
    assert numbers.tobytes() == members[3][1]
    with pytest.raises(shardfeed.UsageError, match="too small"):
        archive.readinto(0, bytearray(999))
    for wrong in (bytes(1000), memoryview(bytes(1000)), "text", None):
        with pytest.raises((TypeError, BufferError, ValueError)):
            archive.readinto(0, wrong)


def test_open_gives_a_file_that_can_seek(pair):
    archive, _ = pair
    for file in (archive.open("img_00009.png"), archive[9].open()):
        assert isinstance(file, io.BufferedIOBase)
        assert file.seekable()
        assert file.read(8) == b"00000009"
        file.seek(-3, io.SEEK_END)
        assert file.read() == b"xxx"
    with archive.open("a/b.json") as file:
        assert json.load(file) == {"n": [1, 2]}


@pytest.mark.slow
def test_open_with_pillow(tmp_path):
    image = pytest.importorskip("PIL.Image")
    encoded = io.BytesIO()
    image.new("RGB", (7, 5), (255, 0, 0)).save(encoded, "PNG")
    path = write_zip(tmp_path / "t.zip", [("red.png", encoded.getvalue())])
    with shardfeed.Archive(path) as archive:
        picture = image.open(archive.open("red.png"))
        assert (picture.size, picture.getpixel((3, 3))) == ((7, 5), (255, 0, 0))
        assert picture.format == "PNG"


# ---- Life ---------------------------------------------------------------------------------------


def test_close(pair):
    archive, _ = pair
    member = archive[3]
    kept = archive.read(0)
    with archive as same:
        assert same is archive
    assert archive.closed
    assert kept[:8] == b"00000000"
    for call in (
        lambda: archive.read(0),
        lambda: archive.read("empty"),
        lambda: archive.read_many([0]),
        lambda: archive.readinto(0, bytearray(9999)),
        lambda: archive.open(0),
        lambda: archive[0],
        lambda: archive["empty"],
        lambda: archive[:],
        lambda: len(archive),
        lambda: list(archive),
        lambda: "empty" in archive,
        lambda: archive.names(),
        lambda: member.read(),
        lambda: member.size,
        lambda: member.name,
    ):
        with pytest.raises(ValueError, match="closed"):
            call()
    assert "closed" in repr(archive)
    archive.close()
    copied = copy.copy(archive)
    with pytest.raises(ValueError, match="closed"):
        copied.read(0)


def test_close_while_other_threads_read(tmp_path):
    path = write_zip(tmp_path / "t.zip", images(50))
    for _ in range(20):
        archive = shardfeed.Archive(path)

        def use(archive: shardfeed.Archive = archive) -> None:
            for position in range(50):
                data = archive.read(position)
                assert data.startswith(f"{position:08d}".encode())
                assert archive.read_many([position])[0] == data

        assert errors_of_closing(archive, use) == []


def test_archive_in_memory_keeps_its_buffer(tmp_path):
    whole = write_zip(tmp_path / "t.zip", images(3)).read_bytes()
    buffer = bytearray(whole)
    archive = shardfeed.Archive(buffer)
    with pytest.raises(BufferError):
        buffer.append(0)
    assert archive.read(1).startswith(b"00000001")
    archive.close()
    gc.collect()
    buffer.append(0)
    for data in (whole, memoryview(whole), array.array("B", whole), io.BytesIO(whole).getbuffer()):
        assert len(shardfeed.Archive(data)) == 3
    for wrong in (5, None, [whole]):
        with pytest.raises(TypeError, match="bytes-like"):
            shardfeed.Archive(wrong)
    with pytest.raises(shardfeed.Error):
        shardfeed.Archive(b"")


def test_no_descriptor_is_left(tmp_path):
    path = write_zip(tmp_path / "t.zip", images(3))

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = descriptors()
    archive = shardfeed.Archive(path)
    archive.read(0)
    del archive
    with shardfeed.Archive(path) as archive:
        member = archive[1]
    with pytest.raises(shardfeed.NoMemberError):
        shardfeed.Archive(path).read("none")
    gc.collect()
    assert descriptors() == before
    del member


def test_sources(tmp_path):
    members = images(3)
    path = write_archive(tmp_path / "t", members, "tar")
    for url in (path, str(path), f"file://{path}", f"pipe:cat {path}", f"pipe:gzip < {path}"):
        with shardfeed.Archive(url) as archive:
            assert [(m.name, m.read()) for m in archive] == members
            assert archive.url == str(url)
    braces = write_zip(tmp_path / "{a,b}.zip", members)
    assert len(shardfeed.Archive(braces)) == 3  # one file, so nothing is expanded
    with pytest.raises(shardfeed.UsageError, match="NUL"):
        shardfeed.Archive("a\0b")
    with pytest.raises(FileNotFoundError):
        shardfeed.Archive(tmp_path / "none.zip")


def test_repr(tmp_path):
    path = write_zip(tmp_path / "t.zip", images(3))
    archive = shardfeed.Archive(path, memory="1GiB")
    assert repr(archive) == f"<shardfeed.Archive '{path}' 3 members memory=1GiB>"
    assert archive.options == {"memory": "1GiB"}
    assert repr(shardfeed.Archive(path.read_bytes())) == "<shardfeed.Archive in memory 3 members>"
    secret = shardfeed.Archive(f"pipe:cat {path}; : token")
    assert "token" not in repr(secret)


# ---- Pickle -------------------------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [copy.copy, lambda a: pickle.loads(pickle.dumps(a))])
def test_a_pickled_copy_is_opened_again(pair, duplicate):
    archive, members = pair
    copied = duplicate(archive)
    assert copied.options == archive.options
    assert copied.read(9) == members[9][1]
    assert [(m.name, m.read()) for m in duplicate(archive)] == members
    assert duplicate(archive).read_many([9])[0] == members[9][1]
    assert duplicate(archive)["empty"].size == 0
    assert "empty" in duplicate(archive)
    member = duplicate(archive[5])
    assert (member.position, member.read()) == (5, members[5][1])


def test_pickled_archive_opens_nothing_until_it_is_used(tmp_path):
    path = write_zip(tmp_path / "t.zip", images(3))
    archive = shardfeed.Archive(path, max_member="1MiB")
    data = pickle.dumps(archive)
    assert len(data) < 500
    path.rename(tmp_path / "away.zip")
    loaded = pickle.loads(data)
    assert repr(loaded) == f"<shardfeed.Archive '{path}' max_member=1MiB>"
    with pytest.raises(FileNotFoundError):
        loaded.read(0)
    (tmp_path / "away.zip").rename(path)
    assert loaded.read(0) == archive.read(0)


def test_pickled_archive_is_not_another_file(tmp_path):
    """Positions of one process would be other members in the next."""
    path = write_zip(tmp_path / "t.zip", images(3))
    data = pickle.dumps(shardfeed.Archive(path))
    for others in (images(4), images(3, 999), [(name, data[::-1]) for name, data in images(3)]):
        write_zip(path, others)
        loaded = pickle.loads(data)
        for call in (lambda loaded=loaded: loaded.read(0), lambda loaded=loaded: len(loaded)):
            with pytest.raises(shardfeed.ChangedError, match=r"t\.zip.*help: "):
                call()
    write_zip(path, images(3))
    assert len(pickle.loads(data)) == 3
    empty = write_zip(tmp_path / "empty.zip", [])
    assert len(pickle.loads(pickle.dumps(shardfeed.Archive(empty)))) == 0


# ---- Options ------------------------------------------------------------------------------------


def test_options_are_those_of_archives(tmp_path):
    path = write_zip(tmp_path / "t.zip", images(3))
    defaults = {
        option["name"]: option["default"]
        for option in shardfeed.options()
        if "archive" in option["openers"]
    }
    assert len(shardfeed.Archive(path, **defaults)) == 3
    with pytest.raises(TypeError, match=r'"shuffle" is an option of stream only'):
        shardfeed.Archive(path, shuffle=1)
    with pytest.raises(TypeError, match=r'zip_prefx.*"zip_prefix"'):
        shardfeed.Archive(path, zip_prefx="allow")
    with pytest.raises(shardfeed.UsageError, match="max_member"):
        shardfeed.Archive(path, max_member="big")
    with pytest.raises(shardfeed.LimitError, match="max_member"):
        shardfeed.Archive(path, max_member=10).read(0)
    path.write_bytes(b"#!/bin/sh\n" + path.read_bytes())
    with pytest.raises(shardfeed.Error, match="zip_prefix"):
        shardfeed.Archive(path)
    assert len(shardfeed.Archive(path, zip_prefix="allow")) == 3


# ---- Threads ------------------------------------------------------------------------------------


def test_32_threads_on_one_archive(pair):
    archive, members = pair
    wrong = []

    def work(seed: int) -> None:
        order = list(range(27)) * 10
        random.Random(seed).shuffle(order)
        try:
            for n in order:
                if archive.read(n) != members[n][1] or archive[members[n][0]].position != n:
                    wrong.append(n)
            for n, view in zip(order, archive.read_many(order)):
                if view != members[n][1]:
                    wrong.append(n)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def slow_zip(tmp_path):
    """A member that takes long to read: 64 MiB of deflated text."""
    text = struct.pack("<100I", *random.Random(1).choices(range(1 << 20), k=100)) * (1 << 17)
    return write_zip(tmp_path / "t.zip", [("slow", text)], zipfile.ZIP_DEFLATED)


def test_gil_is_released(tmp_path):
    """While one thread reads, another one runs Python. With the GIL held it would get two turns at
    most, however long a read takes; on a busy machine some reads leave no time for more.
    """
    archive = shardfeed.Archive(slow_zip(tmp_path))
    buffer = bytearray(archive["slow"].size)

    def turns_during(read: Callable[[], object]) -> int:
        turns = 0
        reading, done = threading.Event(), threading.Event()

        def work() -> None:
            reading.set()
            read()
            done.set()

        thread = threading.Thread(target=work)
        thread.start()
        reading.wait()
        while not done.is_set():
            turns += 1
            time.sleep(0.0001)
        thread.join()
        return turns

    for read in (lambda: archive.readinto(0, buffer), lambda: archive.read_many([0])):
        assert any(turns_during(read) > 3 for _ in range(200))


# ---- Memory -------------------------------------------------------------------------------------


def test_reading_leaves_nothing_behind(tmp_path):
    """Objects and results are freed: the second round takes no more memory than the first."""
    archive = shardfeed.Archive(write_zip(tmp_path / "t.zip", images(1000, 2000)))

    def resident() -> int:
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def work() -> None:
        for _ in range(3):
            for position in range(1000):
                archive.read(position)
                archive.read(f"img_{position:05d}.png")
            archive.read_many(range(1000))
            for member in archive:
                member.read()
            for missing in range(100):
                assert str(missing) not in archive

    work()
    objects, before = len(gc.get_objects()), resident()
    for _ in range(3):
        work()
    assert len(gc.get_objects()) - objects < 100
    assert resident() - before < 4 << 20


def test_member_objects_are_tiny(tmp_path):
    archive = shardfeed.Archive(write_zip(tmp_path / "t.zip", images(3)))
    assert sys.getsizeof(archive[0]) <= 64
    assert not hasattr(archive[0], "__dict__")
