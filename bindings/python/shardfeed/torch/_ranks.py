"""Which share of the samples is this process's: rank and world_size, from whoever knows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import torch.distributed
from torch.utils.data import get_worker_info

from .. import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

_CHOOSE = (
    "create the process group before the first sample, or give rank= and world_size= (rank=0, "
    "world_size=1: every process reads all)"
)

# Where launchers say how many processes there are. They do not say it to one another: a job may
# have been started by more than one of them, the inner one being the one that counts.
_LAUNCHERS = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")


class Ranks(NamedTuple):
    """One of the processes that share the samples."""

    rank: int
    world_size: int
    source: str  # what says so; "" when nothing does
    processes: int  # that train together, as far as that is known

    def __str__(self) -> str:
        return f"{self.source} says rank {self.rank} of {self.world_size}"


class Share(NamedTuple):
    """What one consumer reads: values of the options of these names."""

    rank: int
    world_size: int
    worker: int
    num_workers: int


def ranks_of(options: Mapping[str, str]) -> Ranks:
    """Rank and world_size: the options, else the process group, else the environment.

    UsageError where they contradict one another, and where several processes may be running but
    nothing says which this is: every one of them would read all samples.
    """
    if "rank" in options or "world_size" in options:
        return _given(options)
    if has_group():
        return _of_group()
    chosen = _launched()
    if chosen is None:
        chosen = _slurm()
        if chosen is not None and chosen.world_size > 1 and not _in_slurm_step():
            # A batch script is rank 0 of as many tasks as srun would start, but nobody is the
            # others.
            raise UsageError(
                f"{chosen}, but srun did not start this process, and the other tasks may not "
                f"exist; help: use srun, or {_CHOOSE}"
            )
    if chosen is not None:
        return chosen
    for name in _LAUNCHERS:
        count = os.environ.get(name, "1")
        if count != "1":
            raise UsageError(
                f"{name}={count}, so this is one of several processes, but nothing says which; "
                f"help: {_CHOOSE}"
            )
    return Ranks(0, 1, "", 1)


def _given(options: Mapping[str, str]) -> Ranks:
    size = options.get("world_size")
    if size is None:
        raise UsageError(f"rank={options['rank']} of how many? help: give world_size= too")
    rank = options.get("rank", "0" if size == "1" else None)
    if rank is None:
        raise UsageError(f"which rank of world_size={size}? help: give rank= too")
    processes = torch.distributed.get_world_size() if has_group() else int(size)
    return Ranks(int(rank), int(size), "rank= and world_size=", processes)


def has_group() -> bool:
    """Whether processes were made known to one another."""
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())


def _of_group() -> Ranks:
    size = torch.distributed.get_world_size()
    group = Ranks(torch.distributed.get_rank(), size, "the process group", size)
    odd = _launched() if {"RANK", "WORLD_SIZE"} <= os.environ.keys() else None
    if odd is None and _in_slurm_step():
        odd = _slurm()
        # Slurm may start one task for each node, and that one its own processes; not the reverse.
        if odd is not None and odd.world_size <= group.world_size:
            odd = None
    if odd is not None and odd[:2] != group[:2]:
        raise UsageError(f"{group}, but {odd}; help: unset what is wrong, or {_CHOOSE}")
    return group


def _launched() -> Ranks | None:
    """What torchrun and those like it put into the environment."""
    if "RANK" not in os.environ and "WORLD_SIZE" not in os.environ:
        return None
    return _from_environment("RANK", "WORLD_SIZE")


def _slurm() -> Ranks | None:
    if not {"SLURM_PROCID", "SLURM_NTASKS"} <= os.environ.keys():
        return None
    return _from_environment("SLURM_PROCID", "SLURM_NTASKS")


def _in_slurm_step() -> bool:
    """Whether srun started this process, as far as that is known."""
    return "SLURM_JOB_ID" not in os.environ or "SLURM_STEP_ID" in os.environ


def _from_environment(rank_name: str, size_name: str) -> Ranks:
    """RANK and WORLD_SIZE of the environment, or those that are called otherwise."""
    source = f"the environment ({rank_name}, {size_name})"
    size = os.environ.get(size_name)
    rank = os.environ.get(rank_name, "0" if size == "1" else None)
    try:
        found = Ranks(int(rank or ""), int(size or ""), source, int(size or ""))
    except ValueError:
        found = Ranks(-1, 0, source, 0)
    if not 0 <= found.rank < found.world_size:
        raise UsageError(
            f"{rank_name}={rank} and {size_name}={size} of the environment name no rank; "
            f"help: set or unset both, or {_CHOOSE}"
        )
    return found


def share_of(ranks: Ranks, options: Mapping[str, str]) -> Share:
    """The share of this process, which may be a worker of a DataLoader."""
    info = get_worker_info()
    worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
    if "worker" in options:
        worker, workers = int(options["worker"]), int(options.get("num_workers", "1"))
    elif int(options.get("num_workers", workers)) != workers:
        raise UsageError(
            f"num_workers={options['num_workers']}, but "
            + ("this is no worker" if info is None else f"there are {workers} of the DataLoader")
            + "; help: leave it out, give DataLoader the same number, or give worker= too; "
            "threads=4 reads with threads, also in shardfeed.torch.loader, which has no workers"
        )
    return Share(ranks.rank, ranks.world_size, worker, workers)
