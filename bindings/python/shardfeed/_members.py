"""Members in sequence: all of one tar or ZIP file, from front to back."""

from __future__ import annotations

import os
from operator import length_hint
from threading import Lock
from typing import TYPE_CHECKING, NoReturn

from ._errors import UsageError, error_from
from ._member import NOT_KNOWN, MemberFacts, bytes_of, text_of
from ._native import ffi, lib
from ._opener import set_opener
from ._options import native_options, option_texts, shown_options
from ._reopenable import Closable
from ._signals import Signals
from ._urls import redacted, url_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Buffer, Self, Unpack

    from ._native import ArchiveOptions, _CData
    from ._opener import Opener
    from ._urls import URL

# Bytes that read() asks for at once.
_PIECE = 262144


class CurrentMember(MemberFacts):
    """The current member of a sequence. Valid until the sequence moves to the next one."""

    __slots__ = ("_given", "_members", "_name")

    def __init__(self, members: Members, name: bytes) -> None:
        self._members = members
        self._name = name
        # What the last call gave, which an exception may have kept from the user, and where in the
        # member it starts and stops. Replaced by one statement without a call in it.
        self._given: tuple[Iterator[bytes | int], int, int] = (iter(()), 0, 0)

    @property
    def name_bytes(self) -> bytes:
        """The name exactly as the archive has it."""
        return self._name

    @property
    def mode(self) -> int | None:
        """The permission bits."""
        return self._known(lib.SHF_MEMBER_MODE)

    @property
    def uid(self) -> int | None:
        """The number of the owner."""
        return self._known(lib.SHF_MEMBER_UID)

    @property
    def gid(self) -> int | None:
        """The number of the group."""
        return self._known(lib.SHF_MEMBER_GID)

    @property
    def mtime_ns(self) -> int | None:
        """When it was last changed, in nanoseconds since 1970. A DOS time is taken for UTC."""
        time = self._known(lib.SHF_MEMBER_MTIME)
        return time if time is None or time < 1 << 63 else time - (1 << 64)

    @property
    def mtime(self) -> float | None:
        """When it was last changed, in seconds since 1970."""
        time = self.mtime_ns
        return None if time is None else time / 1_000_000_000

    @property
    def link(self) -> str | None:
        """What a link in a tar points at. In a ZIP file that is the data of the link."""
        return self._text(lib.SHF_MEMBER_LINK)

    @property
    def user(self) -> str | None:
        """The name of the owner."""
        return self._text(lib.SHF_MEMBER_USER)

    @property
    def group(self) -> str | None:
        """The name of the group."""
        return self._text(lib.SHF_MEMBER_GROUP)

    def read(self, size: int | None = -1, /) -> bytes:
        """The next `size` bytes, fewer at the end of the member; all that are left without it.

        b"" at the end, when all checks have held. An exception loses no byte.
        """
        wanted = None if size is None or size < 0 else size
        self._members._give(self, wanted, bytes)
        for data in self._given[0]:
            return data  # type: ignore[return-value]
        raise AssertionError

    def readinto(self, buffer: Buffer, /) -> int:
        """Reads the next bytes into a writable buffer, and returns how many; 0 at the end.

        After an exception the buffer may have been changed; the next call gives the same bytes.
        """
        with memoryview(buffer) as view, view.cast("B") as room:

            def copy(data: Buffer) -> int:
                with memoryview(data) as some:
                    room[: len(some)] = some.cast("B")
                    return len(some)

            self._members._give(self, min(len(room), _PIECE), copy)
        for count in self._given[0]:
            return count  # type: ignore[return-value]
        raise AssertionError

    def chunks(self, size: int = 1 << 20, /) -> Iterator[bytes]:
        """What is left of the member, in pieces of `size` bytes."""
        if size < 1:
            raise ValueError(f"chunks of {size} bytes")
        while chunk := self.read(size):
            yield chunk

    def _info(self, what: int) -> int:
        holder = self._members._holder_of(self)  # keeps the handle while another thread closes
        return lib.shf_members_info(holder[0], what)

    def _known(self, what: int) -> int | None:
        number = self._info(what)
        return None if number == NOT_KNOWN else number

    def _text(self, what: int) -> str | None:
        holder = self._members._holder_of(self)
        out = ffi.new("shf_bytes *")
        return None if lib.shf_members_text(holder[0], what, out) else text_of(bytes_of(out))

    def __reduce__(self) -> NoReturn:
        raise TypeError("the current member of a sequence cannot be pickled or copied")

    def __repr__(self) -> str:
        return f"<shardfeed.CurrentMember {self.name!r}>"


