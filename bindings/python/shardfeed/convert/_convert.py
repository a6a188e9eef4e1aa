"""From one format to another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import Stream, Writer
from . import _hdf5, _litdata, _lmdb, _mds, _parquet, _tfrecord
from ._rows import ReadOptions, Row, Samples, refuse

FORMATS: Mapping[str, Any] = {
    "parquet": _parquet,
    "lmdb": _lmdb,
    "mds": _mds,
    "litdata": _litdata,
    "tfrecord": _tfrecord,
    "hdf5": _hdf5,
}
"""Name -> module with read() and write()."""


def _shards(urls: Sequence[str], options: Mapping[str, str]) -> Iterator[Row]:
    chosen: dict[str, Any] = {"shuffle_shards": "false", **options}
    with Stream(list(urls), **chosen) as stream:
        for sample in stream:
            yield sample.key, sample.to_dict()


def samples_of(
    inputs: Sequence[str],
    source: str,
    options: ReadOptions,
    reader: Mapping[str, str],
    columns: Sequence[str] = (),
) -> Samples:
    """The samples of all inputs, one after another; `columns`: only these fields of them."""

    def read() -> Iterator[Row]:
        if source == "shards":
            yield from _shards(inputs, reader)
            return
        for name in inputs:
            path = Path(name)
            if not path.exists():
                refuse(f"there is no {name}", "give the path of a file or folder")
            yield from FORMATS[source].read(path, options)

    def chosen() -> Iterator[Row]:
        for key, fields in read():
            yield key, {name: fields[name] for name in columns if name in fields}

    again = not any(name == "-" or name.startswith("pipe:") for name in inputs)
    return Samples(chosen if columns else read, again, tuple(columns))


def convert(
    inputs: Sequence[str],
    output: str,
    *,
    source: str,
    target: str,
    options: ReadOptions = ReadOptions(),  # noqa: B008, it is frozen
    columns: Sequence[str] = (),
    reader: Mapping[str, str] | None = None,
    writer: Mapping[str, str] | None = None,
) -> None:
    """Writes the samples of all inputs to `output`, which must not be there.

    source, target: the formats, "shards" or a name of FORMATS.
    columns: only these fields. reader, writer: options of Stream and Writer.

    Raises ConvertError for what cannot be carried, and the errors of Stream and Writer.
    """
    if not inputs:
        refuse("there is no input", "give the path of a file or folder")
    for name in (source, target):
        if name not in (*FORMATS, "shards"):
            refuse(f"{name} is no format", "these are: shards " + " ".join(FORMATS))
    samples = samples_of(inputs, source, options, reader or {}, columns)
    if target != "shards":
        FORMATS[target].write(Path(output), samples)
        return
    chosen: dict[str, Any] = dict(writer or {})
    if "prepare" in chosen:
        refuse("prepare: nobody would get the tokens of the shards", "leave it out")
    with Writer(output, encoder=False, **chosen) as shards:
        for key, fields in samples.read():
            shards.write_bytes(key, fields)
