#!/usr/bin/env python3
"""Measures writing: shardfeed's Writer, webdataset's, and cp of the same bytes; then the command.

Each row writes the same samples in a process of its own; rounds go over all rows in turn, and the
best of each counts. What was written is read back and compared: wrong is an error, slow is not.
Files go to --folder, whose disk is measured too where shards are brought to it (durable=true).
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path

import command_rows
from command_line import BUILD, add_measuring, parser_for

KINDS = {"small": (60_000, 200), "image": (4_000, 110_000)}  # samples, bytes of the large field
# JSON-like text compresses to a third, as annotations do; images do not at all.
WORDS = [b"%x" % (i * 2654435761 % 4096) for i in range(4096)]


def samples(kind: str, scale: float) -> Iterator[dict[str, object]]:
    """The samples of a kind, the same each time."""
    count, size = KINDS[kind]
    source = random.Random(1)
    noise = source.randbytes(size + 65536)
    text = b" ".join(source.choices(WORDS, k=size))
    for i in range(int(count * scale)):
        start = i * 7919 % 65536
        large = noise[start : start + size] if kind == "image" else text[start % size :][:size]
        yield {
            "__key__": f"{i // 1000:03}/{i:06}",
            "jpg" if kind == "image" else "txt": large,
            "cls": b"%d" % (i % 1000),
            "json": b'{"width": 640, "height": 480, "id": %d}' % i,
        }


def payload(sample: dict[str, object]) -> int:
    """Bytes of all fields."""
    return sum(len(value) for value in sample.values() if isinstance(value, bytes))


def shardfeed_writer(path: str, kind: str, scale: float, **options: object) -> None:
    import shardfeed

    with shardfeed.Writer(path, encoder=False, **options) as writer:
        writer.write_all(samples(kind, scale))


def webdataset_writer(path: str, kind: str, scale: float) -> None:
    import webdataset

    pattern = path.replace(".", "-%d.", 1)
    with webdataset.ShardWriter(
        pattern, encoder=False, maxcount=10**9, maxsize=10**15, verbose=0, mtime=0
    ) as writer:
        for sample in samples(kind, scale):
            writer.write(sample)
    Path(pattern % 0).rename(path)


def no_writer(_path: str, kind: str, scale: float) -> None:
    for _ in samples(kind, scale):
        pass


# Row: the end of the name of the shard, and how it is written. The first one is what making the
# samples costs, which is taken off all others.
ROWS: dict[str, tuple[str, Callable[..., None], dict[str, object]]] = {
    "samples alone": (".tar", no_writer, {}),
    "webdataset": (".tar", webdataset_writer, {}),
    "shardfeed": (".tar", shardfeed_writer, {"durable": False}),
    "shardfeed, index": (".tar", shardfeed_writer, {"durable": False, "index": True}),
    "shardfeed, on the disk": (".tar", shardfeed_writer, {}),
    "shardfeed, zip": (".zip", shardfeed_writer, {"durable": False}),
    "webdataset, gz": (".tar.gz", webdataset_writer, {}),
    "shardfeed, gz, 1 thread": (".tar.gz", shardfeed_writer, {"compress_threads": 1}),
    "shardfeed, zst, 1 thread": (".tar.zst", shardfeed_writer, {"compress_threads": 1}),
    "shardfeed, zst, 2 threads": (".tar.zst", shardfeed_writer, {"compress_threads": 2}),
}


# What is copied behind a row, to compare with.
COPIES = {"shardfeed": "cp", "shardfeed, on the disk": "cp and sync"}


def child(row: str, path: str, kind: str, scale: float) -> None:
    """Writes one shard, and prints the seconds that took."""
    import shardfeed  # noqa: F401  before the clock runs
    import webdataset  # noqa: F401

    _, write, options = ROWS[row]
    start = time.perf_counter()
    write(path, kind, scale, **options)
    print(time.perf_counter() - start)


def check(path: Path, kind: str, scale: float) -> None:
    """SystemExit unless the shard has the samples."""
    import shardfeed

    wanted = samples(kind, scale)
    read = 0
    for sample in shardfeed.Stream(str(path)):
        one = next(wanted)
        if sample.key != one["__key__"] or any(sample[name] != one[name] for name in sample):
            raise SystemExit(f"{path}: sample {read} is wrong")
        read += 1
    if next(wanted, None) is not None:
        raise SystemExit(f"{path}: only {read} samples")


def seconds_of(row: str, path: Path, kind: str, scale: float) -> float:
    path.unlink(missing_ok=True)
    command = [sys.executable, __file__, "--row", row, str(path), kind, str(scale)]
    return float(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout)


def copy_seconds(path: Path, durable: bool) -> float:
    """How long cp takes for the shard, when it is in the page cache; `durable`: and sync."""
    copy = path.with_suffix(".copy")
    path.read_bytes()
    start = time.perf_counter()
    subprocess.run(["cp", "--reflink=never", path, copy], check=True)
    if durable:
        subprocess.run(["sync", copy], check=True)
    seconds = time.perf_counter() - start
    copy.unlink()
    return seconds


def measure(kind: str, folder: Path, scale: float, repeat: int) -> dict[str, float]:
    """The best seconds of each row, without what making the samples costs."""
    best: dict[str, float] = {}
    for round_ in range(repeat):
        for row, (suffix, _, _) in ROWS.items():
            path = folder / f"{kind}{suffix}"
            seconds = seconds_of(row, path, kind, scale)
            best[row] = min(seconds, best.get(row, seconds))
            if row in COPIES:
                copied = copy_seconds(path, durable=row != "shardfeed")
                best[COPIES[row]] = min(copied, best.get(COPIES[row], copied))
            if round_ == 0 and row != "samples alone":
                check(path, kind, scale)
    alone = best.pop("samples alone")
    return {row: s if row in COPIES.values() else max(s - alone, 1e-9) for row, s in best.items()}


def main() -> None:
    if sys.argv[1:2] == ["--row"]:
        row, path, kind, scale = sys.argv[2:]
        return child(row, path, kind, float(scale))
    parser = parser_for(__doc__)
    parser.add_argument("--folder", type=Path, help="where shards go (a temporary folder)")
    parser.add_argument("--command", type=Path, help="the command (of the build, or in PATH)")
    add_measuring(parser, scaled="number of samples, of 60,000 and 4,000")
    arguments = parser.parse_args()
    built = arguments.command or BUILD / "src/cli/shardfeed"
    command = str(built.resolve()) if built.exists() else shutil.which("shardfeed")
    figures: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for kind in KINDS:
            best = measure(kind, Path(folder), arguments.scale, arguments.repeat)
            figures[kind] = dict(best)
            count = int(KINDS[kind][0] * arguments.scale)
            bytes_ = sum(
                len(v) for s in samples(kind, arguments.scale) for v in list(s.values())[1:]
            )
            print(f"\n{kind}: {count} samples, {bytes_ / 1e6:.0f} MB\n")
            print(f"{'':28}{'MB/s':>8}{'samples/s':>12}{'/ webdataset':>14}{'/ cp':>8}")
            for row, seconds in best.items():
                peer = best["webdataset, gz" if "gz" in row or "zst" in row else "webdataset"]
                copied = best[COPIES.get(row, "cp")]
                print(
                    f"{row:28}{bytes_ / seconds / 1e6:8.0f}{count / seconds:12.0f}"
                    f"{peer / seconds:14.2f}{copied / seconds:8.2f}"
                )
            threads = best["shardfeed, zst, 1 thread"] / best["shardfeed, zst, 2 threads"]
            print(f"two threads of zstd: {threads:.2f} times one")
        if command is None:
            print("\nthe command is left out: it is not built, and not in PATH")
        else:
            part = Path(folder) / "command"
            part.mkdir()
            rows = command_rows.measure(part, arguments.scale, arguments.repeat, command)
            command_rows.show(rows, part, command)
            figures["command"] = {name: astuple(seconds) for name, seconds in rows.items()}
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    return None


if __name__ == "__main__":
    main()
