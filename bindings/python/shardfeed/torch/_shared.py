"""Tensors on their way from a DataLoader's worker to the main process, in memory that both keep.

PyTorch gives each tensor shared memory of its own, which the system clears page by page, the main
process maps, and both throw away after one batch. Here a worker has memory that is used again, and
that the main process maps once: that of _shared_memory.py, whose descriptor is sent along with the
first tensor in it.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import threading
import uuid
import weakref
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import TYPE_CHECKING, Any

import torch
from torch.multiprocessing.reductions import reduce_tensor

from .._integration import HEADER, RECEIVER, Memory, Pool

if TYPE_CHECKING:
    from collections.abc import Callable

    Reduced = tuple[Callable[..., Any], tuple[Any, ...]]

# Smaller tensors go through the pipe, which is faster than shared memory.
_SMALL = 4096


def _view_of(memory: Any, begin: int, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """The tensor in a buffer of Python's protocol, which it keeps."""
    count = 1
    for length in shape:
        count *= length
    return torch.frombuffer(memory, dtype=dtype, count=count, offset=begin).view(shape)


def _bytes_of(tensor: torch.Tensor) -> bytes:
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


# ---- In a worker -------------------------------------------------------------------------------


class _Sender:
    """What a worker sends tensors in. Any threads."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._key = f"{self.pid} {uuid.uuid4().hex}"
        self._lock = threading.Lock()
        self._pool = Pool()

    def send(self, tensor: torch.Tensor) -> Reduced:
        """The tensor in shared memory, as the main process makes it again."""
        shape = tuple(tensor.shape)
        with self._lock:
            memory = self._pool.take(tensor.numel() * tensor.element_size(), RECEIVER)
            _view_of(memory.map, HEADER, tensor.dtype, shape).copy_(tensor)
            unsent, shared = self._pool.unsent(memory.number), None
            if unsent is not None:
                shared = DupFd(unsent)
                os.close(unsent)
            dropped = self._pool.dropped()
        return _received, (self._key, shared, dropped, memory.number, tensor.dtype, shape)


_sender: _Sender | None = None  # of this process


def _reduced(tensor: torch.Tensor) -> Reduced:
    """How a queue of multiprocessing sends a tensor."""
    global _sender
    # PyTorch sends a conjugate without what makes it one.
    tensor = tensor.resolve_conj().resolve_neg()
    if (
        tensor.requires_grad
        or tensor.device.type != "cpu"
        or tensor.layout is not torch.strided
        or tensor.is_quantized
        or tensor.is_nested
        or tensor.is_shared()  # the sender wants one memory for both
        or not tensor.is_contiguous()  # whose strides may matter
    ):
        return reduce_tensor(tensor)  # type: ignore[no-any-return]
    if tensor.numel() * tensor.element_size() <= _SMALL:
        return _small, (_bytes_of(tensor), tensor.dtype, tuple(tensor.shape))
    if _sender is None or _sender.pid != os.getpid():
        _sender = _Sender()
    return _sender.send(tensor)


def send_tensors_in_buffers() -> None:
    """For a worker: its tensors go to the main process in buffers that are used again."""
    ForkingPickler.register(torch.Tensor, _reduced)


# ---- In the main process -----------------------------------------------------------------------

# The memory of each worker.
_memories: dict[str, dict[int, Memory]] = {}


def _small(data: bytes, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    return _view_of(bytearray(data), 0, dtype, shape) if data else torch.empty(shape, dtype=dtype)


def _received(
    sender: str,
    shared: Any,
    dropped: list[int],
    number: int,
    dtype: torch.dtype,
    shape: tuple[int, ...],
) -> torch.Tensor:
    if shared is not None:
        descriptor = shared.detach()
        try:
            memory = Memory(descriptor, number, RECEIVER)
        finally:
            os.close(descriptor)
        if sender not in _memories:
            _forget_with_worker(sender)
        _memories.setdefault(sender, {})[number] = memory
    memories = _memories.get(sender, {})
    for old in dropped:
        memories.pop(old, None)
    if number not in memories:
        raise RuntimeError(
            "a tensor of a DataLoader's worker arrived in another process than the ones before it; "
            "help: send it as NumPy array, or with tensor.share_memory_()"
        )
    # All tensors that use the memory hold this, also those that are made from the first one.
    held = memories[number].hold()
    weakref.finalize(held, _forget_if_ended, sender).atexit = False
    return _view_of(held, 0, dtype, shape)


def _forget_with_worker(sender: str) -> None:
    """Unmaps the memory of a worker when its DataLoader forgets the process."""
    for other in list(_memories):
        _forget_if_ended(other)
    for process in multiprocessing.active_children():
        if process.pid == int(sender.split()[0]):
            weakref.finalize(process, _memories.pop, sender, None).atexit = False


def _forget_if_ended(sender: str) -> None:
    """Unmaps the memory of a worker that ended, but for that whose tensors are in use."""
    try:
        os.kill(int(sender.split()[0]), 0)
    except ProcessLookupError:
        _memories.pop(sender, None)
    except PermissionError:
        pass  # another user's process has its number now
