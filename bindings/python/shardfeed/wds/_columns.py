"""Stages that are carried out on columns: all samples of a block at once, a field after another.

The result is that of the stages one after another, by construction: only fields whose decoders
touch nothing else are decoded so, what stages do with names is what they do with a sample of these
names, and samples in which anything fails go through the stages themselves, one by one.
"""

from __future__ import annotations

import json
from itertools import chain
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _collation, _fast, _keys, _loads, autodecode
from ._rows import Part
from ._stage import FilterFunction, arguments_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    # Names, or None for tuples, and a column of values for each.
    Table = tuple[tuple[str, ...] | None, list[Any]]

# Rows that select() drops were decoded in vain: after a part of which less than this share stays,
# samples of the next parts are processed one by one.
_LEAST_KEPT = 0.7
# After samples that had to go one by one, the next ones do too, for so many parts at most.
_MOST_WAITING = 63
_MOST_NAMES = 1024
_SELECTING = (_keys._rename, _keys._rename_keys, _keys._to_tuple, _keys._extract_keys)


class _OneByOneError(Exception):
    """These samples have to go through the stages themselves."""


# ---- Which stages ----


def column_stages(stages: list[Any], decoder_of: Callable[[Any], Any]) -> int:
    """How many of the first stages can be carried out on columns; 0 where it would gain nothing.

    select() is one of them only right before decode(), for .npy files: elsewhere, to call its
    function where it was called costs more than columns gain.
    """
    gains, is_decoded = False, False
    count = selecting = 0  # selecting: so many of them are select() at their end
    for stage in stages:
        if not isinstance(stage, FilterFunction):
            break
        decoder = decoder_of(stage)
        if decoder is not None:
            if is_decoded or not _is_basic(decoder):
                break
            gains = is_decoded = True
            selecting = 0
        elif predicate_of(stage) is not None and not is_decoded:
            selecting += 1
        elif selecting:
            break
        elif is_batched(stage):
            return count + 1
        elif stage.f not in _SELECTING:
            break
        count += 1
        if stage.f in (_keys._to_tuple, _keys._extract_keys):
            following = stages[count] if count < len(stages) else None
            return count + 1 if is_batched(following) else count if gains else 0
    return count - selecting if gains else 0


def predicate_of(stage: Any) -> Callable[[Any], Any] | None:
    """The function of select(); None for other stages."""
    from .filters import _select

    given = arguments_of(stage, _select, ("predicate",))
    return None if given is None else given.get("predicate")


def is_batched(stage: Any) -> bool:
    """Whether a stage is batched() with the collation of this package."""
    return _batching(stage) is not None


def _batching(stage: Any) -> tuple[int, bool] | None:
    """The size of batches, and whether the last may be smaller; None where not all is usual."""
    names = ("batchsize", "collation_fn", "partial")
    given = arguments_of(stage, _collation._batched, names)
    if given is None:
        return None
    usual = _collation.default_collation_fn
    size = given.get("batchsize", 20)
    if given.get("collation_fn", usual) is not usual or type(size) is not int or size < 1:
        return None
    return size, bool(given.get("partial", True))


def _is_basic(decoder: Any) -> bool:
    return isinstance(_fast.fast(decoder), _fast.FastDecoder) and all(
        handler in (autodecode.gzfilter, autodecode.basichandlers) for handler in decoder.handlers
    )


# ---- Columns of values ----


class _Arrays:
    """A column of .npy files of one layout, which become arrays when somebody wants them alone."""

    def __init__(self, data: list[bytes], layout: _loads.Layout) -> None:
        self.data = data
        self.layout = layout
        self._values: list[Any] | None = None

    def __getitem__(self, part: slice) -> _Arrays:
        return _Arrays(self.data[part], self.layout)

    def values(self) -> list[Any]:
        """The arrays; the same ones each time."""
        if self._values is None:
            self._values = list(map(_loads.npy_loads, self.data))
        return self._values


def _stacked(data: list[bytes], layout: _loads.Layout) -> Any:
    """The array that numpy.array() makes of all of them, each copied once."""
    import numpy

    header, dtype, order, shape, size = layout
    first = len(header)
    end = first + size
    turned = shape[::-1] if order == "F" else shape
    stack = numpy.empty((len(data), *turned), dtype)
    pieces: Any = stack.reshape(-1).view(numpy.uint8)
    memory = memoryview(pieces)
    if size < 4096:
        memory[:] = b"".join([each[first:end] for each in data])
    else:
        for number, each in enumerate(data):
            memory[number * size : (number + 1) * size] = memoryview(each)[first:end]
    if order == "F":
        axes = range(len(shape), 0, -1)
        return stack.transpose(0, *axes).copy(order="C")
    return stack


