"""Columns of batches, where they lie in memory, and what Python programs take them as."""

from __future__ import annotations

import json
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from ._errors import FormatError, UnsupportedError, UsageError, error_from
from ._native import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import SupportsIndex

    from ._native import _CData

_DTYPES: dict[int, str] = {
    lib.SHF_DTYPE_BOOL: "bool",
    lib.SHF_DTYPE_INT8: "int8",
    lib.SHF_DTYPE_INT16: "int16",
    lib.SHF_DTYPE_INT32: "int32",
    lib.SHF_DTYPE_INT64: "int64",
    lib.SHF_DTYPE_UINT8: "uint8",
    lib.SHF_DTYPE_UINT16: "uint16",
    lib.SHF_DTYPE_UINT32: "uint32",
    lib.SHF_DTYPE_UINT64: "uint64",
    lib.SHF_DTYPE_FLOAT16: "float16",
    lib.SHF_DTYPE_FLOAT32: "float32",
    lib.SHF_DTYPE_FLOAT64: "float64",
    lib.SHF_DTYPE_COMPLEX64: "complex64",
    lib.SHF_DTYPE_COMPLEX128: "complex128",
    lib.SHF_DTYPE_BFLOAT16: "bfloat16",
}
DTYPE_NAMES = frozenset(_DTYPES.values())
_KINDS: dict[int, str] = {
    lib.SHF_COLUMN_ARRAY: "array",
    lib.SHF_COLUMN_BYTES: "bytes",
    lib.SHF_COLUMN_TEXT: "text",
    lib.SHF_COLUMN_JSON: "json",
    lib.SHF_COLUMN_MSGPACK: "msgpack",
}
KEYS, URLS = "__key__", "__url__"
VALID = "__valid__"  # with even="pad"
NO_FIELDS = (KEYS, URLS, VALID)  # columns of a batch that are no fields
# With mixup and cutmix: what belongs to the batch as a whole.
MIX_INDEX = "__mix_index__"
MIXED = (MIX_INDEX, "__mix_weight__", "__mix_box__")
_CPU = (1, 0)  # DLPack's number of the device


def _numpy() -> Any:
    try:
        import numpy
    except ModuleNotFoundError as missing:
        if missing.name != "numpy":
            raise
        raise ModuleNotFoundError(
            "arrays of batches need NumPy; help: pip install numpy", name="numpy"
        ) from None
    return numpy


def _bfloat16() -> Any:
    try:
        from ml_dtypes import bfloat16
    except ModuleNotFoundError as missing:
        if missing.name != "ml_dtypes":
            raise
        return "uint16"
    return bfloat16


