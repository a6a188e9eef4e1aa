"""Batches of tensors without workers: threads of the library read and decode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import SequentialSampler, get_worker_info

from .. import Batch, TimeoutError, UsageError
from .._integration import KEYS, asked_by_data_loader, log_to_logging
from ._device import TRANSFERS, Moved, Mover, map_tensors, numbered
from ._lightning import training_fetcher
from ._stream import Stream, tensors_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType
    from typing import Literal

    from typing_extensions import Self, Unpack

    from .. import Recipe
    from .. import Stream as _Samples
    from .._integration import Duration, Hook, Log, OnSkip, Opener, StreamKeywords, URLs
    from ._lightning import TrainingFetcher
    from ._stream import Epoch


def loader(
    urls: URLs | Stream | _Samples | Recipe,
    *,
    device: Any = None,
    pin_memory: bool | None = None,
    move_ahead: bool = True,
    keys: bool = False,
    hooks: Mapping[str, Hook | str] | None = None,
    timeout: Duration = None,
    log: Log | None = log_to_logging,
    on_skip: OnSkip | None = None,
    opener: Opener | None = None,
    transform: Callable[[dict[str, Any]], Any] | None = None,
    batch_transform: Callable[[dict[str, Any]], Any] | None = None,
    transform_threads: int = 0,
    transform_workers: int = 0,
    transform_timeout: Duration = None,
    transform_start: Literal["fork", "spawn", "forkserver"] | None = None,
    transform_ragged: Mapping[str, Literal["offsets", "pad"]] | None = None,
    **options: Unpack[StreamKeywords],
) -> Loader:
    """Batches of tensors, for training: what DataLoader is for, without its workers.

        batches = shardfeed.torch.loader(
            "train-{000000..000099}.tar", batch=256, decode="jpg:image/rgb8/resize=64x64, cls:int",
            shuffle=1000, seed=1, device="cuda",
        )
        for batch in batches:
            loss = model(batch["jpg"], batch["cls"])

    An item is a dict: field -> tensor, where the field has numbers; else what Batch.torch() has.
    keys=True adds "__key__", the list of keys. With even="pad" there is "__valid__", a tensor of
    bool: False for rows that repeat a sample to fill the epoch. Metrics must ignore them.

    urls: also a stream, mix or recipe, whose options are taken, and those given here beside them.

    device: where tensors are moved. To a device of CUDA they go through pinned memory, which is
    used again, and on a stream of their own: with move_ahead the next batch is on its way there
    while the program has this one, and is no batch that was used, for states. A batch is then given
    when the next one was decoded, too; move_ahead=False gives it at once. pin_memory=False copies
    without pinned memory, when a batch is asked for, as to other devices; True pins tensors that
    stay.

    transform: a function for each sample, of a dict whose arrays are tensors, before it becomes a
    row: a transform of torchvision, as it is. batch_transform: one for each batch, of the dict of
    tensors that an item is, and its result is the item. These, and where they run
    (transform_threads, transform_workers, transform_timeout, transform_start), and which arrays may
    be of unequal shape (transform_ragged), are those of
    shardfeed.Stream.batches().

    tokenizer, eos: with pack=N, what makes tokens of texts, and a token behind each text; those of
    shardfeed.Stream.batches(), too. Beside a column whose rows were padded with zeros is
    "NAME.shape", of (rows, dimensions of a row): the shape that each had.

    Ranks, epochs and states are those of shardfeed.torch.Stream; hooks, timeout, log, on_skip,
    opener and options those of shardfeed.Stream.
    """
    if isinstance(urls, Stream):
        stream = urls._remade(
            hooks, timeout=timeout, log=log, on_skip=on_skip, opener=opener, **options
        )
    else:
        stream = Stream(
            urls, hooks=hooks, timeout=timeout, log=log, on_skip=on_skip, opener=opener, **options
        )
    made = Loader(stream, device=device, pin_memory=pin_memory, move_ahead=move_ahead, keys=keys)
    stream._functions = {
        "transform": transform,
        "batch_transform": batch_transform and OnTensors(batch_transform, keys),
        "transform_threads": transform_threads,
        "transform_workers": transform_workers,
        "transform_timeout": transform_timeout,
        "transform_start": transform_start,
        "transform_ragged": transform_ragged or {},
        "transform_arrays": "torch",
    }
    return made


@dataclass(frozen=True)
class OnTensors:
    """A function of a batch's tensors, as one of the batch. It can be pickled if the other can."""

    function: Callable[[dict[str, Any]], Any]
    keys: bool

    def __call__(self, batch: Batch) -> Any:
        return self.function(_tensors_and_keys(batch, self.keys))


