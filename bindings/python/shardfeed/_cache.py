"""What the folder of a cache has: for the command `shardfeed cache`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._errors import error_from
from ._native import ffi, lib
from ._options import native_options
from ._signals import Signals
from ._urls import native_urls, url_list

if TYPE_CHECKING:
    from ._urls import URLs


@dataclass(frozen=True)
class Cached:
    """One version of one shard.

    size: bytes of the shard. data: those that are in the cache. disk: bytes of its files. age:
    seconds since it was used. faults: blocks that were damaged, and removed.
    """

    url: str
    version: str
    size: int
    data: int
    disk: int
    age: float
    faults: int


_ACTIONS = {
    "ls": lib.shf_cache_list,
    "verify": lib.shf_cache_verify,
    "clear": lib.shf_cache_clear,
}


def cached(action: str, folder: str | None, urls: URLs = (), older_than: int = 0) -> list[Cached]:
    """Lists, verifies or clears ("ls", "verify", "clear") a folder, and says what was there.

    folder: None means SHARDFEED_CACHE in the environment. older_than: seconds.
    """
    array, texts = native_urls(url_list(urls))
    native = native_options({} if folder is None else {"cache": folder})
    signals = Signals(native)
    made = ffi.new("shf_cache_report **")
    error = ffi.new("shf_error *")
    failed = _ACTIONS[action](made, array, len(texts), older_than, native, error)
    signals.raise_exception()
    if failed:
        raise error_from(error)
    report = ffi.gc(made[0], lib.shf_cache_report_free)

    def text(number: int, what: int) -> str:
        found = ffi.new("shf_bytes *")
        lib.shf_cache_text(report, number, what, found)
        return bytes(ffi.buffer(found.data, found.size)).decode("utf-8", "backslashreplace")

    return [
        Cached(
            text(number, lib.SHF_CACHE_URL),
            text(number, lib.SHF_CACHE_VERSION),
            lib.shf_cache_number(report, number, lib.SHF_CACHE_SIZE),
            lib.shf_cache_number(report, number, lib.SHF_CACHE_DATA),
            lib.shf_cache_number(report, number, lib.SHF_CACHE_DISK),
            lib.shf_cache_number(report, number, lib.SHF_CACHE_AGE) / 1e9,
            lib.shf_cache_number(report, number, lib.SHF_CACHE_FAULTS),
        )
        for number in range(lib.shf_cache_count(report))
    ]
