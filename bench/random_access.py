#!/usr/bin/env python3
"""Measures random access: members of ZIP files and samples of a tar, in shuffled order.

From Python shardfeed.Archive and zipfile, and both in PyTorch's DataLoader where torch is
installed; from C, with --build, shardfeed, libzip, the Rust crate zip over a memory map, and what
the system allows. Run it with an interpreter that has shardfeed. The first run writes 850 MB to
data/. Files are in the page cache. Rounds go over all rows in turn,
and the best of each row counts. Slow is not an error; wrong is: every reader must find the bytes
that were written, else the exit status is 1.
"""

from __future__ import annotations

import io
import json
import math
import os
import platform
import random
import subprocess
import sys
import tarfile
import threading
import time
import warnings
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterable
from pathlib import Path

import corpora
import shardfeed
from building import ROOT, build_rust, build_with_shardfeed, compile_with_package, note
from command_line import add_measuring, parser_for

DATA = corpora.DATA
BATCH = 256

Work = Callable[[list[int]], object]


# ---- Files ---------------------------------------------------------------------------------------


def members_file(name: str, count: int, method: int, data: Callable[[int], bytes]) -> Path:
    """A ZIP file with `count` members; made when it is not there."""
    path = DATA / f"{name}-{count}.zip"
    if not path.exists():
        DATA.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        with zipfile.ZipFile(unfinished, "w", method) as file:
            for number in range(count):
                file.writestr(f"{number % 100:02d}/img_{number:08d}.png", data(number))
        unfinished.rename(path)
    return path


def tiny(number: int) -> bytes:
    return b"%d" % number


def pixels(number: int) -> bytes:
    return random.Random(number).randbytes(10_000)


def text(number: int) -> bytes:
    return corpora.text(random.Random(number), 1 << 16)


# ---- Measuring -----------------------------------------------------------------------------------


