"""Streams: samples of many shards, epoch by epoch."""

from __future__ import annotations

import os
import re
from _thread import get_ident
from operator import length_hint
from threading import Lock, RLock
from time import monotonic
from typing import TYPE_CHECKING
from weakref import WeakSet

from ._block import BlockReader
from ._errors import (
    Error,
    ForkedError,
    TimeoutError,
    UsageError,
    error_from,
)
from ._log import LogTarget, log_to_logging
from ._native import ffi, lib
from ._options import native_options, option_default, option_texts
from ._recipe import Recipe
from ._urls import native_urls, redacted, url_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self, TypeAlias, Unpack

    from ._block import Block
    from ._log import Log
    from ._native import StreamOptions, _CData
    from ._sample import Sample
    from ._urls import URLs

    Duration: TypeAlias = float | str | None

# The longest time that one call into the library waits. Python runs signal handlers only between
# such calls, so this is how long Ctrl-C may take.
_WAIT = 0.05

# How many counters there may be; most numbers have no name.
_MAX_STATS = 256

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}


def _seconds(timeout: Duration) -> float:
    """A time such as 1.5, "30s" or None in seconds; 0 is no limit, as in the library."""
    if timeout is None:
        return 0.0
    text = option_texts({"timeout": timeout})["timeout"]
    native_options({"timeout": text})  # refuses what the library would refuse
    number, unit = re.fullmatch(r"([0-9.]+) *([a-z]*)", text).groups()  # type: ignore[union-attr]
    return float(number) * _SECONDS[unit]


# ---- One open stream of the library -------------------------------------------------------------


class _OpenStream:
    """A shf_stream and what has to live as long as it.

    Python raises KeyboardInterrupt (or what another signal handler raises) after any call of any
    function, before 3.11 even after any bytecode. What a call of the library delivers is therefore
    received by a holder that has its destructor before the call, and is kept in an attribute until
    it is stored elsewhere by one statement without a call in it: no sample is lost or comes twice.
    """

    __slots__ = (
        "_error",
        "_final_stats",
        "_handle",
        "_log",
        "_pointer_lock",
        "_reader",
        "_received",
        "_stream",
        "_timeout",
        "caller",
        "closing",
        "epoch_samples",
        "fetched",
        "lock",
        "over",
        "pid",
    )

    def __init__(
        self, urls: list[str], texts: dict[str, str], timeout: float, log: Log | None
    ) -> None:
        self.pid = os.getpid()
        self.over = False  # after the end, an error or cancel() there is nothing more to come
        self.lock = Lock()  # held for fetch() and close_now(),
        self.caller = 0  # by this thread
        self.closing = False
        self.fetched: tuple[Block, list[Sample]] | None = None
        self._timeout = timeout
        wait = min(_WAIT, timeout or _WAIT)
        self._received: _CData | None = None
        self._reader = BlockReader()
        self._pointer_lock = RLock()  # held for calls that any thread may make
        self._final_stats: dict[str, int] = {}
        self._error = ffi.new("shf_error *")

        native = native_options({**texts, "timeout": f"{max(round(wait * 1e9), 1)}ns"})
        self._log = None if log is None else LogTarget(log)
        self._handle = ffi.new_handle(self._log)
        if log is not None:
            lib.shf_options_set_log(native, lib.SHF_LOG_INFO, lib.python_log, self._handle)
        array, keep = native_urls(urls)
        self._stream: _CData | None = ffi.gc(ffi.new("shf_stream **"), lib.python_close_stream)
        if lib.shf_stream_open(self._stream, array, len(keep), native, self._error):
            raise error_from(self._error)
        self.epoch_samples = self._stat(self._stream[0], lib.SHF_STAT_EPOCH_SAMPLES)

    def fetch(self, max_samples: int) -> bool:
        """Makes `fetched` the next block, unless it still is one. False at the end."""
        if self.fetched is not None:
            return True
        start = monotonic()
        if self._received is None:
            self._received = ffi.gc(ffi.new("shf_block **"), lib.python_unref_block)
        received = self._received
        while not received[0]:
            if self._stream is None:
                raise UsageError("the stream is closed")
            result = lib.shf_stream_next_block(self._stream[0], max_samples, received, self._error)
            if self._log is not None:
                self._log.raise_exception()
            if result == lib.SHF_E_TIMEOUT:
                if self._timeout and monotonic() - start >= self._timeout:
                    raise TimeoutError(
                        f"no sample came within {self._timeout:g} s; help: call next() again to "
                        "wait on, or raise timeout"
                    )
            elif result == lib.SHF_END:
                self.over = True
                return False
            elif result != lib.SHF_OK:
                self.over = True
                raise error_from(self._error)
        self.fetched = self._reader.read(received, received[0])
        self._received = None
        return True

    def cancel(self) -> None:
        self.over = True
        with self._pointer_lock:
            if self._stream is not None:
                lib.shf_stream_cancel(self._stream[0])

    def stats(self) -> dict[str, int]:
        with self._pointer_lock:
            if self._stream is None:
                return dict(self._final_stats)
            stream = self._stream[0]
            return {name: self._stat(stream, number) for number, name in _stat_names()}

    @staticmethod
    def _stat(stream: _CData, number: int) -> int:
        value = ffi.new("uint64_t *")
        lib.shf_stream_stat(stream, number, value)
        return int(value[0])

    def close(self) -> None:
        """Closes the stream. A fetch() of another thread is ended first; if this thread is inside
        fetch() (its log function or a signal handler closes), it is told to close after that.
        """
        self.closing = True
        self.cancel()
        if self.caller != get_ident():
            self.close_now()

    def close_now(self) -> None:
        caller = get_ident()
        with self.lock:
            self.caller = caller
            try:
                with self._pointer_lock:
                    self._final_stats = self.stats()
                    stream, self._stream = self._stream, None
                if stream is not None:
                    ffi.release(stream)  # closes it; no view leads to this pointer
            finally:
                self.caller = 0


