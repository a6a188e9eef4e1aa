"""TFRecord: a tf.train.Example for each sample, with a list of one bytes value for each field.

The features __key__ and __fields__ have the key and the order of the fields. Examples of other
programs: one value of bytes as it is, one number as text, several only with --nested json; features
without values are left out, and fields come in the order of their names.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from ._rows import KEY, ReadOptions, Row, Samples, bytes_of, new_key, package, refuse, shown, text
from ._target import new_file

FIELDS = "__fields__"
LENGTH = struct.Struct("<Q")
CHECKSUM = struct.Struct("<I")


def _masked(data: bytes) -> bytes:
    """The CRC-32C of `data`, as the format stores it."""
    crc = package("crc32c", "tfrecord").crc32c(data)
    return CHECKSUM.pack((((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def _records(file: BinaryIO, path: Path) -> Iterator[bytes]:
    at = 0

    def take(size: int) -> bytes:
        data = file.read(size)
        if len(data) < size:
            refuse(f"{path}: the file ends inside the record at byte {at}", "copy it again")
        return data

    while head := file.read(LENGTH.size):
        head += take(LENGTH.size - len(head))
        if take(CHECKSUM.size) != _masked(head):
            refuse(f"{path}: the checksum of the length at byte {at} is wrong", "copy it again")
        (size,) = LENGTH.unpack(head)
        data = take(size)
        if take(CHECKSUM.size) != _masked(data):
            refuse(f"{path}: the checksum of the record at byte {at} is wrong", "copy it again")
        yield data
        at += LENGTH.size + 2 * CHECKSUM.size + size


def _example() -> Any:
    return package("tfrecord.example_pb2", "tfrecord").Example


def _values(feature: Any) -> list[Any]:
    kind = feature.WhichOneof("kind")
    return list(getattr(feature, kind).value) if kind else []


def read(path: Path, options: ReadOptions) -> Iterator[Row]:
    example = _example()
    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        data = cast("BinaryIO", gzip.GzipFile(fileobj=file)) if is_gzip else file
        for number, record in enumerate(_records(data, path)):
            where = f"{path}: record {number}"
            try:
                features = example.FromString(record).features.feature
            except Exception as error:  # of protobuf, whose class depends on its version
                refuse(f"{where} is no tf.train.Example: {error}", "only these are converted")
            values = {name: _values(feature) for name, feature in features.items()}
            order = [
                name.decode("utf-8", "surrogateescape")
                for name in values.pop(FIELDS, sorted(n.encode() for n in values))
            ]
            if options.key in values:
                found = values.pop(options.key)
                key = bytes_of(found[0] if len(found) == 1 else found, where, options)
                name = (key or b"").decode("utf-8", "surrogateescape")
            else:
                name = new_key(number, options)
            fields = {}
            for field in order:
                value = values.get(field)
                if not value:
                    continue
                one = value[0] if len(value) == 1 else value
                data_of = bytes_of(one, f"{where}: feature {shown(field)}", options)
                if data_of is not None:
                    fields[field] = data_of
            yield name, fields


def write(path: Path, samples: Samples) -> None:
    example = _example()
    with new_file(path) as partial, partial.open("wb") as file:
        for key, fields in samples.read():
            made = example()
            features = made.features.feature
            features[KEY].bytes_list.value.append(key.encode("utf-8", "surrogateescape"))
            features[FIELDS].bytes_list.value.extend(
                text(name, "TFRecord", "field").encode() for name in fields
            )
            for name, data in fields.items():
                if name in (KEY, FIELDS):
                    refuse(f"the field {name} has a meaning of its own", "rename it")
                features[name].bytes_list.value.append(data)
            record = made.SerializeToString()
            head = LENGTH.pack(len(record))
            file.write(head + _masked(head) + record + _masked(record))
