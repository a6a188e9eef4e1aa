"""A device for the tests of batches that are moved ahead, which does everything late.

Its memory is ordinary memory. It keeps the contract of shardfeed.torch._device.Transfers to the
letter: a copy is done when something waits for it and not before, or at random. What is used too
early, or used again too early, shows as POISON or as other numbers.
"""

from __future__ import annotations

import random
from typing import Any

import torch
from shardfeed.torch._device import Transfers

POISON = 0xA5


class LateDevice(Transfers):
    """done: when a copy is done of which nobody waits for the end: never, "at once" or "random"."""

    def __init__(self, done: str = "") -> None:
        self.log: list[tuple[str, int]] = []  # what was asked for, with a number
        self.pieces: list[torch.Tensor] = []  # all pinned memory
        self.handed_over: set[int] = set()  # addresses, as of record_stream()
        self.stop_at = 0  # the copy that Ctrl-C comes with
        self._copies: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._done = 0
        self._when = done
        self._random = random.Random(7)

    def pinned(self, size: int) -> torch.Tensor:
        piece = torch.full((size,), POISON, dtype=torch.uint8)
        self.pieces.append(piece)
        self.log.append(("pinned", size))
        return piece

    def begin(self, source: torch.Tensor) -> torch.Tensor:
        start, size = source.data_ptr(), source.numel() * source.element_size()
        assert any(
            piece.data_ptr() <= start and start + size <= piece.data_ptr() + len(piece)
            for piece in self.pieces
        ), "not pinned"
        if len(self._copies) + 1 == self.stop_at:
            self.stop_at = 0
            raise KeyboardInterrupt
        made = torch.empty_strided(source.shape, source.stride(), dtype=source.dtype)
        _bytes(made).fill_(POISON)
        self._copies.append((source, made))
        self.log.append(("begin", len(self._copies)))
        if self._when == "at once" or (self._when == "random" and self._random.random() < 0.5):
            self._do(len(self._copies))
        return made

    def mark(self) -> int:
        return len(self._copies)

    def wait(self, mark: Any) -> None:
        self.log.append(("wait", mark))
        self._do(mark)

    def hand_over(self, mark: Any, tensors: list[torch.Tensor]) -> None:
        self.log.append(("hand over", mark))
        self._do(mark)  # what the program does, which waits on a real device, is done at once
        self.handed_over.update(tensor.data_ptr() for tensor in tensors)

    def _do(self, mark: int) -> None:
        while self._done < mark:
            source, made = self._copies[self._done]
            made.copy_(source)
            _bytes(source).fill_(POISON)  # nobody has to do with that any more
            self._done += 1


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of a tensor without gaps."""
    return tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)
