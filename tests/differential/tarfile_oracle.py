"""The Python package against tarfile, on random archives that tarfile writes.

    python tests/differential/tarfile_oracle.py [--archives N] [--seed N]

Every archive is written in the ustar, GNU or pax format, plain or compressed, with members of all
kinds and names of all bytes. What shardfeed streams must be what tarfile lists: the same samples,
the same fields in the same order, the same bytes. Prints the seed of the first difference and ends
with 1.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import sys
import tarfile
import tempfile
from pathlib import Path

import shardfeed

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
COMPRESSIONS = ["", "", "gz", "bz2", "xz"]

Sample = tuple[bytes, list[tuple[str, bytes]]]


def random_text(rng: random.Random, longest: int, *, ascii_only: bool = False) -> str:
    """A part of a name: any bytes but NUL, '/' and '.', and '_', which could make it metadata."""
    highest = 126 if ascii_only else 255
    allowed = [byte for byte in range(1, highest + 1) if byte not in b"/._"]
    size = rng.randint(1, longest)
    return os.fsdecode(bytes(rng.choices(allowed, k=size)))


def random_key(rng: random.Random, kind: str, number: int) -> str:
    if kind == "ustar":  # without long names: 100 bytes, or 155 more in front of a slash
        parts = [random_text(rng, 80, ascii_only=True) for _ in range(rng.randint(1, 2))]
    else:
        longest = rng.choice([10, 60, 250])
        parts = [random_text(rng, longest) for _ in range(rng.randint(1, 3))]
    return "/".join(parts) + str(number)


def add_something_else(tar: tarfile.TarFile, rng: random.Random) -> None:
    """A member that belongs to no sample."""
    kind = rng.choice(
        [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, None]
    )
    info = tarfile.TarInfo("README" if kind is None else "other.x")
    data = b""
    if kind is None:
        info.name = rng.choice(["README", "__meta__/a.x", ".hidden", "dir/.hidden.x"])
        data = rng.randbytes(rng.randint(0, 2000))
        info.size = len(data)
    else:
        info.type = kind
        info.linkname = "target"
    tar.addfile(info, io.BytesIO(data))


def write_archive(path: Path, rng: random.Random) -> None:
    kind = rng.choice(list(FORMATS))
    mode = "w:" + rng.choice(COMPRESSIONS)
    pax_headers = {"comment": "global"} if kind == "pax" and rng.random() < 0.3 else None
    with tarfile.open(path, mode, format=FORMATS[kind], pax_headers=pax_headers) as tar:
        for number in range(rng.randint(1, 30)):
            key = random_key(rng, kind, number)
            for field in rng.sample(["jpg", "cls", "seg.png", "JSON", ""], rng.randint(1, 5)):
                if rng.random() < 0.15:
                    add_something_else(tar, rng)
                data = rng.randbytes(rng.choice([0, 1, 511, 512, 513, rng.randint(0, 100_000)]))
                info = tarfile.TarInfo(f"{key}.{field}")
                info.size = len(data)
                info.mtime = rng.choice([0, 1_700_000_000, 1_700_000_000.5]) if kind == "pax" else 0
                if kind == "pax" and rng.random() < 0.3:
                    info.pax_headers = {"comment": "a\nb", "VENDOR.key": "1=2"}
                tar.addfile(info, io.BytesIO(data))


def samples_of_tarfile(path: Path) -> list[Sample]:
    samples: list[Sample] = []
    with tarfile.open(path) as tar:
        for info in tar:
            directory, slash, base = info.name.rpartition("/")
            stem, dot, field = base.partition(".")
            first = info.name.split("/")[0]
            metadata = len(first) >= 4 and first.startswith("__") and first.endswith("__")
            if not info.isreg() or not dot or not stem or metadata:
                continue
            key = os.fsencode(directory + slash + stem)
            if not samples or samples[-1][0] != key:
                samples.append((key, []))
            file = tar.extractfile(info)
            assert file is not None
            samples[-1][1].append((field.lower(), file.read()))
    return samples


def samples_of_shardfeed(path: Path) -> list[Sample]:
    with shardfeed.Stream(str(path), expand=False) as stream:
        return [
            (os.fsencode(sample.key), [(name, bytes(sample[name])) for name in sample])
            for sample in stream
        ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--archives", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seeds {arguments.seed} to {arguments.seed + arguments.archives - 1}")
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "archive"
        for seed in range(arguments.seed, arguments.seed + arguments.archives):
            write_archive(path, random.Random(seed))
            expected = samples_of_tarfile(path)
            if samples_of_shardfeed(path) != expected:
                print(f"seed {seed}: the samples differ")
                return 1
            count += len(expected)
    print(f"{count} samples of {arguments.archives} archives are the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
