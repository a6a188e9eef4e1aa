"""Exceptions: one class per error class of the library, each also the built-in people catch."""

from __future__ import annotations

import builtins
import errno
import itertools
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from ._native import ffi, lib

if TYPE_CHECKING:
    from ._native import _CData

_NO_OFFSET = 0xFFFF_FFFF_FFFF_FFFF


class Error(Exception):
    """Base of all errors of this package.

    message: what went wrong: the shard (its URL without secrets), member, byte offset and cause,
    and after "help: " what to do.
    code, code_name: the class of the error, a negative number and its name ("TRUNCATED").
    offset: byte position in the (decompressed) shard, None when there is none.
    os_error: the number the operating system gave (errno), 0 when there is none.
    """

    code: int = lib.SHF_E_INTERNAL

    def __init__(self, message: str = "", *, offset: int | None = None, os_error: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.os_error = os_error

    @property
    def code_name(self) -> str:
        return ffi.string(lib.shf_error_name(self.code)).decode("ascii")

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.offset, self.os_error)


class _SystemError(Error, OSError):
    """What all errors that are also an OSError share: errno and strerror."""

    def __init__(self, message: str = "", *, offset: int | None = None, os_error: int = 0) -> None:
        super().__init__(message, offset=offset, os_error=os_error)
        self.errno = os_error or None
        self.strerror = message


def _rebuild(cls: type[Error], message: str, offset: int | None, os_error: int) -> Error:
    return cls(message, offset=offset, os_error=os_error)


class FormatError(Error, ValueError):
    """The bytes break the rules of the container or codec."""

    code = lib.SHF_E_FORMAT


class TruncatedError(Error, EOFError):
    """Input ended before its end was proven."""

    code = lib.SHF_E_TRUNCATED


class IntegrityError(Error, ValueError):
    """A checksum over data is wrong (that of a tar header is a FormatError)."""

    code = lib.SHF_E_INTEGRITY


class LimitError(Error, ValueError):
    """A bound set by an option was reached; the message names it."""

    code = lib.SHF_E_LIMIT


class UnsupportedError(Error, ValueError):
    """Valid, but not implemented or switched off."""

    code = lib.SHF_E_UNSUPPORTED


class AmbiguousError(Error, ValueError):
    """Conforming readers could see different contents."""

    code = lib.SHF_E_AMBIGUOUS


class ChangedError(_SystemError):
    """The file became another version during the read."""

    code = lib.SHF_E_CHANGED


class NetTransientError(_SystemError, ConnectionError):
    """The retry budget was spent on a fault that may pass."""

    code = lib.SHF_E_NET_TRANSIENT


class NetPermanentError(_SystemError):
    """The server's answer will not change."""

    code = lib.SHF_E_NET_PERMANENT


class ThrottledError(_SystemError):
    """The server asks for a longer pause than allowed."""

    code = lib.SHF_E_THROTTLED


class AuthError(_SystemError, PermissionError):
    """Credentials missing, refused or expired."""

    code = lib.SHF_E_AUTH


class TLSError(_SystemError):
    """Certificate or host name refused."""

    code = lib.SHF_E_TLS


class ReadError(_SystemError):
    """Operating-system error (class IO); errno says which."""

    code = lib.SHF_E_IO


class NotFoundError(ReadError, FileNotFoundError):
    """A ReadError because there is no such file."""


class AccessError(ReadError, PermissionError):
    """A ReadError because the file may not be read."""


class NoSpaceError(_SystemError):
    """Disk full or quota reached."""

    code = lib.SHF_E_NOSPACE


class NoMemoryError(Error, MemoryError):
    """An allocation failed."""

    code = lib.SHF_E_NOMEM


class CancelledError(Error, RuntimeError):
    """Stream.cancel() was called."""

    code = lib.SHF_E_CANCELLED


class TimeoutError(_SystemError, builtins.TimeoutError):
    """The time of `timeout` is over; the next call continues."""

    code = lib.SHF_E_TIMEOUT


class ChildError(_SystemError, ChildProcessError):
    """A child process failed."""

    code = lib.SHF_E_CHILD


class UsageError(Error, ValueError):
    """Wrong call, refused URL, bad option."""

    code = lib.SHF_E_USAGE


class TransformError(Error, RuntimeError):
    """A transform or tokenizer of the program failed: it raised, hung, died, or gave what cannot be
    stacked or packed.

    url: the shard of the sample, without secrets. key: that of the sample, or of the first one of a
    batch. __cause__: what the transform raised, whose cause is the traceback of the worker.
    """

    code = lib.SHF_E_USAGE

    def __init__(
        self,
        message: str = "",
        *,
        offset: int | None = None,
        os_error: int = 0,
        url: str = "",
        key: str = "",
    ) -> None:
        super().__init__(message, offset=offset, os_error=os_error)
        self.url = url
        self.key = key

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_transform_error, (self.message, self.url, self.key)


