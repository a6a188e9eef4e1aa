"""PyTorch, only where the program has it: importing it takes seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterable
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


def register() -> None:
    """Makes the data sets of this package those of PyTorch, if that is in the process."""
    module = sys.modules.get("torch.utils.data.dataset")
    theirs: Any = getattr(module, "IterableDataset", None)
    if theirs is not None and id(theirs) not in _registered:
        _registered.add(id(theirs))
        theirs.register(IterableDataset)


class IterableDataset(Iterable[Any]):
    """A data set that torch.utils.data.DataLoader takes for an IterableDataset of its own.

    It is a virtual subclass, so that this package needs no PyTorch. Whoever asks isinstance() asks
    for __class__ first: a data set that is older than the import of PyTorch is registered then.
    """

    @property
    def __class__(self) -> Any:
        register()
        return type(self)

    @__class__.setter
    def __class__(self, cls: type) -> None:
        _own_class.__set__(self, cls)

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
