"""Recipes: what streams and mixes are opened from, as values that can be compared and pickled."""

from __future__ import annotations

import operator
import os
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from ._errors import Error, UsageError
from ._open_stream import MixedStreams, Part
from ._options import canonical_text, native_options, option_default, option_texts, shown_options
from ._plan import samples_of_consumer
from ._receivers import Receivers, log_to_logging
from ._tokenizer import TextTokenizer, taken_tokenizer
from ._urls import redacted, url_list

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self, TypeAlias, Unpack

    from ._mix import Mix
    from ._open_stream import Source
    from ._opener import Opener
    from ._receivers import Log, OnSkip
    from ._stream import Stream
    from ._tokenizer import MixKeywords, StreamKeywords
    from ._urls import URLs

    Duration: TypeAlias = float | str | None

# The options that say what one of several consumers reads.
_SHARE = ("rank", "world_size", "worker", "num_workers")
_WARNING = 30  # as the module logging has it, which is slow to import
_warned_of_lanes = False


def seconds(timeout: Duration) -> float:
    """A time such as 1.5, "30s" or None in seconds; 0 is no limit, as in the library."""
    if timeout is None:
        return 0.0
    text = canonical_text("timeout", option_texts({"timeout": timeout}))  # "1500000000ns"
    return int(text[:-2]) / 1e9


def check_epoch(epoch: int) -> int:
    """The number of an epoch, if it is one; else TypeError or UsageError."""
    number = operator.index(epoch)
    native_options({"epoch": str(number)})
    return number


