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

_MOST_AT_ONCE = 1024  # samples that are asked for with one call, after which signals are handled,
_BYTES_AT_ONCE = 16 << 20  # and about so many bytes
_OBJECT = 2048  # bytes that a sample takes beside its fields, about as HeldSamples counts
_LIBRARY_MEMORY = 256 << 20  # what the option "memory" of the library is when nobody gives it
_UNKNOWN = 256 << 10  # bytes of a sample where nothing says them
_INDEX = 128  # bytes that the index of a sample is taken for: 30, 16 for each field, and its key


class OrderedReader:
    """Reads samples by their places, in any order.

    memory: bytes that samples take while they are held. Of the order a stretch is taken that fits
    in, as far as one can know; its samples are read by shard and number, so that neighbours are
    read together, and given in the order. When they turn out to be larger, all are let go, since
    small ones share their memory with neighbours, and a shorter stretch is read. So `memory` and 64
    samples are held at most (8 where memory is small), and every sample is read about once. Indexes
    of open shards come on top.
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
        # A sample may be as large as `memory`, for which the library asks its own option.
        usual = {"memory": memory} if memory > _LIBRARY_MEMORY else {}
        self._options: Any = {**usual, **options_for("dataset", reader), "expand": False}
        self._data: Dataset | None = None
        self._starts: dict[int, int] = {}  # of the shards that are open: the first of its samples
        self._mean = float((mean or _UNKNOWN) + _OBJECT)

    def stretches(self, places: Sequence[int]) -> Iterator[tuple[HeldSamples, int]]:
        """The samples at these places, in this order: some and their number, again and again."""
        first = 0
        while first < len(places):
            stop = min(first + max(self._most_that_fit(), 1), len(places))
            held = HeldSamples(stop - first)
            count, fitting = self._read(held, places, first, stop)
            while not count:
                held = HeldSamples(fitting)
                count, fitting = self._read(held, places, first, first + fitting)
            first += count
            yield held, count

    def samples(self, places: Sequence[int]) -> Iterator[Sample]:
        """The samples at these places, in this order."""
        for held, count in self.stretches(places):
            for number in range(count):
                yield held.take(number)

    def _read(
        self, held: HeldSamples, places: Sequence[int], first: int, stop: int
    ) -> tuple[int, int]:
        """How many are held of the start of this stretch; when none, how many may fit."""
        read = at = 0
        order = sorted(range(first, stop), key=places.__getitem__)
        for group in self._groups(sorted({places[number] >> PLACE_BITS for number in order})):
            data, starts = self._started(group)
            after = (group[-1] + 1) << PLACE_BITS
            while at < len(order) and places[order[at]] < after:
                numbers, targets = array("Q"), array("Q")
                most = self._at_once()
                while at < len(order) and len(numbers) < most and places[order[at]] < after:
                    place = places[order[at]]
                    numbers.append(starts[place >> PLACE_BITS] + (place & _NUMBERS))
                    targets.append(order[at] - first)
                    at += 1
                read += held.read(data, numbers, targets, self._memory)
                self._mean = held.bytes / read
                if read < len(order) and held.bytes >= self._memory:
                    if max(order[:read]) - first == read - 1:
                        return read, 0  # those that are held are the first ones in the order too
                    held.drop(0)
                    return 0, max(min(len(order) // 2, self._most_that_fit()), 1)
        return len(order), 0

    def _most_that_fit(self) -> int:
        return int(self._memory * 0.8 / self._mean)

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
