"""Transforms in the thread that asks for batches, and in threads beside it."""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from abc import ABC, abstractmethod
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet

from ._errors import TimeoutError
from ._transform import WHOLE, Place, Running

if TYPE_CHECKING:
    from ._batch import Batch
    from ._iterators import Position
    from ._transform import Outcome, Work
    from ._transform_options import Transforms


class Task:
    """A batch on its way through the transforms."""

    def __init__(self, work: Work, position: Position) -> None:
        self.work = work
        self.position = position  # before the batch
        self.started = False
        self.forgotten = False  # nobody asks for its outcome any more
        self.outcome: Outcome | None = None
        self.reported = False  # whether what was skipped was counted
        self.deaths = 0  # of worker processes, at the same place

    @property
    def batch(self) -> Batch:
        return self.work.batch

    @property
    def is_over(self) -> bool:
        return self.forgotten or self.outcome is not None


class Runner(ABC):
    """What runs the transforms of the batches of a stream. One thread at a time."""

    def __init__(self, transforms: Transforms) -> None:
        self.transforms = transforms

    @property
    @abstractmethod
    def depth(self) -> int:
        """How many batches it has use for at once."""

    @abstractmethod
    def start(self, task: Task) -> None:
        """Begins, if it can, with a batch. Those that were started first are done first."""

    @abstractmethod
    def wait(self, task: Task, timeout: float) -> bool:
        """Waits for the outcome of the task that was started first. False: it took too long.

        timeout: in seconds; 0: none.
        """

    @abstractmethod
    def stop(self) -> None:
        """Forgets the tasks that have no outcome: nobody asks for them any more."""

    @abstractmethod
    def close(self) -> None:
        """Ends what was started. What came of it stays valid."""


class InCaller(Runner):
    """Runs transforms when their outcome is asked for."""

    _running: tuple[Task, Running] | None = None

    @property
    def depth(self) -> int:
        return 1

    def start(self, task: Task) -> None:
        pass

    def wait(self, task: Task, timeout: float) -> bool:
        if self._running is None or self._running[0] is not task:
            place = Place(catches=Exception)
            self._running = task, Running(task.work, self.transforms, place)
        task.outcome = self._running[1].run()
        self._running = None
        return True

    def stop(self) -> None:
        self._running = None

    def close(self) -> None:
        self.stop()


class _Job(NamedTuple):
    """A task, and what its thread says of it: the row, and since when."""

    task: Task
    progress: list[tuple[int, float]]
    done: threading.Event
    unclaimed: list[bool]  # empty when a thread has taken it

    def run(self, transforms: Transforms) -> None:
        try:
            self.unclaimed.pop()
        except IndexError:
            return
        self.task.outcome = Running(self.task.work, transforms, Place(self.note)).run()
        self.done.set()

    def note(self, row: int) -> None:
        self.progress[:] = [(row, time.monotonic())]


class Threads(Runner):
    """Runs transforms in threads, a batch in each."""

    def __init__(self, transforms: Transforms) -> None:
        super().__init__(transforms)
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._unfinished: dict[int, _Job] = {}
        self._threads = [
            threading.Thread(
                target=_run_jobs,
                args=(self._jobs, transforms),
                name=f"shardfeed-transform-{number}",
                daemon=True,  # so that one that hangs does not keep the program from ending
            )
            for number in range(transforms.threads)
        ]
        for thread in self._threads:
            thread.start()
        _running.add(self)

    @property
    def depth(self) -> int:
        return self.transforms.threads + 1

    def start(self, task: Task) -> None:
        if not task.started:
            # Where an interrupt comes between, the same job is put once more, and run once.
            job = self._unfinished.setdefault(id(task), _Job(task, [], threading.Event(), [True]))
            self._jobs.put(job)
            task.started = True

    def wait(self, task: Task, timeout: float) -> bool:
        job = self._unfinished[id(task)]
        deadline = time.monotonic() + timeout if timeout else None
        while not job.done.wait(0.05):
            now = time.monotonic()
            limit = self.transforms.timeout
            if limit and job.progress and now - job.progress[-1][1] > limit:
                row = job.progress[-1][0]
                job.note(row)  # which the next call waits for as long again
                batch = task.batch
                where = "batch_transform" if row == WHOLE else "transform"
                raise TimeoutError(
                    f"{batch.urls[max(row, 0)]}: the {where} of the sample "
                    f'"{batch.sample_keys[max(row, 0)]}" has not returned within {limit:g} s; '
                    "help: call next() again to wait on, or give transform_workers, whose "
                    "processes can be ended"
                )
            if deadline is not None and now > deadline:
                return False
        del self._unfinished[id(task)]
        return True

    def stop(self) -> None:
        with contextlib.suppress(Empty):
            while True:
                self._jobs.get_nowait()
        self._unfinished = {}

    def close(self) -> None:
        self.stop()
        for _ in self._threads:
            self._jobs.put(None)
        _running.discard(self)

    def join(self) -> None:
        """After close(), waits a little for transforms to return."""
        deadline = time.monotonic() + 1
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0))

    def __del__(self) -> None:
        self.close()


_running: WeakSet[Threads] = WeakSet()


@atexit.register
def _end_threads() -> None:
    """So that no thread of Python runs when the interpreter is gone."""
    running = list(_running)
    for threads in running:
        threads.close()
    for threads in running:
        threads.join()


def _run_jobs(jobs: SimpleQueue[_Job | None], transforms: Transforms) -> None:
    while (job := jobs.get()) is not None:
        job.run(transforms)
        del job  # and its batch, while this thread waits
