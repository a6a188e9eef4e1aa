"""What else deals out the items of an iterable data set: Accelerate, Trainers, data pipes, Hugging
Face datasets.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from torch.utils.data import get_worker_info

from .. import UsageError
from ._ranks import ranks_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._ranks import Ranks

# Classes that keep one of several parts of what they iterate over, and drop the others: the start
# of the name of their module, their name, the attribute with the number of parts, and whether
# workers of a DataLoader are counted in it.
_KEEP_A_PART = [
    ("accelerate.", "IterableDatasetShard", "num_processes", False),
    ("transformers.", "IterableDatasetShard", "num_processes", False),
    ("torch.utils.data.", "ShardingFilterIterDataPipe", "num_of_instances", True),
]
# One whose part of its ranks is in `_distributed`, and whose first worker takes all items that one
# generator makes.
_BY_NODE = ("datasets.", "IterableDataset")
# One that takes items in the first process alone, and sends the others their parts.
_DISPATCHER = ("accelerate.", "DataLoaderDispatcher")
_MODULES = ("accelerate.", "transformers.", "torch.utils.data.", "datasets.")


class _Sharer(NamedTuple):
    """An object that iterates over a stream and deals out its items."""

    name: str
    parts: int  # of which one is kept; 0: it takes items in the first process alone
    counts_workers: bool


def refuse_second_share(options: Mapping[str, str], ranks: Ranks | None) -> None:
    """UsageError where what iterates over a stream deals out once more what is the share of a rank.

    Who iterates is seen on the stack: that such a package is imported, or prepares a model, says
    nothing about the data. Called where an epoch is asked for, and not for every item.
    """
    sharer = _found()
    if sharer is None:
        return
    ranks = ranks or ranks_of(options)
    own, others = ranks.world_size, ranks.processes
    info = get_worker_info()
    if sharer.counts_workers and info is not None:
        own *= int(options.get("num_workers", "1")) if "worker" in options else info.num_workers
        others *= info.num_workers
    if own == 1 or sharer.parts == 1 or (sharer.parts and own * sharer.parts <= others):
        return
    does = (
        f"keeps one of {sharer.parts} parts of that"
        if sharer.parts
        else "takes samples in the first process alone"
    )
    everything = "rank=0, world_size=1" + (
        ", worker=0, num_workers=1" if sharer.counts_workers else ""
    )
    who = f"{ranks}" if ranks.source else f"this is worker {info.id if info else 0} of {own}"
    raise UsageError(
        f"{who}, so this stream reads one of {own} parts, and {sharer.name} {does}: the rest would "
        f"be read by nobody; help: give the stream {everything}, so that samples are dealt out "
        "once (every process then reads all of them), or use shardfeed.torch.loader(urls, batch=) "
        "as it is, outside of DataLoader"
    )


def _found() -> _Sharer | None:
    frame = sys._getframe(2)
    while frame is not None:
        # Locals of other frames are left alone: to look at them copies them.
        if str(frame.f_globals.get("__name__")).startswith(_MODULES):
            found = _sharer(frame.f_locals.get("self"))
            if found is not None:
                return found
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _sharer(candidate: Any) -> _Sharer | None:
    # type() and not __class__, which Accelerate's loaders have in common with DataLoader.
    for kind in type(candidate).__mro__:
        name = f"{kind.__module__}.{kind.__qualname__}"
        if kind.__module__.startswith(_DISPATCHER[0]) and kind.__qualname__ == _DISPATCHER[1]:
            return _Sharer(name, 0, False)
        if kind.__module__.startswith(_BY_NODE[0]) and kind.__qualname__ == _BY_NODE[1]:
            split, info = candidate._distributed, get_worker_info()
            nodes = 1 if split is None else split.world_size
            return _Sharer(name, nodes * (1 if info is None else info.num_workers), True)
        for start, called, attribute, counts_workers in _KEEP_A_PART:
            if kind.__module__.startswith(start) and kind.__qualname__ == called:
                return _Sharer(name, int(getattr(candidate, attribute)), counts_workers)
    return None
