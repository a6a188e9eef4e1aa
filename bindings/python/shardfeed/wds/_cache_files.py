"""Files of a cache folder: names, locks, and whose bytes they are."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTES = ".shardfeed"
"""The folder, in that of the cache, with a lock and the URL of each file."""

_HELP = "help: let url_to_name give each URL a name of its own, or take another cache folder"


def note_of(path: str) -> str:
    """Where the note about a file of a cache is."""
    folder, name = os.path.split(path)
    return os.path.join(folder, NOTES, hashlib.sha256(os.fsencode(name)).hexdigest()[:32])


@contextlib.contextmanager
def alone(path: str) -> Iterator[None]:
    """No other process, and no other thread, is in the body for the same file."""
    note = note_of(path)
    os.makedirs(os.path.dirname(note), exist_ok=True)
    with open(note + ".lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # each opening of the file has a lock of its own
        yield


def check_url(path: str, url: str) -> None:
    """Raises ValueError when the file was made from another URL. A file of which nothing is known,
    since another program has made it, is taken for that of the first URL that asks.
    """
    note = note_of(path)
    try:
        with open(note, encoding="utf-8", errors="surrogateescape") as stream:
            known = stream.read()
    except FileNotFoundError:
        with contextlib.suppress(OSError):  # of a folder for reading alone
            note_url(path, url)
        return
    if known != _kept(url):
        raise ValueError(
            f"{path} is the file of another URL than {url}: two URLs have the same name in the "
            f"cache; {_HELP}"
        )


def note_url(path: str, url: str) -> None:
    """Says from which URL a file was made."""
    note = note_of(path)
    os.makedirs(os.path.dirname(note), exist_ok=True)
    temp = f"{note}.{os.getpid()}"
    with open(temp, "w", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write(_kept(url))
    os.replace(temp, note)


def _kept(url: str) -> str:
    """What is kept of a URL: a query may have a signature, and differ each time."""
    if url.startswith("pipe:"):
        return hashlib.sha256(url.encode("utf-8", "surrogateescape")).hexdigest()
    return url.split("?", 1)[0].split("#", 1)[0]
