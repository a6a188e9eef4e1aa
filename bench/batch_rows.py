"""What batches.py measures on which corpus: one row of a table is one reader with its arguments."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Union

import corpora
from corpora import Corpus
from rows import CHUNK, Row, Tools

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Work:
    """The field that is decoded beside cls, how shardfeed is told so, and samples in a batch."""

    field: str
    decode: str
    batch: int


WORK = {
    "npy4": Work("npy", "npy, cls:int", 100),
    "photo": Work("jpg", "jpg:image/rgb8/hwc, cls:int", 32),
    "tiny": Work("json", "json, cls:int", 1024),
}
RESIZED = "jpg:image/rgb8/hwc/resize=256, cls:int"
# Samples in a batch that is handed over, and how many of them.
HANDED = {"a small batch": (2, 200), "a batch of 32 MB": (1000, 20)}


def cores() -> int:
    return len(os.sched_getaffinity(0))


def litdata_folder(corpus: Corpus) -> Path:
    return Path(corpus.shards[0]).parent / "litdata"


def litdata_reads(name: str) -> bool:
    """Its own format takes arrays as well as bytes; images it would have to be taught."""
    return WORK[name].field in ("npy", "json")


Options = dict[str, Union[str, int]]


def option_words(options: Options) -> list[str]:
    """Options of a reader in Python, on its command line."""
    return [word for key, n in options.items() for word in ("--option", f"{key}={n}")]


def _c_rows(tools: Tools, corpus: Corpus) -> Iterator[Row]:
    work = WORK[corpus.name]
    if work.field != "jpg":
        command = [str(tools.programs / "read_limit"), str(CHUNK), "touch", *corpus.shards]
        yield Row("read", "read(2), 256 KiB", command, "file")
    elif tools.jpeg_limit is not None:
        for name, threads in (("jpeg-1", 1), ("jpeg-all", cores())):
            command = [str(tools.jpeg_limit), str(threads), *corpus.shards]
            yield Row(name, f"libjpeg-turbo alone, {threads} thread(s)", command, "pixels")
    if tools.shardfeed_batches is None:
        return

    def row(name: str, label: str, decode: str, threads: int, counts: str) -> Row:
        options = [f"decode={decode}", f"batch={work.batch}", f"decode_threads={threads}"]
        command = [str(tools.shardfeed_batches), *options, "--", *corpus.shards]
        return Row(name, label, command, counts)

    for threads in (1, 2):
        yield row(f"c-{threads}", f"shardfeed C, {threads} thr.", work.decode, threads, "batches")
    if work.field == "jpg":
        for threads in (1, 2):
            label = f"shardfeed C, resize=256, {threads} thr."
            yield row(f"resized-{threads}", label, RESIZED, threads, "labels")


def _rust_rows(tools: Tools, corpus: Corpus) -> Iterator[Row]:
    if tools.rust_webdataset is None:
        return
    work = WORK[corpus.name]
    objects = work.field == "json"
    for name, label, workers in (
        ("rust", "webdataset-rs", 0),
        ("rust-2", "webdataset-rs, 2 workers", 2),
    ):
        if workers > len(corpus.shards):
            continue
        command = [str(tools.rust_webdataset), work.field, str(work.batch), str(workers)]
        label += ", objects" if objects else ""
        yield Row(name, label, command + corpus.shards, "labels" if objects else "batches")


def _python_row(
    tools: Tools,
    corpus: Corpus,
    name: str,
    label: str,
    reader: str,
    options: Options,
    counts: str = "batches",
) -> Row:
    work = WORK[corpus.name]
    common: Options = {"field": work.field, "batch": work.batch}
    words = option_words(common | options)
    shards = [str(litdata_folder(corpus))] if reader == "litdata" else corpus.shards
    script = [str(tools.python), str(HERE / "batch_readers.py")]
    return Row(name, label, [*script, reader, *words, *shards], counts)


OBJECTS: Options = {"objects": "true"}


def _peer_rows(tools: Tools, corpus: Corpus) -> Iterator[Row]:
    row = functools.partial(_python_row, tools, corpus)
    field = WORK[corpus.name].field
    modules = tools.python_modules
    if "webdataset" in modules:
        yield row("webdataset", "webdataset", "webdataset", {})
        if field == "json":
            label = "webdataset, objects"
            yield row("webdataset-objects", label, "webdataset", OBJECTS, "labels")
        elif "torch" in modules:
            for workers in (0, 2):
                label = f"WebLoader, {workers} workers"
                yield row(f"loader-{workers}", label, "webdataset", {"workers": workers})
    if "litdata" in modules and litdata_reads(corpus.name):
        for workers in (0, 2):
            label = f"litdata, own format, {workers} workers"
            yield row(f"litdata-{workers}", label, "litdata", {"workers": workers})
    for threads in (1, 2):
        if "mlx.data" in modules and field != "json":
            yield row(f"mlx-{threads}", f"mlx-data, {threads} thr.", "mlx", {"threads": threads})
        # Only decoding takes long enough for two threads of Python.
        if "spdl.io" in modules and (tools.spdl_decodes if field == "jpg" else threads == 1):
            yield row(f"spdl-{threads}", f"spdl-io, {threads} thr.", "spdl", {"threads": threads})


def _python_rows(tools: Tools, corpus: Corpus) -> Iterator[Row]:
    if "shardfeed" not in tools.python_modules:
        return
    row = functools.partial(_python_row, tools, corpus)
    work = WORK[corpus.name]
    decode: Options = {"decode": work.decode}
    for threads in (1, 2):
        options = decode | {"decode_threads": threads}
        yield row(f"py-{threads}", f"shardfeed Python, {threads} thr.", "shardfeed", options)
    if work.field != "json" and "torch" in tools.python_modules and len(corpus.shards) > 1:
        options = decode | {"workers": 2}
        yield row("py-workers", "shardfeed.torch, 2 workers", "workers", options)
    if work.field == "json":
        label = "shardfeed Python, objects"
        yield row("py-objects", label, "shardfeed", decode | OBJECTS, "labels")


READERS: dict[str, Callable[[Tools, Corpus], Iterator[Row]]] = {
    "c": _c_rows,
    "rust": _rust_rows,
    "peers": _peer_rows,
    "python": _python_rows,
}


def handing_command(python: Path, scale: float, size: int, count: int) -> list[str]:
    """Hands over `count` batches of `size` samples."""
    corpus = corpora.load("npy4", scale)
    assert corpus is not None
    words = option_words({"decode": WORK["npy4"].decode, "batch": size, "batches": count})
    return [str(python), str(HERE / "batch_readers.py"), "handing", *words, *corpus.shards]
