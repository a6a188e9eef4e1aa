"""Shards of many tasks in a store, that appear together."""

from __future__ import annotations

import re
import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .. import (
    Error,
    PublishError,
    Shard,
    UsageError,
    Writer,
    discard_left,
    discard_prepared,
    options,
    publish_prepared,
)
from .._integration import redacted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_SCHEMES = ("s3", "gs", "az", "abfs", "abfss")
# A pattern with one number.
_PATTERN = re.compile(r"((?:[^%]|%%)*)(%\d*d)((?:[^%]|%%)*)")


@dataclass
class PreparedShards:
    """Tasks upload shards and complete nothing; the driver completes all of them at the end.

    An upload is for one name, so tasks need names before it is known how many shards there are:
    "s3://bucket/%06d.tar" becomes s3://bucket/TASK-NUMBER.tar, both as %06d.
    """

    names: str
    """A pattern with two numbers: of the task, and of its shard."""
    max_samples: int
    encoder: Any
    options: dict[str, Any]
    ended: bool = field(default=False)
    """Nothing is left, or what is left is the caller's, who may still publish it."""

    @staticmethod
    def of(pattern: str, max_samples: int, encoder: Any, writer: dict[str, Any]) -> PreparedShards:
        scheme = pattern.partition("://")[0]
        if scheme not in _SCHEMES:
            raise UsageError(
                f"{redacted(pattern)}: shards cannot appear together there; help: write to "
                f"{', '.join(f'{known}://' for known in _SCHEMES)} or to a file system that all "
                "machines share, or use shardfeed.map_shards"
            )
        found = _PATTERN.fullmatch(pattern)
        if found is None:
            raise UsageError(
                f"the output {pattern!r} is no pattern; help: give one with one number, such as "
                '"s3://bucket/%06d.tar"'
            )
        start, number, end = found.groups()
        return PreparedShards(f"{start}{number}-{number}{end}", max_samples, encoder, writer)

    def make(self) -> None:
        """Before any task begins: nothing has to be there."""

    def writer(self, task: int) -> Writer:
        """The writer of one attempt of a task. Attempts of a task do not disturb one another."""
        return _PreparingWriter(
            self,
            _Names(self.names, task),
            max_samples=self.max_samples,
            encoder=self.encoder,
            prepare=True,
            **self.options,
        )

    def publish(self, made: Sequence[Shard]) -> list[Shard]:
        """Makes the shards appear. PublishError when some have and others have not.

        When none has, all are removed.
        """
        shards = sorted(made, key=lambda shard: shard.url)
        try:
            publish_prepared(shards, **self._options)
        except PublishError as error:
            if error.published:
                self.ended = True
                raise
            with suppress(Error):  # one that has another's name: nothing appeared
                discard_prepared(shards, **self._options)
            self.remove()
            raise (error.__cause__ or error) from None
        except BaseException:  # an interrupt, when some have appeared: all of them do
            self.ended = True
            publish_prepared(shards, **self._options)
            raise
        self.remove()
        return [replace(shard, token=None) for shard in shards]

    def remove(self) -> None:
        """Removes what attempts have left that died, or all of a run that failed."""
        if self.ended:
            return
        self.ended = True
        try:
            discard_left(self.names, **self._options)
        except Error as error:
            warnings.warn(
                f"uploads that did not become shards may be left: {error}",
                ResourceWarning,
                stacklevel=2,
            )

    @property
    def _options(self) -> dict[str, Any]:
        """Those of the library: a writer takes others too."""
        known = {option["name"] for option in options() if "writer" in option["openers"].split()}
        return {name: value for name, value in self.options.items() if name in known}


@dataclass(frozen=True)
class _Names:
    """The name of each shard of a task."""

    pattern: str
    task: int

    def __call__(self, number: int) -> str:
        return self.pattern % (self.task, number)


class _PreparingWriter(Writer):
    """A writer of which nothing is left when its task fails."""

    def __init__(self, run: PreparedShards, name: _Names, **options: Any) -> None:
        super().__init__(name, **options)
        self._run = run

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            super().__exit__(kind, exception, traceback)
            if exception is None and self._run.ended:  # of a task in a thread of the driver
                raise UsageError("the run has ended, and nobody wants its shards any more")
        except BaseException:
            self._discard()
            raise
        if exception is not None:
            self._discard()

    def _discard(self) -> None:
        with suppress(Error):  # the driver removes it
            discard_prepared(self.shards, **self.options)  # type: ignore[arg-type]
