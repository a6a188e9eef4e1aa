"""Members in sequence: what Python's tarfile and zipfile say, and how Python uses them."""

from __future__ import annotations

import io
import os
import pickle
import signal
import tarfile
import threading
import time
import zipfile

import pytest
import shardfeed

KINDS = {
    tarfile.REGTYPE: "file",
    tarfile.DIRTYPE: "directory",
    tarfile.LNKTYPE: "hard link",
    tarfile.SYMTYPE: "symbolic link",
    tarfile.CHRTYPE: "special",
    tarfile.FIFOTYPE: "special",
}


def write_tar(path, mode="w", form=tarfile.PAX_FORMAT):
    """A tar with all that matters: its members and their bytes, as they were written."""
    written = []
    names = [
        ("dir/", tarfile.DIRTYPE, b""),
        ("dir/a.txt", tarfile.REGTYPE, b"first"),
        ("dir/a.txt", tarfile.REGTYPE, b"second of that name"),
        ("dir/" + "long" * 60 + ".bin", tarfile.REGTYPE, os.urandom(70000)),
        ("empty", tarfile.REGTYPE, b""),
        ("ä/ü.jpg", tarfile.REGTYPE, b"\0" * 512),
        ("link", tarfile.SYMTYPE, b""),
        ("hard", tarfile.LNKTYPE, b""),
        ("device", tarfile.CHRTYPE, b""),
        ("fifo", tarfile.FIFOTYPE, b""),
    ]
    with tarfile.open(path, mode, format=form) as tar:
        for number, (name, kind, data) in enumerate(names):
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, len(data)
            member.mode, member.uid, member.gid = 0o600 + number, 1000 + number, 50 + number
            member.mtime = 1_600_000_000 + number
            if form == tarfile.PAX_FORMAT:
                member.mtime += 0.25
                member.uid += 1 << 33
            member.uname, member.gname = "us", "grü" if form == tarfile.PAX_FORMAT else "gr"
            if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                member.linkname = "target/" + "far" * 50
            tar.addfile(member, io.BytesIO(data))
            written.append((name, data))
    return written


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_members_of_a_tar_are_those_of_tarfile(tmp_path, mode, form):
    path = tmp_path / "a.tar"
    written = write_tar(path, mode, form)
    with shardfeed.Members(path) as members, tarfile.open(path) as tar:
        seen = []
        for member, info in zip(members, tar, strict=True):
            seen.append((member.name, member.read()))
            assert member.name.rstrip("/") == info.name
            assert member.kind == KINDS[info.type]
            assert (member.is_file, member.is_dir) == (info.isreg(), info.isdir())
            assert (member.size, member.mode, member.crc32) == (info.size, info.mode, None)
            assert (member.uid, member.gid) == (info.uid, info.gid)
            assert member.mtime == info.mtime
            assert (member.user, member.group) == (info.uname, info.gname)
            assert member.link == (info.linkname or None)
            assert member.offset == info.offset
        assert seen == written


@pytest.mark.parametrize("pipe", [False, True])
def test_members_of_a_zip_are_those_of_zipfile(tmp_path, pipe):
    path = tmp_path / "a.zip"
    large = os.urandom(1_500_000)
    with zipfile.ZipFile(path, "w") as file:
        file.mkdir("dir") if hasattr(file, "mkdir") else file.writestr("dir/", "")
        file.writestr("dir/a.txt", b"stored")
        file.writestr("b", b"deflated" * 1000, zipfile.ZIP_DEFLATED)
        file.writestr("c", large, zipfile.ZIP_DEFLATED)
        file.writestr("d", large, zipfile.ZIP_LZMA)
    url = f"pipe:cat {path}" if pipe else path
    with zipfile.ZipFile(path) as file, shardfeed.Members(url) as members:
        for member, info in zip(members, file.infolist(), strict=True):
            assert member.name == info.filename
            assert (member.size, member.stored_size) == (info.file_size, info.compress_size)
            assert (member.method, member.crc32) == (info.compress_type, info.CRC)
            assert member.mode == info.external_attr >> 16 & 0o7777
            assert (member.user, member.link, member.uid) == (None, None, None)
            assert member.read() == file.read(info)


def test_a_member_is_read_in_parts(tmp_path):
    write_tar(tmp_path / "a.tar")
    with shardfeed.Members(tmp_path / "a.tar") as members:
        assert [next(members).name for _ in range(2)] == ["dir/", "dir/a.txt"]
        member = next(members)
        assert member.read(6) == b"second"
        assert member.read(0) == b""
        buffer = bytearray(4)
        assert member.readinto(buffer) == 4
        assert buffer == b" of "
        assert member.readinto(bytearray()) == 0
        assert list(member.chunks(5)) == [b"that ", b"name"]
        assert member.read() == b""
        assert member.readinto(buffer) == 0
        with pytest.raises(ValueError, match="chunks of 0"):
            list(member.chunks(0))
        large = next(members)
        assert sum(map(len, large.chunks(999))) == 70000


