"""Blocks: many samples from one call of the library, as flat tables over a few buffers.

The tables of a block become Python lists when it arrives, because a list is the fastest thing to
index. When the iterator moves on, the lists are dropped and the same indices go to the library's
own tables (Block.cool): a kept sample then pins what the library promises (64 KiB and 8 times its
size), and not also a list of every field of its neighbours.

Lifetime: the pointer under a view is a cdata whose destructor holds the block (ffi.gc). A view
needs nothing else to stay valid, and the block is freed after its last view. ffi.release must never
be called on such a pointer: it would free memory under live views.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from ._native import ffi, lib
from ._sample import Sample

if TYPE_CHECKING:
    from ._native import _CData

_MAX_SCHEMAS = 1024


def _view(data: _CData, size: int) -> memoryview:
    """Bytes where they lie, valid as long as `data` or what keeps its target."""
    return memoryview(ffi.buffer(data, size)).toreadonly() if size else memoryview(b"")


class Block:
    """The tables of one block. Fields are numbered through the block, sample by sample."""

    __slots__ = ("_keys", "_owner", "_pointer", "_tables", "buffers", "starts", "stops", "views")

    views: list[memoryview]  # one for each buffer
    buffers: list[int] | _CData  # of each field: the number of its buffer,
    starts: list[int] | _CData  # where it starts there,
    stops: list[int] | _CData  # and where it stops

    def __init__(self, owner: _CData, pointer: _CData, tables: _CData, fields: int) -> None:
        self._owner = owner
        self._pointer = pointer
        self._tables = tables
        self._keys: memoryview | None = None
        self.views = []
        self.buffers = ffi.unpack(tables[lib.SHF_BLOCK_BUFFER], fields)
        self.starts = ffi.unpack(tables[lib.SHF_BLOCK_START], fields)
        self.stops = ffi.unpack(tables[lib.SHF_BLOCK_STOP], fields)

    def cool(self) -> None:
        """Drops the lists; what is asked from now on is read from the library's tables."""
        self.buffers = self._tables[lib.SHF_BLOCK_BUFFER]
        self.starts = self._tables[lib.SHF_BLOCK_START]
        self.stops = self._tables[lib.SHF_BLOCK_STOP]

    def key(self, index: int) -> str:
        if self._keys is None:
            keys = ffi.new("shf_bytes *")
            lib.shf_block_keys(self._pointer, keys)
            self._keys = _view(keys.data, keys.size)
        bounds = self._tables[lib.SHF_BLOCK_KEY]
        key = self._keys[bounds[index] : bounds[index + 1]]
        return str(key, "utf-8", "surrogateescape")

    def native(self, index: int) -> _CData:
        return lib.shf_block_sample(self._pointer, index)

    def decode_texts(self, texts: dict[str, str]) -> dict[str, str]:
        return texts  # the epoch of each sample is known

    def shard(self, index: int) -> str:
        url = ffi.new("shf_bytes *")
        lib.shf_block_url(self._pointer, self._tables[lib.SHF_BLOCK_URL][index], url)
        return str(_view(url.data, url.size), "utf-8", "surrogateescape")


class BlockReader:
    """Turns the blocks of one stream into samples; one call at a time."""

    __slots__ = ("_bytes", "_counts", "_schemas")

    def __init__(self) -> None:
        self._counts = ffi.new("size_t[]", lib.SHF_BLOCK_COLUMNS)
        self._bytes = ffi.new("shf_bytes *")
        self._schemas: dict[bytes, dict[str, int]] = {}

    def read(self, owner: _CData, pointer: _CData) -> tuple[Block, list[Sample]]:
        """The tables of a block and its samples; `owner` keeps what `pointer` leads to."""
        counts, out = self._counts, self._bytes
        tables = ffi.new("const uint64_t *[]", lib.SHF_BLOCK_COLUMNS)
        lib.shf_block_columns(pointer, lib.SHF_BLOCK_COLUMNS, tables, counts)
        samples = counts[lib.SHF_BLOCK_SCHEMA]
        fields = counts[lib.SHF_BLOCK_START]
        block = Block(owner, pointer, tables, fields)

        # The destructor of the data pointers has nothing to do but to hold the block until it runs,
        # and a function in Python could swallow Ctrl-C. A bound method of the owner does that.
        keep = owner.__eq__
        while not lib.shf_block_buffer(pointer, len(block.views), out):
            data = ffi.gc(out.data, keep) if out.size else out.data
            block.views.append(_view(data, out.size))

        schemas: list[dict[str, int]] = []
        while not lib.shf_block_schema(pointer, len(schemas), out):
            schemas.append(self._schema(ffi.buffer(out.data, out.size)[:]))
        if len(schemas) == 1:
            rows = map(
                Sample, repeat(block), range(samples), repeat(schemas[0]),
                range(0, fields, len(schemas[0])),
            )  # fmt: skip
        else:
            rows = map(
                Sample, repeat(block), range(samples),
                map(schemas.__getitem__, ffi.unpack(tables[lib.SHF_BLOCK_SCHEMA], samples)),
                ffi.unpack(tables[lib.SHF_BLOCK_FIRST_FIELD], samples),
            )  # fmt: skip
        return block, list(rows)

    def _schema(self, names: bytes) -> dict[str, int]:
        schema = self._schemas.get(names)
        if schema is None:
            decoded = str(names, "utf-8", "surrogateescape").split("/")[:-1]
            schema = {name: position for position, name in enumerate(decoded)}
            if len(self._schemas) >= _MAX_SCHEMAS:
                self._schemas.clear()
            self._schemas[names] = schema
        return schema
