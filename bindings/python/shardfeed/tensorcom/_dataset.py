"""What comes in over a connection as a data set of PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.utils.data import IterableDataset

from ._connection import Connection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class TensorcomDataset(IterableDataset):
    """Lists of arrays from `urls` for a DataLoader with batch_size=None.

    Each worker process opens sockets of its own, so `urls` are such that several may read (zsub,
    zrpull).

    length: rows of an epoch; the loop of each process ends then.
    options: those of Connection.
    """

    def __init__(self, urls: str | Sequence[str], length: int, **options: Any) -> None:
        self.urls = urls
        self.length = length
        self.options = options

    def __iter__(self) -> Iterator[list[Any]]:
        """Opens the connection, and closes it at the end."""
        with Connection(
            self.urls, epoch=self.length, total=self.length, **self.options
        ) as connection:
            yield from connection

    def __len__(self) -> int:
        """`length`."""
        return self.length
