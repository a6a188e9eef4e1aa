"""Datasets: samples of many shards, by number."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, overload

from ._batch import Batch, new_holder
from ._errors import AmbiguousError, NoMemberError, UsageError, error_from
from ._hooks import checked_hooks
from ._native import ffi, lib
from ._options import native_options, option_texts, shown_options
from ._receivers import Receivers, Target, log_to_logging
from ._reopenable import Reopenable
from ._sample import Sample, has_random_choices
from ._signals import Signals
from ._transform_options import checked_transforms
from ._urls import native_urls, redacted, url_list

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from typing_extensions import SupportsIndex, Unpack

    from ._hooks import Hook
    from ._native import DatasetOptions, NumberedBatchOptions, _CData
    from ._opener import Opener
    from ._receivers import Log
    from ._transform_options import TransformOptions
    from ._urls import URLs
    from ._writer import Writer

    class _BatchesOptions(NumberedBatchOptions, TransformOptions, total=False):
        """What batches() takes by name."""


# Names of fields, each followed by "/" -> field name -> position. Samples have few different ones.
_schemas: dict[bytes, dict[str, int]] = {}
_MAX_SCHEMAS = 1024

# Where samples are described, for one thread at a time; list.pop and list.append are atomic.
_tables: list[_Table] = []


class _Table:
    """Room for the description of a sample."""

    __slots__ = ("bytes", "fields", "names", "out", "start", "stop")

    def __init__(self, fields: int, names: int) -> None:
        self.fields, self.bytes = fields, names
        self.start, self.stop = ffi.new("uint64_t[]", fields), ffi.new("uint64_t[]", fields)
        self.names = ffi.new("char[]", names)
        self.out = ffi.new("python_sample *")
        self.out.start, self.out.stop, self.out.names = self.start, self.stop, self.names


class _OwnSample:
    """The block of one sample of a dataset: what shardfeed.Sample reads from."""

    __slots__ = ("_epoch", "_holder", "buffers", "starts", "stops", "views")

    def __init__(self, holder: _CData, table: _Table, epoch: int | None) -> None:
        self._holder = holder
        self._epoch = epoch  # of the dataset when it was read
        out = table.out
        count = out.count
        if out.span:
            # The destructor of the pointer has nothing to do but to hold the sample until it runs.
            # A bound method of the holder does that; see _block.py.
            data = ffi.gc(out.base, holder.__eq__)
            self.views = [memoryview(ffi.buffer(data, out.span)).toreadonly()]
        else:
            self.views = [memoryview(b"")]
        self.buffers = [0] * count
        self.starts: list[int] = ffi.unpack(table.start, count)
        self.stops: list[int] = ffi.unpack(table.stop, count)

    def key(self, index: int) -> str:
        return self._text(lib.shf_sample_key)

    def shard(self, index: int) -> str:
        return self._text(lib.shf_sample_url)

    def native(self, index: int) -> _CData:
        pointer: _CData = self._holder[0]
        return pointer

    def decode_texts(self, texts: dict[str, str]) -> dict[str, str]:
        if self._epoch is None:
            warn_of_epoch(texts)
            return texts
        return {"epoch": str(self._epoch), **texts}

    def _text(self, function: Callable[[_CData, _CData], object]) -> str:
        out = ffi.new("shf_bytes *")
        function(self._holder[0], out)
        return str(ffi.buffer(out.data, out.size)[:], "utf-8", "surrogateescape")


# What batch() takes.
_BATCH_OPTIONS = frozenset(
    ("decode", "ragged", "missing", "decode_threads", "max_decoded", "memory", "seed", "epoch")
)


@lru_cache(maxsize=16)
def _batch_options(texts: tuple[tuple[str, str], ...]) -> _CData:
    return native_options(dict(texts), "dataset")


_warned = False  # in this process, or by another one


def leave_warnings_to_others() -> None:
    """For a process of many that do the same."""
    global _warned
    _warned = True


def warn_of_epoch(texts: Mapping[str, str]) -> None:
    """Warns, once, when random crops and flips would be the same in every epoch."""
    global _warned
    if _warned or "epoch" in texts or not has_random_choices(texts.get("decode", "")):
        return
    _warned = True
    warnings.warn(
        "a dataset decodes at random, and no epoch was set: every epoch has the same crops, "
        "flips and colours; help: call set_epoch(epoch) before each epoch, or give epoch= to "
        "batch()",
        stacklevel=4,
    )


def _samples(holders: list[_CData], epoch: int | None) -> list[Sample]:
    try:
        table = _tables.pop()
    except IndexError:
        table = _Table(64, 4096)
    samples = []
    for holder in holders:
        while not lib.python_describe(holder, table.fields, table.bytes, table.out):
            table = _Table(table.out.count, table.out.names_size)
        names: bytes = ffi.unpack(table.names, table.out.names_size)
        schema = _schemas.get(names)
        if schema is None:
            schema = _schema(names)
        samples.append(Sample(_OwnSample(holder, table, epoch), 0, schema, 0))
    if table.bytes <= 4096:
        _tables.append(table)
    return samples


def _schema(names: bytes) -> dict[str, int]:
    """The names of fields that were not seen before."""
    decoded = str(names, "utf-8", "surrogateescape").split("/")[:-1]
    schema = {name: position for position, name in enumerate(decoded)}
    if len(_schemas) >= _MAX_SCHEMAS:
        _schemas.clear()
    _schemas[names] = schema
    return schema


class Dataset(Reopenable, Sequence[Sample]):
    """The samples of many shards, by number.

        with shardfeed.Dataset("train-{000000..000099}.tar") as data:
            len(data), data[5]["jpg"], data[-1], data[10:20]
            data.get_many([7, 5, 8])    # with one call, by several threads
            data.batch([7, 5, 8])       # and decoded, as the option decode says
            data.find("a/0001")         # the number of a key

    urls: as for Stream; files all of them, tar (not compressed) or ZIP. Where the samples of a tar
    lie is kept in an index file beside it, made when it is missing or stale (options index and
    index_dir); `log` hears of that.

    opener: as for Stream; it gives files that can seek.

    Any number of threads may use a dataset at once, and so may forked processes, without opening it
    again: the numbers are in memory of the library, which no worker changes. A pickled one
    opens the shards again when the copy is first used.

    Random crops and flips depend on the options seed and epoch, the shard and the key. Call
    set_epoch() before each epoch, or every epoch has the same ones.
    """

    _noun = "dataset"
    _none = ffi.new("shf_dataset **")

    def __init__(
        self,
        urls: URLs,
        *,
        log: Log | None = log_to_logging,
        opener: Opener | None = None,
        **options: Unpack[DatasetOptions],
    ) -> None:
        self._urls = url_list(urls)
        super().__init__(option_texts(options, self._urls))
        self._log = log
        self._opener = opener
        self._epoch: int | None = None if "epoch" not in options else int(self._options["epoch"])
        self._opened()

    # ---- Samples ----

    def __len__(self) -> int:
        self._opened()
        return self._count

    @overload
    def __getitem__(self, number: SupportsIndex) -> Sample: ...
    @overload
    def __getitem__(self, number: slice) -> list[Sample]: ...
    def __getitem__(self, number: SupportsIndex | slice) -> Sample | list[Sample]:
        """A sample; for a slice, all samples in it."""
        if isinstance(number, slice):
            return self.get_many(range(*number.indices(len(self))))
        checked = self._checked(number)
        dataset = self._opened()
        sample = _new_holder()
        error = ffi.new("shf_error *")
        if lib.shf_dataset_get(dataset[0], checked, sample, error):
            raise self._failure(error)
        return _samples([sample], self._epoch)[0]

    def get_many(self, numbers: Iterable[SupportsIndex]) -> list[Sample]:
        """Many samples, in the order asked for; read in the order of the files."""
        dataset = self._opened()
        listed = list(numbers)
        try:
            array = ffi.new("uint64_t[]", listed)
        except (TypeError, OverflowError):
            array = ffi.new("uint64_t[]", list(map(self._checked, listed)))
        holders = [_new_holder() for _ in listed]
        error = ffi.new("shf_error *")
        pointers = ffi.new("shf_sample **[]", holders)
        if lib.python_get_many(dataset, array, len(listed), pointers, error):
            if error.code == lib.SHF_E_USAGE and not self._closed:
                list(map(self._checked, listed))  # for the IndexError
            raise self._failure(error)
        return _samples(holders, self._epoch)

    def _read_held(
        self, numbers: array[int], places: array[int], held: HeldSamples, budget: int
    ) -> int:
        """For HeldSamples.read(), which checks numbers and places."""
        dataset = self._opened()
        error, done = ffi.new("shf_error *"), ffi.new("size_t *")
        ours, theirs = (ffi.from_buffer("uint64_t[]", each) for each in (numbers, places))
        count = len(numbers)
        if lib.python_read_samples(dataset, ours, theirs, count, budget, held.native, done, error):
            raise self._failure(error)
        return int(done[0])

    def batch(
        self,
        numbers: Iterable[SupportsIndex],
        *,
        hooks: Mapping[str, Hook | str] | None = None,
        **options: Unpack[NumberedBatchOptions],
    ) -> Batch:
        """A batch of these samples, decoded as the options decode, ragged and missing say.

            data = shardfeed.Dataset("train-{000..099}.tar", decode="jpg:image/rgb8, cls:int")
            data.batch([3, 7, 9])["jpg"]
            data.batch([3, 7, 9], decode="jpg:image/rgb8/crop=random:224x224", epoch=5)

        options: decode, ragged, missing, decode_threads, max_decoded, memory, seed and epoch; those
        that are not given are those of the dataset, and the epoch of set_epoch().

        hooks: as for Stream.batches().
        """
        checked = checked_hooks(hooks, self._options)
        return self._read_batch(checked, *self._decoding({**options}), numbers)

    def batches(
        self,
        batches: Iterable[Iterable[SupportsIndex]],
        *,
        hooks: Mapping[str, Hook | str] | None = None,
        **options: Unpack[_BatchesOptions],
    ) -> Iterator[Any]:
        """The batches of these numbers, one after another, such as a batch sampler gives.

            numbers = torch.utils.data.BatchSampler(sampler, 256, drop_last=True)
            for batch in data.batches(numbers, transform=augment, transform_workers=4): ...

        With transform_threads and transform_workers, batches are read ahead. hooks, and the options
        of transforms: as for Stream.batches(); the others are those of batch().
        """
        own: dict[str, Any] = {**options}
        transforms = checked_transforms(own)
        checked = checked_hooks(hooks, self._options)
        texts, native = self._decoding(own)
        read = partial(self._read_batch, checked, texts, native)
        if transforms is None:
            return map(read, batches)
        from ._transformed import Transforming, new_runner, seed_base, transformed

        base = seed_base(int(texts.get("seed", "0")), int(texts.get("epoch", "0")))
        return transformed(map(read, batches), Transforming(new_runner(transforms), base))

    def _read_batch(
        self,
        hooks: dict[str, Hook],
        texts: dict[str, str],
        native: _CData,
        numbers: Iterable[SupportsIndex],
    ) -> Batch:
        listed = list(map(self._checked, numbers))
        if not listed:
            raise UsageError("a batch of no samples")
        array = ffi.new("uint64_t[]", listed)
        dataset = self._opened()
        holder = new_holder()
        error = ffi.new("shf_error *")
        if lib.shf_dataset_get_batch(dataset[0], array, len(listed), native, holder, error):
            raise self._failure(error)
        batch = Batch.received(holder, texts)
        batch.use_hooks(hooks)
        return batch

    def _decoding(self, options: dict[str, Any]) -> tuple[dict[str, str], _CData]:
        """The options that a batch is made with, as texts and for the library."""
        unexpected = sorted(set(options) - _BATCH_OPTIONS)
        if unexpected:
            raise TypeError(
                f'unexpected keyword argument: "{unexpected[0]}" is no option of batches; help: '
                f"they take {', '.join(sorted(_BATCH_OPTIONS))}"
            )
        texts = {**self._options, **option_texts(options)}
        if "epoch" not in options and self._epoch is not None:
            texts["epoch"] = str(self._epoch)
        warn_of_epoch(texts)
        if texts == self._options:
            return texts, ffi.NULL  # the dataset has them
        return texts, _batch_options(tuple(texts.items()))

    def set_epoch(self, epoch: int) -> None:
        """Makes random crops and flips those of this epoch, in samples and batches from now on.

        The dataset in another process has an epoch of its own; shardfeed.torch.Dataset sets that of
        all workers of a DataLoader.
        """
        number = operator.index(epoch)
        native_options({"epoch": str(number)}, "dataset")  # refuses numbers that are none
        self._epoch = number

    @property
    def epoch(self) -> int:
        """The epoch that random crops and flips are of."""
        return self._epoch or 0

    def find(self, key: str) -> int:
        """The number of the sample with this key. KeyError (NoMemberError), AmbiguousError."""
        try:
            encoded = key.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise NoMemberError(f"there is no sample with the key {key!r}") from None
        dataset = self._opened()
        number = ffi.new("uint64_t *")
        error = ffi.new("shf_error *")
        if lib.shf_dataset_find(dataset[0], encoded, len(encoded), number, error):
            raise self._failure(error)
        return int(number[0])

    def __contains__(self, key: object) -> bool:
        """Whether there is a sample with this key."""
        if not isinstance(key, str):
            return False
        try:
            self.find(key)
        except NoMemberError:
            return False
        except AmbiguousError:
            return True
        return True

    def shard(self, number: SupportsIndex) -> tuple[int, int]:
        """Which shard of the list a sample is in, and its number in that shard."""
        checked = self._checked(number)
        dataset = self._opened()
        shard, first = ffi.new("uint64_t *"), ffi.new("uint64_t *")
        lib.shf_dataset_shard(dataset[0], checked, shard, first)
        return int(shard[0]), checked - int(first[0])

    def _checked(self, number: SupportsIndex) -> int:
        index = operator.index(number)
        count = len(self)
        if not -count <= index < count:
            self._check_not_closed()  # by another thread, since it was counted
            raise IndexError(f"number {index} of a dataset with {count} samples")
        return index + count if index < 0 else index

    # ---- Life ----

    def _open(self) -> tuple[_CData, int]:
        error = ffi.new("shf_error *")
        native = native_options(self._options, "dataset")
        signals = Signals(native)
        target = Target(Receivers(self._log, opener=self._opener))
        target.set(native)
        array, keep = native_urls(self._urls)
        holder = ffi.gc(ffi.new("shf_dataset **"), partial(lib.python_close_dataset))
        failed = lib.shf_dataset_open(holder, array, len(keep), native, error)
        signals.raise_exception()
        target.raise_exception()
        if failed:
            raise error_from(error)
        return holder, lib.shf_dataset_sample_count(holder[0])

    def close(self) -> None:
        """Closes the shards. Samples that were taken stay valid."""
        self._let_go()

    @property
    def urls(self) -> list[str]:
        """The URLs as they were given."""
        return list(self._urls)

    def __repr__(self) -> str:
        shown = [", ".join(map(repr, map(redacted, self._urls)))]
        if self._holder is not self._none:
            shown.append(f"{self._count} samples")
        elif self._closed:
            shown.append("closed")
        shown += [shown_options(self._options)] if self._options else []
        return f"<shardfeed.Dataset {' '.join(shown)}>"


class HeldSamples:
    """Samples of datasets that go to a writer without being objects of Python.

    They have places from 0 to `count`. One thread at a time.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        native = lib.python_new_samples(count)
        if not native:
            raise MemoryError
        self.native = ffi.gc(native, lib.python_free_samples)

    @property
    def bytes(self) -> int:
        """Of those that are held, with all that the library keeps in memory for them."""
        return int(self.native.bytes)

    def read(
        self, data: Dataset, numbers: array[int], places: array[int], budget: int = 1 << 63
    ) -> int:
        """Reads samples of a dataset into places, up to the one with which `budget` bytes are held.

        numbers, places: arrays of uint64. Returns how many it has read. It reads a few at a time,
        one for each MiB of the budget, but 8 to 64, so that as many may come on top.
        """
        if len(numbers) != len(places) or max(places, default=0) >= self.count:
            raise UsageError("places of samples that are not there")
        return data._read_held(numbers, places, self, budget)

    def write(self, writer: Writer, place: int, stop: int) -> None:
        """Writes and releases the samples at these places, all of which must be held.

        After an exception about one, it and those after it are still held.
        """
        writer._write_held(self, place, stop)

    def drop(self, place: int) -> None:
        """Releases the samples from this place on."""
        lib.python_drop_samples(self.native, place)

    def has(self, place: int) -> bool:
        """Whether there is a sample at this place."""
        return 0 <= place < self.count and bool(self.native.samples[place])

    def take(self, place: int) -> Sample:
        """A sample that is held, which is the caller's then."""
        if not self.has(place):
            raise UsageError(f"no sample is held at {place}")
        holder = _new_holder()
        lib.python_take_sample(self.native, place, holder)
        return _samples([holder], None)[0]


def _new_holder() -> _CData:
    return ffi.gc(ffi.new("shf_sample **"), lib.python_unref_sample)
