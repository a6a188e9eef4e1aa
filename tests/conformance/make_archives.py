"""Writes the archives of the conformance suite into a folder: the same bytes every time.

    python3 make_archives.py FOLDER

Only the standard library is used. Small files: all of them together are about a megabyte. Broken
ones are good ones with bytes changed or cut off, so that what they hold before the fault is known.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path

Members = Iterable[tuple[str, bytes]]

BLOCK = 512
END = bytes(2 * BLOCK)  # of a tar


def noise(seed: int, size: int) -> bytes:
    """Bytes that do not compress."""
    return random.Random(seed).randbytes(size)


# ---- tar ----------------------------------------------------------------------------------------


def header(name: str, size: int = 0, kind: bytes = b"0", link: str = "") -> bytes:
    """One ustar header."""
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, link
    return info.tobuf(tarfile.USTAR_FORMAT, "utf-8", "surrogateescape")


def member(name: str, data: bytes, kind: bytes = b"0") -> bytes:
    """A header and its data, filled up to whole blocks."""
    return header(name, len(data), kind) + data + bytes(-len(data) % BLOCK)


def tar(members: Members) -> bytes:
    """A ustar file with two zero blocks at its end and nothing after them."""
    return b"".join(member(name, data) for name, data in members) + END


def tarfile_tar(members: Members, kind: int) -> bytes:
    """A tar as tarfile writes it: for long names and names of all characters."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind, errors="surrogateescape") as file:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return out.getvalue()


