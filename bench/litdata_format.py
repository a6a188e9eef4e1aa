#!/usr/bin/env python3
"""litdata_format.py FOLDER SHARD...: writes the samples of shards in the format of litdata.

litdata reads no tars. Arrays are stored as arrays, what is no array as bytes.
"""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import litdata  # type: ignore[import-untyped]
import numpy as np


def samples(shard: str) -> Iterator[dict[str, object]]:
    sample: dict[str, object] = {}
    with tarfile.open(shard) as tar:
        for member in tar:
            file = tar.extractfile(member)
            assert file is not None
            field, data = member.name.rpartition(".")[2], file.read()
            # cls comes first in the shards of corpora.py.
            if field == "cls":
                sample = {"cls": int(data)}
            else:
                sample[field] = np.load(io.BytesIO(data)) if field == "npy" else data
                yield sample


def main() -> None:
    folder, *shards = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    litdata.optimize(samples, shards, folder, chunk_bytes="64MB", num_workers=1)


if __name__ == "__main__":
    main()
