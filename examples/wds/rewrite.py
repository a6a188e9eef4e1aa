"""Writes a data set again: other fields, other names, shards of another size.

    python examples/wds/rewrite.py 'in-{000..009}.tar' 'out-%06d.tar' --maxcount 1000 --keep cls,txt

Samples without one of the fields are left out and counted. Each shard that is whole is listed, with
its checksum, in the file that --list names, as a program would upload it. With --package webdataset
the same program runs with the package webdataset.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
from collections import Counter
from pathlib import Path
from typing import Any


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", help="the shards, with braces")
    parser.add_argument("target", help="the name of the new shards, with %%06d")
    parser.add_argument("--keep", default="cls,txt", help="the fields that go into them")
    parser.add_argument("--maxcount", type=int, default=1000, help="samples of a shard")
    parser.add_argument("--list", type=Path, help="a JSON file with what was written")
    parser.add_argument("--package", default="shardfeed.wds", help="or webdataset")
    options = parser.parse_args()
    wds = importlib.import_module(options.package)
    fields = options.keep.split(",")
    counts: Counter[str] = Counter()
    written: list[dict[str, Any]] = []

    def describe(name: str) -> None:
        digest = hashlib.sha256(Path(name).read_bytes()).hexdigest()
        written.append({"name": Path(name).name, "sha256": digest})

    def wanted(sample: dict[str, Any]) -> bool:
        complete = all(field in sample for field in fields)
        counts["kept" if complete else "left out"] += 1
        return complete

    def renamed(sample: dict[str, Any]) -> dict[str, Any]:
        number = counts["kept"] - 1
        about = {"was": sample["__key__"], "label": sample.get("cls")}
        chosen = {field: sample[field] for field in fields}
        return {"__key__": f"{number // 1000:04d}/{number:08d}", "json": about, **chosen}

    source = wds.WebDataset(options.source, shardshuffle=False, handler=wds.warn_and_continue)
    pipeline = source.decode().select(wanted).map(renamed)
    writer = wds.ShardWriter(
        options.target, maxcount=options.maxcount, post=describe, mtime=0, verbose=0
    )
    with writer as sink:
        for sample in pipeline:
            sink.write(sample)
    print(json.dumps({**counts, "shards": len(written)}))
    if options.list:
        options.list.write_text(json.dumps(written, indent=1))


if __name__ == "__main__":
    main()