def _values(column: Any) -> list[Any]:
    return column.values() if type(column) is _Arrays else column


def _rows(names: tuple[str, ...] | None, columns: list[Any]) -> Iterable[Any]:
    rows = zip(*map(_values, columns))
    return rows if names is None else [dict(zip(names, row)) for row in rows]


class _Columns:
    """Some items of the last stage: columns, one for each name or position."""

    __slots__ = ("columns", "count", "names")

    def __init__(self, names: tuple[str, ...] | None, columns: list[Any], count: int) -> None:
        self.names = names
        self.columns = columns
        self.count = count

    def cut(self, first: int, last: int) -> _Columns:
        part = slice(first, last)
        return _Columns(self.names, [column[part] for column in self.columns], last - first)

    def rows(self) -> Iterable[Any]:
        return _rows(self.names, self.columns)

    def picked(self, indices: list[int]) -> _Columns:
        return _Columns(self.names, [_picked(c, indices) for c in self.columns], len(indices))


def _picked(column: Any, indices: list[int]) -> Any:
    if type(column) is _Arrays:
        return _Arrays(_picked(column.data, indices), column.layout)
    return [column[index] for index in indices]


def _joined(columns: list[Any]) -> Any:
    """A column of a batch, of its parts: what combine_values() makes of their values."""
    first = columns[0]
    # Of others numpy.array() makes another type or order of bytes, or refuses so many dimensions.
    usual = type(first) is _Arrays and first.layout.dtype.isnative and len(first.layout.shape) < 16
    if usual:
        header = first.layout.header
        if all(type(c) is _Arrays and c.layout.header == header for c in columns):
            return _stacked([each for column in columns for each in column.data], first.layout)
    return _collation.combine_values([each for column in columns for each in _values(column)])


def _batch(items: list[Any]) -> Any:
    """What the usual collation makes of items: rows, or _Columns of some."""
    first = items[0]
    if type(first) is _Columns:
        names, width = first.names, len(first.columns)
        if all(
            type(each) is _Columns and each.names == names and len(each.columns) == width
            for each in items
        ):
            joined = [_joined(list(parts)) for parts in zip(*(each.columns for each in items))]
            if names is None:
                return tuple(joined)
            known = dict(zip(names, joined))
            return {name: known[name] for name in set(known)}
    rows: list[Any] = []
    for each in items:
        if type(each) is _Columns:
            rows += each.rows()
        else:
            rows.append(each)
    return _collation.default_collation_fn(rows)


# ---- Stages on columns ----


def _bytes_alone(column: list[Any]) -> list[Any]:
    if type(column[0]) is not bytes:
        raise _OneByOneError
    return column


def _metadata(column: list[Any]) -> list[Any]:
    if type(column[0]) is not str:
        raise _OneByOneError
    return column


def _arrays(column: list[Any]) -> Any:
    """A column of .npy files; arrays where their layouts differ."""
    first = _loads.npy_layout(_bytes_alone(column)[0])
    if first is None:
        raise _OneByOneError
    header = first.header
    size = len(header) + first.size
    for data in column:
        if len(data) < size or not data.startswith(header):
            break
    else:
        return _Arrays(column, first)
    if None in map(_loads.npy_layout, column):
        raise _OneByOneError  # NumPy has to read it, and may warn
    return list(map(_loads.npy_loads, column))


def _column_decoder(fast: _fast.FastDecoder, name: str) -> Callable[[list[Any]], Any] | None:
    """What decodes a column of this name; None where its decoder may touch something else."""
    only = fast.decoder.only
    if name[:2] == "__":
        return _metadata
    if only is not None and name not in only:
        return _whole
    first = _fast.first_step(fast.decoder, name)
    if first is _fast._kept:
        return _bytes_alone
    if first is _loads.npy_loads:
        return _arrays
    if first is int:
        return lambda column: list(map(int, _bytes_alone(column)))
    if first is _loads.text_loads:
        return lambda column: list(map(bytes.decode, _bytes_alone(column)))
    if first is json.loads or first is _loads.msgpack_loads:
        decode = fast.function_of(name)
        return lambda column: list(map(decode, _bytes_alone(column)))
    return None


def _whole(column: list[Any]) -> list[Any]:
    return column


class _Decoding:
    """decode() on columns."""

    def __init__(self, decoder: autodecode.Decoder) -> None:
        self.fast = _fast.FastDecoder(decoder)
        self._known: dict[tuple[str, ...], list[Any]] = {}

    def __call__(self, names: tuple[str, ...] | None, columns: list[Any]) -> Table:
        functions = self._known.get(names or ())
        if functions is None:
            if names is None or "__key__" not in names:  # it would be added
                raise _OneByOneError
            functions = [_column_decoder(self.fast, name) for name in names]
            if len(self._known) < _MOST_NAMES:
                self._known[names] = functions
        if None in functions:
            raise _OneByOneError
        return names, [decode(column) for decode, column in zip(functions, columns)]