@dataclass(frozen=True, init=False, repr=False)
class Recipe(ABC):
    """What a stream is opened from: a StreamRecipe, or a MixRecipe made of several.

    A recipe is a value. It does not change, holds nothing open and has no position; two that were
    made alike are equal. It can be pickled if `log`, `on_skip` and `opener` can. Its methods make
    other recipes of it. Every stream has one: stream.recipe.
    """

    _options: dict[str, str] = field(hash=False)
    timeout: float  # of next(), in seconds; 0: none
    log: Log | None
    on_skip: OnSkip | None
    opener: Opener | None
    _tokenizer: TextTokenizer | None = field(hash=False)

    _noun: ClassVar[str]
    _opener: ClassVar[str]  # whose options it takes

    @staticmethod
    def of(source: URLs | Stream | Recipe) -> Recipe:
        """The recipe of what shardfeed.torch and others take: URLs, a stream, a mix, or a recipe.

        UsageError for a stream that is closed or has a loaded state, and for a mix of streams with
        different ranks or workers.
        """
        made = _recipe_of(source, "the stream")
        if made is None:
            return StreamRecipe(source)  # type: ignore[arg-type]
        _ = made.share_options  # which the parts of a mix must agree on
        return made

    def _set(
        self,
        timeout: Duration,
        receivers: Receivers,
        tokenizer: TextTokenizer | None,
        options: dict[str, str],
    ) -> None:
        """Completes a new recipe. Bad values are refused before anything uses them."""
        self.__dict__.update(
            timeout=seconds(timeout),
            log=receivers.log,
            on_skip=receivers.on_skip,
            opener=receivers.opener,
            _tokenizer=tokenizer,
            _options=options,
        )
        native_options(options, self._opener)

    @property
    def _receivers(self) -> Receivers:
        """Log, on_skip and opener."""
        return Receivers(self.log, self.on_skip, self.opener)

    def with_options(
        self,
        *,
        timeout: Duration = None,
        log: Log | None = log_to_logging,
        on_skip: OnSkip | None = None,
        opener: Opener | None = None,
        **options: Unpack[StreamKeywords],
    ) -> Self:
        """A recipe with these options beside, or instead of, those of this one.

            recipe.with_options(batch=256, decode="jpg:image/rgb8, cls:int", seed=5)

        timeout, log, on_skip, opener, tokenizer and eos stay as they are where they are not given.
        timeout=0 removes the limit, log=None silences, and tokenizer=None removes it; on_skip and
        opener cannot be removed. The parts of a mix get the opener.
        """
        own: dict[str, Any] = {**options}
        tokenizer = taken_tokenizer(own, self._tokenizer)
        made = self._with(option_texts(own, getattr(self, "_urls", ())))
        made.__dict__["_tokenizer"] = tokenizer
        if opener is not None:
            made = made._with_opener(opener)
        if timeout is not None:
            made.__dict__["timeout"] = seconds(timeout)
        if log is not log_to_logging:
            made.__dict__["log"] = log
        if on_skip is not None:
            made.__dict__["on_skip"] = on_skip
        return made

    def _with_opener(self, opener: Opener) -> Self:
        made = copy(self)
        made.__dict__["opener"] = opener
        return made

    def _with(self, options: dict[str, str]) -> Self:
        made = copy(self)
        made.__dict__["_options"] = {**self._options, **options}
        native_options(made._options, self._opener)
        return made

    def share(self, rank: int, world_size: int, worker: int = 0, num_workers: int = 1) -> Self:
        """What one worker of one rank reads; in a mix, of every part.

        [recipe.share(rank, 8) for rank in range(8)] are the parts of eight processes.
        """
        numbers = (rank, world_size, worker, num_workers)
        return self._with(option_texts(dict(zip(_SHARE, numbers))))

    @abstractmethod
    def open(self, epoch: int | None = None) -> Stream:
        """A stream of its own from this recipe, which begins with this epoch; None: first_epoch.

        Its shards are opened when it is first used. Stream(urls) and mix(streams) open at once.
        """

    def _first(self, epoch: int | None) -> int:
        return self.first_epoch if epoch is None else check_epoch(epoch)

    # ---- What it was made of ----

    @property
    @abstractmethod
    def urls(self) -> list[str]:
        """The URLs as they were given; those of a mix are the URLs of all parts."""

    @property
    def options(self) -> dict[str, str]:
        """The options that were given, as the library takes them. Parts of a mix have their own."""
        return dict(self._options)

    @property
    @abstractmethod
    def share_options(self) -> dict[str, str]:
        """rank, world_size, worker and num_workers, where they were given; of a mix, to its parts.

        UsageError when those of the parts are not the same.
        """

    def number(self, option: str) -> int:
        """The value of an option that is a plain number, as it was given or by default."""
        return int(self._options.get(option) or option_default(option))

    @property
    def is_by_index(self) -> bool:
        """Whether samples are dealt out by the indexes of the shards."""
        return self._options.get("by_index", "false") == "true"

    @property
    def counts_when_opened(self) -> bool:
        """Whether a stream knows as soon as it is opened how many samples an epoch has."""
        return self.is_by_index or self._options.get("even", "none") != "none"

    @property
    def consumer(self) -> tuple[int, int]:
        """The number of this consumer, rank * num_workers + worker, and how many there are."""
        share = self.share_options
        rank, ranks, worker, workers = (
            int(share.get(name) or option_default(name)) for name in _SHARE
        )
        return rank * workers + worker, ranks * workers

    @property
    @abstractmethod
    def has_lanes(self) -> bool:
        """Whether the option lanes was given (in a mix: to all parts).

        A state is then good for other numbers of ranks and workers too.
        """

    def _warn_of_lanes(self) -> None:
        """Says once, in one process of rank 0, that a state fits this number of ranks only."""
        global _warned_of_lanes
        share = self.share_options
        rank, ranks = (int(share.get(name) or option_default(name)) for name in _SHARE[:2])
        if _warned_of_lanes or self.log is None or ranks == 1 or rank != 0 or self.has_lanes:
            return
        _warned_of_lanes = True
        self.log(
            _WARNING,
            f"this state is good for {ranks} ranks, and for no other number: without the option "
            "lanes there are as many as ranks and workers; help: give lanes, a multiple of every "
            "number of ranks that may resume (for example 64)",
        )

    @property
    @abstractmethod
    def _is_secure(self) -> bool: ...

    # ---- Epochs ----

    @property
    def epochs(self) -> int:
        """How many epochs an iterator has; 0: it has no end."""
        return self.number("epochs")

    @property
    @abstractmethod
    def first_epoch(self) -> int:
        """The epoch that a stream begins with: the option epoch; 0 for a mix."""

    @property
    @abstractmethod
    def continues(self) -> bool:
        """Whether an epoch continues where the last one stopped, and begins no new pass."""

    def batches_of_epoch(self, consumers: int) -> int | None:
        """How many batches each of so many consumers has in an iterator; None: not known.

        It is known with batch and epoch_samples. No rank has a batch more than another.
        """
        size = self.number("batch")
        if not (size and self.number("epoch_samples") and self.epochs):
            return None
        samples = self.number("epoch_samples") // consumers * self.epochs  # the smallest share
        whole = self._options.get("last") == "drop"
        count = samples // size if whole else -(-samples // size)
        if count == 0:
            raise UsageError(
                f"an epoch of {samples} samples has no batch of {size}; help: raise epoch_samples, "
                "or lower batch"
            )
        return count

    # ---- What the library opens. For Stream, and for mixes ----

    @abstractmethod
    def _source(self, epoch: int) -> Source:
        """What the library opens for an epoch."""

    def _opened_options(self, options: dict[str, str]) -> dict[str, str]:
        """The options for the library, of which one stream may be several epochs."""
        return {**options, "epochs": "0"} if self.continues else options

    @abstractmethod
    def _part(self, epoch: int) -> Part:
        """What the library opens in a mix, in the mix's epoch number `epoch`."""

    @property
    @abstractmethod
    def _never_ends(self) -> bool:
        """Whether it has no end as a part of a mix."""

    @abstractmethod
    def _indexed_samples(self, epoch: int) -> int | None:
        """How many samples the indexes of all shards say that this consumer has in one epoch."""

    @property
    @abstractmethod
    def unknown_length(self) -> str:
        """What the TypeError of len() says."""

    def __str__(self) -> str:
        """What it is made of, without secrets."""
        return shown_options(self._options)

    def __repr__(self) -> str:
        return f"<shardfeed.{type(self).__name__} {self}>"