def _tensors_and_keys(batch: Batch, keys: bool) -> dict[str, Any]:
    return {**tensors_of(batch), **({KEYS: batch.sample_keys} if keys else {})}


_NO_DATA_SET = (
    "a loader is used as it is, and not in a DataLoader; help: give shardfeed.torch.Stream(urls, "
    "batch=...) to DataLoader(..., batch_size=None)"
)


class Loader:
    """Batches of tensors of a stream, on a device. Made by shardfeed.torch.loader().

    Every iter() is the next epoch. There is one active iterator: iter() ends the last one.

    Lightning takes a batch ahead of a loader without a length, for which states that it saves make
    up: a resumed run trains on that batch.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        device: Any = None,
        pin_memory: bool | None = None,
        move_ahead: bool = True,
        keys: bool,
    ) -> None:
        if not stream._number_of("batch"):
            raise UsageError("how many samples are a batch? help: loader(urls, batch=256)")
        if stream.transform is not None:
            raise UsageError(
                "a loader makes tensors of batches itself; help: leave out the stream's transform, "
                "and give loader() a transform of samples, or a batch_transform"
            )
        self._stream = stream
        self._dataset = stream._remade(None, batch=0)
        self._dataset._epochs = stream._epochs
        self._dataset._without_workers = True
        self._keys = keys
        self._device = None if device is None else torch.device(device)
        pins_for_device = self._device is not None and self._device.type in TRANSFERS
        self._pins = pins_for_device if pin_memory is None else pin_memory
        self._transfers = pins_for_device and self._pins
        self._moves_ahead = move_ahead and self._transfers
        self._mover: Mover | None = None
        self._resumed = False  # whether the next iter() resumes an epoch that has begun,
        self._loaded_end = False  # and no batch is left of that
        # What iter() gave last. Not "_iterator", which Lightning sets to None in all that have it.
        self._latest: _Tensors | None = None

    @property
    def stream(self) -> Stream:
        """The stream that batches are taken from."""
        return self._stream

    # Where frameworks look, as at a DataLoader.

    @property
    def batch_size(self) -> int:
        """How many samples are a batch."""
        return self._stream._number_of("batch")

    @property
    def dataset(self) -> Stream:
        """The samples that batches are made of. len() of it is how many those are, where known."""
        return self._dataset

    @property
    def sampler(self) -> SequentialSampler:
        """One that changes nothing: the order is that of the stream."""
        return SequentialSampler(self._dataset)

    @property
    def epoch(self) -> int:
        """The number of the epoch that runs; between two of them that of the next one."""
        return self._stream.epoch + (self._stream._step if self._loaded_end else 0)

    def stats(self) -> dict[str, int]:
        """Counters of the epoch that runs or ran last, by name: "samples", "skipped_shards", ..."""
        return self._stream.stats()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if get_worker_info() is not None:
            raise UsageError(_NO_DATA_SET)
        moves_on = self._loaded_end
        fetcher = training_fetcher()
        # Lightning, too, counts an epoch as done with the last batch of a length that it knows.
        moves_on |= self._resumed and fetcher is not None
        self._resumed = self._loaded_end = False
        self._latest = _Tensors(self, fetcher, moves_on)
        return self._latest

    def _tensors(self, batch: Any) -> Any:
        """The item of a batch, or of what a batch_transform made of it: Moved on its way."""
        is_batch = isinstance(batch, Batch)
        if self._transfers:
            value = _tensors_and_keys(batch, self._keys) if is_batch else batch
            return self._mover_now().begin(value)
        if not is_batch:
            return map_tensors(batch, self._moved)
        if self._pins:
            batch = batch.pin_memory()
        return map_tensors(_tensors_and_keys(batch, self._keys), self._moved_pinned)

    def _mover_now(self) -> Mover:
        assert self._device is not None
        device = numbered(self._device)
        if self._mover is None or self._mover.device != device:
            self._mover = Mover(device)
        return self._mover

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        return self._moved_pinned(tensor.pin_memory() if self._pins else tensor)

    def _moved_pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        if self._device is None:
            return tensor
        return tensor.to(self._device, non_blocking=self._pins)

    def __len__(self) -> int:
        """The batches of an epoch: known with epoch_samples, or with the index of every shard; else
        TypeError.
        """
        if asked_by_data_loader():
            raise UsageError(_NO_DATA_SET)
        return self._stream._length(has_workers=True)

    def set_epoch(self, epoch: int) -> None:
        """Makes the next epoch this one. The running one continues."""
        self._stream.set_epoch(epoch)
        if self._stream._loaded is None:
            self._resumed = self._loaded_end = False

    def state_dict(self) -> dict[str, Any]:
        """The position after the batches handed out so far: see Stream.state_dict()."""
        unread = 0 if self._latest is None else self._latest.unused()
        return self._stream._state(unread)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next iter() continue with the batch after those handed out before `state`.

        After the last batch of an epoch that is the first one of the next epoch, where the state
        knows that it was the last (epoch_samples), and in Lightning. Else that iter() has no batch.
        """
        self._stream.load_state_dict(state)
        self._resumed = True
        self._loaded_end = state.get("left") == 0
        self._latest = None

    def close(self) -> None:
        """Stops reading and frees what was read ahead. Batches stay valid."""
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_mover": None}  # a copy makes one of its own

    def __repr__(self) -> str:
        return f"<shardfeed.torch.Loader device={self._device} of {self._stream!r}>"


