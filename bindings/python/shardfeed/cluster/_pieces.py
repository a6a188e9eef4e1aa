"""Pieces: parts of shards that one task of a cluster reads, in batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import Dataset, Stream, UsageError, expand_urls, plan
from ._tasks import options_for, size_of_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .. import Batch
    from .._integration import URLs

_BATCH_BYTES = 8 << 20  # of shards; decoded it is several times that
_MOST_ROWS = 4096
_ROWS = 256  # where nothing says how large samples are


@dataclass(frozen=True)
class Piece:
    """A shard, or some samples of it. Sizes are None where no index and no file says them."""

    url: str
    start: int | None = None
    stop: int | None = None
    """Both are None for the whole shard."""
    samples: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Reading:
    """How pieces are read."""

    decode: str
    columns: tuple[str, ...] | None
    batch: int | None
    reader: dict[str, Any]

    def batches(self, pieces: Iterable[Piece]) -> Iterator[Batch]:
        """The samples of these pieces, decoded, in their order."""
        for piece in pieces:
            if piece.start is None or piece.stop is None:
                yield from self._of_shard(piece)
            else:
                yield from self._of_range(piece, piece.start, piece.stop)

    def _of_shard(self, piece: Piece) -> Iterator[Batch]:
        options: Any = options_for("stream", {**self.reader, "expand": False})
        with Stream(piece.url, **options) as stream:
            yield from stream.batches(self.rows(piece), decode=self.decode)

    def _of_range(self, piece: Piece, start: int, stop: int) -> Iterator[Batch]:
        options: Any = options_for("dataset", {**self.reader, "expand": False})
        rows = self.rows(piece)
        with Dataset(piece.url, **{**options, "decode": self.decode}) as data:
            for first in range(start, stop, rows):
                yield data.batch(range(first, min(first + rows, stop)))

    def rows(self, piece: Piece) -> int:
        """How many rows a batch has: as many as hold a few megabytes of the shard."""
        if self.batch is not None:
            return self.batch
        if not piece.samples or piece.bytes is None:
            return _ROWS
        return max(1, min(_BATCH_BYTES * piece.samples // max(piece.bytes, 1), _MOST_ROWS))

    def names(self, names: Sequence[str]) -> list[str]:
        """The columns that are wanted, of those that there are."""
        if self.columns is None:
            return list(names)
        for name in self.columns:
            if name not in names:
                raise UsageError(
                    f'there is no column "{name}"; help: the columns are {", ".join(names)}'
                )
        return list(self.columns)


def reading_of(
    decode: str, columns: Iterable[str] | None, batch: int | None, reader: Mapping[str, Any] | None
) -> Reading:
    """What callers pass, checked."""
    options = dict(reader or {})
    for name in ("shuffle", "epochs", "epoch_samples", "resample", "rank", "world_size", "batch"):
        if name in options:
            raise UsageError(
                f"reader: the option {name} is not for tasks of a cluster, which read each sample "
                "once; help: shuffle and repeat with the cluster's own means"
            )
    if batch is not None and batch < 1:
        raise UsageError(f"batch={batch}; help: give 1 or more")
    wanted = None if columns is None else tuple(columns)
    return Reading(decode, wanted, batch, options)


def shards_of(urls: URLs, reader: Mapping[str, Any]) -> list[Piece]:
    """All shards, with what indexes and local files say of their sizes."""
    options: Any = options_for("stream", reader)
    expanded = expand_urls(urls, **options)
    alone: Any = {**options, "expand": False}
    found = plan(expanded, **alone).shards if expanded else []
    if any(shard["samples"] is None for shard in found):  # a plan needs the indexes of all shards
        found = [plan(url, **alone).shards[0] for url in expanded]
    return [
        Piece(url, samples=shard["samples"], bytes=shard["bytes"] or size_of_file(url))
        for url, shard in zip(expanded, found)
    ]


def dealt_out(shards: Sequence[Piece], tasks: int) -> list[list[Piece]]:
    """The pieces of at most so many tasks, about the same number of bytes for each.

    In the order of the shards: one task has what follows on that of the one before. A shard is
    divided where its index says how many samples it has.
    """
    known = [shard.bytes for shard in shards if shard.bytes is not None]
    usual = max(sum(known) // len(known), 1) if known else 1
    sizes = [usual if shard.bytes is None else max(shard.bytes, 1) for shard in shards]
    total = sum(sizes)
    groups: list[list[Piece]] = [[] for _ in range(max(tasks, 1))]
    before = 0  # bytes of the shards before this one
    for shard, size in zip(shards, sizes):
        first = before * len(groups) // total
        last = (before + size - 1) * len(groups) // total
        if first == last or not shard.samples:
            middle = (before + size // 2) * len(groups) // total
            groups[middle].append(shard)
        else:
            for task in range(first, last + 1):
                start, stop = (
                    _clamp((edge * total - before * len(groups)) / (size * len(groups)))
                    for edge in (task, task + 1)
                )
                part = _part(shard, start, stop)
                if part is not None:
                    groups[task].append(part)
        before += size
    return [group for group in groups if group]


def _clamp(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _part(shard: Piece, start: float, stop: float) -> Piece | None:
    """From one share of a shard to another."""
    samples = shard.samples or 0
    first, last = round(start * samples), round(stop * samples)
    if first == last:
        return None
    part = None if shard.bytes is None else shard.bytes * (last - first) // samples
    return Piece(shard.url, first, last, last - first, part)
