"""Functions of the bytes of a field, by its suffix."""

from __future__ import annotations

import ast
import io
import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from . import utils

if TYPE_CHECKING:
    from collections.abc import Callable

_Order = Literal["C", "F"]
_MOST_HEADERS = 256


class Layout(NamedTuple):
    """Of an .npy file with a header as NumPy writes it: the header, and what it says."""

    header: bytes
    dtype: Any
    order: _Order
    shape: tuple[int, ...]
    size: int  # in bytes, of the data after the header


_layouts: dict[bytes, Layout] = {}


def npy_loads(data: bytes) -> Any:
    """The array of an .npy file; nothing is unpickled."""
    import numpy

    layout = npy_layout(data)
    if layout is None:
        return numpy.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    header, dtype, order, shape, size = layout
    first = len(header)
    memory = bytearray(memoryview(data)[first : first + size])
    return numpy.ndarray(shape, dtype, memory, order=order)


def npy_layout(data: bytes) -> Layout | None:
    """The layout of an .npy file that npy_loads() can cut out; None for what NumPy has to read."""
    # The header of version 1 is a text that most arrays of a data set share.
    if data[:8] != b"\x93NUMPY\x01\x00" or len(data) < 10:
        return None
    end = 10 + data[8] + 256 * data[9]
    header = data[:end]
    layout = _layouts.get(header) or _read_header(header)
    if layout is None or len(data) - end < layout.size:
        return None
    return layout


def _read_header(header: bytes) -> Layout | None:
    """What a header says, if it is as NumPy writes it."""
    import numpy

    try:
        found = ast.literal_eval(header[10:].decode("latin1"))
        dtype = numpy.dtype(found["descr"])
        shape = found["shape"]
        order: _Order = "F" if found["fortran_order"] is True else "C"
        plain = (
            set(found) == {"descr", "shape", "fortran_order"}
            and isinstance(found["descr"], str)
            and isinstance(found["fortran_order"], bool)
            and isinstance(shape, tuple)
            and all(type(n) is int and n >= 0 for n in shape)
            and dtype.kind in "biufcSU"
            and dtype.itemsize > 0
        )
    except Exception:  # NumPy says what is wrong
        return None
    if not plain:
        return None
    size = dtype.itemsize
    for n in shape:
        size *= n
    if size == 0:
        return None
    if len(_layouts) >= _MOST_HEADERS:
        _layouts.clear()
    layout = _layouts[header] = Layout(header, dtype, order, shape, size)
    return layout


def npz_loads(data: bytes) -> dict[str, Any]:
    """The arrays of an .npz file; nothing is unpickled."""
    import numpy

    with numpy.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return dict(arrays)


def _refuse(what: str) -> None:
    if utils.enforce_security:
        raise ValueError(
            f"{what} is not allowed for security reasons when enforce_security is set."
        )


def unpickle_loads(data: bytes) -> Any:
    """What was pickled. It can run any program that the shard brings: see enforce_security."""
    import pickle

    _refuse("Unpickling")
    return pickle.loads(data)


def torch_loads(data: bytes) -> Any:
    """What torch.save() wrote, on the CPU."""
    _refuse("torch.loads")
    import torch

    from . import autodecode

    return torch.load(
        io.BytesIO(data), map_location="cpu", weights_only=autodecode.pytorch_weights_only
    )


def tenbin_loads(data: bytes) -> Any:
    """The arrays of a tenbin file."""
    from . import tenbin

    return tenbin.decode_buffer(data)


def msgpack_loads(data: bytes) -> Any:
    """The object of a MessagePack file."""
    import msgpack

    return msgpack.unpackb(data)


def cbor_loads(data: bytes) -> Any:
    """The object of a CBOR file."""
    import cbor  # type: ignore[import-not-found]

    return cbor.loads(data)


def text_loads(data: bytes) -> str:
    """UTF-8."""
    return data.decode("utf-8")


decoders: dict[str, Callable[[bytes], Any]] = {
    **dict.fromkeys(("txt", "text", "transcript"), text_loads),
    **dict.fromkeys(("cls", "cls2", "index", "inx", "id"), int),
    **dict.fromkeys(("json", "jsn"), json.loads),
    **dict.fromkeys(("pkl", "pickle", "pyd"), unpickle_loads),
    "pth": torch_loads,
    **dict.fromkeys(("ten", "tb"), tenbin_loads),
    **dict.fromkeys(("mp", "msg"), msgpack_loads),
    "npy": npy_loads,
    "npz": npz_loads,
    "cbor": cbor_loads,
}
