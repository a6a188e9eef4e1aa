"""What a program may say about the engine below its pipelines."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# Options of a stream that members in sequence have too.
_OF_BOTH = ("end_marker", "concat", "trailing", "memory", "max_member", "pipe_timeout", "cache")


@dataclass(frozen=True)
class Settings:
    """Options of the engine, and how many threads work for one pipeline; 0: as many as fit."""

    options: dict[str, Any] = field(default_factory=dict)
    threads: int = 0

    def stream(self) -> dict[str, Any]:
        threads = {"threads": self.threads} if self.threads else {}
        return {**threads, **self.options}

    def members(self) -> dict[str, Any]:
        return {name: value for name, value in self.options.items() if name in _OF_BOTH}


_PLAIN = Settings()
_settings: ContextVar[Settings] = ContextVar("shardfeed.wds", default=_PLAIN)


def settings() -> Settings:
    """Those of the pipeline whose iterator is being made."""
    return _settings.get()


@contextmanager
def using(chosen: Settings | None) -> Iterator[None]:
    """Makes them those of what is called inside; None: no change."""
    if chosen is None:
        yield
        return
    token = _settings.set(chosen)
    try:
        yield
    finally:
        _settings.reset(token)
