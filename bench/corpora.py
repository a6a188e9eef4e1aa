#!/usr/bin/env python3
"""Generates the benchmark's shards, the same bytes on every machine.

Tar headers are put together by hand: `tarfile` needs most of a minute for the 200,000 members of
`tiny`. Every corpus gets a `corpus.json` that states what a complete reader must find in it, so
that a reader that is fast because it drops something is noticed.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import ctypes
import ctypes.util
import dataclasses
import gzip
import itertools
import json
import os
import random
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from command_line import add_choice, add_scale, parser_for

DATA = Path(__file__).resolve().parent / "data"

# Part of corpus.json: a corpus that an older generator wrote is written anew.
GENERATION = 3

# Longer fields are left out of the sum of everything, which nobody asks for where they are.
MOST_ADDED_UP = 10_000

# Readers read one byte out of each 4 KiB of a field, and add these bytes up.
PAGE = 4096

Fields = list[tuple[str, bytes]]
Maker = Callable[[random.Random, int], Fields]


@dataclasses.dataclass
class Corpus:
    """What is on disk; `bytes` and `checksum` are those of the members' data alone.

    `everything` is the sum of all bytes of short fields, `labels` that of the numbers in cls. The
    decoded bytes and their checksum are those of the arrays that the other fields become; 0 where
    that is not measured.
    """

    name: str
    shards: list[str]
    samples: int
    fields: int
    bytes: int
    checksum: int
    file_bytes: int
    largest_member: int
    everything: int = 0
    labels: int = 0
    decoded_bytes: int = 0
    decoded_checksum: int = 0

    @property
    def members(self) -> int:
        return self.samples * self.fields


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a corpus is made. `source` names the corpus that this one is the compressed form of;
    `decode` gives the bytes of the array that a field becomes in a batch.
    """

    samples: int
    shards: int
    make: Maker | None = None
    decode: Callable[[bytes], bytes] | None = None
    source: str = ""
    suffix: str = ".tar"
    method: int = zipfile.ZIP_STORED  # of a suffix .zip


# ---- Field contents ------------------------------------------------------------------------------


def _segment(marker: int, payload: bytes) -> bytes:
    return bytes([0xFF, marker]) + (len(payload) + 2).to_bytes(2, "big") + payload


def _jpeg_head() -> bytes:
    """What every baseline JPEG of one encoder starts with: about 600 bytes, the same in all files.

    These bytes, tar headers and padding are what real image shards lose when they are compressed;
    the entropy-coded rest does not shrink.
    """
    tables = random.Random("jpeg tables")
    quantization = [bytes([n]) + tables.randbytes(64) for n in (0, 1)]
    huffman = [
        bytes([n]) + tables.randbytes(16 + count)
        for n, count in ((0x00, 12), (0x10, 162), (0x01, 12), (0x11, 162))
    ]
    frame = bytes.fromhex("08 0100 0100 03 012200 021101 031101")
    scan = bytes.fromhex("03 0100 0211 0311 00 3f 00")
    return (
        b"\xff\xd8"
        + _segment(0xE0, bytes.fromhex("4a46494600 0101 00 0001 0001 00 00"))
        + b"".join(_segment(0xDB, table) for table in quantization)
        + _segment(0xC0, frame)
        + b"".join(_segment(0xC4, table) for table in huffman)
        + _segment(0xDA, scan)
    )


JPEG_HEAD = _jpeg_head()


def jpeg(rng: random.Random, size: int) -> bytes:
    """Bytes with the statistics of a JPEG file: a constant head, random scan data, an end mark."""
    body = size - len(JPEG_HEAD) - 2
    scan = rng.randbytes(body).replace(b"\xff", b"\xff\x00")[:body]
    return JPEG_HEAD + scan + b"\xff\xd9"


NPY_HEAD = b"\x93NUMPY\x01\x00\x76\x00" + (
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (64, 64), }".ljust(117) + b"\n"
)
# The second highest byte of a double from 1 to 2: the low end of the exponent and 4 random bits.
NPY_EXPONENT = bytes(0xF0 | n >> 4 for n in range(256))


