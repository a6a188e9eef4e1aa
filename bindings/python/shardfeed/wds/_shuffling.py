"""The buffer that mixes a stream: the draws and their order are those of the contract."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING, Any

from .utils import PipelineStage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def pick(buf: list[Any], rng: random.Random) -> Any:
    """Takes a random item out of a list; the last one gets its place."""
    k = rng.randint(0, len(buf) - 1)
    sample = buf[k]
    buf[k] = buf[-1]
    buf.pop()
    return sample


def fresh_rng() -> random.Random:
    """A generator that differs in every process and at every time."""
    return random.Random(int((os.getpid() + time.time()) * 1e9))


def _shuffle(
    data: Iterable[Any],
    bufsize: int = 1000,
    initial: int = 100,
    rng: random.Random | None = None,
    seed: Any = None,
    handler: Any = None,
) -> Iterator[Any]:
    """Items in a random order, out of a buffer that grows to `bufsize`.

    Nothing comes before `initial` items were read. rng or seed say which order it is.
    """
    data = iter(data)
    if seed is not None:
        assert rng is None, "shuffle: give rng or seed, not both"
        rng = random.Random(seed)
    elif rng is None:
        rng = fresh_rng()
    initial = min(initial, bufsize)
    buf: list[Any] = []
    for sample in data:
        buf.append(sample)
        if len(buf) < bufsize:
            for more in data:
                buf.append(more)
                break
        if len(buf) >= initial:
            yield pick(buf, rng)
            # A full buffer has lost one item here, and gets one before each draw.
            if len(buf) + 1 == bufsize and type(rng) is random.Random:
                yield from _steady(data, buf, rng)
                break
    while buf:
        yield pick(buf, rng)


def _steady(data: Iterator[Any], buf: list[Any], rng: random.Random) -> Iterator[Any]:
    """One in, one out: what pick() does with a buffer that has one place left, written out.

    randint(0, n - 1) of the standard library draws as many bits as n has until they are below n.
    """
    draw = rng.getrandbits
    size = len(buf) + 1
    last = size - 1
    bits = size.bit_length()
    for sample in data:
        k = draw(bits)
        while k >= size:
            k = draw(bits)
        if k == last:
            yield sample
        else:
            chosen = buf[k]
            buf[k] = sample
            yield chosen


class detshuffle(PipelineStage):  # noqa: N801
    """A shuffle whose order is that of the seed and of how often it ran before."""

    def __init__(
        self, bufsize: int = 1000, initial: int = 100, seed: int = 0, epoch: int = -1
    ) -> None:
        self.bufsize = bufsize
        self.initial = initial
        self.seed = seed
        self.epoch = epoch

    def run(self, src: Iterable[Any]) -> Iterator[Any]:
        self.epoch += 1
        rng = random.Random(self.seed + self.epoch)
        return _shuffle(src, self.bufsize, self.initial, rng)
