"""Rows that a transform made, as the columns of a batch."""

from __future__ import annotations

import math
import sys
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from ._batch import Batch
from ._column import DTYPE_NAMES, MIX_INDEX, MIXED, NO_FIELDS, Column

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Row = Mapping[str, Any]
    # Makes writable memory of so many bytes.
    Allocate = Callable[[int], Any]


SEED = "__seed__"
# Columns that transforms do not make.
_CARRIED = (*MIXED, *NO_FIELDS)
# What rows have beside their fields.
_BESIDE = (*_CARRIED, SEED)


class Making(NamedTuple):
    """How columns are made."""

    allocate: Allocate
    ragged: Mapping[str, str]  # "offsets" or "pad": fields whose arrays have shapes of their own


class OddRowError(Exception):
    """A row that does not fit to the others: its position among them, and why."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(why)
        self.position = position
        self.why = why


def stacked(
    batch: Batch,
    kept: Sequence[int],
    rows: Sequence[Row],
    given: Mapping[str, Sequence[Any]],
    making: Making,
) -> Batch:
    """The batch of the rows that were made of some rows of a batch. OddRowError.

    kept: the numbers of those rows. given: the values that the transform got, by column. A column
    whose values it returned as they were is not copied.
    """
    whole = len(kept) == len(batch)
    columns: dict[str, Column] = {}
    for name in _CARRIED:
        if name in batch:
            columns[name] = batch.column(name) if whole else _some_rows(batch, name, kept)
    names = _names(rows)
    for name in making.ragged:
        if name not in names:
            raise OddRowError(
                0,
                f'it has no field "{name}", which transform_ragged names; help: return it, or '
                "leave it out there",
            )
    objects: dict[str, list[Any]] = {}
    for name in names:
        values = [row[name] for row in rows]
        before = given.get(name)
        if (
            whole
            and before is not None
            and all(map(_is_same, values, before))
            and making.ragged.get(name) in (None, _how_ragged(batch.column(name)))
        ):
            columns[name] = batch.column(name)
            if name in batch.hooked:
                objects[name] = values
        else:
            column = _column(name, values, making)
            if column is None:
                column = Column(name, "bytes", "uint8", (0,), 1, (None, None, None))
                objects[name] = values
            columns[name] = column
    return batch.with_columns(len(kept), columns, objects)


def _is_same(one: object, other: object) -> bool:
    return one is other


def _how_ragged(column: Column) -> str | None:
    if column.is_ragged:
        return "offsets"
    return None if column.shapes is None else "pad"


def _names(rows: Sequence[Row]) -> list[str]:
    """The columns, of which every row must have the same."""
    names = [tuple(name for name in row if name not in _BESIDE) for row in rows]
    usual = _usual([frozenset(own) for own in names])
    for position, own in enumerate(names):
        if frozenset(own) != usual:
            raise OddRowError(
                position,
                f"it has the fields {_listed(sorted(own))}, and others {_listed(sorted(usual))}; "
                "help: return the same fields for every sample",
            )
        for name in own:
            if not isinstance(name, str):
                raise OddRowError(
                    position,
                    f"a field is called {name!r}, which is no str; help: return a dict of fields",
                )
    return list(next(own for own in names if frozenset(own) == usual))


def _usual(found: Sequence[Any]) -> Any:
    return Counter(found).most_common(1)[0][0]


def _listed(names: Sequence[object]) -> str:
    return ", ".join(map(repr, names)) or "none"


def _column(name: str, values: Sequence[Any], making: Making) -> Column | None:
    """A column of values; None for what is no column, but a list of objects."""
    allocate = making.allocate
    kinds = [_kind(value) for value in values]
    usual = _usual(kinds)
    if name in making.ragged:
        return _ragged_column(name, values, kinds, making)
    if any(kind != usual for kind in kinds):
        numbers = {"int", "float", "bool"}
        if {kind[0] for kind in kinds} <= numbers:
            usual = ("float", (), "float64")  # as NumPy joins them
        else:
            position = next(at for at, kind in enumerate(kinds) if kind != usual)
            raise OddRowError(
                position,
                f'the field "{name}" is {_shown(kinds[position])}, and in other samples '
                f"{_shown(usual)}; help: return the same shape and type for every sample, or name "
                f'the field: transform_ragged={{"{name}": "offsets"}} or "pad"',
            )
    kind, shape, dtype = usual
    if kind in ("text", "bytes"):
        return _items(name, kind, values, allocate)
    if kind == "object" or dtype not in DTYPE_NAMES:
        return None
    import numpy

    whole = len(values), *shape
    if kind == "tensor":
        import torch

        to = _torch_memory(whole, values[0].dtype, allocate)
        torch.stack([_plain(value) for value in values], out=to[0])
        memory = to[1]
    else:
        made = numpy.dtype(dtype if kind != "array" else values[0].dtype)
        size = made.itemsize * len(values)
        for length in shape:
            size *= length
        memory = allocate(size) if size else None
        array: Any = numpy.ndarray(whole, made, memory)
        if kind != "array":
            try:
                array[:] = values
            except OverflowError:
                return None  # integers of more than 64 bits
        elif size:
            numpy.stack(values, out=array)
    return Column(name, "array", dtype, whole, len(shape), (memory, None, None))


def _ragged_column(
    name: str,
    values: Sequence[Any],
    kinds: Sequence[tuple[str, tuple[int, ...], str]],
    making: Making,
) -> Column:
    """Rows one after another, or filled up with zeros, as decoded ones are."""
    import numpy

    what, first, dtype = usual = _usual([(kind, len(shape), own) for kind, shape, own in kinds])
    if what not in ("array", "tensor") or not first or dtype not in DTYPE_NAMES:
        raise OddRowError(
            0,
            f'the field "{name}" is {_shown(kinds[0])}, and no array with dimensions; help: '
            "return arrays or tensors for what transform_ragged names",
        )
    for position, (kind, shape, own) in enumerate(kinds):
        if (kind, len(shape), own) != usual:
            raise OddRowError(
                position,
                f'the field "{name}" is {_shown(kinds[position])}, and in other samples {what} '
                f"{dtype} of {first} dimensions; help: return one type and number of dimensions",
            )
    shapes: Any = numpy.array([shape for _, shape, _ in kinds], numpy.int64)
    sizes = [math.prod(shape) for _, shape, _ in kinds]
    as_bytes = [_bytes_of(value) for value in values]
    width = next((len(data) // size for data, size in zip(as_bytes, sizes) if size), 1)
    shape_memory = memoryview(shapes).cast("B")
    if making.ragged[name] == "offsets":
        total = sum(sizes)
        memory = making.allocate(total * width) if total else None
        if memory is not None:
            memoryview(memory)[:] = b"".join(as_bytes)
        offsets: Any = numpy.array([0, *accumulate(sizes)], numpy.int64)
        parts = memory, memoryview(offsets).cast("B"), shape_memory
        return Column(name, "array", dtype, (total,), first, parts)
    largest = tuple(int(side) for side in shapes.max(axis=0))
    size = math.prod(largest)
    memory = making.allocate(len(values) * size * width) if size else None
    if memory is not None:
        # Elements as the bytes that they are, whatever their type.
        element = f"V{width}"
        padded: Any = numpy.ndarray((len(values), *largest), element, memory)
        padded.reshape(-1).view("u1")[:] = 0
        for row, (_, shape, _), data in zip(padded, kinds, as_bytes):
            row[tuple(map(slice, shape))] = numpy.frombuffer(data, element).reshape(shape)
    whole = (len(values), *largest)
    return Column(name, "array", dtype, whole, first, (memory, None, shape_memory))


def _bytes_of(value: Any) -> Any:
    """The elements of an array or tensor, row after row."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        flat = _plain(value).contiguous().reshape(-1)
        return flat.view(torch.uint8).numpy().data if flat.numel() else b""
    import numpy

    flat = numpy.ascontiguousarray(value).reshape(-1)
    return flat.view("u1").data if flat.size else b""


