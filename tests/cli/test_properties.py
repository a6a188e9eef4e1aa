"""sort, split --ratio and cat --mix on random samples, against models of a few lines."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from conftest import Fields, output, samples_of

Samples = Sequence[tuple[str, Fields]]
Shard = Callable[[str, Samples], Path]
KEYS = "abcXYZ019_-/ \u00e9\u4e16"


def random_samples(chance: random.Random, count: int) -> list[tuple[str, Fields]]:
    """Keys of all lengths, few values, so that many are equal, and some large fields."""
    made: dict[str, Fields] = {}
    while len(made) < count:
        key = "".join(chance.choices(KEYS, k=chance.randint(1, 12)))
        if key.strip("/") != key or "//" in key or key.lower() in map(str.lower, made):
            continue
        value = chance.choice([b"", b"-"]) + b"%d" % chance.randint(0, 12)
        made[key] = {"n": value, "x": chance.randbytes(chance.choice([0, 1, 511, 512, 513, 9000]))}
    return list(made.items())


@pytest.mark.parametrize("seed", range(4))
def test_sort_is_that_of_python(shard: Shard, seed: int) -> None:
    chance = random.Random(seed)
    samples = random_samples(chance, chance.choice([2, 7, 60]))
    half = (len(samples) + 1) // 2
    given = [shard("a.tar", samples[:half]), shard("b.tar", samples[half:])]
    little = ["--memory", "2MiB"] if seed % 2 else []
    orders: dict[tuple[str, ...], Callable[[tuple[str, Fields]], object]] = {
        (): lambda sample: sample[0].encode(),
        ("-s", "n"): lambda sample: sample[1]["n"],
        ("-s", "x"): lambda sample: sample[1]["x"],
        ("-s", "n", "-t", "int"): lambda sample: int(sample[1]["n"]),
        ("-s", "n", "-t", "float"): lambda sample: float(sample[1]["n"]),
    }
    for words, key in orders.items():
        for reverse in ([], ["-r"]):
            made = samples_of(output("sort", *given, *words, *reverse, *little))
            assert made == sorted(samples, key=key, reverse=bool(reverse)), (words, reverse)


@pytest.mark.parametrize("seed", range(4))
def test_random_sort_is_a_permutation_that_the_seed_says(shard: Shard, seed: int) -> None:
    samples = random_samples(random.Random(seed), 60)
    a = shard("a.tar", samples)
    made = samples_of(output("sort", a, "--random", "--seed", seed))
    assert made == samples_of(output("sort", a, "--random", "--seed", seed, "--memory", "2MiB"))
    assert made != samples
    assert sorted(made) == sorted(samples)


@pytest.mark.parametrize("seed", range(4))
def test_ratio_gives_each_sample_to_one_part_by_its_key_alone(
    shard: Shard, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    samples = random_samples(chance, 80)
    ratio = ",".join(f"p{i}:{chance.randint(1, 9)}" for i in range(chance.randint(2, 4)))

    def parts(name: str, given: Samples) -> dict[str, str]:
        """The part of each key. All samples are there once, as they were, in their order."""
        out = tmp_path / (name + "-{}.tar")
        report = output("split", shard(f"{name}.tar", given), "--ratio", ratio, "-o", out, "--json")
        where: dict[str, str] = {}
        wanted = dict(given)
        for line in report.splitlines():
            path = Path(json.loads(line)["shard"])
            found = samples_of(path)
            assert [key for key, _ in found] == [
                key for key, _ in given if key in {key for key, _ in found}
            ]
            for key, fields in found:
                assert key not in where
                assert fields == wanted[key]
                where[key] = path.stem.partition("-")[2]
        assert where.keys() == wanted.keys()
        return where

    all_parts = parts("all", samples)
    some = chance.sample(samples, 30)
    changed = [(key, {"other": b"bytes"}) for key, _ in some]
    for name, given in {"some": some, "changed": changed}.items():
        assert parts(name, given) == {key: all_parts[key] for key, _ in given}


def in_turns(inputs: list[list[tuple[str, Fields]]], at_once: int) -> list[tuple[str, Fields]]:
    """One sample of each open input in turn; the next input takes the place of one that ends."""
    made = []
    waiting = [list(samples) for samples in inputs]
    ring = [waiting.pop(0) for _ in range(min(at_once, len(waiting)))]
    while ring:
        turn = ring.pop(0)
        if turn:
            made.append(turn.pop(0))
            ring.append(turn)
        elif waiting:
            ring.append(waiting.pop(0))
    return made


@pytest.mark.parametrize("seed", range(5))
def test_mix_takes_one_of_each_in_turn(shard: Shard, seed: int) -> None:
    chance = random.Random(seed)
    samples = random_samples(chance, 60)
    inputs: list[list[tuple[str, Fields]]] = [[]]
    for sample in samples:
        if chance.random() < 0.15 and inputs[-1]:
            inputs.append([])
        inputs[-1].append(sample)
    urls = [shard(f"{i}.tar", part) for i, part in enumerate(inputs)]
    for at_once in (1, 2, 3, len(inputs) + 2):
        made = samples_of(output("cat", *urls, "--mix", at_once))
        assert sorted(made) == sorted(samples)
        assert [key for key, _ in made] == [key for key, _ in in_turns(inputs, at_once)]
