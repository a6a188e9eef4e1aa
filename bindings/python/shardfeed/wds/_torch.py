"""PyTorch, only where the program has it: importing it takes seconds."""

from __future__ import annotations

import sys
from abc import ABCMeta
from collections.abc import Iterable
from copyreg import __newobj__ as newobj  # type: ignore[attr-defined]
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

_own_class: Any = object.__dict__["__class__"]
_registered: set[int] = set()  # the ids of the classes of PyTorch that know of ours


def loaded() -> ModuleType | None:
    """PyTorch, if the program has imported it."""
    return sys.modules.get("torch")


def is_tensor(value: object) -> bool:
    """Whether it is a tensor. Without PyTorch in the process nothing is one."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _theirs() -> Any:
    """The class IterableDataset of PyTorch, if the program has imported it."""
    return getattr(sys.modules.get("torch.utils.data.dataset"), "IterableDataset", None)


def register() -> None:
    """Makes the data sets of this package those of PyTorch, if that is in the process."""
    theirs = _theirs()
    if isinstance(theirs, ABCMeta) and id(theirs) not in _registered:
        _registered.add(id(theirs))
        theirs.register(IterableDataset)  # type: ignore[type-abstract]


@cache
def _joined(ours: type, theirs: type) -> type:
    """A class that is both."""
    bases: Any = (ours, theirs)
    return ABCMeta(ours.__name__, bases, {"__module__": ours.__module__})


def _new(cls: Any) -> Any:
    return cls.__new__(cls)


class IterableDataset(Iterable[Any]):
    """A data set that torch.utils.data.DataLoader takes for an IterableDataset of its own.

    It is a virtual subclass, so that this package needs no PyTorch. Whoever asks isinstance() asks
    for __class__ first: a data set that is older than the import of PyTorch is registered then.
    Before PyTorch 2.4 that class knows of no virtual ones: __class__ is then one of both.
    """

    @property
    def __class__(self) -> Any:
        register()
        cls, theirs = type(self), _theirs()
        if theirs is None or isinstance(theirs, ABCMeta) or issubclass(cls, theirs):
            return cls
        return _joined(cls, theirs)

    @__class__.setter
    def __class__(self, cls: type) -> None:
        _own_class.__set__(self, cls)

    def __reduce_ex__(self, protocol: Any) -> Any:
        reduced: Any = super().__reduce_ex__(max(int(protocol), 2))
        made, *rest = reduced
        # The usual function asks for an object whose __class__ is its type.
        return (_new if made is newobj else made, *rest)

    def __add__(self, other: Any) -> Any:
        from torch.utils.data import ChainDataset

        return ChainDataset([self, other])


def real(name: str) -> Any:
    """IterableDataset, DataLoader or default_convert of PyTorch; None without it."""
    try:
        from torch.utils import data
    except ImportError:
        return None
    register()
    return getattr(data, name)
