"""Streams and loaders as nodes of torchdata.nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdata.nodes import BaseNode

    from ._loader import Loader
    from ._stream import Stream


def node(source: Stream | Loader) -> BaseNode[Any]:
    """A stream or loader as a node of torchdata.nodes, which saves and restores its state.

    As the root of a torchdata.nodes.Loader, or the source of a Batcher, Prefetcher, ParallelMapper:
    Loader(Prefetcher(shardfeed.torch.node(stream), 4)). Every reset() of it without a state is the
    next epoch.
    """
    try:
        from torchdata.nodes import BaseNode
    except ModuleNotFoundError as missing:
        if missing.name not in ("torchdata", "torchdata.nodes"):
            raise
        raise ModuleNotFoundError(
            "node() needs torchdata 0.10; help: pip install torchdata", name=missing.name
        ) from None
    if not hasattr(source, "load_state_dict"):
        raise UsageError(f"{source!r} is no stream; help: give a Stream or what loader() makes")

    class Node(BaseNode[Any]):
        """The items of a stream or loader."""

        _items: Iterator[Any]

        def reset(self, initial_state: dict[str, Any] | None = None) -> None:
            super().reset(initial_state)
            if initial_state is not None:
                source.load_state_dict(initial_state)
            self._items = iter(source)

        def next(self) -> Any:
            return next(self._items)

        def get_state(self) -> dict[str, Any]:
            return source.state_dict()

    return Node()
