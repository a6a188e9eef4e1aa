"""Parquet: a row for each sample, a column of bytes for each field, and the text __key__.

A field that a sample does not have is null. The fields of a sample come back in the order of the
columns. Columns of other programs: texts and bytes as they are, numbers as text, lists and
structures only with --nested json; a structure of bytes and path, as of images of Hugging Face, is
its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ._rows import KEY, ReadOptions, Row, Samples, bytes_of, new_key, package, refuse, shown, text
from ._target import new_file

GROUP_BYTES = 64 << 20
GROUP_ROWS = 10_000


def read(path: Path, options: ReadOptions) -> Iterator[Row]:
    parquet = package("pyarrow.parquet", "parquet")
    files = sorted(path.glob("**/*.parquet")) if path.is_dir() else [path]
    number = 0
    for name in files:
        with parquet.ParquetFile(name, pre_buffer=False, buffer_size=1 << 20) as file:
            for batch in file.iter_batches(batch_size=256):
                columns = dict(zip(batch.schema.names, batch.columns))
                if len(columns) != len(batch.schema.names):
                    refuse(f"{name} has two columns of one name", "rename one of them")
                if options.key != KEY and options.key not in columns:
                    refuse(f"{name} has no column {options.key}", "--key names the one with keys")
                for row in range(batch.num_rows):
                    values = {column: columns[column][row].as_py() for column in columns}
                    yield _row(values, f"{name}: row {number}", number, options)
                    number += 1


def _row(values: dict[str, Any], where: str, number: int, options: ReadOptions) -> Row:
    if options.key in values:
        key = bytes_of(values.pop(options.key), f"{where}: column {options.key}", options)
        if not key:
            refuse(f"{where} has no key", "--key names another column")
        name = key.decode("utf-8", "surrogateescape")
    else:
        name = new_key(number, options)
    fields = {
        column: data
        for column, value in values.items()
        if (data := bytes_of(value, f"{where}: column {shown(column)}", options)) is not None
    }
    return name, fields


def write(path: Path, samples: Samples) -> None:
    parquet, arrow = package("pyarrow.parquet", "parquet"), package("pyarrow", "parquet")
    names = samples.fields()
    if KEY in names:
        refuse("a field __key__ would be the key", "rename it with cat --fields")
    schema = arrow.schema(
        [(KEY, arrow.string())]
        + [(text(name, "Parquet", "field"), arrow.large_binary()) for name in names]
    )
    known = set(names)
    with new_file(path) as partial, parquet.ParquetWriter(partial, schema) as writer:
        held: list[tuple[str, Any]] = []
        size = 0

        def end_group() -> None:
            columns = [[key for key, _ in held]]
            columns += [[fields.get(name) for _, fields in held] for name in names]
            arrays = [arrow.array(column, field.type) for column, field in zip(columns, schema)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            held.clear()

        for key, fields in samples.read():
            for name in fields.keys() - known:
                refuse(
                    f"sample {shown(key)} has the field {shown(name)}, which is no column",
                    "name it in --columns, or leave it out with cat --fields",
                )
            held.append((text(key, "Parquet", "key"), fields))
            size += sum(map(len, fields.values()))
            if size >= GROUP_BYTES or len(held) == GROUP_ROWS:
                end_group()
                size = 0
        if held:
            end_group()
