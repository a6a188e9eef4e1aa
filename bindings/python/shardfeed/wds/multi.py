"""`MultiLoader`: a loader with worker processes, for programs without PyTorch."""

from __future__ import annotations

import multiprocessing as mp
import os
import pickle
import traceback
import weakref
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

the_protocol: int = pickle.HIGHEST_PROTOCOL

all_pids: weakref.WeakSet[Any] = weakref.WeakSet()


class EOF:
    """What a worker sends last. Its attributes are the keywords."""

    def __init__(self, **kw: Any) -> None:
        self.__dict__.update(kw)


def reader(dataset: Any, sockname: Any, index: int, num_workers: int) -> None:
    """What a worker does: sends all samples of the data set through a connection."""
    os.environ["WORKER"] = str(index)
    os.environ["NUM_WORKERS"] = str(num_workers)
    try:
        for sample in dataset:
            sockname.send_bytes(pickle.dumps(sample, protocol=the_protocol))
        last = EOF(index=index)
    except BrokenPipeError:  # the loader takes no more
        return
    except BaseException as error:
        last = EOF(index=index, error=_sendable(error), trace=traceback.format_exc())
    sockname.send_bytes(pickle.dumps(last, protocol=the_protocol))
    sockname.close()


def _sendable(error: BaseException) -> BaseException:
    """The exception, or one that says the same where it cannot be pickled."""
    try:
        if isinstance(pickle.loads(pickle.dumps(error)), type(error)):
            return error
    except Exception:
        pass
    return RuntimeError(f"{type(error).__name__}: {error}")


class MultiLoader:
    """Iterates over a data set in worker processes, and gives the samples as they arrive.

    Each worker has WORKER and NUM_WORKERS in its environment, by which splitters share the shards.
    An exception in a worker is raised here, and a worker that dies is an error. nokill leaves the
    workers of an iteration that was given up alive. prefix has no meaning any more: no socket has a
    name.
    """

    def __init__(
        self,
        dataset: Any,
        workers: int = 4,
        verbose: bool = False,
        nokill: bool = False,
        prefix: str = "/tmp/_multi-",
    ) -> None:
        self.dataset = dataset
        self.workers = workers
        self.verbose = verbose
        self.pids: list[Any] = []
        self.nokill = nokill
        self.prefix = prefix
        self._connections: list[Connection] = []

    def kill(self) -> None:
        """Ends all workers."""
        for process in self.pids:
            if process is not None:
                process.kill()
                process.join(1.0)
        self.pids = []
        for connection in self._connections:
            connection.close()
        self._connections = []

    def __iter__(self) -> Iterator[Any]:
        if not self.nokill:
            self.kill()
        receivers: dict[Connection, int] = {}
        self.pids = [None] * self.workers
        for index in range(self.workers):
            receiver, sender = mp.Pipe(duplex=False)
            process = mp.Process(target=reader, args=(self.dataset, sender, index, self.workers))
            process.start()
            sender.close()  # the worker's alone, so that its death ends the connection
            self.pids[index] = process
            all_pids.add(process)
            receivers[receiver] = index
        self._connections = [*receivers]
        while receivers:
            ready: Any = wait(list(receivers))
            for receiver in ready:
                index = receivers[receiver]
                try:
                    sample = pickle.loads(receiver.recv_bytes())
                except EOFError:
                    self._dead(index)
                if not isinstance(sample, EOF):
                    yield sample
                    continue
                del receivers[receiver]
                self._finish(sample)

    def _finish(self, last: EOF) -> None:
        index = last.__dict__["index"]
        if self.verbose:
            print("# subprocess finished", index)
        self.pids[index].join(1.0)
        self.pids[index] = None
        error = last.__dict__.get("error")
        if error is not None:
            trace = last.__dict__["trace"]
            self.kill()
            raise error from RuntimeError(f"in worker {index}:\n{trace}")

    def _dead(self, index: int) -> None:
        process = self.pids[index]
        process.join(10.0)
        code = process.exitcode
        self.kill()
        raise RuntimeError(
            f"worker {index} has died with exit code {code}, and its samples are missing; help: "
            "look at what it printed; -9 is often the system, which has no memory left"
        )


__all__ = ["EOF", "MultiLoader", "all_pids", "reader", "the_protocol"]
