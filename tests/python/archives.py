"""Archives for the tests: written with zipfile and tarfile, read with shardfeed."""

from __future__ import annotations

import zipfile
from pathlib import Path

from conftest import Members, write_tar

FORMATS = ["zip", "deflated.zip", "tar", "tar.gz", "memory.zip", "memory.tar.xz"]


def write_zip(path: Path, members: Members, method: int = zipfile.ZIP_STORED) -> Path:
    """A ZIP file of these members, in this order."""
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in members:
            file.writestr(zipfile.ZipInfo(name), data, method)
    return path


def write_archive(path: Path, members: Members, form: str) -> Path | bytes:
    """What shardfeed.Archive takes: a path, or for memory.* the bytes."""
    path = path.with_suffix("." + form)
    if form.endswith("zip"):
        method = zipfile.ZIP_DEFLATED if form == "deflated.zip" else zipfile.ZIP_STORED
        write_zip(path, members, method)
    else:
        _, _, codec = form.rpartition("tar.")
        write_tar(path, members, mode="w" if codec in ("", "tar") else f"w:{codec}")
    return path.read_bytes() if form.startswith("memory") else path


def images(count: int, size: int = 1000) -> list[tuple[str, bytes]]:
    """Members whose first bytes are their number; every tenth is larger than 64 KiB."""
    return [
        (f"img_{n:05d}.png", f"{n:08d}".encode().ljust(size * (100 if n % 10 == 9 else 1), b"x"))
        for n in range(count)
    ]
