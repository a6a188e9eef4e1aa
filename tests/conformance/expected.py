"""What cases expect, worked out without the library: by tarfile, zipfile and README.md.

Samples are made by the grouping of WebDataset. Nothing here imports shardfeed.
"""

from __future__ import annotations

import os
import struct
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

Member = tuple[bytes, bytes]  # name and data


class Sample(NamedTuple):
    """A sample as the suite hashes it; the URL without the folder."""

    key: bytes
    url: bytes
    fields: list[Member]


# ---- XXH64 --------------------------------------------------------------------------------------

_MASK = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _rotated(value: int, count: int) -> int:
    return (value << count | value >> (64 - count)) & _MASK


def _round(state: int, lane: int) -> int:
    return _rotated((state + lane * _P2) & _MASK, 31) * _P1 & _MASK


def xxh64(data: bytes) -> str:
    """XXH64 with seed 0, as 16 hex digits."""
    size = len(data)
    done = size // 32 * 32
    if size >= 32:
        v1, v2, v3, v4 = (_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK
        for a, b, c, d in struct.iter_unpack("<4Q", data[:done]):
            v1, v2, v3, v4 = _round(v1, a), _round(v2, b), _round(v3, c), _round(v4, d)
        value = _rotated(v1, 1) + _rotated(v2, 7) + _rotated(v3, 12) + _rotated(v4, 18) & _MASK
        for lane in (v1, v2, v3, v4):
            value = ((value ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        value = _P5
    value = (value + size) & _MASK
    while size - done >= 8:
        (lane,) = struct.unpack_from("<Q", data, done)
        value = (_rotated(value ^ _round(0, lane), 27) * _P1 + _P4) & _MASK
        done += 8
    if size - done >= 4:
        (lane,) = struct.unpack_from("<I", data, done)
        value = (_rotated(value ^ lane * _P1 & _MASK, 23) * _P2 + _P3) & _MASK
        done += 4
    for byte in data[done:]:
        value = _rotated(value ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    value = (value ^ value >> 33) * _P2 & _MASK
    value = (value ^ value >> 29) * _P3 & _MASK
    return f"{value ^ value >> 32:016x}"


# ---- What is hashed -----------------------------------------------------------------------------


def u64(number: int) -> bytes:
    return struct.pack("<Q", number & _MASK)


def text(data: bytes) -> bytes:
    return u64(len(data)) + data


def sample_bytes(samples: Iterable[Sample]) -> bytes:
    out = []
    for sample in samples:
        out += [text(sample.key), text(sample.url), u64(len(sample.fields))]
        for name, data in sample.fields:
            out += [text(name), text(data)]
    return b"".join(out)


# ---- Members and samples ------------------------------------------------------------------------


def tar_members(path: Path) -> list[Member]:
    """The regular files of a tar, in order."""
    with tarfile.open(path) as file:
        return [
            (os.fsencode(info.name), file.extractfile(info).read())  # type: ignore[union-attr]
            for info in file
            if info.isreg()
        ]


def zip_members(path: Path) -> list[Member]:
    """All entries of a ZIP file, in the order of its directory."""
    with zipfile.ZipFile(path) as file:
        return [(info.filename.encode(), file.read(info)) for info in file.infolist()]


def key_and_field(name: bytes) -> tuple[bytes, bytes] | None:
    """Key and field of a member's name; None for one that belongs to no sample."""
    first = name.split(b"/")[0]
    if len(first) >= 4 and first.startswith(b"__") and first.endswith(b"__"):
        return None
    folder, slash, base = name.rpartition(b"/")
    stem, dot, field = base.partition(b".")
    # bytes.lower() is about ASCII only, as the library.
    return (folder + slash + stem, field.lower()) if dot and stem else None


def grouped(members: Iterable[Member], url: str) -> list[Sample]:
    """Members that follow one another with the same key are one sample."""
    samples: list[Sample] = []
    for name, data in members:
        split = key_and_field(name)
        if split is None:
            continue
        key, field = split
        if not samples or samples[-1].key != key:
            samples.append(Sample(key, url.encode(), []))
        samples[-1].fields.append((field, data))
    return samples


class Folder:
    """The archives, as tarfile and zipfile read them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def members(self, name: str) -> list[Member]:
        path = self.path / name
        return zip_members(path) if name.endswith(".zip") else tar_members(path)

    def samples(self, *names: str) -> list[Sample]:
        """The samples of these files, one after another."""
        return [sample for name in names for sample in grouped(self.members(name), name)]


# ---- Order and options that say which samples come --------------------------------------------


def lanes_of(shards: Sequence[list[Sample]], lanes: int) -> list[list[Sample]]:
    """Shard j is in lane j mod lanes, whose shards come one after another."""
    return [[sample for shard in shards[lane::lanes] for sample in shard] for lane in range(lanes)]


def taken_in_turn(lanes: Sequence[list[Sample]]) -> Iterator[Sample]:
    """One sample of each lane in turn; lanes that are over are left out."""
    for number in range(max(map(len, lanes), default=0)):
        for lane in lanes:
            if number < len(lane):
                yield lane[number]


def only_fields(samples: Iterable[Sample], names: Iterable[bytes]) -> list[Sample]:
    """These fields; samples that have none of them are left out."""
    wanted = set(names)
    kept = [
        sample._replace(fields=[field for field in sample.fields if field[0] in wanted])
        for sample in samples
    ]
    return [sample for sample in kept if sample.fields]


# ---- Columns of batches -------------------------------------------------------------------------

DTYPES = {
    "bool": (0, 1), "int8": (1, 1), "int16": (2, 2), "int32": (3, 4), "int64": (4, 8),
    "uint8": (5, 1), "uint16": (6, 2), "uint32": (7, 4), "uint64": (8, 8), "float16": (9, 2),
    "float32": (10, 4), "float64": (11, 8), "complex64": (12, 8), "complex128": (13, 16),
    "bfloat16": (14, 2),
}  # fmt: skip
ARRAY, BYTES, TEXT, JSON, MSGPACK = range(5)


def even(name: str, dtype: str, shape: Sequence[int], rows: Sequence[bytes]) -> bytes:
    """A column of arrays of one shape: the bytes of each row."""
    return _array(name, dtype, len(shape), (len(rows), *shape), b"".join(rows), (), ())


def ragged(name: str, dtype: str, rows: Sequence[tuple[Sequence[int], bytes]]) -> bytes:
    """A column of arrays of unequal shape, with offsets."""
    size = DTYPES[dtype][1]
    offsets = [0]
    for _, data in rows:
        offsets.append(offsets[-1] + len(data) // size)
    shapes = [length for shape, _ in rows for length in shape]
    data = b"".join(data for _, data in rows)
    return _array(name, dtype, len(rows[0][0]), (offsets[-1],), data, offsets, shapes)


def padded(name: str, dtype: str, rows: Sequence[tuple[Sequence[int], bytes]]) -> bytes:
    """A column of two-dimensional arrays of unequal shape, filled up with zeros."""
    size = DTYPES[dtype][1]
    height, width = (max(shape[axis] for shape, _ in rows) for axis in (0, 1))
    out = b""
    for (own_height, own_width), data in rows:
        for row in range(own_height):
            line = data[row * own_width * size : (row + 1) * own_width * size]
            out += line + bytes((width - own_width) * size)
        out += bytes((height - own_height) * width * size)
    shapes = [length for shape, _ in rows for length in shape]
    return _array(name, dtype, 2, (len(rows), height, width), out, (), shapes)


def filled(name: str, dtype: str, length: int, rows: Sequence[bytes]) -> bytes:
    """A column of arrays of one dimension, filled up with zeros."""
    size = DTYPES[dtype][1]
    out = b"".join(row.ljust(length * size, b"\0") for row in rows)
    return _array(name, dtype, 1, (len(rows), length), out, (), [len(row) // size for row in rows])


def items(name: str, kind: int, rows: Sequence[bytes]) -> bytes:
    """A column of bytes of any length."""
    offsets = [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row))
    return _array(name, "uint8", 1, (offsets[-1],), b"".join(rows), offsets, (), kind)


def _array(
    name: str,
    dtype: str,
    row_ndim: int,
    shape: Sequence[int],
    data: bytes,
    offsets: Sequence[int],
    shapes: Sequence[int],
    kind: int = ARRAY,
) -> bytes:
    numbers = [kind, DTYPES[dtype][0], row_ndim, len(shape), *shape]
    return (
        text(name.encode())
        + b"".join(map(u64, numbers))
        + text(data)
        + b"".join(map(u64, [len(offsets), *offsets, len(shapes), *shapes]))
    )


def batch_bytes(
    samples: Sequence[Sample], columns: Sequence[bytes], valid: Sequence[bool] | None = None
) -> bytes:
    """A batch of these samples: its columns and those that every batch has."""
    own = [*columns]
    if valid is not None:
        own.append(even("__valid__", "bool", (), [bytes([is_valid]) for is_valid in valid]))
    own.append(items("__key__", TEXT, [sample.key for sample in samples]))
    own.append(text(b"__url__") + b"".join(text(sample.url) for sample in samples))
    return u64(len(samples)) + u64(len(own)) + b"".join(own)
