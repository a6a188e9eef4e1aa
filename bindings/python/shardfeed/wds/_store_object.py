"""Objects of stores as streams, read by the library."""

from __future__ import annotations

import os
import tarfile
import tempfile
from typing import IO, cast

from .._writer import Writer

STORE_SCHEMES = ("s3", "az", "abfs", "abfss")
"""What the library reads and writes, and for which there is no command here."""

_MOST = "16TiB"  # memory= is a limit, and says nothing of what is taken


def open_object(url: str) -> IO[bytes]:
    """An object of a store, whole: all of it is read before the first byte is given."""
    with tempfile.TemporaryDirectory(prefix="shardfeed-") as folder:
        path = os.path.join(folder, "object.tar")
        with Writer(path, memory=_MOST, durable=False, encoder=False) as writer:
            writer.write_files("object", {"bin": url})
        archive = tarfile.open(path)  # noqa: SIM115  # what is returned keeps it open
    return cast("IO[bytes]", archive.extractfile(archive.getmembers()[0]))