class _Tensors:
    """The tensors of one epoch. An exception does not end it, as with iterators of streams."""

    def __init__(self, loader: Loader, fetcher: TrainingFetcher | None, moves_on: bool) -> None:
        self._loader = loader
        self._moves_on = moves_on  # to the next epoch, if nothing is left of this one
        self._handed_out = 0
        self._fetcher = fetcher
        self._looks_ahead = loader._moves_ahead
        self._held: Any = None  # what is handed out when the next one is on its way
        self._failure: Exception | None = None  # what came in place of that
        self._batches = self._next_epoch()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        if self._held is None:  # unless an interrupt kept it
            self._held = self._take()
        if self._looks_ahead and self._failure is None:
            self._look_ahead()
        held, self._held, self._handed_out = self._held, None, self._handed_out + 1
        item: dict[str, Any] = held.hand_over() if isinstance(held, Moved) else held
        return item

    def _take(self) -> Any:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        batch = self._next()
        if batch is None and self._moves_on:
            self._moves_on = False
            self._batches = self._next_epoch()
            batch = self._next()
        if batch is None:
            raise StopIteration
        self._moves_on = False
        return batch

    def _next(self) -> Any:
        if self._looks_ahead:
            # A state then has the position before this item, and an interrupt loses nothing.
            self._batches.make_next()
        return next(self._batches, None)

    def _look_ahead(self) -> None:
        """Lets the next item be on its way. What goes wrong comes in its turn."""
        try:
            self._batches.make_next()
        except TimeoutError:
            pass  # it waits as long again
        except Exception as failure:
            self._failure = failure

    def unused(self) -> int:
        """How many of the batches that were taken were not used."""
        ahead = 0 if self._fetcher is None else self._fetcher.taken_ahead(self._handed_out)
        return ahead + (self._held is not None)

    def _next_epoch(self) -> Epoch:
        return self._loader.stream._iterate(self._loader._tensors)
