"""The tasks that put samples in the order of their keys: sorted inputs, and a merge of the keys."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from errno import EEXIST
from heapq import merge
from typing import TYPE_CHECKING, Any

from .. import ChangedError, Dataset, FormatError, Writer
from ._gather import Gather, OrderJob, decoded, encoded, range_of, written
from ._new_order import plain
from ._ordered import PLACE_BITS
from ._report import TaskReport
from ._tasks import of_marker, options_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .. import Shard
    from ._ordered import OrderedReader
    from ._tasks import Task

_AT_ONCE = 512  # keys that are read together, and that a merge holds of each input
_NO_FIELD = "__none__"  # what no field is called


def keys_of(copy: str) -> str:
    """Where the keys of a sorted input are."""
    return copy.removesuffix(".tar") + ".keys.tar"


@dataclass(frozen=True)
class KeySort(OrderJob):
    """Sorts one input by key, in a copy, and puts its keys into a shard of their own."""

    def attempt(self, task: Task) -> TaskReport:
        there = self.found_there(task)
        if there is not None:
            return there
        shard = task.number
        keys = self._keys_in_order(shard)
        numbers = sorted(range(len(keys)), key=keys.__getitem__)  # equal ones stay as they are
        options = {**of_marker(self.writer), "write_index": True}
        # The keys first: where the copy is, they are.
        name = keys_of(task.output or "")
        try:
            with Writer(lambda _: name, **options) as writer:
                for first in range(0, len(keys), _AT_ONCE):
                    some = [keys[number] for number in numbers[first : first + _AT_ONCE]]
                    writer.write_bytes(f"{first:012}", {"bin": b"\0".join(some)})
        except OSError as error:
            if error.errno != EEXIST:  # of an attempt that died, or another run
                raise
        reader = self.opened(self.order.shards, self.reader)
        places = array("Q", (shard << PLACE_BITS | number for number in numbers))
        return written(task, reader, places, options)

    def _keys_in_order(self, shard: int) -> list[bytes]:
        """The keys of an input. Without fields only headers are read."""
        url, count = self.order.shards[shard]
        options: Any = {**options_for("dataset", self.reader), "expand": False, "fields": _NO_FIELD}
        keys: list[bytes] = []
        with Dataset(url, **options) as data:
            if len(data) != count:
                raise ChangedError(
                    f"{url}: it has no longer the {count} samples that it had when the order was "
                    "made; help: reshard into a new folder"
                )
            for first in range(0, count, _AT_ONCE):
                some = data.get_many(range(first, min(first + _AT_ONCE, count)))
                keys.extend(_bytes_of(sample.key) for sample in some)
        return keys


@dataclass(frozen=True)
class KeyMerge(OrderJob):
    """Says for each output from which inputs its samples come, one after another."""

    copies: tuple[tuple[str, int], ...]

    def attempt(self, task: Task) -> TaskReport:
        there = self.found_there(task)
        if there is not None:
            return there
        order, name = self.order, task.output or ""
        filled = [shard for shard, (_, count) in enumerate(self.copies) if count]
        options: Any = {**options_for("dataset", plain(self.reader)), "expand": False}
        try:
            with Dataset([keys_of(self.copies[n][0]) for n in filled], **options) as data:
                made = self._merged(name, merge(*self._keys(data, filled)))
        except OSError as error:
            if error.errno != EEXIST:  # another run was quicker
                raise
            return TaskReport(task, "there")
        return TaskReport(
            task, "made", order.count, order.outputs, bytes=made.bytes, digest=made.digest
        )

    def _merged(self, name: str, merged: Iterator[tuple[bytes, int]]) -> Shard:
        """Writes which input each sample of each output is from, and how many are before them."""
        order = self.order
        starts = array("Q", bytes(8 * len(self.copies)))
        with Writer(lambda _: name, **of_marker(self.writer), write_index=True) as writer:
            for output in range(order.outputs):
                before = encoded(starts)
                shards = array("Q")
                for _ in range(min(order.samples, order.count - output * order.samples)):
                    shard = next(merged)[1]
                    shards.append(shard)
                    starts[shard] += 1
                fields = {"starts": before, "shards": encoded(shards)}
                writer.write_bytes(f"{output:012}", fields)
        (made,) = writer.shards
        return made

    def _keys(self, data: Dataset, filled: list[int]) -> Iterator[Iterator[tuple[bytes, int]]]:
        first = 0
        for shard in filled:
            count = -(-self.copies[shard][1] // _AT_ONCE)
            yield _pairs(data, range(first, first + count), shard)
            first += count


@dataclass(frozen=True)
class KeyGather(Gather):
    """Makes one output shard of what the merge has found."""

    plan: str

    def _sorted_places(self, task: Task, reader: OrderedReader) -> array[int]:
        options: Any = {**options_for("dataset", plain(self.reader)), "expand": False}
        with Dataset(self.plan, **options) as data:
            found = data[task.number]
        starts, shards = decoded(found["starts"]), decoded(found["shards"])
        start, stop = range_of(task)
        if len(starts) != len(self.order.shards) or len(shards) != stop - start:
            raise FormatError(
                f"{self.plan}: it is not the plan of this order; help: give another scratch folder"
            )
        for at, shard in enumerate(shards):
            shards[at] = shard << PLACE_BITS | starts[shard]
            starts[shard] += 1
        return shards


def _pairs(data: Dataset, numbers: range, shard: int) -> Iterator[tuple[bytes, int]]:
    """Sorted keys, with the input they are of: of equal ones that of the first input is first."""
    for number in numbers:
        for key in bytes(data[number]["bin"]).split(b"\0"):
            yield key, shard


def _bytes_of(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")
