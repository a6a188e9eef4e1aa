"""Capsules, in which packages that know nothing of each other pass on memory."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from ._native import ffi, lib

if TYPE_CHECKING:
    from ._native import _CData

# A prototype of our own: the attributes of ctypes.pythonapi belong to the whole process.
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)

# A capsule points to its name, so names live as long as this module. Destructors are written in C:
# one in Python could run when the interpreter is half gone.
_DROPS = {
    b"dltensor": "python_drop_dlpack",
    b"dltensor_versioned": "python_drop_dlpack_versioned",
    b"arrow_array": "python_drop_arrow_array",
    b"arrow_schema": "python_drop_arrow_schema",
}
_NAMES = {name: name for name in _DROPS}
_ADDRESSES = {
    name: int(ffi.cast("uintptr_t", ffi.addressof(lib, function)))
    for name, function in _DROPS.items()
}


def capsule(name: bytes, pointer: _CData) -> object:
    """A capsule that releases what `pointer` leads to, unless a consumer takes it."""
    address = int(ffi.cast("uintptr_t", pointer))
    return _new(address, _NAMES[name], _ADDRESSES[name])