_STAT_NAMES: list[tuple[int, str]] = []


def _stat_names() -> list[tuple[int, str]]:
    if not _STAT_NAMES:
        names = [(number, lib.shf_stat_name(number)) for number in range(_MAX_STATS)]
        _STAT_NAMES[:] = [(number, ffi.string(name).decode()) for number, name in names if name]
    return _STAT_NAMES


# ---- Iterators ----------------------------------------------------------------------------------

_ENDLESS = -1

# Iterators of this process. A forked child must not go on with them.
_iterators: WeakSet[SampleIterator] = WeakSet()


class SampleIterator:
    """One epoch of a stream. Made by iter(stream).

    An exception does not end it: after TimeoutError and KeyboardInterrupt next() goes on, without a
    sample lost, and every other error of the library comes again. Nothing turns into a silent end.
    """

    __slots__ = ("__weakref__", "_block", "_left", "_ready", "_refusal", "_source")

    def __init__(self, source: _OpenStream, samples: int, previous: SampleIterator | None) -> None:
        self._source: _OpenStream | None = source
        self._left = samples  # to be fetched, or _ENDLESS
        self._refusal: Error | None = None  # why this iterator does not go on
        self._block: Block | None = None
        self._ready: Iterator[Sample] = iter([])  # samples of the block
        if previous is not None and previous._source is source:
            # The same stream goes on: what the last epoch left comes first.
            self._block, previous._block = previous._block, None
            self._ready, previous._ready = previous._ready, self._ready
            if samples != _ENDLESS:
                self._left -= length_hint(self._ready)
        _iterators.add(self)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Sample:
        while True:
            for sample in self._ready:
                return sample
            self._fill()

    def _fill(self) -> None:
        """Makes the samples of the next block ready. StopIteration at the end."""
        source = self._source
        if source is None:
            if self._refusal is not None:
                raise type(self._refusal)(self._refusal.message)
            raise StopIteration
        if source.lock.locked():
            raise UsageError("this iterator is in use: another thread is inside next()")
        caller = get_ident()
        try:
            with source.lock:
                source.caller = caller
                try:
                    self._take_block(source)
                finally:
                    source.caller = 0
        finally:
            if source.closing:
                source.close_now()

    def _take_block(self, source: _OpenStream) -> None:
        """Makes the next block the current one; at the end, makes this iterator one at its end."""
        if length_hint(self._ready):
            return  # another thread was quicker
        if self._block is not None:
            self._block.cool()
            self._block = None
        if self._left == 0:
            self._source = None
            return
        if not source.fetch(max(self._left, 0)):
            source.closing = True
            self._source = None
            return
        assert source.fetched is not None
        block, samples = source.fetched
        left = self._left if self._left == _ENDLESS else self._left - len(samples)
        ready = iter(samples)
        self._block, self._left, self._ready, source.fetched = block, left, ready, None

    def _refuse(self, refusal: Error) -> None:
        """Makes next() raise this from now on, unless the iterator is at its end."""
        if self._source is not None:
            self._refusal = refusal
            self._source = None
            self._ready = iter([])
            if self._block is not None:
                self._block.cool()
                self._block = None


