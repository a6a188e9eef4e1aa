"""The order of samples against a second writing of it, for random runs.

    python tests/differential/order_oracle.py [--runs N] [--seed N]

A run has random shards (tar, .tar.gz and ZIP of unequal size) and random options: lanes, ranks,
shuffles, epochs, limits, equal parts, drawing with replacement. What a rank streams must be what
tests/conformance/order_model.py tells: without a stop, and saved and restored at random places.
What the ranks of a run have left must come too after their states are merged for another number
of ranks. Other runs are mixes of streams, and mixes of those, or compute their order from indexes.
Prints the seed of the first difference and ends with 1.
"""

from __future__ import annotations

import argparse
import io
import random
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import shardfeed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance"))
from expected import Sample
from order_model import dealt, lanes_of, merged, mixed, ordered

Names = list[tuple[str, str]]  # shard and key of each sample
NUMBER_OF_SHARDS = 12


def write_shards(folder: Path, rng: random.Random) -> dict[str, list[Sample]]:
    """Shards of 1 to 40 samples, by name."""
    shards = {}
    for number in range(NUMBER_OF_SHARDS):
        name = f"{number:02d}" + rng.choice([".tar", ".tar", ".tar.gz", ".zip"])
        keys = [f"{number:02d}-{sample}" for sample in range(rng.choice([1, 2, 9, 40]))]
        if name.endswith(".zip"):
            with zipfile.ZipFile(folder / name, "w") as zip_file:
                for key in keys:
                    zip_file.writestr(f"{key}.txt", key)
        else:
            with tarfile.open(folder / name, "w:gz" if name.endswith("gz") else "w") as tar:
                for key in keys:
                    info = tarfile.TarInfo(f"{key}.txt")
                    info.size = len(key)
                    tar.addfile(info, io.BytesIO(key.encode()))
            if name.endswith(".tar"):
                shardfeed.Dataset(folder / name)  # makes the index, which even epochs need
        shards[name] = [Sample(key.encode(), name.encode(), []) for key in keys]
    return shards


def random_options(rng: random.Random, ranks: int, names: list[str]) -> dict[str, str]:
    options = {"seed": str(rng.getrandbits(64)), "epoch": str(rng.randrange(5))}
    if ranks > 1:
        options["world_size"] = str(ranks)
    if rng.random() < 0.7:
        options["lanes"] = str(rng.choice([ranks * rng.randint(1, 3), rng.randint(1, 9)]))
    if rng.random() < 0.6:
        options["shuffle"] = str(rng.choice([1, 2, 3, 7, 20, 100]))
    if rng.random() < 0.5:
        options["shuffle_shards"] = "true"
    if rng.random() < 0.25:
        options["resample"] = "true"
    if rng.random() < 0.3:
        options["epoch_samples"] = str(rng.randint(ranks, 150))
    elif rng.random() < 0.5:
        options["epochs"] = str(rng.randint(1, 3))
    if "epoch_samples" not in options and rng.random() < 0.4:
        options["limit"] = str(rng.randint(ranks, 100))
    elif (
        not {"epoch_samples", "resample"} & set(options)
        and not any(name.endswith(".gz") for name in names)  # they have no index
        and int(options.get("lanes", "0")) % ranks == 0
        and rng.random() < 0.7
    ):
        options["even"] = rng.choice(["drop", "pad"])
    return options


def of_model(
    shards: list[list[Sample]], options: dict[str, str], ranks: int, rank: int
) -> list[Sample]:
    """What one rank gets."""
    most = 1 << 32
    if "epoch_samples" in options:
        samples = int(options["epoch_samples"])
        most = samples // ranks + (rank < samples % ranks)
    return dealt(lanes_of(shards, options), ranks, most)[rank]


def named(samples: list[Sample]) -> Names:
    return [(sample.url.decode(), sample.key.decode()) for sample in samples]


