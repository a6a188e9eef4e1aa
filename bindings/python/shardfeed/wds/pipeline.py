"""Pipelines: a list of stages, which is carried out when somebody iterates over it."""

from __future__ import annotations

import copy
import sys
import warnings
from itertools import islice
from typing import TYPE_CHECKING, Any

from . import _torch
from ._compile import explained, iterated
from ._engine import Settings
from ._position import counters, items_after, length, restored, saved
from ._torch import IterableDataset
from .utils import PipelineStage, pytorch_worker_info

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self


def add_length_method(obj: Any) -> Any:
    """Makes len(obj) its attribute `size`: an object of another class, which pickles like it."""
    cls = type(obj)
    if getattr(cls, "__len__", None) is not _length:
        obj.__class__ = _with_length(cls)
    return obj


def _length(self: Any) -> int:
    """What with_length() was told."""
    return int(self.size)


def _with_length(cls: type) -> type:
    body = {"__len__": _length, "__reduce__": _reduce_with_length, "__module__": cls.__module__}
    meta: Any = type(cls)
    made: type = meta(cls.__name__ + "_Length", (cls,), body)
    return made


def _reduce_with_length(self: Any) -> tuple[Any, ...]:
    return _again_with_length, (type(self).__mro__[1],), self.__dict__


def _again_with_length(cls: type) -> Any:
    made = _with_length(cls)
    return object.__new__(made)


