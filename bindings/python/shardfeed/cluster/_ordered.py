"""Samples of many shards in an order that somebody else has computed, with bounded memory."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from .. import ChangedError, Dataset
from .._integration import HeldSamples
from ._tasks import options_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .. import Sample

# Where a sample is: the number of its shard, and its number in that, as one whole number.
PLACE_BITS = 40
_NUMBERS = (1 << PLACE_BITS) - 1

_MOST_AT_ONCE = 1024  # samples that are read with one call,
_BYTES_AT_ONCE = 16 << 20  # and about so many bytes
_OBJECT = 512  # bytes that a sample takes beside its fields, as HeldSamples counts
_UNKNOWN = 256 << 10  # bytes of a sample where nothing says them
_INDEX = 128  # bytes that the index of a sample takes: 30, and 16 for each field, and its key


class OrderedReader:
    """Reads samples by their places, in any order.

    memory: bytes of samples that are held. Of the order a stretch is taken that fits in, as far as
    one can know; its samples are read by shard and number, so that neighbours are read together,
    and given in the order. When samples turn out to be larger, the second half of the stretch is
    let go, and read again with the next one. So at most `memory` and one call of get_many are held,
    and every sample is read about once. The indexes of open shards take about as much again.
    """

    def __init__(
        self,
        shards: Sequence[tuple[str, int]],
        memory: int,
        reader: Mapping[str, Any],
        mean: int | None = None,
    ) -> None:
        """shards: URLs, and how many samples they have. mean: bytes of a sample, when known."""
        self._shards = shards
        self._filled = [number for number, (_, count) in enumerate(shards) if count]
        self._memory = memory
        self._options: Any = {**options_for("dataset", reader), "expand": False}
        self._data: Dataset | None = None
        self._starts: dict[int, int] = {}  # of the shards that are open: the first of its samples
        self._mean = float((mean or _UNKNOWN) + _OBJECT)

    def stretches(self, places: Sequence[int]) -> Iterator[tuple[HeldSamples, int]]:
        """The samples at these places, in this order: some and their number, again and again."""
        first = 0
        while first < len(places):
            stop = min(first + max(int(self._memory * 0.8 / self._mean), 1), len(places))
            held, count = self._read(places, first, stop)
            first += count
            yield held, count

    def samples(self, places: Sequence[int]) -> Iterator[Sample]:
        """The samples at these places, in this order."""
        for held, count in self.stretches(places):
            for number in range(count):
                yield held.take(number)

    def _read(self, places: Sequence[int], first: int, stop: int) -> tuple[HeldSamples, int]:
        """As many of them as fit."""
        held = HeldSamples(stop - first)
        read = taken = at = 0
        order = sorted(range(first, stop), key=places.__getitem__)
        for group in self._groups(sorted({places[number] >> PLACE_BITS for number in order})):
            data, starts = self._started(group)
            after = (group[-1] + 1) << PLACE_BITS
            while at < len(order) and places[order[at]] < after:
                numbers, targets = array("Q"), array("Q")
                most = self._at_once()
                while at < len(order) and len(numbers) < most and places[order[at]] < after:
                    if order[at] < stop:
                        place = places[order[at]]
                        numbers.append(starts[place >> PLACE_BITS] + (place & _NUMBERS))
                        targets.append(order[at] - first)
                    at += 1
                if not numbers:
                    continue
                before = held.bytes
                held.read(data, numbers, targets)
                read += len(numbers)
                taken += held.bytes - before
                self._mean = taken / read
                while held.bytes > self._memory and stop - first > 1:
                    stop = first + (stop - first) // 2
                    held.drop(stop - first)
        return held, stop - first

    def _at_once(self) -> int:
        most = int(min(_BYTES_AT_ONCE, self._memory / 8) / self._mean)
        return min(max(most, 1), _MOST_AT_ONCE)

    # ---- Shards ----

    def _groups(self, needed: list[int]) -> Iterator[list[int]]:
        """These shards, in groups that are opened together.

        Where more than half of all are needed, the next stretch needs others of them: all are in
        groups then, and one group stays open.
        """
        group: list[int] = []
        indexed = 0
        for shard in self._filled if 2 * len(needed) > len(self._filled) else needed:
            count = self._shards[shard][1]
            if group and (indexed + count) * _INDEX > self._memory:
                yield group
                group, indexed = [], 0
            group.append(shard)
            indexed += count
        yield group

    def _started(self, group: list[int]) -> tuple[Dataset, dict[int, int]]:
        """These shards in a data set that may have others, and where each of them starts in it."""
        data = self._data
        if data is None or not self._starts.keys() >= set(group):
            self.close()
            data = self._data = self._opened(group)
        return data, self._starts

    def _opened(self, group: list[int]) -> Dataset:
        data = Dataset([self._shards[shard][0] for shard in group], **self._options)
        starts = {}
        stop = 0
        for number, shard in enumerate(group):
            url, count = self._shards[shard]
            starts[shard] = stop
            stop += count
            # Its last sample, and the first one after it.
            is_there = stop <= len(data) and data.shard(stop - 1) == (number, count - 1)
            if not is_there or (stop < len(data) and data.shard(stop) != (number + 1, 0)):
                data.close()
                raise ChangedError(
                    f"{url}: it has no longer the {count} samples that it had when the order was "
                    "made; help: reshard into a new folder"
                )
        self._starts = starts
        return data

    def close(self) -> None:
        """Closes all shards."""
        if self._data is not None:
            self._data.close()
        self._data, self._starts = None, {}
