"""Files of servers as local files."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections import deque
from typing import IO, TYPE_CHECKING, Any, Callable
from urllib.parse import urlparse
from urllib.request import url2pathname

from ..wds import utils
from ..wds._store_object import open_object

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self, TypeAlias

Handler: TypeAlias = "str | Callable[[str, str], Any]"

recent_downloads: deque[tuple[str, str, float, float]] = deque(maxlen=1000)

verbose_cmd: int = int(os.environ.get("WIDS_VERBOSE_CMD", "0"))


class ULockFile:
    """A lock that other processes see: a file that is there while it is held."""

    def __init__(self, path: str) -> None:
        self.lockfile_path = path
        self.lockfile: IO[str] | None = None

    def __enter__(self) -> Self:
        while self.lockfile is None:
            stream = open(self.lockfile_path, "w")  # closed by __exit__
            fcntl.flock(stream, fcntl.LOCK_EX)
            # The one before us has deleted the file: whoever comes next would lock another one.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(stream.fileno()), os.stat(self.lockfile_path)):
                    self.lockfile = stream
                    continue
            stream.close()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.lockfile_path)
        stream, self.lockfile = self.lockfile, None
        if stream is not None:
            stream.close()


def _run(command: str | list[str]) -> None:
    shell = isinstance(command, str)
    status = subprocess.run(command, shell=shell, check=False).returncode
    shown = command if isinstance(command, str) else shlex.join(command)
    assert status == 0, f"Command failed: {shown} (exit {status}); help: run it by itself"


def pipe_download(remote: str, local: str) -> None:
    """Runs the command of `pipe:`, in which `{local}` is the file that it makes."""
    assert remote.startswith("pipe:"), remote
    if utils.enforce_security:
        raise ValueError(
            "pipe_download: unsafe_gopen is False, cannot open pipe URLs; help: unset WDS_SECURE "
            "if the URL is to be trusted"
        )
    _run(remote[5:].format(local=local))


def local_path(url: str) -> str:
    """The path of a local URL: a plain one as it is, quoted or not with `file:`."""
    if not url.startswith("file:"):
        return url
    path = urlparse(url).path
    return path if os.path.exists(path) else url2pathname(path)


def copy_file(remote: str, local: str) -> None:
    """Copies a local file."""
    assert urlparse(remote).scheme in ("file", ""), f"{remote}: no local file"
    source = os.path.abspath(local_path(remote))
    if source != os.path.abspath(local_path(local)):
        shutil.copyfile(source, local_path(local))


def vcmd(flag: str, verbose_flag: str = "") -> str:
    """The flag that makes a command quiet, or the one that does not, by WIDS_VERBOSE_CMD."""
    return verbose_flag if verbose_cmd else flag


def _command(*words: str) -> list[str]:
    return [word for word in words if word]


def _curl(remote: str, local: str) -> None:
    _run(_command("curl", "-f", vcmd("-s"), vcmd("-S"), "-L", remote, "-o", local))


def _object(remote: str, local: str) -> None:
    with open_object(remote) as stream, open(local, "wb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)


def _gsutil(remote: str, local: str) -> None:
    if shutil.which("gsutil") is None:
        _object(remote, local)
    else:
        _run(_command("gsutil", vcmd("-q"), "cp", remote, local))


def _aws(remote: str, local: str) -> None:
    if shutil.which("aws") is None:
        _object(remote, local)
    else:
        _run(["aws", "s3", "cp", remote, local])


default_cmds: dict[str, Handler] = {
    "posixpath": copy_file,
    "file": copy_file,
    "pipe": pipe_download,
    "http": _curl,
    "https": _curl,
    "ftp": _curl,
    "ftps": _curl,
    "gs": _gsutil,
    "s3": _aws,
    **dict.fromkeys(("az", "abfs", "abfss", "hf", "ais"), _object),
}
"""How the URLs of a scheme are downloaded: `f(url, path)`, or a command with {url} and {local}."""


def download_file_no_log(
    remote: str, local: str, handlers: dict[str, Handler] = default_cmds
) -> str:
    """Downloads a URL to a local path."""
    schema = "pipe" if remote.startswith("pipe:") else urlparse(remote).scheme or "posixpath"
    handler = handlers.get(schema)
    if handler is None:
        raise ValueError(
            f"Unknown schema: {schema}; help: known are {' '.join(handlers)}; copy the file, or "
            "'pipe:COMMAND {local}'"
        )
    if callable(handler):
        handler(remote, local)
    else:
        _run(handler.format(url=remote, local=local))
    return local


def download_file(
    remote: str, local: str, handlers: dict[str, Handler] = default_cmds, verbose: bool = False
) -> str:
    """Downloads a URL to a local path, and notes it in recent_downloads."""
    start = time.time()
    try:
        return download_file_no_log(remote, local, handlers=handlers)
    finally:
        took = time.time() - start
        recent_downloads.append((remote, local, time.time(), took))
        if verbose:
            print("downloaded", remote, "to", local, "in", took, "seconds", file=sys.stderr)


def download_and_open(
    remote: str,
    local: str,
    mode: str = "rb",
    handlers: dict[str, Handler] = default_cmds,
    verbose: bool = False,
) -> IO[Any]:
    """Opens the local file of a URL, which is downloaded unless it is there.

    One process downloads while others wait, and the file appears when it is whole.
    """
    with ULockFile(local + ".lock"):
        if os.path.exists(local):
            if verbose:
                print("using cached", local, file=sys.stderr)
        else:
            if verbose:
                print("downloading", remote, "to", local, file=sys.stderr)
            temp = f"{local}.temp{os.getpid()}"
            try:
                download_file(remote, temp, handlers=handlers)
                os.rename(temp, local)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(temp)
                raise
        return open(local, mode)