def test_a_member_is_valid_until_the_next_one(tmp_path):
    write_tar(tmp_path / "a.tar")
    members = shardfeed.Members(tmp_path / "a.tar")
    first = next(members)
    next(members)
    for use in (first.read, lambda: first.size, lambda: first.link, lambda: list(first.chunks())):
        with pytest.raises(shardfeed.UsageError, match="no longer the current one"):
            use()
    assert first.name == "dir/"
    assert "dir/" in repr(first)
    last = next(members)
    members.close()
    assert members.closed
    for use in (last.read, lambda: next(members)):
        with pytest.raises(shardfeed.UsageError, match="closed"):
            use()
    members.close()
    members.cancel()
    assert "closed" in repr(members)


def test_names_that_are_not_utf8_have_surrogate_escapes(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.GNU_FORMAT, encoding="latin1") as tar:
        tar.addfile(tarfile.TarInfo("ä"))
    (member,) = shardfeed.Members(tmp_path / "a.tar")
    assert member.name_bytes == b"\xe4"
    assert os.fsencode(member.name) == b"\xe4"


def read_all(members):
    for member in members:
        member.read()


def test_damage_is_an_exception_that_repeats(tmp_path):
    write_tar(tmp_path / "a.tar")
    whole = (tmp_path / "a.tar").read_bytes()
    (tmp_path / "a.tar").write_bytes(whole[:-20000])
    members = shardfeed.Members(tmp_path / "a.tar")
    for _ in range(2):
        with pytest.raises(shardfeed.TruncatedError, match="help: ") as caught:
            read_all(members)
    assert caught.value.offset is not None
    with pytest.raises(shardfeed.NotFoundError):
        shardfeed.Members(tmp_path / "none.tar")
    with pytest.raises(TypeError, match="shuffle"):
        shardfeed.Members(tmp_path / "a.tar", shuffle=5)


def test_a_timeout_loses_nothing(tmp_path):
    written = write_tar(tmp_path / "a.tar")
    command = f"pipe:head -c 20000 {tmp_path}/a.tar; sleep 0.3; tail -c +20001 {tmp_path}/a.tar"
    members = shardfeed.Members(command, timeout=0.05)
    seen, timeouts = [], 0
    while len(seen) < len(written):
        try:
            seen.append((next(members).name, b""))
            while True:
                try:
                    seen[-1] = (seen[-1][0], members._current.read())
                    break
                except TimeoutError:
                    timeouts += 1
        except TimeoutError:
            timeouts += 1
    assert seen == written
    assert timeouts > 0


def test_ctrl_c_ends_a_wait_and_loses_nothing(tmp_path):
    write_tar(tmp_path / "a.tar")
    members = shardfeed.Members(f"pipe:sleep 0.7; cat {tmp_path}/a.tar")
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        next(members)
    assert time.monotonic() - start < 0.6
    assert next(members).name == "dir/"


def test_another_thread_may_run_and_cancel(tmp_path):
    members = shardfeed.Members("pipe:sleep 30")
    timer = threading.Timer(0.1, members.cancel)  # it would not run if this thread held the GIL
    timer.start()
    with pytest.raises(shardfeed.CancelledError):
        next(members)


def test_members_are_neither_pickled_nor_used_in_a_child(tmp_path):
    write_tar(tmp_path / "a.tar")
    members = shardfeed.Members(tmp_path / "a.tar")
    member = next(members)
    for what in (members, member):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(what)
    child = os.fork()
    if child == 0:
        try:
            next(members)
        except shardfeed.ForkedError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert next(members).read() == b"first"


def test_resync_goes_on_behind_damage(tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for number in range(4):
            info = tarfile.TarInfo(f"{number}.txt")
            info.size = 3
            tar.addfile(info, io.BytesIO(b"abc"))
    data = bytearray(path.read_bytes())
    data[1024] ^= 0xFF
    path.write_bytes(data)
    with shardfeed.Members(path, resync=True) as members:
        seen = []
        while True:
            try:
                seen.append(next(members).name)
            except StopIteration:
                break
            except shardfeed.FormatError as error:
                seen.append(error.offset)
    assert seen == ["0.txt", 1024, "2.txt", "3.txt"]
    with shardfeed.Members(path) as members:  # without it every call says the same
        assert next(members).name == "0.txt"
        for _ in range(3):
            with pytest.raises(shardfeed.FormatError, match="at byte 1024"):
                next(members)
