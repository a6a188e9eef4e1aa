"""Batches of arrays, and samples, as messages of ZeroMQ: those of tensorcom and of tarp.

    with shardfeed.tensorcom.Connection("zpush://trainer:7880") as sender:
        for batch in stream.batches(64):
            sender.send([batch["jpg"].numpy(), batch["cls"].numpy().astype("int32")])

    for images, classes in shardfeed.tensorcom.Connection("zpull://0.0.0.0:7880", total=60_000):
        ...

Eight schemes name the socket and who waits for whom: zpush, zpull, zpub, zsub, and the same with r
(zrpush, ...), in which the other side binds. `zpush+ipc:///run/feed` takes another transport than
tcp. Programs that use the package tensorcom, or tarp, can be at the other end.

The messages have no numbers and no receipts. So nothing here says whether a message was lost with a
sender that died, and no stream resumes from it; sockets of zpub drop messages of slow receivers.
There is no encryption either: this is for networks whose machines trust each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._connection import Connection
from ._samples import SampleReceiver, SampleSender
from ._sockets import Address

if TYPE_CHECKING:
    from ._dataset import TensorcomDataset

__all__ = ["Address", "Connection", "SampleReceiver", "SampleSender", "TensorcomDataset"]


def __getattr__(name: str) -> Any:
    if name == "TensorcomDataset":  # imports torch
        from ._dataset import TensorcomDataset

        return TensorcomDataset
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
