"""shardfeed for Ray Data: shards as a data set of Arrow blocks, and data sets as shards.

    import ray, shardfeed.ray

    data = shardfeed.ray.read_shards("train-{000..999}.tar", decode="jpg:image/l8, cls:int")
    for batch in data.iter_torch_batches(batch_size=256): ...
    first, second = data.streaming_split(2)     # for two trainers
    shardfeed.ray.write_shards(data.map_batches(small), "small/%06d.tar", max_samples=1000)

Tasks of Ray that run a function on each shard: shardfeed.map_shards(..., executor="ray").

The package does not depend on Ray: only this module imports it (2.40 or later).
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

try:
    import ray.data
    from ray.data import Datasink, Datasource, ReadTask
    from ray.data.block import BlockAccessor, BlockMetadata
except ModuleNotFoundError as missing:
    if missing.name not in ("ray", "pyarrow", "pandas"):
        raise
    raise ModuleNotFoundError(
        "shardfeed.ray needs Ray Data; help: pip install 'shardfeed[ray]'", name=missing.name
    ) from None

from . import Stream
from .cluster._pieces import Piece, Reading, dealt_out, reading_of, shards_of
from .cluster._publish import shards_together

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from . import Shard
    from ._integration import URLs
    from .cluster._publish import ShardsTogether

__all__ = ["ShardsDatasink", "ShardsDatasource", "read_shards", "write_shards"]

_BLOCK = 16 << 20  # bytes in memory of a batch, of which Ray makes larger blocks
_MOST_ROWS = 16384
_TASK = 128 << 20  # bytes in memory that a task reads, where there are enough
_PROBED = 16  # samples that are decoded to know how large the others are


def read_shards(
    urls: URLs,
    *,
    decode: str = "auto",
    columns: Iterable[str] | None = None,
    batch: int | None = None,
    reader: Mapping[str, Any] | None = None,
    override_num_blocks: int | None = None,
    **options: Any,
) -> ray.data.Dataset:
    """A data set of Ray of the samples of shards, decoded: a column for each field, "__key__" and
    "__url__".

    urls, decode: as for Stream and its batches(). columns: those that are wanted, in this order.
    batch: the rows of a batch of the library; by default as many as are 16 MiB in memory. reader:
    options of Stream and Dataset, such as ragged="pad", on_error, or those of a store.

    override_num_blocks: how many tasks read; by default two for each core, and more where they
    would read above 128 MiB. They get about the same number of bytes each. Shards whose index is
    there are divided between tasks, others are read by one task.

    options: those of ray.data.read_datasource: concurrency, num_cpus, memory, ray_remote_args, ...
    """
    source = ShardsDatasource(urls, reading_of(decode, columns, batch, reader))
    if override_num_blocks is None:
        if not ray.is_initialized():
            ray.init()
        override_num_blocks = source.usual_tasks(int(ray.cluster_resources().get("CPU", 1)))
    return ray.data.read_datasource(source, override_num_blocks=override_num_blocks, **options)


class ShardsDatasource(Datasource):
    """What read_shards() reads from."""

    def __init__(self, urls: URLs, reading: Reading) -> None:
        super().__init__()
        self._reading = reading
        self._shards = shards_of(urls, reading.reader)
        self._growth: tuple[float, float] | None = None

    def get_name(self) -> str:
        return "Shards"

    def estimate_inmemory_data_size(self) -> int | None:
        """The bytes of all blocks, by what the first samples become."""
        sizes = [self._size_in_memory(shard) for shard in self._shards]
        known = [size for size in sizes if size is not None]
        if not known:
            return None
        return sum(known) * len(sizes) // len(known)

    def usual_tasks(self, cores: int) -> int:
        """How many tasks are enough: Ray's own choice has hundreds for a few megabytes."""
        size = self.estimate_inmemory_data_size() or 0
        return max(len(dealt_out(self._shards, max(2 * cores, size // _TASK))), 1)

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """Tasks of about the same number of bytes."""
        reading = self._reading
        if reading.batch is None:
            row = self._grown()[0]
            rows = max(1, min(int(_BLOCK // row), _MOST_ROWS)) if row else None
            reading = replace(reading, batch=rows)
        return [
            ReadTask(
                _reader_of(reading, pieces),
                BlockMetadata(
                    num_rows=_total(piece.samples for piece in pieces),
                    size_bytes=_total(self._size_in_memory(piece) for piece in pieces),
                    input_files=[piece.url for piece in pieces],
                    exec_stats=None,
                ),
                **(
                    {} if per_task_row_limit is None else {"per_task_row_limit": per_task_row_limit}
                ),
            )
            for pieces in dealt_out(self._shards, parallelism)
        ]

    def _size_in_memory(self, piece: Piece) -> int | None:
        by_row, by_byte = self._grown()
        if piece.samples is not None:
            return int(piece.samples * by_row)
        return None if piece.bytes is None else int(piece.bytes * by_byte)

    def _grown(self) -> tuple[float, float]:
        if self._growth is None:
            self._growth = self._measured()
        return self._growth

    def _measured(self) -> tuple[float, float]:
        """Bytes in memory of a row, and of a byte of a shard."""
        if not self._shards:
            return 0.0, 0.0
        first = self._shards[0]
        probe = Reading(self._reading.decode, self._reading.columns, _PROBED, self._reading.reader)
        table = next(_tables(probe, [Piece(first.url)]), None)
        if table is None or not table.num_rows:
            return 0.0, 0.0
        row = table.nbytes / table.num_rows
        if first.samples and first.bytes:
            return row, row * first.samples / first.bytes
        return row, row / self._encoded_row(first)

    def _encoded_row(self, shard: Piece) -> float:
        """Bytes of a sample in its shard, as its fields and headers say."""
        with Stream(shard.url, expand=False, threads=1) as stream:
            sizes = [
                sum(512 + (len(field) + 511) // 512 * 512 for field in sample.values())
                for sample in itertools.islice(stream, _PROBED)
            ]
        return sum(sizes) / len(sizes)


def _total(sizes: Iterable[int | None]) -> int | None:
    total = 0
    for size in sizes:
        if size is None:
            return None
        total += size
    return total


def _reader_of(reading: Reading, pieces: list[Piece]) -> Callable[[], Iterator[Any]]:
    return lambda: _tables(reading, pieces)


def _tables(reading: Reading, pieces: Iterable[Piece]) -> Iterator[Any]:
    """Blocks over the memory of batches."""
    import pyarrow

    for batch in reading.batches(pieces):
        made = pyarrow.Table.from_batches([batch.arrow()])
        if reading.columns is not None:
            made = made.select(reading.names(made.column_names))
        yield made


# ---- Writing -------------------------------------------------------------------------------------


def write_shards(
    data: ray.data.Dataset,
    output: str | os.PathLike[str],
    *,
    max_samples: int = 10_000,
    columns: Iterable[str] | None = None,
    key: str = "__key__",
    encoder: Any = True,
    writer: Mapping[str, Any] | None = None,
    concurrency: int | None = None,
    ray_remote_args: dict[str, Any] | None = None,
) -> list[Shard]:
    """Writes the rows of a data set of Ray as shards, and gives these.

    output: a pattern with one number: on a file system that all machines share, "out/%06d.tar", or
    in a bucket, "s3://bucket/%06d.tar" (gs, az).
    max_samples: the samples of a shard. columns: the fields that are written; by default all whose
    names do not begin with "_". A column that is None in a row is no field of that sample. key: the
    column of keys; without one they are numbers. encoder: that of Writer. writer: options of
    Writer, such as index, compression and max_bytes.

    All shards appear when all rows are written, and none of them when something fails; nothing is
    overwritten. Until then they are in a folder beside, whose name begins with a dot. A task that
    is run again, because its machine died, writes each sample once.

    In a bucket a number is TASK-NUMBER, as in 000003-000000.tar, and the driver completes the
    uploads one by one: PublishError when some of the shards have appeared and others could not.
    """
    wanted = None if columns is None else tuple(columns)
    sink = ShardsDatasink(shards_together(output, max_samples, encoder, writer), wanted, key)
    data.write_datasink(sink, concurrency=concurrency, ray_remote_args=ray_remote_args)
    return sink.shards


class ShardsDatasink(Datasink):
    """What write_shards() writes to."""

    def __init__(self, staging: ShardsTogether, columns: tuple[str, ...] | None, key: str) -> None:
        self.shards: list[Shard] = []
        self._staging = staging
        self._columns = columns
        self._key = key

    def get_name(self) -> str:
        return "Shards"

    @property
    def min_rows_per_write(self) -> int | None:
        return self._staging.max_samples

    def on_write_start(self, schema: Any = None) -> None:
        self._staging.make()

    def write(self, blocks: Iterable[Any], ctx: Any) -> list[Shard]:
        """One task: shards of its own, which on_write_complete() publishes."""
        number = 0
        with self._staging.writer(ctx.task_idx) as writer:
            for block in blocks:
                for row in BlockAccessor.for_block(block).iter_rows(public_row_format=True):
                    name = f"{ctx.task_idx:06d}-{number:09d}"
                    writer.write(_sample_of(row, self._columns, self._key, name))
                    number += 1
        return writer.shards

    def on_write_complete(self, write_result: Any) -> None:
        made = [shard for shards in write_result.write_returns for shard in shards or []]
        self.shards = self._staging.publish(made)

    def on_write_failed(self, error: Exception) -> None:
        self._staging.remove()


def _sample_of(
    row: Mapping[str, Any], columns: tuple[str, ...] | None, key: str, number: str
) -> dict[str, Any]:
    names = (
        [name for name in row if name[:1] != "_" and name != key] if columns is None else columns
    )
    sample = {name: row[name] for name in names if row[name] is not None}
    found = row.get(key)
    return {"__key__": number if found is None else str(found), **sample}
