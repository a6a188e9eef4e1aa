"""What streams, archives and datasets have in common: they were opened with options, and close."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


class Recipe(ABC):
    """Something that is opened from what it was given, and closed at the end of a with block."""

    _options: dict[str, str]
    _closed: bool

    @abstractmethod
    def close(self) -> None: ...

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def options(self) -> dict[str, str]:
        """The options that were given, as the library takes them."""
        return dict(self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
