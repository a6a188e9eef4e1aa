"""What openers give: files of many kinds, and what is none."""

from __future__ import annotations

import gc
import io
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from archives import write_zip
from conftest import write_tar
from http_servers import ranged, stand_in
from openers import BRACES, Files, OnlyRead, ShortReads, numbers

fsspec = pytest.importorskip("fsspec")


class KnownOnlyRead(OnlyRead):
    """The same with a size and a version, as the answer of a server."""

    def __init__(self, file: io.BufferedReader) -> None:
        super().__init__(file)
        self.size = os.fstat(file.fileno()).st_size
        self.details = {"ETag": "1"}


class Entered:
    """A context manager, as fsspec.open gives one."""

    def __init__(self, file: io.BufferedReader) -> None:
        self.file = file

    def __enter__(self) -> io.BufferedReader:
        return self.file

    def __exit__(self, *raised: object) -> None:
        self.file.close()


@pytest.mark.parametrize("kind", [lambda file: file, OnlyRead, KnownOnlyRead, ShortReads, Entered])
def test_kinds_of_files(kind: Any, memory: Any, tmp_path: Path) -> None:
    files = Files(tmp_path, kind)
    assert sorted(numbers(shardfeed.Stream("db://" + BRACES, opener=files))) == list(range(200))
    assert len(files.opened) == 4
    assert files.all_closed()
    with shardfeed.Archive("db://s-001.tar", opener=files) as archive:
        assert archive.read("000050.cls") == b"0"
    with shardfeed.Members("db://s-001.tar", opener=files) as members:
        assert sum(1 for _ in members) == 100
    del archive, members
    gc.collect()
    assert files.all_closed()
    if kind in (OnlyRead, KnownOnlyRead):
        with pytest.raises(shardfeed.UsageError, match="read at any offset"):
            shardfeed.Dataset("db://s-001.tar", opener=files, index="memory")


@pytest.mark.parametrize("kind", [lambda file: file, OnlyRead, KnownOnlyRead])
def test_large_arrays_are_read_once(kind: Any, tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    members = []
    for number in range(20):
        file = io.BytesIO()
        np.save(file, np.full((200, 200), number, np.float32))
        members.append((f"{number:03}.npy", file.getvalue()))
    write_tar(tmp_path / "arrays.tar", members)
    files = Files(tmp_path, kind)
    stream = shardfeed.Stream("db://arrays.tar", opener=files, batch=8, decode="npy")
    assert [int(row[0, 0]) for batch in stream.batches() for row in batch["npy"]] == [*range(20)]
    assert len(files.opened) == 1


def test_urlopen(memory: Any, tmp_path: Path) -> None:
    from urllib.request import urlopen

    with stand_in(ranged((tmp_path / "s-001.tar").read_bytes())) as server:
        stream = shardfeed.Stream(server.url(), opener=urlopen)
        assert numbers(stream) == list(range(50, 100))
        with pytest.raises(shardfeed.UsageError, match="read at any offset"):
            shardfeed.Dataset(server.url(), opener=urlopen, index="memory")


def test_nothing_is_kept_of_a_file_system(memory: Any, tmp_path: Path) -> None:
    import weakref

    write_zip(tmp_path / "outer.zip", [("a.tar", (tmp_path / "s-000.tar").read_bytes())])
    inside = fsspec.filesystem("zip", fo=str(tmp_path / "outer.zip"), skip_instance_cache=True)
    known = weakref.ref(inside)
    opener = OwnFileSystem(inside)
    assert len(list(shardfeed.Stream("zip://a.tar", opener=opener))) == 50
    assert known() is not None
    del inside, opener
    gc.collect()
    assert known() is None


class OwnFileSystem:
    """Its files name it, as those of ftp do."""

    def __init__(self, system: Any) -> None:
        self.system = system

    def __call__(self, url: str) -> Any:
        file = self.system.open(url)
        file.fs = self.system
        return file


def test_a_file_that_is_given_twice_has_one_position(memory: Any, tmp_path: Path) -> None:
    with open(tmp_path / "s-000.tar", "rb") as file:
        archives = [
            shardfeed.Archive("db://x", opener=lambda _: Entered(file).__enter__())
            for _ in range(2)
        ]
        threads = []
        wrong = []

        def read(archive: shardfeed.Archive) -> None:
            for member in archive:
                if int(member.name[:6]) != int(member.read().strip(b".")) and "txt" in member.name:
                    wrong.append(member.name)

        for archive in archives * 2:
            threads.append(threading.Thread(target=read, args=(archive,)))
            threads[-1].start()
        for thread in threads:
            thread.join()
        assert wrong == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda url: io.StringIO("x"), "text file; help: open it with mode"),
        (lambda url: OnlyRead(io.StringIO("x" * 2000)), "str; help: open the file with mode"),
        (lambda url: None, "the opener gave a NoneType"),
        (lambda: None, "positional argument"),
        (lambda url: fsspec.open("nosuch://x"), "nosuch"),
    ],
)
def test_what_is_no_binary_file(given: Any, message: str) -> None:
    with pytest.raises(shardfeed.UsageError, match=message) as caught:
        list(shardfeed.Stream("db://x", opener=given, on_error="skip_shard", log=None))
    assert isinstance(caught.value.__cause__, (TypeError, ValueError))