def npy(rng: random.Random) -> bytes:
    """A 64 x 64 array of float64 between 1 and 2: 32,896 bytes."""
    data = bytearray(rng.randbytes(64 * 64 * 8))
    data[7::8] = b"\x3f" * (64 * 64)
    data[6::8] = data[6::8].translate(NPY_EXPONENT)
    return NPY_HEAD + bytes(data)


def label(rng: random.Random) -> bytes:
    return b"%d" % rng.randrange(1000)


def meta(rng: random.Random, number: int) -> bytes:
    """A JSON object of about 100 bytes."""
    width, height, score = rng.randrange(64, 2048), rng.randrange(64, 2048), rng.random()
    return (
        b'{"id": %d, "width": %d, "height": %d, "score": %.6f, "caption": "a small picture, %d"}'
        % (number, width, height, score, number)
    )


def tiny_sample(rng: random.Random, number: int) -> Fields:
    return [("cls", label(rng)), ("json", meta(rng, number))]


def small_sample(rng: random.Random, _number: int) -> Fields:
    return [("cls", label(rng)), ("jpg", jpeg(rng, 6_000))]


def npy_sample(rng: random.Random, _number: int) -> Fields:
    return [("cls", label(rng)), ("npy", npy(rng))]


def image_sample(rng: random.Random, number: int) -> Fields:
    return [("cls", label(rng)), ("jpg", jpeg(rng, 110_000)), ("json", meta(rng, number))]


def large_sample(rng: random.Random, _number: int) -> Fields:
    return [("bin", rng.randbytes(5_000_000))]


def make_words() -> tuple[list[bytes], list[float]]:
    """Words, and the sums of their frequencies: that of the n-th is 1/n, as in real text."""
    chance = random.Random(0)
    letters = b"etaoinshrdlucmfwypvbgkjqxz"
    weights = [1 / (n + 2) for n in range(26)]
    words = [bytes(chance.choices(letters, weights, k=chance.randint(1, 10))) for _ in range(5000)]
    return words, list(itertools.accumulate(1 / (n + 1) for n in range(len(words))))


def text(rng: random.Random, size: int) -> bytes:
    """Words that deflate to less than half."""
    words, weights = WORDS
    return b" ".join(rng.choices(words, cum_weights=weights, k=size * 20_000 >> 16))[:size]


WORDS = make_words()


def text_sample(rng: random.Random, _number: int) -> Fields:
    return [("cls", label(rng)), ("txt", text(rng, 6_000))]


def photo_sample(rng: random.Random, number: int) -> Fields:
    # Only this corpus needs NumPy and Pillow.
    import photographs

    return [("cls", label(rng)), ("jpg", photographs.photograph(number % photographs.COUNT))]


def npy_array(field: bytes) -> bytes:
    return field[len(NPY_HEAD) :]


def pixels(field: bytes) -> bytes:
    import photographs

    return photographs.pixels_of(field)


# All of them together are 4 GB. The compressed corpora and the one they come from have four
# shards, for the figures with two threads, and half as many samples as `small`; npy4 and photo have
# four, because the workers of other readers share a data set out by shards.
RECIPES = {
    "tiny": Recipe(100_000, 1, tiny_sample, decode=bytes),
    "small": Recipe(60_000, 1, small_sample),
    "npy": Recipe(15_000, 1, npy_sample),
    "image": Recipe(4_500, 1, image_sample),
    "large": Recipe(110, 1, large_sample),
    "small4": Recipe(30_000, 4, small_sample),
    "small4-gz": Recipe(30_000, 4, source="small4", suffix=".tar.gz"),
    "small4-zst": Recipe(30_000, 4, source="small4", suffix=".tar.zst"),
    "npy4": Recipe(15_000, 4, npy_sample, decode=npy_array),
    "photo": Recipe(3_000, 4, photo_sample, decode=pixels),
    # The same fields in ZIP files; text is what deflate is for.
    "tiny-zip": Recipe(100_000, 1, tiny_sample, suffix=".zip"),
    "small-zip": Recipe(60_000, 1, small_sample, suffix=".zip"),
    "text-zip": Recipe(10_000, 1, text_sample, suffix=".zip", method=zipfile.ZIP_DEFLATED),
    # For order.py and draw_order.py, which need shards for lanes.
    "tiny8": Recipe(100_000, 8, tiny_sample),
    "image8": Recipe(2_000, 8, image_sample),
    "tiny64": Recipe(64_000, 64, tiny_sample),
}


