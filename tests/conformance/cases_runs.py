"""Cases of mixes of streams, and of plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from case import Case
from expected import Folder, Sample, sample_bytes, xxh64
from order_model import mixed, ordered

NUMBERS = {"urls": ["set-{000..003}.tar"], "options": {}}  # 33 samples
SHUFFLED_OPTIONS = {"shuffle": "5", "shuffle_shards": "true", "seed": "7"}
SHUFFLED = {"urls": ["set-{004..007}.tar"], "options": SHUFFLED_OPTIONS}  # 35 samples
ZIPS = {"urls": ["part-{0..3}.zip"], "options": {"lanes": "2"}}  # 25 samples


def mix(
    name: str,
    about: str,
    parts: Sequence[Mapping[str, Any]],
    options: Mapping[str, str],
    samples: Sequence[Sample],
    *,
    error: tuple[str, int | None] | None = None,
    **own: Any,
) -> Case:
    """A mix of these parts."""
    digest = xxh64(sample_bytes(samples))
    own = {"parts": parts, **own}
    return Case(name, "mix", about, [], options, len(samples), digest, error, None, own)


def mixes(archives: Folder) -> list[Case]:
    """Mixes."""

    def shards(names: Iterable[str]) -> list[list[Sample]]:
        return [archives.samples(name) for name in names]

    plain = archives.samples("plain.tar")
    numbers = ordered(shards(f"set-{number:03d}.tar" for number in range(4)), {})
    shuffled = ordered(shards(f"set-{number:03d}.tar" for number in range(4, 8)), SHUFFLED_OPTIONS)
    zips = ordered(shards(f"part-{number}.zip" for number in range(4)), {"lanes": "2"})
    by_weight = mixed([numbers, shuffled, zips], [3, 1, 0.5], 1)
    missing = {"urls": ["no_such_file.tar"], "options": {}}
    return [
        mix("mix_of_one", "a mix of one stream is that stream", [NUMBERS], {"seed": "3"}, numbers),
        mix("mix", "two streams of equal weight, to the end of both", [NUMBERS, SHUFFLED],
            {"seed": "1"}, mixed([numbers, shuffled], None, 1)),
        mix("mix_other_seed", "another seed", [NUMBERS, SHUFFLED], {"seed": "2"},
            mixed([numbers, shuffled], None, 2)),
        mix("mix_weights", "three streams by weight", [NUMBERS, SHUFFLED, ZIPS], {"seed": "1"},
            by_weight, weights=[3, 1, 0.5]),
        mix("mix_until_first", "until the first stream ends", [NUMBERS, ZIPS],
            {"seed": "4", "until": "first"}, mixed([numbers, zips], [1, 4], 4, "first"),
            weights=[1, 4]),
        mix("mix_epochs", "a part of two epochs",
            [{"urls": ["plain.tar"], "options": {"epochs": "2"}}], {}, plain * 2),
        mix("mix_resumed", "saved after 40 samples", [NUMBERS, SHUFFLED, ZIPS], {"seed": "1"},
            by_weight, weights=[3, 1, 0.5], stop=40),
        mix("mix_resumed_after_part", "saved when a part has ended", [NUMBERS, SHUFFLED],
            {"seed": "1"}, mixed([numbers, shuffled], None, 1), stop=67),
        mix("mix_error", "the error of a part is that of the mix", [missing], {}, [],
            error=("IO", None)),
        mix("mix_bad_weight", "a weight that is not above 0", [NUMBERS, ZIPS], {}, [],
            weights=[1, 0], error=("USAGE", None)),
        mix("mix_bad_until", "an end that is none", [NUMBERS], {"until": "sometimes"}, [],
            error=("USAGE", None)),
    ]  # fmt: skip


def plans(archives: Folder) -> list[Case]:
    """Plans. Their texts are the library's own."""
    url = "set-{000..007}.tar"

    def plan(
        name: str, about: str, options: Mapping[str, str], consumers: int, urls: str = url
    ) -> Case:
        return Case(name, "plan", about, [urls], options, consumers)

    return [
        plan("plan_one", "one process", {}, 1),
        plan("plan_workers", "two ranks with two workers",
             {"world_size": "2", "num_workers": "2", "lanes": "8", "shuffle": "100"}, 4),
        plan("plan_unequal", "parts of unequal size", {"world_size": "3"}, 3),
        plan("plan_too_few_shards", "fewer shards than consumers", {"world_size": "2"}, 2,
             "plain.tar"),
        plan("plan_many", "many consumers", {"world_size": "16", "lanes": "16", "seed": "1"}, 16),
        plan("plan_epochs", "several epochs that are not shuffled", {"epochs": "3"}, 1),
        plan("plan_epoch_samples", "an epoch of so many samples",
             {"epoch_samples": "100", "world_size": "4", "lanes": "4", "shuffle": "50"}, 4),
        plan("plan_does_not_divide", "lanes that are no multiple of the consumers",
             {"lanes": "3", "world_size": "2"}, 2),
    ]  # fmt: skip


def numbers_of(*numbers: int | None) -> bytes:
    """As runners hash them; None is what is not known."""
    return b"".join((2**64 - 1 if n is None else n).to_bytes(8, "little") for n in numbers)


def simulations() -> list[Case]:
    """Plans of shards that are not there."""
    samples, sizes = [10, 20, 5, 40, 3, 7], [100, 200, 50, 400, 30, 70]

    def unshuffled(name: str, about: str, bytes_of: list[int] | None, ranks: int) -> Case:
        """A lane for each rank, which reads one shard after another."""
        hashed = b""
        for rank in range(ranks):
            own = range(rank, len(samples), ranks)
            taken = [samples[shard] for shard in own]
            size = None if bytes_of is None else sum(bytes_of[shard] for shard in own)
            hashed += numbers_of(rank, 0, 1, len(own), sum(taken), size, len(own))
            for place, shard in enumerate(own):
                first = sum(taken[:place])
                hashed += numbers_of(shard, samples[shard], first, first + samples[shard] - 1)
        options = {"world_size": str(ranks), "lanes": str(ranks)}
        more: dict[str, Any] = {"shards": samples}
        if bytes_of is not None:
            more["bytes"] = bytes_of
        return Case(name, "simulate", about, [], options, ranks, xxh64(hashed), own=more)

    shuffled = {"shuffle_shards": "true", "shuffle": "12", "seed": "5", "lanes": "6"}
    wrong = {"shards": [1, 2**32]}
    return [
        unshuffled("simulate_one", "a run of one process over numbers", sizes, 1),
        unshuffled("simulate_ranks", "a run of three ranks; bytes are not known", None, 3),
        Case("simulate_shuffled", "simulate", "when shuffled shards are read", [],
             {**shuffled, "world_size": "2", "num_workers": "3"}, 6, own={"shards": samples * 20}),
        Case("simulate_pad", "simulate", "shards that are read again", [],
             {"world_size": "2", "lanes": "2", "even": "pad"}, 2, own={"shards": samples}),
        Case("simulate_too_many_samples", "simulate", "more samples than a shard has", [], {}, 0,
             xxh64(b""), ("USAGE", None), own=wrong),
        Case("simulate_no_reads", "simulate", "readings of an epoch of so many samples", [],
             {"epoch_samples": "10"}, 1, error=("USAGE", None), own={"shards": samples}),
    ]  # fmt: skip


def cases(archives: Folder) -> list[Case]:
    """All of them."""
    return [*mixes(archives), *plans(archives), *simulations()]