def _refuse_in_child() -> None:
    for iterator in list(_iterators):
        iterator._refuse(
            ForkedError(
                "this iterator belongs to the parent process; help: call iter(stream) in the child"
            )
        )


os.register_at_fork(after_in_child=_refuse_in_child)


# ---- Stream -------------------------------------------------------------------------------------


class Stream(Recipe):
    """The samples of many shards, in order, read ahead of the consumer.

        with shardfeed.Stream("train-{000000..000099}.tar", shuffle=1000, seed=1) as stream:
            for sample in stream:
                image, label = sample["jpg"], int(bytes(sample["cls"]))

    urls: one or many of: a path, file:///path, "-" (standard input), "pipe:COMMAND", "@FILE" (a
    list). Braces are expanded: "train-{000000..000099}.tar".

    timeout: the longest time that next() waits for a sample, in seconds or as text ("200ms");
    then it raises shardfeed.TimeoutError, and the next call goes on.

    log: a function that takes a level (a number of the logging module) and a message, for skipped
    samples and shards; None for silence. By default the logger "shardfeed".

    Every iter(stream) is the next epoch: the first starts at the option epoch. With epoch_samples,
    an epoch goes on where the last one stopped. With epochs=0 an iterator has no end, and the next
    one goes on where it stopped. A stream has one active iterator: iter(stream) ends the last one.

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
        self._options = option_texts(options)
        self._timeout = _seconds(timeout)
        self._log = log
        native_options(self._options)  # refuses bad values before the next lines use them
        self._epochs = self._number("epochs")
        self._goes_on = self._epochs == 0 or self._number("epoch_samples") > 0
        self._next_epoch = self._number("epoch")
        self._closed = False
        self._iterator: SampleIterator | None = None
        # Opening starts no thread and opens no shard, but finds what is wrong with the arguments.
        self._source: _OpenStream | None = self._open()

    def _number(self, option: str) -> int:
        return int(self._options.get(option) or option_default(option))

    def _open(self) -> _OpenStream:
        texts = {**self._options, "epoch": str(self._next_epoch)}
        if self._goes_on:
            texts["epochs"] = "0"
        return _OpenStream(self._urls, texts, self._timeout, self._log)

    def _leave_parent(self) -> None:
        """In a forked child, lets go of what belongs to the parent."""
        if self._source is not None and self._source.pid != os.getpid():
            self._source = self._iterator = None

    def __iter__(self) -> SampleIterator:
        if self._closed:
            raise UsageError("the stream is closed")
        self._leave_parent()
        previous, source = self._iterator, self._source
        if source is not None and previous is not None and (source.over or not self._goes_on):
            self._source = None
            source.close()
            source = None
        if source is None:
            source = self._source = self._open()
        self._next_epoch += max(self._epochs, 1)
        samples = source.epoch_samples * self._epochs if source.epoch_samples else 0
        self._iterator = SampleIterator(source, samples or _ENDLESS, previous)
        if previous is not None:
            previous._refuse(UsageError("iter(stream) was called again, which ended this iterator"))
        return self._iterator

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
            self._iterator._refuse(UsageError("the stream is closed"))

    def stats(self) -> dict[str, int]:
        """Counters of the epoch that runs or ran last, by name: "samples", "skipped_shards", ..."""
        self._leave_parent()
        if self._source is None:
            return {name: 0 for _, name in _stat_names()}
        return self._source.stats()

    @property
    def urls(self) -> list[str]:
        """The URLs as they were given."""
        return list(self._urls)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_source": None, "_iterator": None}

    def __repr__(self) -> str:
        shown = [repr(redacted(url)) for url in self._urls[:3]]
        if len(self._urls) > 3:
            shown.append(f"... {len(self._urls)} URLs")
        shown += [f"{name}={text}" for name, text in self._options.items()]
        return f"<shardfeed.Stream {' '.join(shown)}>"
