"""What streams, archives and datasets have in common, and what archives and datasets have."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from threading import RLock
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakSet

from ._errors import UsageError, error_from

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from ._native import _CData


class Closable(ABC):
    """Something that is open until it is closed, at the latest at the end of a with block."""

    _closed: bool

    @abstractmethod
    def close(self) -> None:
        """Lets go of what is open."""

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._closed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Reopenable(Closable):
    """An archive or a dataset. A copy in another process is opened again when it is first used.

    A holder is a pointer to the handle that has the destructor. Every call has a reference to the
    holder it uses, so close() in another thread ends nothing under it: never `self._opened()[0]` in
    the arguments of a call, which keeps the handle and not the holder.
    """

    _noun: ClassVar[str]
    _none: ClassVar[_CData]  # the holder while nothing is open
    _holder: _CData
    _count: int  # of members or samples; 0 also while nothing is open

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._closed = False
        self._start_unopened()

    def _start_unopened(self) -> None:
        self._holder = self._none
        self._count = 0
        self._opening = RLock()  # so that threads which use a copy at once open it once
        _reopenables.add(self)

    @property
    def options(self) -> dict[str, str]:
        """The options that were given, as the library takes them."""
        return dict(self._options)

    @abstractmethod
    def _open(self) -> tuple[_CData, int]:
        """Opens it: the holder and the count."""

    def _opened(self) -> _CData:
        """The holder, with an open handle in it."""
        holder = self._holder
        return holder if holder is not self._none else self._open_once()

    def _open_once(self) -> _CData:
        with self._opening:
            holder = self._holder
            if holder is self._none:
                self._check_not_closed()
                holder, count = self._open()
                self._check_not_closed()
                self._holder = holder  # before the count: who sees the count uses the holder
                self._count = count
            return holder

    def _check_not_closed(self) -> None:
        if self._closed:
            raise UsageError(f"the {self._noun} is closed")

    def _failure(self, error: _CData) -> Exception:
        return UsageError(f"the {self._noun} is closed") if self._closed else error_from(error)

    def _let_go(self) -> None:
        self._closed = True
        self._count = 0
        self._holder = self._none

    def __getstate__(self) -> dict[str, object]:
        own = ("_holder", "_count", "_opening")
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._start_unopened()


# In this process.
_reopenables: WeakSet[Reopenable] = WeakSet()


def _free_locks_in_child() -> None:
    # A thread that the child does not have may have been opening one.
    for reopenable in _reopenables:
        reopenable._opening = RLock()


os.register_at_fork(after_in_child=_free_locks_in_child)
