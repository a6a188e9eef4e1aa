"""Samples of many shards in an order that somebody else has computed, with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .. import Dataset
from ._tasks import options_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .. import Sample

# Where a sample is: the number of its shard, and its number in that, as one whole number.
PLACE_BITS = 40
_NUMBERS = (1 << PLACE_BITS) - 1

_MOST_AT_ONCE = 1024  # samples that are read with one call,
_BYTES_AT_ONCE = 16 << 20  # and about so many bytes
_OBJECT = 2048  # bytes that a sample takes beside its fields
_UNKNOWN = 256 << 10  # bytes of a sample where nothing says them
_MOST_OPEN = 128  # shards that stay open,
_MOST_INDEXED = 4_000_000  # with so many samples in all


class OrderedReader:
    """Reads samples by their places, in any order.

    memory: bytes of samples that are held. Of the order a stretch is taken that fits in, as far as
    one can know; its samples are read by shard and number, so that neighbours are read together,
    and given in the order. When samples turn out to be larger, the second half of the stretch is
    let go, and read again with the next one. So at most `memory` and one call of get_many are held,
    and every sample is read about once.
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
        self._memory = memory
        self._options: Any = {**options_for("dataset", reader), "expand": False}
        self._open: dict[int, Dataset] = {}  # those that stay open, until close()
        self._indexed = 0
        self._last: tuple[int, Dataset] | None = None  # one of the others
        self._mean = float((mean or _UNKNOWN) + _OBJECT)

    def samples(self, places: Sequence[int]) -> Iterator[Sample]:
        """The samples at these places, in this order."""
        first = 0
        while first < len(places):
            stop = min(first + max(int(self._memory * 0.8 / self._mean), 1), len(places))
            held = self._read(places, first, stop)
            first += len(held)
            while held:
                yield held.pop()  # which is nobody's but the caller's then

    def _read(self, places: Sequence[int], first: int, stop: int) -> list[Sample]:
        """As many of them as fit, the last one first."""
        held: dict[int, Sample] = {}
        size = read = taken = 0
        order = sorted(range(first, stop), key=places.__getitem__)
        at = 0
        while at < len(order):
            shard, most = places[order[at]] >> PLACE_BITS, self._at_once()
            group: list[int] = []
            while at < len(order) and len(group) < most:
                number = order[at]
                if places[number] >> PLACE_BITS != shard:
                    break
                at += 1
                if number < stop:
                    group.append(number)
            if not group:
                continue
            samples = self._dataset(shard).get_many([places[n] & _NUMBERS for n in group])
            for number, sample in zip(group, samples):
                held[number] = sample
                bytes_of = _size(sample)
                size += bytes_of
                taken += bytes_of
            read += len(group)
            del samples
            self._mean = taken / read
            while size > self._memory and stop - first > 1:
                stop = first + (stop - first) // 2
                for number in [number for number in held if number >= stop]:
                    size -= _size(held.pop(number))
        return [held[number] for number in range(stop - 1, first - 1, -1)]

    def _at_once(self) -> int:
        most = int(min(_BYTES_AT_ONCE, self._memory / 8) / self._mean)
        return min(max(most, 1), _MOST_AT_ONCE)

    def _dataset(self, number: int) -> Dataset:
        """A shard, opened.

        The first ones stay open. The shards of a task come in turn, so whichever are kept, others
        are not open when they come.
        """
        found = self._open.get(number)
        if found is not None:
            return found
        if self._last is not None:
            if self._last[0] == number:
                return self._last[1]
            self._last[1].close()
            self._last = None
        url, count = self._shards[number]
        opened = Dataset(url, **self._options)
        if len(self._open) < _MOST_OPEN and self._indexed + count <= _MOST_INDEXED:
            self._open[number] = opened
            self._indexed += count
        else:
            self._last = number, opened
        return opened

    def sample(self, place: int) -> Sample:
        """One sample."""
        return self._dataset(place >> PLACE_BITS)[place & _NUMBERS]

    def close(self) -> None:
        """Closes all shards."""
        for data in self._open.values():
            data.close()
        self._open.clear()
        if self._last is not None:
            self._last[1].close()
            self._last = None


def _size(sample: Sample) -> int:
    """Bytes that a sample of a data set takes: asking for each field takes longer than reading."""
    return sum(view.nbytes for view in sample._block.views) + _OBJECT
