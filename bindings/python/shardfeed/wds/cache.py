"""Shards of servers as files in a folder, and the stages that open shards."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
import urllib.parse
from typing import TYPE_CHECKING, Any, Callable
from urllib.parse import unquote as url2pathname
from urllib.parse import urlparse

from . import _cache_files
from ._sample_cache import DBCache, LMDBCached
from .gopen import gopen
from .handlers import reraise_exception
from .utils import obsolete

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

default_cache_dir: str = os.environ.get("WDS_CACHE", "./_cache")
default_cache_size: float = float(os.environ.get("WDS_CACHE_SIZE", "1e18"))
verbose_cache: int = int(os.environ.get("WDS_VERBOSE_CACHE", "0"))


def islocal(url: str) -> bool:
    """Whether a URL is that of a local file."""
    return urlparse(url).scheme in ("", "file")


def _local_path(url: str) -> str:
    """The path of a local URL: a plain one as it is, quoted or not with `file:`."""
    if not url.startswith("file:"):
        return url
    path = urlparse(url).path
    return path if os.path.exists(path) else url2pathname(path)


def get_filetype(fname: str) -> str:
    """What the command `file` says about a file."""
    assert os.path.exists(fname), f"{fname}: no such file"
    try:
        said = subprocess.run(["file", fname], stdout=subprocess.PIPE, text=True, check=True)
    except (subprocess.SubprocessError, FileNotFoundError):
        raise AssertionError(
            "UNIX/Linux file command not available; help: apt install file"
        ) from None
    return said.stdout


def magic_filetype(fname: str) -> str:
    """What the first bytes of a file say: gzip, a tar archive, or data."""
    with open(fname, "rb") as stream:
        header = stream.read(512)
    if header[:2] == b"\x1f\x8b":
        return f"{fname}: gzip compressed data"
    if header[257:262] == b"ustar":
        return f"{fname}: POSIX tar archive"
    return f"{fname}: data"


# What else tar readers take: bzip2, xz, the older lzma, zstd and lz4.
_COMPRESSED = (b"BZh", b"\xfd7zXZ", b"\x5d\0\0", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")


def check_tar_format(fname: str) -> bool:
    """Whether a file begins as a tar archive does, or is compressed."""
    assert os.path.exists(fname), f"{fname}: no such file"
    kind = magic_filetype(fname).lower()
    if "tar archive" in kind or "gzip compressed" in kind:
        return True
    with open(fname, "rb") as stream:
        return stream.read(6).startswith(_COMPRESSED)


@obsolete
def pipe_cleaner(spec: str) -> str:
    """The first URL in a command of `pipe:`; anything else as it is."""
    if spec.startswith("pipe:"):
        for word in spec[5:].split(" "):
            if re.match(r"(https?|hdfs|gs|ais|s3):", word):
                return word
    return spec


def url_to_cache_name(url: str, ndir: int = 0) -> str:
    """The name in the cache: the last part of the path, after `ndir` folders; or all of the URL,
    quoted, where a path says nothing.
    """
    assert isinstance(url, str), f"{type(url)}: a URL is a str"
    parsed = urlparse(url)
    if parsed.scheme in ("", "file", "http", "https", "ftp", "ftps", "gs", "s3", "ais"):
        return "/".join(parsed.path.lstrip("/").split("/")[-1 - ndir :])
    return urllib.parse.quote(url, safe="_+{}*,-")[-128:]


class LRUCleanup:
    """Deletes the oldest files of a folder while all have more than `cache_size` bytes.

    keyfn says how old a file is: larger is younger. After a run that deleted, the next one is
    `interval` seconds later at the earliest.
    """

    def __init__(
        self,
        cache_dir: str | None = None,
        cache_size: int = int(1e12),
        keyfn: Callable[[str], float] = os.path.getctime,
        verbose: bool = False,
        interval: float | None = 30,
    ) -> None:
        self.cache_dir = cache_dir
        self.cache_size = cache_size
        self.keyfn = keyfn
        self.verbose = verbose
        self.interval = interval
        self.last_run: float = 0

    def set_cache_dir(self, cache_dir: str) -> None:
        """Changes the folder."""
        self.cache_dir = cache_dir

    def cleanup(self) -> None:
        """Looks at all files, and deletes what is too much."""
        if self.cache_dir is None or not os.path.exists(self.cache_dir):
            return
        if self.interval is not None and time.time() - self.last_run < self.interval:
            return
        files = []
        for folder, _, names in os.walk(self.cache_dir):
            if os.path.basename(folder) == _cache_files.NOTES:
                continue
            for path in (os.path.join(folder, name) for name in names):
                with contextlib.suppress(FileNotFoundError):  # another process deletes too
                    files.append((self.keyfn(path), path, os.path.getsize(path)))
        total = sum(size for _, _, size in files)
        if total <= self.cache_size:
            return
        for _, path, size in sorted(files):
            if total <= self.cache_size:
                break
            total -= size
            if self.verbose:
                print(f"# deleting {path}", file=sys.stderr)
            for name in (path, _cache_files.note_of(path)):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(name)
        self.last_run = time.time()


def download(url: str, dest: str, chunk_size: int = 1024**2, verbose: bool = False) -> None:
    """Copies what gopen reads from a URL to a file, which appears when it is whole."""
    temp = f"{dest}.temp{os.getpid()}"
    if threading.current_thread() is not threading.main_thread():
        temp += f".{threading.get_ident()}"
    try:
        with gopen(url) as stream, open(temp, "wb") as file:
            while data := stream.read(chunk_size):
                file.write(data)
        os.rename(temp, dest)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temp)
        raise


def _url_of(item: dict[str, Any] | str) -> str:
    return str(item["url"]) if isinstance(item, dict) else item


class StreamingOpen:
    """A stage: URLs, or dicts with one, to dicts with `url`, `stream`, and, of local files,
    `local_path`.
    """

    def __init__(
        self, verbose: bool = False, handler: Callable[[Exception], Any] = reraise_exception
    ) -> None:
        self.verbose = verbose
        self.handler = handler

    def __call__(self, urls: Iterable[Any]) -> Iterator[dict[str, Any]]:
        for url in map(_url_of, urls):
            try:
                if islocal(url) and url != "-":
                    path = _local_path(url)
                    opened = {"url": url, "stream": open(path, "rb"), "local_path": path}  # noqa: SIM115
                else:
                    opened = {"url": url, "stream": gopen(url)}
            except Exception as error:
                if self.handler(error):
                    continue
                break
            yield opened


class FileCache:
    """A stage like StreamingOpen that keeps shards of servers as files in `cache_dir`.

    url_to_name: the name of the file of a URL. validator: whether a file that was downloaded is a
    shard. cache_size: how many bytes the folder may have before files are deleted; -1: any number.

    A file is downloaded by one process or thread while the others wait for it, and it appears when
    it is whole. A file that was made from another URL is an error.
    """

    def __init__(
        self,
        cache_dir: str | None = None,
        *,
        url_to_name: Callable[[str], str] = url_to_cache_name,
        verbose: bool = False,
        validator: Callable[[str], bool] | None = check_tar_format,
        handler: Callable[[Exception], bool] = reraise_exception,
        cache_size: int = -1,
        cache_cleanup_interval: int = 30,
    ) -> None:
        self.url_to_name = url_to_name
        self.validator = validator
        self.handler = handler
        self.cache_dir = default_cache_dir if cache_dir is None else cache_dir
        self.verbose = verbose
        self.cleaner: LRUCleanup | None = None
        if cache_size > 0:
            self.cleaner = LRUCleanup(
                self.cache_dir, cache_size, verbose=verbose, interval=cache_cleanup_interval
            )

    def get_file(self, url: str) -> str:
        """The path of the file of a URL, which is downloaded unless it is there."""
        assert isinstance(url, str), f"{type(url)}: a URL is a str"
        if islocal(url):
            return _local_path(url)
        name = self.url_to_name(url)
        if not name or "/" in name:
            raise AssertionError(
                f"bad cache name {name!r} for {url}; help: url_to_name gives the name of a file"
            )
        dest = os.path.join(self.cache_dir, name)
        if os.path.exists(dest):  # whole, and in a folder that may be for reading alone
            _cache_files.check_url(dest, url)
            return dest
        os.makedirs(self.cache_dir, exist_ok=True)
        with _cache_files.alone(dest):
            if os.path.exists(dest):
                _cache_files.check_url(dest, url)
                return dest
            _cache_files.note_url(dest, url)  # before there is a file that others look at
            if self.verbose:
                print(f"# downloading {url} to {dest}", file=sys.stderr)
            if self.cleaner is not None:
                self.cleaner.cleanup()
            download(url, dest, verbose=self.verbose)
            self._validate(url, dest)
        return dest

    def _validate(self, url: str, dest: str) -> None:
        if self.validator is None or self.validator(dest):
            return
        try:
            kind = get_filetype(dest)
        except AssertionError:
            kind = magic_filetype(dest)
        with open(dest, "rb") as stream:
            data = stream.read(200)
        os.remove(dest)
        raise ValueError(
            f"{dest} ({url}) is not a tar archive, but a {kind}, contains {data!r}; help: look at "
            "what the URL gives, or validator=None"
        )

    def __call__(self, urls: Iterable[Any]) -> Iterator[dict[str, Any]]:
        for url in map(_url_of, urls):
            delay = 1.0
            for _ in range(10):
                try:
                    path = self.get_file(url)
                    opened = {"url": url, "stream": open(path, "rb"), "local_path": path}  # noqa: SIM115
                except Exception as error:
                    if not self.handler(error):
                        break
                    time.sleep(delay)
                    delay *= 1.5
                else:
                    yield opened
                    break


__all__ = [
    "DBCache",
    "FileCache",
    "LMDBCached",
    "LRUCleanup",
    "StreamingOpen",
    "check_tar_format",
    "default_cache_dir",
    "default_cache_size",
    "download",
    "get_filetype",
    "islocal",
    "magic_filetype",
    "pipe_cleaner",
    "url_to_cache_name",
    "verbose_cache",
]