# ---- Tar -----------------------------------------------------------------------------------------

_TAIL = b"\0" + b"0" + bytes(100) + b"ustar\00000" + bytes(64) + b"0000000\0" * 2 + bytes(167)
_MIDDLE = b"0000644\0" + b"0000000\0" * 2
_MTIME = b"%011o\0" % 1_700_000_000
# The checksum field counts as eight spaces; its last byte stays one.
_CONSTANT_SUM = sum(_MIDDLE) + sum(_MTIME) + sum(_TAIL) + 8 * ord(" ")


def tar_header(name: bytes, size: int) -> bytes:
    """A ustar header of a regular file."""
    octal = b"%011o\0" % size
    total = _CONSTANT_SUM + sum(name) + sum(octal)
    # "%06o" NUL space; the NUL is the first byte of _TAIL, the space is inserted after it.
    return b"".join(
        (name.ljust(100, b"\0"), _MIDDLE, octal, _MTIME, b"%06o" % total, b"\0 ", _TAIL[1:])
    )


def huge_member(path: Path, size: int) -> None:
    """A tar with one member of zeros, written as a hole: it takes no room on most disks. The end
    marker is written, since a file that ends in a hole is one that was not written to its end.
    """
    temporary = path.with_suffix(".part")
    with temporary.open("wb") as out:
        out.write(tar_header(b"000000000.bin", size))
        out.seek(512 + size + -size % 512)
        out.write(bytes(1024))
    temporary.replace(path)


# ---- Shards --------------------------------------------------------------------------------------

Add = Callable[[str, bytes], None]


@contextlib.contextmanager
def _tar_writer(out: BinaryIO) -> Iterator[Add]:
    def add(name: str, data: bytes) -> None:
        out.write(tar_header(name.encode(), len(data)))
        out.write(data)
        out.write(bytes(-len(data) % 512))

    yield add
    out.write(bytes(1024))


@contextlib.contextmanager
def _zip_writer(out: BinaryIO, method: int) -> Iterator[Add]:
    with zipfile.ZipFile(out, "w", method) as file:

        def add(name: str, data: bytes) -> None:
            # As made by hand, it has the same date always.
            file.writestr(zipfile.ZipInfo(name), data, method)

        yield add


def _write_shard(path: Path, numbers: range, recipe: Recipe, corpus: Corpus) -> None:
    """Writes one shard, and adds what is in it to the corpus."""
    assert recipe.make is not None
    rng = random.Random(f"{path.parent.name}/{path.name}")
    temporary = path.with_suffix(".part")
    with temporary.open("wb", buffering=1 << 20) as out:
        zipped = recipe.suffix == ".zip"
        with _zip_writer(out, recipe.method) if zipped else _tar_writer(out) as add:
            for number in numbers:
                fields = recipe.make(rng, number)
                corpus.fields = len(fields)
                for suffix, data in fields:
                    add(f"{number:09d}.{suffix}", data)
                    _count(suffix, data, recipe, corpus)
        out.flush()
        # Write-back of what was just generated would run into the first measurements.
        os.fsync(out.fileno())
    temporary.replace(path)


def _count(suffix: str, data: bytes, recipe: Recipe, corpus: Corpus) -> None:
    """Adds a field to the corpus."""
    corpus.bytes += len(data)
    corpus.largest_member = max(corpus.largest_member, len(data))
    corpus.checksum += sum(data[::PAGE])
    if len(data) <= MOST_ADDED_UP:
        corpus.everything += sum(data)
    if suffix == "cls":
        corpus.labels += int(data)
    elif recipe.decode is not None:
        array = recipe.decode(data)
        corpus.decoded_bytes += len(array)
        corpus.decoded_checksum += sum(array[::PAGE])


# ---- Compression ---------------------------------------------------------------------------------


