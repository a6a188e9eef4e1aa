"""Iterators over one epoch of a stream."""

from __future__ import annotations

import os
from _thread import get_ident
from abc import ABC, abstractmethod
from operator import length_hint
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, NoReturn, TypeVar
from weakref import WeakSet

from ._batch import Batch
from ._errors import Error, ForkedError, UsageError
from ._open_stream import BatchStream, BlockStream
from ._sample import Sample
from ._state import SavedState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from typing_extensions import Self

    from ._block import Block
    from ._hooks import Hook


class Position(NamedTuple):
    """Where a stream is, to be saved."""

    blob: bytes
    left: int  # items to be fetched, or ENDLESS


_T = TypeVar("_T", Sample, Batch)
_Opened = TypeVar("_Opened", BlockStream, BatchStream)


def refuse_async() -> NoReturn:
    """The TypeError of `async for`."""
    raise TypeError(
        "a stream has no asynchronous iterator: next() waits for bytes, and would hold the event "
        "loop; help: use a plain for loop in a thread, or "
        "await loop.run_in_executor(None, next, iterator, None)"
    )


ENDLESS = -1  # how much there is of an epoch that is not counted
# Positions that are kept: before a batch that was looked at, and two that were given and not used.
KEPT = 3

# Iterators of this process. A forked child must not continue with them.
_iterators: WeakSet[SampleIterator | BatchIterator] = WeakSet()


class _EpochIterator(ABC, Generic[_Opened, _T]):
    """One epoch of a stream.

    An exception does not end it: after TimeoutError and KeyboardInterrupt next() continues, with
    nothing lost, and every other error of the library comes again. Nothing turns into a silent end.
    """

    __slots__ = ("__weakref__", "_left", "_refusal", "_source")

    def __init__(self, source: _Opened, left: int) -> None:
        self._source: _Opened | None = source
        self._left = left  # to be fetched, or ENDLESS
        self._refusal: Error | None = None  # why this iterator does not continue

    def __iter__(self) -> Self:
        return self

    @abstractmethod
    def __next__(self) -> _T: ...

    def __aiter__(self) -> NoReturn:
        refuse_async()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} cannot be pickled or copied: it has threads and open files; "
            "help: pickle the Stream and its state_dict(), and load that into the copy"
        )

    @abstractmethod
    def _take(self) -> None:
        """Fetches what comes next; at the end, makes this iterator one at its end."""

    @abstractmethod
    def _drop(self) -> None:
        """Drops what was fetched."""

    def _fill(self, take: Callable[[], None]) -> None:
        """Makes what comes next ready, by this function. StopIteration when this is at its end."""
        source = self._source
        if source is None:
            if self._refusal is not None:
                raise type(self._refusal)(self._refusal.message)
            raise StopIteration
        if source.caller:
            raise UsageError(
                "another thread is closing this stream"
                if source.closing
                else "this iterator is in use: another thread is inside next(); help: give every "
                "thread a stream of its own, with rank and world_size, or let one thread read and "
                "hand samples out through a queue"
            )
        caller = get_ident()
        try:
            with source.lock:
                source.caller = caller
                try:
                    take()
                finally:
                    source.caller = 0
        finally:
            if source.closing:
                source.close_now()

    @abstractmethod
    def _unused(self) -> int:
        """What was fetched and not given out."""

    @property
    def epoch(self) -> int | None:
        """The first epoch of its stream; None at its end."""
        return None if self._source is None else self._source.epoch

    def save(self, own_kind: str, unread: int) -> SavedState | None:
        """The position without the last `unread` items; None at the end of an epoch."""
        source = self._source
        if source is None:
            return None
        with source.lock:
            if self._source is None:
                return None  # another thread has come to the end
            position = self._position(source, unread)
        left = None if position.left == ENDLESS else position.left
        return SavedState(source.epoch, position.blob, left, False, own_kind, source.epoch)

    def _position(self, source: _Opened, unread: int) -> Position:
        unused = self._unused() + unread
        left = self._left if self._left == ENDLESS else self._left + unused
        return Position(source.save(unused), left)

    def refuse(self, refusal: Error) -> None:
        """Makes next() raise this from now on, unless the iterator is at its end."""
        if self._source is not None:
            self._refusal = refusal
            self._source = None
            self._drop()


