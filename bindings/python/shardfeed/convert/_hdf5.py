"""HDF5: a data set of bytes for each field, with an item for each sample, and the texts __key__.

All samples have the same fields, which come back in the order of the data sets. Data sets of other
programs: texts and bytes as they are, numbers as text; rows of more dimensions become arrays, as
fields NAME.npy.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ._rows import (
    KEY,
    ReadOptions,
    Row,
    Samples,
    bytes_of,
    new_key,
    package,
    refuse,
    same_fields,
    shown,
    text,
)
from ._target import new_file

AT_ONCE_BYTES = 32 << 20
AT_ONCE = 1000


def read(path: Path, options: ReadOptions) -> Iterator[Row]:
    h5py, numpy = package("h5py", "hdf5"), package("numpy", "hdf5")
    with h5py.File(path, "r") as file:
        columns: dict[str, Any] = {}
        for name, column in file.items():
            if not isinstance(column, h5py.Dataset) or column.ndim == 0:
                refuse(
                    f"{path}: {shown(name)} is a group or a single value",
                    "only data sets with a row for each sample are carried",
                )
            columns[name] = column
        sizes = {name: len(column) for name, column in columns.items()}
        if len(set(sizes.values())) > 1:
            refuse(f"{path}: its data sets have different lengths: {sizes}", "split the file")
        if options.key != KEY and options.key not in columns:
            refuse(f"{path} has no data set {options.key}", "--key names the one with the keys")
        keys = columns.pop(options.key, None)
        for number in range(next(iter(sizes.values()), 0)):
            if keys is None:
                key = new_key(number, options)
            else:
                value = keys[number]
                made = bytes_of(
                    value.item() if isinstance(value, numpy.generic) else value,
                    f"{path}: key {number}",
                    options,
                )
                key = (made or b"").decode("utf-8", "surrogateescape")
            fields: dict[str, bytes] = {}
            for name, column in columns.items():
                value = column[number]
                if h5py.check_vlen_dtype(column.dtype) == numpy.uint8:
                    fields[name] = value.tobytes()
                elif isinstance(value, numpy.ndarray):
                    if value.dtype.hasobject:
                        refuse(f"{path}: {name} has arrays of objects", "leave it out")
                    array = io.BytesIO()
                    numpy.save(array, value, allow_pickle=False)
                    fields[f"{name}.npy"] = array.getvalue()
                else:
                    plain = value.item() if isinstance(value, numpy.generic) else value
                    data = bytes_of(plain, f"{path}: {name} {number}", options)
                    if data is not None:
                        fields[name] = data
            yield key, fields


def write(path: Path, samples: Samples) -> None:
    h5py, numpy = package("h5py", "hdf5"), package("numpy", "hdf5")
    with new_file(path) as partial, h5py.File(partial, "w", track_order=True) as file:
        columns: dict[str, Any] = {}
        held: list[Row] = []
        size = 0

        def add(name: str, kind: Any) -> None:
            if name in (".", ".."):
                refuse(f"the field {name} cannot be a name in HDF5", "rename it")
            columns[name] = file.create_dataset(
                name, (0,), maxshape=(None,), chunks=(AT_ONCE,), dtype=kind
            )

        def append() -> None:
            for name, column in columns.items():
                at = len(column)
                column.resize(at + len(held), axis=0)
                if name == KEY:
                    column[at:] = [key for key, _ in held]
                    continue
                values = numpy.empty(len(held), dtype=h5py.vlen_dtype(numpy.uint8))
                for i, (_, fields) in enumerate(held):
                    values[i] = numpy.frombuffer(fields[name], numpy.uint8)
                # column[at:] = values would take fields of one length for a table.
                place = column.id.get_space()
                place.select_hyperslab((at,), (len(held),))
                column.id.write(h5py.h5s.create_simple((len(held),)), place, values)
            held.clear()

        for key, fields in same_fields(samples.read(), "HDF5"):
            if not columns:
                if KEY in fields:
                    refuse("a field __key__ would be the key", "rename it with cat --fields")
                add(KEY, h5py.string_dtype())
                for name in fields:
                    add(text(name, "HDF5", "field"), h5py.vlen_dtype(numpy.uint8))
            if "\0" in key:
                refuse(f"the key {shown(key)} has a NUL", "give other keys with cat --rekey")
            held.append((text(key, "HDF5", "key"), fields))
            size += sum(map(len, fields.values()))
            if size >= AT_ONCE_BYTES or len(held) == AT_ONCE:
                append()
                size = 0
        if held:
            append()
