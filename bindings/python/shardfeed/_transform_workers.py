"""Transforms in worker processes, which this one starts, watches, starts again and ends."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import weakref
from collections import deque
from contextlib import ExitStack
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, NamedTuple

from ._errors import ChildError, UsageError
from ._shared_memory import forks_copy_nothing
from ._transform import WHOLE, Failure, Outcome, Place, Running, failure_of
from ._transform_threads import Runner
from ._transport import Link

if TYPE_CHECKING:
    from ._transform import Work
    from ._transform_options import Transforms
    from ._transform_threads import Task

# How many batches a worker has at once: one that it works on, and the next one.
_EACH = 2
# How often a worker may die with one sample before that sample is at fault.
_DEATHS = 2
# How many workers may die before any of them has begun with a batch: by themselves, and by a
# signal, which may have come from outside.
_FALSE_STARTS, _KILLS = 3, 20
# Seconds that a worker has to end by itself, and after SIGKILL: the kernel may keep it longer.
_GRACE, _KILLED = 0.5, 5.0
# What a worker says of its progress: the number of the batch, the row, since when in nanoseconds,
# and whether it works at all.
_BATCH, _ROW, _SINCE, _WORKS = range(4)


class _Begun(NamedTuple):
    """A batch that a worker has."""

    number: int
    task: Task


class _SignalsLater:
    """A with block during which signals wait for their handlers in Python.

    Python calls hooks around a fork, among them the one that holds the lock of the module logging,
    and drops exceptions in them: a KeyboardInterrupt would be lost there, with the lock held.
    One that comes where multiprocessing has waited for a process, and not yet noted how it ended,
    would leave that process on its list of living ones forever.
    """

    current: _SignalsLater | None = None  # what a forked child is inside of

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._came: list[tuple[int, Any]] = []
        self._restoring = ExitStack()
        self._outer: _SignalsLater | None = None  # whose block a finalizer may run in

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # handlers run in the main thread alone
        # A handler that is still in place may raise in here; what was replaced is then restored.
        with ExitStack() as replaced:
            for number in signal.valid_signals():
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    replaced.callback(signal.signal, number, handler)
                    signal.signal(number, self._note)
            self._restoring = replaced.pop_all()
            self._outer, _SignalsLater.current = _SignalsLater.current, self

    def _note(self, number: int, frame: Any) -> None:
        self._came.append((number, frame))

    def restore(self) -> None:
        """Gives signals their handlers back, all of them even if one comes and raises."""
        _SignalsLater.current = self._outer
        self._restoring.close()

    def __exit__(self, *_: object) -> None:
        with ExitStack() as handling:
            handling.callback(self._handle)
            self.restore()

    def _handle(self) -> None:
        """Calls the handlers in the order of the signals, all of them even if one raises."""
        with ExitStack() as handling:
            for number, frame in reversed(self._came):
                handling.callback(self._handlers[number], number, frame)


class _Worker:
    """A worker process, as the main process sees it."""

    def __init__(self, context: Any, transforms: Transforms, name: str) -> None:
        ours, theirs = context.Pipe()
        self.progress = context.RawArray("q", 4)
        # Only a forked process has it.
        inherited = ours if context.get_start_method() == "fork" else None
        self.process = context.Process(
            target=_work,
            args=(theirs, inherited, self.progress, transforms),
            name=name,
            daemon=True,
        )
        try:
            with forks_copy_nothing(), _SignalsLater():
                self.process.start()
        except BaseException:
            ours.close()
            # Handlers of signals that raised after the fork: nobody else waits for the process.
            if self.process.pid is not None:
                with _SignalsLater():
                    _kill(self.process)
            raise
        finally:
            theirs.close()
        self.link = Link(ours)
        self.tasks: deque[_Begun] = deque()
        self.is_late = False  # and was killed for that
        # An interrupt has left a part of a message in the connection, which is of no more use.
        self.is_broken = False

    def send(self, begun: _Begun) -> None:
        try:
            # What is wrong with the connection shows when an answer is waited for.
            with contextlib.suppress(OSError):
                self.link.send((begun.number, begun.task.work))
        except Exception as error:  # of a hook, whose results are sent
            begun.task.outcome = Outcome(None, 0, [], failure_of(WHOLE, error))
        except BaseException:
            self.is_broken = True
            raise
        else:
            self.tasks.append(begun)

    def receive(self) -> bool:
        """Takes an answer. False: the worker is gone."""
        try:
            if self.is_broken or not self.link.connection.poll():
                return False
            number, outcome = self.link.receive()
            if self.tasks and self.tasks[0].number == number:
                self.tasks[0].task.outcome = outcome
                self.tasks.popleft()
        except (EOFError, OSError):
            return False
        except BaseException:
            self.is_broken = True
            raise
        return True

    def row(self) -> int | None:
        """The row of the first task that the worker is at. None: it has not begun with that."""
        number, row, _, works = self.progress
        return row if works and self.tasks and number == self.tasks[0].number else None

    def exit_code(self, grace: float) -> int | None:
        """How the process ended. None: it has not, within so many seconds, or did not say how."""
        with _SignalsLater():
            self.process.join(grace)
            code: int | None = self.process.exitcode
            return code

    def end(self, grace: float) -> None:
        """Called with signals held back."""
        with contextlib.suppress(OSError):
            self.link.close()
        self.process.join(grace)
        if self.process.exitcode is None:
            _kill(self.process)
        if self.process.exitcode is not None:
            self.process.close()


def _kill(process: Any) -> None:
    process.kill()
    process.join(_KILLED)


class Workers(Runner):
    """Runs transforms in worker processes."""

    def __init__(self, transforms: Transforms) -> None:
        super().__init__(transforms)
        self._context = multiprocessing.get_context(transforms.start)
        self._workers: list[_Worker] = []
        self._waiting: deque[_Begun] = deque()
        self._numbered = 0
        self._false_starts = 0
        self._ending = weakref.finalize(self, _end_workers, self._workers, os.getpid())
        _runners.add(self)
        for _ in range(transforms.workers):
            self._start_worker()

    @property
    def depth(self) -> int:
        return _EACH * self.transforms.workers

    def _start_worker(self) -> None:
        name = f"shardfeed-transform-{len(self._workers)}"
        try:
            self._workers.append(_Worker(self._context, self.transforms, name))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise UsageError(
                f"the transform cannot be sent to a worker process that is started by "
                f"{self._context.get_start_method()} ({error}); help: give a function that is "
                'defined in a module, or transform_start="fork"'
            ) from error
        except AssertionError as error:  # of a process that may have no children
            raise UsageError(
                "the worker process of a pool or DataLoader can have no processes of its own; "
                "help: give transform_threads there instead of transform_workers"
            ) from error

    def start(self, task: Task) -> None:
        if not task.started:
            self._numbered += 1
            self._waiting.append(_Begun(self._numbered, task))
            task.started = True  # after that: what is done twice is not lost
        self._deal_out()

    def _deal_out(self) -> None:
        while self._waiting and self._workers:
            worker = min(self._workers, key=lambda worker: len(worker.tasks))
            if len(worker.tasks) >= _EACH:
                return
            worker.send(self._waiting[0])
            self._waiting.popleft()

    def wait(self, task: Task, timeout: float) -> bool:
        deadline = time.monotonic() + timeout if timeout else None
        while task.outcome is None:
            while len(self._workers) < self.transforms.workers:
                self._start_worker()
            self._deal_out()
            connections = [worker.link.connection for worker in self._workers]
            ready = wait(connections, 0.05)
            for worker, connection in zip(list(self._workers), connections):
                # When it is gone, another process may still have the end that it had. That is
                # looked at where nothing else is to be done, because it holds signals back.
                is_gone = worker.is_broken or (not ready and worker.exit_code(0) is not None)
                if connection not in ready and not is_gone:
                    continue
                if worker.receive():
                    self._false_starts = 0
                else:
                    self._replace(worker)
            self._end_late()
            if deadline is not None and time.monotonic() > deadline and task.outcome is None:
                return False
        return True

    def _end_late(self) -> None:
        """Ends the workers whose transform takes too long: they are replaced as those that died."""
        limit = self.transforms.timeout
        for worker in self._workers if limit else ():
            late = (time.monotonic_ns() - worker.progress[_SINCE]) / 1e9 > limit
            if late and worker.row() is not None and not worker.is_late:
                worker.is_late = True
                worker.process.kill()

    def _replace(self, worker: _Worker) -> None:
        """Gives up a process that died, whose work is done again by others.

        Where an interrupt comes between, that is done once more, and at worst a batch twice, whose
        second outcome nobody asks for.
        """
        if not worker.is_broken:
            row, code = worker.row(), worker.exit_code(_GRACE)
            if row is not None:
                self._blame(worker, row, code)
            elif worker.tasks:
                self._false_starts += 1
                self._raise_if_none_begins(code)
        again = [begun for begun in worker.tasks if not begun.task.is_over]
        self._waiting.extendleft(reversed(again))
        with _SignalsLater():
            self._workers.remove(worker)
            worker.end(0)

    def _raise_if_none_begins(self, code: int | None) -> None:
        deaths = self._false_starts
        if deaths >= (_KILLS if code is not None and code < 0 else _FALSE_STARTS):
            self._false_starts = 0  # the next call tries again
            raise ChildError(
                f"{deaths} worker processes of a transform ended before they had begun "
                f"({_ended(code)}); help: see what they wrote to standard error; with "
                'transform_start="spawn" the main script must begin its work under '
                'if __name__ == "__main__"'
            )

    def _blame(self, worker: _Worker, row: int, code: int | None) -> None:
        """Fails or skips the sample that a worker died with: not at its first death."""
        task = worker.tasks[0].task
        task.deaths += 1
        if worker.is_late:
            failure = Failure(
                row,
                f"has not returned within {self.transforms.timeout:g} s, and its process was ended",
                "raise transform_timeout; on_error=skip_sample skips such samples",
                "",
                None,
            )
        elif task.deaths >= _DEATHS:
            failure = Failure(
                row,
                f"ended its worker process, {task.deaths} times ({_ended(code)})",
                "look for what crashes or takes all memory; on_error=skip_sample skips such "
                "samples",
                "",
                None,
            )
        else:
            return
        task.deaths = 0
        if task.work.skips and row != WHOLE:
            task.work.without[row] = failure
        else:
            task.outcome = Outcome(None, 0, [], failure)

    def stop(self) -> None:
        self._waiting.clear()
        for worker in self._workers:
            for begun in worker.tasks:  # which they come to the end of
                begun.task.forgotten = True

    def close(self) -> None:
        self._ending()
        _runners.discard(self)

    def leave(self) -> None:
        """In a forked child: lets go of what belongs to the parent."""
        for worker in self._workers:
            with contextlib.suppress(OSError):
                worker.link.close()
        self._ending.detach()


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = str(-code)
        return f"by signal {name}"
    return "it did not say how" if code is None else f"with exit code {code}"


def _end_workers(workers: list[_Worker], pid: int) -> None:
    if pid != os.getpid():
        return  # a forked child, to which they do not belong
    with _SignalsLater():
        # All get to know it at once; those that work on something are not waited for.
        for worker in workers:
            with contextlib.suppress(OSError):
                worker.link.close()
            if worker.tasks:
                worker.process.kill()
        for worker in workers:
            worker.end(_GRACE)
        workers.clear()


_runners: weakref.WeakSet[Workers] = weakref.WeakSet()


def _leave_in_child() -> None:
    for runner in list(_runners):
        runner.leave()
    _runners.clear()


os.register_at_fork(after_in_child=_leave_in_child)


# ---- In a worker -------------------------------------------------------------------------------


def _work(
    connection: Connection, inherited: Connection | None, progress: Any, transforms: Transforms
) -> None:
    """The main function of a worker. It ends when the main process closes the connection."""
    while _SignalsLater.current is not None:
        _SignalsLater.current.restore()
    if inherited is not None:
        inherited.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the main process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _end_with_parent()
    _use_one_thread()
    link = Link(connection)
    while True:
        try:
            number, work = link.receive()
        except (EOFError, OSError):
            return
        outcome = _outcome(number, work, progress, transforms, link)
        progress[_WORKS] = 0
        try:
            _answer(link, number, outcome)
        except OSError:
            return
        del work, outcome  # and their memory, while this process waits


def _outcome(number: int, work: Work, progress: Any, transforms: Transforms, link: Link) -> Outcome:
    def note(row: int) -> None:
        progress[:] = (number, row, time.monotonic_ns(), 1)

    return Running(work, transforms, Place(note, link.allocate, has_own_generators=True)).run()


def _answer(link: Link, number: int, outcome: Outcome) -> None:
    failures = [failure for failure in (outcome.failure, *outcome.skipped) if failure is not None]
    sent = [failure._replace(exception=_picklable(failure.exception)) for failure in failures]
    failure = sent.pop(0) if outcome.failure is not None else None
    try:
        link.send((number, outcome._replace(failure=failure, skipped=sent)))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        unsendable = failure_of(WHOLE, error)._replace(
            what=f"gave what cannot be sent to the main process ({error})",
            help="give arrays, tensors, or what can be pickled",
            exception=None,
        )
        link.send((number, Outcome(None, 0, [], unsendable)))


def _picklable(exception: BaseException | None) -> BaseException | None:
    if exception is not None:
        exception.__traceback__ = None  # tblib, which Dask installs, would send it too
    try:
        pickle.loads(pickle.dumps(exception))
    except Exception:
        return None  # its traceback is sent as text
    return exception


def _use_one_thread() -> None:
    """Other workers use the other cores."""
    torch, cv2 = sys.modules.get("torch"), sys.modules.get("cv2")
    if torch is not None:
        torch.set_num_threads(1)
    if cv2 is not None:
        cv2.setNumThreads(0)


def _end_with_parent() -> None:
    """Ends this process when the main process is gone, also in a transform that hangs."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    pid = os.getppid()  # of the main process, or of a fork server

    def watch() -> None:
        while not wait([parent.sentinel], 1) and os.getppid() == pid:
            pass
        os._exit(1)

    threading.Thread(target=watch, name="shardfeed-watch", daemon=True).start()
