#!/usr/bin/env python3
"""Reads shards with one Python reader and prints one JSON line, like the programs in C.

One reader and one pass a process: what another reader imported, allocated or left to the garbage
collector is then not in the figures. The clock starts after the imports, whose price run.py
measures apart, and before the reader opens its first file.

All readers do the same with a field (see programs/measure.h). The few lines that do it stand in
each loop: a call of a function would cost as much as a tiny field.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import mmap
import os
import resource
import sys
import tarfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PAGE = 4096


@dataclass
class Counts:
    """The result of one pass; 0 where a reader does not know the number. `others`: what else it
    measures.
    """

    samples: int = 0
    members: int = 0
    bytes: int = 0
    checksum: int = 0
    batches: int = 0
    labels: int = 0
    first_seconds: float = 0.0
    engine_peak_bytes: int = 0
    start: float = field(default=0.0, repr=False)
    others: dict[str, float] = field(default_factory=dict)

    def first(self) -> None:
        self.first_seconds = time.perf_counter() - self.start


Reader = Callable[[list[str], dict[str, Any], Counts], None]


def prepare_shardfeed() -> Reader:
    import shardfeed

    def read(shards: list[str], options: dict[str, Any], counts: Counts) -> None:
        samples = members = size = checksum = 0
        with shardfeed.Stream(shards, **options) as stream:
            for sample in stream:
                if not samples:
                    counts.first()
                samples += 1
                for view in sample.values():
                    members += 1
                    length = len(view)
                    size += length
                    checksum += view[0] if length <= PAGE else sum(bytes(view[::PAGE]))
            counts.engine_peak_bytes = int(stream.stats().get("memory_peak", 0))
        counts.samples, counts.members = samples, members
        counts.bytes, counts.checksum = size, checksum

    return read


def count_samples(source: Iterable[Mapping[str, Any]], counts: Counts) -> None:
    """Of dictionaries, as webdataset makes them."""
    samples = members = size = checksum = 0
    for sample in source:
        if not samples:
            counts.first()
        samples += 1
        for data in sample.values():
            # The others are __key__, __url__ and their like.
            if type(data) is bytes:
                members += 1
                length = len(data)
                size += length
                checksum += data[0] if length <= PAGE else sum(data[::PAGE])
    counts.samples, counts.members = samples, members
    counts.bytes, counts.checksum = size, checksum


def prepare_webdataset() -> Reader:
    import webdataset  # type: ignore[import-untyped]

    def read(shards: list[str], options: dict[str, Any], counts: Counts) -> None:
        count_samples(webdataset.WebDataset(shards, shardshuffle=False, **options), counts)

    return read


def prepare_spdl() -> Reader:
    import spdl.io  # type: ignore[import-untyped]

    def read(shards: list[str], _options: dict[str, Any], counts: Counts) -> None:
        members = size = checksum = 0
        for shard in shards:
            with open(shard, "rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            for _name, view in spdl.io.iter_tarfile(memoryview(mapped)):
                if not members:
                    counts.first()
                members += 1
                length = len(view)
                size += length
                checksum += view[0] if length <= PAGE else sum(bytes(view[::PAGE]))
        counts.members = members
        counts.bytes, counts.checksum = size, checksum

    return read


def prepare_tarfile() -> Reader:
    def read(shards: list[str], _options: dict[str, Any], counts: Counts) -> None:
        members = size = checksum = 0
        for shard in shards:
            with tarfile.open(shard, "r|*") as archive:
                for member in archive:
                    file = archive.extractfile(member)
                    if file is None:
                        continue
                    data = file.read()
                    if not members:
                        counts.first()
                    members += 1
                    length = len(data)
                    size += length
                    checksum += data[0] if length <= PAGE else sum(data[::PAGE])
                    # Without this the archive keeps every member's header.
                    archive.members = []  # type: ignore[attr-defined]
        counts.members = members
        counts.bytes, counts.checksum = size, checksum

    return read


def prepare_read() -> Reader:
    """The limit: readv into one recycled buffer of `chunk` bytes.

    The buffer is an anonymous map, not a bytearray: the kernel copies about half as fast to the
    place a few bytes past a page that a bytearray gets, and a limit must not be beatable that way.
    """

    def read(shards: list[str], options: dict[str, Any], counts: Counts) -> None:
        size = checksum = 0
        chunk = options["chunk"]
        assert isinstance(chunk, int)
        view = memoryview(mmap.mmap(-1, chunk))
        for shard in shards:
            fd = os.open(shard, os.O_RDONLY | os.O_CLOEXEC)
            while got := os.readv(fd, [view]):
                if not size:
                    counts.first()
                size += got
                checksum += sum(bytes(view[:got:PAGE]))
            os.close(fd)
        counts.bytes, counts.checksum = size, checksum

    return read


READERS: dict[str, Callable[[], Reader]] = {
    "shardfeed": prepare_shardfeed,
    "webdataset": prepare_webdataset,
    "spdl": prepare_spdl,
    "tarfile": prepare_tarfile,
    "read": prepare_read,
}


def children_cpu_seconds() -> float:
    """Of processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def peak_rss_bytes() -> int:
    """The peak of this program; `ru_maxrss` would also count the process that started it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def parse_options(words: Iterable[str]) -> dict[str, Any]:
    """NAME=VALUE: whole numbers as int, true and false as bool, the rest as text."""
    options: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        if value in ("true", "false"):
            options[name] = value == "true"
        else:
            options[name] = int(value) if value.isdecimal() else value
    return options


def main(readers: Mapping[str, Callable[[], Reader]], description: str | None) -> int:
    """Runs the reader that the command line names."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("reader", choices=readers)
    parser.add_argument("shards", nargs="+")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    options = parse_options(arguments.option)
    read = readers[arguments.reader]()
    counts = Counts()
    cpu_start, children_start = time.process_time(), children_cpu_seconds()
    counts.start = time.perf_counter()
    read(arguments.shards, options, counts)
    result = {
        "reader": arguments.reader,
        "seconds": time.perf_counter() - counts.start,
        "cpu_seconds": time.process_time() - cpu_start,
        "children_cpu_seconds": children_cpu_seconds() - children_start,
        "peak_rss_bytes": peak_rss_bytes(),
    }
    counted = dataclasses.asdict(counts)
    del counted["start"]
    others = counted.pop("others")
    print(json.dumps(result | counted | others))
    return 0


if __name__ == "__main__":
    sys.exit(main(READERS, __doc__))