@dataclass(frozen=True, init=False, repr=False)
class StreamRecipe(Recipe):
    """What a stream of shards is opened from.

        recipe = shardfeed.StreamRecipe("train-{000000..000099}.tar", shuffle=1000, seed=1)
        for rank in range(8):
            start(pickle.dumps(recipe.share(rank, 8)))    # there: pickle.loads(...).open()

    Parameters are those of Stream. No shard is looked for or opened.
    """

    _urls: tuple[str, ...]

    _noun = "Stream"
    _opener = "stream"

    def __init__(
        self,
        urls: URLs,
        *,
        timeout: Duration = None,
        log: Log | None = log_to_logging,
        on_skip: OnSkip | None = None,
        opener: Opener | None = None,
        **options: Unpack[StreamKeywords],
    ) -> None:
        self.__dict__["_urls"] = tuple(url_list(urls))
        own: dict[str, Any] = {**options}
        tokenizer = taken_tokenizer(own)
        receivers = Receivers(log, on_skip, opener)
        self._set(timeout, receivers, tokenizer, option_texts(own, self._urls))

    def open(self, epoch: int | None = None) -> Stream:
        from ._stream import Stream  # which is made of recipes

        return Stream._unopened(self, self._first(epoch))

    @property
    def urls(self) -> list[str]:
        return list(self._urls)

    @property
    def unknown_length(self) -> str:
        chosen = " and ".join(name for name in ("slice", "select_keys") if self._options.get(name))
        if chosen:
            return (
                f"the length of a stream with {chosen} is not known, because indexes count all "
                "samples; help: give epoch_samples, which says how many samples are an epoch"
            )
        return (
            "the length of this stream is not known; help: give epoch_samples, which says how many "
            "samples are an epoch, or make the index of every shard: shardfeed.Dataset(urls)"
        )

    @property
    def share_options(self) -> dict[str, str]:
        return {name: self._options[name] for name in _SHARE if name in self._options}

    @property
    def has_lanes(self) -> bool:
        return "lanes" in self._options

    @property
    def _is_secure(self) -> bool:
        return canonical_text("secure", self._options) == "true"

    @property
    def first_epoch(self) -> int:
        return self.number("epoch")

    @property
    def continues(self) -> bool:
        return self.epochs == 0 or self.number("epoch_samples") > 0

    def _source(self, epoch: int) -> Source:
        return self.urls

    def _part(self, epoch: int) -> Part:
        first = self.first_epoch + epoch * max(self.epochs, 1)
        return Part(self.urls, {**self._options, "epoch": str(first)}, self._receivers)

    @property
    def _never_ends(self) -> bool:
        return self.epochs == 0

    def _indexed_samples(self, epoch: int) -> int | None:
        lists = [url[1:] for url in self._urls if url.startswith("@")]
        if any(os.path.exists(path) and not os.path.isfile(path) for path in lists):
            return None  # a list that can be read only once, a FIFO, is for the stream itself
        options = {**self._options, "batch": "0", "epoch": str(epoch), "epochs": "1"}
        try:
            return samples_of_consumer(self.urls, options, self.consumer[0], self.opener)
        except Error:
            return None  # which reading will say, unless it skips that shard

    def __str__(self) -> str:
        shown = [repr(redacted(url)) for url in self._urls[:3]]
        if len(self._urls) > 3:
            shown.append(f"... {len(self._urls)} URLs")
        return " ".join([*shown, super().__str__()]).rstrip()