class _Selecting:
    """rename(), to_tuple() and the like on columns."""

    def __init__(self, stage: FilterFunction) -> None:
        self.stage = stage
        self._known: dict[tuple[str, ...], tuple[tuple[str, ...] | None, list[Any]]] = {}

    def __call__(self, names: tuple[str, ...] | None, columns: list[Any]) -> Table:
        known = self._known.get(names or ())
        if known is None:
            if names is None:
                raise _OneByOneError
            known = self._worked_out(names)
            if len(self._known) < _MOST_NAMES:
                self._known[names] = known
        new, sources = known
        return new, [columns[at] for at in sources]

    def _worked_out(self, names: tuple[str, ...]) -> tuple[tuple[str, ...] | None, list[Any]]:
        """New names, and which column each one is: the stage makes it of a sample of numbers."""
        kw = {name: value for name, value in self.stage.kw.items() if name != "handler"}
        numbers = [{name: at for at, name in enumerate(names)}]
        (result,) = self.stage.f(numbers, *self.stage.args, **kw)
        sources = list(result.values()) if isinstance(result, dict) else list(result)
        if not sources or None in sources:
            raise _OneByOneError
        return tuple(result) if isinstance(result, dict) else None, sources


class _Choosing(NamedTuple):
    """select() on samples of some columns, which the stages behind it were already made of."""

    at: int  # which stage it is
    predicate: Callable[[Any], Any]
    names: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    samples: list[dict[str, Any]]


class ColumnStages:
    """Stages that column_stages() found, as one."""

    def __init__(self, stages: list[Any], decoder_of: Callable[[Any], Any]) -> None:
        last = stages[-1]
        self._batches = _batching(last)
        # One by one: what each stage is without columns.
        self._chain: list[Callable[[Any], Any]] = []
        # On columns; the function of select() is none of them.
        self._steps: list[Callable[[Any, Any], Table] | None] = []
        self._predicates: dict[int, Callable[[Any], Any]] = {}
        for stage in stages if self._batches is None else stages[:-1]:
            decoder = decoder_of(stage)
            if decoder is not None:
                self._chain.append(_mapping(_fast.fast(decoder), stage.kw))
                self._steps.append(_Decoding(decoder))
                continue
            predicate = predicate_of(stage)
            if predicate is not None:
                self._predicates[len(self._chain)] = predicate
            self._chain.append(stage)
            self._steps.append(None if predicate is not None else _Selecting(stage))

    def __call__(self, source: Iterable[Any]) -> Iterator[Any]:
        """The items of the last stage."""
        parts = _Parts(self._steps, self._predicates)
        items = self._items(iter(source), parts)
        if self._batches is None:
            return _alone(items)
        return _batched(items, *self._batches, parts)

    def _items(self, source: Iterator[Any], parts: _Parts) -> Iterator[Any]:
        """_Columns, and items that were made one by one."""
        for part in source:
            columns = parts.columns(part)
            changed = None
            while True:
                if columns is None:
                    rest = _OneByOne(source, parts)
                    items: Any = rest.samples(part)
                elif parts.choosing:
                    changed = yield from parts.chosen(columns)
                    if changed is None:
                        break
                    rest = _OneByOne(source, parts)
                    items = rest.samples(_after(part, changed[1]))
                else:
                    yield columns
                    break
                del columns, part  # its block is free for what comes
                for number, stage in enumerate(self._chain):
                    items = stage(items)
                    if changed is not None and number == changed[0]:
                        items = chain([changed[2]], items)
                changed = None
                yield from items
                columns, part = rest.columns, rest.part
                if columns is None:
                    return  # the end, or a handler has ended it


def _mapping(function: Any, kw: dict[str, Any]) -> Callable[[Any], Any]:
    from .filters import _map

    handler = {name: value for name, value in kw.items() if name == "handler"}
    return lambda source: _map(source, function, **handler)


