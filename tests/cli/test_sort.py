"""sort: every order, stable, and nothing lost in little memory."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from conftest import Fields, fails, keys_of, numbered, output, samples_of

Shard = Callable[[str, Sequence[tuple[str, Fields]]], Path]


def by_value(shard: Shard, values: Sequence[str], *words: object) -> list[str]:
    """The values of field v in the order in which they are sorted."""
    path = shard("v.tar", [(f"{i:05d}", {"v": value.encode()}) for i, value in enumerate(values)])
    made = samples_of(output("sort", path, "--by", "v", *words))
    assert sorted(key for key, _ in made) == keys_of(path)
    return [fields["v"].decode() for _, fields in made]


def test_by_key(shard: Shard) -> None:
    samples = numbered(0, 50)
    random.Random(1).shuffle(samples)
    a = shard("a.tar", samples)
    assert samples_of(output("sort", a)) == numbered(0, 50)
    assert samples_of(output("sort", a, "-r")) == numbered(0, 50)[::-1]


def test_equal_samples_keep_their_order(shard: Shard) -> None:
    a = shard("a.tar", numbered(0, 20))
    for words in ([], ["-r"]):
        made = samples_of(output("sort", a, "-s", "cls", *words))
        classes = [fields["cls"] for _, fields in made]
        assert classes == sorted(classes, reverse=bool(words))
        for cls in (b"0", b"1", b"2"):
            keys = [key for key, fields in made if fields["cls"] == cls]
            assert keys == sorted(keys)


def test_types(shard: Shard) -> None:
    numbers = ["10", "9", "-3", "0", "-0", "+7", " 5\n", "-30", "123456789012345678901234567890"]
    assert by_value(shard, numbers, "--type", "int") == sorted(numbers, key=int)
    floats = ["1e3", "-2.5", "0.1", "inf", "-inf", "3", "-1e-9", "2e-9"]
    assert by_value(shard, [*floats, "nan"], "--type", "float") == [
        *sorted(floats, key=float),
        "nan",
    ]
    names = ["a10", "a2", "a1", "b", "a", "a02x", "a2b"]
    assert by_value(shard, names, "-t", "natural") == ["a", "a1", "a2", "a2b", "a02x", "a10", "b"]
    assert by_value(shard, numbers) == sorted(numbers)
    assert "whole number" in fails(
        1, "sort", shard("x.tar", [("k", {"v": b"x"})]), "-s", "v", "-t", "int"
    )
    assert "x.tar: sample k has no field w" in fails(
        1, "sort", shard("x.tar", [("k", {"v": b"x"})]), "-s", "w"
    )


def test_random_numbers_in_little_memory(shard: Shard) -> None:
    chance = random.Random(2)
    samples = [
        (
            f"{i:05d}",
            {"n": b"%d" % chance.randint(-99, 99), "x": chance.randbytes(chance.randint(0, 9000))},
        )
        for i in range(3000)
    ]
    a = shard("a.tar", samples)
    assert a.stat().st_size > 12_000_000
    made = output("sort", a, "-s", "n", "-t", "int", "--memory", "2MiB")
    assert samples_of(made) == sorted(samples, key=lambda sample: int(sample[1]["n"]))
    assert made == output("sort", a, "-s", "n", "-t", "int")


def test_random_order(shard: Shard) -> None:
    a = shard("a.tar", numbered(0, 100))
    orders = [keys_of(output("sort", a, "--random", "--seed", seed)) for seed in (5, 5, 6)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == keys_of(a) != orders[0]
    assert orders[0] == keys_of(output("sort", a, "-s", "__random__", "--seed", 5))


def test_folder_without_room(shard: Shard, tmp_path: Path) -> None:
    a = shard("a.tar", [(f"{i}", {"x": bytes(9000)}) for i in range(300)])
    message = fails(1, "sort", a, "--memory", "2MiB", "--tmpdir", tmp_path / "none")
    assert "none" in message
