"""Measures sounds from shards against libsndfile alone, on the same sounds in one run.

    python bench/audio.py

Each row is CPU and wall seconds for all sounds, the best of some rounds that go over all rows in
turn. "libsndfile" reads a file for each sound, through the package soundfile, and does nothing with
the numbers; its threads do not wait for each other.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import shardfeed
import soundfile
from command_line import add_measuring, parser_for

RATE = 16000
SECONDS = 10
BATCH = 16


def speech_like(seed: int) -> np.ndarray:
    """Ten seconds: noise through a resonance, in syllables. FLAC halves it, as it does speech."""
    random = np.random.default_rng(seed)
    noise = random.normal(0, 0.05, SECONDS * RATE)
    smooth = np.convolve(noise, np.hanning(32) / 8, "same")
    syllables = np.abs(np.sin(np.arange(len(smooth)) * (2 * np.pi / RATE * random.uniform(1, 3))))
    return (smooth * syllables).astype("f4")


def make(folder: Path, kind: str, count: int) -> tuple[str, list[str]]:
    """A shard of sounds, and the same sounds as files."""
    path = folder / f"{kind}.tar"
    files = []
    with tarfile.open(path, "w") as tar:
        for number in range(count):
            data = io.BytesIO()
            soundfile.write(data, speech_like(number), RATE, format=kind.upper())
            files.append(folder / f"{number:06d}.{kind}")
            files[-1].write_bytes(data.getvalue())
            tar.add(files[-1], files[-1].name)
    return str(path), [str(file) for file in files]


def of_shardfeed(path: str, kind: str, threads: int, words: str = "") -> Callable[[], int]:
    def run() -> int:
        stream = shardfeed.Stream(path, decode_threads=threads)
        return sum(len(batch) for batch in stream.batches(BATCH, decode=f"{kind}:audio{words}"))

    return run


def of_libsndfile(files: list[str], threads: int) -> Callable[[], int]:
    def read(file: str) -> int:
        return len(soundfile.read(file, dtype="float32")[0]) // (SECONDS * RATE)

    def run() -> int:
        with ThreadPoolExecutor(threads) as pool:
            return sum(pool.map(read, files))

    return run


def main() -> None:
    """Prints a table."""
    parser = parser_for(__doc__)
    add_measuring(parser, repeat=5)
    arguments = parser.parse_args()
    count = max(int(1000 * arguments.scale), 2 * BATCH)
    figures = {}
    with tempfile.TemporaryDirectory() as temporary:
        rows: dict[str, Callable[[], int]] = {}
        for kind in ("flac", "wav"):
            folder = Path(temporary) / kind
            folder.mkdir()
            path, files = make(folder, kind, count)
            for threads in (1, 2):
                rows[f"{kind} shardfeed {threads} thr."] = of_shardfeed(path, kind, threads)
                rows[f"{kind} libsndfile {threads} thr."] = of_libsndfile(files, threads)
            rows[f"{kind} shardfeed 2 thr., crop=random:2s"] = of_shardfeed(
                path, kind, 2, "/crop=random:2s"
            )
            rows[f"{kind} shardfeed 2 thr., rate=8000"] = of_shardfeed(path, kind, 2, "/rate=8000")
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
        for _ in range(arguments.repeat):
            for name, run in rows.items():
                start, cpu = time.perf_counter(), time.process_time()
                found = run()
                if found != count:
                    raise SystemExit(f"{name}: {found} sounds, not {count}")
                taken[name].append((time.perf_counter() - start, time.process_time() - cpu))
    for name, times in taken.items():
        wall, cpu = (min(column) for column in zip(*times))
        figures[name] = {"sounds_per_second": count / wall, "cpu_seconds": cpu}
        print(f"{name:48} {count / wall:8.0f} sounds/s  {cpu:6.2f} CPU s")
    for kind in ("flac", "wav"):
        for threads in (1, 2):
            ours, theirs = (
                figures[f"{kind} {reader} {threads} thr."]["sounds_per_second"]
                for reader in ("shardfeed", "libsndfile")
            )
            print(f"{kind}, {threads} thread(s): {ours / theirs:.2f} of libsndfile (wanted: 0.95)")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