def owned_tar() -> bytes:
    """Members with everything that a pax header says of owner, time and link."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as file:
        for number, kind in enumerate((tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE)):
            info = tarfile.TarInfo(f"{number}.txt")
            info.type = kind
            info.mode, info.uid, info.gid = 0o4751, number << 40, number << 30
            info.mtime = number - 0.25
            info.uname, info.gname = "user", "grüppe" * number
            info.linkname = "" if kind == tarfile.REGTYPE else "far/" * 40 * number
            file.addfile(info)
    return out.getvalue()


def numbered(first: int, count: int, seed: int = 0) -> list[tuple[str, bytes]]:
    """Members of `count` samples with the fields txt, cls and bin."""
    members = []
    for number in range(first, first + count):
        members.append((f"{number:05d}.txt", f"sample {number}\n".encode()))
        members.append((f"{number:05d}.cls", str(number % 10).encode()))
        members.append((f"{number:05d}.bin", noise(seed + number, number * 37 % 700)))
    return members


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def gzip_stored(data: bytes) -> bytes:
    """A gzip file of one block that is not compressed: where it is cut is known to the byte."""
    sizes = struct.pack("<HH", len(data), len(data) ^ 0xFFFF)
    trailer = struct.pack("<II", zlib.crc32(data), len(data))
    return b"\x1f\x8b\x08" + bytes(6) + b"\xff\x01" + sizes + data + trailer


def zstd(data: bytes) -> bytes:
    """A zstd frame of raw blocks."""
    out = struct.pack("<IBI", 0xFD2FB528, 0xA0, len(data))
    pieces = [data[start : start + 100_000] for start in range(0, len(data), 100_000)]
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        out += (len(piece) << 3 | last).to_bytes(3, "little") + piece
    return out


def zstd_wide(data: bytes) -> bytes:
    """A zstd frame that asks for a history of 256 MiB, of one raw block."""
    return (
        struct.pack("<IBB", 0xFD2FB528, 0, 18 << 3)
        + (len(data) << 3 | 1).to_bytes(3, "little")
        + data
    )


# Left, top, width, height in images of 10 x 8 pixels. The last one lies beside its image.
BOXES = [[[1, 1, 6, 4]], [], [[0, 0, 2, 2], [3, 3, 2.5, 2]], [[11, 0, 2, 2]]]


def good_tars() -> dict[str, bytes]:
    plain = tar(numbered(0, 6))
    files = {
        "plain.tar": plain,
        "ustar.tar": tarfile_tar(
            [(f"{'d' * 60}/{'e' * 80}/{key}.txt", key.encode()) for key in "abc"],
            tarfile.USTAR_FORMAT,
        ),
        "gnu.tar": tarfile_tar(
            [(f"{'long/' * 60}{key}.txt", noise(len(key), 700)) for key in ("a", "bb", "ccc")],
            tarfile.GNU_FORMAT,
        ),
        "pax.tar": tarfile_tar(
            [
                (f"{'länge/' * 60}{key}.{field}", f"{key} {field}".encode())
                for key in ("ä", "日本", "🦈")
                for field in ("txt", "ÜBER", "json")
            ],
            tarfile.PAX_FORMAT,
        ),
        "owners.tar": owned_tar(),
        "bytes.tar": tarfile_tar(
            [("\udcff\udcfe/a.txt", b"1"), ("\udcff\udcfe/a.\udc80", b"2"), ("b\n\t.x", b"3")],
            tarfile.GNU_FORMAT,
        ),
        "names.tar": tar(
            [
                ("a.txt", b"1"),
                ("a.seg.PNG", b"2"),
                ("dir/a.txt", b"3"),
                ("a.b/c.d/e.f", b"4"),
                ("./a.txt", b"5"),
                ("b.", b"6"),
                ("b..txt", b"7"),
                ("K.JPG", b"8"),
                ("k.jpg", b"9"),
                ("__meta__.json", b"10"),
                ("__x.txt", b"11"),
                ("sub/__m__/x.txt", b"12"),
                ("../up.txt", b"13"),
                ("/root.txt", b"14"),
            ]
        ),
        "passed_over.tar": b"".join(
            [
                member("a.txt", b"1"),
                header("folder/", kind=b"5"),
                member("README", b"no dot"),
                member(".hidden.txt", b"hidden"),
                member("dir/.hidden", b"hidden"),
                member("__index__", b"meta"),
                member("__m__/x.txt", b"meta"),
                member("a.cls", b"2"),
                header("link.txt", kind=b"2", link="a.txt"),
                header("hard.txt", kind=b"1", link="a.txt"),
                header("fifo.txt", kind=b"6"),
                member("b.txt", b"3"),
                END,
            ]
        ),
        "empty_members.tar": tar([("a.txt", b""), ("a.cls", b"1"), ("b.txt", b""), ("c.x", b"")]),
        "fields.tar": tar(
            (f"{key}.{field}", f"{key}{field}".encode())
            for key, fields in (("a", "xyz"), ("b", "zx"), ("c", "y"), ("d", "xyzw"))
            for field in fields
        ),
        "keys.tar": tar(
            (f"{folder}/{number}.txt", f"{folder}{number}".encode())
            for folder in ("train", "val")
            for number in range(6)
        ),
        "large.tar": tar(
            [("a.bin", noise(1, 150_000)), ("a.cls", b"1"), ("b.bin", noise(2, 70_001))]
        ),
        "other_field_order.tar": tar([("a.x", b"1"), ("a.y", b"2"), ("b.y", b"3"), ("b.x", b"4")]),
        "plain.tar.gz": gzipped(plain),
        "plain.tar.bz2": bz2.compress(plain),
        "plain.tar.xz": lzma.compress(plain),
        "plain.tar.zst": zstd(plain),
        "two_members.tar.gz": gzipped(plain[:3000]) + gzipped(plain[3000:]),
        "gzip_without_suffix.tar": gzipped(plain),
        "v7.tar": v7([("a.txt", b"old"), ("b.txt", b"style")]),
        "contiguous.tar": member("a.txt", b"seven", b"7") + END,
        "padded_end.tar": plain + bytes(8 * BLOCK),
    }
    for number, samples in enumerate((5, 9, 12, 7, 8, 10, 6, 11)):
        files[f"set-{number:03d}.tar"] = tar(numbered(100 * number, samples, seed=number))
    return files


def v7(members: Members) -> bytes:
    """A tar as it was before ustar: no magic."""
    out = b""
    for name, data in members:
        fields = bytearray(header(name, len(data), b"\0"))
        fields[257:] = bytes(BLOCK - 257)
        out += checksummed(fields) + data + bytes(-len(data) % BLOCK)
    return out + END


def checksummed(fields: bytearray) -> bytes:
    """A header with its checksum made anew."""
    fields[148:156] = b" " * 8
    fields[148:156] = b"%06o\0 " % sum(fields)
    return bytes(fields)


def sparse(name: str) -> bytes:
    """An old GNU sparse member: 4 bytes at its start, 1,000 bytes in all."""
    info = tarfile.TarInfo(name)
    info.size, info.type = 4, b"S"
    fields = bytearray(info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape"))
    fields[386:410] = b"%011o\0%011o\0" % (0, 4)
    fields[483:495] = b"%011o\0" % 1000
    return checksummed(fields) + b"data" + bytes(BLOCK - 4)


def changed(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


# The tar that most broken ones are made of: four samples with the fields txt and bin, 2,560 bytes
# each: a.txt at 0, a.bin at 1024 (its data ends at 2436), b.txt at 2560 and so on.
SOUND = [
    (f"{key}.{field}", data)
    for key in "abcd"
    for field, data in (("txt", key.encode() * 9), ("bin", noise(ord(key), 900)))
]


def broken_tars() -> dict[str, bytes]:
    sound = tar(SOUND)
    packed = gzip_stored(sound)
    size = bytearray(sound[2560:3072])
    size[124:136] = b"0000000000z\0"
    return {
        "sound.tar": sound,
        "zero_bytes.tar": b"",
        "no_samples.tar": END,
        "not_a_tar.tar": noise(3, 2000),
        "cut_in_header.tar": sound[: 2560 + 100],
        "cut_in_data.tar": sound[: 3584 + 512 + 200],
        "cut_in_padding.tar": sound[: 3584 + 512 + 900 + 10],
        "cut_between_members.tar": sound[:3584],
        "no_end_marker.tar": sound[: -2 * BLOCK],
        "half_end_marker.tar": sound[:-BLOCK],
        "bad_checksum.tar": changed(sound, 2560 + 4, b"?"),
        "bad_size.tar": changed(sound, 2560, checksummed(size)),
        "same_field.tar": tar([("a.txt", b"1"), ("b.txt", b"2"), ("b.TXT", b"3"), ("c.txt", b"4")]),
        "same_key.tar": tar([("a.txt", b"1"), ("b.txt", b"2"), ("a.cls", b"3"), ("c.txt", b"4")]),
        "junk_at_end.tar": sound + b"junk" * 128,
        "concatenated.tar": tar([("a.txt", b"1")]) + tar([("b.txt", b"2")]),
        "sparse.tar": member("a.txt", b"1") + sparse("b.txt") + member("c.txt", b"3") + END,
        "sparse_without_magic.tar": member("a.txt", b"1") + member("b.txt", b"2", b"S") + END,
        "unknown_type.tar": member("a.txt", b"1") + member("b.txt", b"2", b"Z") + END,
        "cut.tar.gz": packed[:5000],
        "bad_crc.tar.gz": changed(packed, len(packed) - 8, bytes([packed[-8] ^ 1])),
        "junk_at_end.tar.gz": packed + b"junk",
        "cut.tar.zst": zstd(sound)[:5000],
        "wide_window.tar.zst": zstd_wide(sound),
        "bad_pax.tar": member("a.txt", b"1") + member("h", b"999 path=b.txt\n", b"x")
        + member("b.txt", b"2") + END,
        "nul_in_pax_name.tar": member("a.txt", b"1") + member("h", b"15 path=b\0.txt\n", b"x")
        + member("b.txt", b"2") + END,
    }  # fmt: skip


# ---- ZIP ----------------------------------------------------------------------------------------

TIME = (1980, 1, 1, 0, 0, 0)


class OneWay(io.RawIOBase):
    """A file that cannot seek, which makes zipfile write sizes after the data."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.data += data
        return len(data)


