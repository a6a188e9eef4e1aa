"""Tensors on their way from a DataLoader's worker to the main process, in memory that both keep.

PyTorch gives each tensor shared memory of its own, which the system clears page by page, the main
process maps, and both throw away after one batch. Here a worker has buffers that are used again.
The main process maps each of them once. The first byte of a buffer says whether it is in use: the
worker sets it when it sends a tensor, and the main process clears it when all that uses the memory
is gone. PyTorch itself makes the memory, sends its descriptor along with the first tensor in it,
and unmaps it.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import threading
import uuid
import weakref
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

import torch
from torch.multiprocessing.reductions import reduce_tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    Reduced = tuple[Callable[..., Any], tuple[Any, ...]]

# Bytes before a tensor, which is aligned as those of batches. The first: 0 free, 1 in use.
_HEADER = 64
# Buffers that no tensor fits into: more are given back, or more bytes than these and those in use.
_MOST_FREE = 32
_LITTLE = 64 << 20
# Smaller tensors go through the pipe, which is faster than a buffer.
_SMALL = 4096


def _flag_of(memory: torch.Tensor) -> ctypes.c_uint8:
    return ctypes.c_uint8.from_address(memory.data_ptr())


def _view_of(memory: Any, begin: int, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """The tensor in a buffer of Python's protocol, which it keeps."""
    count = 1
    for length in shape:
        count *= length
    return torch.frombuffer(memory, dtype=dtype, count=count, offset=begin).view(shape)


def _bytes_of(tensor: torch.Tensor) -> bytes:
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


# ---- In a worker -------------------------------------------------------------------------------


class _Buffer:
    """One piece of shared memory, in the worker that made it."""

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.size = size
        self.memory = torch.zeros(_HEADER + size, dtype=torch.uint8).share_memory_()
        self.in_use = _flag_of(self.memory)
        self.is_known = False  # to the main process

    def fill(self, tensor: torch.Tensor) -> None:
        self.in_use.value = 1
        whole = self.memory[_HEADER : _HEADER + tensor.numel() * tensor.element_size()]
        whole.view(tensor.dtype).view(tensor.shape).copy_(tensor)


class _Pool:
    """The buffers of a worker. Any threads."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._key = f"{self.pid} {uuid.uuid4().hex}"
        self._lock = threading.Lock()
        self._buffers: list[_Buffer] = []
        self._made = 0
        self._dropped: list[int] = []  # which the main process still has

    def send(self, tensor: torch.Tensor) -> Reduced:
        """The tensor in a buffer, as the main process makes it again."""
        with self._lock:
            buffer = self._take(tensor.numel() * tensor.element_size())
            buffer.fill(tensor)
            memory = None if buffer.is_known else buffer.memory
            buffer.is_known = True
            dropped, self._dropped = self._dropped, []
        place = buffer.number, tensor.dtype, tuple(tensor.shape)
        return _received, (self._key, memory, dropped, *place)

    def _take(self, size: int) -> _Buffer:
        free = [buffer for buffer in self._buffers if not buffer.in_use.value]
        # A tensor of labels does not take the place of images.
        fitting = [buffer for buffer in free if size <= buffer.size <= 2 * size]
        if fitting:
            return min(fitting, key=lambda buffer: buffer.size)
        # Tensors have other sizes now.
        used = sum(buffer.size for buffer in self._buffers if buffer.in_use.value)
        if len(free) >= _MOST_FREE or sum(buffer.size for buffer in free) > max(used, _LITTLE):
            for buffer in free:
                self._buffers.remove(buffer)
                self._dropped += [buffer.number] if buffer.is_known else []
        self._made += 1
        made = _Buffer(self._made, size + size // 8)
        self._buffers.append(made)
        return made


_pool: _Pool | None = None  # of this process


def _reduced(tensor: torch.Tensor) -> Reduced:
    """How a queue of multiprocessing sends a tensor."""
    global _pool
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
    if _pool is None or _pool.pid != os.getpid():
        _pool = _Pool()
    return _pool.send(tensor)


def send_tensors_in_buffers() -> None:
    """For a worker: its tensors go to the main process in buffers that are used again."""
    ForkingPickler.register(torch.Tensor, _reduced)


# ---- In the main process -----------------------------------------------------------------------

# The memory of the buffers of each worker.
_memories: dict[str, dict[int, torch.Tensor]] = {}


def _small(data: bytes, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    return _view_of(bytearray(data), 0, dtype, shape) if data else torch.empty(shape, dtype=dtype)


def _received(
    pool: str,
    memory: torch.Tensor | None,
    dropped: list[int],
    number: int,
    dtype: torch.dtype,
    shape: tuple[int, ...],
) -> torch.Tensor:
    if memory is not None:
        if pool not in _memories:
            _forget_with_worker(pool)
        _memories.setdefault(pool, {})[number] = memory
    buffers = _memories.get(pool, {})
    for old in dropped:
        buffers.pop(old, None)
    if number not in buffers:
        raise RuntimeError(
            "a tensor of a DataLoader's worker arrived in another process than the ones before it; "
            "help: send it as NumPy array, or with tensor.share_memory_()"
        )
    memory = buffers[number]
    # All tensors that use the memory hold this, also those that are made from the first one.
    held = (ctypes.c_uint8 * (memory.numel() - _HEADER)).from_address(memory.data_ptr() + _HEADER)
    weakref.finalize(held, _release, memory, pool, _forks).atexit = False
    return _view_of(held, 0, dtype, shape)


def _release(memory: torch.Tensor, pool: str, forks: int) -> None:
    # A process that was forked meanwhile may have the tensor too: its memory is not used again.
    if forks == _forks:
        _flag_of(memory).value = 0
    _forget_if_ended(pool)


_forks = 0  # of this process and of those that it comes from


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(before=_count_fork)


def _forget_with_worker(pool: str) -> None:
    """Unmaps the buffers of a worker when its DataLoader forgets the process."""
    for other in list(_memories):
        _forget_if_ended(other)
    for process in multiprocessing.active_children():
        if process.pid == int(pool.split()[0]):
            weakref.finalize(process, _memories.pop, pool, None).atexit = False


def _forget_if_ended(pool: str) -> None:
    """Unmaps the buffers of a worker that ended, but for those whose tensors are in use."""
    try:
        os.kill(int(pool.split()[0]), 0)
    except ProcessLookupError:
        _memories.pop(pool, None)
    except PermissionError:
        pass  # another user's process has its number now
