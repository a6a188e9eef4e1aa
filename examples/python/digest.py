"""Streams shards once for a digest and then again for the speed, as examples/c/digest.c does.

python digest.py EPOCHS URL...
"""

import sys
import time
import zlib

import shardfeed


def add(crc: int, data: "bytes | memoryview") -> int:
    """CRC-32 over size and bytes, so that no two sequences look alike."""
    return zlib.crc32(data, zlib.crc32(b"%d:" % len(data), crc))


epochs, urls = int(sys.argv[1]), sys.argv[2:]

samples = digest = 0
with shardfeed.Stream(urls) as stream:
    for sample in stream:
        digest = add(digest, sample.key.encode("utf-8", "surrogateescape"))
        for name, data in sample.items():
            digest = add(add(digest, name.encode("utf-8", "surrogateescape")), data)
        samples += 1

start = time.perf_counter()
timed = 0
with shardfeed.Stream(urls, epochs=epochs) as stream:
    for sample in stream:
        for data in sample.values():
            data[:1]  # look at every field
        timed += 1
took = time.perf_counter() - start
print(f"Python  {samples:8d} samples  digest {digest:08x}  {timed / took:9.0f} samples/s")