def zip_of(
    members: Members,
    method: int = zipfile.ZIP_STORED,
    *,
    comment: bytes = b"",
    zip64: bool = False,
    one_way: bool = False,
) -> bytes:
    out = OneWay() if one_way else io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, data in members:
            info = zipfile.ZipInfo(name, TIME)
            info.compress_type = zipfile.ZIP_STORED if name.endswith("/") else method
            with file.open(info, "w", force_zip64=zip64) as entry:
                entry.write(data)
        file.comment = comment
    return bytes(out.data) if isinstance(out, OneWay) else out.getvalue()


def directory_of(data: bytes) -> int:
    """Where the central directory starts."""
    return int.from_bytes(data[data.rindex(b"PK\5\6") + 16 :][:4], "little")


# As SOUND, for ZIP files. Stored, a.txt is at 0, b.txt at 35 + 20, and so on.
ZIP_SOUND = [(f"{key}.txt", key.encode() * 20) for key in "abcd"]


def broken_zips() -> dict[str, bytes]:
    sound = zip_of(ZIP_SOUND)
    directory = directory_of(sound)
    second = directory + 46 + 5  # entry of b.txt in the directory
    b_data = 2 * 35 + 20
    flags = changed(changed(sound, 55 + 6, b"\1"), second + 8, b"\1")
    method = changed(changed(sound, 55 + 8, b"\x2a"), second + 10, b"\x2a")
    return {
        "sound.zip": sound,
        "empty.zip": zip_of([]),
        "bad_crc.zip": changed(sound, b_data + 3, b"?"),
        "bad_signature.zip": changed(sound, second, b"PX"),
        "bad_local_header.zip": changed(sound, 55, b"PX"),
        "other_local_name.zip": changed(sound, 55 + 30, b"z.txt"),
        "cut.zip": sound[:-10],
        "cut_in_data.zip": sound[:100],
        "encrypted.zip": flags,
        "unknown_method.zip": method,
        "same_name.zip": zip_of_pairs([("a.txt", b"1"), ("b.txt", b"2"), ("a.txt", b"3")]),
        "prefix.zip": b"#!/bin/sh\nexit\n" + sound,
        "junk_at_end.zip": sound + b"junk",
        "overlap.zip": overlapping_zip(),
        "wrong_count.zip": changed(sound, len(sound) - 22 + 8, struct.pack("<HH", 3, 3)),
    }


