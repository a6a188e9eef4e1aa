"""Mixes: streams whose samples come from other streams, by weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._receivers import log_to_logging
from ._recipe import MixRecipe
from ._stream import Stream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Unpack

    from ._receivers import Log, OnSkip
    from ._recipe import Duration, Recipe
    from ._tokenizer import MixKeywords


def mix(
    streams: Iterable[Stream | Recipe],
    *,
    weights: Iterable[float] | None = None,
    timeout: Duration = None,
    log: Log | None = log_to_logging,
    on_skip: OnSkip | None = None,
    **options: Unpack[MixKeywords],
) -> Mix:
    """A stream that takes each sample from one of `streams`, at random by weight.

        photographs = shardfeed.Stream("photo-{000..099}.tar", shuffle=1000)
        drawings = shardfeed.Stream("drawing-{000..009}.tar", shuffle=1000)
        stream = shardfeed.mix([photographs, drawings], weights=[3, 1], until="forever", seed=1)
        for batch in stream.batches(256, decode="jpg:image/rgb8/resize=64x64"): ...

    weights: in any unit, above 0; None: all are equal. The proportions are exact in the long run.
    Which stream a sample comes from depends on the option seed and the number of the sample alone,
    and each stream keeps its own order.

    until: "all": a stream that ends is left out, and the mix ends with the last one; "first": it
    ends with the first one that ends; "forever": streams that end begin again with their next
    epoch.

    epoch_samples: the number of samples in an epoch of the mix, over all ranks and workers; each
    epoch continues where the last one stopped. It needs until="forever". It gives the mix a length,
    and every rank the same number of batches. epochs: how many of them one iteration has.

    The streams stay as they are: the mix opens their recipes again, each with its own options, and
    takes recipes as well. The options of the mix are for what it makes of the samples: batches are
    its own.
    """
    return Mix(streams, weights=weights, timeout=timeout, log=log, on_skip=on_skip, **options)


class Mix(Stream):
    """A stream whose samples come from other streams. Made by mix().

    It is used like any Stream, and can be a part of another mix. Every iter(mix) is the next epoch
    of each part. With until="forever", and where parts repeat for ever, the next iterator continues
    where the last one stopped; an iterator has no end then, unless epoch_samples sets one.
    state_dict() saves the positions of the parts.
    """

    def __init__(
        self,
        streams: Iterable[Stream | Recipe],
        *,
        weights: Iterable[float] | None = None,
        timeout: Duration = None,
        log: Log | None = log_to_logging,
        on_skip: OnSkip | None = None,
        **options: Unpack[MixKeywords],
    ) -> None:
        self._start(
            MixRecipe(
                streams, weights=weights, timeout=timeout, log=log, on_skip=on_skip, **options
            )
        )
        self._open_early()

    def __repr__(self) -> str:
        return f"<shardfeed.Mix {self._recipe}>"
