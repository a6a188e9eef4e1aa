"""What the tests of reshard share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import shardfeed
from shardfeed.cluster._permutation import Permutation


def keys(urls: Any, **options: Any) -> list[str]:
    with shardfeed.Stream(urls, shuffle_shards=False, **options) as stream:
        return [sample.key for sample in stream]


def shuffled(seed: int, count: int) -> list[str]:
    order = Permutation(seed, count)
    return [f"{order(place):06}" for place in range(count)]


def contents(report: Any) -> dict[str, bytes]:
    return {Path(url).name: Path(url).read_bytes() for url in report.outputs}