class DataPipeline(IterableDataset, PipelineStage):
    """Stages, one after another: DataPipeline(SimpleShardList(urls), tarfile_to_samples(), ...).

    Nothing is read before somebody iterates. Then the stages that the engine can do run there, and
    the others in Python on top: explain() says which.
    """

    _settings: Settings | None = None  # of the engine, if they were given
    # Of the running iteration: the epochs that its stages began with, and the items given out.
    _begun: tuple[dict[str, int], int] | None = None
    _skip = 0  # items of the next iteration that were given out before

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _torch.register()
        self.pipeline: list[Any] = []
        self.length = -1
        self.repetitions = 1
        self.nsamples = -1
        for arg in args:
            if arg is None:
                continue
            if isinstance(arg, list):
                self.pipeline.extend(arg)
            else:
                self.pipeline.append(arg)

    def close(self) -> None:
        """Closes the stages that can be closed, and forgets all of them."""
        for step in self.pipeline:
            if hasattr(step, "close"):
                step.close()
        del self.pipeline

    def invoke(self, f: Any, *args: Any, **kwargs: Any) -> Any:
        """The iterator of one stage."""
        if isinstance(f, IterableDataset) and not args:
            return iter(f)
        if hasattr(f, "run") and isinstance(f, PipelineStage):
            return f.run(*args, **kwargs)
        if isinstance(f, list):
            return iter(f)
        if callable(f):
            return f(*args, **kwargs)
        if not args and hasattr(f, "__iter__") and not isinstance(f, (str, bytes, tuple)):
            return iter(f)  # a loader, a data set of PyTorch, a pipeline
        raise ValueError(f"{f}: not a valid pipeline stage")

    def iterator1(self) -> Any:
        """One pass through all stages."""
        return iterated(self)

    def iterator(self) -> Iterator[Any]:
        """All passes; it ends with one that has nothing."""
        for _ in range(self.repetitions):
            count = 0
            for sample in self.iterator1():
                yield sample
                count += 1
            if count == 0:
                break

    def __iter__(self) -> Iterator[Any]:
        if not self._is_saved:
            return self._items()
        return self._counted()

    def _items(self, skip: int = 0) -> Iterator[Any]:
        """The items of an iteration without the first `skip`."""
        if skip == 0 and self.repetitions == 1:
            return iter(self.iterator1())
        items = items_after(self, skip) if skip else self.iterator()
        if self.repetitions == 1 or self.nsamples <= 0:
            return items
        count = self._share()
        left = islice(items, max(count - skip, 0))
        return self._whole(left, count, skip) if self._is_total else left

    def stage(self, i: int) -> Any:
        """A stage by its number."""
        return self.pipeline[i]

    def append(self, f: Any) -> None:
        """Adds a stage to this pipeline."""
        self.pipeline.append(f)

    def compose(self, *args: Any) -> Self:
        """A copy with more stages."""
        result = copy.copy(self)
        result.pipeline = [*self.pipeline, *args]
        return result

    def with_length(self, n: int, silent: bool = False) -> Self:
        """Makes len() n. What comes out does not change."""
        if not silent:
            warnings.warn(
                ".with_length() only sets the value of __len__ for compatibility with some "
                "training environments. It does not change the number of samples in an epoch.",
                stacklevel=2,
            )
        self.size = n
        made: Self = add_length_method(self)
        return made

    def with_epoch(self, nsamples: int = -1, nbatches: int = -1, *, total: bool = False) -> Self:
        """Makes an epoch so many items, over passes that begin again.

        Each worker of each rank gives so many. total: all of them together do, and all ranks the
        same number; less is an error.
        """
        self.repetitions = sys.maxsize
        self.nsamples = max(nsamples, nbatches)
        self._is_total = total
        return self

    def repeat(self, nepochs: int = -1, nbatches: int = -1) -> Self:
        """So many passes, or without an end; nbatches: so many items in all."""
        self._is_total = False
        if nepochs > 0:
            self.repetitions = nepochs
            self.nsamples = nbatches
        else:
            self.repetitions = sys.maxsize
            self.nsamples = nbatches
        return self

    # ---- What is not in the original ----

    _is_saved = False  # whether positions are counted
    _is_total = False  # whether nsamples is the number of all ranks and workers together

    def _share(self) -> int:
        """How many items of an epoch with_epoch() leaves to this worker."""
        if not self._is_total:
            return self.nsamples
        _, ranks, worker, workers = pytorch_worker_info()
        share, rest = divmod(self.nsamples, ranks)
        if rest:
            raise ValueError(
                f"with_epoch({self.nsamples}, total=True) gives {ranks} ranks no equal parts; "
                f"help: {self.nsamples - rest} or {self.nsamples - rest + ranks} items"
            )
        return share // workers + (worker < share % workers)

    def _whole(self, items: Iterator[Any], count: int, skip: int) -> Iterator[Any]:
        """Items that are `count` with those before them; less is an error."""
        given = skip
        for item in items:
            given += 1
            yield item
        if given < count:
            rank, _, worker, _ = pytorch_worker_info()
            raise ValueError(
                f"with_epoch({self.nsamples}, total=True): {given} of {count} items in rank "
                f"{rank}, worker {worker}, where a pass had none; help: at least one shard for "
                "each worker of each rank, or resampled=True"
            )

    def _counted(self) -> Iterator[Any]:
        skip, self._skip = self._skip, 0
        epochs = counters(self)
        self._begun = epochs, skip
        for count, item in enumerate(self._items(skip), skip + 1):
            self._begun = epochs, count
            yield item
        self._begun = None

    def state_dict(self) -> dict[str, Any]:
        """Where the iteration stands, as a dict that JSON can hold; TypeError where no state is.

        The first call makes later iterations count. So call it, or load_state_dict(), before the
        iteration that is to be saved. Shuffles need a seed.
        """
        state = saved(self)
        self._is_saved = True
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next iteration resume there.

        What came before is read and shuffled again, and not decoded, mapped or batched.
        """
        self._skip = restored(self, state)
        self._begun = dict(state["epochs"]), self._skip
        self._is_saved = True

    def __len__(self) -> int:
        return length(self)

    def __bool__(self) -> bool:
        return True

    def explain(self) -> str:
        """Which stages run in the engine and which in Python, and why: a line for each."""
        return explained(self)

    def engine(self, *, threads: int = 0, **options: Any) -> Self:
        """A copy with these options of the engine below it, those of shardfeed.Stream.

        threads: how many decode, and how many shards are read at once; 0: as many as fit.
        """
        result = self.compose()
        before = self._settings or Settings()
        result._settings = Settings({**before.options, **options}, threads or before.threads)
        return result
