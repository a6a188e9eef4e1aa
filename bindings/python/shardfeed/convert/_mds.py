"""MDS, of MosaicML's streaming: a column of bytes for each field, and the text __key__.

All samples have the same fields, which come back in the order of their names. Columns of other programs: texts and bytes as they are, numbers
as text, JSON with --nested json; what decodes to arrays or images is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

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

# The bytes of these are those of a file: a decoder in between would change them.
ENCODED = {"jpeg": "bytes", "jpegarray": "bytes", "png": "bytes", "pil": ""}


def read(path: Path, options: ReadOptions) -> Iterator[Row]:
    base = package("streaming.base.format", "mds")
    index = json.loads((path / "index.json").read_bytes())
    number = 0
    for shard in index["shards"]:
        if (
            shard.get("zip_data") is not None
            and not (path / shard["raw_data"]["basename"]).exists()
        ):
            refuse(
                f"{path}: its shards are compressed",
                "write it with compression=None, or decompress its files",
            )
        encodings = shard["column_encodings"]
        for column, encoding in zip(shard["column_names"], encodings):
            if encoding in ENCODED and not ENCODED[encoding]:
                refuse(f"{path}: the column {column} is {encoding}", "leave the column out")
        # Images stay the files that they are.
        plain = {**shard, "column_encodings": [ENCODED.get(name, name) for name in encodings]}
        reader = base.reader_from_json(str(path), None, plain)
        for item in range(reader.size):
            values = reader[item]
            where = f"{path}: sample {number}"
            if options.key in values:
                key = bytes_of(values.pop(options.key), where, options)
                name = (key or b"").decode("utf-8", "surrogateescape")
            else:
                name = new_key(number, options)
            fields = {}
            for column, value in values.items():
                # Numbers come as those of NumPy.
                plain_value = value.item() if getattr(value, "ndim", None) == 0 else value
                data = bytes_of(plain_value, f"{where}: column {column}", options)
                if data is not None:
                    fields[column] = data
            yield name, fields
            number += 1


def write(path: Path, samples: Samples) -> None:
    streaming = package("streaming", "mds")
    with new_folder(path) as partial:
        writer = None
        try:
            for key, fields in same_fields(samples.read(), "MDS"):
                if writer is None:
                    if KEY in fields:
                        refuse("a field __key__ would be the key", "rename it with cat --fields")
                    columns = {KEY: "str"}
                    columns |= {text(name, "MDS", "field"): "bytes" for name in fields}
                    for name in columns:
                        if ":" in name or "," in name:
                            refuse(f"the field {name} has a sign that MDS uses", "rename it")
                    writer = streaming.MDSWriter(out=str(partial), columns=columns)
                writer.write({KEY: text(key, "MDS", "key"), **fields})
            if writer is None:
                refuse("there is no sample, and MDS needs one for its columns", "give shards")
        finally:
            if writer is not None:
                writer.finish()
