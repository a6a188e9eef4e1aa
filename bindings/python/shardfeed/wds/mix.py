"""Several data sets as one: in turn, or at random."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from ._torch import IterableDataset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def round_robin_shortest(*sources: Iterator[Any]) -> Iterator[Any]:
    """One item of each in turn, until one has ended."""
    turn = 0
    while True:
        try:
            item = next(sources[turn % len(sources)])
        except StopIteration:
            return
        yield item
        turn += 1


def round_robin_longest(*sources: Iterator[Any]) -> Iterator[Any]:
    """One item of each in turn; those that have ended are left out."""
    left = list(sources)
    turn = 0
    while left:
        turn %= len(left)
        try:
            item = next(left[turn])
        except StopIteration:
            del left[turn]
            continue
        yield item
        turn += 1


class RoundRobin(IterableDataset):
    """One sample of each data set in turn."""

    def __init__(self, datasets: Sequence[Iterable[Any]], longest: bool = False) -> None:
        self.datasets = datasets
        self.longest = longest

    def __iter__(self) -> Iterator[Any]:
        sources = [iter(dataset) for dataset in self.datasets]
        return (round_robin_longest if self.longest else round_robin_shortest)(*sources)


def random_samples(
    sources: Sequence[Iterator[Any]],
    probs: Sequence[float] | None = None,
    longest: bool = False,
) -> Iterator[Any]:
    """Items of the sources at random, by weight, drawn from the module random."""
    import numpy

    left = list(sources)
    weights = list(probs) if probs is not None else [1] * len(left)
    while left:
        total = numpy.cumsum((numpy.array(weights) / numpy.sum(weights)).tolist())
        bounds = total.tolist()
        while True:
            r = random.random()
            # Weights that make no bounds (all of them 0) give the first source.
            i = next((n for n, bound in enumerate(bounds) if bound >= r), 0)
            try:
                item = next(left[i])
            except StopIteration:
                break
            yield item
        if not longest:
            return
        del left[i], weights[i]


class RandomMix(IterableDataset):
    """Samples of several data sets at random, by weight.

    It ends with the first of them that ends; longest: with the last one.
    """

    def __init__(
        self,
        datasets: Sequence[Iterable[Any]],
        probs: Sequence[float] | None = None,
        longest: bool = False,
    ) -> None:
        self.datasets = datasets
        self.probs = probs
        self.longest = longest

    def __iter__(self) -> Iterator[Any]:
        sources = [iter(dataset) for dataset in self.datasets]
        return random_samples(sources, self.probs, longest=self.longest)