def in_threads(work: Work, count: int) -> Work:
    """The same work, each thread doing its share."""

    def shared(order: list[int]) -> None:
        threads = [
            threading.Thread(target=work, args=(order[number::count],)) for number in range(count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return shared


def best_of(rows: dict[str, Work], order: list[int], rounds: int) -> dict[str, float]:
    """Seconds of each row."""
    best = dict.fromkeys(rows, float("inf"))
    for _ in range(rounds):
        for name, work in rows.items():
            start = time.perf_counter()
            work(order)
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def table(title: str, count: int, seconds: dict[str, float]) -> dict[str, object]:
    """Prints the rows with their ratio to the first; the figures."""
    print(f"## {title}")
    print(f"{'':40}{'us each':>10}{'members/s':>14}{'ratio':>8}")
    first = next(iter(seconds.values()))
    for name, taken in seconds.items():
        each = f"{taken / count * 1e6:10.2f}{count / taken:14,.0f}"
        print(f"{name:40}{each}{first / taken:8.2f}")
    print(flush=True)
    return {name: {"seconds": taken, "ratio": first / taken} for name, taken in seconds.items()}


def measure_opening(count: int, rounds: int) -> dict[str, object]:
    path = members_file("tiny", count, zipfile.ZIP_STORED, tiny)
    rows: dict[str, Work] = {
        "zipfile.ZipFile": lambda _: zipfile.ZipFile(path).close(),
        "shardfeed.Archive": lambda _: shardfeed.Archive(path).close(),
    }
    with zipfile.ZipFile(path) as theirs, shardfeed.Archive(path) as ours:
        if ours.names() != theirs.namelist():
            sys.exit(f"WRONG: names of {path}")
    return table(f"Opening {count:,} members", count, best_of(rows, [], rounds))


def measure_reading(
    title: str, path: Path, rounds: int, expected: Callable[[int], bytes]
) -> dict[str, object]:
    theirs, ours = zipfile.ZipFile(path), shardfeed.Archive(path)
    single = shardfeed.Archive(path, threads=1)
    names = theirs.namelist()
    order = list(range(len(names)))
    random.Random(1).shuffle(order)

    def batches(archive: shardfeed.Archive) -> Work:
        def work(order: list[int]) -> None:
            for first in range(0, len(order), BATCH):
                archive.read_many(order[first : first + BATCH])

        return work

    def unzip(order: list[int]) -> None:
        for position in order:
            theirs.read(names[position])

    def read(order: list[int]) -> None:
        for position in order:
            ours.read(position)

    def read_names(order: list[int]) -> None:
        for position in order:
            ours.read(names[position])

    for position in order[:BATCH]:
        data = expected(position)
        views = ours.read_many([position, order[0]])
        if not data == ours.read(position) == views[0] == theirs.read(names[position]):
            sys.exit(f"WRONG: member {position} of {path}")
    for position, view in zip(order, ours.read_many(order)):
        if zlib.crc32(view) != theirs.infolist()[position].CRC:
            sys.exit(f"WRONG: member {position} of {path}")
    rows = {
        "zipfile, read(name)": unzip,
        "zipfile, read(name), 2 threads": in_threads(unzip, 2),
        "shardfeed, read(position)": read,
        "shardfeed, read(name)": read_names,
        "shardfeed, read(position), 2 threads": in_threads(read, 2),
        f"shardfeed, read_many of {BATCH}, threads=1": batches(single),
        f"shardfeed, read_many of {BATCH}": batches(ours),
    }
    return table(title, len(order), best_of(rows, order, rounds))


# ---- In a DataLoader ----------------------------------------------------------------------------

SHAPE = (3, 256, 256)
WORKERS = 8
LOADER_BATCH = 16  # so that what waits in shared memory fits the 64 MB that containers have


def image(number: int) -> bytes:
    return random.Random(number).randbytes(math.prod(SHAPE))


def images_file(count: int) -> Path:
    """A ZIP file with images of raw bytes. The label of each is its checksum."""
    path = DATA / f"images-{count}.zip"
    if not path.exists():
        DATA.mkdir(parents=True, exist_ok=True)
        labels = {}
        unfinished = path.with_suffix(".part")
        with zipfile.ZipFile(unfinished, "w") as file:
            for number in range(count):
                name, data = f"img_{number:06d}.png", image(number)
                labels[name] = zlib.crc32(data)
                file.writestr(name, data)
            file.writestr("dataset.json", json.dumps({"labels": labels}))
        unfinished.rename(path)
    return path


def measure_loading(count: int, rounds: int) -> dict[str, object] | None:
    """Epochs of a DataLoader over stored raw images. None without PyTorch."""
    try:
        import torch
    except ModuleNotFoundError:
        note("torch is not installed; DataLoader is left out")
        return None
    sys.path.insert(0, str(ROOT / "examples/python"))
    import zip_images
    from shardfeed.torch import ZipDataset

    class RawZipfileImages(zip_images.ZipfileImages):
        """The cure of the example, for images of raw bytes."""

        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            data = bytearray(self.read(index))  # tensors are to be written to
            tensor = torch.frombuffer(data, dtype=torch.uint8).reshape(SHAPE)
            return tensor, self.labels[self.names[index]]

    class OneImage(zip_images.Dataset):
        """The same image always: what the loader itself takes."""

        def __init__(self) -> None:
            self.item = torch.zeros(SHAPE, dtype=torch.uint8), 0

        def __len__(self) -> int:
            return count

        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            return self.item

    # The table is about eight, whatever PyTorch advises for this machine.
    warnings.filterwarnings("ignore", "This DataLoader will create")
    path = images_file(count)
    with zipfile.ZipFile(path) as file:
        labels = json.loads(file.read("dataset.json"))["labels"]
    rows: dict[str, Work] = {}
    for name, data in (
        (f"zipfile in each of {WORKERS} workers", RawZipfileImages(path, labels)),
        (f"shardfeed.torch, {WORKERS} workers", ZipDataset(path, shape=SHAPE)),
    ):
        loader = zip_images.make_loader(data, WORKERS, LOADER_BATCH)
        seen = set()
        for images, checksums in loader:
            for one, checksum in zip(images, checksums.tolist()):
                if zlib.crc32(one.numpy()) != checksum:
                    sys.exit(f"WRONG: {name}: an image that is not the one of its label")
                seen.add(checksum)
        if seen != set(labels.values()):
            sys.exit(f"WRONG: {name}: {len(seen)} images of {count}")
        rows[name] = lambda _, loader=loader: zip_images.run_epoch(loader)
    limit = zip_images.make_loader(OneImage(), WORKERS, LOADER_BATCH)
    zip_images.run_epoch(limit)  # starts the workers
    rows[f"nothing is read, {WORKERS} workers"] = lambda _: zip_images.run_epoch(limit)
    title = f"DataLoader, raw images of {math.prod(SHAPE):,} bytes, batches of {LOADER_BATCH}"
    return table(title, count, best_of(rows, [], rounds))


# ---- From C and Rust -----------------------------------------------------------------------------


class Programs:
    """The measuring programs, and the files that tell them what to read."""

    def __init__(self, build: Path, rounds: int) -> None:
        self.rounds = str(rounds)
        self.shardfeed = build_with_shardfeed("shardfeed_random", build.resolve())
        self.libzip = compile_with_package("libzip_random", "libzip")
        self.limit = compile_with_package("random_limit", "libdeflate")
        self.rust = build_rust("rust_zip")
        self.rust_shardfeed = build_rust("rust_shardfeed", build.resolve())

    def run(self, program: Path | None, *arguments: object) -> dict[str, float] | None:
        if program is None:
            return None
        command = [str(program), *map(str, arguments)]
        done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE)
        result: dict[str, float] = json.loads(done.stdout)
        return result


def numbers_file(name: str, numbers: Iterable[int]) -> Path:
    path = DATA / f"{name}.u64"
    path.write_bytes(array("Q", numbers).tobytes())
    return path


def compare(title: str, runs: dict[str, dict[str, float] | None]) -> dict[str, object]:
    """Prints the table of programs that did the same; the first one sets the ratios."""
    done = {name: run for name, run in runs.items() if run is not None}
    if not done:
        return {}
    for name, run in done.items():
        first = next(iter(done.values()))
        for what in ("members", "bytes", "checksum"):
            if run[what] != first[what]:
                sys.exit(f"WRONG: {name} of {title}: other {what} than the others")
    count = int(next(iter(done.values()))["members"])
    return table(title, count, {name: run["seconds"] for name, run in done.items()})


def measure_programs(programs: Programs, opened: Path, read: dict[str, Path]) -> dict[str, object]:
    rounds = programs.rounds
    nothing = numbers_file("nothing", [])
    figures = {
        "open": compare(
            "From C and Rust: opening",
            {
                "libzip": programs.run(programs.libzip, "open", opened, nothing, rounds),
                "Rust crate zip": programs.run(programs.rust, "open", opened, nothing, rounds),
                "shardfeed": programs.run(programs.shardfeed, "open", opened, nothing, rounds),
                "shardfeed Rust": programs.run(
                    programs.rust_shardfeed, "open", opened, nothing, rounds
                ),
            },
        )
    }
    for name, path in read.items():
        with zipfile.ZipFile(path) as file:
            entries = file.infolist()
        shuffled = list(range(len(entries)))
        random.Random(1).shuffle(shuffled)
        order = numbers_file("order", shuffled)
        ranges = []
        for position in shuffled:
            entry = entries[position]  # zipfile writes no local extra field here
            data = entry.header_offset + 30 + len(entry.filename.encode())
            made = entry.file_size if entry.compress_type else 0
            ranges += [data, entry.compress_size, made]
        limit = programs.run(programs.limit, path, numbers_file("ranges", ranges), rounds)
        mine = programs.shardfeed
        figures[name] = compare(
            f"From C and Rust: {name}, shuffled",
            {
                "limit": limit,
                "libzip": programs.run(programs.libzip, "read", path, order, rounds),
                "Rust crate zip over a memory map": programs.run(
                    programs.rust, "read", path, order, rounds
                ),
                "Rust crate zip over a BufReader": programs.run(
                    programs.rust, "file", path, order, rounds
                ),
                "shardfeed, read": programs.run(mine, "read", path, order, rounds),
                "shardfeed, read_many, threads=1": programs.run(
                    mine, "many", path, order, rounds, "threads=1"
                ),
                "shardfeed, read_many": programs.run(mine, "many", path, order, rounds),
                "shardfeed Rust, read_into": programs.run(
                    programs.rust_shardfeed, "read", path, order, rounds
                ),
                "shardfeed Rust, read_into, in memory": programs.run(
                    programs.rust_shardfeed, "memory", path, order, rounds
                ),
                "shardfeed Rust, read_many_into": programs.run(
                    programs.rust_shardfeed, "many", path, order, rounds
                ),
            },
        )
    return figures


def measure_dataset(programs: Programs, samples: int) -> dict[str, object]:
    """Samples of a tar by number, against pread(2) of their fields."""
    figures: dict[str, object] = {}
    for size in (1_000, 10_000, 100_000):
        count = max(300, samples * 1_000 // size)
        path = DATA / f"samples-{size}-{count}.tar"
        if not path.exists():
            with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
                for number in range(count):
                    data = random.Random(number).randbytes(size)
                    info = tarfile.TarInfo(f"{number:08d}.bin")
                    info.size = size
                    tar.addfile(info, io.BytesIO(data))
        with tarfile.open(path) as tar:
            members = tar.getmembers()
        shuffled = list(range(count))
        random.Random(1).shuffle(shuffled)
        order = numbers_file("order", shuffled)
        ranges = [n for i in shuffled for n in (members[i].offset_data, members[i].size, 0)]
        mine, rounds = programs.shardfeed, programs.rounds
        figures[str(size)] = compare(
            f"From C: a dataset, samples of {size:,} bytes, shuffled",
            {
                "pread(2)": programs.run(
                    programs.limit, path, numbers_file("ranges", ranges), rounds
                ),
                "get": programs.run(mine, "get", path, order, rounds),
                "get_many of 256, threads=1": programs.run(
                    mine, "get_many", path, order, rounds, "threads=1"
                ),
                "get_many of 256": programs.run(mine, "get_many", path, order, rounds),
            },
        )
    return figures


def main() -> None:
    parser = parser_for(__doc__)
    add_measuring(parser, repeat=7, scaled="number of members")
    parser.add_argument(
        "--build", type=Path, help="meson build directory with libshardfeed.so, for what runs in C"
    )
    arguments = parser.parse_args()

    def count(full: int) -> int:
        return max(300, round(full * arguments.scale))

    stored = members_file("stored", count(20_000), zipfile.ZIP_STORED, pixels)
    deflated = members_file("deflated", count(1_000), zipfile.ZIP_DEFLATED, text)
    figures: dict[str, object] = {
        "open": measure_opening(count(200_000), arguments.repeat),
        "stored": measure_reading(
            "Stored members of 10 kB, shuffled", stored, arguments.repeat, pixels
        ),
        "deflated": measure_reading(
            "Deflated members of 64 KiB of text, shuffled", deflated, arguments.repeat, text
        ),
    }
    loading = measure_loading(count(2_000), arguments.repeat)
    if loading is not None:
        figures["loader"] = loading
    if arguments.build is not None:
        programs = Programs(arguments.build, arguments.repeat)
        opened = members_file("tiny", count(200_000), zipfile.ZIP_STORED, tiny)
        read = {
            "stored members of 1 to 6 bytes": opened,
            "stored members of 10 kB": stored,
            "deflated members of 64 KiB": deflated,
        }
        figures["programs"] = measure_programs(programs, opened, read)
        if programs.shardfeed is not None:
            figures["dataset"] = measure_dataset(programs, count(50_000))
    load = os.getloadavg()[0]
    if load > 1.5:
        print(f"note: the load is {load:.1f}; measure again when the machine is idle")
    if arguments.json is not None:
        everything = {
            "python": platform.python_version(),
            "cores": len(os.sched_getaffinity(0)),
            "scale": arguments.scale,
            "load": load,
            **figures,
        }
        arguments.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
