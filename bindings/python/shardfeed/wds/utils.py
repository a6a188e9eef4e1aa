"""Small functions that programs use beside the stages: seeds, ranks and workers, patterns."""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import re
import sys
import warnings
from fnmatch import fnmatch
from glob import glob
from typing import TYPE_CHECKING, Any, TypeVar

from . import _torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

_T = TypeVar("_T")

# True: no local files, no commands, no unpickling. It is looked at whenever something is opened.
enforce_security: bool = bool(int(os.environ.get("WDS_SECURE", "0")))


class PipelineStage:
    """A stage with a method run(source), which gives an iterator."""

    if TYPE_CHECKING:
        run: Callable[..., Any]

    def invoke(self, *args: Any, **kw: Any) -> Any:
        raise NotImplementedError


def identity(x: _T) -> _T:
    """The argument."""
    return x


def glob_with_braces(pattern: str) -> list[str]:
    """The files that match a shell pattern with braces."""
    return [name for part in _braces(pattern) for name in glob(part)]


def fnmatch_with_braces(filename: str, pattern: str) -> bool:
    """Whether a name matches a shell pattern with braces."""
    return any(fnmatch(filename, part) for part in _braces(pattern))


def _braces(text: str) -> Iterable[str]:
    from ._braces import braceexpand

    return braceexpand(text)


def make_seed(*args: object) -> int:
    """One seed of 31 bits made of several values."""
    seed = 0
    for arg in args:
        seed = (seed * 31 + hash(arg)) & 0x7FFFFFFF
    return seed


def is_iterable(obj: object) -> bool:
    """Whether it is a list or anything else to iterate over, but no text and no bytes."""
    return not isinstance(obj, (str, bytes)) and hasattr(obj, "__iter__")


def safe_eval(s: str, expr: str = "{}") -> Any:
    """The value of an expression of names, with dots; ValueError for other characters."""
    if re.search(r"[^A-Za-z0-9_.]", s) or not re.match(r"[A-Za-z_]", s):
        raise ValueError(f"safe_eval: illegal characters in: '{s}'")
    return eval(expr.format(s))


def lookup_sym(sym: str, modules: list[str]) -> Any:
    """What the first of these modules that has it calls so; None."""
    for name in modules:
        found = getattr(importlib.import_module(name, package="shardfeed.wds"), sym, None)
        if found is not None:
            return found
    return None


def repeatedly0(
    loader: Iterable[_T], nepochs: int = sys.maxsize, nbatches: int = sys.maxsize
) -> Iterator[_T]:
    """The first nbatches of each of nepochs passes."""
    for _ in range(nepochs):
        yield from itertools.islice(loader, nbatches)


def guess_batchsize(batch: Any) -> int:
    """The length of the first column."""
    return len(batch[0])


def repeatedly(
    source: Iterable[_T],
    nepochs: int | None = None,
    nbatches: int | None = None,
    nsamples: int | None = None,
    batchsize: Callable[..., int] = guess_batchsize,
) -> Iterator[_T]:
    """Passes over a loader until so many passes, batches or samples have come."""
    epoch = batch = sample = 0
    while True:
        for item in source:
            yield item
            batch += 1
            if nbatches is not None and batch >= nbatches:
                return
            if nsamples is not None:
                sample += batchsize(item)
                if sample >= nsamples:
                    return
        epoch += 1
        if nepochs is not None and epoch >= nepochs:
            return


def pytorch_worker_info(group: Any = None) -> tuple[int, int, int, int]:
    """Rank, ranks, worker and workers: of the environment, else of PyTorch, else 0, 1, 0, 1."""
    rank, world_size, worker, num_workers = 0, 1, 0, 1
    environ = os.environ
    torch = _torch.loaded()
    if "RANK" in environ and "WORLD_SIZE" in environ:
        rank, world_size = int(environ["RANK"]), int(environ["WORLD_SIZE"])
    elif torch is not None:
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            group = group or distributed.group.WORLD
            rank = distributed.get_rank(group=group)
            world_size = distributed.get_world_size(group=group)
    if "WORKER" in environ and "NUM_WORKERS" in environ:
        worker, num_workers = int(environ["WORKER"]), int(environ["NUM_WORKERS"])
    elif torch is not None:
        info = torch.utils.data.get_worker_info()
        if info is not None:
            worker, num_workers = info.id, info.num_workers
    return rank, world_size, worker, num_workers


def pytorch_worker_seed(group: Any = None) -> int:
    """A number of its own for each worker of each rank."""
    rank, _, worker, _ = pytorch_worker_info(group=group)
    return rank * 1000 + worker


def deprecated(arg: Any = None) -> Any:
    """Decorates a function that warns when it is called; the argument may be the reason."""
    if callable(arg):
        return _warning(arg, "")
    return lambda func: _warning(func, f" Reason: {arg}" if arg else "")


def _warning(func: Callable[..., Any], reason: str) -> Callable[..., Any]:
    @functools.wraps(func)
    def call(*args: Any, **kw: Any) -> Any:
        text = f"Call to deprecated function {func.__name__}.{reason}"
        warnings.warn(text, category=DeprecationWarning, stacklevel=2)
        return func(*args, **kw)

    return call


class ObsoleteException(Exception):  # noqa: N818  the name of the original
    """What is obsolete was called without ALLOW_OBSOLETE=1."""


def obsolete(func: Any = None, *, reason: str | None = None) -> Any:
    """Decorates what may be called only with ALLOW_OBSOLETE=1 in the environment."""
    if func is None:
        return lambda wrapped: obsolete(wrapped, reason=reason)

    @functools.wraps(func)
    def call(*args: Any, **kw: Any) -> Any:
        if not int(os.environ.get("ALLOW_OBSOLETE", "0")):
            why = f" Reason: {reason}" if reason else ""
            raise ObsoleteException(
                f"Call to obsolete function {func.__name__}. "
                f"Set env ALLOW_OBSOLETE=1 to permit.{why}"
            )
        return func(*args, **kw)

    return call


def compute_sample_weights(n_w_pairs: list[tuple[float, float]]) -> NDArray[np.float64]:
    """Relative weights of sets that have (samples, weight); the largest is 1."""
    import numpy

    pairs = numpy.array(n_w_pairs, dtype=float)
    weights = pairs[:, 0] * pairs[:, 1]
    scaled: NDArray[np.float64] = weights / weights.max()
    return scaled
