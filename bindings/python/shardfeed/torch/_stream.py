"""Samples or batches of many shards in order, for DataLoader and all else that iterates."""

from __future__ import annotations

import contextlib
import os
from multiprocessing.context import get_spawning_popen
from typing import TYPE_CHECKING, Any

import torch.distributed
from torch.utils.data import IterableDataset, get_worker_info
from torch.utils.data._utils.collate import default_collate_fn_map

from .. import Batch, Recipe, UsageError
from .._integration import KEYS, VALID, check_epoch, log_to_logging
from ._epochs import NO_LOADER, Epochs
from ._lightning import TrainingFetcher, saves_items_taken_ahead, training_fetcher
from ._ranks import Ranks, Share, ranks_of, share_of
from ._shared import send_tensors_in_buffers
from ._sharers import refuse_second_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from typing_extensions import Unpack

    from .. import Sample
    from .. import Stream as _Samples
    from .._integration import (
        Duration,
        Hook,
        Log,
        OnSkip,
        Opener,
        StreamKeywords,
        TransformOptions,
        URLs,
    )


# What a state has beside that of shardfeed.Stream.
_OWN = {"at", "ended"}


def _refuse_items_taken_ahead() -> None:
    if saves_items_taken_ahead():
        raise UsageError(
            "Lightning takes a batch ahead where it gets no length, and StatefulDataLoader counts "
            "it as used: a run that is resumed in the middle of an epoch would leave it out; help: "
            "give epoch_samples (and num_workers), or use shardfeed.torch.loader(urls, batch=)"
        )


