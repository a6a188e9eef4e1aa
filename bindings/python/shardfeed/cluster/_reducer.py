"""Reductions: many samples to one result, by partial results that may be published as shards."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from .. import FormatError, Sample, Stream, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing_extensions import TypeAlias

    Reduce: TypeAlias = "Reducer | Mapping[str, Reducer]"


class Reducer(ABC):
    """Makes one result of many samples.

        class Longest(shardfeed.cluster.Reducer):
            def empty(self):
                return 0
            def add(self, partial, sample):
                return max(partial, len(sample["txt"]))
            def merge(self, first, second):
                return max(first, second)

        shardfeed.map_shards(urls, "longest/", reduce=Longest()).result

    A partial result is what JSON can hold: numbers, texts, lists, and dicts with texts as keys. It
    is published as a shard of one sample, and partial results are merged in the order of the tasks,
    so that the result is the same under every executor.
    """

    @abstractmethod
    def empty(self) -> Any:
        """The partial result of no sample."""

    @abstractmethod
    def add(self, partial: Any, sample: Mapping[str, Any]) -> Any:
        """The partial result with one sample more; `partial` itself may be changed."""

    @abstractmethod
    def merge(self, first: Any, second: Any) -> Any:
        """The partial result of the samples of both; `first` itself may be changed."""

    def finish(self, partial: Any) -> Any:
        """The result; by default the partial result as it is."""
        return partial

    @property
    def name(self) -> str:
        """Says what it computes: partial results with other names are refused."""
        settings = ", ".join(f"{name}={value!r}" for name, value in sorted(vars(self).items()))
        return f"{type(self).__qualname__}({settings})"


class Reducers(Reducer):
    """Several by name, over the same samples."""

    def __init__(self, parts: Mapping[str, Reducer]) -> None:
        self.parts = dict(parts)

    def empty(self) -> Any:
        return {name: part.empty() for name, part in self.parts.items()}

    def add(self, partial: Any, sample: Mapping[str, Any]) -> Any:
        for name, part in self.parts.items():
            partial[name] = part.add(partial[name], sample)
        return partial

    def merge(self, first: Any, second: Any) -> Any:
        return {name: part.merge(first[name], second[name]) for name, part in self.parts.items()}

    def finish(self, partial: Any) -> Any:
        return {name: part.finish(partial[name]) for name, part in self.parts.items()}

    @property
    def name(self) -> str:
        return ", ".join(f"{name}={part.name}" for name, part in self.parts.items())


def reducer_of(reduce: Reduce | None) -> Reducer | None:
    """One reducer of what callers pass."""
    if reduce is None or isinstance(reduce, Reducer):
        return reduce
    return Reducers(reduce)


def field_of(sample: Mapping[str, Any], name: str, kind: str) -> Any:
    """A field as an array, number or text: decoded, where it is not already."""
    if isinstance(sample, Sample):
        return sample.decode(f"{name}:{kind}")[name]
    value = sample[name]
    if isinstance(value, (bytes, bytearray, memoryview)):
        if kind == "text":
            return bytes(value).decode("utf-8")
        if kind == "int":
            return int(bytes(value))
        raise UsageError(
            f'the field "{name}" is bytes, and {kind} is needed; help: let the function return '
            "arrays, or the sample that it was given"
        )
    return value


def encoded_partial(reducer: Reducer, partial: Any, shard: str) -> dict[str, Any]:
    """The sample that is published for a partial result."""
    try:
        text = json.dumps({"reducer": reducer.name, "input": shard, "partial": partial})
    except TypeError as error:
        raise UsageError(
            f"the partial result of {reducer.name} cannot be written as JSON: {error}; help: "
            "make it of numbers, texts, lists and dicts"
        ) from None
    return {"__key__": "partial", "json": text.encode("utf-8")}


def decoded_partial(reducer: Reducer, sample: Mapping[str, Any], shard: str) -> Any:
    """The partial result in a published sample."""
    try:
        found = json.loads(bytes(sample["json"]))
        name, partial = found["reducer"], found["partial"]
    except (KeyError, TypeError, ValueError):
        raise FormatError(
            f"{shard}: this is no partial result of a reduction; help: give the reduction a folder "
            "of its own"
        ) from None
    if name != reducer.name:
        raise UsageError(
            f"{shard}: this is a partial result of {name}, and not of {reducer.name}; help: give "
            "each reduction a folder of its own"
        )
    return partial


def merged_result(reduce: Reduce, shards: Iterable[str], **options: Any) -> Any:
    """The result of partial results that are published as these shards, in this order.

    options: those of shardfeed.Stream for reading them.
    """
    reducer = reducer_of(reduce)
    assert reducer is not None
    partials = []
    for shard in shards:
        with Stream(shard, **{**options, "expand": False}) as stream:
            partials += [decoded_partial(reducer, sample, shard) for sample in stream]
    return finished(reducer, partials)


def finished(reducer: Reducer, partials: Iterable[Any]) -> Any:
    """The result of partial results, merged in their order."""
    merged = reducer.empty()
    for partial in partials:
        merged = reducer.merge(merged, partial)
    return reducer.finish(merged)
