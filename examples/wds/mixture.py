"""Mixes several data sets at random, by weight, and counts what came of each.

python examples/wds/mixture.py 'photos-{0..3}.tar=3' 'drawings-{0..1}.tar=1' --samples 500
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
from collections import Counter
from typing import Any


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="+", help="shards=weight")
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--package", default="shardfeed.wds", help="or webdataset")
    options = parser.parse_args()
    wds = importlib.import_module(options.package)
    random.seed(3)  # RandomMix draws from the module random
    parts, weights = [], []
    for number, source in enumerate(options.sources):
        urls, _, weight = source.rpartition("=")

        def mark(sample: dict[str, Any], number: int = number) -> dict[str, Any]:
            return {**sample, "source": number}

        dataset = wds.WebDataset(urls, shardshuffle=10, seed=number).shuffle(20, seed=number)
        parts.append(dataset.decode().map(mark).repeat())
        weights.append(float(weight))
    mixed = wds.FluidWrapper(wds.RandomMix(parts, probs=weights)).with_epoch(options.samples)
    counts: Counter[str] = Counter()
    keys = []
    for sample in mixed:
        counts[f"source {sample['source']}"] += 1
        keys.append(sample["__key__"])
    print(json.dumps({**dict(sorted(counts.items())), "first": keys[:20], "last": keys[-5:]}))


if __name__ == "__main__":
    main()
