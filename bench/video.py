"""Measures videos from shards against FFmpeg's libraries alone and PyAV, on the same videos.

    python bench/video.py

Each row is frames a second that come out, and CPU seconds, the best of some rounds that go over all
rows in turn. "FFmpeg" is a program in C that reads a file for each video, and does nothing with the
frames. PyAV brings an FFmpeg of its own; its threads do not wait for each other while they decode.
"""

from __future__ import annotations

import json
import resource
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import av
import numpy as np
import shardfeed
from command_line import add_measuring, parser_for

SECONDS, RATE = 10, 30
SIZE = (640, 360)
UNIFORM, FIRST = 16, 64
BATCH = 2
# In words of shardfeed, and as a number: below 0 the first ones.
SELECTIONS = (
    (f"first {FIRST}", f"/clip=start:{FIRST}", -FIRST),
    (f"{UNIFORM} of all", f"/frames={UNIFORM}", UNIFORM),
)
PROGRAM = Path(__file__).resolve().parent / "programs" / "ffmpeg_frames.c"


def make(folder: Path, count: int) -> tuple[str, list[str]]:
    """A shard of videos in H.264, and the same videos as files: shades that move, and noise."""
    width, height = SIZE
    y, x = np.mgrid[0:height, 0:width]
    random = np.random.default_rng(0)
    noise = random.integers(0, 24, (8, height, width, 1))
    files = []
    for number in range(count):
        files.append(str(folder / f"{number:06d}.mp4"))
        with av.open(files[-1], "w") as container:
            stream: Any = container.add_stream("libx264", rate=RATE, options={"preset": "fast"})
            stream.width, stream.height = SIZE
            stream.pix_fmt = "yuv420p"
            for i in range(SECONDS * RATE):
                place = i * (3 + number % 3)
                waves = 100 + 60 * np.sin((x + place) / 37.0) + 40 * np.cos((y - place) / 23.0)
                shades = np.stack([waves, waves[::-1], waves[:, ::-1]], -1) + noise[i % 8]
                frame = av.VideoFrame.from_ndarray(
                    np.clip(shades, 0, 255).astype("u1"), format="rgb24"
                )
                container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
    path = folder / "videos.tar"
    with tarfile.open(path, "w") as tar:
        for file in files:
            tar.add(file, Path(file).name)
    return str(path), files


def of_shardfeed(path: str, threads: int, words: str) -> Callable[[], int]:
    def run() -> int:
        stream = shardfeed.Stream(path, decode_threads=threads)
        batches = stream.batches(BATCH, decode=f"mp4:video{words}")
        return sum(batch["mp4"].shape[0] * batch["mp4"].shape[1] for batch in batches)

    return run


def of_pyav(files: list[str], threads: int, count: int) -> Callable[[], int]:
    def read(file: str) -> int:
        found = []
        with av.open(file) as container:
            stream = container.streams.video[0]
            stream.codec_context.thread_count = 1
            total = stream.frames
            chosen = set(range(-count))
            chosen.update((2 * i + 1) * total // (2 * count) for i in range(count))
            for number, frame in enumerate(container.decode(stream)):
                if number in chosen:
                    found.append(frame.to_ndarray(format="rgb24"))
                if len(found) == abs(count):
                    break
        return len(np.stack(found))

    def run() -> int:
        with ThreadPoolExecutor(threads) as pool:
            return sum(pool.map(read, files))

    return run


def of_ffmpeg(program: Path, files: list[str], threads: int, count: int) -> Callable[[], int]:
    def run() -> int:
        command = [str(program), str(threads), str(count), *files]
        return int(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    return run


def build(folder: Path) -> Path:
    program = folder / "ffmpeg_frames"
    flags = subprocess.run(
        [
            "pkg-config",
            "--cflags",
            "--libs",
            "libavformat",
            "libavcodec",
            "libavutil",
            "libswscale",
        ],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.split()
    command = ["cc", "-O2", "-pthread", str(PROGRAM), "-o", str(program), *flags]
    subprocess.run(command, check=True)
    return program


def cpu_seconds() -> float:
    each = (resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in each)


def main() -> None:
    """Prints a table."""
    parser = parser_for(__doc__)
    add_measuring(parser, repeat=5)
    arguments = parser.parse_args()
    count = max(int(20 * arguments.scale), 2 * BATCH)
    figures = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path, files = make(folder, count)
        program = build(folder)
        rows: dict[str, tuple[Callable[[], int], int]] = {}
        for name, words, chosen in SELECTIONS:
            wanted = count * abs(chosen)
            for threads in (1, 2):
                end = f"{threads} thr."
                rows[f"{name}, shardfeed {end}"] = of_shardfeed(path, threads, words), wanted
                rows[f"{name}, FFmpeg {end}"] = of_ffmpeg(program, files, threads, chosen), wanted
                rows[f"{name}, PyAV {end}"] = of_pyav(files, threads, chosen), wanted
        clip = "/clip=random:16/resize=256/crop=224x224"
        rows["random clip of 16 at 224x224, shardfeed 2 thr."] = (
            of_shardfeed(path, 2, clip),
            count * 16,
        )
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
        for _ in range(arguments.repeat):
            for name, (run, wanted) in rows.items():
                start, cpu = time.perf_counter(), cpu_seconds()
                found = run()
                if found != wanted:
                    raise SystemExit(f"{name}: {found} frames, not {wanted}")
                taken[name].append((time.perf_counter() - start, cpu_seconds() - cpu))
        wanted_of = {name: wanted for name, (_, wanted) in rows.items()}
    for name, times in taken.items():
        wall, cpu = (min(column) for column in zip(*times))
        figures[name] = {"frames_per_second": wanted_of[name] / wall, "cpu_seconds": cpu}
        print(f"{name:48} {wanted_of[name] / wall:8.0f} frames/s  {cpu:6.2f} CPU s")
    for name, _, _ in SELECTIONS:
        for threads in (1, 2):
            ours, alone, pyav = (
                figures[f"{name}, {reader} {threads} thr."]["frames_per_second"]
                for reader in ("shardfeed", "FFmpeg", "PyAV")
            )
            print(
                f"{name}, {threads} thread(s): {ours / alone:.2f} of FFmpeg (wanted: 0.9), "
                f"{ours / pyav:.2f} of PyAV"
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
