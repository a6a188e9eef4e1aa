"""A dict that keeps what was used last."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class LRUCache:
    """A mapping of at most `capacity` entries. The one that was used longest ago is dropped, and
    release_handler(key, value) called with it.
    """

    def __init__(
        self, capacity: int, release_handler: Callable[[Any, Any], Any] | None = None
    ) -> None:
        self.capacity = capacity
        self.cache: OrderedDict[Any, Any] = OrderedDict()
        self.release_handler = release_handler

    def _release(self, key: Any, value: Any) -> None:
        if self.release_handler is not None:
            self.release_handler(key, value)

    def __getitem__(self, key: Any) -> Any:
        """The value of a key; None without one."""
        if key not in self.cache:
            return None
        self.cache.move_to_end(key)
        return self.cache[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.cache[key] = value
        self.cache.move_to_end(key)
        if len(self.cache) > self.capacity:
            self._release(*self.cache.popitem(last=False))

    def __delitem__(self, key: Any) -> None:
        if key in self.cache:
            self._release(key, self.cache.pop(key))

    def __len__(self) -> int:
        return len(self.cache)

    def __contains__(self, key: Any) -> bool:
        return key in self.cache

    def items(self) -> Any:
        """Keys with their values."""
        return self.cache.items()

    def keys(self) -> Any:
        """All keys, the one used last at the end."""
        return self.cache.keys()

    def values(self) -> Any:
        """All values."""
        return self.cache.values()

    def clear(self) -> None:
        """Drops all entries."""
        while self.cache:
            self._release(*self.cache.popitem(last=False))

    def __del__(self) -> None:
        self.clear()
