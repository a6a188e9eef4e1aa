"""Items to batches of columns, and back; and what a loader makes of batches."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ._torch import is_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

# Types of values that default_convert() of PyTorch leaves as they are.
_KEPT = frozenset((bool, bytes, float, int, str, type(None)))


def combine_values(
    b: Sequence[Any], combine_tensors: bool = True, combine_scalars: bool = True
) -> Any:
    """One column: an array of numbers, a stacked array or tensor, or the list as it is."""
    import numpy

    first = b[0]
    if isinstance(first, (int, float)):
        return numpy.array(list(b)) if combine_scalars else b
    if isinstance(first, numpy.ndarray):
        return _stacked(b, numpy.array) if combine_tensors else b
    if is_tensor(first):
        if not combine_tensors:
            return b
        import torch

        return _stacked(b, lambda values: torch.stack(list(values)))
    return b


def _stacked(values: Sequence[Any], stack: Callable[[Any], Any]) -> Any:
    shape = values[0].shape
    for value in values:
        if value.shape != shape:
            shapes = {tuple(each.shape) for each in values}
            raise AssertionError(f"all shapes must be equal in collation, got {shapes}")
    return stack(values)


def tuple2dict(l: Sequence[Any]) -> dict[int, Any]:  # noqa: E741
    """Position -> item."""
    return dict(enumerate(l))


def dict2tuple(d: dict[int, Any]) -> tuple[Any, ...]:
    """The items of a dict of positions."""
    return tuple(d[i] for i in range(max(d) + 1))


def default_collation_fn(
    samples: Sequence[Any], combine_tensors: bool = True, combine_scalars: bool = True
) -> Any:
    """A batch of tuples, or of dicts: each position or key becomes a column."""
    first = samples[0]
    options = (combine_tensors, combine_scalars)
    if isinstance(first, dict):
        keys = set(first)
        for sample in samples:
            assert sample.keys() == keys, "keys don't match in different samples"
        if len(keys) < 2:
            return {key: combine_values([s[key] for s in samples], *options) for key in keys}
        columns = zip(*map(itemgetter(*keys), samples))
        return {key: combine_values(list(column), *options) for key, column in zip(keys, columns)}
    if not isinstance(first, (tuple, list)):
        raise TypeError(f"{type(first).__name__!r} object is not iterable")
    width = len(first)
    for sample in samples:
        assert len(sample) == width, "keys don't match in different samples"
    if width == 0:
        raise ValueError("max() arg is an empty sequence; help: a batch needs at least one field")
    return tuple(combine_values(list(column), *options) for column in zip(*samples))


def _batched(
    data: Iterable[Any],
    batchsize: int = 20,
    collation_fn: Callable[[list[Any]], Any] | None = default_collation_fn,
    partial: bool = True,
) -> Iterator[Any]:
    """Batches of `batchsize` items; partial: also what is left at the end."""
    batch: list[Any] = []
    for sample in data:
        if len(batch) >= batchsize:
            yield batch if collation_fn is None else collation_fn(batch)
            batch = []
        batch.append(sample)
    if not batch:
        return
    if len(batch) == batchsize or partial:
        yield batch if collation_fn is None else collation_fn(batch)


def _unlisted(data: Iterable[Any]) -> Iterator[Any]:
    """The items of lists."""
    for batch in data:
        assert isinstance(batch, list), batch
        yield from batch


def _unbatched(data: Iterable[Any]) -> Iterator[Any]:
    """The rows of batches."""
    for batch in data:
        if isinstance(batch, (tuple, list)):
            for row in range(len(batch[0])):
                yield tuple(column[row] for column in batch)
        elif isinstance(batch, dict):
            lengths = {len(column) for column in batch.values()}
            assert len(lengths) == 1, lengths
            if all(type(column) is list for column in batch.values()):
                names = tuple(batch)
                for values in zip(*batch.values()):
                    yield dict(zip(names, values))
                continue
            for row in range(lengths.pop()):
                yield {name: column[row] for name, column in batch.items()}
        else:
            raise ValueError(f"unknown sample type: {type(batch)}")


def converted(data: Any) -> Any:
    """What default_convert() of PyTorch gives, without a call for each text and number of a list.

    A loader does this to each item that it makes no batches of: arrays become tensors, and tuples
    lists.
    """
    kind = type(data)
    if kind is list or kind is tuple:
        return list(data) if _KEPT.issuperset(map(type, data)) else [converted(d) for d in data]
    if kind is dict:
        return {key: converted(value) for key, value in data.items()}
    if kind in _KEPT:
        return data
    from torch.utils.data import default_convert

    return default_convert(data)
