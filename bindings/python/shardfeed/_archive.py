"""Archives: the members of one tar or ZIP file, in any order."""

from __future__ import annotations

import io
import operator
import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, overload

from ._errors import (
    AmbiguousError,
    ChangedError,
    NoMemberError,
    NoMemoryError,
    error_from,
)
from ._member import MemberFacts, bytes_of, text_of
from ._native import ffi, lib
from ._opener import set_opener
from ._options import native_options, option_texts, shown_options
from ._reopenable import Reopenable
from ._signals import Signals
from ._urls import redacted, url_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Buffer, SupportsIndex, TypeAlias, Unpack

    from ._native import ArchiveOptions, _CData
    from ._opener import Opener
    from ._urls import URL

    Name: TypeAlias = str | bytes
    Where: TypeAlias = SupportsIndex | Name

# What read() does is short enough for the search of a name in a module to count.
_read = lib.python_read
_unpack = ffi.unpack

# Where members are read to before they become bytes: a place for an error and for 64 KiB. Threads
# take one each; list.pop and list.append are atomic.
_slots: list[tuple[_CData, _CData]] = []
_SLOT_BYTES = 65536

# Memory of read_many(), which frees itself. Not cleared.
_new_buffer = ffi.new_allocator(lib.python_allocate, lib.python_free, False)


def _new_slot() -> tuple[_CData, _CData]:
    slot = ffi.new("python_slot *")
    return slot, ffi.addressof(slot, "bytes", 0)


class Member(MemberFacts):
    """One member of an archive: what the archive says about it. The bytes come with read()."""

    __slots__ = ("archive", "position")

    archive: Archive
    position: int

    def __init__(self, archive: Archive, position: int) -> None:
        self.archive = archive
        self.position = position

    @property
    def name_bytes(self) -> bytes:
        """The name exactly as the archive has it."""
        return self.archive._name(self.position)

    def read(self) -> bytes:
        """The bytes of the member."""
        return self.archive.read(self.position)

    def open(self) -> io.BytesIO:
        """The member as a binary file that can seek."""
        return self.archive.open(self.position)

    def _info(self, what: int) -> int:
        holder = self.archive._opened()
        return lib.shf_archive_info(holder[0], self.position, what)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Member):
            return NotImplemented
        return self.archive is other.archive and self.position == other.position

    def __hash__(self) -> int:
        return hash((id(self.archive), self.position))

    def __repr__(self) -> str:
        return f"<shardfeed.Member {self.position} {self.name!r} {self.size} bytes>"