class Run:
    """Streams of the library that were opened one after another."""

    def __init__(self, open_stream: Callable[..., shardfeed.Stream]) -> None:
        self._open = open_stream
        self.names: Names = []  # of what came

    def take(self, most: int | None = None, state: object = None, **more: object) -> object:
        """Takes samples of a stream, restored if there is a state; where it stood then."""
        with self._open(**more) as stream:
            if state is not None:
                stream.load_state_dict(state)
            for number, sample in enumerate(stream, 1):
                self.names.append((Path(sample.shard).name, sample.key))
                if number == most:
                    break
            return stream.state_dict()

    def take_with_stops(self, count: int, rng: random.Random, **more: object) -> None:
        """Takes `count` samples and what else comes, of streams that go on one after another."""
        state = None
        while count - len(self.names) > 1 and rng.random() < 0.7:
            state = self.take(rng.randint(1, count - len(self.names) - 1), state, **more)
        self.take(None, state, **more)


def difference_of_mix(folder: Path, shards: dict[str, list[Sample]], seed: int) -> str | None:
    """What a random mix has otherwise than the model."""
    rng = random.Random(seed)

    def part(deep: int) -> tuple[Callable[[], shardfeed.Stream], list[Sample]]:
        if deep == 0 or rng.random() < 0.6:
            chosen = rng.choices(list(shards), k=rng.randint(1, 3))
            options = random_options(rng, 1, chosen)
            urls = [str(folder / name) for name in chosen]
            samples = ordered([shards[name] for name in chosen], options)
            return lambda: shardfeed.Stream(urls, log=None, **options), samples
        return mix(deep)

    def mix(deep: int) -> tuple[Callable[[], shardfeed.Stream], list[Sample]]:
        parts = [part(deep - 1) for _ in range(rng.randint(1, 4))]
        weights = [rng.choice([1, 2.5, 100, rng.random() + 0.01]) for _ in parts]
        given = weights if rng.random() < 0.7 else None
        options = {"seed": str(rng.getrandbits(64)), "until": rng.choice(["all", "first"])}
        samples = mixed([one for _, one in parts], given, int(options["seed"]), options["until"])

        def open_mix() -> shardfeed.Stream:
            return shardfeed.mix([one() for one, _ in parts], weights=given, log=None, **options)

        return open_mix, samples

    open_mix, samples = mix(2)
    for stops in (False, True):
        run = Run(open_mix)
        run.take_with_stops(len(samples), rng) if stops else run.take()
        if run.names != named(samples):
            return "the order of a mix differs" + " after a stop" * stops
    return None


def difference(folder: Path, shards: dict[str, list[Sample]], seed: int) -> str | None:
    """What a random run has otherwise than the model."""
    rng = random.Random(seed)
    usable = [name for name in shards if rng.random() < 0.5 or not name.endswith(".gz")]
    chosen = rng.choices(usable, k=rng.randint(1, 9))
    urls = [str(folder / name) for name in chosen]
    contents = [shards[name] for name in chosen]
    ranks = min(rng.choice([1, 1, 2, 3, 4]), len(chosen))
    options = random_options(rng, ranks, chosen)
    rank = rng.randrange(ranks)
    expected = named(of_model(contents, options, ranks, rank))

    def open_stream(**more: object) -> shardfeed.Stream:
        return shardfeed.Stream(urls, log=None, **{**options, "threads": rng.randint(1, 4), **more})

    whole, parts = Run(open_stream), Run(open_stream)
    whole.take(rank=rank)
    if whole.names != expected:
        return f"the order differs: {options}"
    parts.take_with_stops(len(expected), rng, rank=rank)
    if parts.names != expected:
        return f"the order differs after a stop: {options}"

    most = min(len(chosen), int(options.get("limit", "100")))
    if "lanes" not in options or {"epoch_samples", "even"} & set(options):
        return None
    shortest = min(len(of_model(contents, options, ranks, one)) for one in range(ranks))
    if shortest < 2:
        return None
    stop, after = rng.randint(1, shortest - 1), rng.randint(1, most)
    run = Run(open_stream)
    states = [run.take(stop, rank=one) for one in range(ranks)]
    both = shardfeed.merge_states(states)
    for one in range(after):
        run.take(None, both, rank=one, world_size=after)
    if run.names != named(merged(contents, options, (ranks, after), stop)):
        return f"the order differs after {ranks} ranks became {after}: {options}"
    return None


