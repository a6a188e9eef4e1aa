"""Data sets for tests of loaders, and older forms of stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import utils
from ._torch import IterableDataset
from .utils import PipelineStage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class MockDataset(IterableDataset):
    """The same sample so many times, which shows what a program costs without its data."""

    def __init__(self, sample: Any, length: int) -> None:
        self.sample = sample
        self.length = length

    def __iter__(self) -> Iterator[Any]:
        for _ in range(self.length):
            yield self.sample


class repeatedly(IterableDataset, PipelineStage):  # noqa: N801
    """A data set again and again."""

    def __init__(
        self,
        source: Iterable[Any],
        nepochs: int | None = None,
        nbatches: int | None = None,
        length: int | None = None,
    ) -> None:
        self.source = source
        self.length = length
        self.nbatches = nbatches
        self.nepochs = nepochs

    def invoke(self, source: Iterable[Any]) -> Iterator[Any]:
        return utils.repeatedly(source, nepochs=self.nepochs, nbatches=self.nbatches)

    def __iter__(self) -> Iterator[Any]:
        return self.invoke(self.source)


class with_epoch(IterableDataset):  # noqa: N801
    """So many samples as an epoch; the next one continues where this one ends."""

    def __init__(self, dataset: Iterable[Any], length: int) -> None:
        self.length = length
        self.dataset = dataset
        self.source: Iterator[Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "source": None}

    def invoke(self, dataset: Iterable[Any]) -> Iterator[Any]:
        if self.source is None:
            self.source = iter(dataset)
        for _ in range(self.length):
            try:
                sample = next(self.source)
            except StopIteration:
                self.source = iter(dataset)
                try:
                    sample = next(self.source)
                except StopIteration:
                    return
            yield sample

    def __iter__(self) -> Iterator[Any]:
        return self.invoke(self.dataset)


class with_length(IterableDataset, PipelineStage):  # noqa: N801
    """A data set with len()."""

    def __init__(self, dataset: Iterable[Any], length: int) -> None:
        self.dataset = dataset
        self.length = length

    def invoke(self, dataset: Iterable[Any]) -> Iterator[Any]:
        return iter(dataset)

    def __iter__(self) -> Iterator[Any]:
        return self.invoke(self.dataset)

    def __len__(self) -> int:
        return self.length