def test_a_file_that_ends_too_early(memory: Any, tmp_path: Path) -> None:
    cut = (tmp_path / "s-000.tar").read_bytes()[:50_000]
    for opener in (lambda _: io.BytesIO(cut), lambda _: OnlyRead(io.BytesIO(cut))):
        with pytest.raises(shardfeed.TruncatedError):
            list(shardfeed.Stream("db://x", opener=opener))


def test_what_is_no_opener() -> None:
    for wrong in ("fsspec", 7, fsspec):
        with pytest.raises(TypeError, match=r"fsspec\.open"):
            shardfeed.Archive("db://x", opener=wrong)
    with pytest.raises(TypeError, match="in memory"):
        shardfeed.Archive(b"", opener=fsspec.open)


def test_versions_that_cost_nothing(memory: Any, tmp_path: Path) -> None:
    from shardfeed._opener import _version

    path = tmp_path / "s-000.tar"

    class Remote(ShortReads):
        _details: dict[str, str] | None = None

        @property
        def details(self) -> dict[str, str]:
            raise AssertionError("this is a request")

    with path.open("rb") as file:
        assert _version(file) == f"mtime {path.stat().st_mtime_ns}".encode()
        remote = Remote(file)
        assert _version(remote) == b""
        remote._details = {"size": 7, "LastModified": "then", "ETag": "a\0ü" * 100}
        assert _version(remote) == ("ETag " + "aü" * 100).encode()[:255]
        assert _version(OnlyRead(file)) == b""
    with fsspec.open(f"local://{path}") as file:
        assert _version(file).startswith(b"mtime ")


def test_a_file_that_cannot_seek_is_not_read_after_an_exception(
    memory: Any, tmp_path: Path
) -> None:
    class Stops(OnlyRead):
        def __init__(self, file: io.BufferedReader) -> None:
            self.file = file
            self.close = file.close
            self.calls = 0

        def read(self, size: int) -> bytes:
            self.calls += 1
            if self.calls == 3:
                self.file.read(100)  # are lost
                raise KeyboardInterrupt
            return self.file.read(min(size, 1000))

    def read_all() -> None:
        for member in members:
            member.read()

    with shardfeed.Members("db://s-000.tar", opener=Files(tmp_path, Stops)) as members:
        with pytest.raises(KeyboardInterrupt):
            read_all()
        with pytest.raises(shardfeed.UsageError, match="an exception or another reader"):
            read_all()


def test_schemes(memory: Any, tmp_path: Path) -> None:
    files = Files(tmp_path)
    path = str(tmp_path / "s-000.tar")
    urls = [path, f"file://{path}", f"pipe:cat {path}"]
    assert len(list(shardfeed.Stream(urls, opener=files))) == 150
    assert files.opened == []

    def http(url: str) -> Any:
        assert url == "http://host/s-001.tar"
        return open(tmp_path / "s-001.tar", "rb")

    assert numbers(shardfeed.Stream("http://host/s-001.tar", opener=http)) == list(range(50, 100))
    with pytest.raises(shardfeed.UnsupportedError):
        list(shardfeed.Stream("db://s-001.tar"))
