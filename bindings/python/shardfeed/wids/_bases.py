"""What data sets and samplers are derived from: the classes of PyTorch where a program has it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)

if TYPE_CHECKING:

    class Dataset(Generic[T_co]):
        """torch.utils.data.Dataset."""

    class Sampler(Generic[T_co]):
        """torch.utils.data.Sampler."""

else:
    # Importing PyTorch takes seconds, and a loader takes anything with a length and items.
    _data: Any = sys.modules.get("torch.utils.data")

    class _Plain(Generic[T_co]):
        pass

    Dataset = getattr(_data, "Dataset", _Plain)
    Sampler = getattr(_data, "Sampler", _Plain)

__all__ = ["Dataset", "Sampler"]