class Members(Closable):
    """The members of one tar or ZIP file from front to back: all of them, as they are.

        with shardfeed.Members("old.tar.gz") as members:
            for member in members:
                print(member.name, member.kind, member.size, member.mode)
                for chunk in member.chunks():
                    ...

    url: a path, file:///path, "-" (standard input) or "pipe:COMMAND". Duplicates, directories,
    links and devices are shown too, in the order of the file; nothing is grouped or left out. A
    member may be of any size: memory does not grow with it. A ZIP file that cannot be read at any
    offset, as from a pipe, is taken into memory, as far as the option memory allows.

    opener: as for Stream.

    A member is valid until the next one; what was not read of it is skipped. Damage is an
    exception, and the next call raises it again; what is wrong with one entry of a ZIP file leaves
    the others. After TimeoutError and KeyboardInterrupt the same call continues, and no byte is
    lost.

    One thread at a time. It belongs to the process that opened it, and is never pickled.
    """

    _none = ffi.new("shf_members **")

    def __init__(
        self, url: URL, *, opener: Opener | None = None, **options: Unpack[ArchiveOptions]
    ) -> None:
        (self._url,) = url_list(url)
        self._options = option_texts(options, [self._url])
        self._closed = False
        self._current: CurrentMember | None = None
        self._native = ffi.gc(ffi.new("python_member *"), lib.python_free_member)
        # The last member, which an exception may have kept from the user, and its number. Replaced
        # by one statement without a call in it.
        self._given: tuple[Iterator[CurrentMember], int] = (iter(()), 0)
        self._lock = Lock()  # held while self._native is in use
        self._holder = self._none
        native = native_options(self._options, "archive")
        set_opener(native, opener)
        self._signals = Signals(native)  # asked as long as the members are open
        error = ffi.new("shf_error *")
        holder = ffi.gc(ffi.new("shf_members **"), lib.python_close_members)
        self._check(lib.shf_members_open(holder, os.fsencode(self._url), native, error), error)
        self._holder = holder

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> CurrentMember:
        while True:
            self._check_alone()
            self._opened()
            for member in self._given[0]:
                return member
            with self._lock:
                self._advance()

    def _advance(self) -> None:
        """Makes the next member the one to be given. StopIteration at the end."""
        holder = self._opened()
        arrived = self._native
        if self._given[1] == arrived.number:
            self._current = None
            error = ffi.new("shf_error *")
            code = lib.python_next_member(holder, arrived, error)
            if self._check(code, error) == lib.SHF_END:
                raise StopIteration
        member = CurrentMember(self, bytes_of(ffi.addressof(arrived, "name")))
        self._current = member
        ready = iter((member,))
        self._given = (ready, arrived.number)

    def _give(
        self, member: CurrentMember, wanted: int | None, make: Callable[[Buffer], bytes | int]
    ) -> None:
        """Reads `wanted` bytes, or all (None), and makes of them what the member gives."""
        self._check_alone()
        with self._lock:
            ready, before, after = member._given
            start = before if length_hint(ready) else after
            holder = self._holder_of(member)
            native = self._native
            have = native.start + native.size - start
            while wanted is None or have < wanted:
                room = _PIECE if wanted is None else min(wanted - have, _PIECE)
                error = ffi.new("shf_error *")
                code = lib.python_read_member(holder, native, start, room, error)
                self._check(code, error)
                more = native.start + native.size - start
                if more == have:
                    break
                have = more
            count = have if wanted is None else min(have, wanted)
            offset = start - native.start
            made = make(ffi.buffer(native.data + offset, count) if count else b"")
            ready = iter((made,))
            member._given = (ready, start, start + count)

    def _check_alone(self) -> None:
        """Refuses a second thread, and a signal handler during a call of its own thread."""
        if self._lock.locked():
            raise UsageError(
                "these members are in use: another thread, or a call that a signal handler has "
                "interrupted, is reading them; help: read them in one thread"
            )

    def _check(self, code: int, error: _CData) -> int:
        """The code of a call, unless it failed, or a signal handler has raised something."""
        self._signals.raise_exception()
        if code < 0:
            raise error_from(error)
        return code

    def _opened(self) -> _CData:
        holder = self._holder
        if holder is self._none:
            raise UsageError("the sequence of members is closed")
        return holder

    def _holder_of(self, member: CurrentMember) -> _CData:
        holder = self._opened()
        if member is not self._current:
            raise UsageError(
                f"the member {member.name!r} is no longer the current one; help: read a member "
                "before the next one is asked for"
            )
        return holder

    def cancel(self) -> None:
        """Makes a call that waits, and later ones, raise CancelledError. Any thread."""
        holder = self._holder  # keeps the handle while another thread closes
        lib.shf_members_cancel(holder[0])

    def close(self) -> None:
        """Closes the file, and ends the command of a pipe."""
        self._closed = True
        self._current = None
        holder, self._holder = self._holder, self._none
        lib.shf_members_cancel(holder[0])  # a call in another thread still uses it

    @property
    def url(self) -> str:
        """The URL as it was given."""
        return self._url

    @property
    def options(self) -> dict[str, str]:
        """The options that were given, as the library takes them."""
        return dict(self._options)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "members in sequence cannot be pickled or copied: they are an open file; help: open "
            "them in the process that reads them"
        )

    def __repr__(self) -> str:
        shown = [repr(redacted(self._url)), *(["closed"] if self._closed else [])]
        shown += [shown_options(self._options)] if self._options else []
        return f"<shardfeed.Members {' '.join(shown)}>"
