"""Tar files around the fields of samples: to a stream, or to an object store."""

from __future__ import annotations

import tarfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from .._writer import Writer
from ._store_object import STORE_SCHEMES
from .gopen import gopen_schemes, gopen_store

if TYPE_CHECKING:
    from typing import IO

Members = list[tuple[str, Any]]

# What is collected before it is compressed or written. Larger members are handed on as they are.
_PIECE = 1 << 18
_BLOCK = tarfile.BLOCKSIZE
_ZEROS = bytes(_BLOCK)
_DIGITS = b"00000000000"


@dataclass(frozen=True)
class Owner:
    """What the headers of all members of a tar say. format: a constant of tarfile."""

    user: str
    group: str
    mode: int
    format: Any

    def header(self, name: str, size: int, mtime: float) -> bytes:
        """The header of a member, with what comes before it when the name is long."""
        member = tarfile.TarInfo(name)
        member.size = size
        member.mtime = mtime
        member.mode = self.mode
        member.uname = self.user
        member.gname = self.group
        return member.tobuf(self.format, "utf-8", "surrogateescape")


class _Headers:
    """Headers in ustar of members whose names fit; made of pieces, since only three fields and
    their sum differ from one member to the next.
    """

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        empty = owner.header("", 0, 0)
        self._plain = len(empty) == _BLOCK
        self._owners, self._rest = empty[100:124], empty[156:_BLOCK]
        # POSIX.1-1988, 10.1.1: the sum of all bytes, those of the sum itself as blanks.
        self._sum = sum(self._owners) + sum(self._rest) + 8 * ord(" ")
        self._time: float | None = None
        self._time_digits, self._time_sum = _DIGITS, sum(_DIGITS)

    def of(self, name: str, size: int, mtime: float) -> bytes:
        if mtime != self._time:
            self._time = mtime
            whole = mtime == int(mtime) and 0 <= mtime < 8**11
            self._time_digits = b"%011o" % int(mtime) if whole else b""
            self._time_sum = sum(self._time_digits)
        # The fields have room for 100 bytes and for 11 octal digits.
        if not (name.isascii() and len(name) <= 100 and self._plain) or size >= 8**11:
            return self._owner.header(name, size, mtime if mtime != int(mtime) else int(mtime))
        if not self._time_digits:
            return self._owner.header(name, size, mtime)
        data, digits = name.encode("ascii"), b"%011o" % size
        total = self._sum + self._time_sum + sum(data) + sum(digits)
        return b"%b%b%b\0%b\0%06o\0 %b" % (
            data.ljust(100, b"\0"),
            self._owners,
            digits,
            self._time_digits,
            total,
            self._rest,
        )


class _Nothing:
    """No compression."""

    @staticmethod
    def compress(data: bytes) -> bytes:
        return data

    @staticmethod
    def flush() -> bytes:
        return b""


def _compressor(tarmode: str) -> Any:
    word = tarmode.partition("|")[2]
    if word == "gz":
        import zlib

        return zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    if word == "bz2":
        import bz2

        return bz2.BZ2Compressor(9)
    if word == "xz":
        import lzma

        return lzma.LZMACompressor()
    return _Nothing()


class TarStream:
    """A tar file that is written to a binary stream, which stays open."""

    def __init__(self, fileobj: IO[bytes], tarmode: str, owner: Owner) -> None:
        self.fileobj = fileobj
        self.closed = False
        self._owner = owner
        self._headers = _Headers(owner)
        self._compressor = _compressor(tarmode)
        self._pieces: list[bytes] = []
        self._collected = 0
        self._size = 0  # of the tar so far

    def add(self, key: str, members: Members, mtime: float | None) -> int:
        """Writes the fields of a sample, and returns how many bytes they have."""
        if self.closed:
            raise ValueError("the TarWriter is closed; help: make another one")
        if mtime is None:
            mtime = int(time.time())
        make, total = self._headers.of, 0
        pieces: list[bytes] = []
        for name, value in members:
            data = value if type(value) is bytes else bytes(value)
            size = len(data)
            pieces += (make(f"{key}.{name}", size, mtime), data, _ZEROS[: -size % _BLOCK])
            total += size
        self._extend(pieces)
        return total

    def addfile(self, tarinfo: tarfile.TarInfo, fileobj: IO[bytes] | None = None) -> None:
        """Writes a member with a header of one's own, as tarfile.TarFile.addfile does."""
        header = tarinfo.tobuf(self._owner.format, "utf-8", "surrogateescape")
        data = fileobj.read(tarinfo.size) if fileobj is not None else b""
        if fileobj is not None and len(data) != tarinfo.size:
            raise ValueError(
                f"{tarinfo.name}: {tarinfo.size} bytes expected, got {len(data)}; help: "
                "tarinfo.size is what the file has"
            )
        self._extend([header, data, _ZEROS[: -len(data) % _BLOCK]])

    def flush(self) -> None:
        """Hands what was collected to the stream. A compressor keeps what it still needs."""
        pieces, self._pieces, self._collected = self._pieces, [], 0
        self._put(b"".join(pieces))

    def close(self) -> None:
        """Writes the end of the archive."""
        if self.closed:
            return
        self.closed = True
        end = 2 * _BLOCK
        self._extend([bytes(end + -(self._size + end) % tarfile.RECORDSIZE)])
        self.flush()
        _write_all(self.fileobj, self._compressor.flush())

    def _extend(self, pieces: list[bytes]) -> None:
        size = sum(map(len, pieces))
        self._size += size
        if size >= _PIECE:
            self.flush()
            for piece in pieces:
                self._put(piece)
            return
        self._pieces += pieces
        self._collected += size
        if self._collected >= _PIECE:
            self.flush()

    def _put(self, data: bytes) -> None:
        _write_all(self.fileobj, self._compressor.compress(data))


def _write_all(fileobj: IO[bytes], data: bytes) -> None:
    """Writes all of it: a file without a buffer may take a part."""
    view = memoryview(data)
    while view:
        count = fileobj.write(view)
        if not isinstance(count, int) or count >= len(view):
            return  # some streams return nothing
        view = view[count:]


def is_store(url: str) -> bool:
    """Whether the library itself writes to this URL."""
    scheme = urlparse(url).scheme
    return scheme in STORE_SCHEMES and gopen_schemes.get(scheme) is gopen_store


class StoreTar:
    """A tar file that the library uploads. It has the headers of shardfeed.Writer."""

    def __init__(self, url: str, tarmode: str) -> None:
        if tarmode != "w|":
            raise ValueError(
                f"{url}: compressed tars of one stream are not uploaded; help: write .tar, or "
                "'pipe:gzip | COMMAND', or use shardfeed.Writer"
            )
        options: dict[str, Any] = {"compression": "none", "format": "tar", "overwrite": True}
        allowed: dict[str, Any] = {"unsafe_names": "allow", "duplicate_keys": "accept"}
        pattern = url.replace("%", "%%")
        self._writer = Writer(pattern, encoder=False, **options, **allowed)
        self.closed = False

    def add(self, key: str, members: Members, mtime: float | None) -> int:
        """Writes the fields of a sample, and returns how many bytes they have."""
        self._writer._write_fields(key, members)
        return sum(memoryview(value).nbytes for _, value in members)

    def flush(self) -> None:
        """Does nothing: a store has an object when it is whole."""

    def close(self) -> None:
        """Publishes the object."""
        if not self.closed:
            self.closed = True
            self._writer.finish()


__all__ = ["Owner", "StoreTar", "TarStream", "is_store"]