class _Parts:
    """Makes columns of parts, as long as that succeeds."""

    def __init__(
        self,
        steps: list[Callable[[Any, Any], Table] | None],
        predicates: dict[int, Callable[[Any], Any]],
    ) -> None:
        self.steps = steps
        self.predicates = predicates
        self.choosing: list[_Choosing] = []  # of the last columns
        self.needed = 1  # with so many more items the program is given something
        self.waiting = 0  # parts that are not tried
        self.next_waiting = 1

    def columns(self, part: Any) -> _Columns | None:
        """The columns that the stages make of a part; None for what has to go one by one."""
        self.choosing = []
        if type(part) is dict:
            return None
        if self.waiting:
            self.waiting -= 1
            return None
        try:
            found = part.columns() if type(part) is Part else _columns_of(part)
            if found is None:
                raise _OneByOneError
            table: Table = found
            for at, step in enumerate(self.steps):
                table = self._seen(at, *table) if step is None else step(*table)
            if self.choosing and not any(type(column) is _Arrays for column in table[1]):
                self.next_waiting = _MOST_WAITING  # it gains nothing
                raise _OneByOneError
        except Exception:  # which sample it is, and what is wrong, the stages will say
            self.waiting = self.next_waiting
            self.next_waiting = min(2 * self.next_waiting + 1, _MOST_WAITING)
            return None
        self.next_waiting = 1
        return _Columns(*table, len(part))

    def _seen(self, at: int, names: tuple[str, ...] | None, columns: list[Any]) -> Table:
        """The same columns, which the function of select() is going to see as samples."""
        if names is None:
            raise _OneByOneError
        if self.choosing:  # right before: the same dicts
            self.choosing.append(self.choosing[-1]._replace(at=at, predicate=self.predicates[at]))
            return names, columns
        rows = list(zip(*columns))
        samples = [dict(zip(names, row)) for row in rows]
        self.choosing.append(_Choosing(at, self.predicates[at], names, rows, samples))
        return names, columns

    def chosen(self, columns: _Columns) -> Generator[_Columns, None, tuple[int, int, Any] | None]:
        """The rows that select() keeps, `needed` of them or fewer at once. It ends with a sample
        that a function has changed: the stage, the number of the row, and the sample.

        Functions are called for a sample when those before it are not enough: where the stages
        would do so. What is decoded does not depend on them, unless they change their sample.
        """
        choosing = self.choosing
        kept: list[int] = []
        given = 0
        changed = None
        for index in range(columns.count):
            for at, predicate, names, rows, samples in choosing:
                sample = samples[index]
                if not predicate(sample):
                    break
                if tuple(sample) != names or not all(map(is_, sample.values(), rows[index])):
                    changed = at, index, sample
                    break
            else:
                kept.append(index)
                if len(kept) >= self.needed:
                    yield columns.picked(kept)
                    given += len(kept)
                    kept = []
            if changed is not None:
                break
        if given + len(kept) < _LEAST_KEPT * columns.count:
            self.waiting = _MOST_WAITING
        if kept:
            yield columns.picked(kept)
        return changed


def _after(part: Any, index: int) -> Any:
    """The samples of a part behind one of them."""
    if type(part) is not Part:
        return part[index + 1 :]
    return part.without(index + 1) if index + 1 < len(part) else []


def _columns_of(samples: list[Any]) -> tuple[tuple[str, ...], list[Any]] | None:
    """The columns of samples; None where they differ in their fields, or in the types of one."""
    names = tuple(samples[0])
    if any(type(sample) is not dict or tuple(sample) != names for sample in samples):
        return None
    if len(names) < 2:
        return None
    columns = list(map(list, zip(*map(itemgetter(*names), samples))))
    return (names, columns) if all(len(set(map(type, c))) == 1 for c in columns) else None


class _OneByOne:
    """The samples of a part and of those behind it, up to one of which columns were made."""

    def __init__(self, source: Iterator[Any], parts: _Parts) -> None:
        self.source = source
        self.parts = parts
        self.columns: _Columns | None = None
        self.part: Any = None  # of which they are

    def samples(self, part: Any) -> Iterator[Any]:
        """The samples; `columns` are the ones that ended it, or None."""
        yield from _samples(part)
        del part  # its block is free for what comes
        for part in self.source:
            if type(part) is dict:
                yield part
                continue
            self.columns = self.parts.columns(part)
            if self.columns is not None:
                self.part = part
                return
            yield from _samples(part)


def _samples(part: Any) -> Iterable[Any]:
    if type(part) is Part:
        return part.samples()
    return part if type(part) is list else (part,)


def _alone(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        if type(item) is _Columns:
            yield from item.rows()
        else:
            yield item


def _batched(items: Iterable[Any], size: int, partial: bool, parts: _Parts) -> Iterator[Any]:
    """Batches, each when there is one item more, or at the end."""
    batch: list[Any] = []
    count = 0
    parts.needed = size + 1
    for item in items:
        if type(item) is not _Columns:
            if count >= size:
                yield _batch(batch)
                batch, count = [], 0
            batch.append(item)
            count += 1
        else:
            first = 0
            while item.count - first + count > size:
                if count < size:
                    batch.append(item.cut(first, first + size - count))
                    first += size - count
                yield _batch(batch)
                batch, count = [], 0
            batch.append(item.cut(first, item.count) if first else item)
            count += item.count - first
        parts.needed = size + 1 - count
    if count == size or (count and partial):
        yield _batch(batch)
