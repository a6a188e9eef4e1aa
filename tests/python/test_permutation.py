"""The random order of reshard: a permutation that is computed place by place."""

from __future__ import annotations

import hashlib
import math
from collections import Counter

import pytest
from shardfeed.cluster._permutation import Permutation

GOLDEN = [6, 2, 4, 5, 7, 9, 0, 3, 1, 8]
GOLDEN_DIGEST = "9914eb4e5beee4dc95949a5cd593eb6260b1039ea64d137720a27b2096c5a084"


@pytest.mark.parametrize("count", [1, 2, 3, 15, 16, 17, 255, 256, 257, 1000, 9999, 100_000])
@pytest.mark.parametrize("seed", [0, 1, (1 << 64) - 1])
def test_it_has_each_number_once_and_can_be_turned_round(count: int, seed: int) -> None:
    order = Permutation(seed, count)
    numbers = [order(place) for place in range(count)]
    assert sorted(numbers) == list(range(count))
    assert [order.place(number) for number in numbers[:500]] == list(range(min(count, 500)))


def test_large_counts_need_little_memory() -> None:
    count = 10**10 + 7
    order = Permutation(3, count)
    places = [0, 1, 2, count // 2, count - 1, *range(10**9, 10**9 + 200)]
    numbers = [order(place) for place in places]
    assert len(set(numbers)) == len(places)
    assert all(0 <= number < count for number in numbers)
    assert [order.place(number) for number in numbers] == places
    assert sum(table.itemsize * len(table) for table in order._tables) < 7_000_000


def test_the_order_of_a_seed_never_changes() -> None:
    # Outputs of an interrupted run are continued by later versions.
    assert [Permutation(1, 10)(place) for place in range(10)] == GOLDEN
    order = Permutation(2026, 100_000)
    told = hashlib.sha256(b"".join(order(p).to_bytes(8, "little") for p in range(100_000)))
    assert told.hexdigest() == GOLDEN_DIGEST


def chi_square(counts: Counter[object], classes: int) -> float:
    """How far counts are from equal ones, in standard deviations of what chance makes of it."""
    expected = sum(counts.values()) / classes
    found = sum((count - expected) ** 2 / expected for count in counts.values())
    found += (classes - len(counts)) * expected
    return (found - (classes - 1)) / math.sqrt(2 * (classes - 1))


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_all_orders_of_a_few_are_equally_frequent(count: int) -> None:
    orders = math.factorial(count)
    found = Counter(
        tuple(map(Permutation(seed, count), range(count))) for seed in range(60 * orders)
    )
    assert len(found) == orders
    assert abs(chi_square(Counter(found), orders)) < 5


def test_every_number_is_equally_frequent_at_every_place() -> None:
    count = 40
    places: list[Counter[object]] = [Counter() for _ in range(count)]
    for seed in range(4000):
        order = Permutation(seed, count)
        for place in range(count):
            places[place][order(place)] += 1
    worst = [chi_square(found, count) for found in places]
    assert max(map(abs, worst)) < 5
    assert abs(sum(worst) / count) < 1


def test_neighbours_and_seeds_are_independent() -> None:
    count = 30_000
    orders = [[*map(Permutation(seed, count), range(count))] for seed in (1, 2)]
    # Of 100 classes of the difference of neighbours, of numbers against places, and of two seeds.
    differences = {
        "neighbours": zip(orders[0], orders[0][1:]),
        "places": zip(orders[0], range(count)),
        "seeds": zip(*orders),
    }
    for name, pairs in differences.items():
        found = Counter((a - b) % count * 100 // count for a, b in pairs)
        assert abs(chi_square(Counter(found), 100)) < 5, name
    # As many ascents as descents: 1/2, with a standard deviation of sqrt(count / 12).
    ascents = sum(a < b for a, b in zip(orders[0], orders[0][1:]))
    assert abs(ascents - count / 2) < 5 * math.sqrt(count / 12)