def _rebuild_transform_error(message: str, url: str, key: str) -> TransformError:
    return TransformError(message, url=url, key=key)


class NoMemberError(Error, KeyError):
    """There is no member, sample, field or column of that name."""

    code = lib.SHF_E_NOT_FOUND


class ForkedError(Error, RuntimeError):
    """The object belongs to the parent process."""

    code = lib.SHF_E_FORKED


class InternalError(Error, RuntimeError):
    """A bug in the library; please report the message."""

    code = lib.SHF_E_INTERNAL


_CLASSES: dict[int, type[Error]] = {
    cls.code: cls
    for cls in (
        FormatError,
        TruncatedError,
        IntegrityError,
        LimitError,
        UnsupportedError,
        AmbiguousError,
        ChangedError,
        NetTransientError,
        NetPermanentError,
        ThrottledError,
        AuthError,
        TLSError,
        ReadError,
        NoSpaceError,
        NoMemoryError,
        CancelledError,
        TimeoutError,
        ChildError,
        UsageError,
        NoMemberError,
        ForkedError,
        InternalError,
    )
}
_READ_CLASSES: dict[int, type[Error]] = {
    errno.ENOENT: NotFoundError,
    errno.ENOTDIR: NotFoundError,
    errno.EACCES: AccessError,
    errno.EPERM: AccessError,
}


# What openers raised last, by numbers that are no errno: the library passes them through as one.
_FIRST_FAILURE = 1 << 24
_failure_numbers = itertools.count(_FIRST_FAILURE)
_failures: deque[tuple[int, BaseException]] = deque(maxlen=64)


def keep_failure(exception: BaseException) -> int:
    """The number by which error_from() finds an exception that cannot pass through C."""
    number = getattr(exception, "errno", None)
    if number in (errno.EMFILE, errno.ENFILE):
        return int(number)  # for which readers wait
    number = next(_failure_numbers)
    _failures.append((number, exception))
    return number


class _SampleFailure(NamedTuple):
    """What a function of the program raised (None: it gave what is wrong), and for which sample."""

    cause: BaseException | None
    url: str
    key: str


# As many as threads may fail at once. Tracebacks keep what the frames of a program have.
_sample_failures: deque[tuple[int, _SampleFailure]] = deque(maxlen=64)


def keep_sample_failure(cause: BaseException | None, url: str, key: str) -> int:
    """The number by which error_from() finds that a tokenizer failed with a sample."""
    number = next(_failure_numbers)
    _sample_failures.append((number, _SampleFailure(cause, url, key)))
    return number


# Faults of the program, and not of its shards: on_error must not skip them.
_BUGS = (TypeError, ValueError, NameError, AttributeError, ImportError, NotImplementedError)


def failure_code(exception: BaseException) -> int:
    """The class of an error that an exception of an opener becomes."""
    if not isinstance(exception, Exception):
        return int(lib.SHF_E_CANCELLED)
    if isinstance(exception, Error):
        return exception.code
    if isinstance(exception, MemoryError):
        return int(lib.SHF_E_NOMEM)
    if isinstance(exception, EOFError):
        return int(lib.SHF_E_TRUNCATED)
    is_bug = isinstance(exception, _BUGS) and not isinstance(exception, OSError)
    return int(lib.SHF_E_USAGE if is_bug else lib.SHF_E_IO)


def _errno_of(exception: BaseException) -> int:
    number = getattr(exception, "errno", None)
    if isinstance(number, int):
        return number
    if isinstance(exception, FileNotFoundError):
        return errno.ENOENT
    return errno.EACCES if isinstance(exception, PermissionError) else 0


def error_from(native: _CData) -> Error:
    """The exception for a shf_error that a call has just written.

    An Error, whose __cause__ is what an opener or a tokenizer raised; or that itself, if it is not
    for an Error to replace, as KeyboardInterrupt.
    """
    os_error = native.os_error
    # A name that is not UTF-8 was escaped by the library; only a cut message can hold a part of a
    # character.
    message = ffi.string(native.message).decode("utf-8", "backslashreplace")
    if os_error >= _FIRST_FAILURE:
        failure = next((kept for number, kept in [*_sample_failures] if number == os_error), None)
        if failure is not None and native.code == lib.SHF_E_FORMAT:  # LIMIT: after max_skips
            transform_error = TransformError(message, url=failure.url, key=failure.key)
            transform_error.__cause__ = failure.cause
            return transform_error
    cause = next((raised for number, raised in [*_failures] if number == os_error), None)
    if cause is not None:
        if not isinstance(cause, Exception):
            return cause  # type: ignore[return-value]
        os_error = _errno_of(cause)
    elif os_error >= _FIRST_FAILURE:
        os_error = 0
    cls = _CLASSES.get(native.code, InternalError)
    if cls is ReadError:
        cls = _READ_CLASSES.get(os_error, ReadError)
    made = cls(
        message,
        offset=None if native.offset == _NO_OFFSET else native.offset,
        os_error=os_error,
    )
    made.__cause__ = cause
    return made
