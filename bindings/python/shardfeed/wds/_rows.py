"""Blocks of the engine as samples of WebDataset: dicts of bytes, with key and URL."""

from __future__ import annotations

import sys
from collections import deque
from itertools import repeat
from operator import length_hint
from typing import TYPE_CHECKING, Any

from .._block import _view
from .._native import ffi, lib
from .._open_stream import BlockStream

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .._native import _CData
    from ._reading import Shard

# Names of fields that mean something else in a sample of WebDataset.
_RESERVED = {"__key__", "__url__", "__local_path__", "__bad__"}
# Fields up to this size, on average, are cut out of one copy of their memory.
_SMALL = 4096
# Samples of a part.
_MANY = 256


class UnlikeNamesError(Exception):
    """The shard has members that WebDataset groups in another way."""


class Row:
    """One sample where the engine has it."""

    __slots__ = ("index", "shard", "table")

    def __init__(self, table: Table, index: int, shard: Shard) -> None:
        self.table = table
        self.index = index
        self.shard = shard

    def sample(self, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """As a dict of bytes; `values` are in the place of the bytes of some fields."""
        table, shard = self.table, self.shard
        sample: dict[str, Any] = {"__key__": table.keys[self.index], "__url__": shard.url}
        for name in self.names:
            if values is None or name not in values:
                sample[name] = bytes(table.field(self.index, name))
            else:
                sample[name] = values[name]
            if shard.local_path is not None:
                sample["__local_path__"] = shard.local_path
        return sample

    def field(self, name: str) -> Any:
        """The bytes of a field, where they lie."""
        return self.table.field(self.index, name)

    @property
    def native(self) -> _CData:
        """The sample in C, borrowed from the table."""
        return lib.shf_block_sample(self.table.pointer, self.index)

    @property
    def names(self) -> tuple[str, ...]:
        return self.table.names(self.index)


class Part:
    """Some samples of a block that follow one another, before anything was made of them."""

    __slots__ = ("first", "last", "shard", "table")

    def __init__(self, table: Table, first: int, last: int, shard: Shard) -> None:
        self.table = table
        self.first = first
        self.last = last
        self.shard = shard

    def __len__(self) -> int:
        return self.last - self.first

    def without(self, count: int) -> Part:
        """The samples after the first ones."""
        return Part(self.table, self.first + count, self.last, self.shard)

    def rows(self) -> Iterator[Row]:
        """Each by itself, where the engine has it."""
        return map(Row, repeat(self.table), range(self.first, self.last), repeat(self.shard))

    def samples(self) -> Iterator[dict[str, Any]]:
        """As dicts of bytes; large ones are made one by one."""
        step = len(self) if self.table.is_small else 1
        for start in range(self.first, self.last, step):
            yield from self.table.dicts(start, start + step, self.shard)

    def dicts(self) -> list[dict[str, Any]]:
        """As dicts of bytes, all of them at once."""
        return self.table.dicts(self.first, self.last, self.shard)

    def columns(self) -> tuple[tuple[str, ...], list[Any]] | None:
        """Names and lists of values; None where samples differ in their fields."""
        return self.table.columns(self.first, self.last, self.shard)


class Supply:
    """Which rows are at hand: taking them asks for nothing behind them, where a handler, or whoever
    lists the shards, would see it.
    """

    def __init__(self) -> None:
        self.wanted = 0  # so many rows behind the part that is given
        self.is_over = False  # nothing more is read
        self._here: Iterator[Row] = iter(())
        self._later = 0

    def rows(self, part: Part) -> Iterator[Row]:
        """The rows of a part."""
        self._here = iter(list(part.rows()))
        return self._here

    def left(self) -> int:
        """How many rows can be taken without asking for more: all, when there are no more."""
        if self.is_over:
            return sys.maxsize
        return length_hint(self._here) + self._later

    def ahead(self, parts: Iterator[Part]) -> Iterator[Part]:
        """The same parts, taken ahead as far as rows are wanted. An error comes after those
        before it.
        """
        waiting: deque[Part] = deque()
        failed: Exception | None = None
        is_at_end = False
        while True:
            while not is_at_end and (not waiting or self._later < self.wanted):
                try:
                    part = next(parts)
                except StopIteration:
                    is_at_end = True
                except Exception as error:
                    failed, is_at_end = error, True
                else:
                    waiting.append(part)
                    self._later += len(part)
            if not waiting:
                break
            part = waiting.popleft()
            self._later -= len(part)
            yield part
        if failed is not None:
            raise failed


class Table:
    """The flat tables of a block."""

    def __init__(
        self, owner: _CData, pointer: _CData, schemas: dict[bytes, tuple[str, ...]]
    ) -> None:
        self.owner = owner  # keeps what `pointer` leads to
        self.pointer = pointer
        counts = ffi.new("size_t[]", lib.SHF_BLOCK_COLUMNS)
        tables = ffi.new("const uint64_t *[]", lib.SHF_BLOCK_COLUMNS)
        lib.shf_block_columns(pointer, lib.SHF_BLOCK_COLUMNS, tables, counts)
        self.rows = counts[lib.SHF_BLOCK_SCHEMA]
        self._tables = tables
        fields = counts[lib.SHF_BLOCK_START]
        self._starts: list[int] = ffi.unpack(tables[lib.SHF_BLOCK_START], fields)
        self._stops: list[int] = ffi.unpack(tables[lib.SHF_BLOCK_STOP], fields)
        self._buffers: list[int] = ffi.unpack(tables[lib.SHF_BLOCK_BUFFER], fields)
        out = ffi.new("shf_bytes *")
        keep = owner.__eq__  # see _block.py
        self._views: list[Any] = []
        while not lib.shf_block_buffer(pointer, len(self._views), out):
            self._views.append(_view(ffi.gc(out.data, keep) if out.size else out.data, out.size))
        self._schemas: list[tuple[str, ...]] = []
        while not lib.shf_block_schema(pointer, len(self._schemas), out):
            self._schemas.append(_names(ffi.buffer(out.data, out.size)[:], schemas))
        self._many = len(self._schemas) > 1
        self._schema: list[int] = []
        self._first: list[int] = []
        if self._many:
            self._schema = ffi.unpack(tables[lib.SHF_BLOCK_SCHEMA], self.rows)
            self._first = ffi.unpack(tables[lib.SHF_BLOCK_FIRST_FIELD], self.rows)
        size = sum(map(len, self._views))
        self.is_small = size <= _SMALL * max(fields, 1)
        if self.is_small:
            self._views = list(map(bytes, self._views))
        self.keys = self._read_keys(out)

    def _read_keys(self, out: _CData) -> list[str]:
        lib.shf_block_keys(self.pointer, out)
        data = bytes(ffi.buffer(out.data, out.size)) if out.size else b""
        bounds = ffi.unpack(self._tables[lib.SHF_BLOCK_KEY], self.rows + 1)
        if data.isascii():
            text = data.decode("ascii")
            return [text[a:b] for a, b in zip(bounds, bounds[1:])]
        pieces = (data[a:b] for a, b in zip(bounds, bounds[1:]))
        return [piece.decode("utf-8", "surrogateescape") for piece in pieces]

    def names(self, index: int) -> tuple[str, ...]:
        """The fields of a sample."""
        return self._schemas[self._schema[index] if self._many else 0]

    def field(self, index: int, name: str) -> Any:
        """The bytes of a field of a sample."""
        names = self.names(index)
        first = self._first[index] if self._many else index * len(names)
        at = first + names.index(name)
        return self._views[self._buffers[at]][self._starts[at] : self._stops[at]]

    def shards(self) -> Iterator[tuple[int, int, str]]:
        """First and last sample of each run of samples of one shard, and its name."""
        if self.rows == 0:
            return
        urls = self._tables[lib.SHF_BLOCK_URL]
        out = ffi.new("shf_bytes *")
        first = 0
        last_url = urls[self.rows - 1]
        while first < self.rows:
            url = urls[first]
            end = self.rows
            if url != last_url:
                end = next(i for i in range(first, self.rows) if urls[i] != url)
            lib.shf_block_url(self.pointer, url, out)
            name = bytes(ffi.buffer(out.data, out.size)) if out.size else b""
            yield first, end, name.decode("utf-8", "surrogateescape")
            first = end

    def parts(self, first: int, last: int, shard: Shard) -> Iterator[Part]:
        """The samples of a run, as they are here."""
        for start in range(first, last, _MANY):
            yield Part(self, start, min(start + _MANY, last), shard)

    def columns(
        self, first: int, last: int, shard: Shard
    ) -> tuple[tuple[str, ...], list[Any]] | None:
        """Names and lists of values of some samples; None where they differ in their fields."""
        schema = 0
        if self._many:
            schema = self._schema[first]
            if self._schema[first:last].count(schema) != last - first:
                return None
            field = self._first[first]
        else:
            field = first * len(self._schemas[0])
        keys, columns = self._cut(first, last, shard, self._schemas[schema], field)
        return tuple(keys), [c if type(c) is list else [next(c)] * (last - first) for c in columns]

    def dicts(self, first: int, last: int, shard: Shard) -> list[dict[str, Any]]:
        """Some samples as dicts: key, URL, first field, path if the file is local, other fields."""
        if not self._many:
            names = self._schemas[0]
            return self._same(first, last, shard, names, first * len(names))
        result: list[dict[str, Any]] = []
        while first < last:
            schema = self._schema[first]
            end = first + 1
            while end < last and self._schema[end] == schema:
                end += 1
            result += self._same(first, end, shard, self._schemas[schema], self._first[first])
            first = end
        return result

    def _same(
        self, first: int, last: int, shard: Shard, names: tuple[str, ...], field: int
    ) -> list[dict[str, Any]]:
        """Samples with the same fields, which follow one another in the tables."""
        keys, columns = self._cut(first, last, shard, names, field)
        # Written out for the usual numbers of fields: a literal is made twice as fast.
        if len(keys) == 5:
            a, b, c, d, e = keys
            return [{a: v, b: w, c: x, d: y, e: z} for v, w, x, y, z in zip(*columns)]
        return [dict(zip(keys, row)) for row in zip(*columns)]

    def _cut(
        self, first: int, last: int, shard: Shard, names: tuple[str, ...], field: int
    ) -> tuple[list[str], list[Any]]:
        """The names of such samples and their values: lists, or what repeats one without end."""
        width = len(names)
        end = field + width * (last - first)
        views, starts, stops = self._views, self._starts, self._stops
        if len(views) == 1:
            view = views[0]
            values = [view[a:b] for a, b in zip(starts[field:end], stops[field:end])]
        else:
            bounds = zip(self._buffers[field:end], starts[field:end], stops[field:end])
            values = [views[n][a:b] for n, a, b in bounds]
        if not self.is_small:
            values = list(map(bytes, values))
        columns: list[Any] = [self.keys[first:last], repeat(shard.url), values[0::width]]
        keys = ["__key__", "__url__", names[0]]
        if shard.local_path is not None:
            columns.append(repeat(shard.local_path))
            keys.append("__local_path__")
        for column in range(1, width):
            columns.append(values[column::width])
            keys.append(names[column])
        return keys, columns


def _names(data: bytes, known: dict[bytes, tuple[str, ...]]) -> tuple[str, ...]:
    """The fields of a schema. UnlikeNamesError where the engine makes others of them."""
    names = known.get(data)
    if names is None:
        names = tuple(data.decode("utf-8", "surrogateescape").split("/")[:-1])
        if not data.isascii() or not _RESERVED.isdisjoint(names) or not names:
            raise UnlikeNamesError
        known[data] = names
    return names


class SampleBlocks(BlockStream):
    """A stream of the engine whose blocks are taken as tables."""

    def _taken(self, holder: _CData) -> Any:
        schemas: dict[bytes, tuple[str, ...]] = self.__dict__.setdefault("schemas", {})
        if len(schemas) > 1024:
            schemas.clear()
        return Table(holder, holder[0], schemas)

    def _fetched_count(self) -> int:
        return 0 if self.fetched is None else self.fetched.rows  # type: ignore[attr-defined]

    def taken(self) -> Table:
        """The block that fetch() has fetched."""
        table: Any = self.fetched
        self.fetched = None
        taken: Table = table
        return taken

    @property
    def ignored(self) -> int:
        """How many members so far belong to no sample of the engine."""
        assert self._stream is not None
        return int(lib.shf_stream_stat(self._stream[0], lib.SHF_STAT_IGNORED_MEMBERS))
