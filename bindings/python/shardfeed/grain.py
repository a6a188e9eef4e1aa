"""shardfeed for grain: streams as an IterDataset whose iterators save and restore their state.

    import shardfeed.grain

    data = shardfeed.grain.Stream(urls, batch=256, decode="jpg:image/rgb8, cls:int", epochs=0,
                                  rank=jax.process_index(), world_size=jax.process_count())
    iterator = iter(data.map(to_arrays))
    state = iterator.get_state()    # and set_state(state) resumes there

For random access shardfeed.Dataset is a RandomAccessDataSource as it is:
grain.MapDataset.source(shardfeed.Dataset(urls)).shuffle(seed=1).

The package does not depend on grain: only this module imports it (0.2.10 or later).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    import grain
except ModuleNotFoundError as missing:
    if missing.name != "grain":
        raise
    raise ModuleNotFoundError(
        "shardfeed.grain needs grain; help: pip install grain", name="grain"
    ) from None

from . import Recipe, UsageError
from ._integration import log_to_logging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from typing_extensions import Unpack

    from . import Stream as _Samples
    from ._integration import Duration, Hook, Log, OnSkip, Opener, StreamKeywords, URLs

__all__ = ["Stream"]


class Stream(grain.IterDataset[Any]):
    """The samples of many shards, in order; with the option batch, decoded batches of them.

    An element is a shardfeed.Sample or shardfeed.Batch, or what `transform` makes of it. options,
    hooks, timeout, log, on_skip and opener are those of shardfeed.Stream and its batches().

    urls: also a shardfeed.Stream, a mix or a recipe, with options beside its own.

    Every iterator begins at the option epoch, as iterators of grain do; epochs=0 repeats for ever,
    with a new order in each epoch. mp_prefetch deals the shards out to its workers.
    """

    def __init__(
        self,
        urls: URLs | _Samples | Recipe,
        *,
        transform: Callable[[Any], Any] | None = None,
        hooks: Mapping[str, Hook | str] | None = None,
        timeout: Duration = None,
        log: Log | None = log_to_logging,
        on_skip: OnSkip | None = None,
        opener: Opener | None = None,
        **options: Unpack[StreamKeywords],
    ) -> None:
        super().__init__()
        self._transform = transform
        self._hooks = hooks
        self._recipe = Recipe.of(urls).with_options(
            timeout=timeout, log=log, on_skip=on_skip, opener=opener, **options
        )

    def __iter__(self) -> grain.DatasetIterator[Any]:
        return _Iterator(self)

    def set_slice(self, sl: slice, sequential_slice: bool = False) -> None:
        """Makes this the share of one worker of several, as mp_prefetch asks for."""
        if {"worker", "num_workers"} & self._recipe.share_options.keys():
            raise UsageError(
                "this stream has a worker's share already; help: leave out worker and num_workers, "
                "or mp_prefetch"
            )
        self._recipe = self._recipe.with_options(worker=sl.start or 0, num_workers=sl.step or 1)

    def _new_samples(self) -> _Samples:
        return self._recipe.open()

    def _items_of(self, samples: _Samples) -> Iterator[Any]:
        if self._recipe.number("batch"):
            return samples.batches(hooks=self._hooks)
        return iter(samples)

    def __repr__(self) -> str:
        return f"<shardfeed.grain.Stream {self._recipe}>"


class _Iterator(grain.DatasetIterator[Any]):
    """An iterator over a stream of its own."""

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream
        self._samples = stream._new_samples()
        self._items: Iterator[Any] | None = None
        self._ended = False

    def __next__(self) -> Any:
        if self._ended:
            raise StopIteration
        if self._items is None:
            self._items = self._stream._items_of(self._samples)
        try:
            item = next(self._items)
        except StopIteration:
            self._ended = True
            raise
        transform = self._stream._transform
        return item if transform is None else transform(item)

    def get_state(self) -> dict[str, Any]:
        """The position of this iterator: that of shardfeed.Stream.state_dict(), and "ended".

        Values have the same types at all times, as grain asks for.
        """
        return {**self._samples.state_dict(), "ended": self._ended}

    def set_state(self, state: dict[str, Any]) -> None:
        ended = state.get("ended")
        if ended is None:
            raise UsageError("this is no state of a stream; help: give what get_state() gave")
        self._samples.close()
        self._samples = self._stream._new_samples()
        self._items = None
        self._ended = bool(ended)
        self._samples.load_state_dict({name: state[name] for name in state.keys() - {"ended"}})

    def close(self) -> None:
        self._samples.close()
        super().close()
