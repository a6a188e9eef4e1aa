"""Open streams of the library: one epoch after another of samples, or of batches."""

from __future__ import annotations

import os
from _thread import get_ident
from abc import ABC, abstractmethod
from operator import length_hint
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, Union

from ._batch import Batch, column_numbers, new_holder
from ._block import BlockReader
from ._errors import TimeoutError, UsageError, error_from
from ._native import ffi, lib
from ._options import native_options
from ._receivers import Receivers, Target
from ._signals import Signals
from ._state import saved_bytes
from ._urls import native_urls

if TYPE_CHECKING:
    from ._block import Block
    from ._native import _CData
    from ._sample import Sample

_T = TypeVar("_T")

# The longest time that one call into the library waits. Python runs signal handlers only between
# such calls, so this is how long Ctrl-C may take.
_WAIT = 0.05

# How many counters there may be; most numbers have no name.
_MAX_STATS = 256


class MixedStreams(NamedTuple):
    """What a mix is opened from."""

    parts: list[Part]
    weights: list[float] | None


Source = Union["list[str]", MixedStreams]  # URLs, or


class Part(NamedTuple):
    """A stream that becomes part of a mix."""

    source: Source
    options: dict[str, str]
    receivers: Receivers


class OpenStream(ABC, Generic[_T]):
    """A shf_stream and what has to live as long as it.

    Python raises KeyboardInterrupt (or what another signal handler raises) after any call of any
    function, before 3.11 even after any bytecode. What a call of the library delivers is therefore
    received by a holder that has its destructor before the call, and is kept in an attribute until
    it is stored elsewhere by one statement without a call in it: nothing is lost or comes twice.
    """

    _unit: str  # what next() gives

    def __init__(
        self,
        source: Source,
        options: dict[str, str],
        epoch: int,
        timeout: float,
        receivers: Receivers,
    ) -> None:
        self.pid = os.getpid()
        self.options = options
        self.tokenizer = receivers.tokenizer
        self.epoch = epoch
        self.over = False  # after the end, an error or cancel() there is nothing more to come
        self.cancelled = False
        # Held for fetch(), close_now() and save(); a signal handler may save inside fetch().
        self.lock = RLock()
        self.caller = 0  # the thread that is inside fetch() or close_now()
        self.closing = False
        self._reason: str | None = None  # why it was closed, if not by the user
        self.fetched: _T | None = None
        self.timeout = timeout
        wait = min(_WAIT, timeout or _WAIT)
        self._received: _CData | None = None
        self._pointer_lock = RLock()  # held for calls that any thread may make
        self._final_stats: dict[str, int] = {}
        self._error = ffi.new("shf_error *")

        own = {"timeout": f"{max(round(wait * 1e9), 1)}ns"}
        if not isinstance(source, MixedStreams):
            own["epoch"] = str(epoch)  # those of a mix have it in their own options
        self._targets: list[Target] = []
        self._stream: _CData | None = self._open(Part(source, {**options, **own}, receivers))
        self.epoch_samples = self._stat(self._stream[0], lib.SHF_STAT_EPOCH_SAMPLES)

    def _open(self, part: Part) -> _CData:
        """A holder of an open stream. The receivers stay with this object."""
        mixed = isinstance(part.source, MixedStreams)
        native = native_options(part.options, "mix" if mixed else "stream")
        self._targets.append(Target(part.receivers))
        self._targets[-1].set(native)
        stream = ffi.gc(ffi.new("shf_stream **"), lib.python_close_stream)
        if isinstance(part.source, MixedStreams):
            holders = [self._open(inner) for inner in part.source.parts]
            count = len(holders)
            weights = part.source.weights
            failed = lib.python_mix_streams(
                stream,
                ffi.new("shf_stream **[]", holders),
                ffi.new("shf_stream *[]", count),
                ffi.NULL if weights is None else ffi.new("double[]", weights),
                count,
                native,
                self._error,
            )
        else:
            array, keep = native_urls(part.source)
            signals = Signals(native, self.timeout)
            failed = lib.shf_stream_open(stream, array, len(keep), native, self._error)
            signals.raise_exception()
            if signals.late:
                raise TimeoutError(
                    f"the stream could not be opened within {self.timeout:g} s; help: open it "
                    "again, or raise timeout"
                )
        if failed:
            raise error_from(self._error)
        return stream

    @abstractmethod
    def _new_holder(self) -> _CData:
        """Where a call receives what comes next."""

    @abstractmethod
    def _next(self, stream: _CData, most: int, holder: _CData) -> int:
        """Asks for what comes next, and gives the result of the call."""

    @abstractmethod
    def _taken(self, holder: _CData) -> _T:
        """What the holder holds, as Python has it."""

    def fetch(self, most: int = 0) -> bool:
        """Makes `fetched` what comes next, unless it is still there. False at the end.

        most: the largest number of samples in a block; 0 for as many as are convenient.
        """
        if self.fetched is not None:
            self._received = None  # where an exception kept it
            return True
        start = monotonic()
        if self._received is None:
            self._received = self._new_holder()
        received = self._received
        while not received[0]:
            if self._stream is None:
                raise UsageError(self._reason or "the stream is closed")
            result = self._next(self._stream[0], most, received)
            for target in self._targets:
                target.raise_exception()
            if result == lib.SHF_E_TIMEOUT:
                if self.timeout and monotonic() - start >= self.timeout:
                    raise TimeoutError(
                        f"no {self._unit} came within {self.timeout:g} s; help: call next() again "
                        "to wait on, or raise timeout"
                    )
            elif result == lib.SHF_END:
                self.over = True
                return False
            elif result != lib.SHF_OK:
                self.over = True
                if self._reason is not None:
                    raise UsageError(self._reason)
                raise error_from(self._error)
        self.fetched = self._taken(received)
        self._received = None
        return True

    @abstractmethod
    def _count(self, holder: _CData) -> int:
        """How many samples the holder holds; 1 for a batch."""

    @abstractmethod
    def _fetched_count(self) -> int:
        """The same of `fetched`."""

    def save(self, unused: int) -> bytes:
        """The position of the user, who has not used the last `unused` of what fetch() fetched.
        Only with the lock held.
        """
        with self._pointer_lock:
            if self._stream is None:
                raise UsageError("the stream is closed; help: save it before")
            if self.fetched is not None:
                unused += self._fetched_count()
            elif self._received is not None and self._received[0]:
                unused += self._count(self._received)
            state = ffi.new("shf_state **")
            error = ffi.new("shf_error *")  # fetch() may be about to read its own
            if lib.shf_stream_save(self._stream[0], unused, state, error):
                raise error_from(error)
            try:
                return saved_bytes(state[0])
            finally:
                lib.shf_state_free(state[0])

    def restore(self, blob: bytes) -> None:
        """Resumes where a state was saved. Before the first fetch()."""
        assert self._stream is not None
        if lib.shf_stream_restore(self._stream[0], blob, len(blob), self._error):
            raise error_from(self._error)

    def cancel(self) -> None:
        self.over = self.cancelled = True
        with self._pointer_lock:
            if self._stream is not None:
                lib.shf_stream_cancel(self._stream[0])

    def stats(self) -> dict[str, int]:
        with self._pointer_lock:
            if self._stream is None:
                return dict(self._final_stats)
            stream = self._stream[0]
            return {name: self._stat(stream, number) for number, name in stat_names()}

    @staticmethod
    def _stat(stream: _CData, number: int) -> int:
        return int(lib.shf_stream_stat(stream, number))

    def close(self, reason: str | None = None) -> None:
        """Closes the stream. A fetch() of another thread is ended first; if this thread is inside
        fetch() (its log function or a signal handler closes), it closes after that.

        reason: what a fetch() of another thread then says.
        """
        self._reason = reason
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


