"""Openers: functions of the program that give a binary file for a URL."""

from __future__ import annotations

import atexit
import errno
import io
import os
import time
from _thread import get_ident, interrupt_main
from contextlib import suppress
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ._errors import UsageError, error_from, failure_code, keep_failure
from ._native import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import TypeAlias

    from ._native import _CData

    Opener: TypeAlias = Callable[[str], Any]

_NOT_KNOWN = 0xFFFF_FFFF_FFFF_FFFF
_VERSION_ROOM = 256  # bytes, with the NUL
_LONGEST = 500  # characters of a message
_ROOM = 1007  # bytes of shf_error.message, without the NUL

# What says that two contents at a URL differ, in the words of the stores that fsspec knows.
_VERSION_KEYS = (
    *("ETag", "etag", "e_tag", "md5Hash", "content_md5", "generation", "VersionId", "version_id"),
    *("LastModified", "last_modified", "mtime", "modified", "modify"),
)


def set_opener(native: _CData, opener: Opener | None) -> None:
    """Makes `opener` serve the URLs of all calls with these options; None: nothing to do."""
    if opener is None:
        return
    if not callable(opener):
        raise TypeError(
            f"opener: a function expected, not {type(opener).__name__}; help: give a function that "
            "takes a URL and gives a binary file, such as fsspec.open"
        )
    server = _Server(opener)
    _alive.add(server)
    error = ffi.new("shf_error *")
    if lib.python_set_opener(native, server.handle, error):
        _alive.discard(server)
        raise error_from(error)


class _Server:
    """An opener, as the library has it."""

    def __init__(self, opener: Opener) -> None:
        self.opener = opener
        self.handle = ffi.new_handle(self)

    def open(self, url: str) -> _Opened:
        opener = _of_this_process(self.opener)
        system: Any = getattr(opener, "__self__", None)
        if not _has_one_connection(system):
            return self._open(opener(url), None)
        # Opening uses the connection too.
        turn = _turn_of_system(system)
        opened: _Opened = turn.run(lambda: self._open(opener(url), turn))
        return opened

    def _open(self, given: Any, held: _Turn | None) -> _Opened:
        with _sharing:
            shared = _files.get(id(given))
            if shared is None:
                shared = _files[id(given)] = _Given(given)
            shared.users += 1
        try:
            file = shared.file()
            return _Opened(shared, file, held)
        except BaseException:
            shared.let_go()
            raise


