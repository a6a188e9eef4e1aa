"""What became of each input of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from .. import ChildError

if TYPE_CHECKING:
    from typing_extensions import TypeAlias

    from ._tasks import Task

Status: TypeAlias = "Literal['made', 'empty', 'there', 'elsewhere', 'failed']"


@dataclass(frozen=True)
class TaskReport:
    """What became of one input."""

    task: Task
    status: Status
    """"made": its output was published. "empty": no sample was left, which is published as
    OUTPUT.empty. "there": it was published before, or by another run. "elsewhere": it is the task
    of another index of the job array. "failed": nothing was published."""
    samples: int = 0
    """That were read."""
    written: int = 0
    skipped: int = 0
    """Samples that on_error="skip" left out."""
    bytes: int = 0
    """Of the shard."""
    digest: str = ""
    """XXH3-128 of the shard, in hexadecimal."""
    error: str | None = None
    """What failed."""
    key: str | None = None
    """Of the sample with which the function failed."""
    traceback: str = ""
    partial: Any = None
    """The partial result of a reduction whose output is None."""

    def __str__(self) -> str:
        task = self.task
        target = "" if task.output is None else f" -> {task.output}"
        if self.status == "failed":
            return f"{task}{target}: failed: {self.error}"
        if self.status in ("there", "elsewhere"):
            return f"{task}{target}: {self.status}"
        left_out = f", {self.skipped} skipped" if self.skipped else ""
        return (
            f"{task}{target}: {self.status}, {self.samples} samples, {self.written} out{left_out}"
        )


@dataclass(frozen=True)
class MapReport(Sequence[TaskReport]):
    """What became of each input, in their order; str(report) is a line for each."""

    tasks: list[TaskReport] = field(default_factory=list)
    result: Any = None
    """Of the reduction; None when there is none, or when outputs of other indexes of the job array
    are not published yet."""

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, number: Any) -> Any:
        return self.tasks[number]

    def __iter__(self) -> Iterator[TaskReport]:
        return iter(self.tasks)

    @property
    def counts(self) -> dict[str, int]:
        """How many tasks have each status."""
        return dict(Counter(task.status for task in self.tasks))

    @property
    def outputs(self) -> list[str]:
        """The shards that are published: of tasks that were made now or before, but not empty.

        Those that were there are not looked into; of the empty ones among them there is a marker.
        """
        return [
            t.task.output for t in self.tasks if t.status in ("made", "there") and t.task.output
        ]

    @property
    def is_complete(self) -> bool:
        """Whether every task is done."""
        return all(task.status in ("made", "empty", "there") for task in self.tasks)

    def __str__(self) -> str:
        return "\n".join(map(str, self.tasks))


class MapError(ChildError):
    """Tasks that failed, after all others were run.

    shard, key: of the first sample with which the function failed; key is None when no sample was
    at fault. report: the MapReport. traceback: that of the process where it failed.
    """

    def __init__(
        self,
        message: str = "",
        *,
        shard: str = "",
        key: str | None = None,
        report: MapReport | None = None,
        traceback: str = "",
    ) -> None:
        super().__init__(message)
        self.shard = shard
        self.key = key
        self.report = report or MapReport()
        self.traceback = traceback

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (self.message, self.shard, self.key, self.report, self.traceback)


def _rebuilt(
    message: str, shard: str, key: str | None, report: MapReport, traceback: str
) -> MapError:
    return MapError(message, shard=shard, key=key, report=report, traceback=traceback)


def error_of(report: MapReport) -> MapError:
    """The exception about the tasks that failed."""
    failed = [task for task in report if task.status == "failed"]
    first = failed[0]
    what = f"{len(failed)} of {len(report)} tasks failed; the first: {first.task}: {first.error}"
    return MapError(
        f"{what}; help: what is published stays, and another run makes what is missing",
        shard=first.task.input,
        key=first.key,
        report=report,
        traceback=first.traceback,
    )
