"""Shards of arrays for the tests of batches: written with numpy, read with shardfeed."""

from __future__ import annotations

import hashlib
import io
import json
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import shardfeed
from conftest import write_tar

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


def npy(array: Any, version: tuple[int, int] | None = None) -> bytes:
    """The .npy file of an array."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), version, allow_pickle=False)
    return file.getvalue()


def npz(**arrays: Any) -> bytes:
    """The .npz file of arrays."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def safetensors(arrays: dict[str, np.ndarray]) -> bytes:
    """The file of the package safetensors, which need not be installed."""
    names = {"float": "F", "int": "I", "uint": "U", "complex": "C"}
    header: dict[str, Any] = {"__metadata__": {"format": "np"}}
    data = b""
    for name, array in arrays.items():
        kind = array.dtype.name.rstrip("0123456789")
        dtype = "BOOL" if kind == "bool" else f"{names[kind]}{8 * array.dtype.itemsize}"
        end = len(data) + array.nbytes
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [len(data), end]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def rows_tar(path: Path, rows: Iterable[dict[str, bytes]]) -> str:
    """A tar with a sample for each dict of fields, numbered."""
    members = [
        (f"{number:06d}.{field}", data)
        for number, row in enumerate(rows)
        for field, data in row.items()
    ]
    return str(write_tar(path, members))


def different_arrays(shard: int, sizes: list[int]) -> list[np.ndarray]:
    """Arrays of int32 of these sizes; all numbers of all shards are different."""
    starts = np.cumsum([0, *sizes]) + 100_000 * shard
    return [np.arange(start, start + size, dtype="i4") for start, size in zip(starts, sizes)]


def saved_states(
    open_stream: Callable[[], shardfeed.Stream], stops: Iterable[int], used: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The state of a stream after so many batches each.

    used: it is saved and nothing else; else another batch is taken, which comes again.
    """
    for stop in stops:
        stream = open_stream()
        iterator = stream.batches()
        for _ in range(stop):
            next(iterator)
        state = stream.state_dict()
        if not used:
            next(iterator, None)
        stream.close()
        yield stop, state


def ramps(path: Path, count: int, size: int = 16) -> str:
    """Samples whose array x.npy, of int64, begins with the number that is in cls."""
    return rows_tar(
        path, ({"x.npy": npy(np.arange(n, n + size)), "cls": b"%d" % n} for n in range(count))
    )


def bytes_of(value: Any) -> bytes:
    """All bytes of a column, and what they mean."""
    if isinstance(value, shardfeed.Ragged):
        parts = [value.values, value.offsets]
        parts += [] if value.shapes is None else [value.shapes]
        return b"".join(map(bytes_of, parts))
    if isinstance(value, shardfeed.BytesColumn):
        return bytes_of(value.values) + bytes_of(value.offsets)
    return f"{value.dtype}{value.shape}".encode() + value.tobytes()


def digest(batch: shardfeed.Batch) -> str:
    """A digest of all that is in a batch."""
    parts = [b"%d" % len(batch), *map(str.encode, batch.sample_keys + batch.urls)]
    for name, value in batch.items():
        parts += [name.encode(), bytes_of(value)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
