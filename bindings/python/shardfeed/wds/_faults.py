"""Errors of the library as programs that were written for tarfile expect them."""

from __future__ import annotations

from typing import Any

from .. import _errors
from .._errors import Error
from .._urls import redacted

# What is wrong with the bytes of an archive, and not with their way here.
_OF_ARCHIVES = (
    _errors.FormatError,
    _errors.TruncatedError,
    _errors.IntegrityError,
    _errors.LimitError,
    _errors.UnsupportedError,
    _errors.AmbiguousError,
)


_made: dict[type[Error], type[Error]] = {}


def _also_tarfile(kind: type[Error]) -> type[Error]:
    """The class of the error that is also a tarfile.ReadError."""
    made = _made.get(kind)
    if made is not None:
        return made
    import tarfile

    body = {"__module__": __name__, "__doc__": kind.__doc__, "__reduce__": _reduce}
    made = _made[kind] = type(kind.__name__, (kind, tarfile.ReadError), body)
    return made


def _reduce(error: Error) -> tuple[Any, ...]:
    return _again, (type(error).__mro__[1], error.message, error.offset, error.args[1:])


def _again(kind: type[Error], message: str, offset: int | None, more: tuple[Any, ...]) -> Error:
    error = _also_tarfile(kind)(message, offset=offset)
    error.args = (message, *more)
    return error


def for_handler(error: Exception, url: str) -> Exception:
    """What a handler is given: the error, with the URL of the shard, without secrets, beside it."""
    url = redacted(url)
    if isinstance(error, _OF_ARCHIVES):
        return _again(type(error), error.message, error.offset, (url,))
    if isinstance(error, Error):
        error.args = (*error.args, url)
    return error
