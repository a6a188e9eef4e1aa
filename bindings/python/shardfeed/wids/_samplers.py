"""Orders in which the samples of a ShardListDataset are read, with neighbours close together."""

from __future__ import annotations

import math
import random
import sys
import warnings
from typing import TYPE_CHECKING, Any

from ._bases import Sampler

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Range = tuple[int, int]

# Between the seeds of two epochs.
_EPOCH = 1289738273


def lengths_to_ranges(lengths: Iterable[int]) -> list[Range]:
    """The numbers of the samples of each shard, as (first, one behind the last)."""
    ranges, start = [], 0
    for length in lengths:
        ranges.append((start, start + length))
        start += length
    return ranges


def intersect_range(a: Range, b: Range) -> Range | None:
    """What two ranges have in common; None for nothing."""
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low < high else None


def intersect_ranges(rangelist: Iterable[Range], r: Range) -> list[Range]:
    """What each of the ranges has in common with `r`, where that is something."""
    common = (intersect_range(a, r) for a in rangelist)
    return [found for found in common if found is not None]


def iterate_ranges(
    ranges: Sequence[Range],
    rng: random.Random,
    indexshuffle: bool = True,
    shardshuffle: bool = True,
) -> Iterator[int]:
    """The numbers of all ranges: one range after another, each shuffled in itself."""
    order = list(range(len(ranges)))
    if shardshuffle:
        rng.shuffle(order)
    for index in order:
        numbers = list(range(*ranges[index]))
        if indexshuffle:
            rng.shuffle(numbers)
        yield from numbers


class ShardListSampler(Sampler[int]):
    """All samples, shard by shard, and in random order within each.

    The shards are shuffled too, from the second epoch on, or with `shufflefirst` always. An epoch
    ends with the last sample; set_epoch() says which one is next.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        lengths: Sequence[int] | None = None,
        seed: int = 0,
        shufflefirst: bool = False,
    ) -> None:
        self.ranges = lengths_to_ranges(dataset.lengths if lengths is None else lengths)
        self.seed = seed
        self.shufflefirst = shufflefirst
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Says which epoch is next."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.ranges[-1][1] if self.ranges else 0

    def __iter__(self) -> Iterator[int]:
        self.rng = random.Random(self.seed + _EPOCH * self.epoch)
        shuffled = self.shufflefirst or self.epoch > 0
        yield from iterate_ranges(self.ranges, self.rng, shardshuffle=shuffled)
        self.epoch += 1


ShardedSampler = ShardListSampler


class ChunkedSampler(Sampler[int]):
    """The samples of a range, chunk by chunk, and in random order within each.

    num_samples: the range, as (first, one behind the last), or its end; the data set without it.
    The chunks are shuffled too, from the second epoch on, or with `shufflefirst` always. `shuffle`
    False: in order. dslength_per_replica: what len() says, if it is not the length of the range.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        dslength_per_replica: int = -1,
        num_samples: int | tuple[int, int] | None = None,
        chunksize: int = 2000,
        seed: int = 0,
        shuffle: bool = True,
        shufflefirst: bool = False,
    ) -> None:
        if num_samples is None:
            num_samples = len(dataset)
        low, high = (0, num_samples) if isinstance(num_samples, int) else num_samples
        self.dslength_per_replica = dslength_per_replica if dslength_per_replica > 0 else high - low
        self.ranges = [(i, min(i + chunksize, high)) for i in range(low, high, chunksize)]
        self.seed = seed
        self.shuffle = shuffle
        self.shufflefirst = shufflefirst
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Says which epoch is next."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        self.rng = random.Random(self.seed + _EPOCH * self.epoch)
        shuffled = self.shuffle and (self.shufflefirst or self.epoch > 0)
        yield from iterate_ranges(
            self.ranges, self.rng, indexshuffle=self.shuffle, shardshuffle=shuffled
        )
        self.epoch += 1

    def __len__(self) -> int:
        return self.dslength_per_replica


def _place(num_replicas: int | None, rank: int | None) -> tuple[int, int]:
    """The number of processes and that of this one: as given, else of torch.distributed."""
    if num_replicas is not None and rank is not None:
        return num_replicas, rank
    distributed = sys.modules.get("torch.distributed")  # not loaded: not initialized either
    ready = distributed is not None and distributed.is_available() and distributed.is_initialized()
    if distributed is not None and ready:
        return (
            distributed.get_world_size() if num_replicas is None else num_replicas,
            distributed.get_rank() if rank is None else rank,
        )
    if num_replicas is not None or rank is not None:
        raise ValueError(
            f"num_replicas={num_replicas}, rank={rank}: torch.distributed, which would say the "
            "other one, is not initialized; help: give both, or call init_process_group first"
        )
    warnings.warn(
        "DistributedChunkedSampler is called without distributed initialized; assuming single "
        "process",
        stacklevel=3,
    )
    return 1, 0


def DistributedChunkedSampler(  # noqa: N802  # the name that programs know
    dataset: Any,
    *,
    num_replicas: int | None = None,
    num_samples: int | None = None,
    rank: int | None = None,
    shuffle: bool = True,
    shufflefirst: bool = False,
    seed: int = 0,
    drop_last: bool | None = None,
    chunksize: int = 1000000,
) -> ChunkedSampler:
    """A ChunkedSampler of the part of this process: one of `num_replicas` ranges of equal length,
    of which the last ones are shorter where that does not come out.
    """
    if drop_last is not None:
        warnings.warn(
            "DistributedChunkedSampler does not support drop_last, thus it will be ignored",
            stacklevel=2,
        )
    num_replicas, rank = _place(num_replicas, rank)
    assert 0 <= rank < num_replicas, f"rank {rank} of {num_replicas}; help: count from 0"
    num_samples = num_samples or len(dataset)
    length = (num_samples + num_replicas - 1) // num_replicas
    start = rank * length
    return ChunkedSampler(
        dataset,
        dslength_per_replica=math.ceil(len(dataset) / num_replicas),
        num_samples=(start, min(start + length, num_samples)),
        chunksize=chunksize,
        seed=seed,
        shuffle=shuffle,
        shufflefirst=shufflefirst,
    )
