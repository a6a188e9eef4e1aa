"""Samples of many shards by number, for DataLoader."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from torch.utils.data import Dataset as _TorchDataset
from torch.utils.data import get_worker_info

from .. import Dataset as _Samples
from .._integration import leave_warnings_to_others, log_to_logging
from ._epochs import Epochs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import SupportsIndex, Unpack

    from .. import Sample
    from .._integration import DatasetOptions, Log, Opener, URLs


_NEVER_SET = 2**64 - 1


class Dataset(_TorchDataset[Any]):
    """The samples of many shards, as a map-style data set: shardfeed.Dataset for DataLoader.

    An item is what `transform` makes of a shardfeed.Sample, whose fields are read-only views; or,
    without one, a dict with a copy of each field: name -> bytes.

    Use it with any number of workers and any start method of them: a forked worker continues with
    the open shards, others open them again. Workers share the table of samples, so their memory
    does not grow with use. Batches are fetched with one call.

    When `transform` crops or flips at random, with sample.decode("jpg:image/crop=random:224x224"),
    call set_epoch(epoch) before each epoch: it reaches workers that run already
    (persistent_workers=True) too. Without it every epoch has the same crops.
    """

    def __init__(
        self,
        urls: URLs,
        transform: Callable[[Sample], Any] | None = None,
        *,
        log: Log | None = log_to_logging,
        opener: Opener | None = None,
        **options: Unpack[DatasetOptions],
    ) -> None:
        self.transform = transform
        self._samples = _Samples(urls, log=log, opener=opener, **options)
        # That of the samples underneath; to ask them for it would be a call more for each item.
        self._epoch_set = self._samples.epoch if "epoch" in options else _NEVER_SET
        # In memory that workers share, also those that were started before set_epoch().
        self._epoch = Epochs(self._epoch_set)

    @property
    def samples(self) -> _Samples:
        """The shardfeed.Dataset underneath."""
        return self._samples

    def set_epoch(self, epoch: int) -> None:
        """Makes random crops and flips those of this epoch, here and in all workers."""
        self._samples.set_epoch(epoch)
        self._epoch_set = self._samples.epoch
        self._epoch.set(self._epoch_set)

    @property
    def epoch(self) -> int:
        """The epoch that random crops and flips are of."""
        return self._current().epoch

    def _current(self) -> _Samples:
        """The samples, as of the epoch that set_epoch() said in any process."""
        epoch = self._epoch.peek()
        if epoch != _NEVER_SET:
            if epoch != self._epoch_set:
                self._samples.set_epoch(epoch)
                self._epoch_set = epoch
        elif (worker := get_worker_info()) is not None and worker.id > 0:
            leave_warnings_to_others()
        return self._samples

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: SupportsIndex) -> Any:
        return self._item(self._current()[operator.index(index)])

    def __getitems__(self, indices: Sequence[SupportsIndex]) -> list[Any]:
        """Many items with one call, as DataLoader asks for them."""
        return list(map(self._item, self._current().get_many(indices)))

    def _item(self, sample: Sample) -> Any:
        return sample.to_dict() if self.transform is None else self.transform(sample)

    def __repr__(self) -> str:
        return f"<shardfeed.torch.Dataset {len(self)} items of {self._samples!r}>"
