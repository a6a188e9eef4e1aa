"""Map, reduce and reshard, on one machine or on many: one task for each shard.

    import shardfeed

    def small(sample):
        return {"jpg": shrink(sample["jpg"]), "cls": sample["cls"]}

    report = shardfeed.map_shards("train-{000..999}.tar", "small/", small)

What is done is decided by the shards that are published: a run that was interrupted, or that lost
a machine, is simply run again.
"""

from ._map_shards import map_shards
from ._reducer import Reducer, merged_result
from ._report import MapError, MapReport, TaskReport
from ._reshard import reshard
from ._statistics import ChannelStatistics, Histogram, TokenCounts
from ._tasks import Task

__all__ = [
    "ChannelStatistics",
    "Histogram",
    "MapError",
    "MapReport",
    "Reducer",
    "Task",
    "TaskReport",
    "TokenCounts",
    "map_shards",
    "merged_result",
    "reshard",
]
