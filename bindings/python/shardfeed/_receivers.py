"""Functions of the program that receive what the library has to say, and what it skips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ._errors import error_from
from ._native import ffi, lib
from ._opener import set_opener
from ._tokenizer import set_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import TypeAlias

    from ._errors import Error
    from ._native import _CData
    from ._opener import Opener
    from ._tokenizer import TextTokenizer

    Log: TypeAlias = Callable[[int, str], object]

# The numbers of the logging module.
_LEVELS = {lib.SHF_LOG_ERROR: 40, lib.SHF_LOG_WARNING: 30, lib.SHF_LOG_INFO: 20}


def log_to_logging(level: int, message: str) -> None:
    """Passes a message to the logger "shardfeed" of the logging module."""
    import logging  # takes as long to import as all of this package

    logging.getLogger("shardfeed").log(level, "%s", message)


@dataclass(frozen=True)
class Skip:
    """A sample or shard that was skipped under on_error.

    error: what is wrong with it; it is not raised.
    url: of the shard, without secrets.
    key: of the sample; None where no sample is known to be at fault.
    whole_shard: whether the rest of the shard was skipped, and not one sample.
    """

    error: Error
    url: str
    key: str | None
    whole_shard: bool


if TYPE_CHECKING:
    OnSkip: TypeAlias = Callable[[Skip], object]


class Receivers(NamedTuple):
    """The functions of one stream or dataset."""

    log: Log | None = None
    on_skip: OnSkip | None = None
    opener: Opener | None = None
    tokenizer: TextTokenizer | None = None  # of batches


class Callbacks:
    """What functions that the library calls belong to, and what the first of them raised."""

    __slots__ = ("exception", "handle")

    def __init__(self) -> None:
        self.exception: BaseException | None = None
        self.handle: _CData = ffi.new_handle(self)  # the `ctx` of these functions

    def raise_exception(self) -> None:
        """Raises what a function raised: an exception cannot pass through C."""
        exception, self.exception = self.exception, None
        if exception is not None:
            raise exception


def keep_exception(
    kind: type[BaseException], raised: BaseException, traceback: TracebackType
) -> None:
    """The `onerror` of these functions.

    A signal handler may raise before their first line, where they could not catch it.
    """
    callbacks: Callbacks = ffi.from_handle(traceback.tb_frame.f_locals["ctx"])
    if callbacks.exception is None:
        callbacks.exception = raised


class Target(Callbacks):
    """The functions as the library calls them."""

    __slots__ = ("receivers",)

    def __init__(self, receivers: Receivers) -> None:
        super().__init__()
        self.receivers = receivers

    def set(self, native: _CData) -> None:
        """Makes them those of a shf_options. This object has to live as long as what is opened."""
        if self.receivers.log is not None:
            lib.shf_options_set_log(native, lib.SHF_LOG_INFO, lib.python_log, self.handle)
        if self.receivers.on_skip is not None:
            lib.shf_options_set_on_skip(native, lib.python_skip, self.handle)
        set_opener(native, self.receivers.opener)
        set_tokenizer(native, self.receivers.tokenizer)


@ffi.def_extern(onerror=keep_exception)
def python_log(ctx: _CData, level: int, message: _CData) -> None:
    target: Target = ffi.from_handle(ctx)
    text = ffi.string(message).decode("utf-8", "backslashreplace")
    target.receivers.log(_LEVELS.get(level, 20), text)  # type: ignore[misc]


@ffi.def_extern(onerror=keep_exception)
def python_skip(ctx: _CData, native: _CData) -> None:
    target: Target = ffi.from_handle(ctx)
    key = _text(native.key)
    skip = Skip(error_from(native.error), _text(native.url), key or None, bool(native.whole_shard))
    target.receivers.on_skip(skip)  # type: ignore[misc]


def _text(native: _CData) -> str:
    return bytes(ffi.buffer(native.data, native.size)).decode("utf-8", "surrogateescape")