class SampleIterator(_EpochIterator[BlockStream, Sample]):
    """The samples of one epoch of a stream. Made by iter(stream).

    An exception does not end it: after TimeoutError and KeyboardInterrupt next() continues, without
    a sample lost, and every other error of the library comes again. Nothing turns into a silent
    end.
    """

    __slots__ = ("_block", "_ready")

    def __init__(self, source: BlockStream, samples: int, previous: object) -> None:
        super().__init__(source, samples)
        self._block: Block | None = None
        self._ready: Iterator[Sample] = iter([])  # samples of the block
        if isinstance(previous, SampleIterator) and previous._source is source:
            # The same stream continues: what the last epoch left comes first.
            self._block, previous._block = previous._block, None
            self._ready, previous._ready = previous._ready, self._ready
            if samples != ENDLESS:
                self._left -= length_hint(self._ready)
        _iterators.add(self)

    def __next__(self) -> Sample:
        while True:
            for sample in self._ready:
                return sample
            self._fill(self._take)

    def _take(self) -> None:
        source = self._source
        if length_hint(self._ready) or source is None:
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
        left = self._left if self._left == ENDLESS else self._left - len(samples)
        ready = iter(samples)
        self._block, self._left, self._ready, source.fetched = block, left, ready, None

    def _unused(self) -> int:
        return length_hint(self._ready)

    def _drop(self) -> None:
        self._ready = iter([])
        if self._block is not None:
            self._block.cool()
            self._block = None


class BatchIterator(_EpochIterator[BatchStream, Batch]):
    """The batches of one epoch of a stream. Made by stream.batches().

    An exception does not end it: after TimeoutError and KeyboardInterrupt next() continues, without
    a batch lost, and every other error of the library comes again. Nothing turns into a silent end.
    """

    __slots__ = ("_before", "_hooks", "_looks_ahead", "_ready")
    is_transformed: ClassVar[bool] = False  # by functions of the program

    def __init__(
        self, source: BatchStream, batches: int, previous: object, hooks: Mapping[str, Hook]
    ) -> None:
        super().__init__(source, batches)
        self._hooks = hooks
        self._ready: Batch | None = None
        self._looks_ahead = False  # peek() was called
        self._before: tuple[Position, ...] = ()  # each of the batches that were fetched last
        if isinstance(previous, BatchIterator) and previous._source is source:
            # What an interrupt, or peek(), kept from the last epoch comes first.
            self._ready, previous._ready = previous._ready, None
            if batches != ENDLESS and self._ready is not None:
                self._left -= 1
        _iterators.add(self)

    def __next__(self) -> Batch:
        while True:
            batch, self._ready = self._ready, None
            if batch is not None:
                return batch
            self._fill(self._take)

    def peek(self) -> Batch | None:
        """The batch that next() will give, without giving it: to move it to a device, for example.

        It waits for that batch. None at the end, which next() says; until then the epoch runs. A
        state is that before this batch, and once this was called, state_dict(unread=) may be 2.
        """
        self._looks_ahead = True
        if self._ready is None and self._source is not None:
            self._fill(self._look)
        return self._ready

    def _look(self) -> None:
        if self._ready is None and self._source is not None:
            self._advance(self._source)

    def _take(self) -> None:
        source = self._source
        if self._ready is not None or source is None:
            return  # another thread was quicker
        if not self._advance(source):
            source.closing = self._left != 0
            self._source = None

    def _advance(self, source: BatchStream) -> bool:
        """Makes the next batch ready. False at the end."""
        if self._left == 0:
            return False
        before = self._before
        if self._looks_ahead:
            before = (*before[1 - KEPT :], Position(source.save(0), self._left))
        if not source.fetch():
            return False
        batch = source.fetched
        assert batch is not None
        if self._hooks:
            batch.use_hooks(self._hooks)
        left = self._left if self._left == ENDLESS else self._left - 1
        self._ready, self._left, self._before, source.fetched = batch, left, before, None
        return True

    def _position(self, source: BatchStream, unread: int) -> Position:
        unused = self._unused() + unread
        if 0 < unused <= len(self._before):
            return self._before[-unused]
        return super()._position(source, unread)

    @property
    def is_ahead(self) -> bool:
        """Whether something was fetched that was not given out."""
        return self._ready is not None

    def _unused(self) -> int:
        return 1 if self.is_ahead else 0

    def _drop(self) -> None:
        self._ready = None


def _refuse_in_child() -> None:
    for iterator in list(_iterators):
        iterator.refuse(
            ForkedError(
                "this iterator belongs to the parent process; help: call iter(stream) in the child"
            )
        )


os.register_at_fork(after_in_child=_refuse_in_child)
