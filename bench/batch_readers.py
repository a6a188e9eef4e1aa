#!/usr/bin/env python3
"""Reads shards as batches with one Python reader and prints one JSON line; see python_readers.py.

Every reader hands over what it calls a batch: an array of the decoded fields and the labels. Of
each row one byte of each 4 KiB is added up; the labels are added up apart. `field` is the field
that is decoded beside cls, `batch` the number of samples in a batch.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import mmap
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from python_readers import PAGE, Counts, Reader, main


def add_rows(column: Any, counts: Counts) -> None:
    """Takes an array with a row for each sample."""
    array = np.asarray(column)
    rows = array.reshape(len(array), -1).view(np.uint8)
    counts.bytes += rows.size
    counts.checksum += int(rows[:, ::PAGE].sum())


def add_items(items: list[bytes], counts: Counts) -> None:
    """Takes bytes for each sample."""
    for item in items:
        counts.bytes += len(item)
        counts.checksum += item[0] if len(item) <= PAGE else sum(item[::PAGE])


def add_batch(labels: Any, counts: Counts) -> None:
    if not counts.batches:
        counts.first()
    counts.batches += 1
    counts.samples += len(labels)
    counts.labels += int(np.asarray(labels).sum())


# ---- shardfeed -----------------------------------------------------------------------------------


def prepare_shardfeed() -> Reader:
    import shardfeed

    def read(shards: list[str], options: dict[str, Any], counts: Counts) -> None:
        field, size = options.pop("field"), options.pop("batch")
        # JSON is bytes in the batch: objects are made of it when they are asked for.
        objects = options.pop("objects", False)
        with shardfeed.Stream(shards, **options) as stream:
            for batch in stream.batches(size):
                add_batch(batch["cls"], counts)
                column = batch[field]
                if objects:
                    assert len(column.tolist()) == len(batch)
                elif isinstance(column, np.ndarray):
                    add_rows(column, counts)
                else:
                    counts.bytes += len(column.values)
                    # Rows of bytes are small here: one byte of each.
                    counts.checksum += int(column.values[column.offsets[:-1]].sum())
            counts.engine_peak_bytes = int(stream.stats().get("memory_peak", 0))

    return read


def prepare_workers() -> Reader:
    """Batches from the workers of a DataLoader of PyTorch."""
    import shardfeed.torch
    import torch.utils.data

    def read(shards: list[str], options: dict[str, Any], counts: Counts) -> None:
        field, workers = options.pop("field"), options.pop("workers")
        stream = shardfeed.torch.Stream(shards, **options)
        for batch in torch.utils.data.DataLoader(stream, batch_size=None, num_workers=workers):
            add_batch(batch["cls"].numpy(), counts)
            add_rows(batch[field].numpy(), counts)

    return read


def prepare_handing() -> Reader:
    """What it takes to have all columns of a batch as arrays of NumPy, or tensors of PyTorch: the
    best of many batches, nothing of which is made before it is asked for.
    """
    import shardfeed

    try:
        import torch
    except ImportError:
        torch = None

    def timed(work: Callable[[Any], object], batches: Iterator[Any], count: int) -> float:
        taken = []
        for _ in range(count):
            # Decoding has swept the caches: the first is handed over to have the code in them.
            first, second = next(batches), next(batches)
            held = work(first)
            start = time.perf_counter()
            held_too = work(second)
            taken.append(time.perf_counter() - start)
            del held, held_too
        return min(taken)

    def read(shards: list[str], options: dict[str, Any], counts: Counts) -> None:
        size, most = options.pop("batch"), options.pop("batches")
        with shardfeed.Stream(shards, epochs=0, **options) as stream:
            batches = stream.batches(size)
            counts.others["numpy_seconds"] = timed(lambda batch: batch.values(), batches, most)
            if torch is not None:
                counts.others["torch_seconds"] = timed(lambda batch: batch.torch(), batches, most)

    return read


# ---- webdataset ----------------------------------------------------------------------------------


def prepare_webdataset() -> Reader:
    import webdataset  # type: ignore[import-untyped]

    def batches(shards: list[str], options: dict[str, Any]) -> Iterator[Any]:
        data = webdataset.WebDataset(shards, shardshuffle=False)
        if options["field"] == "jpg":
            data = data.decode("rgb8")
        elif options["field"] == "json" and not options.get("objects"):
            data = data.decode(only=["cls"])
        else:
            data = data.decode()
        data = data.to_tuple(options["field"], "cls").batched(options["batch"])
        if "workers" in options:
            data = webdataset.WebLoader(data, batch_size=None, num_workers=options["workers"])
        return iter(data)

    def read(shards: list[str], options: dict[str, Any], counts: Counts) -> None:
        for column, labels in batches(shards, options):
            add_batch(labels, counts)
            if options.get("objects"):
                assert len(column) == len(labels)
            elif options["field"] == "json":
                add_items(column, counts)
            else:
                add_rows(column, counts)

    return read


# ---- litdata -------------------------------------------------------------------------------------


def as_lists(samples: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Bytes come as views, which cannot be sent from a worker."""

    def item(value: Any) -> Any:
        return bytes(value) if isinstance(value, memoryview) else value

    return {name: [item(sample[name]) for sample in samples] for name in samples[0]}


