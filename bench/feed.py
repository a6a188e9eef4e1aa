"""Rows over the network: a stream of a feed on loopback against memcpy and pickled batches.

    python bench/feed.py [--rounds 3] [--megabytes 600]

Needs numpy and pyzmq. The rows are images of 224x224 bytes that lie ready in npy fields, so that
nothing is decoded. All sides move the same bytes in batches of 64 in turn; the better of the rounds
counts. `memcpy` copies them inside this process, `pickle` sends them as pickled NumPy arrays over
pyzmq from another process, `local` is the stream that reads the shards itself.
"""

from __future__ import annotations

import argparse
import io
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import shardfeed

SHAPE = (3, 224, 224)
BATCH = 64
SHARDS = 8
# How many times as fast as the other side the feed is meant to be.
TARGETS = {"memcpy": 0.5, "pickle": 3.0}

SENDER = """
import pickle, sys, numpy as np, zmq
rows, shape = int(sys.argv[2]), tuple(map(int, sys.argv[3].split("x")))
context = zmq.Context()
socket = context.socket(zmq.PUSH)
socket.sndhwm = 8
socket.connect(sys.argv[1])
batch = np.ones((%d, *shape), np.uint8)
for _ in range(rows // %d):
    socket.send(pickle.dumps({"npy": batch}, protocol=5), copy=False)
socket.close()
context.term()
"""


def write(folder: Path, samples: int) -> str:
    """Shards with so many images, all in all."""
    image = np.random.default_rng(1).integers(0, 256, SHAPE, np.uint8)
    out = io.BytesIO()
    np.save(out, image)
    with shardfeed.Writer(f"{folder}/%d.tar", max_samples=samples // SHARDS) as writer:
        for number in range(samples):
            writer.write_bytes(f"{number:08}", {"npy": out.getvalue()})
    return f"{folder}/{{0..{SHARDS - 1}}}.tar"


def take(urls: Any, samples: int, **options: Any) -> tuple[float, float]:
    """Seconds of a whole epoch, and until its first batch."""
    start = time.perf_counter()
    first = 0.0
    rows = 0
    with shardfeed.Stream(urls, lanes=8, **options) as stream:
        for batch in stream.batches(BATCH):
            first = first or time.perf_counter() - start
            rows += len(batch["npy"])
    if rows != samples:
        raise SystemExit(f"{rows} rows came instead of {samples}")
    return time.perf_counter() - start, first


def pickled(samples: int) -> float:
    """Seconds until the pickled batches have come, from the first one on."""
    import zmq

    with zmq.Context() as context, context.socket(zmq.PULL) as socket:
        socket.rcvhwm = 8
        socket.rcvtimeo = 60_000
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        shape = "x".join(map(str, SHAPE))
        words = [sys.executable, "-c", SENDER % (BATCH, BATCH), f"tcp://127.0.0.1:{port}"]
        with subprocess.Popen([*words, str(samples), shape]):
            pickle.loads(socket.recv())
            start = time.perf_counter()
            for _ in range(samples // BATCH - 1):
                pickle.loads(socket.recv())
            return (time.perf_counter() - start) * samples / (samples - BATCH)


def copied(samples: int) -> float:
    """Seconds of a memcpy of the same bytes, batch by batch."""
    source = np.ones((BATCH, *SHAPE), np.uint8)
    target = np.empty_like(source)
    start = time.perf_counter()
    for _ in range(samples // BATCH):
        np.copyto(target, source)
    return time.perf_counter() - start


def serving(url: str) -> Iterator[str]:
    """The address of a server, as long as the generator lives."""
    words = [sys.executable, "-m", "shardfeed", "feed", url, "--decode", "npy"]
    with subprocess.Popen(
        [*words, "--bind", "tcp://127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=600)
    arguments = parser.parse_args()
    row = int(np.prod(SHAPE))
    samples = max(arguments.megabytes * 1_000_000 // row // (SHARDS * BATCH), 1) * SHARDS * BATCH
    with tempfile.TemporaryDirectory() as folder:
        url = write(Path(folder), samples)
        server = serving(url)
        address = next(server)
        sides: dict[str, Callable[[], float]] = {
            "feed": lambda: take(address, samples)[0],
            "local": lambda: take(url, samples, decode="npy")[0],
            "pickle": lambda: pickled(samples),
            "memcpy": lambda: copied(samples),
        }
        best = {name: float("inf") for name in sides}
        latency = float("inf")
        for _ in range(arguments.rounds):
            for name, side in sides.items():
                best[name] = min(best[name], side())
            latency = min(latency, take(address, samples)[1])
        for rest in server:
            raise SystemExit(f"the server says {rest}")
    for name, seconds in best.items():
        line = f"{name:8} {samples * row / seconds / 1e9:6.2f} GB/s"
        if name != "feed":
            line += f"   feed / {name} {seconds / best['feed']:5.2f}"
        if name in TARGETS:
            line += f" (wanted {TARGETS[name]})"
        print(line)
    print(f"first batch after open: {latency * 1e3:.1f} ms (wanted 20)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
