"""What archives and sequences of members say about one member."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from ._native import ffi, lib

if TYPE_CHECKING:
    from ._native import _CData

NOT_KNOWN = 0xFFFF_FFFF_FFFF_FFFF

_KINDS = {
    lib.SHF_KIND_FILE: "file",
    lib.SHF_KIND_DIRECTORY: "directory",
    lib.SHF_KIND_HARD_LINK: "hard link",
    lib.SHF_KIND_SYMBOLIC_LINK: "symbolic link",
    lib.SHF_KIND_SPECIAL: "special",
    lib.SHF_KIND_SPARSE: "sparse",
    lib.SHF_KIND_MULTI_VOLUME: "multi-volume",
}


def text_of(name: bytes) -> str:
    """A name as str; what is not UTF-8 in it are surrogate escapes."""
    return name.decode("utf-8", "surrogateescape")


def bytes_of(out: _CData) -> bytes:
    """A copy of what a shf_bytes has."""
    copied: bytes = ffi.buffer(out[0].data, out[0].size)[:] if out[0].size else b""
    return copied


class MemberFacts(ABC):
    """What an archive says about a member."""

    __slots__ = ()

    @abstractmethod
    def _info(self, what: int) -> int:
        """A property SHF_MEMBER_*."""

    @property
    @abstractmethod
    def name_bytes(self) -> bytes:
        """The name exactly as the archive has it."""

    @property
    def name(self) -> str:
        """The name; what is not UTF-8 in it are surrogate escapes."""
        return text_of(self.name_bytes)

    @property
    def kind(self) -> str:
        """What it is: "file", "directory", "hard link", "symbolic link", ..."""
        return _KINDS.get(self._info(lib.SHF_MEMBER_KIND), "unknown")

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self._info(lib.SHF_MEMBER_KIND) == lib.SHF_KIND_FILE

    @property
    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return self._info(lib.SHF_MEMBER_KIND) == lib.SHF_KIND_DIRECTORY

    @property
    def size(self) -> int:
        """Bytes that read() gives."""
        return self._info(lib.SHF_MEMBER_SIZE)

    @property
    def stored_size(self) -> int:
        """Bytes in the archive."""
        return self._info(lib.SHF_MEMBER_STORED)

    @property
    def method(self) -> int:
        """How it is compressed, as ZIP counts: 0 stored, 8 deflate, 12 bzip2, 14 LZMA, ..."""
        return self._info(lib.SHF_MEMBER_METHOD)

    @property
    def crc32(self) -> int | None:
        """The checksum that the archive has; None in a tar."""
        crc = self._info(lib.SHF_MEMBER_CRC32)
        return crc if crc <= 0xFFFF_FFFF else None

    @property
    def offset(self) -> int:
        """Where its first header is in the (decompressed) archive."""
        return self._info(lib.SHF_MEMBER_OFFSET)
