"""Shuffles of parts: what comes out of them stays together where nobody sees it."""

from __future__ import annotations

from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# Items of a shuffle that are taken together when its source has ended.
_MANY = 256


class _Feed:
    """The samples of parts, and which of them are here without asking for the next part."""

    def __init__(self) -> None:
        self.here: Iterator[Any] = iter(())
        self.is_at_end = False

    def samples(self, source: Iterable[Any]) -> Iterator[Any]:
        for part in source:
            if type(part) is dict:
                yield part
            else:
                self.here = iter(part if type(part) is list else part.dicts())
                yield from self.here
        self.is_at_end = True

    def left(self) -> int:
        return length_hint(self.here)


def shuffled(source: Iterable[Any], shuffle: Callable[[Any], Iterator[Any]]) -> Iterator[Any]:
    """What a shuffle makes of parts: samples, or lists of those that come without another part."""
    feed = _Feed()
    return _together(feed, shuffle(feed.samples(source)))


def _together(feed: _Feed, items: Iterator[Any]) -> Iterator[Any]:
    # A shuffle takes two samples for each until its buffer is full, and one from then on.
    each = 2
    for item in items:
        left = feed.left()
        if feed.is_at_end:
            left = _MANY * each
        if left < each:
            yield item
            continue
        together = [item, *islice(items, 1)]
        if not feed.is_at_end and left - feed.left() == 1:
            each = 1
        left = _MANY if feed.is_at_end else feed.left() // each
        together += islice(items, left)
        yield together if len(together) > 1 else item
