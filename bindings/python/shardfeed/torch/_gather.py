"""One state of all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch.distributed

from .. import Error, UsageError, merge_states
from ._loader import Loader
from ._ranks import has_group

if TYPE_CHECKING:
    from ._stream import Stream


def gather_state(source: Stream | Loader, group: Any = None) -> dict[str, Any]:
    """The states of all ranks as one, on every rank: a small dict that JSON can hold.

        state = shardfeed.torch.gather_state(batches)    # on every rank: they wait for one another
        if torch.distributed.get_rank() == 0:
            torch.save({"model": model.state_dict(), "data": state}, "last.pt")
        ...
        batches.load_state_dict(torch.load("last.pt")["data"])    # on every rank

    With the option lanes any number of ranks can load it, best one that divides lanes; without,
    only as many as saved it. It is that of shardfeed.merge_states(). All ranks must be in the
    same epoch, and UsageError is raised on all of them if one cannot save. Where every process
    reads all samples (rank=0, world_size=1), it is the state of the first one.

    group: the process group, torch.distributed's default one if None.
    """
    stream = source.stream if isinstance(source, Loader) else source
    if not has_group():
        ranks = stream._find_ranks()
        if ranks.world_size > 1:
            raise UsageError(
                f"{ranks}, but there is no process group to gather states with; help: call "
                "torch.distributed.init_process_group(), or merge what state_dict() gives on each "
                "rank with shardfeed.merge_states()"
            )
        return dict(source.state_dict())
    mine: tuple[int, int, dict[str, Any] | str]
    try:
        ranks = stream._find_ranks()
        mine = ranks.rank, ranks.world_size, dict(source.state_dict())
    except Error as error:
        mine = -1, 0, str(error)  # the other ranks wait for it, and must fail too
    gathered: list[Any] = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(gathered, mine, group=group)
    for place, (_, _, state) in enumerate(gathered):
        if isinstance(state, str):
            raise UsageError(f"rank {place} has no state to gather: {state}")
    sizes = {size for _, size, _ in gathered}
    if sizes == {1}:
        return dict(gathered[0][2])
    found = sorted(rank for rank, _, _ in gathered)
    if len(sizes) > 1 or found != list(range(len(gathered))) or sizes != {len(gathered)}:
        raise UsageError(
            f"the {len(gathered)} processes of the group read as the ranks {found} of "
            f"{' and '.join(map(str, sorted(sizes)))}, so that these states are not all there are; "
            "help: give the group of all ranks, once each"
        )
    states = [state for _, _, state in sorted(gathered, key=_rank)]
    standing = sorted({(state["at"], state["ended"]) for state in states})
    if len(standing) > 1:
        raise UsageError(
            "ranks stand in different epochs: "
            + ", ".join(f"{at}{' at its end' if ended else ''}" for at, ended in standing)
            + "; help: save after the same step of all ranks, and make epochs equal (even, or "
            "epoch_samples)"
        )
    ((at, ended),) = standing
    return {**merge_states(states), "at": at, "ended": ended}


def _rank(gathered: tuple[int, int, Any]) -> int:
    return gathered[0]
