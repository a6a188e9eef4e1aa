"""Cases of members in sequence: all of one file, with what their headers say."""

from __future__ import annotations

import calendar
import os
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from case import Case
from expected import Folder, text, u64, xxh64

UNKNOWN = (1 << 64) - 1
FILE, DIRECTORY, HARD_LINK, SYMBOLIC_LINK, SPECIAL = range(5)
TAR_KINDS = {
    tarfile.DIRTYPE: DIRECTORY,
    tarfile.LNKTYPE: HARD_LINK,
    tarfile.SYMTYPE: SYMBOLIC_LINK,
    tarfile.FIFOTYPE: SPECIAL,
    tarfile.CHRTYPE: SPECIAL,
}


class Said(NamedTuple):
    """A member as the suite hashes it."""

    name: bytes
    kind: int
    mode: int
    uid: int
    gid: int
    mtime: int
    link: bytes
    user: bytes
    group: bytes
    data: bytes

    def hashed(self) -> bytes:
        """The hashed bytes."""
        numbers = (self.kind, self.mode, self.uid, self.gid, self.mtime)
        texts = (self.link, self.user, self.group, self.data)
        return text(self.name) + b"".join(map(u64, numbers)) + b"".join(map(text, texts))


def tar_members(path: Path) -> list[Said]:
    """All members of a tar, as tarfile reads them."""
    with tarfile.open(path) as file:
        return [said_by_tarfile(file, info) for info in file]


def said_by_tarfile(file: tarfile.TarFile, info: tarfile.TarInfo) -> Said:
    """One member. tarfile takes the slash from the name of a folder."""
    kind = TAR_KINDS.get(info.type, FILE)
    return Said(
        os.fsencode(info.name) + (b"/" if kind == DIRECTORY else b""),
        kind,
        info.mode,
        info.uid,
        info.gid,
        int(info.mtime * 1_000_000_000),
        os.fsencode(info.linkname) if kind in (HARD_LINK, SYMBOLIC_LINK) else b"",
        os.fsencode(info.uname),
        os.fsencode(info.gname),
        file.extractfile(info).read() if kind == FILE else b"",  # type: ignore[union-attr]
    )


def zip_members(path: Path) -> list[Said]:
    """All entries of a ZIP file in the order in which they lie in it, as zipfile reads them."""
    with zipfile.ZipFile(path) as file:
        infos = sorted(file.infolist(), key=lambda info: info.header_offset)
        return [said_by_zipfile(file, info) for info in infos]


def said_by_zipfile(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> Said:
    """One entry. A mode is that of Unix; times of DOS are taken for UTC."""
    mode = info.external_attr >> 16 if info.create_system == 3 else 0
    kind = SYMBOLIC_LINK if mode & 0o170000 == 0o120000 else FILE
    return Said(
        info.filename.encode(),
        DIRECTORY if info.is_dir() else kind,
        mode & 0o7777 if mode else UNKNOWN,
        UNKNOWN,
        UNKNOWN,
        calendar.timegm(info.date_time) * 1_000_000_000,
        b"",
        b"",
        b"",
        file.read(info),
    )


def members(
    name: str,
    about: str,
    url: str,
    said: Sequence[Said],
    options: Mapping[str, str] | None = None,
    *,
    error: tuple[str, int | None] | None = None,
) -> Case:
    """Members, then perhaps an error."""
    hashed = b"".join(one.hashed() for one in said)
    return Case(name, "members", about, [url], options or {}, len(said), xxh64(hashed), error)


def cases(archives: Folder) -> list[Case]:
    """All of them."""

    def tar(name: str) -> list[Said]:
        return tar_members(archives.path / name)

    def zipped(name: str) -> list[Said]:
        return zip_members(archives.path / name)

    sound = tar("sound.tar")
    return [
        members("members_tar", "all members of a tar", "plain.tar", tar("plain.tar")),
        members("members_gz", "a compressed tar", "plain.tar.gz", tar("plain.tar")),
        members("members_pipe", "the output of a program", "pipe:gzip -dc $FOLDER/plain.tar.gz",
                tar("plain.tar")),
        members("members_twice", "a name that is there twice", "same_field.tar",
                tar("same_field.tar")),
        members("members_all_kinds", "folders, links and devices", "passed_over.tar",
                tar("passed_over.tar")),
        members("members_empty", "members without bytes", "empty_members.tar",
                tar("empty_members.tar")),
        members("members_gnu", "GNU long names", "gnu.tar", tar("gnu.tar")),
        members("members_pax", "pax headers", "pax.tar", tar("pax.tar")),
        members("members_bytes", "names that are not UTF-8", "bytes.tar", tar("bytes.tar")),
        members("members_owners", "owners, times and links", "owners.tar", tar("owners.tar")),
        members("members_zip", "stored entries", "stored.zip", zipped("stored.zip")),
        members("members_zip_deflated", "deflated entries", "deflated.zip",
                zipped("deflated.zip")),
        members("members_zip_lzma", "entries by LZMA", "lzma.zip", zipped("lzma.zip")),
        members("members_zip_bzip2", "entries by bzip2", "bzip2.zip", zipped("bzip2.zip")),
        members("members_zip_late_sizes", "sizes behind the data", "sizes_after_data.zip",
                zipped("sizes_after_data.zip")),
        members("members_zip_pipe", "a ZIP file from a program", "pipe:cat $FOLDER/deflated.zip",
                zipped("deflated.zip")),
        members("members_cut", "cut in the data of a member", "cut_in_data.tar",
                before(sound, archives, 3584), error=("TRUNCATED", 3584)),
        members("members_bad_checksum", "a header whose checksum is wrong", "bad_checksum.tar",
                before(sound, archives, 2560), error=("FORMAT", 2560)),
        members("members_no_end_marker", "no end marker", "no_end_marker.tar", sound,
                error=("TRUNCATED", 10240)),
        members("members_no_end_marker_optional", "no end marker, end_marker=optional",
                "no_end_marker.tar", sound, {"end_marker": "optional"}),
        members("members_bad_crc", "data whose CRC is wrong", "bad_crc.zip",
                zipped("sound.zip")[:1], error=("INTEGRITY", 55)),
        members("members_sparse", "the data of a sparse member", "sparse.tar",
                tar_start(archives.path / "sparse.tar"), error=("UNSUPPORTED", 1024)),
        members("members_no_file", "a file that is not there", "no_such_file.tar", [],
                error=("IO", None)),
    ]  # fmt: skip


def before(said: Sequence[Said], archives: Folder, offset: int) -> list[Said]:
    """The members of the sound tar whose headers lie in front of `offset`."""
    with tarfile.open(archives.path / "sound.tar") as file:
        count = sum(info.offset < offset for info in file)
    return list(said[:count])


def tar_start(path: Path) -> list[Said]:
    """The first member of a tar."""
    with tarfile.open(path) as file:
        return [said_by_tarfile(file, file.next())]  # type: ignore[arg-type]
