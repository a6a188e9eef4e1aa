"""The order of samples, as docs/order.md has it, written a second time: for expectations.

It knows shuffled shards and samples, lanes, consumers, epochs, limits, even epochs, drawing with
replacement and mixes. Nothing here imports shardfeed.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Mapping, Sequence

from expected import Sample

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
SHARD_ORDER, SAMPLE_SHUFFLE, RESAMPLING, MIXING = 1, 2, 3, 7


def _mixed(z: int) -> int:
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
    return z ^ z >> 31


class Random:
    """SplitMix64, keyed by a purpose and numbers."""

    def __init__(self, purpose: int, *keys: int) -> None:
        self._key = _mixed(purpose)
        for key in keys:
            self._key = _mixed(self._key ^ _mixed(key + _GAMMA & _MASK))
        self._drawn = 0

    def below(self, bound: int) -> int:
        """Uniform in 0 .. bound - 1: the upper half of a product, some of which are rejected."""
        while True:
            self._drawn += 1
            product = _mixed(self._key + self._drawn * _GAMMA & _MASK) * bound
            if product & _MASK >= (1 << 64) % bound:
                return product >> 64


def shard_order(
    shards: Sequence[list[Sample]], options: Mapping[str, str], epoch: int
) -> list[int]:
    """The numbers of the shards as they come in an epoch."""
    order = list(range(len(shards)))
    if options.get("shuffle_shards") == "true":
        random = Random(SHARD_ORDER, int(options.get("seed", "0")), epoch)
        for i in range(len(order), 1, -1):
            j = random.below(i)
            order[i - 1], order[j] = order[j], order[i - 1]
    return order


def even_parts(
    shards: Sequence[list[Sample]], options: Mapping[str, str], lanes: int, epoch: int
) -> list[int]:
    """How many samples each lane gives in an even epoch."""
    have = [0] * lanes
    for place, shard in enumerate(shard_order(shards, options, epoch)):
        have[place % lanes] += len(shards[shard])
    ranks = int(options.get("world_size", "1"))
    drop = options["even"] == "drop"
    all_of_rank = (min if drop else max)(sum(have[rank::ranks]) for rank in range(ranks))
    gives = [0] * lanes if drop else list(have)
    for rank in range(ranks):
        own = [lane for lane in range(rank, lanes, ranks) if have[lane] > 0]
        more = all_of_rank - sum(gives[lane] for lane in own)
        if drop:  # one of each in turn, as long as it has any
            for turn in range(max(have)):
                for lane in own:
                    if turn < have[lane] and more > 0:
                        gives[lane], more = gives[lane] + 1, more - 1
        else:  # each repeats about as many
            for number, lane in enumerate(own):
                repeated = -(-more // (len(own) - number))
                gives[lane], more = gives[lane] + repeated, more - repeated
    return gives


class Lane:
    """The samples of one lane, epoch after epoch, and how many it has given in this one."""

    def __init__(
        self, number: int, lanes: int, shards: Sequence[list[Sample]], options: Mapping[str, str]
    ) -> None:
        self.number = number
        self.given = 0
        self.epoch = int(options.get("epoch", "0"))
        epochs = 1 << 32 if "epoch_samples" in options else int(options.get("epochs", "1"))
        self._last = self.epoch + epochs - 1
        self._lanes, self._shards = lanes, shards
        self._seed = int(options.get("seed", "0"))
        self._size = max(int(options.get("shuffle", "0")), 1)
        self._resample = options.get("resample") == "true"
        self._options = options
        first = 0 if self._resample else number  # with replacement all draw equally many
        self._turns = len(range(first, len(shards), lanes))  # shards in an epoch
        limit = int(options.get("limit", "0"))
        self._most = limit // lanes + (number < limit % lanes) if limit else sys.maxsize
        if self._most == 0:
            self._turns = 0
        self._samples = self._epoch_samples()
        self._head: list[Sample] = []
        self._look_ahead()

    def _shard(self, turn: int) -> list[Sample]:
        if self._resample:
            random = Random(RESAMPLING, self._seed, self.epoch, self.number, turn)
            return self._shards[random.below(len(self._shards))]
        order = shard_order(self._shards, self._options, self.epoch)
        return self._shards[order[self.number + turn * self._lanes]]

    def _epoch_samples(self) -> Iterator[Sample]:
        even = self._options.get("even", "none")
        most = self._most
        if even != "none":
            most = even_parts(self._shards, self._options, self._lanes, self.epoch)[self.number]
        unshuffled = (sample for turn in range(self._turns) for sample in self._shard(turn))
        if even == "pad":  # again from the start, until there are enough
            unshuffled = itertools.islice(itertools.cycle(unshuffled), most)
        return itertools.islice(self._shuffled(unshuffled), most)

    def _shuffled(self, samples: Iterator[Sample]) -> Iterator[Sample]:
        random = Random(SAMPLE_SHUFFLE, self._seed, self.epoch, self.number)
        buffer: list[Sample] = []

        def drawn() -> Sample:
            number = random.below(len(buffer))
            buffer[number], buffer[-1] = buffer[-1], buffer[number]
            return buffer.pop()

        for sample in samples:
            buffer.append(sample)
            if len(buffer) == self._size:
                yield drawn()
        while buffer:
            yield drawn()

    def _look_ahead(self) -> None:
        self._head = list(itertools.islice(self._samples, 1))
        while not self._head and self._turns and self.epoch < self._last:
            self.epoch, self.given = self.epoch + 1, 0
            self._samples = self._epoch_samples()
            self._head = list(itertools.islice(self._samples, 1))

    def over(self) -> bool:
        return not self._head

    def take(self) -> Sample:
        (sample,) = self._head
        self.given += 1
        self._look_ahead()
        return sample


def lanes_of(shards: Sequence[list[Sample]], options: Mapping[str, str]) -> list[Lane]:
    """All lanes of a run."""
    count = int(options.get("lanes", "0")) or int(options.get("world_size", "1"))
    return [Lane(number, count, shards, options) for number in range(count)]


def in_turn(lanes: Sequence[Lane]) -> Iterator[Sample]:
    """What a consumer takes from its lanes: one sample from each in turn."""
    while left := [lane for lane in lanes if not lane.over()]:
        yield min(left, key=lambda lane: (lane.epoch, lane.given, lane.number)).take()


def ordered(shards: Sequence[list[Sample]], options: Mapping[str, str]) -> list[Sample]:
    """What a single consumer gets."""
    most = int(options["epoch_samples"]) if "epoch_samples" in options else None
    return [sample for _, sample in zip(range(most or 1 << 32), in_turn(lanes_of(shards, options)))]


def dealt(lanes: Sequence[Lane], ranks: int, most: int = 1 << 32) -> list[list[Sample]]:
    """What each of some ranks takes of the lanes: at most so many samples.

    Ranks with the same remainder read the same lanes, and take their samples in turn.
    """
    groups = math.gcd(len(lanes), ranks)
    readers = ranks // groups
    parts: list[list[Sample]] = [[] for _ in range(ranks)]
    for group in range(groups):
        taken = in_turn(lanes[group::groups])
        for number, sample in zip(range(most * readers), taken):
            parts[group + number % readers * groups].append(sample)
    return parts


def merged(
    shards: Sequence[list[Sample]],
    options: Mapping[str, str],
    consumers: tuple[int, int],
    stop: int,
) -> list[Sample]:
    """What comes when some ranks stop, and another number of them goes on."""
    lanes = lanes_of(shards, options)
    parts = [*dealt(lanes, consumers[0], stop), *dealt(lanes, consumers[1])]
    return [sample for part in parts for sample in part]


def mixed(
    parts: Sequence[list[Sample]], weights: Sequence[float] | None, seed: int, until: str = "all"
) -> list[Sample]:
    """What a mix gives of these parts."""
    scale = 48 - math.frexp(max(weights))[1] if weights else 0
    whole = [round(math.ldexp(one, scale)) for one in weights] if weights else [1] * len(parts)
    divisor = math.gcd(*whole)
    whole = [weight // divisor for weight in whole]
    left = [iter(part) for part in parts]
    ended = [False] * len(parts)
    samples: list[Sample] = []
    while not all(ended):
        part = _chosen(whole, ended, Random(MIXING, seed, len(samples)))
        for sample in left[part]:
            samples.append(sample)
            break
        else:
            ended[part] = True
            if until == "first":
                break
    return samples


def _chosen(weights: Sequence[int], ended: Sequence[bool], random: Random) -> int:
    """The first part that has not ended, of an order that is drawn by weight."""
    drawn: set[int] = set()
    while True:
        rest = [part for part in range(len(weights)) if part not in drawn]
        place = random.below(sum(weights[part] for part in rest))
        for part in rest:
            if place < weights[part]:
                break
            place -= weights[part]
        if not ended[part]:
            return part
        drawn.add(part)
