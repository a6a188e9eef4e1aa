"""Signals and time while the library opens something: a call that Python cannot interrupt."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ._native import ffi, lib

if TYPE_CHECKING:
    from ._native import _CData


class Signals:
    """Lets a call that opens something run Python's signal handlers about every 50 ms.

    native: the options of the call. This object must live as long as the call.
    timeout: seconds until `late` is set and the call ends; 0: none.
    """

    def __init__(self, native: _CData, timeout: float = 0.0) -> None:
        self._raised: list[BaseException] = []
        self._native = ffi.new("python_signals *")
        self._native.raised = ffi.cast("void *", id(self._raised))
        self._native.deadline = time.monotonic() + timeout if timeout else 0.0
        check = ffi.addressof(lib, "python_check_signals")
        lib.shf_options_set_interrupt(native, check, self._native)

    @property
    def late(self) -> bool:
        """Whether the call was ended by the timeout."""
        return bool(self._native.late)

    def raise_exception(self) -> None:
        """Raises what a signal handler raised: an exception cannot pass through C."""
        if self._raised:
            raise self._raised.pop()
