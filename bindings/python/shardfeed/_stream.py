"""Streams: samples of many shards, epoch by epoch."""

from __future__ import annotations

import copy
import os
import re
import sys
from typing import TYPE_CHECKING, NoReturn, TypeVar

from ._errors import Error, UsageError
from ._hooks import checked_hooks
from ._iterators import ENDLESS, BatchIterator, SampleIterator, refuse_async
from ._log import log_to_logging
from ._open_stream import BatchStream, BlockStream, Part, stat_names
from ._options import native_options, option_default, option_texts
from ._plan import samples_of_consumer
from ._recipe import Recipe
from ._state import SavedState, from_dict, to_dict
from ._urls import redacted, url_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self, TypeAlias, Unpack

    from ._hooks import Hook
    from ._log import Log
    from ._native import BatchOptions, StreamOptions
    from ._open_stream import Source
    from ._urls import URLs

    Duration: TypeAlias = float | str | None

_Opened = TypeVar("_Opened", BlockStream, BatchStream)

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}


def _seconds(timeout: Duration) -> float:
    """A time such as 1.5, "30s" or None in seconds; 0 is no limit, as in the library."""
    if timeout is None:
        return 0.0
    text = option_texts({"timeout": timeout})["timeout"]
    native_options({"timeout": text})  # refuses what the library would refuse
    number, unit = re.fullmatch(r"([0-9.]+) *([a-z]*)", text).groups()  # type: ignore[union-attr]
    return float(number) * _SECONDS[unit]


# The options that say what one of several consumers reads.
SHARE = ("rank", "world_size", "worker", "num_workers")

# What batches() takes beside the options of its stream.
_BATCH_OPTIONS = {"decode", "last", "ragged", "missing", "decode_threads", "max_decoded"}


def batches_of_epoch(total: int, consumers: int, texts: Mapping[str, str]) -> int:
    """How many batches each consumer has of an epoch of `total` samples (epoch_samples)."""
    size = int(texts["batch"])
    # The smallest share, so that no rank has a batch more than another.
    samples = total // consumers * int(texts.get("epochs", "1"))
    count = samples // size if texts.get("last") == "drop" else -(-samples // size)
    if count == 0:
        raise UsageError(
            f"an epoch of {samples} samples has no batch of {size}; help: raise epoch_samples, "
            "or lower batch"
        )
    return count


def described(urls: list[str], options: Mapping[str, str]) -> str:
    """The first URLs, without secrets, and the options."""
    shown = [repr(redacted(url)) for url in urls[:3]]
    if len(urls) > 3:
        shown.append(f"... {len(urls)} URLs")
    return " ".join([*shown, *(f"{name}={text}" for name, text in options.items())])


# ---- Stream -------------------------------------------------------------------------------------


