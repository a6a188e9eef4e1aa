"""Outputs that appear whole or not at all, and replace nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ._rows import refuse


def _check(target: Path) -> None:
    if os.path.lexists(target):
        refuse(f"{target} is there already", "give another name; nothing is overwritten")
    if not target.parent.is_dir():
        refuse(f"there is no folder {target.parent}", "make it first")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """A path to write to. Without an exception the file is then published as `target`."""
    _check(target)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        mask = os.umask(0)
        os.umask(mask)
        partial.chmod(0o666 & ~mask)
        _sync(partial)
        os.link(partial, target)  # which never replaces a file
        _sync(target.parent)
    finally:
        partial.unlink()


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to write into, likewise."""
    _check(target)
    partial = Path(
        tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
    )
    try:
        yield partial
        mask = os.umask(0)
        os.umask(mask)
        partial.chmod(0o777 & ~mask)
        for path in (*partial.rglob("*"), partial):
            _sync(path)
        _check(target)
        partial.rename(target)
        _sync(target.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
