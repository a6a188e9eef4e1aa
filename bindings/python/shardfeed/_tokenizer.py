"""Tokenizers: functions of the program that make tokens of texts, for the option pack."""

from __future__ import annotations

import operator
import weakref
from array import array
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any

from ._errors import UsageError, error_from, keep_failure, keep_sample_failure
from ._native import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import TypedDict, Union

    from typing_extensions import TypeAlias

    from ._native import BatchOptions, MixOptions, StreamOptions, _CData

    # A function of a list of texts, an object with encode_batch(), or "module:function".
    Tokenizer: TypeAlias = Union[Callable[[list[str]], Iterable[Any]], str, Any]

    class TokenizerOptions(TypedDict, total=False):
        """What streams and batches() take: see Stream.batches()."""

        tokenizer: Tokenizer | None
        eos: int | None

    class StreamKeywords(StreamOptions, TokenizerOptions, total=False):
        """The options of a stream, and its tokenizer."""

    class MixKeywords(MixOptions, TokenizerOptions, total=False):
        """The options of a mix, and its tokenizer."""

    class BatchKeywords(BatchOptions, TokenizerOptions, total=False):
        """The options of batches, and their tokenizer."""


_MOST = 2**31 - 1  # tokens are int32
_locks: list[tuple[weakref.ref[Any], Lock]] = []
_locks_lock = Lock()
_LONGEST = 500  # characters of a message
_ROOM = 1007  # bytes of shf_error.message, without the NUL


@dataclass(frozen=True)
class TextTokenizer:
    """A tokenizer as the program gave it, and the token behind each text."""

    given: Any  # see Tokenizer
    eos: int | None


def taken_tokenizer(
    options: dict[str, Any], before: TextTokenizer | None = None
) -> TextTokenizer | None:
    """Takes what TokenizerOptions has out of some options; `before` is what holds without them."""
    given = options.pop("tokenizer", before.given if before else None)
    eos = options.pop("eos", before.eos if before else None)
    if given is None:
        if eos is not None and before is None:
            raise UsageError(
                "eos: the token behind each text, and there is no tokenizer; help: give tokenizer="
                ", or leave out eos"
            )
        return None
    if not (isinstance(given, str) or callable(given) or hasattr(given, "encode_batch")):
        raise TypeError(
            f"tokenizer: a function expected, not {type(given).__qualname__}; help: give one that "
            "takes a list of texts and gives a list of token lists, a tokenizer of the packages "
            'tokenizers or transformers, or "module:function"'
        )
    if eos is not None:
        eos = operator.index(eos)
        if not -_MOST - 1 <= eos <= _MOST:
            raise UsageError(f"eos: {eos} has more than 32 bits; help: give the number of a token")
    return TextTokenizer(given, eos)


def function_named(name: str) -> Callable[..., Any]:
    """The function that "module:function" names."""
    module, _, path = name.partition(":")
    if not module or not path:
        raise UsageError(f"{name!r} names no function; help: give module:function")
    found: Any = import_module(module)
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UsageError(
                f"the module {module} has no {path}; help: give module:function"
            ) from None
    return found  # type: ignore[no-any-return]


def set_tokenizer(native: _CData, tokenizer: TextTokenizer | None) -> None:
    """Makes it make tokens for what is opened with these options; None: nothing to do."""
    if tokenizer is None:
        return
    server = _Server(tokenizer)
    _alive.add(server)
    error = ffi.new("shf_error *")
    if lib.python_set_tokenizer(native, server.handle, error):
        _alive.discard(server)
        raise error_from(error)


class _WrongTokensError(Exception):
    """A tokenizer gave what are no tokens."""