class _Turn:
    """Who reads a file: one thread at a time."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.reader = 0  # the thread that has it

    def run(self, function: Callable[[], Any]) -> Any:
        """What the function gives, while no other thread reads."""
        thread = get_ident()
        if self.reader == thread:
            raise UsageError(
                "the file is in use by the call that this one is inside of; help: do not read what "
                "is being read, from a signal handler or an opener"
            )
        with self.lock:
            self.reader = thread
            try:
                return function()
            finally:
                self.reader = 0


class _Given:
    """What an opener gave. It may give the same file twice, which then has one position."""

    def __init__(self, given: Any) -> None:
        self._given = given
        self._file: Any = None
        self._opening = Lock()
        self.users = 0
        self.turn = _Turn()

    def file(self) -> Any:
        """The binary file: what was given, or what it gives as a context manager (fsspec.open)."""
        with self._opening:
            if self._file is None:
                entered = not hasattr(self._given, "read") and hasattr(self._given, "__enter__")
                file = self._given.__enter__() if entered else self._given
                if not hasattr(file, "read"):
                    self._leave(entered)
                    raise TypeError(
                        f"the opener gave a {type(file).__name__}; help: a binary file is expected"
                    )
                if isinstance(file, io.TextIOBase):
                    self._leave(entered)
                    raise TypeError('the opener gave a text file; help: open it with mode="rb"')
                self._file = file
        return self._file

    def let_go(self) -> None:
        with _sharing:
            self.users -= 1
            if self.users > 0:
                return
            if _files.get(id(self._given)) is self:
                del _files[id(self._given)]
        if self._file is not None:
            self._leave(self._file is not self._given)

    def _leave(self, entered: bool) -> None:
        if entered:
            self._given.__exit__(None, None, None)
        elif hasattr(self._given, "close"):
            self._given.close()


class _Opened:
    """A file as a source: read at any offset, or from front to back."""

    def __init__(self, shared: _Given, file: Any, held: _Turn | None) -> None:
        self._shared = shared
        self._file = file
        self._at: int | None = None  # its position, where that is known
        # Its bytes need no position, which two openings of a file in memory share.
        self._is_memory = (
            isinstance(file, io.BytesIO)
            and type(file).read is io.BytesIO.read
            and type(file).readinto is io.BytesIO.readinto
        )
        self.seekable = self._is_memory or _seekable(file)
        self._into = getattr(file, "readinto", None)
        self._turn = _turn_of(shared, file)
        if self._turn is held:
            self._look()
        else:
            self._turn.run(self._look)
        if not self.seekable:
            self._at = 0
        self.handle = ffi.new_handle(self)

    def _look(self) -> None:
        self.size = _size(self._file, self.seekable)
        self.version = _version(self._file)

    def read_at(self, offset: int, out: Any) -> int:
        if self._is_memory:
            with self._file.getbuffer() as view, view[offset : offset + len(out)] as piece:
                out[: len(piece)] = piece
                return len(piece)
        count: int = self._turn.run(lambda: self._read(offset, out))
        return count

    def _read(self, offset: int, out: Any) -> int:
        at, self._at = self._at, None  # not known after an exception
        if self._shared.users > 1 or at != offset:
            if not self.seekable:
                raise UsageError(
                    "the file cannot seek, and an exception or another reader has moved it; help: "
                    "open the shard again, or copy it to a local disk"
                )
            self._file.seek(offset)
        count = self._fill(offset, out)
        if not 0 <= count <= len(out):
            raise ValueError(f"the file gave {count} bytes where at most {len(out)} were wanted")
        self._at = offset + count
        return count

    def _fill(self, offset: int, out: Any) -> int:
        if self._into is not None:
            try:
                with memoryview(out) as view:
                    count = self._into(view)
            except (NotImplementedError, io.UnsupportedOperation):
                self._into = None  # only read() works, or nothing
                if self.seekable:
                    self._file.seek(offset)
            else:
                if count is None:
                    raise BlockingIOError(errno.EAGAIN, "the file does not wait for its bytes")
                return int(count)
        data = self._file.read(len(out))
        if data is None:
            raise BlockingIOError(errno.EAGAIN, "the file does not wait for its bytes")
        if isinstance(data, str):
            raise TypeError('read() gave a str; help: open the file with mode="rb"')
        if len(data) > len(out):
            raise ValueError(f"read({len(out)}) gave {len(data)} bytes")
        out[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._shared.let_go()


def _is_local(system: Any) -> bool:
    """Whether a file system of fsspec is that of this machine."""
    return bool(getattr(system, "local_file", False))


def _seekable(file: Any) -> bool:
    if not hasattr(file, "seek"):
        return False
    return bool(file.seekable()) if hasattr(file, "seekable") else True


def _size(file: Any, seekable: bool) -> int | None:
    """The size, which many files know without a look at their end."""
    size = getattr(file, "size", None)
    if callable(size):
        size = size()
    if isinstance(size, int) and size >= 0:
        return size
    if not seekable:
        # Of http.client: what is still to come. It ends a body that was cut like one that is whole.
        length = getattr(file, "length", None)
        return length if isinstance(length, int) and length >= 0 else None
    file.seek(0, os.SEEK_END)
    return int(file.tell())


def _version(file: Any) -> bytes:
    """What the file knows of its version, if that costs nothing; else empty."""
    text = ""
    try:
        if isinstance(file, (io.FileIO, io.BufferedReader)) or _is_local(getattr(file, "fs", None)):
            text = f"mtime {os.fstat(file.fileno()).st_mtime_ns}"
        else:
            # In files of fsspec `details` may be a request, unless they are there.
            name = "_details" if hasattr(file, "_details") else "details"
            details = getattr(file, name, None)
            if not isinstance(details, dict):
                details = {name: getattr(file, name, None) for name in ("etag", "modified")}
            found = (f"{key} {details[key]}" for key in _VERSION_KEYS if details.get(key))
            text = next(found, "")
    except Exception:  # it is a file of the program, of which nothing more is asked
        text = ""
    return text.replace("\0", "").encode("utf-8", "backslashreplace")[: _VERSION_ROOM - 1]


def _turn_of(given: _Given, file: Any) -> _Turn:
    """The turn of a file.

    File systems of fsspec that are not asynchronous, such as ftp, have one connection for all
    files, and one thread at a time can use it.
    """
    system = getattr(file, "fs", None)
    return _turn_of_system(system) if _has_one_connection(system) else given.turn


def _of_this_process(opener: Opener) -> Opener:
    """The opener; for the method of a file system of fsspec in a forked process: that of a new one.

    Files and connections of the parent have one position for it and its children.
    """
    system: Any = getattr(opener, "__self__", None)
    if os.getpid() == _first_process or not hasattr(system, "storage_args") or _is_local(system):
        return opener
    with _sharing:
        if system not in _remade:
            _remade[system] = type(system)(
                *system.storage_args, skip_instance_cache=True, **system.storage_options
            )
        like = _remade[system]
    made: Opener = getattr(like, getattr(opener, "__name__", "open"))
    return made


def _has_one_connection(system: Any) -> bool:
    return getattr(system, "async_impl", None) is False and not _is_local(system)


def _turn_of_system(system: Any) -> _Turn:
    with _sharing:
        return _systems.setdefault(system, _Turn())


# Kept for the library, which has their handles: servers, and what they have opened.
_alive: set[_Server | _Opened] = set()
_files: dict[int, _Given] = {}  # by the id of what was given
_systems: WeakKeyDictionary[Any, _Turn] = WeakKeyDictionary()
_remade: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # by the file system of the parent
_first_process = os.getpid()
_sharing = RLock()  # a signal handler may open something


# ---- What the library calls ----


def _keep(exception: BaseException, error: _CData) -> int:
    """Remembers what was raised for the error that the library makes of it. The code of it."""
    try:
        said = f"the opener raised {type(exception).__name__}: {exception}"
    except Exception:
        said = f"the opener raised {type(exception).__name__}"
    said = " ".join(said.split())
    if len(said) > _LONGEST:
        # Whole words: the library replaces secrets, and would not know the half of one.
        said = said[:_LONGEST].rpartition(" ")[0] + " ..."
    data = said.encode("utf-8", "backslashreplace").replace(b"\0", b"")[:_ROOM]
    ffi.memmove(error.message, data, len(data))
    error.os_error = keep_failure(exception)
    return failure_code(exception)


def _keep_early(
    kind: type[BaseException], raised: BaseException, traceback: TracebackType | None
) -> int:
    # A signal handler may raise before the first line of a function, where it cannot catch it.
    if traceback is None:  # of cffi, for what a function returned
        return int(lib.SHF_E_INTERNAL)
    return _keep(raised, traceback.tb_frame.f_locals["error"])


def _again(kind: type[BaseException], raised: BaseException, traceback: TracebackType) -> None:
    # Nobody takes an exception of these functions: Ctrl-C must come once more.
    if isinstance(raised, KeyboardInterrupt):
        interrupt_main()


@ffi.def_extern(error=lib.SHF_E_CANCELLED, onerror=_keep_early)
def python_opener_open(ctx: _CData, url: _CData, out: _CData, error: _CData) -> int:
    opened: _Opened | None = None
    try:
        server: _Server = ffi.from_handle(ctx)
        opened = server.open(os.fsdecode(ffi.string(url)))
        _alive.add(opened)
        out[0] = opened.handle
        return 0
    except BaseException as exception:
        if opened is not None:
            _alive.discard(opened)
            opened.close()
        return _keep(exception, error)


@ffi.def_extern(onerror=_again)
def python_opener_facts(handle: _CData, flags: _CData, size: _CData, version: _CData) -> None:
    opened: _Opened = ffi.from_handle(handle)
    if flags:
        flags[0] = 0 if opened.seekable else lib.SHF_SOURCE_SEQUENTIAL
    if size:
        size[0] = _NOT_KNOWN if opened.size is None else opened.size
    if version:
        ffi.memmove(version, opened.version, len(opened.version))


@ffi.def_extern(error=lib.SHF_E_CANCELLED, onerror=_keep_early)
def python_opener_read(handle: _CData, offset: int, out: _CData, size: int, error: _CData) -> int:
    try:
        opened: _Opened = ffi.from_handle(handle)
        return opened.read_at(offset, ffi.buffer(out, size))
    except BaseException as exception:
        return _keep(exception, error)


@ffi.def_extern(onerror=_again)
def python_opener_close(handle: _CData) -> None:
    opened: _Opened = ffi.from_handle(handle)
    _alive.discard(opened)
    with suppress(Exception):  # all that was wanted of it has been read
        opened.close()


@ffi.def_extern(onerror=_again)
def python_opener_release(ctx: _CData) -> None:
    _alive.discard(ffi.from_handle(ctx))


# ---- The end of Python, and forks ----


def _end() -> None:
    # Reader threads of streams that are still open must not be inside Python when it ends.
    lib.python_end_openers()
    while lib.python_inside_openers() > 0:
        time.sleep(0.001)


def _forget_threads() -> None:
    # Files of the parent, and locks that its threads hold.
    global _sharing
    _sharing = RLock()
    _files.clear()
    _systems.clear()
    _remade.clear()


atexit.register(_end)
os.register_at_fork(after_in_child=_forget_threads)
