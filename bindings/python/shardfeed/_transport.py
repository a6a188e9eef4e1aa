"""Objects on their way between two processes, whose arrays lie in shared memory that both keep."""

from __future__ import annotations

import io
import os
import pickle
import sys
from multiprocessing import reduction
from typing import TYPE_CHECKING, Any

from ._shared_memory import HEADER, MAKER, RECEIVER, Memory, Pool

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_ALIGNMENT = 64
# What is smaller goes through the pipe, which is faster.
_SMALL = 4096
# A message must fit into the pipe, so that neither process waits for the other one to read.
_MOST_IN_PIPE = 16 << 10


class _Pickler(pickle.Pickler):
    """One that leaves the numbers of arrays and tensors to what sends the rest."""

    def reducer_override(self, thing: Any) -> Any:
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if torch is not None and isinstance(thing, torch.Tensor):
            return _reduced_tensor(thing)
        if numpy is not None and type(thing) is numpy.ndarray and not thing.dtype.hasobject:
            flags = thing.flags
            if not (flags.c_contiguous or flags.f_contiguous):
                return thing.copy().__reduce_ex__(5)
        return NotImplemented


def _reduced_tensor(tensor: Any) -> Any:
    import torch

    if (
        type(tensor) is not torch.Tensor
        or tensor.requires_grad
        or tensor.device.type != "cpu"
        or tensor.layout is not torch.strided
        or tensor.is_quantized
        or tensor.is_conj()
        or tensor.is_neg()
        or tensor.numel() == 0
    ):
        return NotImplemented
    flat = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
    return _tensor, (pickle.PickleBuffer(flat), tensor.dtype, tuple(tensor.shape))


def _tensor(memory: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    import torch

    return torch.frombuffer(memory, dtype=dtype).reshape(shape)


def _address(view: memoryview) -> int:
    import numpy

    return int(numpy.frombuffer(view, numpy.uint8).__array_interface__["data"][0])


class Link:
    """One end of a connection between two processes. One thread at a time."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._own = Pool()
        self._theirs: dict[int, Memory] = {}

    def allocate(self, size: int) -> Any:
        """Memory for an array that is sent without being copied."""
        return _bytes_of(self._own.take(size, MAKER))[:size]

    def send(self, thing: Any) -> None:
        """Sends an object. What lies in memory of this connection is not copied."""
        views: list[memoryview] = []

        def collect(buffer: pickle.PickleBuffer) -> bool:
            view = buffer.raw()
            if view.nbytes < _SMALL:
                return True  # with the rest
            views.append(view)
            return False

        file = io.BytesIO()
        _Pickler(file, protocol=5, buffer_callback=collect).dump(thing)
        pickled = file.getvalue()
        if len(pickled) > _MOST_IN_PIPE:
            views.append(memoryview(pickled))
            pickled = b""
        # For each: whether this side made the memory, its number, where it begins, and its size.
        places: list[tuple[bool, int, int, int] | None] = [self._found(view) for view in views]
        size = 0
        for view, place in zip(views, places):
            size += 0 if place is not None else -(-view.nbytes // _ALIGNMENT) * _ALIGNMENT
        if size:
            memory, begin = self._own.take(size, RECEIVER), 0
            for number, view in enumerate(views):
                if places[number] is None:
                    _copy(view, memory, begin)
                    places[number] = True, memory.number, begin, view.nbytes
                    begin += -(-view.nbytes // _ALIGNMENT) * _ALIGNMENT
        sent = {place[1] for place in places if place is not None and place[0]}
        unsent = {number: self._own.unsent(number) for number in sorted(sent)}
        new = {number: found for number, found in unsent.items() if found is not None}
        try:
            read_only = [view.readonly for view in views]
            message = pickled, places, read_only, list(new), self._own.dropped()
            self.connection.send_bytes(pickle.dumps(message, protocol=5))
            for descriptor in new.values():
                reduction.send_handle(self.connection, descriptor, None)
        finally:
            for descriptor in new.values():
                os.close(descriptor)

    def _found(self, view: memoryview) -> tuple[bool, int, int, int] | None:
        """Where a buffer lies, if that is in memory of this connection."""
        address = _address(view)
        for is_own, pieces in (
            (False, list(self._theirs.values())),
            (True, self._own.pieces()),
        ):
            for memory in pieces:
                begin = address - memory.address()
                if 0 <= begin < memory.size:
                    memory.mark(RECEIVER if is_own else MAKER)
                    return is_own, memory.number, begin, view.nbytes
        return None

    def receive(self) -> Any:
        """The next object. EOFError and OSError when the other process is gone."""
        pickled, places, read_only, new, dropped = pickle.loads(self.connection.recv_bytes())
        for number in new:
            try:
                descriptor = reduction.recv_handle(self.connection)
            except RuntimeError as error:  # the other process ended inside of a message
                raise EOFError from error
            try:
                self._theirs[number] = Memory(descriptor, number, RECEIVER)
            finally:
                os.close(descriptor)
        held: dict[tuple[bool, int], memoryview] = {}
        views = []
        for (is_theirs, number, begin, size), is_read_only in zip(places, read_only):
            if (is_theirs, number) not in held:
                memory = self._theirs[number] if is_theirs else self._own[number]
                held[is_theirs, number] = _bytes_of(memory)
            view = held[is_theirs, number][begin : begin + size]
            views.append(view.toreadonly() if is_read_only else view)
        for number in dropped:
            self._theirs.pop(number, None)
        return pickle.loads(pickled or views.pop(), buffers=views)

    def close(self) -> None:
        """What was received stays valid."""
        self.connection.close()


def _bytes_of(memory: Memory) -> memoryview:
    import numpy

    # Not the view of ctypes itself, whose format others do not know.
    return numpy.frombuffer(memory.hold(), numpy.uint8).data


def _copy(view: memoryview, memory: Memory, begin: int) -> None:
    import numpy  # which copies without the lock of the interpreter

    to = numpy.frombuffer(memory.map, numpy.uint8, view.nbytes, HEADER + begin)
    to[:] = numpy.frombuffer(view, numpy.uint8)
