"""`gopen`: a binary stream for any URL, by the scheme of the URL.

Schemes of `gopen_schemes` have a function each; others that shardfeed reads (`s3:`, `az:`, ...) are
read by the library itself. Programs add functions of their own to `gopen_schemes`.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote as url2pathname
from urllib.parse import urlparse

from . import utils
from ._pipe import Pipe, info, set_options
from ._store_object import STORE_SCHEMES, open_object

if TYPE_CHECKING:
    from collections.abc import Callable

# How commands end when nobody reads all that they write: 141 is SIGPIPE as a shell reports it, 23
# and 26 are curl's.
_READING = [141, 23]
_WRITING = [141, 26]
_CURL = ["curl", "--connect-timeout", "30", "--retry", "30", "--retry-delay", "2", "-f", "-s", "-L"]


def _unknown_mode(mode: str) -> ValueError:
    return ValueError(f'{mode}: unknown mode; help: "rb" reads and "wb" writes')


def _command(
    url: str, mode: str, bufsize: int, reading: list[str], writing: list[str] | None
) -> Pipe:
    """A Pipe from or to one of two commands."""
    if mode[:1] == "r":
        return Pipe(reading, mode=mode, bufsize=bufsize, ignore_status=_READING)
    if mode[:1] != "w":
        raise _unknown_mode(mode)
    if writing is None:
        raise ValueError(f"{mode}: cannot write {url}; help: write a file, and copy it there")
    return Pipe(writing, mode=mode, bufsize=bufsize, ignore_status=_WRITING)


def gopen_file(url: str, mode: str = "rb", bufsize: int = 8192) -> Any:
    """A local file, by its path or its URL with `file:`."""
    return open(re.sub(r"^file:(//)?", "", url), mode)


def gopen_pipe(url: str, mode: str = "rb", bufsize: int = 8192) -> Any:
    """The output, or the input, of what `pipe:` has behind it, run by the shell.

    Where there is a bash, the failure of any part of a pipeline is one of the command.
    """
    assert url.startswith("pipe:"), url
    if utils.enforce_security:
        raise ValueError(
            "gopen_pipe: unsafe_gopen is False, cannot open pipe URLs; help: unset WDS_SECURE, and "
            "wds.utils.enforce_security, if the URL is to be trusted"
        )
    if mode[:1] not in ("r", "w"):
        raise _unknown_mode(mode)
    command, bash = url[5:], shutil.which("bash")
    arguments: list[Any] = [[bash, "-o", "pipefail", "-c", command]] if bash else [command]
    return Pipe(*arguments, mode=mode, shell=not bash, bufsize=bufsize, ignore_status=[141])


def gopen_curl(url: str, mode: str = "rb", bufsize: int = 8192) -> Any:
    """What curl gets from a URL, or puts there. Without a curl the library reads http and https."""
    if mode[:1] == "r" and url.startswith(("http:", "https:")) and shutil.which("curl") is None:
        return open_object(url)
    writing = ["curl", "-f", "-s", "-X", "PUT", "-L", "-T", "-", url]
    return _command(url, mode, bufsize, [*_CURL, url], writing)


def gopen_htgs(url: str, mode: str = "rb", bufsize: int = 8192) -> Any:
    """An object of `htgs:`, read as one of `gs:`."""
    if mode[:1] != "r":
        raise ValueError(f"{mode}: cannot write {url}; help: write to gs:")
    return gopen_gsutil(re.sub(r"(?i)^htgs://", "gs://", url), mode, bufsize)


def gopen_hf(url: str, mode: str = "rb", bufsize: int = 8192) -> Any:
    """A file of the Hugging Face hub, read by the library."""
    if mode[:1] != "r":
        raise ValueError(f"{mode}: cannot write {url}; help: huggingface-cli upload")
    return open_object(url)


def gopen_gsutil(url: str, mode: str = "rb", bufsize: int = 8192) -> Any:
    """An object of Google's store by gsutil; without one it is read by the library."""
    if mode[:1] == "r" and shutil.which("gsutil") is None:
        return open_object(url)
    reading, writing = ["gsutil", "cat", url], ["gsutil", "cp", "-", url]
    return _command(url, mode, bufsize, reading, writing)


def gopen_ais(url: str, mode: str = "rb", bufsize: int = 8192) -> Any:
    """An object by the command ais; without one ais:// is read by the library."""
    if mode[:1] == "r" and url.startswith("ais:") and shutil.which("ais") is None:
        return open_object(url)
    return _command(url, mode, bufsize, ["ais", "get", url, "-"], ["ais", "put", "-", url])


