"""The members of one shard, one after another, for readers that need their exact names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .._errors import UnsupportedError
from .._members import Members
from .._native import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .._native import _CData

META = re.compile(r"__[^/]*__($|/)")


def members_of(
    url: str,
    opener: Callable[[str], Any] | None,
    wanted: Callable[[str], str | None],
    options: dict[str, Any],
) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of the regular files of an archive that `wanted` gives a name.

    It is what `for member in Members(url)` does, without an object for each member.
    """
    with Members(url, opener=opener, **options) as members:
        holder = members._holder
        native = members._native
        error = ffi.new("shf_error *")
        check, info = members._check, lib.shf_members_info
        regular = (lib.SHF_KIND_FILE, lib.SHF_KIND_SPARSE)
        while True:
            code = lib.python_next_member(holder, native, error)
            if code and check(code, error) == lib.SHF_END:
                return
            kind = info(holder[0], lib.SHF_MEMBER_KIND)
            if kind not in regular:
                continue
            name = bytes(ffi.buffer(native.name.data, native.name.size)).decode(
                "utf-8", "surrogateescape"
            )
            if name[:2] == "__" and META.match(name):
                continue
            new_name = wanted(name)
            if new_name is None:
                continue
            if kind == lib.SHF_KIND_SPARSE:
                raise UnsupportedError(
                    f"{name}: a sparse member; help: write the shard without --sparse"
                )
            yield new_name, _data(members, holder, native, error)


def _data(members: Members, holder: _CData, native: _CData, error: _CData) -> bytes:
    """All bytes of the current member."""
    size = lib.shf_members_info(holder[0], lib.SHF_MEMBER_SIZE)
    room = min(size, 1 << 24) + 1
    while True:
        have = native.size
        code = lib.python_read_member(holder, native, 0, room, error)
        if code:
            members._check(code, error)
        if native.size == have or (native.size == size and have == 0 and size < room):
            break
    return bytes(ffi.buffer(native.data, native.size)) if native.size else b""