def zstd_frame(data: bytes, level: int = 3) -> bytes:
    """One zstd frame with content size and checksum, like the `zstd` command writes.

    Through ctypes: Python before 3.14 has no zstd, and shardfeed needs libzstd anyway.
    """
    lib = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    lib.ZSTD_createCCtx.restype = ctypes.c_void_p
    lib.ZSTD_freeCCtx.argtypes = [ctypes.c_void_p]
    lib.ZSTD_CCtx_setParameter.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    lib.ZSTD_compressBound.restype = ctypes.c_size_t
    lib.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    lib.ZSTD_compress2.restype = ctypes.c_size_t
    lib.ZSTD_compress2.argtypes = [
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]
    lib.ZSTD_isError.argtypes = [ctypes.c_size_t]
    compression_level, checksum_flag = 100, 201
    context = lib.ZSTD_createCCtx()
    try:
        lib.ZSTD_CCtx_setParameter(context, compression_level, level)
        lib.ZSTD_CCtx_setParameter(context, checksum_flag, 1)
        out = ctypes.create_string_buffer(lib.ZSTD_compressBound(len(data)))
        size = lib.ZSTD_compress2(context, out, len(out), data, len(data))
        if lib.ZSTD_isError(size):
            raise RuntimeError("ZSTD_compress2 failed")
        return out.raw[:size]
    finally:
        lib.ZSTD_freeCCtx(context)


def _compress(source: Path, target: Path) -> None:
    data = source.read_bytes()
    if target.name.endswith(".gz"):
        packed = gzip.compress(data, compresslevel=6, mtime=0)
    else:
        packed = zstd_frame(data)
    temporary = target.with_suffix(".part")
    with temporary.open("wb") as out:
        out.write(packed)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(target)


# ---- Corpora -------------------------------------------------------------------------------------


def directory(scale: float) -> Path:
    return DATA / ("full" if scale == 1 else f"scale-{scale:g}")


def load(name: str, scale: float) -> Corpus | None:
    """The corpus, if it is complete and of this generation."""
    recipe = RECIPES[name]
    folder = directory(scale) / name
    try:
        state = json.loads((folder / "corpus.json").read_text())
        if state.pop("generation") != GENERATION:
            return None
        corpus = Corpus(**state)
        present = sum(Path(shard).stat().st_size for shard in corpus.shards)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    complete = present == corpus.file_bytes and len(corpus.shards) == recipe.shards
    # A checkout that was moved has other paths.
    here = all(Path(shard).parent == folder for shard in corpus.shards)
    return corpus if complete and here and corpus.samples == _scaled(recipe, scale) else None


def _scaled(recipe: Recipe, scale: float) -> int:
    return max(recipe.shards, round(recipe.samples * scale))


def _parts(samples: int, shards: int) -> Iterator[range]:
    for n in range(shards):
        yield range(samples * n // shards, samples * (n + 1) // shards)


def generate(name: str, scale: float = 1.0) -> Corpus:
    """Makes the corpus unless it is there."""
    existing = load(name, scale)
    if existing is not None:
        return existing
    recipe = RECIPES[name]
    folder = directory(scale) / name
    folder.mkdir(parents=True, exist_ok=True)
    shards = [folder / f"{name}-{n:06d}{recipe.suffix}" for n in range(recipe.shards)]
    samples = _scaled(recipe, scale)
    if recipe.make is None:
        source = generate(recipe.source, scale)
        # zlib and ctypes calls leave the interpreter lock.
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(_compress, map(Path, source.shards), shards))
        corpus = dataclasses.replace(source, name=name)
    else:
        corpus = Corpus(name, [], samples, 0, 0, 0, 0, 0)
        for path, numbers in zip(shards, _parts(samples, recipe.shards), strict=True):
            _write_shard(path, numbers, recipe, corpus)
    corpus.shards = [str(path) for path in shards]
    corpus.file_bytes = sum(path.stat().st_size for path in shards)
    state = dataclasses.asdict(corpus) | {"generation": GENERATION}
    (folder / "corpus.json").write_text(json.dumps(state, indent=1) + "\n")
    return corpus


def main() -> int:
    parser = parser_for(__doc__)
    add_scale(parser, "0.05 makes small ones")
    add_choice(parser, "--only", list(RECIPES))
    arguments = parser.parse_args()
    for name in arguments.only:
        start = time.perf_counter()
        corpus = generate(name, arguments.scale)
        seconds = time.perf_counter() - start
        print(
            f"{name:11} {corpus.samples:7,} samples  {corpus.file_bytes / 1e6:7.1f} MB"
            f"  {len(corpus.shards)} shard(s)  {seconds:5.1f} s",
            file=sys.stderr,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