def gopen_error(url: str, *args: Any, **kw: Any) -> Any:
    """Raises ValueError."""
    raise ValueError(
        f"{url}: no gopen handler defined; help: wds.gopen_schemes[{urlparse(url).scheme!r}] = "
        "function, or pipe:COMMAND"
    )


def gopen_store(url: str, mode: str = "rb", bufsize: int = 8192) -> Any:
    """An object of a store for which there is no command."""
    if mode[:1] == "w":
        raise ValueError(
            f"{url}: gopen does not write to this store; help: TarWriter and ShardWriter take such "
            "a name, or pipe:COMMAND"
        )
    return open_object(url)


gopen_schemes: dict[str, Callable[..., Any]] = {
    "__default__": gopen_error,
    "pipe": gopen_pipe,
    "http": gopen_curl,
    "https": gopen_curl,
    "ais": gopen_ais,
    "sftp": gopen_curl,
    "ftps": gopen_curl,
    "scp": gopen_curl,
    "gs": gopen_gsutil,
    "htgs": gopen_htgs,
    "hf": gopen_hf,
    **dict.fromkeys(STORE_SCHEMES, gopen_store),
}
"""What opens the URLs of a scheme: `f(url, mode, bufsize, **kw)`."""

for _scheme in filter(None, os.environ.get("USE_AIS_FOR", "").split(":")):
    gopen_schemes[_scheme] = gopen_ais


def rewrite_url(url: str) -> str:
    """The URL after the first rule of GOPEN_REWRITE that changes it.

    GOPEN_REWRITE is `regex=replacement;regex=replacement`; each regex begins where the URL does.
    """
    rules = os.environ.get("GOPEN_REWRITE")
    if rules is None:
        return url
    if utils.enforce_security:
        raise ValueError(
            "rewrite_url: unsafe_gopen is False, cannot rewrite URLs using environment variables; "
            "help: unset GOPEN_REWRITE, or WDS_SECURE"
        )
    for rule in rules.split(";"):
        pattern, equals, replacement = rule.partition("=")
        if not equals:
            raise ValueError(
                f"GOPEN_REWRITE: the rule {rule!r} has no '='; help: regex=replacement, separated "
                "by single semicolons"
            )
        changed = re.sub("^" + pattern, replacement, url)
        if changed != url:
            if int(os.environ.get("GOPEN_VERBOSE", "0")):
                print(f"GOPEN REWRITE {url} -> {changed}")
            return changed
    return url


def _open_local(path: str, mode: str) -> Any:
    if utils.enforce_security:
        raise ValueError(
            "gopen: unsafe_gopen is False, cannot open local files; help: unset WDS_SECURE, and "
            "wds.utils.enforce_security, if the URL is to be trusted"
        )
    return open(path, mode, buffering=int(os.environ.get("GOPEN_BUFFER", "-1")))


def gopen(url: str, mode: str = "rb", bufsize: int = 8192, **kw: Any) -> Any:
    """A binary stream of a URL, for reading ("rb") or writing ("wb").

    "-" is standard input or output. GOPEN_REWRITE changes URLs before they are opened, GOPEN_BUFFER
    is the size of the buffer of local files, GOPEN_VERBOSE=1 says on standard error what is opened.
    Other keywords go to the function of the scheme.
    """
    if int(os.environ.get("GOPEN_VERBOSE", "0")):
        print("GOPEN", url, info, file=sys.stderr)
    assert mode in ("rb", "wb"), f'{mode}: unknown mode; help: "rb" reads and "wb" writes'
    if url == "-":
        return sys.stdin.buffer if mode == "rb" else sys.stdout.buffer
    url = rewrite_url(url)
    parsed = urlparse(url)
    if parsed.scheme == "":
        return _open_local(url, mode)
    if parsed.scheme == "file":
        return _open_local(url2pathname(parsed.path), mode)
    handler = gopen_schemes.get(parsed.scheme, gopen_schemes["__default__"])
    return handler(url, mode, bufsize, **kw)


def reader(url: str, **kw: Any) -> Any:
    """`gopen` for reading."""
    return gopen(url, "rb", **kw)


__all__ = [
    "Pipe",
    "gopen",
    "gopen_ais",
    "gopen_curl",
    "gopen_error",
    "gopen_file",
    "gopen_gsutil",
    "gopen_hf",
    "gopen_htgs",
    "gopen_pipe",
    "gopen_schemes",
    "gopen_store",
    "info",
    "reader",
    "rewrite_url",
    "set_options",
]
