"""Shards of many tasks that appear together."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Union

from .. import Shard, UsageError, Writer
from ._prepared import PreparedShards

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_REFUSED = (
    "index_for",
    "wids_index",
    "index_dir",
    "overwrite",
    "first_shard",
    "keep_partial",
    "prepare",
)
# How often a folder is removed that others write into, with 10 ms in between.
_REMOVALS = 100


def shards_together(
    output: str | os.PathLike[str],
    max_samples: int,
    encoder: Any,
    writer: Mapping[str, Any] | None,
) -> ShardsTogether:
    """What makes shards of many tasks appear together, with the settings of their writers."""
    for name in _REFUSED:
        if name in (writer or {}):
            raise UsageError(
                f"writer: the option {name} is not for shards that appear together; help: "
                "leave it out"
            )
    pattern = os.fspath(output)
    if "://" in pattern:
        return PreparedShards.of(pattern, max_samples, encoder, dict(writer or {}))
    return Staging.of(pattern, max_samples, encoder, writer)


@dataclass(frozen=True)
class Staging:
    """A folder beside the outputs, where shards are until all of them are written."""

    pattern: str
    folder: str
    max_samples: int
    encoder: Any
    options: dict[str, Any]

    @staticmethod
    def of(
        output: str | os.PathLike[str],
        max_samples: int,
        encoder: Any,
        writer: Mapping[str, Any] | None,
    ) -> Staging:
        """For shards that a pattern names, with the settings of their writers."""
        pattern, options = os.fspath(output), dict(writer or {})
        try:
            if pattern % 0 == pattern % 1:
                raise ValueError("no number")
        except (TypeError, ValueError):
            raise UsageError(
                f"the output {pattern!r} is no pattern; help: give one with one number, such as "
                '"out/%06d.tar"'
            ) from None
        folder, name = os.path.split(os.path.abspath(pattern))
        run = f".{name.replace('%', '')}.{uuid.uuid4().hex}.partial"
        return Staging(
            os.path.join(folder, name), os.path.join(folder, run), max_samples, encoder, options
        )

    def make(self) -> None:
        """Makes the folder, before any task begins."""
        os.makedirs(self.folder, exist_ok=True)

    def writer(self, task: int) -> Writer:
        """The writer of one attempt of a task, which finds nothing that another one has left.

        It fails where the folder was removed: the run has ended, and nobody wants what it writes.
        """
        attempt = f"{self.folder}/{task:09d}-{uuid.uuid4().hex}"
        suffix = self.pattern[self.pattern.rindex("%") :].partition("d")[2]
        return Writer(
            lambda number: f"{attempt}-{number:09d}{suffix}",
            max_samples=self.max_samples,
            encoder=self.encoder,
            **self.options,
        )

    def publish(self, made: Sequence[Shard]) -> list[Shard]:
        """Gives the shards their names, in the order of tasks: all of them, or none.

        The folder is removed, also after an error.
        """
        moved: list[str] = []
        published = []
        try:
            for number, shard in enumerate(sorted(made, key=lambda shard: shard.url)):
                name = self.pattern % number
                index = None if shard.index is None else name + shard.index[len(shard.url) :]
                # The index first: a shard that is there has its index then.
                for source, target in ((shard.index, index), (shard.url, name)):
                    if source is not None and target is not None:
                        os.link(source, target)
                        moved.append(target)
                published.append(replace(shard, url=name, index=index))
        except OSError as error:
            for path in moved:
                with suppress(OSError):
                    os.unlink(path)
            if isinstance(error, FileExistsError):
                raise UsageError(
                    f"{error.filename2}: it is there already, and nothing is overwritten; help: "
                    "remove it, or give another name"
                ) from error
            raise
        finally:
            self.remove()
        return published

    def remove(self) -> None:
        """Removes the folder, with what attempts have left that did not end.

        Attempts may still run, on other machines too. Under the name that they know they find no
        folder, and what they make in it meanwhile is removed as well.
        """
        removed = f"{self.folder}.removed"
        try:
            os.rename(self.folder, removed)
        except FileNotFoundError:
            return
        except OSError:
            removed = self.folder  # of a file system that does not rename what is in use
        for _ in range(_REMOVALS):
            shutil.rmtree(removed, ignore_errors=True)
            if not os.path.lexists(removed):
                break
            time.sleep(0.01)


ShardsTogether = Union[Staging, PreparedShards]