class Stream(IterableDataset[Any]):
    """The samples of many shards, in order, each process and worker reading its share.

        data = Stream("train-{000000..000099}.tar", transform=to_tensors, shuffle=1000, seed=1)
        loader = DataLoader(data, batch_size=256, num_workers=4)

        data = Stream(urls, batch=256, decode="jpg:image/rgb8/resize=64x64, cls:int")
        loader = DataLoader(data, batch_size=None, num_workers=4)    # items are batches already

    An item is what `transform` makes of a shardfeed.Sample, whose fields are read-only views; or,
    without one, a dict with a copy of each field, and the key as "__key__". With the option batch,
    what it makes of a shardfeed.Batch, or a dict of tensors as loader() gives it: give DataLoader
    batch_size=None then. A sample or batch for which `transform` gives None is left out, and
    counted in stats(). options, hooks, timeout, log, on_skip and opener are those of
    shardfeed.Stream and its batches(); with workers, each of them calls its copy of the functions.

    urls: also a shardfeed.Stream, a mix of several, or a recipe; options are given beside, or
    instead of, its own: Stream(shardfeed.mix([photographs, drawings], weights=[3, 1]), batch=256).
    The streams of a mix have one rank and one number of workers, those of this stream. With
    until="forever" no rank is at its end before another.

    Shares: rank and world_size come from the arguments (rank=0, world_size=1: every process reads
    all); else from torch.distributed, when there is a process group; else from RANK and WORLD_SIZE,
    or SLURM_PROCID and SLURM_NTASKS, of the environment. UsageError where these contradict one
    another, and where there are several processes but nothing says which this is. Workers are those
    of the DataLoader, whose number must be num_workers if that is given, unless worker is given
    too. With epoch_samples all consumers have the same number of batches.

    Every iter() is the next epoch, also in workers, of any start method, persistent or not. An
    epoch begins with its first item. set_epoch() says which is next.

    state_dict() may be called at any time, where the items are taken: in this process, or in each
    worker, as torchdata's StatefulDataLoader does.
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
        self.transform = transform
        self._hooks = hooks
        self._functions: TransformOptions = {}  # of a Loader
        self._recipe = Recipe.of(urls).with_options(
            timeout=timeout, log=log, on_skip=on_skip, opener=opener, **options
        )
        self._options = {**self._recipe.options, **self._recipe.share_options}
        self._epochs = Epochs(self._recipe.first_epoch)
        # How far the number of the epoch goes with each iter(), and whether a new one continues
        # where the last one stopped.
        self._step = max(self._recipe.epochs, 1)
        self._continues = self._recipe.continues
        self._ranks_for_worker: Ranks | None = None  # in its copy, if it cannot see them itself
        self._ranks: Ranks | None = None  # of the last iter()
        self._pid = os.getpid()
        self._samples: _Samples | None = None  # what this process reads,
        self._position: tuple[Share, int] | None = None  # for whom, and which epoch comes next
        self._loaded: dict[str, Any] | None = None  # for the next epoch,
        self._loaded_at: int | None = None  # which is this beginning, if the main process loaded
        self._epoch: Epoch | None = None  # what iter() gave last
        self._without_workers = False  # what a Loader reads
        self._last_stats = {"dropped_samples": 0}  # when it was closed
        self._fetcher: TrainingFetcher | None = None  # of Lightning, which asked for it

    def _number_of(self, option: str) -> int:
        return int(self._options.get(option) or self._recipe.number(option))

    def _remade(
        self,
        hooks: Mapping[str, Hook | str] | None,
        *,
        timeout: Duration = None,
        log: Log | None = log_to_logging,
        on_skip: OnSkip | None = None,
        opener: Opener | None = None,
        **options: Unpack[StreamKeywords],
    ) -> Stream:
        """Another stream of the same shards, with these options beside those of this one."""
        return Stream(
            self._recipe,
            transform=self.transform,
            hooks=self._hooks if hooks is None else hooks,
            timeout=timeout,
            log=log,
            on_skip=on_skip,
            opener=opener,
            **options,
        )

    @property
    def samples(self) -> _Samples | None:
        """The shardfeed.Stream underneath, in the process that takes items, once it took one."""
        return self._samples

    def stats(self) -> dict[str, int]:
        """The counters of shardfeed.Stream.stats(), in the process that takes items, and
        "dropped_samples": those for which the transform gave None, in the same epoch.
        """
        self._refuse_for_workers("its counters")
        samples = self._samples
        if samples is None or self._epoch is None:
            return {**self._recipe.open().stats(), **self._last_stats}
        return _stats(samples, self._epoch)

    def _refuse_for_workers(self, what: str) -> None:
        if get_worker_info() is None and self._epochs.by_loader:
            raise UsageError(
                f"workers of a DataLoader read this stream, and only they know {what}; help: use "
                "torchdata's StatefulDataLoader, or shardfeed.torch.loader()"
            )

    # ---- Epochs ----

    @property
    def epoch(self) -> int:
        """The number of the epoch that runs; between two of them, and where workers of a DataLoader
        read, that of the next one.
        """
        if self._loaded is not None:
            return self._epoch_after(self._loaded)
        running = None if self._epoch is None else self._epoch.number
        if running is None or (get_worker_info() is None and self._epochs.by_loader):
            return self._epochs.following
        return running

    def __iter__(self) -> Iterator[Any]:
        # Workers hand items to the main process, and only that one knows what was used of them.
        self._fetcher = training_fetcher() if get_worker_info() is None else None
        transform = self.transform
        if transform is None:
            transform = _Tensors.of if self._number_of("batch") else _copied
        return self._iterate(transform)

    def _iterate(self, transform: Callable[[Any], Any]) -> Epoch:
        """The next epoch, of what `transform` makes of samples or batches."""
        if self._pid != os.getpid():  # a forked child, to which nothing open belongs
            self._pid = os.getpid()
            self._samples = self._position = None
        ranks = self._find_ranks()
        refuse_second_share(self._options, ranks)
        self._epoch = Epoch(self, ranks, transform)
        if get_worker_info() is not None:
            send_tensors_in_buffers()
            # Workers begin together, and not when they happen to be asked for an item.
            self._epoch.begin()
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Makes the next epoch this one, for all workers too. The running one continues.

        A state that was loaded holds on if it continues in this epoch; else it is forgotten.
        """
        # In every process, where a prepared DataLoader iterates in the first one alone.
        refuse_second_share(self._options, self._ranks_for_worker)
        check_epoch(epoch)
        if self._loaded is not None and epoch != self._epoch_after(self._loaded):
            self._loaded = None
        self._epochs.set(epoch)

    def __len__(self) -> int:
        """The items of an epoch, of one process: known with epoch_samples, or with the index of
        every shard; else TypeError. Samples that are skipped or dropped are counted.

        For a DataLoader with workers, give num_workers here too. Without, it is the same number if
        epoch_samples can be divided by all consumers (and batch). With indexes alone TypeError
        where the number of workers makes a difference and is not known.
        """
        return self._length(has_workers=self._without_workers or "num_workers" in self._options)

    def _length(self, has_workers: bool) -> int:
        """has_workers: whether it is known how many there are."""
        total, epochs = self._number_of("epoch_samples"), self._number_of("epochs")
        if epochs == 0:
            _refuse_items_taken_ahead()
            raise TypeError(self._recipe.unknown_length)
        ranks = self._find_ranks()
        workers = self._number_of("num_workers")
        consumers = ranks.world_size * workers
        if total == 0:
            return self._counted_length(ranks, workers, has_workers)
        if self._number_of("batch"):
            batches = self._recipe.batches_of_epoch(consumers)
            assert batches is not None
            return workers * batches
        first = ranks.rank * workers
        return epochs * sum(
            total // consumers + (consumer < total % consumers)
            for consumer in range(first, first + workers)
        )

    def _counted_length(self, ranks: Ranks, workers: int, has_workers: bool) -> int:
        """What the indexes of all shards say."""
        cut = [
            name
            for name in ("pack", "batch_elements", "bucket")
            if self._options.get(name, "") not in ("", "0")
        ]
        if self._number_of("batch") and cut:
            _refuse_items_taken_ahead()
            raise TypeError(
                f"how many batches {cut[0]} makes is not known before their samples are read"
            )
        even = self._options.get("even", "none") != "none"
        size, whole = self._number_of("batch"), self._options.get("last") == "drop"
        running = self._epoch.number if self._epoch is not None else None
        epoch = self._epochs.following if running is None else running

        def items(worker: int, workers: int = workers) -> int:
            own = self._recipe.share(ranks.rank, ranks.world_size, worker, workers)
            count = len(own.open(epoch))
            if not size:
                return count
            # A pass may contain several epochs: batches continue across them.
            return count // size if whole else -(-count // size)

        try:
            if self._recipe.is_by_index and "worker" not in self._options:
                return items(0, 1)  # those of the rank, regardless of the number of workers
            if even:  # the same number for every rank and worker
                return workers * items(0)
            if "worker" in self._options:
                return items(self._number_of("worker"))
            length = sum(map(items, range(workers)))
        except TypeError:
            _refuse_items_taken_ahead()
            raise
        if not has_workers and (ranks.world_size > 1 or size or self._number_of("limit")):
            raise TypeError(
                "the length depends on the number of workers of the DataLoader; help: give "
                "num_workers here too (1 for none), or epoch_samples"
            )
        return length

    def _find_ranks(self) -> Ranks:
        ranks = self._ranks_for_worker or ranks_of(self._options)
        if self._ranks is not None and self._ranks[:2] != ranks[:2]:
            raise UsageError(
                f"{ranks}, but this stream was used as rank {self._ranks.rank} of "
                f"{self._ranks.world_size} before; help: make the stream after the process group, "
                "or give rank= and world_size="
            )
        self._ranks = ranks
        return ranks

    def _begin(self, ranks: Ranks) -> tuple[int, Iterator[Any] | None]:
        """The number of the epoch that begins, and its samples or batches; None: it is over."""
        share, info = share_of(ranks, self._options), get_worker_info()
        key = NO_LOADER if info is None else info.seed - info.id
        loaded, resumed, is_over = self._loaded, None, False
        if loaded is not None and (info is None or self._loaded_at is None):
            resumed = self._epoch_after(loaded)
            if info is not None and loaded["ended"]:
                # Other workers have more of that epoch. This one has not, and continues after it.
                resumed, is_over = loaded["at"], True
        epoch, begun = self._epochs.begin(share.worker, key, self._step, resumed)
        if resumed is None and begun != self._loaded_at:
            loaded = None  # the main process loaded it, for an epoch that is gone
        try:
            if is_over:
                self._open_at(share, epoch + self._step, loaded)
            elif loaded is not None:
                self._open_at(share, epoch, loaded)
            elif self._position != (share, epoch):
                self._open_kept(share, epoch)
            items = None if is_over else self._items()
        except Exception:
            if info is None:
                self._epochs.set(epoch)  # which has not begun
            raise
        self._loaded = None
        self._position = share, epoch + self._step
        return epoch, items

    def _open_at(self, share: Share, epoch: int, state: Mapping[str, Any] | None) -> None:
        """Makes this epoch, or what is left of it, the next one of the stream underneath."""
        if self._samples is not None:
            self._samples.close()
        self._samples = self._recipe.share(*share).open(epoch)
        if state is not None and state["state"]:
            self._samples.load_state_dict({name: state[name] for name in state.keys() - _OWN})
        self._position = share, epoch

    def _open_kept(self, share: Share, epoch: int) -> None:
        """Makes this epoch the next one, from where the one before it ended."""
        state = self._epochs.kept(share, epoch)
        if state is not None and not state.get("ended", True):
            # It was loaded behind the last item of that epoch, and nobody has asked for more.
            self._open_at(share, epoch - self._step, state)
            if next(self._items(), None) is None:
                self._position = share, epoch
                return
            state = None  # that epoch was given up
        self._open_at(share, epoch, state)

    def _items(self) -> Iterator[Any]:
        assert self._samples is not None
        if self._number_of("batch") > 0:
            return self._samples.batches(hooks=self._hooks, **self._functions)
        return iter(self._samples)

    def _end(self) -> None:
        """Tells workers to come where this one stopped. Those that begin a pass need no telling."""
        if self._continues and get_worker_info() is not None:
            assert self._samples is not None
            assert self._position is not None
            self._epochs.keep(*self._position, self._samples.state_dict())

    # ---- State ----

    def state_dict(self) -> dict[str, Any]:
        """The position of this stream: a small dict, which JSON can hold, without secrets of URLs.

        It is that of shardfeed.Stream.state_dict(), valid for the items handed out so far: "epoch"
        is the number of the epoch that runs, or of the next one. "at" is that of the last one that
        began, and "ended" whether that is at its end.
        """
        fetcher = self._fetcher
        if fetcher is not None and fetcher.takes_ahead and not self._at_end():
            raise UsageError(
                "Lightning takes an item ahead of a stream without a length, which this state "
                "would count as used; help: give epoch_samples, use shardfeed.torch.loader(urls, "
                "batch=), or save at the end of an epoch"
            )
        return self._state(0)

    def _at_end(self) -> bool:
        return self._epoch is None or (self._epoch.begun and self._epoch.number is None)

    def _state(self, unread: int) -> dict[str, Any]:
        """The state without the last `unread` items."""
        self._refuse_for_workers("its position")
        if self._loaded is not None:
            return dict(self._loaded)
        if self._epoch is None or not (self._epoch.begun or (self._continues and self._samples)):
            following = self._epochs.following
            return {**self._before(following), "at": following, "ended": False}
        epoch, is_over = self._epoch.begin()
        if is_over and not self._continues:
            return {**self._before(self._epochs.following), "at": epoch, "ended": True}
        assert self._samples is not None
        return {**self._samples.state_dict(unread=unread), "at": epoch, "ended": is_over}

    def _before(self, epoch: int) -> dict[str, Any]:
        """The state of a stream before an epoch that begins a pass."""
        return self._recipe.open(epoch).state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next iter() resume where `state` was taken.

        The state of an epoch at its end leads to the next epoch; in a worker to the end first,
        because other workers may have more of that epoch.
        """
        if state.get("shardfeed") != 1 or not {"epoch", "state"} <= state.keys():
            raise UsageError("this is no state of a stream; help: give what state_dict() gave")
        self._epoch = None
        self._loaded, self._loaded_at = {"at": state["epoch"], "ended": False, **state}, None
        if get_worker_info() is None:
            self._epochs.set(self._epoch_after(self._loaded))
            self._loaded_at = self._epochs.begun + 1
            if not state["state"]:
                self._loaded = None  # the number of the epoch says all, to any number of workers
        elif self._continues:
            # For the next epoch, also if this worker never comes to the end of this one: at the end
            # of an epoch StatefulDataLoader makes workers, gives them the state of its last items,
            # and ends them, some before they are asked for an item, for those of the next epoch.
            share = share_of(self._find_ranks(), self._options)
            self._epochs.keep(share, int(self._loaded["at"]) + self._step, self._loaded)

    def _epoch_after(self, state: Mapping[str, Any]) -> int:
        """The epoch that continues, or begins, where a state was saved."""
        return int(state["at"]) + (self._step if state["ended"] else 0)

    def close(self) -> None:
        """Stops reading and frees what was read ahead. iter() opens the shards again."""
        if self._samples is not None:
            if self._epoch is not None:
                self._last_stats = _stats(self._samples, self._epoch)
            self._samples.close()
        self._samples = self._position = self._epoch = None

    # ---- Copies ----

    def __getstate__(self) -> dict[str, Any]:
        not_copied = "_samples", "_position", "_epoch", "_ranks", "_fetcher"
        state = {**self.__dict__, **dict.fromkeys(not_copied)}
        if get_spawning_popen() is not None:
            # A process that is started again has no process group to ask, and its stack does not
            # show who iterates.
            ranks = state["_ranks_for_worker"] = self._find_ranks()
            refuse_second_share(self._options, ranks)
        return state

    def __repr__(self) -> str:
        return f"<shardfeed.torch.Stream {self._recipe}>"


class Epoch:
    """One epoch of a stream, which begins when its first item or its state is asked for."""

    def __init__(self, stream: Stream, ranks: Ranks, transform: Callable[[Any], Any]) -> None:
        self._stream = stream
        self._ranks = ranks
        # Nothing says that there are other processes, but they may come to know one another.
        self._is_alone = not ranks.source and torch.distributed.is_available()
        self._transform = transform
        self.dropped = 0  # samples for which it gave None
        self._number: int | None = None
        self._items: Iterator[Any] | None = None  # None when the epoch is over
        self._made: Any = None  # of the batch that comes next

    @property
    def begun(self) -> bool:
        return self._number is not None

    @property
    def number(self) -> int | None:
        """None before it began, and when it is over."""
        return None if self._items is None else self._number

    def begin(self) -> tuple[int, bool]:
        """The number of the epoch, and whether it is over. Begins it if it has not begun."""
        if self._number is None:
            self._number, self._items = self._stream._begin(self._ranks)
        return self._number, self._items is None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._is_alone and torch.distributed.is_initialized():
            self._stream._find_ranks()
        if self._number is None:
            self.begin()
        if self._items is None:
            raise StopIteration
        while True:
            try:
                item = next(self._items)
            except StopIteration:
                self._items = None
                self._stream._end()
                raise
            made, self._made = self._made, None
            if made is None:
                made = self._transform(item)
            if made is not None:
                return made
            self.dropped += len(item) if isinstance(item, Batch) else 1

    def look(self) -> Any:
        """The batch that comes next, and stays that; None at the end. Of batches only."""
        self.begin()
        items: Any = self._items
        return None if items is None else items.peek()

    def make_next(self) -> None:
        """Makes now what next() then gives, of the batch that comes next."""
        if self._made is None and (batch := self.look()) is not None:
            # What the transform raises comes in its turn: next() calls it again.
            with contextlib.suppress(Exception):
                self._made = self._transform(batch)


def _stats(samples: _Samples, epoch: Epoch) -> dict[str, int]:
    stats = samples.stats()
    return {**stats, "dropped_samples": stats.get("dropped_samples", 0) + epoch.dropped}


def tensors_of(batch: Batch) -> dict[str, Any]:
    """The columns of a batch as Batch.torch() has them, and the mask of an epoch that is padded."""
    tensors = batch.torch()
    if batch.is_padded:
        tensors[VALID] = batch.column(VALID).torch()
    return tensors


class _Tensors(dict[str, Any]):
    """A batch that default_collate() refuses to put into another batch."""

    @classmethod
    def of(cls, batch: Batch) -> _Tensors:
        return cls(tensors_of(batch))


def _refuse_collation(batch: list[Any], *, collate_fn_map: object = None) -> Any:
    raise UsageError(
        "the items of this stream are batches already, of as many samples as its option batch "
        "says; help: give DataLoader batch_size=None"
    )


# Which default_collate() asks first, by class.
default_collate_fn_map.update({_Tensors: _refuse_collation, Batch: _refuse_collation})


def _copied(sample: Sample) -> dict[str, Any]:
    # DataLoader would make lists of numbers of the views that a sample consists of.
    return {KEYS: sample.key, **sample.to_dict()}