@dataclass(frozen=True, init=False, repr=False)
class MixRecipe(Recipe):
    """What a mix is opened from: recipes of its parts, their weights, and options.

    Parameters are those of mix(). with_options() gives rank, world_size, worker and num_workers to
    the parts, and the others to the mix.
    """

    parts: tuple[Recipe, ...]
    weights: tuple[float, ...] | None

    _noun = "Mix"
    _opener = "mix"

    def __init__(
        self,
        parts: Iterable[Stream | Recipe],
        *,
        weights: Iterable[float] | None = None,
        timeout: Duration = None,
        log: Log | None = log_to_logging,
        on_skip: OnSkip | None = None,
        **options: Unpack[MixKeywords],
    ) -> None:
        made = tuple(_part_of_mix(part, number) for number, part in enumerate(parts))
        floats = None if weights is None else tuple(float(weight) for weight in weights)
        if floats is not None and len(floats) != len(made):
            raise UsageError(
                f"{len(floats)} weights for {len(made)} streams; help: give one for each"
            )
        self.__dict__.update(parts=made, weights=floats)
        own: dict[str, Any] = {**options}
        tokenizer = taken_tokenizer(own)
        self._set(timeout, Receivers(log, on_skip), tokenizer, option_texts(own))

    def open(self, epoch: int | None = None) -> Mix:
        from ._mix import Mix  # which is made of recipes

        return Mix._unopened(self, self._first(epoch))

    @property
    def unknown_length(self) -> str:
        return (
            'the length of a mix is not known; help: give it until="forever" and epoch_samples, '
            "which says how many samples are an epoch"
        )

    def _with_opener(self, opener: Opener) -> Self:
        made = copy(self)
        made.__dict__["parts"] = tuple(part._with_opener(opener) for part in self.parts)
        return made

    def _with(self, options: dict[str, str]) -> Self:
        share = {name: text for name, text in options.items() if name in _SHARE}
        made = super()._with({name: text for name, text in options.items() if name not in _SHARE})
        if share:
            made.__dict__["parts"] = tuple(part._with(share) for part in self.parts)
        return made

    @property
    def urls(self) -> list[str]:
        return [url for part in self.parts for url in part.urls]

    @property
    def share_options(self) -> dict[str, str]:
        shares = [part.share_options for part in self.parts] or [{}]
        for number, share in enumerate(shares):
            if share != shares[0]:
                raise UsageError(
                    f"stream 0 of the mix has {_listed(shares[0])}, and stream {number} "
                    f"{_listed(share)}; help: leave these options out of the streams, and give "
                    "them to what uses the mix"
                )
        return shares[0]

    @property
    def has_lanes(self) -> bool:
        return all(part.has_lanes for part in self.parts)

    @property
    def _is_secure(self) -> bool:
        return any(part._is_secure for part in self.parts)

    @property
    def first_epoch(self) -> int:
        return 0

    @property
    def continues(self) -> bool:
        until = self._options.get("until", "all")
        endless = [part._never_ends for part in self.parts]
        return until == "forever" or (any if until == "all" else all)(endless)

    def _source(self, epoch: int) -> Source:
        weights = None if self.weights is None else list(self.weights)
        return MixedStreams([part._part(epoch) for part in self.parts], weights)

    def _opened_options(self, options: dict[str, str]) -> dict[str, str]:
        return super()._opened_options(options) if self.number("epoch_samples") else options

    def _part(self, epoch: int) -> Part:
        return Part(self._source(epoch), self._options, self._receivers)

    @property
    def _never_ends(self) -> bool:
        return self.continues and (self.epochs == 0 or self.number("epoch_samples") == 0)

    def _indexed_samples(self, epoch: int) -> int | None:
        return None

    def __str__(self) -> str:
        parts = ", ".join(f"<shardfeed.{part._noun} {part}>" for part in self.parts)
        weights = [] if self.weights is None else [f"weights={list(self.weights)}"]
        return " ".join([f"[{parts}]", *weights, super().__str__()]).rstrip()


def _recipe_of(source: object, name: str) -> Recipe | None:
    """The recipe of a stream or recipe that is called `name`; None: it is neither."""
    from ._stream import Stream  # which is made of recipes

    if isinstance(source, Stream):
        source._check_is_unused(name)
        return source.recipe
    return source if isinstance(source, Recipe) else None


def _part_of_mix(part: object, number: int) -> Recipe:
    made = _recipe_of(part, f"stream {number} of the mix")
    if made is None:
        raise TypeError(
            f"stream {number} of the mix: a Stream expected, not {type(part).__qualname__}"
            f" of {type(part).__module__}; help: mix what shardfeed.Stream() makes, and give the "
            "mix to shardfeed.torch or shardfeed.grain"
        )
    return made


def _listed(share: dict[str, str]) -> str:
    return ", ".join(f"{name}={text}" for name, text in share.items()) or "none of those"