def elements(samples: Names, options: dict[str, str], ranks: int) -> Names:
    """What of an epoch is dealt out to so many ranks by index."""
    over = len(samples) % ranks
    if options["even"] == "none" or over == 0:
        return samples
    if options["even"] == "drop":
        return samples[: len(samples) - over]
    return samples + [samples[i % len(samples)] for i in range(ranks - over)]


def difference_by_index(folder: Path, shards: dict[str, list[Sample]], seed: int) -> str | None:
    """What a random run whose order is computed from indexes has otherwise than the model."""
    rng = random.Random(seed)
    chosen = rng.choices([name for name in shards if not name.endswith(".gz")], k=rng.randint(1, 9))
    urls = [str(folder / name) for name in chosen]
    contents = [shards[name] for name in chosen]
    total = sum(len(samples) for samples in contents)
    ranks, after = (min(rng.randint(1, 7), total) for _ in range(2))
    drawn = random_options(rng, 1, chosen)
    options = {"lanes": str(rng.randint(1, 9)), "even": rng.choice(["none", "drop", "pad"])}
    kept = ("seed", "epoch", "shuffle", "shuffle_shards", "epochs")
    options |= {name: drawn[name] for name in kept if name in drawn}
    if options["even"] == "none" and rng.random() < 0.3:
        options["limit"] = str(rng.randint(ranks, 100))
    first, epochs = int(options["epoch"]), int(options.get("epochs", "1"))
    model = {name: options[name] for name in options if name not in ("even", "limit")}
    most = int(options.get("limit", str(total)))
    of_epochs = [
        named(ordered(contents, {**model, "epoch": str(epoch), "epochs": "1"}))[:most]
        for epoch in range(first, first + epochs)
    ]

    def open_stream(**more: object) -> shardfeed.Stream:
        threads = rng.randint(1, 4)
        given = {**options, "by_index": True, "world_size": ranks, "threads": threads, **more}
        return shardfeed.Stream(urls, log=None, **given)

    rank = rng.randrange(ranks)
    dealt_out = [elements(samples, options, ranks) for samples in of_epochs]
    expected = [name for epoch in dealt_out for name in epoch[rank::ranks]]
    whole, parts = Run(open_stream), Run(open_stream)
    whole.take(rank=rank)
    if whole.names != expected:
        return f"the order by index differs: {options}"
    parts.take_with_stops(len(expected), rng, rank=rank)
    if parts.names != expected:
        return f"the order by index differs after a stop: {options}"

    shortest = len(dealt_out[0]) // ranks
    if shortest < 2:
        return None
    stop = rng.randint(1, shortest - 1)
    states = [Run(open_stream).take(stop, rank=one) for one in range(ranks)]
    both = shardfeed.merge_states(states)
    for one in range(after):
        run = Run(open_stream)
        run.take(None, both, rank=one, world_size=after)
        rest = elements(of_epochs[0], options, after)
        expected = [rest[t] for t in range(one, len(rest), after) if t >= stop * ranks]
        expected += [
            name
            for samples in of_epochs[1:]
            for name in elements(samples, options, after)[one::after]
        ]
        if run.names != expected:
            return f"the order by index differs after {ranks} ranks became {after}: {options}"
    return None


def main() -> int:
    """Compares random runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"shards of seed {arguments.seed}, runs {arguments.seed} and after")
    with tempfile.TemporaryDirectory() as folder:
        shards = write_shards(Path(folder), random.Random(arguments.seed))
        for seed in range(arguments.seed, arguments.seed + arguments.runs):
            compare = (difference_of_mix, difference_by_index, difference, difference)[seed % 4]
            different = compare(Path(folder), shards, seed)
            if different is not None:
                print(f"run {seed}: {different}")
                return 1
    print(f"{arguments.runs} runs have the same order")
    return 0


if __name__ == "__main__":
    sys.exit(main())