class Archive(Reopenable, Sequence[Member]):
    """The members of one tar or ZIP file, in any order.

        with shardfeed.Archive("images.zip") as archive:
            archive[5].read()                # a Sequence of members, in the order of the archive
            archive["img_000.png"].read()    # and a Mapping by name
            archive.read("img_000.png")      # the same; read(5) is the fastest
            archive.read_many([7, 5, 8])     # several threads
            with archive.open("labels.json") as file:
                json.load(file)

    source: a path, file:///path, "-" (standard input) or "pipe:COMMAND"; or bytes-like, which is
    the archive itself and must not change while it is open. What cannot be read at any offset, such
    as a compressed tar, is taken into memory, as far as the option memory allows.

    opener: as for Stream, for a URL.

    A name that is not there is a KeyError (shardfeed.NoMemberError), one that is there twice a
    shardfeed.AmbiguousError: read such members by position. Names are str, with surrogate escapes
    for what is not UTF-8, or bytes. They are not paths: nothing here writes files.

    Any number of threads may use an archive at once, and so may forked processes, without opening
    it again. A pickled one opens the file again when the copy is first used, and raises
    ChangedError if it is another one by then, as far as its count and last member tell.
    """

    _noun = "archive"
    _none = ffi.new("shf_archive **")

    def __init__(
        self,
        source: URL | Buffer,
        *,
        opener: Opener | None = None,
        **options: Unpack[ArchiveOptions],
    ) -> None:
        url = url_list(source) if isinstance(source, (str, os.PathLike)) else []
        super().__init__(option_texts(options, url))
        self._opener = opener
        self._url: str | None = None
        self._data: Buffer | None = None
        if isinstance(source, (str, os.PathLike)):
            (self._url,) = url_list(source)
        elif opener is not None:
            raise TypeError("opener is for a URL; help: leave it out, the archive is in memory")
        else:
            self._data = source
        self._identity: tuple[int, ...] | None = None  # of the file that was opened first
        self._opened()

    # ---- Reading ----

    def read(self, where: Where) -> bytes:
        """The bytes of the member at a position or of a name."""
        if type(where) is int and 0 <= where < self._count:
            position = where
        else:
            position = self._position(where)
        try:
            slot = _slots.pop()
        except IndexError:
            slot = _new_slot()
        size = _read(self._holder, position, slot[0])
        if 0 <= size <= _SLOT_BYTES:
            data: bytes = _unpack(slot[1], size)
            _slots.append(slot)
            return data
        if size < 0:
            raise self._failure(slot[0].error)
        _slots.append(slot)
        return self._read_large(position, size)

    def _read_large(self, position: int, size: int) -> bytes:
        # BytesIO gives out the bytes that were written into it, without a copy.
        try:
            file = io.BytesIO(bytes(size))
        except (MemoryError, OverflowError):
            raise NoMemoryError(f"no memory for a member of {size} bytes") from None
        with file.getbuffer() as view:
            self.readinto(position, view)
        return file.getvalue()

    def readinto(self, where: Where, buffer: Buffer) -> int:
        """Reads a member into the start of a writable buffer, and returns its size."""
        position = self._position(where)
        error = ffi.new("shf_error *")
        with ffi.from_buffer("char[]", buffer, True) as out:
            size: int = lib.python_read_into(self._holder, position, out, len(out), error)
        if size < 0:
            raise self._failure(error)
        return size

    def read_many(self, wheres: Iterable[Where]) -> list[memoryview]:
        """The bytes of many members, as read-only views; by several threads where that pays.

        Views of small members share buffers: one that is kept holds at most 64 KiB, or its own
        size. All are tried; the error is that of the first bad one.
        """
        holder = self._opened()
        listed = list(wheres)
        try:
            positions = ffi.new("uint64_t[]", listed)
        except (TypeError, OverflowError):
            positions = ffi.new("uint64_t[]", list(map(self._position, listed)))
        count = len(listed)
        plan = ffi.new("uint64_t[]", 4 * count)
        buffers: int = lib.python_plan(holder, positions, count, plan)
        if buffers < 0:
            raise next(filter(None, map(self._wrong, positions)))
        numbers = ffi.unpack(plan, 3 * count + buffers)
        try:
            allocated = [_new_buffer("char[]", size) for size in numbers[3 * count :]]
        except (MemoryError, OverflowError):
            raise NoMemoryError(f"no memory for {sum(numbers[3 * count :])} bytes") from None
        error = ffi.new("shf_error *")
        if lib.python_read_many(
            holder, positions, count, plan, ffi.new("void *[]", allocated), error
        ):
            raise self._failure(error)
        views = [memoryview(ffi.buffer(buffer)).toreadonly() for buffer in allocated]
        return [
            views[number][start:stop]
            for number, start, stop in zip(
                numbers[:count], numbers[count : 2 * count], numbers[2 * count : 3 * count]
            )
        ]

    def open(self, where: Where) -> io.BytesIO:
        """A member as a binary file that can seek, as PIL.Image.open and json.load take."""
        return io.BytesIO(self.read(where))

    # ---- Members ----

    @overload
    def __getitem__(self, where: Where) -> Member: ...
    @overload
    def __getitem__(self, where: slice) -> list[Member]: ...
    def __getitem__(self, where: Where | slice) -> Member | list[Member]:
        if isinstance(where, slice):
            return [Member(self, position) for position in range(*where.indices(len(self)))]
        return Member(self, self._position(where))

    def __len__(self) -> int:
        self._opened()
        return self._count

    def __iter__(self) -> Iterator[Member]:
        return map(partial(Member, self), range(len(self)))

    def __reversed__(self) -> Iterator[Member]:
        return map(partial(Member, self), reversed(range(len(self))))

    def __contains__(self, name: object) -> bool:
        """Whether there is a member of this name."""
        if isinstance(name, Member):
            return name.archive is self and name.position < len(self)
        if not isinstance(name, (str, bytes)):
            return False
        try:
            self._find(name)
        except NoMemberError:
            return False
        except AmbiguousError:
            return True
        return True

    def names(self) -> list[str]:
        """The names of all members, in their order."""
        return [text_of(self._name(position)) for position in range(len(self))]

    def _position(self, where: Where) -> int:
        """The position of a member. KeyError, AmbiguousError, IndexError."""
        if isinstance(where, (str, bytes)):
            return self._find(where)
        try:
            position = operator.index(where)
        except TypeError:
            kind = type(where).__name__
            raise TypeError(f"a position or a name expected, not {kind}") from None
        count = len(self)
        if not -count <= position < count:
            self._check_not_closed()  # by another thread, since it was counted
            raise IndexError(f"position {position} of an archive with {count} members")
        return position + count if position < 0 else position

    def _find(self, name: Name) -> int:
        if isinstance(name, str):
            try:
                name = name.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:
                raise NoMemberError(f"there is no member of the name {name!r}") from None
        holder = self._opened()
        position: int = lib.python_find(holder, name, len(name), ffi.NULL)
        if position < 0:  # once more, for the reason
            error = ffi.new("shf_error *")
            lib.python_find(holder, name, len(name), error)
            raise self._failure(error)
        return position

    def _wrong(self, position: int) -> IndexError | None:
        if position < len(self):
            return None
        return IndexError(f"position {position} of an archive with {len(self)} members")

    def _name(self, position: int) -> bytes:
        holder = self._opened()
        out = ffi.new("shf_bytes *")
        if lib.shf_archive_name(holder[0], position, out):
            raise IndexError(f"position {position} of an archive with {len(self)} members")
        return bytes_of(out)

    # ---- Life ----

    def _open(self) -> tuple[_CData, int]:
        error = ffi.new("shf_error *")
        native = native_options(self._options, "archive")
        set_opener(native, self._opener)
        signals = Signals(native)
        close = partial(lib.python_close_archive)
        holder = ffi.gc(ffi.new("shf_archive **"), close)
        if self._url is not None:
            failed = lib.shf_archive_open(holder, os.fsencode(self._url), native, error)
        else:
            try:
                data = ffi.from_buffer("char[]", self._data)  # type: ignore[arg-type]
            except TypeError:
                kind = type(self._data).__name__
                raise TypeError(f"a path, URL or bytes-like object expected, not {kind}") from None
            close.data = data  # type: ignore[attr-defined]  # lives as long as the archive
            failed = lib.shf_archive_open_memory(holder, data, len(data), native, error)
        signals.raise_exception()
        if failed:
            raise error_from(error)
        count = lib.shf_archive_member_count(holder[0])
        what = (lib.SHF_MEMBER_OFFSET, lib.SHF_MEMBER_STORED, lib.SHF_MEMBER_CRC32)
        last = [lib.shf_archive_info(holder[0], max(count - 1, 0), number) for number in what]
        if self._identity not in (None, (count, *last)):
            raise ChangedError(
                f"{self!r}: the file is another one than in the process that pickled it; help: "
                "let no program write to archives that are in use; open it again everywhere"
            )
        self._identity = (count, *last)
        return holder, count

    def close(self) -> None:
        """Closes the file and frees the list of members. What was read stays valid."""
        self._let_go()
        self._data = None

    @property
    def url(self) -> str | None:
        """The URL as it was given; None for an archive in memory."""
        return self._url

    def __getstate__(self) -> dict[str, object]:
        data = None if self._data is None else bytes(self._data)
        return {**super().__getstate__(), "_data": data}

    def __repr__(self) -> str:
        shown = ["in memory" if self._url is None else repr(redacted(self._url))]
        if self._holder is not self._none:
            shown.append(f"{self._count} members")
        elif self._closed:
            shown.append("closed")
        shown += [shown_options(self._options)] if self._options else []
        return f"<shardfeed.Archive {' '.join(shown)}>"


def read_to_addresses(archive: Archive, positions: Sequence[int], addresses: Sequence[int]) -> None:
    """Reads members to addresses where there is room for each, and the caller sees to that."""
    holder = archive._opened()
    error = ffi.new("shf_error *")
    buffers = ffi.new("uintptr_t[]", addresses)
    native = ffi.new("uint64_t[]", positions)
    pointers = ffi.cast("void **", buffers)  # does not keep them
    if lib.shf_archive_read_many(holder[0], native, len(positions), pointers, error):
        raise archive._failure(error)