class Stream(Recipe):
    """The samples of many shards, in order, read ahead of the consumer.

        with shardfeed.Stream("train-{000000..000099}.tar", shuffle=1000, seed=1) as stream:
            for sample in stream:
                image, label = sample["jpg"], int(bytes(sample["cls"]))

    urls: one or many of: a path, file:///path, "-" (standard input), "pipe:COMMAND", "@FILE" (a
    list). Braces are expanded, "train-{000000..000099}.tar", and so are paths with * ? [...], which
    stand for the files that match, sorted, and ~/. expand=False takes URLs as they are.

    timeout: the longest time that next() waits for a sample, in seconds or as text ("200ms");
    then it raises shardfeed.TimeoutError, and the next call continues.

    log: a function that takes a level (a number of the logging module) and a message, for skipped
    samples and shards; None for silence. By default the logger "shardfeed".

    Every iter(stream) is the next epoch: the first starts at the option epoch. With epoch_samples,
    an epoch continues where the last one stopped. With epochs=0 an iterator has no end, and the
    next one continues where it stopped. A stream has one active iterator: iter(stream) ends the
    last one.

    stream.batches() gives batches instead, decoded by threads of the library: Stream(urls,
    batch=256, decode="jpg:image/rgb8, cls:int").batches(). iter(stream) gives samples whether or
    not there is the option batch.

    stream.state_dict() has the position of the stream; after load_state_dict() the next iterator
    resumes with exactly the next sample or batch.

    A Stream is a recipe. It can be pickled, and used in a forked process, where the next
    iter(stream) opens the shards again. An iterator cannot: it raises ForkedError.
    """

    def __init__(
        self,
        urls: URLs,
        *,
        timeout: Duration = None,
        log: Log | None = log_to_logging,
        **options: Unpack[StreamOptions],
    ) -> None:
        self._urls = url_list(urls)
        self._prepare(timeout, log, option_texts(options))
        self._open_early()

    def _prepare(self, timeout: Duration, log: Log | None, texts: dict[str, str]) -> None:
        """Makes this a recipe that opens nothing until it is used."""
        self._timeout = _seconds(timeout)
        self._log = log
        self._closed = False
        self._resume: SavedState | None = None
        self._iterator: SampleIterator | BatchIterator | None = None
        self._source: BlockStream | BatchStream | None = None
        self._use_options(texts)

    def _use_options(self, texts: dict[str, str]) -> None:
        native_options(texts, self._opener)  # refuses bad values before the next lines use them
        self._options = texts
        self._counted: dict[int, int] = {}  # samples of an epoch
        self._find_epochs()

    def _open_early(self) -> None:
        # Opening starts no thread and opens no shard, but finds what is wrong with the arguments.
        self._source = (
            self._open(BatchStream, self._options)
            if self._number("batch")
            else self._open(BlockStream, self._sample_texts())
        )

    def _number(self, option: str) -> int:
        return int(self._options.get(option) or option_default(option))

    def _sample_texts(self) -> dict[str, str]:
        return {**self._options, "batch": "0"}

    def _open(self, kind: type[_Opened], texts: dict[str, str]) -> _Opened:
        epoch = self._next_epoch if self._resume is None else self._resume.opened
        return kind(
            self._source_of(epoch), self._native_texts(texts), epoch, self._timeout, self._log
        )

    # ---- Recipes: what others make streams of ----

    def _unopened(self, name: str) -> Self:
        """A stream of its own from the same recipe, which opens nothing until it is used."""
        if self._closed:
            raise UsageError(f"{name} is closed; help: make it again")
        if self._resume is not None:
            raise UsageError(
                f"{name} has a loaded state; help: load the state into what uses the stream"
            )
        return copy.copy(self)

    def _with(self, texts: Mapping[str, str]) -> Self:
        """An unopened stream with these options beside, or instead of, those of this one."""
        made = self._unopened("the stream")
        made._use_options({**self._options, **texts})
        return made

    def _share_from(self, share: Mapping[str, str], epoch: int) -> Self:
        """What one consumer reads of this recipe, an unopened stream that begins with this epoch.

        share: options that SHARE names.
        """
        made = self._with(share)
        made._next_epoch = epoch
        return made

    # ---- What a mix does in another way ----

    _opener = "stream"  # whose options it takes
    _unknown_length = (
        "the length of this stream is not known; help: give epoch_samples, which says how many "
        "samples are an epoch, or make the index of every shard: shardfeed.Dataset(urls)"
    )

    def _find_epochs(self) -> None:
        self._epochs = self._number("epochs")
        # Whether an epoch continues where the last one stopped.
        self._goes_on = self._epochs == 0 or self._number("epoch_samples") > 0
        self._next_epoch = self._number("epoch")

    def _share(self) -> dict[str, str]:
        """The options that SHARE names, where they were given."""
        return {name: self._options[name] for name in SHARE if name in self._options}

    def _consumer(self) -> tuple[int, int]:
        """The number of this consumer, and how many there are."""
        share = self._share()
        rank, ranks, worker, workers = (
            int(share.get(name) or option_default(name)) for name in SHARE
        )
        return rank * workers + worker, ranks * workers

    def _source_of(self, epoch: int) -> Source:
        """What the library opens for an epoch."""
        return self._urls

    def _native_texts(self, texts: dict[str, str]) -> dict[str, str]:
        """The options for the library, of which one stream may be several epochs."""
        return {**texts, "epochs": "0"} if self._goes_on else texts

    def _as_part(self, epoch: int) -> Part:
        """The stream as a part of a mix, in the mix's epoch number `epoch`."""
        first = self._number("epoch") + epoch * max(self._epochs, 1)
        return Part(self._urls, {**self._options, "epoch": str(first)}, self._log)

    def _never_ends(self) -> bool:
        """Whether it has no end as a part of a mix."""
        return self._epochs == 0

    def _has_lanes(self) -> bool:
        """Whether the option lanes was given, so that a state is good for other consumers, too."""
        return "lanes" in self._options

    def _is_secure(self) -> bool:
        return self._options.get("secure") in ("true", "1", "yes", "on")

    def _leave_parent(self) -> None:
        """In a forked child, lets go of what belongs to the parent."""
        if self._source is not None and self._source.pid != os.getpid():
            self._source = self._iterator = None

    def __aiter__(self) -> NoReturn:
        refuse_async()

    def __iter__(self) -> SampleIterator:
        previous = self._iterator
        source = self._begin_epoch(BlockStream, self._sample_texts())
        counted = self._number("epoch_samples") > 0 and self._epochs > 0
        samples = source.epoch_samples * self._epochs if counted else ENDLESS
        left = self._resumed_left("samples", samples)
        self._iterator = SampleIterator(source, left, previous)
        if previous is not None:
            previous.refuse(UsageError("iter(stream) was called again, which ended this iterator"))
        return self._iterator

    def batches(
        self,
        batch: int | str | None = None,
        *,
        hooks: Mapping[str, Hook | str] | None = None,
        **options: Unpack[BatchOptions],
    ) -> BatchIterator:
        """The batches of the next epoch: `batch` samples at a time, decoded.

            for batch in stream.batches(256, decode="jpg:image/rgb8/resize=64x64, cls:int"):
                images, labels = batch["jpg"], batch["cls"]    # NumPy arrays

        batch, options: decode, last, ragged, missing, decode_threads and max_decoded; those that
        are not given are those of the stream.

        hooks: functions for fields that the library takes as bytes, by field or suffix, called in
        the thread that asks for the column: {"flac": decode_flac} makes batch["flac"] a list of
        what decode_flac made of the bytes of each row. {"pyd": "pickle"} unpickles, which can run
        any program that a shard brings; in secure mode it is refused.

        With epoch_samples, an epoch has as many whole batches as hold those samples (with
        last="drop": as go into them), the same number for every rank and worker.

        decode: "FIELD:KIND, FIELD;OTHER:KIND/...": columns, separated by commas, each named after
        its field; the field after a semicolon is taken where the first one is missing. Without
        ":KIND", and with "auto" for all fields of the first sample, the suffix says the kind:

            bytes, json, msgpack   the bytes; batch[name] makes objects of the last two
            text                   checked to be UTF-8
            int, float             a number as text: int64, float64
            npy, npz/NAME          the array of an .npy file; of the member NAME of an .npz
            image                  JPEG, PNG or WebP. Then, after slashes, what is read:
              rgb8, l8, rgba8      uint8: colour (the default), grey, with alpha
              rgb16, l16           uint16; rgb, l: float32 in 0..1
              hwc, chw             colours last (the default), or first
              exif                 turned as the EXIF orientation says
            and the steps, each once, done in their order:
              resize=N             the shorter side; resize=WxH; resize=fit:WxH keeps the shape
              crop=WxH             the middle; crop=random:WxH
              flip=random          left and right; flip=always

        Random choices are keyed by seed, epoch, shard and key. 16 bits become 8 as value / 257,
        alpha that is not wanted is dropped, and CMYK is an error (UnsupportedError). docs/decode.md
        says all of it.
        """
        texts = {**self._options, **option_texts(options)}
        if batch is not None:
            texts.update(option_texts({"batch": batch}))
        native_options(texts, self._opener)  # refuses bad values before the next lines use them
        unexpected = sorted(set(options) - _BATCH_OPTIONS)
        if unexpected:
            raise TypeError(
                f'unexpected keyword argument: "{unexpected[0]}" is an option of the stream; help: '
                "give it to Stream()"
            )
        size = int(texts.get("batch", "0"))
        if size == 0:
            raise UsageError("how many samples are a batch? help: batches(256), or Stream(batch=)")
        checked = checked_hooks(hooks, {"secure": "true" if self._is_secure() else "false"})
        total = self._number("epoch_samples") if self._epochs else 0
        consumers = self._consumer()[1]
        count = batches_of_epoch(total, consumers, texts) if total else ENDLESS
        previous = self._iterator
        source = self._begin_epoch(BatchStream, texts)
        left = self._resumed_left("batches", count)
        self._iterator = BatchIterator(source, left, previous, checked)
        if previous is not None:
            previous.refuse(UsageError("batches() was called again, which ended this iterator"))
        return self._iterator

    def __len__(self) -> int:
        """The samples that this rank and worker has in an epoch: in the one that runs, or the next.

        It is known with epoch_samples, and where every shard has its index; else TypeError. Samples
        that on_error skips are counted.
        """
        if asked_by_data_loader():
            raise UsageError(
                "torch.utils.data.DataLoader takes samples by number of what is no data set of "
                "PyTorch; help: give it shardfeed.torch.Stream(urls, ...), or use shardfeed.torch."
                "loader(urls, batch=) without one"
            )
        if not self._epochs:
            raise TypeError(self._unknown_length)
        self._leave_parent()
        running = None if self._iterator is None else self._iterator.epoch
        first = self._next_epoch if running is None else running
        if self._number("epoch_samples"):
            return self._samples_of(first) * self._epochs
        return sum(self._samples_of(first + number) for number in range(self._epochs))

    def __bool__(self) -> bool:
        return True

    def _is_even(self) -> bool:
        return self._options.get("even", "none") != "none"

    def _samples_of(self, epoch: int) -> int:
        if not self._is_even() and self._number("epoch_samples") == 0:
            if epoch not in self._counted:
                counted = self._indexed_samples(epoch)
                if counted is None:
                    raise TypeError(self._unknown_length)
                self._counted[epoch] = counted
            return self._counted[epoch]
        if self._source is not None and self._source.epoch == epoch:
            return self._source.epoch_samples
        if epoch not in self._counted:
            texts = self._native_texts(self._sample_texts())
            source = BlockStream(self._source_of(epoch), texts, epoch, 0.0, None)
            self._counted = {epoch: source.epoch_samples}
            source.close()
        return self._counted[epoch]

    def _indexed_samples(self, epoch: int) -> int | None:
        """How many samples the indexes of all shards say that this consumer has in one epoch."""
        lists = [url[1:] for url in self._urls if url.startswith("@")]
        if any(os.path.exists(path) and not os.path.isfile(path) for path in lists):
            return None  # a list that can be read only once, a FIFO, is for the stream itself
        texts = {**self._sample_texts(), "epoch": str(epoch), "epochs": "1"}
        try:
            return samples_of_consumer(self._urls, texts, self._consumer()[0])
        except Error:
            return None  # which reading will say, unless it skips that shard

    def _begin_epoch(self, kind: type[_Opened], texts: dict[str, str]) -> _Opened:
        """The open stream that the next epoch comes from."""
        if self._closed:
            raise UsageError("the stream is closed")
        self._leave_parent()
        source = self._source
        used = self._iterator is not None
        cancelled = False
        if source is not None:
            wanted = self._native_texts(texts)
            if self._resume is None and not (used and (source.over or not self._goes_on)):
                if isinstance(source, kind) and source.texts == wanted:
                    self._next_epoch += max(self._epochs, 1)
                    return source
                cancelled = source.over and not used  # which is meant for this epoch
            self._source = None
            source.close(
                "another thread has started an iteration of this stream, which ended this "
                "iterator; help: a stream has one iterator at a time: open one for each thread"
            )
        opened = self._source = self._open(kind, texts)
        if self._resume is not None and self._resume.blob is not None:
            opened.restore(self._resume.blob)
        if cancelled:
            opened.cancel()
        self._next_epoch += max(self._epochs, 1)
        return opened

    def _resumed_left(self, unit: str, whole: int) -> int:
        """What is to come of the epoch that begins or continues: samples, or batches."""
        resume, self._resume = self._resume, None
        if resume is None or resume.left is None or whole == ENDLESS:
            return whole
        if resume.samples_or_batches != unit:
            raise UsageError(
                f"the state was saved between {resume.samples_or_batches} of an epoch, and these "
                f"are {unit}; help: resume as it was saved"
            )
        if not resume.merged:
            return resume.left
        # A merged state: what is left of all consumers is dealt out as they take turns.
        number, consumers = self._consumer()
        if unit == "batches":
            return resume.left // consumers
        total = self._number("epoch_samples") * self._epochs
        first = total - resume.left
        return len(range(number, total, consumers)) - len(range(number, first, consumers))

    @property
    def epoch(self) -> int:
        """The number of the epoch that runs; between two of them that of the next one.

            while stream.epoch < 90:    # also after load_state_dict()
                for sample in stream: ...

        It is "epoch" of state_dict(), too. An epoch has ended when its iterator has said so.
        """
        runs = self._iterator is not None and self._iterator.epoch is not None
        return self._next_epoch - (max(self._epochs, 1) if runs else 0)

    def state_dict(self) -> dict[str, object]:
        """The position of the stream, as a small dict that JSON can hold.

            torch.save({"model": model.state_dict(), "data": stream.state_dict()}, path)
            ...
            stream = shardfeed.Stream(urls, **the_same_options)
            stream.load_state_dict(torch.load(path)["data"])
            for sample in stream: ...          # resumes with exactly the next sample

        At any time, also while an iterator is in the middle, and after an error: it is about what
        the user has been given so far. Between two epochs it leads to the next one.
        """
        return self._state(0)

    def _state(self, unread: int) -> dict[str, object]:
        """The state without the last `unread` batches (0 or 1)."""
        if self._closed:
            raise UsageError("the stream is closed; help: save it before")
        self._leave_parent()
        if self._resume is not None:  # loaded, and not used yet
            return to_dict(self._resume)
        unit = "batches" if isinstance(self._iterator, BatchIterator) else "samples"
        if self._iterator is not None:
            saved = self._iterator.save(unit, unread)
            if saved is not None:
                return to_dict(saved._replace(epoch=self.epoch))
            source = self._source
            if self._goes_on and source is not None and not source.over:
                # The next epoch continues where the last one stopped, a whole one.
                blob, following = source.save(0), self._next_epoch
                return to_dict(SavedState(following, blob, None, False, unit, source.epoch))
        return to_dict(SavedState(self._next_epoch, None, None, False, unit, self._next_epoch))

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Makes the next iterator resume where state_dict() was called.

        The URLs and options must be the same, but for threads, memory, time limits and what batches
        are made of; else the next iter(stream) or batches() raises UsageError, which names what
        changed. rank, world_size, worker and num_workers may differ with a state of merge_states().
        """
        if self._closed:
            raise UsageError("the stream is closed")
        self._leave_parent()
        self._resume = from_dict(state)
        self._next_epoch = self._resume.epoch
        iterator, self._iterator = self._iterator, None
        if iterator is not None:
            iterator.refuse(UsageError("load_state_dict() was called, which ended this iterator"))

    def cancel(self) -> None:
        """Makes the iterator, also one that waits in another thread, raise CancelledError.

        It does so within 100 ms. The next iter(stream) is the next epoch. Any thread may call this.
        """
        self._leave_parent()
        if self._source is not None:
            self._source.cancel()

    def close(self) -> None:
        """Stops reading and frees what was read ahead. Samples and views stay valid."""
        self._leave_parent()
        self._closed = True
        if self._source is not None:
            self._source.close()
        if self._iterator is not None:
            self._iterator.refuse(UsageError("the stream is closed"))

    def stats(self) -> dict[str, int]:
        """Counters of the epoch that runs or ran last, by name: "samples", "skipped_shards", ..."""
        self._leave_parent()
        if self._source is None:
            return {name: 0 for _, name in stat_names()}
        return self._source.stats()

    @property
    def urls(self) -> list[str]:
        """The URLs as they were given."""
        return list(self._urls)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_source": None, "_iterator": None}

    def _described(self) -> str:
        return described(self._urls, self._options)

    def __repr__(self) -> str:
        return f"<shardfeed.Stream {self._described()}>"


def asked_by_data_loader() -> bool:
    """Whether who calls the function that calls this is PyTorch's DataLoader or its samplers."""
    asks = sys._getframe(2).f_globals.get("__name__")
    return isinstance(asks, str) and asks.startswith("torch.utils.data.")


def recipe_of(
    source: URLs | Stream, timeout: Duration, log: Log | None, texts: dict[str, str]
) -> Stream:
    """An unopened stream of these URLs; or that of a stream or mix, with these options beside its
    own, and its own time limit and log unless others are given.
    """
    if not isinstance(source, Stream):
        made = Stream.__new__(Stream)
        made._urls = url_list(source)
        made._prepare(timeout, log, texts)
        return made
    source._share()  # which its parts must agree on
    made = source._with(texts)
    if timeout is not None:
        made._timeout = _seconds(timeout)
    if log is not log_to_logging:
        made._log = log
    return made