def inner_entry() -> tuple[bytes, bytes]:
    """A stored entry b.txt, and what a directory has of it."""
    inner = zip_of([("b.txt", b"2")])
    start = directory_of(inner)
    return inner[:start], inner[start:-22]


def overlapping_zip() -> bytes:
    """a.txt, whose data is the entry b.txt, which the directory has too."""
    entry, inner_directory = inner_entry()
    outer = zip_of([("a.txt", entry)])
    start = directory_of(outer)
    directory = outer[start:-22] + changed(inner_directory, 42, struct.pack("<I", 35))
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 2, 2, len(directory), start, 0)
    return outer[:start] + directory + end


def zip_of_pairs(pairs: list[tuple[str, bytes]]) -> bytes:
    """As zip_of, but names may come twice: they are written as others of the same length first."""
    data = zip_of(
        [(chr(65 + number) + name[1:], body) for number, (name, body) in enumerate(pairs)]
    )
    for number, (name, _) in enumerate(pairs):
        data = data.replace((chr(65 + number) + name[1:]).encode(), name.encode())
    return data


def good_zips() -> dict[str, bytes]:
    members = numbered(0, 6)
    text = [(f"{key}.txt", f"{key} and on and on ".encode() * 40) for key in "abc"]
    files = {
        "stored.zip": zip_of(members),
        "deflated.zip": zip_of(text, zipfile.ZIP_DEFLATED),
        "bzip2.zip": zip_of(text, zipfile.ZIP_BZIP2),
        "lzma.zip": zip_of(text, zipfile.ZIP_LZMA),
        "zip64.zip": zip_of(text, zip64=True),
        "sizes_after_data.zip": zip_of(text, zipfile.ZIP_DEFLATED, one_way=True),
        "comment.zip": zip_of(text, comment=b"a comment"),
        "names.zip": zip_of(
            [
                ("folder/", b""),
                ("folder/ä.txt", b"1"),
                ("folder/ä.JSON", b"2"),
                ("README", b"3"),
                ("../up.txt", b"4"),
                ("日本.txt", b"5"),
                ("empty.txt", b""),
            ]
        ),
    }
    for number, samples in enumerate((7, 5, 9, 4)):
        files[f"part-{number}.zip"] = zip_of(numbered(100 * number, samples, seed=number))
    return files


