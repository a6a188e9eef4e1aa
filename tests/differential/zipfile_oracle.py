"""The Python package against zipfile and Go's archive/zip, on random archives that zipfile writes.

    python tests/differential/zipfile_oracle.py [--archives N] [--damages N] [--seed N]

Every archive has members of all methods that zipfile knows, with data descriptors, ZIP64 fields,
comments, bytes before the first member, names that come twice. What shardfeed.Archive gives must be
what zipfile gives: the same names, sizes, checksums, offsets and bytes; and the same contents as Go
reads, where Go is installed. Then each archive is damaged: what can still be read must be what was
written under that name, and when nothing is wrong, all of it must be there. Prints the seed of the
first difference and ends with 1.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import shardfeed

HERE = Path(__file__).resolve().parent
METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
ALPHABETS = ["abcXYZ019", "a.b/c_d-e ", "äöüß€漢字🙂", "a\\:*?\"<>|\t'", "e\u0301\u200b\u202e"]


class Unseekable(io.BytesIO):
    """A file as a pipe is one: zipfile then writes sizes and checksums behind the data."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation

    def tell(self) -> int:
        raise io.UnsupportedOperation


@dataclass
class Written:
    """An archive, and what was put into it."""

    data: bytes
    members: list[tuple[str, bytes]]
    options: dict[str, str]


def random_name(rng: random.Random, number: int) -> str:
    letters = rng.choices(rng.choice(ALPHABETS), k=rng.choice([1, 5, 20, 300]))
    return "".join(letters) + str(number) + rng.choice(["", ".png", ".seg.png", "."])


