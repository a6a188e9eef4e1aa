"""Where tasks run: in processes of this machine, in a job array, under Ray or Dask."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from contextlib import suppress
from functools import partial
from importlib import import_module
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from .. import UsageError
from ._report import TaskReport
from ._run import run_task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection

    from ._run import TaskJob
    from ._tasks import Task


_PATIENCE = 5.0  # seconds for a process to end


def run_local(job: TaskJob, tasks: Sequence[Task], workers: int | None) -> Iterator[TaskReport]:
    """Runs tasks in processes, as they come; a task whose process dies is run again.

    workers=0: in this process.
    """
    count = len(os.sched_getaffinity(0)) if workers is None else workers
    if count < 0:
        raise UsageError(f"workers={workers}; help: give 0 or more")
    if count == 0:
        for task in tasks:
            yield run_task(job, task)
        return
    waiting = deque((task, 0) for task in tasks)  # and how often its process has died
    busy: list[_Worker] = []
    idle: list[_Worker] = []
    try:
        while waiting or busy:
            while waiting and len(busy) < count:
                worker = idle.pop() if idle else _Worker(job)
                busy.append(worker)
                worker.begin(*waiting.popleft())
            ready = set(wait([w.connection for w in busy] + [w.process.sentinel for w in busy]))
            for worker in list(busy):
                if worker.connection not in ready and worker.process.sentinel not in ready:
                    continue
                busy.remove(worker)
                report = worker.report()
                if report is not None:
                    idle.append(worker)
                    yield report
                elif worker.deaths < job.retries:
                    waiting.append((worker.task, worker.deaths + 1))
                else:
                    yield TaskReport(worker.task, "failed", error=worker.death())
    finally:
        for worker in busy + idle:
            worker.end()


class _Worker:
    """A process that runs one task after another."""

    task: Task
    deaths: int

    def __init__(self, job: TaskJob) -> None:
        self.connection, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(
            target=_serve, args=(theirs, job, os.getpid()), name=f"shardfeed {job.command}"
        )
        self.process.start()
        theirs.close()  # so that its end is seen here

    def begin(self, task: Task, deaths: int) -> None:
        self.task, self.deaths = task, deaths
        with suppress(OSError):  # it is dead, which report() finds
            self.connection.send(task)

    def report(self) -> TaskReport | None:
        """What became of the task; None when the process died."""
        try:
            if self.connection.poll():
                report: TaskReport = self.connection.recv()
                return report
        except (EOFError, OSError):
            pass
        self.process.join()
        self.connection.close()
        return None

    def death(self) -> str:
        code = self.process.exitcode or 0
        how = f"by signal {-code}" if code < 0 else f"with exit status {code}"
        return (
            f"the process ended {how}, {self.deaths + 1} times; help: look at its messages, and "
            "whether the machine has enough memory for so many workers"
        )

    def end(self) -> None:
        self.process.terminate()
        self.process.join(_PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()


def _serve(connection: Connection, job: TaskJob, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, who ends this process
    while os.getppid() == parent or multiprocessing.get_start_method() == "forkserver":
        if not connection.poll(1):
            continue  # other processes may hold the parent's end of the pipe
        try:
            task = connection.recv()
        except EOFError:
            return
        connection.send(run_task(job, task))


# ---- Job arrays ----------------------------------------------------------------------------------


def array_share(environment: Mapping[str, str]) -> tuple[int, int]:
    """The index of this job of an array from 0, and how many jobs the array has.

    SHARDFEED_TASK_INDEX and SHARDFEED_TASK_COUNT come before the variables of Slurm
    (SLURM_ARRAY_TASK_ID, _MIN, _MAX, _STEP; SLURM_PROCID, SLURM_NTASKS) and Kubernetes
    (JOB_COMPLETION_INDEX, beside SHARDFEED_TASK_COUNT).
    """

    def number(name: str) -> int | None:
        text = environment.get(name)
        if not text:
            return None
        try:
            return int(text)
        except ValueError:
            raise UsageError(f"{name}={text!r}; help: it is a number") from None

    index, count = number("SHARDFEED_TASK_INDEX"), number("SHARDFEED_TASK_COUNT")
    if index is None:
        index = number("JOB_COMPLETION_INDEX")
    if index is None and (given := number("SLURM_ARRAY_TASK_ID")) is not None:
        first, last = number("SLURM_ARRAY_TASK_MIN") or 0, number("SLURM_ARRAY_TASK_MAX")
        step = number("SLURM_ARRAY_TASK_STEP") or 1
        index = (given - first) // step
        if count is None and last is not None:
            count = (last - first) // step + 1
    if index is None and (given := number("SLURM_PROCID")) is not None:
        index, count = given, count or number("SLURM_NTASKS")
    if index is None or count is None:
        missing = "SHARDFEED_TASK_COUNT" if index is not None else "SHARDFEED_TASK_INDEX"
        raise UsageError(
            f"{missing} is not set, and nothing else says which part of a job array this is; help: "
            "set SHARDFEED_TASK_INDEX (from 0) and SHARDFEED_TASK_COUNT; Slurm's arrays set their "
            "own, and indexed jobs of Kubernetes need SHARDFEED_TASK_COUNT (their completions)"
        )
    if not 0 <= index < count:
        raise UsageError(f"index {index} of a job array of {count}; help: indexes are from 0")
    return index, count


def run_array(job: TaskJob, tasks: Sequence[Task], workers: int | None) -> Iterator[TaskReport]:
    """Runs the tasks of this job of an array; of others it says what is published."""
    index, count = array_share(os.environ)
    mine = [task for task in tasks if task.number % count == index]
    yield from run_local(job, mine, workers)
    for task in tasks:
        if task.number % count != index:
            yield job.found_there(task) or TaskReport(task, "elsewhere")


# ---- Clusters ------------------------------------------------------------------------------------


def run_ray(job: TaskJob, tasks: Sequence[Task], workers: int | None) -> Iterator[TaskReport]:
    """Runs tasks under Ray, which is started when it is not running."""
    ray: Any = import_module("ray")

    if not ray.is_initialized():
        ray.init(num_cpus=workers)
    remote: Any = ray.remote(run_task).options(max_retries=job.retries, num_cpus=1)
    shared = ray.put(job)
    waiting = deque(tasks)
    cores = int(ray.cluster_resources().get("CPU", 1))
    most = workers or 2 * max(cores, 1)  # the second half waits where it will run
    running: dict[Any, Task] = {}
    while waiting or running:
        while waiting and len(running) < most:
            task = waiting.popleft()
            running[remote.remote(shared, task)] = task
        (done,), _ = ray.wait(list(running), num_returns=1)
        task = running.pop(done)
        try:
            yield ray.get(done)
        except ray.exceptions.RayError as error:
            yield TaskReport(task, "failed", error=f"{type(error).__name__}: {error}")


def run_dask(job: TaskJob, tasks: Sequence[Task], workers: int | None) -> Iterator[TaskReport]:
    """Runs tasks under dask.distributed: with the client that is current, or one of its own."""
    distributed: Any = import_module("distributed")

    try:
        client, own = distributed.get_client(), False
    except ValueError:
        client, own = distributed.Client(n_workers=workers, threads_per_worker=1), True
    # The job goes with each task: scattered data is lost with the workers that hold it.
    submit = partial(client.submit, run_task, job, pure=False, retries=job.retries)
    try:
        futures: dict[Any, tuple[Task, int]] = {submit(task): (task, 0) for task in tasks}
        completed = distributed.as_completed(list(futures))
        for future in completed:
            task, losses = futures.pop(future)
            try:
                report = future.result()
            except Exception as error:  # the result was lost with its worker, or the worker died
                if losses < job.retries:
                    again = submit(task)
                    futures[again] = task, losses + 1
                    completed.add(again)
                    continue
                report = TaskReport(task, "failed", error=f"{type(error).__name__}: {error}")
            yield report
    finally:
        if own:
            client.close()


EXECUTORS = {"local": run_local, "array": run_array, "ray": run_ray, "dask": run_dask}
