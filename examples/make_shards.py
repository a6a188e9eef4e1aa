"""Writes tar shards: of handwritten digits, or of the files of a folder.

python make_shards.py OUT [FOLDER]     writes OUT/shard-000000.tar and so on, prints the brace URL
"""

import gzip
import io
import sys
import tarfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

SAMPLES_PER_SHARD = 500


def digits() -> Iterator[tuple[str, bytes]]:
    """Names and bytes of 1,797 real digits of 8 x 8 pixels, PNG and label.

    They are the test set of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak,
    UCI Machine Learning Repository, 1998, CC BY 4.0): a line for each with 64 pixels in 0..16 and
    the digit.
    """
    from PIL import Image

    with gzip.open(Path(__file__).with_name("digits.csv.gz"), "rt") as lines:
        for number, line in enumerate(lines):
            *pixels, label = map(int, line.split(","))
            image = io.BytesIO()
            gray = bytes(pixel * 255 // 16 for pixel in pixels)
            Image.frombytes("L", (8, 8), gray).save(image, format="png")
            yield f"{number:06d}.png", image.getvalue()
            yield f"{number:06d}.cls", str(label).encode()


def folder(root: Path) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of the files below a folder, those of one sample next to each other."""
    files = [path for path in root.rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda path: (key_of(str(path.relative_to(root))), str(path))):
        yield str(path.relative_to(root)), path.read_bytes()


def key_of(name: str) -> str:
    """The part of a member name that the files of one sample share."""
    folder, slash, base = name.rpartition("/")
    return folder + slash + base.partition(".")[0]


def main(out: Path, source: "Path | None") -> None:
    """Writes the shards again."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("shard-*.tar"):
        old.unlink()
    members = folder(source) if source else digits()
    tar = None
    shards = 0
    for number, (_, sample) in enumerate(groupby(members, key=lambda member: key_of(member[0]))):
        if number % SAMPLES_PER_SHARD == 0:
            if tar:
                tar.close()
            tar = tarfile.open(out / f"shard-{shards:06d}.tar", "w")  # noqa: SIM115
            shards += 1
        for name, data in sample:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    if not tar:
        sys.exit(f"no files in {source}")
    tar.close()
    print(f"{out}/shard-{{000000..{shards - 1:06d}}}.tar")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
