"""Exceptions: one class per error class of the library, each also the built-in people catch."""

from __future__ import annotations

import builtins
import errno
from typing import TYPE_CHECKING

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


def error_from(native: _CData) -> Error:
    """The exception for a shf_error that a call has just written."""
    cls = _CLASSES.get(native.code, InternalError)
    if cls is ReadError:
        cls = _READ_CLASSES.get(native.os_error, ReadError)
    return cls(
        # A name that is not UTF-8 was escaped by the library; only a cut message can hold a part
        # of a character.
        ffi.string(native.message).decode("utf-8", "backslashreplace"),
        offset=None if native.offset == _NO_OFFSET else native.offset,
        os_error=native.os_error,
    )