# ---- Fields of batches --------------------------------------------------------------------------


def wav(frames: int, channels: int, seed: int) -> bytes:
    """A WAV of noise, in 16 bits."""
    data = noise(seed, frames * channels * 2)
    form = struct.pack("<HHIIHH", 1, channels, 8000, 16000 * channels, 2 * channels, 16)
    chunks = b"".join(
        name + struct.pack("<I", len(body)) + body
        for name, body in ((b"fmt ", form), (b"data", data))
    )
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def png(width: int, height: int, kind: int, seed: int, depth: int = 8) -> bytes:
    """A PNG of noise. kind: 0 grey, 2 RGB, 4 grey and alpha, 6 RGB and alpha."""
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[kind]
    row = width * channels * depth // 8
    pixels = noise(seed, row * height)
    lines = b"".join(b"\0" + pixels[start : start + row] for start in range(0, len(pixels), row))

    def chunk(name: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc)

    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )


def npy(dtype: str, shape: tuple[int, ...], data: bytes, fortran: bool = False) -> bytes:
    """An .npy file of these bytes."""
    text = f"{{'descr': '{dtype}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + data


def ten(*arrays: tuple[str, tuple[int, ...], bytes]) -> bytes:
    """A file in TenBin: of each array the dtype, the shape and the elements."""
    chunks = []
    for dtype, shape, data in arrays:
        name = dtype.encode().ljust(8, b"\0") + bytes(8)
        chunks += [name + struct.pack(f"<{1 + len(shape)}q", len(shape), *shape), data]
    return b"".join(
        b"~TenBin~" + struct.pack("<q", len(chunk)) + chunk + bytes(-len(chunk) % 64)
        for chunk in chunks
    )


