"""Samples of many shards by number, for DataLoader."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from torch.utils.data import Dataset as _TorchDataset

from .._dataset import Dataset as _Samples
from .._log import log_to_logging

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import SupportsIndex, Unpack

    from .._log import Log
    from .._native import DatasetOptions
    from .._sample import Sample
    from .._urls import URLs


class Dataset(_TorchDataset[Any]):
    """The samples of many shards, as a map-style data set: shardfeed.Dataset for DataLoader.

    An item is what `transform` makes of a shardfeed.Sample, whose fields are read-only views; or,
    without one, a dict with a copy of each field: name -> bytes.

    Use it with any number of workers and any start method of them: a forked worker goes on with
    the open shards, others open them again. Workers share the table of samples, so their memory
    does not grow with use. Batches are fetched with one call.
    """

    def __init__(
        self,
        urls: URLs,
        transform: Callable[[Sample], Any] | None = None,
        *,
        log: Log | None = log_to_logging,
        **options: Unpack[DatasetOptions],
    ) -> None:
        self.transform = transform
        self._samples = _Samples(urls, log=log, **options)

    @property
    def samples(self) -> _Samples:
        """The shardfeed.Dataset underneath."""
        return self._samples

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: SupportsIndex) -> Any:
        return self._item(self._samples[operator.index(index)])

    def __getitems__(self, indices: Sequence[SupportsIndex]) -> list[Any]:
        """Many items with one call, as DataLoader asks for them."""
        return list(map(self._item, self._samples.get_many(indices)))

    def _item(self, sample: Sample) -> Any:
        return sample.to_dict() if self.transform is None else self.transform(sample)

    def __repr__(self) -> str:
        return f"<shardfeed.torch.Dataset {len(self)} items of {self._samples!r}>"
