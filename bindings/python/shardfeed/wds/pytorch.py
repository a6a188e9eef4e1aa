"""The classes of PyTorch that programs take from here; stand-ins where it is not installed."""

from __future__ import annotations

from typing import Any

from . import _torch


class _NoTensor:
    """The type of no value: there is no PyTorch."""


class _NoLoader:
    """Says what is missing."""

    def __init__(self, *args: Any, **kw: Any) -> None:
        raise ModuleNotFoundError(
            "a loader needs PyTorch; help: pip install torch, or iterate over the data set itself",
            name="torch",
        )


def __getattr__(name: str) -> Any:
    if name == "TorchTensor":
        try:
            from torch import Tensor
        except ImportError:
            return _NoTensor
        return Tensor
    if name == "default_convert":
        return _torch.real(name)
    if name == "DataLoader":
        return _torch.real(name) or _NoLoader
    if name == "IterableDataset":
        return _torch.real(name) or _torch.IterableDataset
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
