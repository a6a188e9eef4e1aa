"""Files of openers that are not quite what they say: never fewer samples with success."""

from __future__ import annotations

import io
import os
import struct
import traceback
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from http_servers import Answer, stand_in
from openers import numbers

fsspec = pytest.importorskip("fsspec")

# Of pyftpdlib with older versions of Python.
pytestmark = pytest.mark.filterwarnings("ignore:The async:DeprecationWarning")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Samples in blocks of 1536 bytes, so that it is easily cut between two."""
    return write_tar(tmp_path_factory.mktemp("tar") / "a.tar", numbered(0, 300, 1)).read_bytes()


def keys(opener: Callable[[str], Any], **options: Any) -> list[str]:
    return [sample.key for sample in shardfeed.Stream("db://a.tar", opener=opener, **options)]


class Wrapper(io.RawIOBase):
    """A file of the program. `fill`: its readinto."""

    def __init__(self, data: bytes, seeks: bool, fill: Callable[[Any, Any], Any]) -> None:
        self.file, self.seeks, self.fill = io.BytesIO(data), seeks, fill

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self.seeks

    def seek(self, *place: int) -> int:
        return self.file.seek(*place)

    def tell(self) -> int:
        return self.file.tell()

    def read(self, size: int = -1) -> bytes:
        return self.file.read(size)

    def readinto(self, out: Any) -> Any:
        return self.fill(self.file, out)


@pytest.mark.parametrize("seeks", [True, False])
def test_a_bug_in_readinto_is_an_error(data: bytes, seeks: bool) -> None:
    def counts(file: Any, out: Any) -> int:
        return file.readinto(out) + None

    with pytest.raises(shardfeed.Error, match="TypeError"):
        keys(lambda _: Wrapper(data, seeks, counts))


def test_a_readinto_that_is_missing_after_all(data: bytes) -> None:
    def reads_and_refuses(file: Any, out: Any) -> int:
        file.readinto(out)
        raise io.UnsupportedOperation("readinto")

    assert len(keys(lambda _: Wrapper(data, True, reads_and_refuses))) == 300


@pytest.mark.parametrize("count", [-5, 10**30])
def test_counts_that_cannot_be(data: bytes, count: int) -> None:
    with pytest.raises(shardfeed.Error, match=f"{count} bytes where at most"):
        keys(lambda _: Wrapper(data, False, lambda file, out: count))


def test_subclasses_of_files_in_memory_read_for_themselves(data: bytes) -> None:
    class Decrypting(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return bytes(byte ^ 90 for byte in super().read(size))

        def readinto(self, out: Any) -> int:
            plain = self.read(len(out))
            out[: len(plain)] = plain
            return len(plain)

    assert len(keys(lambda _: Decrypting(bytes(byte ^ 90 for byte in data)))) == 300


@pytest.mark.parametrize(
    "options", [{"end_marker": "optional"}, {"concat": True}], ids=["no end marker", "concat"]
)
def test_urlopen_knows_a_body_that_was_cut(data: bytes, options: dict[str, Any]) -> None:
    member = len(data) // 20 // 512 * 512
    cut = 2 * member
    body = data[:cut] + bytes(1024) + data[cut:] if "concat" in options else data
    length = cut + 1024 if "concat" in options else 1024 * 3
    with (
        stand_in(lambda _: Answer(200, {}, body, cut=length)) as server,
        pytest.raises(shardfeed.Error) as caught,
    ):
        list(shardfeed.Stream(server.url(), opener=urllib.request.urlopen, **options))
    assert caught.value.code_name == "TRUNCATED"


def test_a_long_message_has_no_half_of_a_secret() -> None:
    def opener(url: str) -> Any:
        raise OSError("x" * 440 + " at " + url)

    with pytest.raises(shardfeed.Error) as caught:
        shardfeed.Archive("db://store/a.tar?sig=hushhushhushhushhushhush", opener=opener)
    assert "hush" not in str(caught.value)


def test_a_password_that_the_url_has_encoded() -> None:
    def opener(url: str) -> Any:
        raise OSError("login as reader with p@ss/w0rd failed")

    with pytest.raises(shardfeed.Error) as caught:
        shardfeed.Archive("db://reader:p%40ss%2Fw0rd@store/a.tar", opener=opener)
    assert "w0rd" not in str(caught.value)


# ---- The method open of a file system -----------------------------------------------------------


def test_children_open_a_file_system_of_their_own(tmp_path: Path) -> None:
    """A stored ZIP of tars has one file, whose position parent and children would share."""
    with zipfile.ZipFile(tmp_path / "o.zip", "w", zipfile.ZIP_STORED) as archive:
        for shard in range(2):
            members = [
                (f"{n:04}.bin", struct.pack("<I", n) * 50_000)
                for n in range(shard * 40, shard * 40 + 40)
            ]
            path = write_tar(tmp_path / f"s-{shard}.tar", members)
            archive.write(path, path.name)
    system = fsspec.filesystem("zip", fo=str(tmp_path / "o.zip"))
    stream = shardfeed.Stream("zip://s-{0..1}.tar", opener=system.open, threads=1)
    assert len(list(stream)) == 80
    children = []
    for rank in range(2):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                own = shardfeed.Stream(
                    "zip://s-{0..1}.tar", opener=system.open, threads=1, world_size=2, rank=rank
                )
                good = [bytes(s["bin"]) == struct.pack("<I", int(s.key)) * 50_000 for s in own]
                status = 0 if good == [True] * 40 else 1
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]


def test_one_connection_of_ftp(ftp: str, memory: Any) -> None:
    """Files are opened and read one at a time."""
    host, port = ftp.split("@")[1].rstrip("/").split(":")
    system = fsspec.filesystem(
        "ftp",
        host=host,
        port=int(port),
        username="reader",
        password="sesame",
        skip_instance_cache=True,
    )
    stream = shardfeed.Stream("ftp://x/s-{000..003}.tar", opener=system.open, threads=3)
    assert sorted(numbers(stream)) == list(range(200))
