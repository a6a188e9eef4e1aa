"""One task: its samples through the function into its shard, whole or not at all."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from errno import EEXIST
from typing import TYPE_CHECKING, Any, ClassVar

from .. import Dataset, Error, Sample, Stream, UsageError, Writer
from .._integration import function_named
from ._reducer import encoded_partial
from ._report import TaskReport
from ._tasks import is_published, marker_of, options_for, publish_marker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ._reducer import Reducer
    from ._tasks import Task

_AT_ONCE = 64  # samples that are read by number with one call


class TaskJob(ABC):
    """What is done with every task: sent once to each worker."""

    command: ClassVar[str] = "map"
    """Names its processes."""
    retries: int

    @abstractmethod
    def found_there(self, task: Task) -> TaskReport | None:
        """What is published for a task already."""

    @abstractmethod
    def attempt(self, task: Task) -> TaskReport:
        """Does it, unless its output is there."""


@dataclass(frozen=True)
class Job(TaskJob):
    """Samples through a function, into a shard or a reduction."""

    function: Callable[[Any], Any] | str | None
    reducer: Reducer | None
    decode: str | None
    skips_faults: bool
    retries: int
    encoder: Any
    reader: dict[str, Any]
    writer: dict[str, Any]

    def called(self) -> Callable[[Any], Any] | None:
        """The function."""
        return function_named(self.function) if isinstance(self.function, str) else self.function

    def found_there(self, task: Task) -> TaskReport | None:
        if task.output is None or self.writer.get("overwrite"):
            return None
        if is_published(task.output, self.reader):
            return TaskReport(task, "there")
        if self.reducer is None and is_published(marker_of(task.output), self.reader):
            return TaskReport(task, "empty")
        return None

    def attempt(self, task: Task) -> TaskReport:
        there = self.found_there(task)
        if there is not None:
            return there
        made = _Made(self, task)
        if self.reducer is not None:
            partial = self.reducer.empty()
            for sample, item in made:
                try:
                    partial = self.reducer.add(partial, item)
                except Exception as error:
                    made.fault(sample, error)
            if task.output is None:
                return TaskReport(
                    task, "made", made.read, made.given, made.skipped, partial=partial
                )
            encoded = encoded_partial(self.reducer, partial, task.input)
            return _published(self, task, made, [(None, encoded)])
        return _published(self, task, made, made)


class _FunctionError(Exception):
    """The function, or what it returned, is at fault."""

    def __init__(self, key: str, cause: Exception) -> None:
        super().__init__(f'sample "{key}": {type(cause).__name__}: {cause}')
        self.key = key
        self.__cause__ = cause


def run_task(job: TaskJob, task: Task) -> TaskReport:
    """Runs a task, again where a fault may pass, and says what became of it. Raises nothing."""
    for attempt in range(job.retries + 1):
        try:
            return job.attempt(task)
        except (_FunctionError, UsageError) as error:  # which another attempt would find again
            return _failed(task, error)
        except Exception as error:
            if attempt == job.retries:
                return _failed(task, error)
    raise AssertionError("no attempt")


def _failed(task: Task, error: Exception) -> TaskReport:
    text = str(error) if isinstance(error, (_FunctionError, Error)) else repr(error)
    shown = error.__cause__ if isinstance(error, _FunctionError) else error
    assert shown is not None
    lines = traceback.format_exception(type(shown), shown, shown.__traceback__)
    key = getattr(error, "key", None)
    return TaskReport(task, "failed", error=text, key=key, traceback="".join(lines))


def _published(
    job: Job, task: Task, made: _Made, samples: Iterable[tuple[Sample | None, Mapping[str, Any]]]
) -> TaskReport:
    name = task.output or ""
    try:
        with Writer(lambda _: name, encoder=job.encoder, **job.writer) as writer:
            for sample, item in samples:
                try:
                    writer.write(item)
                except OSError:
                    raise  # of the shard, and not of the sample
                except Exception as error:
                    made.fault(sample, error)
    except OSError as error:
        if error.errno != EEXIST:  # another run was quicker
            raise
        return TaskReport(task, "there")
    report = TaskReport(task, "made", made.read, made.given, made.skipped)
    if not writer.shards:
        publish_marker(task, made.read, job.writer)
        return replace(report, status="empty")
    (shard,) = writer.shards
    return replace(report, bytes=shard.bytes, digest=shard.digest)


class _Made:
    """What the function made of the samples of a task, each with the sample it was made of."""

    def __init__(self, job: Job, task: Task) -> None:
        self.read = self.given = self.skipped = 0
        self._job = job
        self._task = task

    def fault(self, sample: Sample | None, error: Exception) -> None:
        """Leaves out what a sample became, or ends the task."""
        if sample is None:
            raise error
        if not self._job.skips_faults:
            raise _FunctionError(sample.key, error) from error
        self.given -= 1
        self.skipped += 1

    def __iter__(self) -> Iterator[tuple[Sample, Mapping[str, Any]]]:
        function, decode = self._job.called(), self._job.decode
        items: Sequence[Mapping[str, Any]]
        for sample in samples_of(self._task, self._job.reader):
            self.read += 1
            try:
                made: Any = sample
                if decode is not None:
                    made = {"__key__": sample.key, **sample.decode(decode)}
                if function is not None:
                    made = function(made)
                # Keys are not asked for where nobody needs them: that takes as long as the rest.
                items = (made,) if type(made) is Sample else list(_items(made, sample.key))
            except Exception as error:
                self.given += 1
                self.fault(sample, error)
                continue
            for item in items:
                self.given += 1
                yield sample, item


def samples_of(task: Task, reader: Mapping[str, Any]) -> Iterator[Sample]:
    """The samples of a task, in the order of the shard."""
    options: Any = {**reader, "expand": False}
    if task.start is None or task.stop is None:
        with Stream(task.input, **options_for("stream", options)) as stream:
            yield from stream
        return
    with Dataset(task.input, **options_for("dataset", options)) as data:
        for start in range(task.start, task.stop, _AT_ONCE):
            yield from data.get_many(range(start, min(start + _AT_ONCE, task.stop)))


def _items(made: Any, key: str) -> Iterator[Mapping[str, Any]]:
    """The samples that a function returned: none, one, or several."""
    if made is None:
        return
    if isinstance(made, Mapping):
        yield _with_key(made, key)
        return
    if isinstance(made, (str, bytes)) or not isinstance(made, Iterable):
        raise TypeError(
            f"the function returned {type(made).__name__}; help: return a sample, a mapping from "
            "field to value, None to leave the sample out, or an iterable of them"
        )
    for number, item in enumerate(made):
        if not isinstance(item, Mapping):
            raise TypeError(f"the function returned an iterable of {type(item).__name__}")
        yield _with_key(item, f"{key}-{number}")


def _with_key(made: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    if isinstance(made, Sample) or "__key__" in made:
        return made
    return {"__key__": key, **made}