class _Server:
    """A tokenizer, as the library has it. Several threads call it at once."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        given = tokenizer.given
        function = function_named(given) if isinstance(given, str) else given
        self._eos = tokenizer.eos
        self._function, self._turn = _function_of(function)
        self.handle = ffi.new_handle(self)

    def tokens_of(self, texts: list[str]) -> tuple[array[int], array[int]]:
        """The tokens of all texts, one text after another, and how many each has."""
        with self._turn:
            made = self._function(texts)
        if hasattr(made, "keys"):
            if "input_ids" not in made:
                raise _WrongTokensError(
                    f'gave a {type(made).__qualname__} without "input_ids"; help: a list with a '
                    "list of tokens for each text is expected"
                )
            made = made["input_ids"]
        if isinstance(made, str) or not hasattr(made, "__iter__"):
            raise _WrongTokensError(
                f"gave a {type(made).__qualname__}; help: a list with a list of tokens for each "
                "text is expected"
            )
        ids, counts = array("i"), array("Q")
        for sequence in made:
            before = len(ids)
            _append(ids, sequence)
            if self._eos is not None:
                ids.append(self._eos)
            counts.append(len(ids) - before)
        if len(counts) != len(texts):
            raise _WrongTokensError(
                f"gave {len(counts)} sequences of tokens for {len(texts)} "
                f"text{'s' * (len(texts) != 1)}; help: it is called with a list of texts, and a "
                "list with a list of tokens for each is expected"
            )
        return ids, counts


def _function_of(given: Any) -> tuple[Callable[..., Any], AbstractContextManager[Any]]:
    """What is called with a list of texts, and what is held for the time of the call."""
    if hasattr(given, "encode_batch"):  # of the packages tokenizers and tiktoken
        if isinstance(getattr(given, "padding", None), dict):
            raise UsageError(
                "tokenizer: it pads texts to one length, and pads would be packed as tokens; help: "
                "call its no_padding()"
            )
        # The fast one is without the places of tokens in their texts.
        return getattr(given, "encode_batch_fast", given.encode_batch), nullcontext()
    if hasattr(given, "convert_tokens_to_ids"):
        # One of transformers: a call changes it, so that another one must wait.
        return _of_transformers(given), _lock_of(given)
    return given, nullcontext()


def _lock_of(tokenizer: Any) -> Lock:
    """One for each tokenizer, which several streams may have."""
    with _locks_lock:
        for other, lock in _locks:
            if other() is tokenizer:
                return lock
        _locks[:] = [(other, lock) for other, lock in _locks if other() is not None]
        _locks.append((weakref.ref(tokenizer), Lock()))
        return _locks[-1][1]


def _of_transformers(tokenizer: Any) -> Callable[[list[str]], Any]:
    def call(texts: list[str]) -> Any:
        return tokenizer(
            texts, return_attention_mask=False, return_token_type_ids=False, verbose=False
        )

    return call


def _append(ids: array[int], sequence: Any) -> None:
    """Adds the tokens of a text."""
    sequence = getattr(sequence, "ids", sequence)  # of an Encoding
    if hasattr(sequence, "__array__"):
        import numpy

        numbers = numpy.asarray(sequence)
        if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and numbers.size > 0):
            raise _WrongTokensError(
                f"gave an array of {numbers.dtype} {numbers.shape}; help: the tokens of a text are "
                "an array of one dimension, of whole numbers"
            )
        if numbers.size > 0 and not (numbers.min() >= -_MOST - 1 and numbers.max() <= _MOST):
            raise _out_of_range(numbers.tolist())
        ids.frombytes(numbers.astype(numpy.int32).tobytes())
        return
    try:
        if isinstance(sequence, list):
            ids.fromlist(sequence)
        else:
            ids.extend(iter(sequence))  # arrays of other types, too
    except OverflowError:
        raise _out_of_range(sequence) from None
    except TypeError:
        raise _WrongTokensError(
            f"gave {_odd(sequence)}; help: the tokens of a text are a list of whole numbers"
        ) from None


def _out_of_range(tokens: Iterable[int]) -> _WrongTokensError:
    # An iterator has only what comes behind it.
    token = next(
        (token for token in tokens if not -_MOST - 1 <= token <= _MOST), "that is too large"
    )
    return _WrongTokensError(f"gave the token {token}; help: tokens are numbers of 32 bits (int32)")


def _odd(sequence: Any) -> str:
    """What in a sequence is no token."""
    if not hasattr(sequence, "__iter__"):
        return f"{type(sequence).__qualname__} for a text"
    odd = next((one for one in sequence if not hasattr(one, "__index__")), sequence)
    return f"{type(odd).__qualname__} among the tokens of a text"


# Kept for the library, which has their handles.
_alive: set[_Server] = set()


# ---- What the library calls ----


def _keep(raised: BaseException, text: _CData | None, error: _CData) -> int:
    """Says what was raised; with a text that it was called with alone, also for error_from()."""
    if isinstance(raised, _WrongTokensError):
        said = f"the tokenizer {raised}"
    else:
        try:
            said = f"the tokenizer raised {type(raised).__qualname__}: {raised}"
        except Exception:
            said = f"the tokenizer raised {type(raised).__qualname__}"
        said = " ".join(said.split())[:_LONGEST].rstrip(": ").replace("; help: ", "; ")
        said += "; help: see the traceback of the cause"
        said += ", or leave such samples out with on_error=skip_sample"
    data = said.encode("utf-8", "backslashreplace").replace(b"\0", b"")[:_ROOM]
    ffi.memmove(error.message, data, len(data))
    if not isinstance(raised, Exception):
        error.os_error = keep_failure(raised)
        return int(lib.SHF_E_CANCELLED)
    if text is not None:
        cause = None if isinstance(raised, _WrongTokensError) else raised
        error.os_error = keep_sample_failure(cause, _text(text.url), _text(text.key))
    return int(lib.SHF_E_NOMEM if isinstance(raised, MemoryError) else lib.SHF_E_FORMAT)


def _text(data: _CData) -> str:
    return str(ffi.buffer(data.data, data.size), "utf-8", "surrogateescape")


def _keep_early(
    kind: type[BaseException], raised: BaseException, traceback: TracebackType | None
) -> int:
    # What comes before the first line of a function, where it cannot catch it.
    if traceback is None:  # of cffi, for what a function returned
        return int(lib.SHF_E_INTERNAL)
    return _keep(raised, None, traceback.tb_frame.f_locals["error"])


@ffi.def_extern(error=lib.SHF_E_CANCELLED, onerror=_keep_early)
def python_tokenize(ctx: _CData, texts: _CData, count: int, tokens: _CData, error: _CData) -> int:
    try:
        server: _Server = ffi.from_handle(ctx)
        given = [_text(texts[number].text) for number in range(count)]
        ids, counts = server.tokens_of(given)
        return int(
            lib.shf_tokens_add(
                tokens,
                ffi.from_buffer("int32_t[]", ids),
                ffi.from_buffer("uint64_t[]", counts),
                count,
                error,
            )
        )
    except BaseException as raised:
        given, ids, counts = [], array("i"), array("Q")  # which the traceback would keep
        return _keep(raised, texts[0] if count == 1 else None, error)


def _ignore(kind: type[BaseException], raised: BaseException, traceback: TracebackType) -> None:
    """Nobody takes an exception of a release."""


@ffi.def_extern(onerror=_ignore)
def python_tokenizer_release(ctx: _CData) -> None:
    _alive.discard(ffi.from_handle(ctx))
