"""A permutation of any number of samples, computed place by place."""

from __future__ import annotations

from array import array
from math import isqrt

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
# What the numbers are drawn for: no purpose of src/core/random.h, which are small numbers.
_PURPOSE = int.from_bytes(b"reshard", "little")
_ROUNDS = 8
_LEAST_BASE = 16  # with smaller ones the orders of a few samples are not equally frequent


def _mix(z: int) -> int:
    """The hash of SplitMix64, as src/core/random.h has it."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def _key(*numbers: int) -> int:
    key = _mix(_PURPOSE)
    for number in numbers:
        key = _mix(key ^ _mix((number + _GAMMA) & _MASK))
    return key


class Permutation:
    """The numbers 0 .. count - 1 in an order that seed and count determine.

        order = Permutation(seed=1, count=1_000_000)
        order(0)             # which sample comes first
        order.place(17)      # where sample 17 comes

    A Feistel network of 8 rounds over pairs (high, low) of digits in the base isqrt(count) + 1, or
    16: a round makes (low, high + table[low]) of them, with one table of random digits for each
    round. A result of count and above is put through it again, until it is below count. So 8 tables
    of about the square root of count are all that is held. seed: 64 bits.
    """

    def __init__(self, seed: int, count: int) -> None:
        self.count = count
        self._base = max(isqrt(count) + 1, _LEAST_BASE)
        self._tables = []
        for number in range(_ROUNDS):
            key, base = _key(seed, count, number), self._base
            # The 64 bits of a draw times the base: the highest bits are a digit, with a bias below
            # base / 2^64.
            draws = range(1, base + 1)
            self._tables.append(
                array("Q", (_mix((key + n * _GAMMA) & _MASK) * base >> 64 for n in draws))
            )
        # Rounds over an odd base are even permutations, or odd ones, all of them: the last exchange
        # of two numbers, which is made or not, gives both.
        self._exchanges = _key(seed, count, _ROUNDS) & 1

    def __call__(self, place: int) -> int:
        """The number at a place."""
        base, count, number = self._base, self.count, place
        while True:
            high, low = divmod(number, base)
            for table in self._tables:
                high, low = low, (high + table[low]) % base
            number = high * base + low
            if number < count:
                return self._exchanged(number)

    def place(self, number: int) -> int:
        """The place of a number."""
        base, count, place = self._base, self.count, self._exchanged(number)
        while True:
            high, low = divmod(place, base)
            for table in reversed(self._tables):
                high, low = (low - table[high]) % base, high
            place = high * base + low
            if place < count:
                return place

    def _exchanged(self, number: int) -> int:
        return number ^ 1 if self._exchanges and number < 2 and self.count > 1 else number
