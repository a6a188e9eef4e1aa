"""The same WebDataset program with webdataset and with shardfeed.wds: samples per second of both.

    python bench/wds.py [--rounds 3] [--only tiny,npy]

Each case is run by both packages in turn, on the same files, in one process; the better of the
rounds counts. Processor time is printed beside the time, since it does not hang on neighbours.
"""

from __future__ import annotations

import argparse
import importlib
import io
import tarfile
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# How many times faster each case is meant to be, and for "map" the microseconds of a sample.
TARGETS = {
    "tiny": 15.0,
    "npy": 12.0,
    "rgb8, 2 threads": 2.5,
    "rgb8, 1 thread": 1.4,
    "map": 15.0,
    "shuffle": 15.0,
    "loader, 2 workers": 5.0,
    "loader": 10.0,
}
MAP_SECONDS = 10e-6


def write(path: Path, count: int, fields: Callable[[int], list[tuple[str, bytes]]]) -> str:
    """A shard of so many samples."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for number in range(count):
            for extension, data in fields(number):
                info = tarfile.TarInfo(f"{number:06d}.{extension}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return str(path)


def corpora(folder: Path) -> dict[str, tuple[str, int]]:
    """Shards, and how many samples each has."""
    import numpy
    from PIL import Image

    def array(number: int) -> bytes:
        stream = io.BytesIO()
        numpy.save(stream, numpy.full((16, 16), number, numpy.float32))
        return stream.getvalue()

    rng = numpy.random.RandomState(0)

    def jpeg(number: int) -> bytes:
        pixels = numpy.cumsum(rng.randint(-3, 4, (224, 224, 3)), axis=1) % 256
        stream = io.BytesIO()
        Image.fromarray(pixels.astype(numpy.uint8)).save(stream, "JPEG", quality=90)
        return stream.getvalue()

    def label(number: int) -> tuple[str, bytes]:
        return "cls", b"%d" % (number % 10)

    sizes = {"tiny": 40_000, "npy": 10_000, "jpg": 800}
    made = {
        "tiny": lambda i: [("txt", b"hello %d" % i), label(i)],
        "npy": lambda i: [("npy", array(i)), label(i)],
        "jpg": lambda i: [("jpg", jpeg(i)), label(i)],
    }
    return {
        name: (write(folder / f"{name}.tar", sizes[name], fields), sizes[name])
        for name, fields in made.items()
    }


def work(sample: Any) -> Any:
    """A function that takes 10 microseconds."""
    end = time.perf_counter() + MAP_SECONDS
    while time.perf_counter() < end:
        pass
    return sample


def cases(wds: Any, shards: dict[str, tuple[str, int]]) -> Iterator[tuple[str, int, Any]]:
    """Name, samples, and the pipeline."""

    def data(name: str, copies: int = 1) -> Any:
        return wds.WebDataset([shards[name][0]] * copies, shardshuffle=False)

    def threads(pipeline: Any, count: int) -> Any:
        return pipeline.engine(threads=count) if hasattr(pipeline, "engine") else pipeline

    def size(name: str) -> int:
        return shards[name][1]

    yield "tiny", size("tiny"), data("tiny")
    npy = data("npy").decode().to_tuple("npy", "cls").batched(100)
    yield "npy", size("npy"), npy
    yield "rgb8, 2 threads", size("jpg"), threads(data("jpg").decode("rgb8"), 2)
    yield "rgb8, 1 thread", size("jpg"), threads(data("jpg").decode("rgb8"), 1)
    yield "map", size("tiny"), data("tiny").map(work)
    yield "shuffle", size("tiny"), data("tiny").shuffle(1000, seed=1)
    loader = wds.WebLoader(data("tiny").batched(100), batch_size=None, num_workers=0)
    yield "loader", size("tiny"), loader.unbatched()
    many = data("tiny", 8).batched(100)
    yield "loader, 2 workers", 8 * size("tiny"), wds.WebLoader(many, batch_size=None, num_workers=2)


def timed(pipeline: Any) -> tuple[float, float]:
    """Seconds, and seconds of the processor, of one pass."""
    start, used = time.perf_counter(), time.process_time()
    for _ in pipeline:
        pass
    return time.perf_counter() - start, time.process_time() - used


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="cases, separated by semicolons")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    wanted = options.only.split(";") if options.only else list(TARGETS)
    packages = [importlib.import_module(name) for name in ("webdataset", "shardfeed.wds")]
    with tempfile.TemporaryDirectory() as folder:
        shards = corpora(Path(folder))
        print(
            f"{'case':18} {'webdataset':>20} {'shardfeed.wds':>20} {'times':>7} {'CPU':>7}  wanted"
        )
        for theirs, ours in zip(*(cases(package, shards) for package in packages)):
            if theirs[0] not in wanted:
                continue
            rounds = [(timed(theirs[2]), timed(ours[2])) for _ in range(options.rounds)]
            print(line(theirs[0], theirs[1], rounds), flush=True)


def line(name: str, count: int, rounds: list[Any]) -> str:
    """The result of a case: microseconds of a sample, in all and of the processor."""
    best = [[min(r[p][k] for r in rounds) / count * 1e6 for k in (0, 1)] for p in (0, 1)]
    shown = [f"{wall:9.2f} ({cpu:6.2f}) us" for wall, cpu in best]
    wanted = f"{TARGETS[name]:g} times"
    if name == "map":
        wanted = f"at most {TARGETS[name]:g} us"
    times, cpu = best[0][0] / best[1][0], best[0][1] / max(best[1][1], 1e-9)
    return f"{name:18} {shown[0]:>20} {shown[1]:>20} {times:7.1f} {cpu:7.1f}  {wanted}"


if __name__ == "__main__":
    main()