def random_data(rng: random.Random) -> bytes:
    size = rng.choice([0, 1, 100, rng.randint(0, 5_000), rng.randint(0, 100_000)])
    kind = rng.randrange(4)
    if kind == 0:
        return rng.randbytes(size)
    if kind == 1:
        return rng.randbytes(1) * size
    if kind == 2:  # a ZIP file inside, with an end record of its own
        inner = io.BytesIO()
        with zipfile.ZipFile(inner, "w") as file:
            file.writestr("inner.txt", rng.randbytes(size % 1000))
        return inner.getvalue()
    return b" ".join(rng.choices([b"some", b"words", b"again", b"PK\x01\x02"], k=size // 5))


def random_info(rng: random.Random, name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (rng.randint(1980, 2107), 2, 28, 23, 59, 58))
    info.compress_type = rng.choice(METHODS)
    info.external_attr = rng.choice([0, 0o100644, 0o120777, 0o40755]) << 16
    if rng.random() < 0.2:
        info.comment = rng.randbytes(rng.randint(0, 50))
    if rng.random() < 0.2:
        info.extra = b"\x99\x99\x04\x00" + rng.randbytes(4)
    return info


def write_archive(rng: random.Random) -> Written:
    out = Unseekable() if rng.random() < 0.3 else io.BytesIO()
    members: list[tuple[str, bytes]] = []
    with zipfile.ZipFile(out, "w") as file, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Duplicate name")
        if rng.random() < 0.5:
            file.comment = rng.choice([b"PK and a comment", rng.randbytes(rng.randint(0, 300))])
        for number in range(rng.randint(1, 12)):
            name, data = random_name(rng, number), random_data(rng)
            if rng.random() < 0.1:
                name, data = name + "/", b""
            elif members and rng.random() < 0.1:
                name = rng.choice(members)[0]
                if name.endswith("/"):
                    data = b""
            info = random_info(rng, name)
            if name.endswith("/"):
                info.compress_type = zipfile.ZIP_STORED
            with file.open(info, "w", force_zip64=rng.random() < 0.3) as target:
                target.write(data)
            members.append((name, data))
    if rng.random() < 0.2:  # as in self-extracting files
        data = b"#!/bin/sh\n" * rng.randint(1, 100) + out.getvalue()
        # Go takes offsets for those of the whole file where a directory header lies at the one of
        # the end record: that of an archive inside, if the prefix has just that length.
        while data.startswith(b"PK\x01\x02", file.start_dir):
            data = b"\n" + data
        return Written(data, members, {"zip_prefix": "allow"})
    return Written(out.getvalue(), members, {})


# ---- Whole archives ------------------------------------------------------------------------------


def difference(path: Path, written: Written) -> str | None:
    """What shardfeed and zipfile do not see alike in a whole archive."""
    with zipfile.ZipFile(path) as theirs, shardfeed.Archive(path, **written.options) as ours:
        infos = theirs.infolist()
        if ours.names() != [info.filename for info in infos]:
            return "the names"
        if [(info.filename, theirs.read(info)) for info in infos] != written.members:
            return "zipfile from what was written"
        views = ours.read_many(range(len(ours)))
        for position, (member, info) in enumerate(zip(ours, infos)):
            data = written.members[position][1]
            if not data == member.read() == bytes(views[position]) == member.open().read():
                return f"the bytes of member {position}"
            listed = (member.size, member.stored_size, member.crc32, member.method, member.offset)
            if listed != (
                info.file_size,
                info.compress_size,
                info.CRC,
                info.compress_type,
                info.header_offset,
            ):
                return f"the properties of member {position}"
            if member.is_dir != info.is_dir():
                return f"the kind of member {position}"
        names = ours.names()
        for name in names:
            try:
                found = [ours.read(name)]
            except shardfeed.AmbiguousError:
                found = [data for other, data in written.members if other == name]
                if len(found) == 1:
                    return f"the count of {name!r}"
            if names.count(name) != len(found) or theirs.read(name) != found[-1]:
                return f"what {name!r} finds"
    if written.options:
        try:
            shardfeed.Archive(path).close()
        except shardfeed.FormatError:
            return None
        return "bytes before the archive, which were not noticed"
    return None


# ---- Damaged ones --------------------------------------------------------------------------------


def change_bytes(rng: random.Random, data: bytearray) -> None:
    for _ in range(rng.choice([1, 1, 2, 10])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def change_directory(rng: random.Random, data: bytearray) -> None:
    """A byte near the end, where directory and end record are."""
    at = len(data) - 1 - rng.randrange(min(len(data), 1_000))
    data[at] = rng.randrange(256)


def cut(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def leave_out(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice([1, 4, 46, 512])]


def put_in(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice([b"\0", b"PK\x05\x06", rng.randbytes(100)])


def copy_over(rng: random.Random, data: bytearray) -> None:
    """A block in the place of another, as a broken disk or copy has it."""
    size = rng.choice([4, 30, 512])
    source, target = (rng.randrange(len(data)) for _ in range(2))
    block = data[source : source + size]
    data[target : target + len(block)] = block


DAMAGES: list[Callable[[random.Random, bytearray], None]] = [
    change_bytes,
    change_directory,
    cut,
    leave_out,
    put_in,
    copy_over,
]


def wrong_in_damaged(data: bytes, written: Written) -> str | None:
    """What shardfeed gives of a damaged archive that was not written like that."""
    try:
        archive = shardfeed.Archive(data, **written.options)
    except shardfeed.Error:
        return None
    good: list[tuple[str, bytes]] = []
    for member in archive:
        try:
            good.append((member.name, member.read()))
        except shardfeed.Error:
            continue
        if good[-1] not in written.members:
            return f"{member!r} is not what was written"
    if len(good) == len(archive) and sorted(good) != sorted(written.members):
        return f"{len(good)} of {len(written.members)} members, and no error"
    return None


# ---- Go ------------------------------------------------------------------------------------------


def build_listing(folder: Path) -> Path | None:
    """The program that reads with Go, None without Go."""
    go = shutil.which("go")
    if go is None:
        return None
    program = folder / "zip_listing"
    subprocess.run(
        [go, "build", "-o", str(program), str(HERE / "zip_listing.go")],
        check=True,
        cwd=folder,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": ""},
    )
    return program


def difference_from_go(program: Path, archives: dict[str, Written]) -> str | None:
    """Which of these files Go reads otherwise than they were written."""
    done = subprocess.run([str(program), *archives], check=True, stdout=subprocess.PIPE)
    listed: dict[str, list[dict[str, object]]] = {path: [] for path in archives}
    for line in done.stdout.splitlines():
        entry = json.loads(line)
        listed[entry["file"]].append(entry)
    for path, written in archives.items():
        if len(listed[path]) != len(written.members):
            return f"{path}: Go lists {len(listed[path])} members"
        for entry, (name, data) in zip(listed[path], written.members):
            contents = (len(data), zlib.crc32(data)) if entry["known"] else (0, 0)
            if (entry["name"], entry["size"], entry["crc"]) != (name.encode().hex(), *contents):
                return f"{path}: Go reads {name!r} otherwise"
    return None


# ---- All of it -----------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--archives", type=int, default=150)
    parser.add_argument("--damages", type=int, default=30, help="of each archive (30)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seeds {arguments.seed} to {arguments.seed + arguments.archives - 1}")
    members = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        archives: dict[str, Written] = {}
        for seed in range(arguments.seed, arguments.seed + arguments.archives):
            rng = random.Random(seed)
            written = write_archive(rng)
            path = folder / f"{seed}.zip"
            path.write_bytes(written.data)
            archives[str(path)] = written
            members += len(written.members)
            found = difference(path, written)
            if found is not None:
                print(f"seed {seed}: shardfeed and zipfile differ: {found}")
                return 1
            for number in range(arguments.damages):
                data = bytearray(written.data)
                damage = rng.choice(DAMAGES)
                damage(rng, data)
                found = wrong_in_damaged(bytes(data), written)
                if found is not None and bytes(data) != written.data:
                    print(f"seed {seed}, {damage.__name__}, damage {number}: {found}")
                    return 1
        print(f"{members} members of {arguments.archives} archives are the same as in zipfile")
        print(f"{arguments.damages} damages of each gave nothing that was not written")
        program = build_listing(folder)
        if program is None:
            print("not compared with Go's archive/zip: go is not installed")
            return 0
        found = difference_from_go(program, archives)
        if found is not None:
            print(f"seeds from {arguments.seed}: {found}")
            return 1
        print("the same as in Go's archive/zip")
    return 0


if __name__ == "__main__":
    sys.exit(main())
