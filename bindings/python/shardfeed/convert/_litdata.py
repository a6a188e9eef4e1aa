"""litdata: items of a text __key__ and bytes for each field, in its chunks.

All samples have the same fields. Items of other programs are dictionaries: texts and bytes as they
are, numbers as text, lists and structures with --nested json; arrays and images are errors.
"""

from __future__ import annotations

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
    text,
)
from ._target import new_folder


def read(path: Path, options: ReadOptions) -> Iterator[Row]:
    litdata = package("litdata", "litdata")
    items: Any = litdata.StreamingDataset(str(path), shuffle=False)
    for number in range(len(items)):
        where = f"{path}: item {number}"
        values = items[number]
        if not isinstance(values, dict):
            refuse(
                f"{where} is a {type(values).__name__}", "only dictionaries have names of fields"
            )
        values = dict(values)
        if options.key in values:
            key = bytes_of(values.pop(options.key), where, options)
            name = (key or b"").decode("utf-8", "surrogateescape")
        else:
            name = new_key(number, options)
        fields = {}
        for column, value in values.items():
            data = bytes_of(value, f"{where}: {column}", options)
            if data is not None:
                fields[str(column)] = data
        yield name, fields


def write(path: Path, samples: Samples) -> None:
    package("litdata", "litdata")
    writers = package("litdata.streaming.writer", "litdata")
    with new_folder(path) as partial:
        writer = writers.BinaryWriter(str(partial), chunk_bytes="64MB")
        number = 0
        for key, fields in same_fields(samples.read(), "litdata"):
            if KEY in fields:
                refuse("a field __key__ would be the key", "rename it with cat --fields")
            for name in fields:
                text(name, "litdata", "field")
            writer.add_item(number, {KEY: text(key, "litdata", "key"), **fields})
            number += 1
        if number == 0:
            refuse("there is no sample, and litdata needs one for its items", "give shards")
        writer.done()
        writer.merge(num_workers=1)
