"""The samples of a whole pass, kept in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .utils import PipelineStage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Cached(PipelineStage):
    """Keeps the items of the first pass that came to its end, for later ones."""

    def __init__(self) -> None:
        self.cached: list[Any] | None = None

    def run(self, source: Iterable[Any]) -> Iterator[Any]:
        if self.cached is None:
            kept = []
            for sample in source:
                kept.append(sample)
                yield sample
            self.cached = kept
        else:
            yield from self.cached