def _torch_memory(shape: tuple[int, ...], dtype: Any, allocate: Allocate) -> tuple[Any, Any]:
    import torch

    empty = torch.empty(0, dtype=dtype)
    size = empty.element_size()
    for length in shape:
        size *= length
    if size == 0:
        return torch.empty(shape, dtype=dtype), None
    memory = allocate(size)
    return torch.frombuffer(memory, dtype=dtype).reshape(shape), memory


def _plain(tensor: Any) -> Any:
    import torch

    return tensor.detach().cpu().resolve_conj().resolve_neg().as_subclass(torch.Tensor)


def _kind(value: Any) -> tuple[str, tuple[int, ...], str]:
    """What a value is, its shape, and its type."""
    if isinstance(value, str):
        return "text", (), ""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "bytes", (), ""
    if isinstance(value, bool):
        return "bool", (), "bool"
    if isinstance(value, int):
        return "int", (), "int64"
    if isinstance(value, float) and type(value) is float:
        return "float", (), "float64"
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        dtype = value.dtype
        return "array", value.shape, dtype.name if dtype.isnative else ""
    if torch is not None and isinstance(value, torch.Tensor):
        return "tensor", tuple(value.shape), str(value.dtype).partition(".")[2]
    return "object", (), ""


def _shown(kind: tuple[str, tuple[int, ...], str]) -> str:
    what, shape, dtype = kind
    if what in ("array", "tensor"):
        return f"{what} {dtype} {shape}"
    return what


def _items(name: str, kind: str, values: Sequence[Any], allocate: Allocate) -> Column:
    """A column of texts or bytes."""
    encoded = (
        [value.encode("utf-8", "surrogateescape") for value in values]
        if kind == "text"
        else [bytes(value) for value in values]
    )
    return bytes_column(name, kind, encoded, allocate)


def bytes_column(name: str, kind: str, items: Sequence[bytes], allocate: Allocate) -> Column:
    import numpy

    size = sum(map(len, items))
    data = None
    if size:
        data = allocate(size)
        memoryview(data)[:] = b"".join(items)
    offsets: Any = numpy.array([0, *accumulate(map(len, items))], numpy.int64)
    memory = data, memoryview(offsets).cast("B"), None
    return Column(name, kind, "uint8", (size,), 1, memory)


def _some_rows(batch: Batch, name: str, kept: Sequence[int]) -> Column:
    """A column of a batch that is no field, without the rows that were dropped."""
    column = batch.column(name)
    if column.kind == "array":
        values: Any = column.numpy()
        values = _pairs_left(values, kept) if name == MIX_INDEX else values[list(kept)]
        memory = memoryview(values).cast("B") if len(kept) else None
        return Column(
            name, "array", column.dtype, values.shape, column.row_ndim, (memory, None, None)
        )
    view, bounds = column.view(), column.bounds()
    items = [bytes(view[bounds[row] : bounds[row + 1]]) for row in kept]
    return bytes_column(name, column.kind, items, bytearray)


def _pairs_left(partners: Any, kept: Sequence[int]) -> Any:
    """The row that each row is mixed with, among those that are left: the next in their circle."""
    place = {row: at for at, row in enumerate(kept)}
    left = partners[list(kept)]
    for at, partner in enumerate(left.tolist()):
        while partner not in place:
            partner = int(partners[partner])
        left[at] = place[partner]
    return left
