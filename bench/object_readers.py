#!/usr/bin/env python3
"""Reads shards of S3 with one client and prints one JSON line, like python_readers.py.

Each client is there twice: NAME delivers samples, as webdataset makes them of the bytes; NAME-bytes
drops the bytes, so that it is not slowed by Python's tarfile. Keys and the endpoint are in the
environment. A client asks for one shard after another, as webdataset does.
"""

from __future__ import annotations

import functools
import io
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from python_readers import Counts, Reader, count_samples, main

PIECE = 1 << 20
RANGE = 8 << 20  # shardfeed's range_size
RANGES = 8
STILL_SECONDS = 0.3

# The bytes of the object of a URL, in pieces.
Pieces = Callable[[str], Iterable[Any]]


def split(url: str) -> tuple[str, str]:
    """Bucket and key."""
    parts = urlsplit(url)
    return parts.netloc, parts.path.lstrip("/")


# ---- Clients -------------------------------------------------------------------------------------


def boto3_pieces() -> Pieces:
    import boto3  # type: ignore[import-untyped]

    client = boto3.client("s3")

    def pieces(url: str) -> Iterator[Any]:
        bucket, key = split(url)
        body = client.get_object(Bucket=bucket, Key=key)["Body"]
        return iter(lambda: body.read(PIECE), b"")

    return pieces


def s3fs_pieces() -> Pieces:
    import s3fs  # type: ignore[import-untyped]

    system = s3fs.S3FileSystem()

    def pieces(url: str) -> Iterator[Any]:
        with system.open(url, "rb") as file:
            while piece := file.read(PIECE):
                yield piece

    return pieces


def s3torchconnector_pieces() -> Pieces:
    import s3torchconnector  # type: ignore[import-untyped]

    config = s3torchconnector.S3ClientConfig(force_path_style=True)
    place = {"region": os.environ["AWS_REGION"], "endpoint": os.environ["AWS_ENDPOINT_URL"]}

    def pieces(url: str) -> Iterator[Any]:
        objects = s3torchconnector.S3IterableDataset.from_objects(
            [url], s3client_config=config, **place
        )
        for reader in objects:
            while piece := reader.read(PIECE):
                yield piece

    return pieces


@functools.cache
def obstore_bucket(bucket: str) -> Any:
    import obstore.store  # type: ignore[import-untyped]

    place = {"region": os.environ["AWS_REGION"], "endpoint": os.environ["AWS_ENDPOINT_URL"]}
    return obstore.store.S3Store(bucket, client_options={"allow_http": True}, **place)


def obstore_pieces() -> Pieces:
    import obstore

    def pieces(url: str) -> Iterable[Any]:
        bucket, key = split(url)
        return obstore.get(obstore_bucket(bucket), key).stream(min_chunk_size=PIECE)

    return pieces


def obstore_range_pieces() -> Pieces:
    """The same with as many ranges in flight as shardfeed has: the best that it can do."""
    import obstore

    pool = ThreadPoolExecutor(RANGES)

    def pieces(url: str) -> Iterator[Any]:
        bucket, key = split(url)
        store = obstore_bucket(bucket)
        size = obstore.head(store, key)["size"]
        starts = iter(range(0, size, RANGE))
        asked: deque[Future[Any]] = deque()

        def ask() -> None:
            start = next(starts, None)
            if start is not None:
                end = min(start + RANGE, size)
                asked.append(pool.submit(obstore.get_range, store, key, start=start, end=end))

        for _ in range(RANGES):
            ask()
        while asked:
            yield asked.popleft().result()
            ask()

    return pieces


CLIENTS: dict[str, Callable[[], Pieces]] = {
    "boto3": boto3_pieces,
    "s3fs": s3fs_pieces,
    "s3torchconnector": s3torchconnector_pieces,
    "obstore": obstore_pieces,
    "obstore-ranges": obstore_range_pieces,
}


# ---- Readers -------------------------------------------------------------------------------------


class Body(io.RawIOBase):
    """The pieces as a file."""

    def __init__(self, pieces: Iterable[Any]) -> None:
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def bytes_reader(client: str) -> Reader:
    pieces_of = CLIENTS[client]()

    def read(shards: list[str], _options: dict[str, Any], counts: Counts) -> None:
        size = 0
        for shard in shards:
            for piece in pieces_of(shard):
                if not size:
                    counts.first()
                size += len(piece)
        counts.bytes = size

    return read


def samples_reader(client: str) -> Reader:
    from webdataset.tariterators import (  # type: ignore[import-untyped]
        group_by_keys,
        tar_file_expander,
    )

    pieces_of = CLIENTS[client]()

    def read(shards: list[str], _options: dict[str, Any], counts: Counts) -> None:
        streams = (
            {"url": shard, "stream": io.BufferedReader(Body(pieces_of(shard)), PIECE)}
            for shard in shards
        )
        count_samples(group_by_keys(tar_file_expander(streams)), counts)

    return read


def late_shardfeed() -> Reader:
    """Pauses after the first sample, until shardfeed has read ahead as far as it may."""
    import shardfeed

    def wait_for(stream: shardfeed.Stream) -> None:
        before = -1
        while (now := int(stream.stats()["network_bytes"])) != before:
            before = now
            time.sleep(STILL_SECONDS)

    def late(stream: shardfeed.Stream) -> Iterator[Any]:
        for number, sample in enumerate(stream):
            yield {field: bytes(view) for field, view in sample.items()}
            if not number:
                wait_for(stream)

    def read(shards: list[str], options: dict[str, Any], counts: Counts) -> None:
        with shardfeed.Stream(shards, **options) as stream:
            count_samples(late(stream), counts)
            counts.engine_peak_bytes = int(stream.stats()["memory_peak"])

    return read


READERS: dict[str, Callable[[], Reader]] = {"shardfeed-late": late_shardfeed}
for _name in CLIENTS:
    READERS[_name] = lambda client=_name: samples_reader(client)  # type: ignore[misc]
    READERS[f"{_name}-bytes"] = lambda client=_name: bytes_reader(client)  # type: ignore[misc]


if __name__ == "__main__":
    sys.exit(main(READERS, __doc__))
