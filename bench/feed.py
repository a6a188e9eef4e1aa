"""Rows over the network: a stream of a feed on loopback against memcpy and pickled batches.

    python bench/feed.py [--rounds 3] [--megabytes 600]
    python bench/feed.py --compression [--rounds 3] [--megabytes 600]
    python bench/feed.py --links [--rounds 3] [--megabytes 100]

Needs numpy and pyzmq. The rows are images of 224x224 bytes that lie ready in npy fields, so that
nothing is decoded. All sides move the same bytes in batches of 64 in turn; the better of the rounds
counts. `memcpy` copies them inside this process, `pickle` sends them as pickled NumPy arrays over
pyzmq from another process, `local` is the stream that reads the shards itself.

With --compression the rows are samples as they are, texts of 20 kB out of the sources of Python:
how fast they come with each feed_compression, and how many of their bytes the server sends.

With --links, for root alone, two servers and a stream are on hosts of their own, which are network
namespaces. Each server has a link of 200 Mbit/s: both of them against one.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import pickle
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import shardfeed

SHAPE = (3, 224, 224)
BATCH = 64
SHARDS = 8
# How many times as fast as the other side the feed is meant to be.
TARGETS = {"memcpy": 0.5, "pickle": 3.0}
LINK = 200  # Mbit/s of each server with --links
BOTH_LINKS = 1.9  # how many times as fast as one of them they are meant to be together

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


def write_texts(folder: Path, size: int) -> str:
    """Shards with texts of 20 kB, about `size` bytes of them all in all."""
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    text = b"".join(source.read_bytes() for source in sources)
    row = 20_000
    rows = [text[at : at + row] for at in range(0, len(text) - row, row)]
    samples = max(size // row // SHARDS, 1) * SHARDS
    with shardfeed.Writer(f"{folder}/%d.tar", max_samples=samples // SHARDS) as writer:
        for number in range(samples):
            writer.write_bytes(f"{number:08}", {"txt": rows[number % len(rows)]})
    return f"{folder}/{{0..{SHARDS - 1}}}.tar"


def take_samples(url: str, **options: Any) -> tuple[float, int]:
    """Seconds of a whole epoch of raw samples, and their bytes."""
    start = time.perf_counter()
    with shardfeed.Stream(url, lanes=8, **options) as stream:
        taken = sum(len(sample["txt"]) for sample in stream)
    return time.perf_counter() - start, taken


def sent_bytes(http: str) -> int:
    """What the server has sent so far."""
    with urllib.request.urlopen(f"{http}/metrics") as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith("shardfeed_feed_sent_bytes_total "):
                return int(line.split()[1])
    raise SystemExit("the server does not count what it sends")


def compare_compression(rounds: int, megabytes: int) -> int:
    """Prints the table of --compression."""
    with tempfile.TemporaryDirectory() as folder:
        server = serving(write_texts(Path(folder), megabytes * 1_000_000), "--http", ":0")
        address, http = next(server), next(server)
        best = dict.fromkeys(("none", "lz4", "zstd"), float("inf"))
        sent = dict.fromkeys(best, 0)
        taken = 0
        for _ in range(rounds):
            for name in best:
                before = sent_bytes(http)
                seconds, taken = take_samples(address, feed_compression=name)
                best[name] = min(best[name], seconds)
                sent[name] = sent_bytes(http) - before
        for rest in server:
            raise SystemExit(f"the server says {rest}")
    for name, seconds in best.items():
        print(
            f"{name:5} {taken / seconds / 1e6:7.0f} MB/s of text   "
            f"{taken / sent[name]:5.2f} bytes for each that is sent, "
            f"{sent[name] / seconds / 1e6:7.0f} MB/s on the network"
        )
    return 0


TAKER = """
import sys, time, shardfeed
start = time.perf_counter()
with shardfeed.Stream(sys.argv[2:], lanes=8) as stream:
    rows = sum(len(batch["npy"]) for batch in stream.batches(%d))
print(rows, time.perf_counter() - start)
"""


def compare_links(rounds: int, megabytes: int) -> int:
    """Prints what --links is for."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "tests/python"))
    from network_namespaces import network

    row = int(np.prod(SHAPE))
    samples = max(megabytes * 1_000_000 // row // (SHARDS * BATCH), 1) * SHARDS * BATCH
    with (
        tempfile.TemporaryDirectory() as folder,
        network(["cpu-0", "cpu-1", "trainer"]) as hosts,
        contextlib.ExitStack() as servers,
    ):
        url = write(Path(folder), samples)
        addresses = []
        for name in ("cpu-0", "cpu-1"):
            if not hosts[name].limit(LINK):
                return 1
            bind = f"tcp://{hosts[name].address}:7880"
            server = serving(url, "--decode", "npy", bind=bind, inside=hosts[name].inside)
            servers.callback(server.close)
            addresses.append(next(server))
        best = {1: float("inf"), 2: float("inf")}
        for _ in range(rounds):
            for count in best:
                words = [*hosts["trainer"].inside, sys.executable, "-c", TAKER % BATCH]
                told = subprocess.check_output([*words, "links", *addresses[:count]], text=True)
                rows, seconds = told.split()
                if int(rows) != samples:
                    raise SystemExit(f"{rows} rows came instead of {samples}")
                best[count] = min(best[count], float(seconds))
    for count, seconds in best.items():
        print(f"{count} x {LINK} Mbit/s   {samples * row / seconds / 1e6:6.1f} MB/s of rows")
    print(f"two / one {best[1] / best[2]:.2f} (wanted {BOTH_LINKS})")
    return 0


def serving(
    url: str, *more: str, bind: str = "tcp://127.0.0.1:0", inside: Sequence[str] = ()
) -> Generator[str, None, None]:
    """The lines that a server prints, its address first, as long as the generator lives.

    `inside`: words before its command.
    """
    words = [*inside, sys.executable, "-m", "shardfeed", "feed", url, *more]
    with subprocess.Popen([*words, "--bind", bind], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            for _ in range(2 if "--http" in more else 1):
                yield server.stdout.readline().strip()
        finally:
            server.terminate()


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=600)
    parser.add_argument("--compression", action="store_true")
    parser.add_argument("--links", action="store_true")
    arguments = parser.parse_args()
    if arguments.links:
        return compare_links(arguments.rounds, min(arguments.megabytes, 100))
    if arguments.compression:
        return compare_compression(arguments.rounds, arguments.megabytes)
    row = int(np.prod(SHAPE))
    samples = max(arguments.megabytes * 1_000_000 // row // (SHARDS * BATCH), 1) * SHARDS * BATCH
    with tempfile.TemporaryDirectory() as folder:
        url = write(Path(folder), samples)
        server = serving(url, "--decode", "npy")
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