def safetensors(arrays: dict[str, tuple[str, list[int], bytes]], hole: int = 0) -> bytes:
    """A file of safetensors. hole: so many bytes before each tensor are of none."""
    header: dict[str, object] = {"__metadata__": {"of": "noise"}}
    elements = b""
    for name, (dtype, shape, data) in arrays.items():
        elements += bytes(hole)
        places = [len(elements), len(elements) + len(data)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": places}
        elements += data
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + elements


DTYPES = {
    "|b1": 1, "|i1": 1, "<i2": 2, "<i4": 4, "<i8": 8, "|u1": 1, "<u2": 2, "<u4": 4, "<u8": 8,
    "<f2": 2, "<f4": 4, "<f8": 8, "<c8": 8, "<c16": 16,
}  # fmt: skip


def rows(count: int, fields: dict[str, object]) -> list[tuple[str, bytes]]:
    """Members of `count` samples; a field is a function from the number to bytes, or None."""
    return [
        (f"{number:03d}.{field}", data)
        for number in range(count)
        for field, make in fields.items()
        if (data := make(number)) is not None  # type: ignore[operator]
    ]


def numbers(dtype: str, count: int, seed: int) -> bytes:
    """`count` elements of a dtype: noise, but booleans are 0 and 1 and floats are small."""
    if dtype == "|b1":
        return bytes(byte & 1 for byte in noise(seed, count))
    if dtype[1] == "f":
        code = {"<f2": "e", "<f4": "f", "<f8": "d"}[dtype]
        return struct.pack(f"<{count}{code}", *[(seed + n) / 4 for n in range(count)])
    if dtype[1] == "c":
        code = {"<c8": "f", "<c16": "d"}[dtype]
        return struct.pack(f"<{2 * count}{code}", *[(seed - n) / 8 for n in range(2 * count)])
    return noise(seed, count * DTYPES[dtype])


def ragged_shape(number: int) -> tuple[int, int]:
    return number % 3 + 1, 2 + number % 2


def ragged_npy(number: int) -> bytes:
    height, width = ragged_shape(number)
    return npy("<i2", (height, width), numbers("<i2", height * width, number))


def token_count(number: int) -> int:
    return [5, 0, 12, 1, 3, 9, 4][number]


def second_png_damaged(number: int) -> bytes:
    sound = png(3, 2, 2, number)
    return changed(sound, 29, b"?") if number == 1 else sound


def batch_tars() -> dict[str, bytes]:
    words = ["", "one", "zwei", "trois ♥", "четыре", "five"]
    return {
        "columns.tar": tar(
            rows(
                6,
                {
                    "npy": lambda n: npy("<f4", (2, 3), numbers("<f4", 6, n)),
                    "cls": lambda n: b"%d" % (n * n - 5),
                    "score.float": lambda n: b"%d.25" % n,
                    "txt": lambda n: words[n].encode(),
                    "json": lambda n: json.dumps({"n": n}).encode(),
                    "mp": lambda n: bytes([0x81, 0xA1, 0x6E, n]),
                    "bin": lambda n: noise(n, 10 * n),
                },
            )
        ),
        "dtypes.tar": tar(
            rows(
                3,
                {
                    f"{dtype[1:]}.npy": lambda n, dtype=dtype: npy(
                        dtype, (2, 2), numbers(dtype, 4, n)
                    )
                    for dtype in DTYPES
                },
            )
        ),
        "npy_layouts.tar": tar(
            rows(
                2,
                {
                    "fortran.npy": lambda n: npy("<i4", (2, 3), numbers("<i4", 6, n), True),
                    "big.npy": lambda n: npy(">u2", (3,), noise(n, 6)),
                    "scalar.npy": lambda n: npy("<i8", (), numbers("<i8", 1, n)),
                    "none.npy": lambda n: npy("<f8", (0, 4), b""),
                },
            )
        ),
        "ragged.tar": tar(
            rows(
                5,
                {
                    "npy": ragged_npy,
                    "cls": lambda n: b"%d" % n,
                },
            )
        ),
        "tokens.tar": tar(
            rows(
                7,
                {
                    "npy": lambda n: npy(
                        "<i4", (token_count(n),), numbers("<i4", token_count(n), n)
                    ),
                    "mask.npy": lambda n: npy(
                        "|u1", (token_count(n),), bytes([n]) * token_count(n)
                    ),
                    "json": lambda n: json.dumps(
                        {"n": [n], "ids": [7 * n - place for place in range(token_count(n))]}
                    ).encode(),
                },
            )
        ),
        "missing.tar": tar(
            rows(
                6,
                {
                    "cls": lambda n: b"%d" % n,
                    "npy": lambda n: None if n % 3 == 1 else npy("<i4", (2,), numbers("<i4", 2, n)),
                    "txt": lambda n: None if n == 4 else b"text %d" % n,
                },
            )
        ),
        "bad_number.tar": tar(
            rows(5, {"cls": lambda n: b"three" if n == 3 else b" %d\n" % n, "x": lambda n: b"x"})
        ),
        "bad_npy.tar": tar(
            rows(3, {"npy": lambda n: npy("<i4", (9 if n == 2 else 2,), numbers("<i4", 2, n))})
        ),
        "object_npy.tar": tar(rows(2, {"npy": lambda n: npy("|O", (1,), bytes(8))})),
        "bad_text.tar": tar(rows(3, {"txt": lambda n: b"\xff" if n == 1 else b"ok"})),
        "images.tar": tar(
            rows(4, {"png": lambda n: png(5, 4, 2, n), "cls": lambda n: b"%d" % n})
        ),
        "sounds.tar": tar(rows(3, {"wav": lambda n: wav(6, 2, n)})),
        "bad_wav.tar": tar(rows(2, {"wav": lambda n: wav(6, 2, n)[: -n or None]})),
        "tensors.tar": tar(
            rows(
                3,
                {
                    "0.ten": lambda n: ten(
                        ("u1", (), noise(n, 1)), ("f4", (2, 3), noise(n + 10, 24)),
                        ("u4", (n, 2), noise(n + 20, 8 * n)),
                    ),
                    "one.ten": lambda n: ten(("i8", (3,), noise(n + 30, 24))),
                    "m.safetensors": lambda n: safetensors(
                        {"enc/w.0": ("BF16", [2, 2], noise(n, 8)), "B": ("I16", [], noise(n, 2))}
                    ),
                    "one.safetensors": lambda n: safetensors(
                        {"any": ("F64", [n], noise(n + 40, 8 * n))}
                    ),
                },
            )
        ),
        "bad_ten.tar": tar(
            rows(2, {"x": lambda n: ten(("u1", (5,), noise(n, 5)))[: -n or None]})
        ),
        "bad_safetensors.tar": tar(
            rows(2, {"x": lambda n: safetensors({"a": ("U8", [5], noise(n, 5))}, hole=n)})
        ),
        "grey.tar": tar(rows(2, {"png": lambda n: png(3, 2, 0, n)})),
        "alpha.tar": tar(rows(2, {"png": lambda n: png(3, 2, 6, n)})),
        "deep.tar": tar(rows(2, {"png": lambda n: png(3, 2, 2, n, 16)})),
        "sizes.tar": tar(rows(4, {"png": lambda n: png(6 + n, 9 - n, 2, n)})),
        "boxes.tar": tar(
            rows(
                4,
                {
                    "png": lambda n: png(10, 8, 0, n),
                    "json": lambda n: json.dumps({"a": [{"b": box} for box in BOXES[n]]}).encode(),
                },
            )
        ),
        "bad_png.tar": tar(
            rows(3, {"png": second_png_damaged})
        ),
        "alternatives.tar": tar(
            rows(
                4,
                {
                    "a.cls": lambda n: b"%d" % n if n % 2 else None,
                    "b.cls": lambda n: None if n % 2 else b"%d" % n,
                },
            )
        ),
    }  # fmt: skip


# ---- Lists, an index ----------------------------------------------------------------------------


def other_files() -> dict[str, bytes]:
    return {
        "nested.txt": b"# a comment\n\n@other.txt\n",
        "program.txt": b"pipe:echo no\n",
        "only_comments.txt": b"# nothing\n\n",
        "v7.tar.sfidx": b"no index",
    }


def main() -> None:
    """Writes all files."""
    folder = Path(sys.argv[1])
    (folder / "a_folder").mkdir(parents=True, exist_ok=True)
    for make in (good_tars, broken_tars, good_zips, broken_zips, batch_tars, other_files):
        for name, data in make().items():
            path = folder / name
            # Left alone when it is there: a new time of change would make indexes stale.
            if not path.exists() or path.read_bytes() != data:
                path.write_bytes(data)


if __name__ == "__main__":
    main()
