"""Options by name: the library's table is read, never copied."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from ._errors import UsageError, error_from
from ._native import ffi, lib
from ._storage_options import from_storage_options

if TYPE_CHECKING:
    from ._native import _CData

_FEATURES = (
    *("gzip", "bzip2", "xz", "zstd", "lz4", "lzip", "compress"),
    *(
        "pipe",
        "jpeg",
        "png",
        "webp",
        "gif",
        "tiff",
        "jxl",
        "avif",
        "audio",
        "video",
        "http",
        "libarchive",
    ),
    "feed",
    "feed_http",
)


def _text(pointer: _CData) -> str:
    return ffi.string(pointer).decode("utf-8")


def options() -> list[dict[str, str]]:
    """All options that Stream, mix(), Archive, Dataset and Writer take as keywords, in order.

    Each has "name", "type" ("bool", "count", "bytes", "duration", "choice", "text" or
    "secret", a text that is not shown), "default",
    "range", "openers" (who takes it: some of "stream mix archive dataset writer"), "help" and
    "group".
    """
    properties = {
        "name": lib.SHF_OPTION_NAME,
        "type": lib.SHF_OPTION_TYPE,
        "default": lib.SHF_OPTION_DEFAULT,
        "range": lib.SHF_OPTION_RANGE,
        "openers": lib.SHF_OPTION_OPENERS,
        "help": lib.SHF_OPTION_HELP,
        "group": lib.SHF_OPTION_GROUP,
    }
    described: list[dict[str, str]] = []
    while lib.shf_option_describe(len(described), lib.SHF_OPTION_NAME):
        index = len(described)
        described.append(
            {name: _text(lib.shf_option_describe(index, what)) for name, what in properties.items()}
        )
    return described


@cache
def _defaults() -> dict[str, str]:
    return {option["name"]: option["default"] for option in options()}


def option_default(name: str) -> str:
    """The default of one option, as text."""
    return _defaults()[name]


def features() -> dict[str, str | None]:
    """What the library was built with: feature -> library behind it, None when it is missing."""
    found = {name: lib.shf_feature(name.encode()) for name in _FEATURES}
    return {name: _text(what) if what else None for name, what in found.items()}


@cache
def _secrets() -> frozenset[str]:
    return frozenset(option["name"] for option in options() if option["type"] == "secret")


def shown_options(texts: Mapping[str, str]) -> str:
    """These options as "name=value ...", without secrets."""
    shown = ((name, "..." if name in _secrets() else text) for name, text in texts.items())
    return " ".join(f"{name}={text}" for name, text in shown)


def option_texts(values: Mapping[str, object], urls: Iterable[str] = ()) -> dict[str, str]:
    """The values of keyword arguments as the library takes them: True is "true", 1000 is "1000".

    A Path is its name, a mapping of headers one line for each. `urls`: what storage_options is for;
    options that are given by their own names win.
    """
    if "storage_options" in values:
        own = {name: value for name, value in values.items() if name != "storage_options"}
        values = {**from_storage_options(values["storage_options"], urls), **own}
    return {name: _option_text(name, value) for name, value in values.items()}


def _option_text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else f"{value:.9f}"
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {text}" for key, text in value.items())
    try:
        return str(operator.index(value))  # type: ignore[arg-type]
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"option {name}: bool, int, float or str expected, not {kind}") from None


def native_options(texts: Mapping[str, str], opener: str = "stream") -> _CData:
    """A shf_options with these options of `opener` set.

    TypeError for a name that it does not take, with the one that is meant; UsageError for a bad
    value.
    """
    native = lib.shf_options_new()
    if not native:
        raise MemoryError
    native = ffi.gc(native, lib.shf_options_free)
    error = ffi.new("shf_error *")
    for name, text in texts.items():
        if "\0" in text:
            raise UsageError(f"option {name}: the value has a NUL character")
        encoded = text.encode("utf-8", "surrogateescape")
        failed = lib.shf_options_set(native, name.encode("utf-8", "replace"), encoded, error)
        if name not in _names(opener):
            raise TypeError(_unexpected(name, opener, _text(error.message) if failed else ""))
        if failed:
            raise error_from(error)
    return native


def canonical_text(name: str, texts: Mapping[str, str], opener: str = "stream") -> str:
    """The value of an option of `opener` among these, as a text that is equal for equal values.

    Sizes are bytes, times nanoseconds ("500ns"), "true" or "false".
    """
    native = native_options({name: texts[name]} if name in texts else {}, opener)
    out = ffi.new("shf_bytes *")
    error = ffi.new("shf_error *")
    if lib.shf_options_get(native, name.encode(), out, error):
        raise error_from(error)
    return bytes(ffi.buffer(out.data, out.size)).decode("utf-8", "surrogateescape")


@cache
def _names(opener: str) -> frozenset[str]:
    return frozenset(option["name"] for option in options() if opener in option["openers"].split())


def _unexpected(name: str, opener: str, refusal: str) -> str:
    """What is wrong with an option that `opener` does not take, and that the library refused so."""
    for option in options():
        if option["name"] == name:
            return f'unexpected keyword argument: "{name}" is an option of {option["openers"]} only'
    # The library knows what other loaders call its options, and not who asks.
    nearest = refusal.rpartition('did you mean "')[2].partition('"')[0]
    if nearest not in _names(opener):
        from difflib import get_close_matches  # slow to import, and seldom needed

        nearest = get_close_matches(name, sorted(_names(opener)), 1, 0)[0]
    return f'unexpected keyword argument: unknown option "{name}"; help: did you mean "{nearest}"?'
