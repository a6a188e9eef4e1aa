"""shardfeed for Dask: shards as bags, delayed batches and data frames, and bags as shards.

    import shardfeed.dask

    bag = shardfeed.dask.read_shards("train-{000..999}.tar")                # of dicts of bytes
    small = bag.map(shrink)
    shardfeed.dask.to_shards(small, "small/%06d.tar")

    frame = shardfeed.dask.read_frame("train-{000..999}.tar", decode="cls:int, width.txt:int")
    batches = shardfeed.dask.read_batches(urls, decode="jpg:image/rgb8/resize=64x64, cls:int")

Tasks of Dask that run a function on each shard: shardfeed.map_shards(..., executor="dask").

The package does not depend on Dask: only this module imports it (2024.1 or later).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

try:
    import dask
    import dask.bag
    import dask.base
except ModuleNotFoundError as missing:
    if missing.name not in ("dask", "toolz", "cloudpickle"):
        raise
    raise ModuleNotFoundError(
        "shardfeed.dask needs Dask; help: pip install 'shardfeed[dask]'", name=missing.name
    ) from None

from . import UsageError
from .cluster._pieces import Piece, Reading, dealt_out, reading_of, shards_of
from .cluster._publish import shards_together
from .cluster._run import samples_of
from .cluster._tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from . import Batch, Shard
    from ._integration import URLs
    from .cluster._publish import ShardsTogether

__all__ = ["read_batches", "read_frame", "read_shards", "to_shards"]

_PARTITION = 64 << 20  # bytes of shards, where the number of partitions is not given


def read_shards(
    urls: URLs,
    *,
    decode: str | None = None,
    npartitions: int | None = None,
    reader: Mapping[str, Any] | None = None,
) -> Any:
    """A dask.bag.Bag of the samples of shards.

    An element is a dict of fields as bytes, or decoded as `decode` says, with "__key__" and
    "__url__". npartitions: about the same number of bytes each; shards whose index is there are
    divided. reader: options of Stream and Dataset.
    """
    reading = reading_of(decode or "", None, None, reader)
    made = dask.delayed(_samples, pure=True)
    parts = [made(reading, pieces) for pieces in _partitions(urls, reading, npartitions)]
    return dask.bag.from_delayed(parts)


def read_batches(
    urls: URLs,
    *,
    decode: str = "auto",
    columns: Iterable[str] | None = None,
    batch: int | None = None,
    npartitions: int | None = None,
    reader: Mapping[str, Any] | None = None,
) -> list[Any]:
    """Delayed lists of batches, one for each partition: [[Batch, ...], ...] when computed.

    A Batch that moves to another process is a copy. batch: the rows of each, as for
    shardfeed.ray.read_shards; decode, columns and the others too. With `columns` a batch is a dict
    of the values of these columns.
    """
    reading = reading_of(decode, columns, batch, reader)
    made = dask.delayed(_batches, pure=True)
    return [made(reading, pieces) for pieces in _partitions(urls, reading, npartitions)]


def read_frame(
    urls: URLs,
    *,
    decode: str,
    columns: Iterable[str] | None = None,
    npartitions: int | None = None,
    reader: Mapping[str, Any] | None = None,
) -> Any:
    """A dask.dataframe of scalar fields, with the key of each sample as index.

        shardfeed.dask.read_frame(urls, decode="cls:int, txt").groupby("cls").size().compute()

    The first samples are read for the types of the columns.
    """
    import dask.dataframe

    reading = reading_of(decode, columns, None, reader)
    parts = _partitions(urls, reading, npartitions)
    if not parts:
        raise UsageError("there is no shard; help: look at the URLs")
    probe = Reading(reading.decode, reading.columns, 16, reading.reader)
    meta = _frame_of(next(probe.batches([Piece(parts[0][0].url)])), probe).iloc[:0]
    made = dask.delayed(_frame, pure=True)
    return dask.dataframe.from_delayed([made(reading, pieces) for pieces in parts], meta=meta)


def to_shards(
    bag: Any,
    output: str | os.PathLike[str],
    *,
    max_samples: int = 10_000,
    encoder: Any = True,
    writer: Mapping[str, Any] | None = None,
) -> list[Shard]:
    """Writes the elements of a bag, mappings with "__key__", as shards, and gives these.

    output: a pattern with one number: on a file system that all machines share, "out/%06d.tar", or
    in a bucket, "s3://bucket/%06d.tar" (gs, az).
    max_samples: the samples of a shard; each partition begins a new one. encoder, writer: as for
    shardfeed.ray.write_shards.

    All shards appear when all are written, and none of them when something fails; nothing is
    overwritten. A partition that is computed again, because its worker died, is written once.

    In a bucket a number is TASK-NUMBER, as in 000003-000000.tar, and the driver completes the
    uploads one by one: PublishError when some of the shards have appeared and others could not.
    """
    staging = shards_together(output, max_samples, encoder, writer)
    staging.make()
    made = dask.delayed(_write, pure=False)
    try:
        parts = [made(staging, number, part) for number, part in enumerate(bag.to_delayed())]
        return staging.publish([shard for part in _computed(parts) for shard in part])
    finally:
        staging.remove()


def _computed(parts: list[Any]) -> list[list[Shard]]:
    """What all of them give. After an error none of them runs any more on the workers of
    distributed: what a task leaves in a store later on nobody would remove.
    """
    get = dask.base.get_scheduler(collections=parts)
    client: Any = getattr(get, "__self__", None)
    if not parts or not all(hasattr(client, name) for name in ("gather", "cancel", "processing")):
        return list(dask.compute(*parts))
    from distributed import wait

    futures = client.compute(parts)
    try:
        return list(client.gather(futures))
    except Exception:
        # One that runs cannot be cancelled: the scheduler would only forget it.
        running = {key for keys in client.processing().values() for key in keys}
        client.cancel([future for future in futures if future.key not in running])
        wait([future for future in futures if future.key in running])
        raise


def _partitions(urls: URLs, reading: Reading, count: int | None) -> list[list[Piece]]:
    shards = shards_of(urls, reading.reader)
    if count is None:
        known = [shard.bytes for shard in shards if shard.bytes is not None]
        size = sum(known) * len(shards) // len(known) if known else 0
        count = max(size // _PARTITION, min(len(shards), 2 * (os.cpu_count() or 1)), 1)
    if count < 1:
        raise UsageError(f"npartitions={count}; help: give 1 or more")
    return dealt_out(shards, count)


# ---- What workers do -----------------------------------------------------------------------------


def _samples(reading: Reading, pieces: list[Piece]) -> list[dict[str, Any]]:
    return list(_dicts(reading, pieces))


def _dicts(reading: Reading, pieces: list[Piece]) -> Iterator[dict[str, Any]]:
    for piece in pieces:
        for sample in samples_of(Task(0, piece.url, piece.start, piece.stop), reading.reader):
            fields = sample.decode(reading.decode) if reading.decode else sample.to_dict()
            yield {"__key__": sample.key, "__url__": sample.shard, **fields}


def _batches(reading: Reading, pieces: list[Piece]) -> list[Batch | dict[str, Any]]:
    if reading.columns is None:
        return list(reading.batches(pieces))
    return [
        {name: batch[name] for name in reading.names(batch.keys())}
        for batch in reading.batches(pieces)
    ]


def _frame(reading: Reading, pieces: list[Piece]) -> Any:
    import pandas

    return pandas.concat([_frame_of(batch, reading) for batch in reading.batches(pieces)])


def _frame_of(batch: Batch, reading: Reading) -> Any:
    import pandas

    values = {}
    for name in reading.names(batch.keys()):
        column = batch[name]
        if getattr(column, "ndim", 1) != 1:
            raise UsageError(
                f'the column "{name}" has arrays, and a data frame takes scalar fields; help: '
                "leave it out of decode or columns, or use read_batches"
            )
        values[name] = column if hasattr(column, "dtype") else list(column)
    return pandas.DataFrame(values, index=pandas.Index(batch.sample_keys, name="__key__"))


def _write(staging: ShardsTogether, task: int, samples: Iterable[Mapping[str, Any]]) -> list[Shard]:
    with staging.writer(task) as writer:
        writer.write_all(samples)
    return writer.shards
