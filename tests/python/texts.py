"""Shards of texts and of their tokens, and a function that makes these."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
from batches import npy, rows_tar

WORDS = ["a", "shard", "of", "text", "déjà", "鯨", "", "words that are longer", "\n"]


def texts_of(shard: int, count: int = 30) -> list[str]:
    """Made-up documents; some are empty."""
    draws = random.Random(shard)
    return [" ".join(draws.choices(WORDS, k=draws.choice([0, 0, 1, 3, 9]))) for _ in range(count)]


def tokenize(texts: list[str]) -> list[list[int]]:
    """A token for each character: its number, and where it is in the text."""
    return [[ord(letter) * 1000 + at for at, letter in enumerate(text)] for text in texts]


def both_shards(folder: Path, count: int = 4) -> tuple[list[str], list[str]]:
    """Shards of texts, and under the same names those of their tokens."""
    urls: tuple[list[str], list[str]] = ([], [])
    for name in ("texts", "tokens"):
        (folder / name).mkdir()
    for shard in range(count):
        texts = texts_of(shard)
        rows: list[dict[str, Any]] = [{"txt": text.encode()} for text in texts]
        urls[0].append(rows_tar(folder / "texts" / f"{shard}.tar", rows))
        rows = [{"npy": npy(np.array(tokens, "i4"))} for tokens in tokenize(texts)]
        urls[1].append(rows_tar(folder / "tokens" / f"{shard}.tar", rows))
    return urls
