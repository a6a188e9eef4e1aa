"""The older cache of shards: a copy is made while a shard is read for the first time.

WEBDATASET_CACHE, WEBDATASET_CACHE_NAME, WEBDATASET_CACHE_SIZE and WEBDATASET_CACHE_VERBOSE are its
settings where a program gives none. FileCache of `cache` downloads whole shards instead.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import uuid
from typing import TYPE_CHECKING, Any, Callable

from . import _cache_files
from .cache import LRUCleanup, islocal
from .gopen import gopen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def shard_uuid(url: str) -> str:
    """A name that no two URLs share: the UUID 3 of a URL."""
    return str(uuid.uuid3(uuid.NAMESPACE_URL, url))


def guess_shard(path: str) -> str:
    """The last part of the path of a URL."""
    return re.sub(r"[?#].*", "", path).rpartition("/")[2]


_NAMES: dict[str, Callable[[str], str]] = {"shard_uuid": shard_uuid, "guess_shard": guess_shard}


class CacheStream(io.RawIOBase):
    """A stream whose bytes are also written to a file, which appears when all were read."""

    def __init__(self, fname: str, stream: Any, verbose: bool = False) -> None:
        super().__init__()
        self.stream = stream
        self.fname = fname
        self.verbose = verbose
        self._temp = f"{fname}.~{os.getpid()}~"
        self._file: Any = open(self._temp, "wb")  # noqa: SIM115  # until the end of the stream

    def readable(self) -> bool:
        """True."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes of the stream."""
        try:
            data: bytes = self.stream.read(-1 if size is None else size)
        except BaseException:
            self._drop()
            raise
        if self._file is not None:
            self._file.write(data)
            if size is None or size < 0 or (not data and size):
                self._publish()
        return data

    def readinto(self, buffer: Any) -> int:
        """Reads into a buffer."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _publish(self) -> None:
        self._file.close()
        self._file = None
        os.rename(self._temp, self.fname)
        if self.verbose:
            print(f"[done caching {self.fname}]", file=sys.stderr)

    def _drop(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            with contextlib.suppress(FileNotFoundError):
                os.remove(self._temp)

    def close(self) -> None:
        """Ends the stream. A copy of a part is deleted."""
        if self.closed:
            return
        try:
            self.stream.close()
        finally:
            self._drop()
            super().close()


def cache_shards(
    urls: Iterable[Any],
    cache_dir: str | None = None,
    cache_size: float | None = None,
    cache_name: Callable[[str], str] | None = None,
    verbose: bool | None = None,
) -> Iterator[dict[str, Any]]:
    """A stage: URLs, or dicts with one, to dicts with `url` and `stream`.

    The stream of a shard of a server is copied to `cache_dir` while it is read; without a folder,
    and for local files, nothing is. When the folder has `cache_size` bytes, its oldest files are
    deleted. cache_name: the name of the file of a URL; shard_uuid without it.
    """
    environment = os.environ
    folder = environment.get("WEBDATASET_CACHE") if cache_dir is None else cache_dir
    if cache_size is None:
        cache_size = float(environment.get("WEBDATASET_CACHE_SIZE", "1e18"))
    if cache_name is None:
        cache_name = _NAMES[environment.get("WEBDATASET_CACHE_NAME", "shard_uuid")]
    if verbose is None:
        verbose = bool(int(environment.get("WEBDATASET_CACHE_VERBOSE", "0")))
    for item in urls:
        url = item["url"] if isinstance(item, dict) else item
        if not folder or islocal(url):
            yield {"url": url, "stream": gopen(url)}
            continue
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, cache_name(url))
        if os.path.exists(path):
            _cache_files.check_url(path, url)
            if verbose:
                print(f"[using {path}]", file=sys.stderr)
            yield {"url": url, "stream": open(path, "rb"), "local_path": path}  # noqa: SIM115
            continue
        LRUCleanup(folder, int(cache_size), verbose=verbose, interval=None).cleanup()
        _cache_files.note_url(path, url)
        if verbose:
            print(f"[caching {url} at {path}]", file=sys.stderr)
        yield {"url": url, "stream": CacheStream(path, gopen(url), verbose=verbose)}


__all__ = ["CacheStream", "cache_shards", "guess_shard", "shard_uuid"]
