#!/usr/bin/env python3
"""Opens the archive of remote_archive.py with shardfeed, reads members of it, and prints one JSON
line. `many` reads all wanted members by one call of read_many, `single` one by one, `open` none.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib

import shardfeed
from remote_archive import shuffled_names


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("work", choices=("open", "many", "single"))
    parser.add_argument("url")
    parser.add_argument("wanted", type=int, help="members to read")
    parser.add_argument("connections", type=int)
    arguments = parser.parse_args()
    start = time.perf_counter()
    archive = shardfeed.Archive(arguments.url, connections=arguments.connections)
    opened = time.perf_counter() - start
    members = len(archive)
    names = shuffled_names(arguments.wanted)
    start = time.perf_counter()
    read = []
    if arguments.work == "many":
        read = archive.read_many(names)
    elif arguments.work == "single":
        read = [archive[name].read() for name in names]
    seconds = time.perf_counter() - start
    sums = [zlib.crc32(data) for data in read]
    result = {"open_seconds": opened, "seconds": seconds, "members": members}
    print(json.dumps(result | {"checksum": zlib.crc32(json.dumps(sums).encode())}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
