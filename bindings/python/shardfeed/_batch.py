"""Batches: the decoded fields of many samples, one column for each field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._column import KEYS, NO_FIELDS, URLS, VALID, BytesColumn, Column, Columns, Ragged, texts_of
from ._errors import FormatError, NoMemberError, UnsupportedError, UsageError, error_from
from ._hooks import hooks_of_columns
from ._native import ffi, lib
from ._ready_hooks import UnreadableFieldError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import SupportsIndex

    from ._hooks import Hook
    from ._native import _CData


def new_holder() -> _CData:
    """Where a call of the library puts a batch."""
    return ffi.gc(ffi.new("shf_batch **"), lib.python_unref_batch)


def column_numbers(holder: _CData) -> dict[str, int]:
    """The columns of a batch: name -> number. Batches of one stream have the same."""
    numbers: dict[str, int] = {}
    name = ffi.new("shf_bytes *")
    while not lib.shf_batch_column(holder[0], len(numbers), name, ffi.NULL):
        text = str(ffi.buffer(name.data, name.size), "utf-8", "surrogateescape")
        numbers[text] = len(numbers)
    return numbers


class Batch:
    """Some samples, decoded: a column for each field, by name.

        for batch in shardfeed.Stream(urls, decode="jpg:image/rgb8/resize=64x64, cls").batches(256):
            batch["jpg"]        # a NumPy array (256, 64, 64, 3) over the library's memory
            batch["cls"]        # int64 (256,)
            batch.torch()       # the same as PyTorch tensors
            batch.arrow()       # and as a pyarrow.RecordBatch
            len(batch), batch.sample_keys, batch.urls

    A column is a NumPy array; a Ragged, where rows have shapes of their own (ragged="offsets"); a
    BytesColumn of bytes, texts and objects of JSON and msgpack; or the list that a hook made of it.
    As in a DataFrame, keys(), items() and iteration are about columns, and len() is the number of
    rows.

    No column is copied. The memory is yours alone and may be written to. It stays as long as the
    batch or any array, tensor or view made from it, and is used again only when all are gone. A
    pickled batch is a copy.
    """

    __slots__ = ("__weakref__", "_columns", "_empty_is_none", "_hooked", "_hooks", "_values")

    def __init__(self, columns: Columns, *, empty_is_none: bool = False) -> None:
        self._columns = columns
        self._empty_is_none = empty_is_none
        self._hooks: dict[str, Hook] = {}
        self._hooked: dict[str, list[Any]] = {}  # what they made
        self._values: dict[str, Any] = {}  # of the columns that were asked for

    @classmethod
    def received(
        cls, holder: _CData, options: Mapping[str, str], numbers: dict[str, int] | None = None
    ) -> Batch:
        """The batch that a call of the library put into the holder; `numbers` if they are known."""
        rows = lib.shf_batch_row_count(holder[0])
        columns = Columns(rows, numbers or column_numbers(holder), {}, holder)
        return cls(columns, empty_is_none=options.get("missing") == "empty")

    def use_hooks(self, hooks: Mapping[str, Hook]) -> None:
        """Makes columns of bytes the lists that functions make of them, when they are asked for."""
        chosen = hooks_of_columns(hooks, self)
        for name in chosen:
            column = self.column(name)
            if column.kind != "bytes":
                raise UsageError(
                    f'hooks: the column "{name}" is {column.kind} and not bytes; help: give '
                    f'decode="{name}:bytes", or leave out the hook'
                )
        self._hooks = chosen

    @property
    def hooked(self) -> dict[str, list[Any]]:
        """The columns that are lists of what functions made, as far as those were called."""
        return self._hooked

    def with_columns(
        self, rows: int, columns: dict[str, Column], objects: dict[str, list[Any]]
    ) -> Batch:
        """A batch of other columns. objects: those of them that are lists."""
        numbers = {name: number for number, name in enumerate(columns)}
        made = Batch(Columns(rows, numbers, columns, None), empty_is_none=self._empty_is_none)
        made._hooked = objects
        return made

    # ---- Columns ----

    def __getitem__(self, name: str) -> Any:
        """The values of a column. KeyError for a name that is not there."""
        try:
            return self._values[name]
        except KeyError:
            value = self._values[name] = self._value(self.column(name))
            return value

    def _value(self, column: Column) -> Any:
        name = column.name
        if name in self._hooks and name not in self._hooked:
            self._hooked[name] = self._made_by(self._hooks[name], column)
        if name in self._hooked:
            return self._hooked[name]
        if column.kind != "array":
            return self._items(column)
        if column.is_ragged:
            return Ragged(column.numpy(), column.offsets, column.shapes)
        return column.numpy()

    def _made_by(self, hook: Hook, column: Column) -> list[Any]:
        made: list[Any] = []
        try:
            for value in map(hook, self._items(column)):
                made.append(value)  # how many there are says where it failed
        except UnreadableFieldError as unreadable:
            row = len(made)
            place = f"{self.urls[row]}: {self.sample_keys[row]}.{column.name}"
            raise FormatError(f"{place}: {unreadable}") from unreadable.__cause__
        return made

    def _items(self, column: Column) -> BytesColumn:
        return BytesColumn(column, column.kind, self._columns, self._empty_is_none)

    def column(self, name: str) -> Column:
        """A column as it lies in memory, for DLPack: torch.from_dlpack(batch.column("x"))."""
        try:
            return self._columns.find(name)
        except KeyError:
            shown = ", ".join(map(repr, self))
            raise NoMemberError(f"no column {name!r}; help: the columns are {shown}") from None

    def shapes(self, name: str) -> NDArray[np.int64] | None:
        """The shape of each row of a column: of (rows, dimensions of a row).

        In a padded column (ragged="pad") the shapes before zeros were added. None where all rows
        have the same shape.
        """
        return self.column(name).shapes

    @property
    def sample_keys(self) -> list[str]:
        """The key of each row; what is not UTF-8 in it are surrogate escapes."""
        return texts_of(self.column(KEYS))

    @property
    def urls(self) -> list[str]:
        """The URL of the shard of each row, without secrets."""
        return texts_of(self.column(URLS))

    @property
    def valid(self) -> NDArray[np.bool_]:
        """False for rows that are there only to fill up an epoch (even="pad"), so that metrics can
        leave them out.
        """
        if self.is_padded:
            valid: NDArray[np.bool_] = self[VALID]
            return valid
        import numpy

        return numpy.ones(len(self), dtype=bool)

    @property
    def is_padded(self) -> bool:
        """Whether there is batch["__valid__"]: rows may be there only to fill up an epoch."""
        return VALID in self._columns.numbers

    def __len__(self) -> int:
        """The number of rows."""
        return self._columns.rows

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, name: object) -> bool:
        return name in self._columns.numbers

    def keys(self) -> list[str]:
        """The names of the columns; batch["__key__"] and batch["__url__"] are there beside them."""
        return [name for name in self._columns.numbers if name not in NO_FIELDS]

    def values(self) -> list[Any]:
        """The values of each column."""
        return [self[name] for name in self]

    def items(self) -> list[tuple[str, Any]]:
        """Name and values of each column."""
        return [(name, self[name]) for name in self]

    def get(self, name: str, default: Any = None) -> Any:
        """The values of a column, or `default` when it is not there."""
        return self[name] if name in self._columns.numbers else default

    # ---- Other packages ----

    def torch(self) -> dict[str, Any]:
        """The columns with numbers as PyTorch tensors over the same memory, the others as they are.

            tensors = batch.torch()
            loss = model(tensors["jpg"], tensors["cls"])

        A ragged column is a Ragged of tensors. A padded one (ragged="pad", bucket) has
        "NAME.shape" beside it, as in arrow(): what shapes() gives, of (rows, dimensions of a row).
        torch.arange(tensors["npy"].shape[1]) < tensors["npy.shape"] is then the mask of rows of one
        dimension. For uint16, uint32 and uint64, which PyTorch has since 2.3, older ones raise
        UnsupportedError.
        """
        tensors = {name: self._tensor(self.column(name)) for name in self}
        for column in map(self.column, self):
            if column.kind == "array" and not column.is_ragged and column.shapes is not None:
                tensors.setdefault(f"{column.name}.shape", column.torch_indices()[1])
        return tensors

    def _tensor(self, column: Column) -> Any:
        if column.kind != "array":
            return self[column.name]
        values = column.torch()
        return Ragged(values, *column.torch_indices()) if column.is_ragged else values

    def pin_memory(self, device: object = None) -> Batch:
        """A copy whose tensors are in pinned memory; this batch itself where there is no CUDA.

        torch.utils.data.DataLoader(..., pin_memory=True) calls it.
        """
        import torch

        if not torch.cuda.is_available():
            return self
        columns = {
            name: column.pinned() if column.kind == "array" else column
            for name, column in self._columns.all().items()
        }
        batch = self.with_columns(len(self), columns, self._hooked)
        batch._hooks = self._hooks
        return batch

    def arrow(self) -> Any:
        """The batch as a pyarrow.RecordBatch over the same memory.

        Numbers are columns of their type; rows that are arrays are fixed-size lists (extension type
        arrow.fixed_shape_tensor) or, when ragged, large lists; shapes of rows are a column
        "NAME.shape"; keys and URLs are "__key__" and "__url__". Needs pyarrow 14. Other packages
        that know the Arrow PyCapsule interface take a batch as it is: polars.from_arrow(batch).
        """
        try:
            import pyarrow
        except ModuleNotFoundError as missing:
            if missing.name != "pyarrow":
                raise
            raise ModuleNotFoundError(
                "arrow() needs pyarrow; help: pip install pyarrow", name="pyarrow"
            ) from None
        return pyarrow.record_batch(self)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """The capsules of the Arrow PyCapsule interface. Schemas that are asked for are not made:
        the interface leaves it to the consumer to cast.
        """
        if self._columns.holder is None:
            raise UnsupportedError(
                "a batch that was pickled, pinned or transformed has no Arrow form; help: call "
                "arrow() before, and pickle what it gives"
            )
        from ._capsule import capsule  # ctypes is slow to import

        array, schema = ffi.new("void **"), ffi.new("void **")
        error = ffi.new("shf_error *")
        if lib.python_arrow(self._columns.holder, array, schema, error):
            raise error_from(error)
        return capsule(b"arrow_schema", schema[0]), capsule(b"arrow_array", array[0])

    # ---- Copies ----

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[object, ...]:
        # Functions often cannot be pickled; what they make of the bytes usually can.
        for name in self._hooks:
            self[name]
        return _copied_batch, (len(self), self._columns.all(), self._empty_is_none, self._hooked)

    def _repr_html_(self) -> str:
        from ._notebook import batch_html

        return batch_html(self)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}: {column.kind}"
            if column.kind != "array"
            else f"{name}: {column.dtype} {'ragged' if column.is_ragged else column.shape}"
            for name, column in self._columns.all().items()
            if name not in NO_FIELDS
        )
        return f"<shardfeed.Batch {len(self)} rows {shown}>"


def _copied_batch(
    rows: int, columns: dict[str, Column], empty_is_none: bool, hooked: dict[str, Any]
) -> Batch:
    empty = Batch(Columns(0, {}, {}, None), empty_is_none=empty_is_none)
    return empty.with_columns(rows, columns, hooked)