class BlockStream(OpenStream["tuple[Block, list[Sample]]"]):
    """A stream of samples, many with each call."""

    _unit = "sample"

    def __init__(
        self,
        source: Source,
        options: dict[str, str],
        epoch: int,
        timeout: float,
        receivers: Receivers,
    ) -> None:
        self._reader = BlockReader()
        super().__init__(source, options, epoch, timeout, receivers)

    def _new_holder(self) -> _CData:
        return ffi.gc(ffi.new("shf_block **"), lib.python_unref_block)

    def _next(self, stream: _CData, most: int, holder: _CData) -> int:
        return lib.shf_stream_next_block(stream, most, holder, self._error)

    def _taken(self, holder: _CData) -> tuple[Block, list[Sample]]:
        return self._reader.read(holder, holder[0])

    def _count(self, holder: _CData) -> int:
        return lib.shf_block_sample_count(holder[0])

    def _fetched_count(self) -> int:
        return 0 if self.fetched is None else length_hint(self.fetched[1])


class BatchStream(OpenStream[Batch]):
    """A stream of batches."""

    _unit = "batch"
    _numbers: dict[str, int] | None = None  # of the columns, once they are known
    # Samples that functions of the user dropped, and that were skipped because those failed.
    dropped = skipped = 0

    def _new_holder(self) -> _CData:
        return new_holder()

    def _next(self, stream: _CData, most: int, holder: _CData) -> int:
        return lib.shf_stream_next_batch(stream, holder, self._error)

    def _taken(self, holder: _CData) -> Batch:
        if self._numbers is None:
            self._numbers = column_numbers(holder)
        return Batch.received(holder, self.options, self._numbers)

    def _count(self, holder: _CData) -> int:
        return 1

    def _fetched_count(self) -> int:
        return 1


_STAT_NAMES: list[tuple[int, str]] = []


def stat_names() -> list[tuple[int, str]]:
    """Number and name of each counter."""
    if not _STAT_NAMES:
        names = [
            (number, lib.shf_stat_describe(number, lib.SHF_COUNTER_NAME))
            for number in range(_MAX_STATS)
        ]
        _STAT_NAMES[:] = [(number, ffi.string(name).decode()) for number, name in names if name]
    return _STAT_NAMES
