"""Functions of the program that name the shards of a writer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ._native import ffi, lib
from ._receivers import Callbacks, keep_exception

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import TypeAlias

    from ._native import _CData

    ShardName: TypeAlias = "Callable[[int], str | os.PathLike[str]]"


class ShardNames(Callbacks):
    """The function as the library calls it. This object has to live as long as the writer."""

    __slots__ = ("function", "text")

    def __init__(self, function: ShardName) -> None:
        super().__init__()
        self.function = function
        self.text: _CData = ffi.NULL  # the last name: the library copies it after the call

    def set(self, native: _CData) -> None:
        """Makes it that of a shf_options."""
        lib.shf_options_set_shard_name(native, lib.python_shard_name, self.handle)


@ffi.def_extern(error=1, onerror=keep_exception)  # 1 ends the writer: no shard has no name
def python_shard_name(ctx: _CData, number: int, out: _CData) -> int:
    names: ShardNames = ffi.from_handle(ctx)
    name = os.fsencode(names.function(number))
    names.text = ffi.new("char[]", name)
    out.data = ffi.cast("uint8_t *", names.text)
    out.size = len(name)
    return 0
