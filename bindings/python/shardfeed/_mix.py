"""Mixes: streams whose samples come from other streams, by weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._errors import UsageError
from ._log import log_to_logging
from ._open_stream import MixedStreams, Part
from ._options import option_texts
from ._stream import SHARE, Stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing_extensions import Self, Unpack

    from ._log import Log
    from ._native import MixOptions
    from ._open_stream import Source
    from ._stream import Duration


def mix(
    streams: Iterable[Stream],
    *,
    weights: Iterable[float] | None = None,
    timeout: Duration = None,
    log: Log | None = log_to_logging,
    **options: Unpack[MixOptions],
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

    The streams are recipes, and stay as they are: the mix opens them again, each with its own
    options. The options of the mix are for what it makes of the samples: batches are its own.
    """
    return Mix(streams, weights=weights, timeout=timeout, log=log, **options)


class Mix(Stream):
    """A stream whose samples come from other streams. Made by mix().

    It is used like any Stream, and can be a part of another mix. Every iter(mix) is the next epoch
    of each part. With until="forever", and where parts repeat for ever, the next iterator continues
    where the last one stopped; an iterator has no end then, unless epoch_samples sets one.
    state_dict() saves the positions of the parts.
    """

    _opener = "mix"

    def __init__(
        self,
        streams: Iterable[Stream],
        *,
        weights: Iterable[float] | None = None,
        timeout: Duration = None,
        log: Log | None = log_to_logging,
        **options: Unpack[MixOptions],
    ) -> None:
        self._parts = [_recipe(part, number) for number, part in enumerate(streams)]
        self._weights = None if weights is None else [float(weight) for weight in weights]
        if self._weights is not None and len(self._weights) != len(self._parts):
            raise UsageError(
                f"{len(self._weights)} weights for {len(self._parts)} streams; help: give one for "
                "each"
            )
        self._urls = [url for part in self._parts for url in part.urls]
        self._prepare(timeout, log, option_texts(options))
        self._open_early()

    _unknown_length = (
        'the length of a mix is not known; help: give it until="forever" and epoch_samples, which '
        "says how many samples are an epoch"
    )

    def _find_epochs(self) -> None:
        self._epochs = self._number("epochs")
        until = self._options.get("until", "all")
        endless = [part._never_ends() for part in self._parts]
        ends = any if until == "all" else all
        self._goes_on = until == "forever" or ends(endless)
        self._next_epoch = 0

    def _share(self) -> dict[str, str]:
        """That of the parts, which must be the same."""
        shares = [part._share() for part in self._parts]
        for number, share in enumerate(shares):
            if share != shares[0]:
                raise UsageError(
                    f"stream 0 of the mix has {_texts(shares[0])}, and stream {number} "
                    f"{_texts(share)}; help: leave these options out of the streams, and give them "
                    "to what uses the mix"
                )
        return shares[0]

    def _with(self, texts: Mapping[str, str]) -> Self:
        """The options of shares are those of the parts."""
        share = {name: text for name, text in texts.items() if name in SHARE}
        made = super()._with({name: text for name, text in texts.items() if name not in SHARE})
        made._parts = [part._with(share) for part in self._parts]
        return made

    def _indexed_samples(self, epoch: int) -> int | None:
        return None

    def _source_of(self, epoch: int) -> Source:
        return MixedStreams([part._as_part(epoch) for part in self._parts], self._weights)

    def _native_texts(self, texts: dict[str, str]) -> dict[str, str]:
        return super()._native_texts(texts) if self._number("epoch_samples") else texts

    def _as_part(self, epoch: int) -> Part:
        return Part(self._source_of(epoch), self._options, self._log)

    def _never_ends(self) -> bool:
        return self._goes_on and (self._epochs == 0 or self._number("epoch_samples") == 0)

    def _has_lanes(self) -> bool:
        return all(part._has_lanes() for part in self._parts)

    def _is_secure(self) -> bool:
        return any(part._is_secure() for part in self._parts)

    def _described(self) -> str:
        options = [f"{name}={text}" for name, text in self._options.items()]
        weights = [] if self._weights is None else [f"weights={self._weights}"]
        return " ".join([repr(self._parts), *weights, *options])

    def __repr__(self) -> str:
        return f"<shardfeed.Mix {self._described()}>"


def _recipe(part: Stream, number: int) -> Stream:
    """A stream of its own from the same recipe, which opens nothing yet."""
    if not isinstance(part, Stream):
        raise TypeError(
            f"stream {number} of the mix: a Stream expected, not {type(part).__qualname__}"
            f" of {type(part).__module__}; help: mix what shardfeed.Stream() makes, and give the "
            "mix to shardfeed.torch or shardfeed.grain"
        )
    return part._unopened(f"stream {number} of the mix")


def _texts(share: dict[str, str]) -> str:
    return ", ".join(f"{name}={text}" for name, text in share.items()) or "none of those"
