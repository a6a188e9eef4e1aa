"""URLs: what callers may pass for shards, and the library's expansion."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ._errors import UsageError, error_from
from ._native import ffi, lib
from ._options import native_options, option_texts
from ._receivers import Callbacks, keep_exception
from ._signals import Signals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import TypeAlias, Unpack

    from ._native import StreamOptions, _CData

    URL: TypeAlias = str | os.PathLike[str]
    URLs: TypeAlias = URL | Iterable[URL]


def url_list(urls: URLs) -> list[str]:
    """One URL or path, or many of them, as a list of strings."""
    if isinstance(urls, (str, bytes, os.PathLike)):
        urls = [urls]
    listed = [os.fsdecode(url) for url in urls]
    if any("\0" in url for url in listed):
        raise UsageError("a URL has a NUL character")
    return listed


def redacted(url: str) -> str:
    """A URL without user, password and query, which may hold secrets, and only a command's name."""
    if url.startswith("pipe:"):
        return url.split(maxsplit=1)[0]
    if "://" in url:
        return re.sub(r"^([a-z0-9+.-]+://)[^/?#]*@", r"\1", url.split("?", 1)[0])
    return url


def native_urls(urls: list[str]) -> tuple[_CData, list[_CData]]:
    """A C array of the URLs, and what has to live as long as it is used."""
    texts = [ffi.new("char[]", os.fsencode(url)) for url in urls]
    return ffi.new("const char *[]", texts), texts


class _Collected(Callbacks):
    """What expand_urls() has been given."""

    __slots__ = ("urls",)

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []


@ffi.def_extern(error=1, onerror=keep_exception)  # 1 ends the call: no URL may be missing
def python_url(ctx: _CData, url: _CData, size: int) -> int:
    collected: _Collected = ffi.from_handle(ctx)
    collected.urls.append(os.fsdecode(bytes(ffi.buffer(url, size))))
    return 0


def expand_urls(urls: URLs, **options: Unpack[StreamOptions]) -> list[str]:
    """The shards that URLs name, in order: braces, "::", ${NAME}, @FILE lists, ~/ and paths with
    * ? [...] expanded.

    Takes the options of Stream; those that matter here are expand, secure and max_shards.
    """
    listed = url_list(urls)
    array, texts = native_urls(listed)
    collected = _Collected()
    error = ffi.new("shf_error *")
    native = native_options(option_texts(options, listed))
    signals = Signals(native)
    failed = lib.shf_expand_urls(array, len(texts), native, lib.python_url, collected.handle, error)
    signals.raise_exception()
    collected.raise_exception()
    if failed:
        raise error_from(error)
    return collected.urls
