"""Where the local file of a shard is."""

from __future__ import annotations

import base64
import hashlib
import os
import sqlite3
import tempfile
from typing import Callable
from urllib.parse import quote, urlparse

from .wids_specs import urldir

DEFAULT_DIR = os.path.join(tempfile.gettempdir(), "_wids_cache")


def _hash(text: str, length: int) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())[:length].decode()


def hash_localname(dldir: str = DEFAULT_DIR) -> Callable[[str], str]:
    """Names with a hash of host and folder before the name of the file. What has which name is
    written to the SQLite file cache.db there.
    """
    os.makedirs(dldir, exist_ok=True)
    database = os.path.join(dldir, "cache.db")
    create = "CREATE TABLE IF NOT EXISTS cache (url TEXT PRIMARY KEY, path TEXT, checksum TEXT)"

    def localname(shard: str) -> str:
        if shard.startswith("pipe:"):
            return os.path.join(dldir, "pipe__" + _hash(shard, 32))
        name = f"data__{_hash(urldir(shard), 16)}__{os.path.basename(urlparse(shard).path)}"
        connection = sqlite3.connect(database, timeout=60)  # for any process, and any thread
        try:
            with connection:
                connection.execute(create)
                row = (shard, name, None)
                connection.execute("INSERT OR REPLACE INTO cache VALUES (?, ?, ?)", row)
        finally:
            connection.close()
        return os.path.join(dldir, name)

    return localname


class CacheLocalname:
    """The name of the file itself, in a folder. Two URLs of the same name are an error."""

    def __init__(self, cachedir: str) -> None:
        self._cachedir = cachedir
        os.makedirs(cachedir, exist_ok=True)

    def __call__(self, shard: str) -> str:
        return os.path.join(self._cachedir, os.path.basename(urlparse(shard).path))


class DefaultLocalname:
    """All of the URL, quoted, as the name in a folder."""

    def __init__(self, dldir: str = DEFAULT_DIR) -> None:
        self._dldir = dldir

    def __call__(self, shard: str) -> str:
        os.makedirs(self._dldir, exist_ok=True)
        return os.path.join(self._dldir, quote(shard, safe="+-"))
