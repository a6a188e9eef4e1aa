"""What the library has to say: to the logging module, or to a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._native import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import TypeAlias

    from ._native import _CData

    Log: TypeAlias = Callable[[int, str], object]

# The numbers of the logging module.
_LEVELS = {lib.SHF_LOG_ERROR: 40, lib.SHF_LOG_WARNING: 30, lib.SHF_LOG_INFO: 20}


def log_to_logging(level: int, message: str) -> None:
    """Passes a message to the logger "shardfeed" of the logging module."""
    import logging  # takes as long to import as all of this package

    logging.getLogger("shardfeed").log(level, "%s", message)


class LogTarget:
    """What the library's log function gets back as its context."""

    __slots__ = ("exception", "log")

    def __init__(self, log: Log) -> None:
        self.log = log
        self.exception: BaseException | None = None

    def raise_exception(self) -> None:
        """Raises what the log function raised: an exception cannot pass through C."""
        exception, self.exception = self.exception, None
        if exception is not None:
            raise exception


@ffi.def_extern()
def python_log(ctx: _CData, level: int, message: _CData) -> None:
    target: LogTarget = ffi.from_handle(ctx)
    try:
        text = ffi.string(message).decode("utf-8", "backslashreplace")
        target.log(_LEVELS.get(level, 20), text)
    except BaseException as exception:
        target.exception = exception
