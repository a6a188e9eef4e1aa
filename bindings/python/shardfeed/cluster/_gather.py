"""The tasks of reshard: samples of many shards into one, in a new order."""

from __future__ import annotations

import posixpath
import sys
import threading
import uuid
from array import array
from bisect import bisect_left
from dataclasses import dataclass
from errno import EEXIST
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from .. import FormatError, UsageError, Writer
from ._new_order import NewOrder, plain
from ._ordered import PLACE_BITS, OrderedReader
from ._report import TaskReport
from ._run import TaskJob
from ._tasks import is_published, of_marker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .._integration import HeldSamples
    from ._tasks import Task

# Of jobs that came from another process: the reader of the last one, for each thread.
_KEPT = threading.local()


@dataclass(frozen=True)
class OrderJob(TaskJob):
    """What all tasks of a run have in common."""

    command: ClassVar[str] = "reshard"
    order: NewOrder
    memory: int
    mean: int | None
    """Bytes of a sample, where files say them."""
    retries: int
    reader: dict[str, Any]
    writer: dict[str, Any]

    def found_there(self, task: Task) -> TaskReport | None:
        there = is_published(task.output or "", self.reader)
        return TaskReport(task, "there") if there else None

    def opened(
        self, shards: Sequence[tuple[str, int]], options: Mapping[str, Any]
    ) -> OrderedReader:
        """A reader of these shards, which this thread keeps: its next tasks read them too.

        Where the job came from another process, it stays open until the thread has another job.
        """
        kept = self._kept
        if getattr(kept, "name", None) != self._name:
            if hasattr(kept, "reader"):
                kept.reader.close()
            kept.reader = OrderedReader(shards, self.memory, options, self.mean)
            kept.name = self._name
        reader: OrderedReader = kept.reader
        return reader

    @cached_property
    def _name(self) -> str:
        """What all copies of this job, in whatever process, have in common."""
        return uuid.uuid4().hex

    @cached_property
    def _kept(self) -> threading.local:
        return threading.local()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_name": self._name, "_kept": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Ray and Dask make a copy of the job for each task.
        self.__dict__.update(state, _kept=_KEPT)


@dataclass(frozen=True)
class Gather(OrderJob):
    """Makes one output shard: samples start .. stop - 1 of the new order."""

    rekey: str | None
    sorted_inputs: tuple[tuple[str, int], ...] | None
    """What Sort has made of each input, when the samples come from there."""

    def attempt(self, task: Task) -> TaskReport:
        there = self.found_there(task)
        if there is not None:
            return there
        if self.sorted_inputs is None:
            reader = self.opened(self.order.shards, self.reader)
            places = self._places(task)
        else:
            reader = self.opened(self.sorted_inputs, plain(self.reader))
            places = self._sorted_places(task, reader)
        return written(task, reader, places, self.writer, rekey=self.rekey)

    def _places(self, task: Task) -> array[int]:
        source, start, stop = self.order.source, *range_of(task)
        places = array("Q", bytes(8 * (stop - start)))
        for at in range(stop - start):
            shard, number = source(start + at)
            places[at] = shard << PLACE_BITS | number
        return places

    def _sorted_places(self, task: Task, reader: OrderedReader) -> array[int]:
        """Of the samples for one output a sorted input has some that follow one another."""
        source, start, stop = self.order.source, *range_of(task)
        shards = array("Q", (source(place)[0] for place in range(start, stop)))
        needed = sorted(set(shards))
        tables = [shard << PLACE_BITS | self.order.shards[shard][1] for shard in needed]
        runs: dict[int, tuple[int, int]] = {}  # by input: its next sample, and where its run stops
        for shard, sample in zip(needed, reader.samples(tables)):
            starts = decoded(sample["bin"])
            if len(starts) != self.order.outputs + 1:
                raise self._no_scratch(shard)
            runs[shard] = starts[task.number], starts[task.number + 1]
        for at, shard in enumerate(shards):
            number, last = runs[shard]
            shards[at] = shard << PLACE_BITS | number  # the place of the sample
            runs[shard] = number + 1, last
        for shard, (number, last) in runs.items():
            if number != last:
                raise self._no_scratch(shard)
        return shards

    def _no_scratch(self, shard: int) -> FormatError:
        assert self.sorted_inputs is not None
        return FormatError(
            f"{self.sorted_inputs[shard][0]}: its samples are not those of this order; help: give "
            "another scratch folder"
        )


@dataclass(frozen=True)
class Sort(OrderJob):
    """Sorts one input by where its samples go.

    A last sample says where those of each output start. Its key is that of the run, which no input
    has; readers find it by its number.
    """

    def attempt(self, task: Task) -> TaskReport:
        there = self.found_there(task)
        if there is not None:
            return there
        order, shard = self.order, task.number
        targets = [order.place(shard, number) for number in range(order.shards[shard][1])]
        sources = sorted(range(len(targets)), key=targets.__getitem__)
        targets.sort()
        edges = (output * order.samples for output in range(order.outputs + 1))
        starts = array("Q", (bisect_left(targets, edge) for edge in edges))
        reader = self.opened(order.shards, self.reader)
        places = array("Q", (shard << PLACE_BITS | number for number in sources))
        options = {**of_marker(self.writer), "write_index": True}
        name = posixpath.basename(task.output or "").removesuffix(".tar")
        last = f"shardfeed-starts-{name}", {"bin": encoded(starts)}
        return written(task, reader, places, options, last=last)


def range_of(task: Task) -> tuple[int, int]:
    return task.start or 0, task.stop or 0


def written(
    task: Task,
    reader: OrderedReader,
    places: array[int],
    options: Mapping[str, Any],
    *,
    rekey: str | None = None,
    last: tuple[str, dict[str, bytes]] | None = None,
) -> TaskReport:
    """Publishes the samples at these places, with new keys where they get some."""
    name = task.output or ""
    try:
        with Writer(lambda _: name, **options) as writer:
            if rekey is not None:
                for number, sample in enumerate(reader.samples(places), range_of(task)[0]):
                    writer.write_bytes(rekey % number, sample)  # type: ignore[arg-type]
            else:
                for held, count in reader.stretches(places):
                    _write(writer, held, count)
            if last is not None:
                writer.write_bytes(*last)
    except OSError as error:
        if error.errno != EEXIST:  # another run was quicker
            raise
        return TaskReport(task, "there")
    (shard,) = writer.shards
    count = len(places)
    return TaskReport(task, "made", count, count, bytes=shard.bytes, digest=shard.digest)


def _write(writer: Writer, held: HeldSamples, count: int) -> None:
    try:
        held.write(writer, 0, count)
    except UsageError as error:
        number = next((n for n in range(count) if held.has(n)), None)
        if number is None:
            raise
        shard = held.take(number).shard
        raise UsageError(f"{shard}: {error}; reshard also gives new keys: rekey") from error


def encoded(numbers: array[int]) -> bytes:
    """In little endian, whatever this machine has."""
    little = numbers[:]
    if sys.byteorder == "big":
        little.byteswap()
    return little.tobytes()


def decoded(data: memoryview) -> array[int]:
    numbers = array("Q", bytes(data))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
