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


def cases(archives: Folder) -> list[Case]:
    """All of them."""
    return [*mixes(archives), *plans(archives)]
