"""Writes 1,797 real digits of 8 x 8 pixels as files: NUMBER.png and NUMBER.cls.

python make_digits.py FOLDER

They are the test set of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak,
UCI Machine Learning Repository, 1998, CC BY 4.0): a line for each with 64 pixels in 0..16 and the
digit.
"""

import gzip
import sys
from pathlib import Path

from PIL import Image


def main(folder: Path) -> None:
    """Writes the files."""
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(Path(__file__).with_name("digits.csv.gz"), "rt") as lines:
        for number, line in enumerate(lines):
            *pixels, label = map(int, line.split(","))
            gray = bytes(pixel * 255 // 16 for pixel in pixels)
            Image.frombytes("L", (8, 8), gray).save(folder / f"{number:06d}.png")
            (folder / f"{number:06d}.cls").write_text(str(label))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