def prepare_litdata() -> Reader:
    """Reads its own format: `shards` is the folder that `optimized` wrote."""
    import litdata  # type: ignore[import-untyped]

    def read(shards: list[str], options: dict[str, Any], counts: Counts) -> None:
        data = litdata.StreamingDataset(shards[0], shuffle=False)
        # What it collates by itself are arrays of equal size.
        collate = {"collate_fn": as_lists} if options["field"] == "json" else {}
        loader = litdata.StreamingDataLoader(
            data, batch_size=options["batch"], num_workers=options["workers"], **collate
        )
        for batch in loader:
            add_batch(batch["cls"], counts)
            if options["field"] == "json":
                add_items(batch["json"], counts)
            else:
                add_rows(batch[options["field"]], counts)

    return read


# ---- mlx-data ------------------------------------------------------------------------------------


def prepare_mlx() -> Reader:
    import mlx.data as dx  # type: ignore[import-untyped]

    def read(shards: list[str], options: dict[str, Any], counts: Counts) -> None:
        field, threads = options["field"], options["threads"]
        samples = []
        for shard in shards:
            # Its files come in no order; what belongs together it leaves to the user.
            listed = sorted(bytes(entry["file"]) for entry in dx.files_from_tar(shard))
            for label, data in zip(listed[::2], listed[1::2], strict=True):
                samples.append({"tar": shard.encode(), "cls": label, field: data})
        data = dx.buffer_from_vector(samples)
        for key in ("cls", field):
            data = data.read_from_tar("tar", key, key, from_key=True)
        if field == "npy":
            data = data.load_numpy(field, from_memory=True)
        else:
            data = data.load_image(field, from_memory=True)
        # Labels are texts of one to three digits; blanks keep them numbers.
        data = data.batch(options["batch"], pad={"cls": ord(" ")})
        if threads > 1:
            data = data.ordered_prefetch(2 * threads, threads)
        for batch in data:
            texts = np.ascontiguousarray(batch["cls"])
            add_batch(texts.view(f"S{texts.shape[1]}").astype(np.int64), counts)
            add_rows(batch[field], counts)

    return read


# ---- spdl-io -------------------------------------------------------------------------------------


def prepare_spdl() -> Reader:
    import spdl.io  # type: ignore[import-untyped]

    # Loads FFmpeg, if it is there, before the clock starts.
    with contextlib.suppress(RuntimeError):
        spdl.io.decode_config()

    def samples(shards: list[str]) -> Iterator[tuple[bytes, int]]:
        for shard in shards:
            with open(shard, "rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            members = spdl.io.iter_tarfile(memoryview(mapped))
            for (_, label), (_, data) in zip(members, members, strict=True):
                yield bytes(data), int(bytes(label))

    def batches(shards: list[str], size: int) -> Iterator[tuple[list[bytes], list[int]]]:
        source = samples(shards)
        while chunk := list(itertools.islice(source, size)):
            data, labels = zip(*chunk)
            yield list(data), list(labels)

    def decode(field: str, data: list[bytes]) -> Any:
        if field == "json":
            return data
        if field == "npy":
            return np.stack([spdl.io.load_npy(item) for item in data])
        return spdl.io.to_numpy(spdl.io.load_image_batch(data, width=None, height=None))

    def read(shards: list[str], options: dict[str, Any], counts: Counts) -> None:
        field, threads = options["field"], options["threads"]

        def take(column: Any, labels: list[int]) -> None:
            add_batch(labels, counts)
            if field == "json":
                add_items(column, counts)
            else:
                add_rows(column, counts)

        if threads == 1:
            for data, labels in batches(shards, options["batch"]):
                take(decode(field, data), labels)
            return
        # Its calls leave the interpreter lock; as many batches ahead as keep the threads busy.
        waiting: collections.deque[tuple[Future[Any], list[int]]] = collections.deque()
        with ThreadPoolExecutor(threads) as pool:
            for data, labels in batches(shards, options["batch"]):
                waiting.append((pool.submit(decode, field, data), labels))
                if len(waiting) > threads:
                    done, numbers = waiting.popleft()
                    take(done.result(), numbers)
            for done, numbers in waiting:
                take(done.result(), numbers)

    return read


READERS: dict[str, Callable[[], Reader]] = {
    "shardfeed": prepare_shardfeed,
    "workers": prepare_workers,
    "handing": prepare_handing,
    "webdataset": prepare_webdataset,
    "litdata": prepare_litdata,
    "mlx": prepare_mlx,
    "spdl": prepare_spdl,
}

if __name__ == "__main__":
    sys.exit(main(READERS, __doc__))
