"""Measures the command beside the programs that people use for the same work, and gzip by points.

Each figure is the best of rounds over all rows in turn: seconds of a process from its start to its
end, and seconds of the processor of all that it started. Compare within one run.
"""

from __future__ import annotations

import gzip
import os
import random
import resource
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# In the style of photographs: a head that all have, then bytes that do not compress.
HEAD = bytes(range(200)) * 3


@dataclass(frozen=True)
class Seconds:
    """Of one run."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Row:
    """A command line, what it makes, and the row whose seconds are divided by its own."""

    name: str
    words: list[str]
    beside: str = ""
    wanted: float = 0.0  # of that ratio
    makes: str = ""


def picture(source: random.Random, noise: bytes, size: int) -> bytes:
    start = source.randrange(len(noise) - size)
    return HEAD + noise[start : start + size - len(HEAD)]


def write_tar(path: Path, count: int, fields: Callable[[int], dict[str, bytes]]) -> None:
    """A tar of samples by Python, without shardfeed."""
    with path.open("wb") as file:
        for i in range(count):
            for name, data in fields(i).items():
                info = tarfile.TarInfo(f"{i // 1000:03}/{i:06}.{name}")
                info.size = len(data)
                file.write(info.tobuf(tarfile.USTAR_FORMAT))
                file.write(data + bytes(-len(data) % 512))
        file.write(bytes(1024))


def make_inputs(folder: Path, scale: float, command: str) -> None:
    source = random.Random(1)
    noise = source.randbytes(1 << 20)
    tiny, small = int(100_000 * scale), int(100_000 * scale)
    write_tar(folder / "tiny.tar", tiny, lambda i: {"json": b"x" * 100, "cls": b"%d" % (i % 100)})
    subprocess.run(
        [command, "cat", "tiny.tar", "-o", "tiny.zip", "--zip-method", "store", "--no-durable"],
        cwd=folder, check=True,
    )  # fmt: skip
    words = [b"%x" % (i * 2654435761 % 4096) for i in range(256)]
    # No text comes twice: zstd would copy it.
    write_tar(
        folder / "text.tar",
        int(20_000 * scale),
        lambda _: {"txt": b" ".join(map(words.__getitem__, source.randbytes(2000)))},
    )
    pictures = [picture(source, noise, 6000) for _ in range(256)]
    with (folder / "recipe.txt").open("w") as recipe, (folder / "list.txt").open("w") as names:
        for i in range(small):
            name = f"files/{i // 1000:03}/{i:06}.jpg"
            path = folder / name
            if i % 1000 == 0:
                path.parent.mkdir(parents=True)
            path.write_bytes(pictures[i % 256])
            recipe.write(f"{name} {name}\n")
            names.write(f"{name}\n")
    for name, count in ("small.tar", small), ("part.tar", small // 5):
        write_tar(
            folder / name, count, lambda i: {"jpg": pictures[i % 256], "cls": b"%d" % (i % 1000)}
        )
    with gzip.GzipFile(folder / "small.tar.gz", "wb", compresslevel=6, mtime=0) as packed:
        packed.write((folder / "part.tar").read_bytes())
    subprocess.run([command, "index", "small.tar.gz"], cwd=folder, check=True)
    (folder / "plain.gz").mkdir()  # the same shard, without its index
    shutil.copy(folder / "small.tar.gz", folder / "plain.gz")


def rows(folder: Path, command: str) -> list[Row]:
    memory = str(max((folder / "small.tar").stat().st_size // 10, 16 << 20))
    read = [sys.executable, __file__, "--read"]
    return [
        Row("start", [command, "--version"]),
        Row("tar tf", ["tar", "tf", "tiny.tar"]),
        Row("ls of a tar", [command, "ls", "tiny.tar"], "tar tf", 20),
        Row("unzip -l", ["unzip", "-l", "tiny.zip"]),
        Row("ls of a ZIP", [command, "ls", "tiny.zip"], "unzip -l", 10),
        Row("cp", ["cp", "--reflink=never", "small.tar", "made.tar"], makes="made.tar"),
        Row(
            "cat", [command, "cat", "small.tar", "-o", "made.tar", "--no-durable"],
            "cp", 0.8, "made.tar",
        ),
        Row("webdataset cat", [*read, "webdataset", "small.tar", "made.tar"], makes="made.tar"),
        Row("cat again", [command, "cat", "small.tar", "-o", "made.tar", "--no-durable"],
            "webdataset cat", 10, "made.tar"),
        Row("GNU tar c", ["tar", "-cf", "made.tar", "-T", "list.txt"], makes="made.tar"),
        Row("create", [command, "create", "recipe.txt", "-o", "made.tar", "--no-durable"],
            "GNU tar c", 1.2, "made.tar"),
        Row("sort in a tenth as memory",
            [command, "sort", "small.tar", "--random", "--seed", "1", "-o", "made.tar",
             "--no-durable", "--memory", memory], "cp", 1 / 3.5, "made.tar"),
        Row("cat to zst, 1 thread", [command, "cat", "text.tar", "-o", "made.tar.zst",
            "--no-durable", "--compress-threads", "1"], makes="made.tar.zst"),
        Row("cat to zst, 2 threads", [command, "cat", "text.tar", "-o", "made.tar.zst",
            "--no-durable", "--compress-threads", "2"],
            "cat to zst, 1 thread", 1.8, "made.tar.zst"),
        Row("bsdtar of a .tar.gz", ["bsdtar", "-xOf", "plain.gz/small.tar.gz"]),
        Row("gz without an index, 1 thread", [*read, "stream", "plain.gz/small.tar.gz", "1"],
            "bsdtar of a .tar.gz", 1.2),
        Row("gz with an index, 1 thread", [*read, "stream", "small.tar.gz", "1"]),
        Row("gz with an index, 2 threads", [*read, "stream", "small.tar.gz", "2"],
            "gz with an index, 1 thread", 1.8),
        Row("4 MiB of gzip", [*read, "4mib", "small.tar.gz"]),
        Row("a random sample of a .tar.gz", [*read, "random", "small.tar.gz"], "4 MiB of gzip", 1),
    ]  # fmt: skip


def run(row: Row, folder: Path) -> Seconds:
    """One run, by itself if it has measured the part that counts, else all of the process."""
    if row.makes:
        (folder / row.makes).unlink(missing_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(
        row.words, cwd=folder, check=True, stdout=subprocess.PIPE if "--read" in row.words
        else subprocess.DEVNULL,
    )  # fmt: skip
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.stdout:
        wall, cpu = map(float, done.stdout.split())
    return Seconds(wall, cpu)


def measure(folder: Path, scale: float, repeat: int, command: str) -> dict[str, Seconds]:
    """The best seconds of each row; rows whose program is not installed are left out."""
    make_inputs(folder, scale, command)
    present = [row for row in rows(folder, command) if shutil.which(row.words[0])]
    best: dict[str, Seconds] = {}
    for _ in range(repeat):
        for row in present:
            now, old = run(row, folder), best.get(row.name)
            best[row.name] = (
                now if old is None else Seconds(min(now.wall, old.wall), min(now.cpu, old.cpu))
            )
    return best


def show(best: dict[str, Seconds], folder: Path, command: str) -> None:
    print(f"\n{'':32}{'ms':>9}{'cpu ms':>9}{'times':>8}{'by cpu':>8}{'wanted':>8}")
    for row in rows(folder, command):
        if row.name not in best:
            continue
        own, other = best[row.name], best.get(row.beside)
        line = f"{row.name:32}{own.wall * 1e3:9.1f}{own.cpu * 1e3:9.1f}"
        if other is not None:
            line += f"{other.wall / own.wall:8.2f}{other.cpu / max(own.cpu, 1e-9):8.2f}"
            line += f"{row.wanted:8.2f}  {row.beside}"
        print(line)


def read_webdataset(source: str, target: str) -> None:
    import webdataset

    with webdataset.TarWriter(target, encoder=False) as writer:
        for sample in webdataset.WebDataset(source, shardshuffle=False, empty_check=False):
            writer.write(sample)


def read_stream(path: str, threads: str) -> None:
    import shardfeed

    for _ in shardfeed.Stream(path, threads=int(threads)):
        pass


def child(what: str, path: str, more: str) -> None:
    """Prints seconds of the wall clock and of the processor, without imports."""
    import shardfeed

    dataset = shardfeed.Dataset(path) if what == "random" else None
    if what == "webdataset":
        import webdataset  # noqa: F401
    count, source = 1, random.Random(os.getpid())
    start, cpu = time.perf_counter(), time.process_time()
    if what == "webdataset":
        read_webdataset(path, more)
    elif what == "stream":
        read_stream(path, more)
    elif what == "4mib":
        with gzip.open(path) as packed:
            packed.read(4 << 20)
    elif dataset is not None:
        count = 20  # of which hardly two are in one stretch
        for _ in range(count):
            dataset[source.randrange(len(dataset))]
    print((time.perf_counter() - start) / count, (time.process_time() - cpu) / count)


if __name__ == "__main__":
    child(sys.argv[2], sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else "")