class Column:
    """One column of a batch where it lies in memory: what batch.column(name) gives.

        column = batch.column("x")
        column.dtype, column.shape, column.kind
        torch.from_dlpack(column), numpy.from_dlpack(column), jax.dlpack.from_dlpack(column)

    kind: "array", or that of items of any length: "bytes", "text", "json" or "msgpack".
    shape: of the array; of a ragged column, that of the elements of all rows, one after another.
    row_ndim: the number of dimensions of a row.

    Memory is never copied, stays as long as anything made from a column is used, and may be
    written to. Columns are read-only in themselves.
    """

    __slots__ = (
        "_data", "_holder", "_number", "_offsets", "_shapes", "dtype", "kind", "name", "row_ndim",
        "shape",
    )  # fmt: skip

    name: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    row_ndim: int

    def __init__(
        self,
        name: str,
        kind: str,
        dtype: str,
        shape: tuple[int, ...],
        row_ndim: int,
        memory: tuple[Any, Any, Any],
        owner: tuple[_CData, int] | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.dtype = dtype
        self.shape = shape
        self.row_ndim = row_ndim
        # Writable buffers of bytes: the numbers, int64 offsets, int64 shapes. None when there are
        # none.
        self._data, self._offsets, self._shapes = memory
        # The library's batch and the number of the column there; none in a copy.
        self._holder: _CData | None
        self._holder, self._number = owner or (None, 0)

    @classmethod
    def received(cls, holder: _CData, number: int, name: str, array: _CData, rows: int) -> Column:
        """A column of a batch of the library."""
        # The destructor of a data pointer has nothing to do but to hold the batch until it runs. A
        # bound method of the holder does that; see _block.py.
        keep = holder.__eq__

        def memory(pointer: _CData, size: int) -> Any:
            return ffi.buffer(ffi.gc(pointer, keep), size) if pointer and size else None

        row_ndim = array.row_ndim
        return cls(
            name,
            _KINDS[array.kind],
            _DTYPES[array.dtype],
            tuple(ffi.unpack(array.shape, array.ndim)),
            row_ndim,
            (
                memory(array.data, array.size),
                memory(array.offsets, 8 * (rows + 1)),
                memory(array.shapes, 8 * rows * row_ndim),
            ),
            (holder, number),
        )

    @property
    def is_ragged(self) -> bool:
        """Whether rows have lengths of their own: .offsets says where they begin."""
        return self._offsets is not None

    @property
    def offsets(self) -> NDArray[np.int64] | None:
        """Row i is elements offsets[i] up to offsets[i + 1]; None when all rows have one shape."""
        return None if self._offsets is None else self._int64(self._offsets, (-1,))

    @property
    def shapes(self) -> NDArray[np.int64] | None:
        """The shape of each row, in a ragged column, and before a row was padded with zeros."""
        return None if self._shapes is None else self._int64(self._shapes, (-1, self.row_ndim))

    @staticmethod
    def _int64(memory: Any, shape: tuple[int, ...]) -> NDArray[np.int64]:
        # Read-only, because rows are looked up by them.
        view = memoryview(memory).toreadonly()
        array: NDArray[np.int64] = _numpy().frombuffer(view, "int64").reshape(shape)
        return array

    def bounds(self) -> memoryview:
        """The offsets, without NumPy."""
        return memoryview(b"" if self._offsets is None else self._offsets).cast("q")

    def view(self) -> memoryview:
        """All bytes of the column."""
        return memoryview(b"" if self._data is None else self._data).toreadonly()

    # ---- Other packages ----

    def numpy(self) -> NDArray[Any]:
        """The elements as a NumPy array of this shape, over the same memory.

        NumPy has no bfloat16: the array has that of the package ml_dtypes where it is installed,
        and else the bits as uint16.
        """
        dtype: Any = self.dtype if self.dtype != "bfloat16" else _bfloat16()
        array: NDArray[Any] = _numpy().ndarray(self.shape, dtype, self._data)
        return array

    def torch(self) -> Any:
        """The elements as a PyTorch tensor of this shape, over the same memory.

        UnsupportedError for uint16, uint32 and uint64 before PyTorch 2.3, which has none.
        """
        import torch

        dtype = getattr(torch, self.dtype, None)
        if dtype is None:
            raise UnsupportedError(
                f'column "{self.name}": PyTorch {torch.__version__} has no {self.dtype}; help: '
                f'take batch["{self.name}"] and convert it, or upgrade to PyTorch 2.3'
            )
        if self._data is None:
            return torch.empty(self.shape, dtype=dtype)
        return torch.frombuffer(self._data, dtype=dtype).reshape(self.shape)

    def torch_indices(self) -> tuple[Any, Any]:
        """Offsets and shapes as tensors, over the same memory; None where there are none."""
        import torch

        offsets, shapes = (
            None if memory is None else torch.frombuffer(memory, dtype=torch.int64)
            for memory in (self._offsets, self._shapes)
        )
        return offsets, None if shapes is None else shapes.reshape(-1, self.row_ndim)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The elements as a DLPack capsule; of version 1 for consumers that know of versions."""
        if dl_device is not None and tuple(dl_device) != _CPU:
            raise BufferError("the memory of a batch is in main memory")
        versioned = max_version is not None and max_version[0] >= 1
        if copy or self._holder is None:
            array = self.numpy().copy() if copy else self.numpy()
            return array.__dlpack__(max_version=max_version) if versioned else array.__dlpack__()
        from ._capsule import capsule  # ctypes is slow to import

        out = ffi.new("void **")
        error = ffi.new("shf_error *")
        if lib.shf_batch_dlpack(self._holder[0], self._number, versioned, out, error):
            raise error_from(error)
        return capsule(b"dltensor_versioned" if versioned else b"dltensor", out[0])

    # ---- Copies ----

    def pinned(self) -> Column:
        """A copy whose numbers are in pinned memory, for fast copies to a GPU."""
        import torch

        data = self._data
        if data is not None:
            data = memoryview(torch.frombuffer(data, dtype=torch.uint8).pin_memory().numpy())
        memory = data, self._offsets, self._shapes
        return Column(self.name, self.kind, self.dtype, self.shape, self.row_ndim, memory)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[object, ...]:
        memory = (self._data, self._offsets, self._shapes)
        copy: Callable[[Any], object] = bytearray
        if operator.index(protocol) >= 5:
            from pickle import PickleBuffer as copy  # noqa: N813  it is the pickler that copies
        copies = [None if part is None else copy(part) for part in memory]
        what = self.name, self.kind, self.dtype, self.shape, self.row_ndim
        return _copied_column, (*what, copies)

    def __repr__(self) -> str:
        ragged = " ragged" if self.is_ragged else ""
        return f"<shardfeed.Column {self.name!r} {self.kind}{ragged} {self.dtype} {self.shape}>"


def _copied_column(
    name: str, kind: str, dtype: str, shape: tuple[int, ...], row_ndim: int, memory: list[Any]
) -> Column:
    data, offsets, shapes = (
        # Pickled outside of the stream, it may be anything with bytes.
        part if part is None or not memoryview(part).readonly else bytearray(part)
        for part in memory
    )
    return Column(name, kind, dtype, shape, row_ndim, (data, offsets, shapes))


class Columns:
    """The columns of a batch by name; each is looked up when it is asked for."""

    __slots__ = ("_made", "holder", "numbers", "rows")

    def __init__(
        self, rows: int, numbers: dict[str, int], made: dict[str, Column], holder: _CData | None
    ) -> None:
        self.rows = rows
        self.numbers = numbers  # of the columns in the library's batch, in their order
        self.holder = holder  # of the library's batch; none in a copy
        self._made = made  # in a copy all of them

    def find(self, name: str) -> Column:
        """A column. KeyError."""
        column = self._made.get(name)
        if column is None:
            number = self.numbers[name]
            assert self.holder is not None
            array = ffi.new("shf_array *")
            lib.shf_batch_column(self.holder[0], number, ffi.NULL, array)
            column = Column.received(self.holder, number, name, array, self.rows)
            self._made[name] = column
        return column

    def all(self) -> dict[str, Column]:
        return {name: self.find(name) for name in self.numbers}


class Ragged(Sequence[Any]):
    """Arrays of unequal shape, one after another in one array.

        ragged = batch["x.npy"]             # with ragged="offsets"
        ragged[0], ragged[-1], len(ragged)  # the array of a row, a view; the number of rows
        ragged.values                       # the elements of all rows, of one dimension
        ragged.offsets, ragged.shapes       # where each row begins, and its shape

    Of NumPy arrays in batch[name], and of PyTorch tensors in batch.torch()[name]. `shapes` is None
    where rows are single numbers.
    """

    __slots__ = ("offsets", "shapes", "values")

    def __init__(self, values: Any, offsets: Any, shapes: Any) -> None:
        self.values = values
        self.offsets = offsets
        self.shapes = shapes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, row: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, row: slice) -> list[Any]: ...
    def __getitem__(self, row: SupportsIndex | slice) -> Any:
        if isinstance(row, slice):
            return [self[number] for number in range(*row.indices(len(self)))]
        number = _row(row, len(self))
        start, stop = int(self.offsets[number]), int(self.offsets[number + 1])
        values = self.values[start:stop]
        if self.shapes is not None:
            return values.reshape(self.shapes[number].tolist())
        return values.reshape(()) if stop - start == 1 else values

    def __repr__(self) -> str:
        return f"<shardfeed.Ragged {len(self)} rows {self.values.dtype}>"


def _row(row: SupportsIndex, rows: int) -> int:
    number = operator.index(row)
    if not -rows <= number < rows:
        raise IndexError(f"row {number} of {rows}")
    return number + rows if number < 0 else number


def _text(view: memoryview) -> str:
    return str(view, "utf-8", "surrogateescape")


def _json(view: memoryview) -> Any:
    return json.loads(bytes(view))


def _msgpack(view: memoryview) -> Any:
    try:
        import msgpack
    except ModuleNotFoundError as missing:
        if missing.name != "msgpack":
            raise
        raise ModuleNotFoundError(
            "msgpack columns need the package msgpack; help: pip install msgpack, or take .raw",
            name="msgpack",
        ) from None
    return msgpack.unpackb(view)


# Of exceptions of msgpack that have a name and no words.
_CAUSES = {"StackError": "nested too deep", "FormatError": "a byte that begins no value"}


def _cause(error: Exception) -> str:
    name = type(error).__name__
    return str(error) or _CAUSES.get(name, name)


_ITEMS: dict[str, Callable[[memoryview], Any]] = {
    "bytes": bytes,
    "text": _text,
    "json": _json,
    "msgpack": _msgpack,
}


class BytesColumn(Sequence[Any]):
    """The bytes, texts or objects of a column; each is made when it is asked for.

        batch["txt"][0]         # a str
        batch["json"][-1]       # what json.loads() makes of it
        batch["json"].raw[-1]   # its bytes
        list(batch["flac"])     # of bytes; batch["flac"].tolist() is the same

    kind: "bytes", "text", "json" or "msgpack". values and offsets: the bytes of all rows, one after
    another, and where each begins, as NumPy arrays.
    """

    __slots__ = ("_bounds", "_column", "_columns", "_empty_is_none", "_item", "_view", "kind")

    def __init__(
        self,
        column: Column,
        kind: str,
        columns: Columns,
        empty_is_none: bool = False,
    ) -> None:
        self.kind = kind
        self._column = column
        self._view = column.view()
        self._bounds = column.bounds()
        self._item = _ITEMS[kind]
        self._columns = columns  # for messages that say which row
        self._empty_is_none = empty_is_none

    @property
    def raw(self) -> BytesColumn:
        """The same column, as bytes."""
        return BytesColumn(self._column, "bytes", self._columns)

    @property
    def values(self) -> NDArray[np.uint8]:
        return self._column.numpy()

    @property
    def offsets(self) -> NDArray[np.int64]:
        offsets = self._column.offsets
        assert offsets is not None
        return offsets

    def __len__(self) -> int:
        return len(self._bounds) - 1

    @overload
    def __getitem__(self, row: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, row: slice) -> list[Any]: ...
    def __getitem__(self, row: SupportsIndex | slice) -> Any:
        if isinstance(row, slice):
            return [self._at(number) for number in range(*row.indices(len(self)))]
        return self._at(_row(row, len(self)))

    def __iter__(self) -> Iterator[Any]:
        return map(self._at, range(len(self)))

    def tolist(self) -> list[Any]:
        """All items."""
        return list(self)

    def _at(self, row: int) -> Any:
        item = self._view[self._bounds[row] : self._bounds[row + 1]]
        if self._empty_is_none and not item:
            return None  # of a sample without the field, under missing=empty
        try:
            return self._item(item)
        except (ValueError, TypeError) as error:
            key, url = (texts_of(self._columns.find(name))[row] for name in (KEYS, URLS))
            raise FormatError(
                f"{url}: {key}.{self._column.name}: not {self.kind}: {_cause(error)}; help: take "
                ".raw, the bytes"
            ) from error

    def __repr__(self) -> str:
        return f"<shardfeed.BytesColumn {len(self)} rows {self.kind}>"


def texts_of(column: Column) -> list[str]:
    """The texts of all rows."""
    view, bounds = column.view(), column.bounds().tolist()
    whole = _text(view)
    if len(whole) == len(view):  # one character for each byte
        return [whole[start:stop] for start, stop in zip(bounds, bounds[1:])]
    return [_text(view[start:stop]) for start, stop in zip(bounds, bounds[1:])]


def checked_array(column: Column) -> Column:
    """The column, if it has numbers."""
    if column.kind != "array":
        raise UsageError(
            f'the field "{column.name}" is {column.kind} and no array; help: say what it is, as '
            '"npy", or use decode()'
        )
    return column
