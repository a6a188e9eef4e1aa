"""Batches on their way to a device: through pinned memory, beside the program's own work there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .. import Ragged

if TYPE_CHECKING:
    from collections.abc import Callable


class Transfers(ABC):
    """What copies to one device, in a sequence of its own.

    Copies are done one after another, at any time after they were begun. A mark is passed when all
    copies that were begun before it are done.
    """

    @abstractmethod
    def pinned(self, size: int) -> torch.Tensor:
        """So many bytes, from which the device copies by itself: a tensor of uint8."""

    @abstractmethod
    def begin(self, source: torch.Tensor) -> torch.Tensor:
        """Begins to copy a tensor in pinned memory, and gives what it becomes on the device.

        The pinned memory must not be changed until a mark that follows is passed, and the tensor on
        the device not be used before it was handed over.
        """

    @abstractmethod
    def mark(self) -> Any:
        """A mark behind the copies that were begun."""

    @abstractmethod
    def wait(self, mark: Any) -> None:
        """Waits until a mark is passed."""

    @abstractmethod
    def hand_over(self, mark: Any, tensors: list[torch.Tensor]) -> None:
        """Gives tensors to the program: what it does with the device from now on waits for the
        mark. Their memory is not used again before that work is done, when they are gone.
        """


class CudaTransfers(Transfers):
    """Copies on a CUDA stream of their own, so that the engine for copies does them meanwhile.

    What they become lies in memory of that stream, which the allocator takes back as soon as a
    tensor is gone, unless it knows what other streams do with it: hence record_stream().
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)

    def pinned(self, size: int) -> torch.Tensor:
        return torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=True)

    def begin(self, source: torch.Tensor) -> torch.Tensor:
        with torch.cuda.stream(self._stream):
            return source.to(self._device, non_blocking=True)

    def mark(self) -> torch.cuda.Event:
        return self._stream.record_event()

    def wait(self, mark: torch.cuda.Event) -> None:
        mark.synchronize()

    def hand_over(self, mark: torch.cuda.Event, tensors: list[torch.Tensor]) -> None:
        current = torch.cuda.current_stream(self._device)
        current.wait_event(mark)
        for tensor in tensors:
            tensor.record_stream(current)


# By the type of a device. Tensors are moved to all others by Tensor.to(), when they are asked for.
TRANSFERS: dict[str, Callable[[torch.device], Transfers]] = {"cuda": CudaTransfers}


def numbered(device: torch.device) -> torch.device:
    """The device with its number: "cuda" is the current one of the program."""
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


class Moved(NamedTuple):
    """A value whose tensors are on their way."""

    value: Any
    tensors: list[torch.Tensor]
    mark: Any
    transfers: Transfers

    def hand_over(self) -> Any:
        """The value, for the program to use on its current stream."""
        self.transfers.hand_over(self.mark, self.tensors)
        return self.value


_ALIGNMENT = 64
# One piece of pinned memory is filled while another one is copied.
_PIECES = 2


class Mover:
    """Moves values to one device. Pinned memory is used again when it was copied."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._transfers = TRANSFERS[device.type](device)
        # With a mark behind its copies; the one that was used first.
        self._pieces: deque[tuple[torch.Tensor, Any]] = deque()

    def begin(self, value: Any) -> Moved:
        """Begins to move the tensors of a value: of dicts, lists, tuples and Ragged in each other.

        When this returns, the value itself may be changed.
        """
        # What is made here is used later, perhaps outside of this inference_mode().
        with torch.inference_mode(False), torch.no_grad():
            size = 0

            def measure(tensor: torch.Tensor) -> torch.Tensor:
                nonlocal size
                size += _room(tensor) if _goes_through_pinned(tensor) else 0
                return tensor

            map_tensors(value, measure)
            piece = self._take(size)
            tensors: list[torch.Tensor] = []
            used = 0

            def move(tensor: torch.Tensor) -> torch.Tensor:
                nonlocal used
                if not _goes_through_pinned(tensor):
                    return tensor.to(self.device)
                bytes_of_tensor = piece[used : used + tensor.numel() * tensor.element_size()]
                used += _room(tensor)
                pinned = bytes_of_tensor.view(tensor.dtype)
                pinned = pinned.as_strided(tensor.shape, _stride_of_copy(tensor))
                pinned.copy_(tensor)
                tensors.append(self._transfers.begin(pinned))
                return tensors[-1]

            moved = map_tensors(value, move)
            mark = self._transfers.mark()
            self._pieces.append((piece, mark))
            return Moved(moved, tensors, mark, self._transfers)

    def _take(self, size: int) -> torch.Tensor:
        """So many bytes of pinned memory or more, from which nothing is copied any more."""
        if len(self._pieces) == _PIECES:
            piece, mark = self._pieces.popleft()
            self._transfers.wait(mark)
            if len(piece) >= size:
                return piece
        return self._transfers.pinned(size + size // 8)


def _room(tensor: torch.Tensor) -> int:
    size: int = tensor.numel() * tensor.element_size()
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _goes_through_pinned(tensor: torch.Tensor) -> bool:
    """Whether a tensor is plain memory. What is on a device, or has a class or gradient of its own,
    is for PyTorch to move.
    """
    return (
        type(tensor) is torch.Tensor
        and tensor.device.type == "cpu"
        and tensor.layout == torch.strided
        and not tensor.requires_grad
        and not tensor.is_quantized
        and tensor.numel() > 0
    )


def _stride_of_copy(tensor: torch.Tensor) -> tuple[int, ...]:
    """That of the tensor, with colours last or first; else of one row after another."""
    for order in (torch.contiguous_format, torch.channels_last, torch.channels_last_3d):
        if tensor.is_contiguous(memory_format=order):
            return tuple(tensor.stride())
    return tuple(torch.empty(tensor.shape, device="meta").stride())


def map_tensors(value: Any, function: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The value with what a function makes of its tensors."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, Ragged):
        parts = value.values, value.offsets, value.shapes
        return Ragged(*(map_tensors(part, function) for part in parts))
    kind = type(value)
    if kind is dict:
        return {name: map_tensors(each, function) for name, each in value.items()}
    if kind in (list, tuple):
        return kind(map_tensors(each, function) for each in value)
    if kind.__bases__ == (tuple,) and hasattr(value, "_fields"):  # made by NamedTuple
        return kind(*(map_tensors(each, function) for each in value))
    return value
