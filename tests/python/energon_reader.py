"""Reads shards through Megatron-Energon, for test_other_readers.py.

python energon_reader.py OUT SHARDS PREPARED...

SHARDS is a folder of .tar files with their .tar.idx. Each folder PREPARED has .tar files alone:
"energon prepare" makes its index of them.
"""

from __future__ import annotations

import pickle
import random
import sys
from pathlib import Path
from typing import Any

from megatron.energon.cli.main import main as energon
from megatron.energon.epathlib import EPath
from megatron.energon.flavors.webdataset.itar import TarIndexReader
from megatron.energon.flavors.webdataset.itar_reader import (
    ShardInfosITarReader,
    SqliteITarEntryReader,
)
from megatron.energon.flavors.webdataset.structs import ShardInfo

Sample = tuple[str, dict[str, bytes]]


def plain(sample: Any) -> Sample:
    return sample["__key__"], {n: data for n, data in sample.items() if not n.startswith("__")}


def read_by_number(folder: Path) -> list[Sample]:
    """All samples, read in a random order."""
    base = EPath(folder)
    shards = []
    for path in sorted(folder.glob("*.tar")):
        with TarIndexReader(EPath(path)) as index:
            shards.append(ShardInfo(name=path.name, path=base / path.name, count=len(index) - 1))
    reader = ShardInfosITarReader(base, shards)
    numbers = list(range(len(reader)))
    random.Random(14).shuffle(numbers)
    samples = {number: plain(reader[number]) for number in numbers}
    reader.close()
    return [samples[number] for number in range(len(samples))]


def prepare(folder: Path) -> None:
    """As on a command line."""
    words = "prepare --non-interactive --split-ratio 1,0,0 --skip-dataset-yaml --num-workers 2"
    energon([*words.split(), str(folder)], standalone_mode=False)


def read_by_key(folder: Path) -> list[Sample]:
    """All samples of the data base of "prepare", by key: several processes have filled it."""
    reader = SqliteITarEntryReader(EPath(folder))
    keys = [key for key, _, _ in reader.list_all_samples()]
    samples = [plain(reader[key]) for key in keys]
    reader.close()
    return sorted(samples)


def main() -> None:
    """Pickles what was read by number, then by key in each prepared folder."""
    out, shards, *prepared = map(Path, sys.argv[1:])
    made = [read_by_number(shards)]
    for folder in prepared:
        prepare(folder)
        made.append(read_by_key(folder))
    out.write_bytes(pickle.dumps(made))


if __name__ == "__main__":
    main()
