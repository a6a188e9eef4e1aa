"""What happens after an exception in a stage: functions of the exception, True to go on."""

from __future__ import annotations

import time
import warnings
from typing import NoReturn

# How long a warning holds a program that meets many faults.
_PAUSE = 0.5


def reraise_exception(exn: BaseException) -> NoReturn:
    """Raises the exception again: the first fault ends the program."""
    raise exn


def ignore_and_continue(exn: BaseException) -> bool:
    """Leaves out what failed, in silence."""
    return True


def warn_and_continue(exn: BaseException) -> bool:
    """Leaves out what failed, with a warning and a pause of half a second."""
    _warn(exn)
    return True


def ignore_and_stop(exn: BaseException) -> bool:
    """Ends the stage, in silence."""
    return False


def warn_and_stop(exn: BaseException) -> bool:
    """Ends the stage, with a warning and a pause of half a second."""
    _warn(exn)
    return False


def _warn(exn: BaseException) -> None:
    warnings.warn(repr(exn), stacklevel=3)
    time.sleep(_PAUSE)
