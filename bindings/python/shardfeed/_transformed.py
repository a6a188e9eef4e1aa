"""Batches that pass through functions of the user, in the order of the stream."""

from __future__ import annotations

import time
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ._errors import Error, LimitError, TimeoutError, UsageError
from ._iterators import ENDLESS, KEPT, BatchIterator, Position
from ._receivers import Receivers, Skip
from ._transform import Work, error_of
from ._transform_threads import InCaller, Runner, Task, Threads

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ._batch import Batch
    from ._hooks import Hook
    from ._open_stream import BatchStream
    from ._transform_options import Transforms

_WARNING = 30  # as the module logging has it
# How long a runner is waited for before a cancelled stream is looked for, in seconds.
_SLICE = 0.05


def new_runner(transforms: Transforms) -> Runner:
    """What runs these functions, as they ask for."""
    if transforms.workers:
        from ._transform_workers import Workers  # multiprocessing is slow to import

        return Workers(transforms)
    return Threads(transforms) if transforms.threads else InCaller(transforms)


def seed_base(seed: int, epoch: int) -> bytes:
    """What the seeds of the samples of an epoch are made from."""
    return b"%d %d" % (seed, epoch)


class Transforming(NamedTuple):
    """How batches are transformed, and whether samples that fail are skipped."""

    runner: Runner
    seed_base: bytes
    skips: bool = False  # on_error=skip_sample
    max_skips: int = 0
    receivers: Receivers = Receivers()

    def task(self, batch: Any, position: Position) -> Task:
        return Task(Work(batch, self.seed_base, self.skips), position)


def transformed(batches: Iterator[Batch], transforming: Transforming) -> Iterator[Any]:
    """What transforms make of batches, in their order. The runner is closed at the end."""
    runner = transforming.runner
    pending: deque[Task | Exception] = deque()
    try:
        while True:
            try:
                for batch in islice(batches, runner.depth - len(pending)):
                    pending.append(transforming.task(batch, Position(b"", ENDLESS)))
            except Exception as error:
                pending.append(error)  # in its turn
            for task in pending:
                if isinstance(task, Task):
                    runner.start(task)
            if not pending:
                return
            first = pending[0]
            if isinstance(first, Exception):
                raise first
            runner.wait(first, 0)
            outcome = first.outcome
            assert outcome is not None
            if outcome.failure is not None:
                raise error_of(outcome.failure, first.batch)
            pending.popleft()
            if outcome.item is not None:
                yield outcome.item
    finally:
        runner.close()


class TransformedIterator(BatchIterator):
    """The batches of one epoch, as transforms make them. Made by stream.batches(transform=...).

    An exception does not end it. That of a transform comes again with each next(), and the state
    leads to the batch that it is about.
    """

    __slots__ = ("_drained", "_pending", "_taken", "_transforming")
    is_transformed: ClassVar[bool] = True

    def __init__(
        self,
        source: BatchStream,
        batches: int,
        hooks: Mapping[str, Hook],
        transforming: Transforming,
    ) -> None:
        super().__init__(source, batches, None, hooks)
        self._transforming = transforming
        self._pending: tuple[Task, ...] = ()  # fetched, and not taken from the runner
        self._taken: tuple[Position, ...] = ()  # before the last batches that were taken
        self._drained = False  # there is nothing more to fetch, or an error

    def _advance(self, source: BatchStream) -> bool:
        runner = self._transforming.runner
        while True:
            self._raise_if_cancelled(source)
            self._fetch_ahead(source)
            if not self._pending:
                return False
            task = self._pending[0]
            self._wait_for(task, source)
            outcome = task.outcome
            assert outcome is not None
            if outcome.failure is not None:
                raise error_of(outcome.failure, task.batch)
            self._report(task, source)
            pending, taken = self._pending[1:], (*self._taken[1 - KEPT :], task.position)
            self._ready, self._pending, self._taken = outcome.item, pending, taken
            if outcome.item is not None:
                for ahead in pending:
                    runner.start(ahead)
                return True

    def _fetch_ahead(self, source: BatchStream) -> None:
        """Fetches batches for the runner, as many as it has use for."""
        runner = self._transforming.runner
        while len(self._pending) < runner.depth and self._left != 0 and not self._drained:
            blob = source.save(0)
            try:
                if not source.fetch():
                    self._drained = True
                    break
            except Error:
                if not self._pending:
                    raise
                # It comes again, in its turn. So does what did not come in time.
                break
            batch = source.fetched
            assert batch is not None
            if self._hooks:
                batch.use_hooks(self._hooks)
            task = self._transforming.task(batch, Position(blob, self._left))
            left = self._left if self._left == ENDLESS else self._left - 1
            pending = (*self._pending, task)
            self._pending, self._left, source.fetched = pending, left, None
            runner.start(task)
        for task in self._pending:  # where an interrupt came between
            runner.start(task)

    def _raise_if_cancelled(self, source: BatchStream) -> None:
        if source.cancelled and not self._drained:
            source.fetch()  # which says why: the stream was cancelled, or closed

    def _wait_for(self, task: Task, source: BatchStream) -> None:
        runner, start = self._transforming.runner, time.monotonic()
        while task.outcome is None and not runner.wait(task, _SLICE):
            self._raise_if_cancelled(source)
            if source.timeout and time.monotonic() - start >= source.timeout:
                raise TimeoutError(
                    f"no batch came from its transform within {source.timeout:g} s; help: call "
                    "next() again to wait on, or raise timeout"
                )

    def _report(self, task: Task, source: BatchStream) -> None:
        """Counts what was skipped and dropped of a batch, and says it, once. LimitError."""
        outcome, receivers = task.outcome, self._transforming.receivers
        assert outcome is not None
        if not task.reported:
            task.reported = True
            source.dropped += outcome.dropped
            source.skipped += len(outcome.skipped)
            for failure in outcome.skipped:
                error = error_of(failure, task.batch)
                if receivers.log is not None:
                    receivers.log(_WARNING, f"skipped a sample: {error}")
                if receivers.on_skip is not None:
                    receivers.on_skip(Skip(error, error.url, error.key, False))
        if source.skipped > self._transforming.max_skips:
            raise LimitError(
                f"transforms failed with {source.skipped} samples, more than max_skips; help: see "
                "what was logged, or raise max_skips"
            )

    @property
    def is_ahead(self) -> bool:
        return super().is_ahead or bool(self._pending)

    def _position(self, source: BatchStream, unread: int) -> Position:
        unused = unread + (self._ready is not None)
        if unused > len(self._taken):
            raise UsageError(
                f"unread={unread}, but fewer batches were handed out; help: give how many of "
                "them are not used, at most 1"
            )
        if unused:
            return self._taken[-unused]
        if self._pending:
            return self._pending[0].position
        return Position(source.save(0), self._left)

    def _drop(self) -> None:
        super()._drop()
        self._pending = ()
        self._transforming.runner.stop()
