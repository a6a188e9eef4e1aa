"""Samples between two formats: a key, and fields of bytes with names."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

Row = tuple[str, Mapping[str, bytes]]

KEY = "__key__"


class ConvertError(Exception):
    """What cannot be converted: the message says where, why, and after "help: " what to do."""


def refuse(cause: str, help: str) -> NoReturn:
    raise ConvertError(f"{cause}; help: {help}")


def shown(text: str) -> str:
    """A key or name for messages."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def package(name: str, extra: str) -> Any:
    """An optional package; `extra` is that of shardfeed which has it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing = error.name or name
        refuse(
            f"the package {missing} is not there for {sys.executable}",
            f"pip install 'shardfeed[{extra}]'",
        )


@dataclass(frozen=True)
class ReadOptions:
    """How what other programs made is understood."""

    key: str = KEY
    """The column with the keys."""
    keys: str = "%09d"
    """A pattern of keys, where there is no such column."""
    nested: str = "error"
    """Lists and structures: "error", or "json"."""
    field: str = ""
    """The field that entries without one in their name are (LMDB)."""


@dataclass(frozen=True)
class Samples:
    """Samples that can be read several times, unless they come from a pipe."""

    read: Callable[[], Iterator[Row]]
    again: bool
    names: tuple[str, ...] = ()
    """The fields, where the command says them."""

    def fields(self) -> list[str]:
        """The names of all fields, in the order in which they first come."""
        if self.names:
            return list(self.names)
        if not self.again:
            refuse(
                "the columns must be known before the first sample, and a pipe is read once",
                'copy it to a file, or name them: --columns "jpg cls"',
            )
        found: dict[str, None] = {}
        for _, fields in self.read():
            found.update(dict.fromkeys(fields))
        return list(found)


def text(value: str, format: str, what: str) -> str:
    """`value`, which formats with texts can carry."""
    try:
        value.encode()
    except UnicodeEncodeError:
        refuse(
            f"the {what} {shown(value)} is no UTF-8, and {format} has only text there",
            "give other keys with cat --rekey, or other names with cat --fields",
        )
    return value


def same_fields(rows: Iterable[Row], format: str) -> Iterator[Row]:
    """Rows of which each must have the fields of the first one."""
    first: list[str] = []
    for key, fields in rows:
        if not first:
            first = list(fields)
        if fields.keys() != set(first):
            odd = sorted(fields.keys() ^ set(first))[0]
            what = "has no" if odd in first else "also has the"
            refuse(
                f"sample {shown(key)} {what} field {shown(odd)}, and {format} has the same columns "
                "in every sample",
                'choose fields that all samples have with cat --fields "..." --missing skip',
            )
        yield key, {name: fields[name] for name in first}


def new_key(number: int, options: ReadOptions) -> str:
    try:
        made = options.keys % number
    except (TypeError, ValueError):
        made = ""
    if not made or made == options.keys:
        refuse(f"{options.keys!r} is no pattern of a number", "such as img/%06d")
    return made


def bytes_of(value: object, where: str, options: ReadOptions) -> bytes | None:
    """A value of a column as the bytes of a field; None: there is none."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool):
        return b"1" if value else b"0"
    if isinstance(value, (int, float)):
        return str(value).encode()
    # How images lie in the files of Hugging Face.
    if isinstance(value, dict) and value.keys() == {"bytes", "path"} and value["bytes"] is not None:
        return bytes(value["bytes"])
    if options.nested == "json" and isinstance(value, (dict, list)):
        try:
            return json.dumps(value).encode()
        except TypeError as error:
            refuse(f"{where}: {error}", "leave the column out")
    refuse(
        f"{where}: a {type(value).__name__} is no bytes, text or number",
        "--nested json makes JSON of lists and structures; leave other columns out with --columns",
    )
