"""A Decoder, worked out once for each name of a field."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from . import autodecode
from ._images import ImageHandler
from ._loads import decoders as _own_decoders

if TYPE_CHECKING:
    from collections.abc import Callable

# A decoder whose result is never None, and so never the end of the search for a handler.
_TOTAL = {id(f) for name, f in _own_decoders.items() if name in ("cls", "txt", "npy", "npz")}
_MOST_NAMES = 4096


class _OtherError(Exception):
    """Not the usual case."""


def _kept(value: Any) -> Any:
    return value


class FastDecoder:
    """What Decoder.decode() makes of samples, faster.

    Which handlers a field goes to follows from its name, as long as they are those of this
    package. Whatever is unusual about a sample is left to the decoder itself.
    """

    def __init__(self, decoder: autodecode.Decoder) -> None:
        self.decoder = decoder
        self._functions: dict[str, Callable[[Any], Any]] = {}
        self._passing: set[str] = set()  # names whose values are kept, of whatever type

    def __call__(self, sample: Any) -> Any:
        if type(sample) is not dict:
            return self.decoder.decode(sample)
        functions, passing = self._functions, self._passing
        result = {}
        try:
            for k, v in sample.items():
                if type(v) is bytes:
                    f = functions.get(k)
                    result[k] = self._function(k)(v) if f is None else f(v)
                elif k in passing:
                    result[k] = v
                elif k[:2] == "__":
                    self._add_passing(k)
                    result[k] = v
                else:
                    raise _OtherError
        except Exception:
            return self.decoder.decode(sample)  # says what is wrong
        return result

    def field(self, k: str, v: bytes) -> Any:
        """What becomes of one field."""
        f = self._functions.get(k)
        return self._function(k)(v) if f is None else f(v)

    def _add_passing(self, k: str) -> None:
        if len(self._passing) < _MOST_NAMES:
            self._passing.add(k)

    def _function(self, k: str) -> Callable[[bytes], Any]:
        f = self.function_of(k)
        if len(self._functions) < _MOST_NAMES:
            self._functions[k] = f
        return f

    def function_of(self, k: str) -> Callable[[bytes], Any]:
        """What decodes a field of this name."""
        decoder = self.decoder
        if k[:2] == "__":
            return functools.partial(autodecode._metadata, k)
        if decoder.only is not None and k not in decoder.only:
            return _kept
        first = first_step(decoder, k)
        if first is None:
            return functools.partial(decoder.decode1, k)
        if first is _kept or id(first) in _TOTAL:
            return first
        if isinstance(getattr(first, "__self__", None), ImageHandler):
            return first

        def decode(data: bytes) -> Any:
            value = first(data)
            return decoder.decode1(k, data) if value is None else value

        return decode


def first_step(decoder: autodecode.Decoder, k: str) -> Callable[[bytes], Any] | None:
    """The function that decodes the field k, or _kept; None where only calling them tells.

    Looked for among handlers of this package alone, whose choice follows from the name.
    """
    key = "." + k
    for handler in decoder.handlers:
        kind: Any = handler
        if kind is autodecode.gzfilter:
            if key.endswith(".gz"):
                return None
        elif kind is autodecode.basichandlers:
            found = autodecode.decoders.get(key[key.rfind(".") + 1 :])
            if found is not None:
                known = _own_decoders.get(key[key.rfind(".") + 1 :])
                return found if found is known else None
        elif type(kind) is ImageHandler:
            if kind.wants(key):
                return kind.image
        elif (
            type(kind) is functools.partial
            and kind.func is autodecode.call_extension_handler
            and not kind.args
        ):
            if autodecode._has_extension(key, kind.keywords["extensions"]):
                return None
        else:
            return None
    return _kept


def fast(function: Any) -> Any:
    """A FastDecoder in place of a Decoder; anything else as it is."""
    if type(function) is not autodecode.Decoder:
        return function
    own = ("decode", "decode1", "__call__")
    if any(name in vars(function) for name in own):
        return function
    return FastDecoder(function)
