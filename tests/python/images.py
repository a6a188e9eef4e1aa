"""Images for the tests of batches, and where a random crop of them lies."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

# Steps of decode that choose, whose choices are compared with what came out.
AUGMENTED = [
    "rrc=24x20/flip=random",
    "flip=random/rrc=24x20/scale=0.2..0.5",
    "resize=40/crop=random:30x30/flip=random",
    "flip=random/resize=50x40/crop=random:30x30",
    "crop=random:30x20/resize=45x30/flip=random",
    "pad=4/crop=random:60x50/flip=random",
    "flip=always/pad=to:90x80/fill=9",
    "resize=fit:30x30/flip=random/pad=to:40x40",
]


def noise(width: int, height: int, channels: int = 3, seed: int = 0) -> np.ndarray:
    """Pixels without any smoothness, extremes among them: a wrong weight shows."""
    shape = (height, width, channels) if channels > 1 else (height, width)
    pixels = np.random.default_rng(width * height + seed).integers(0, 256, shape, "u1")
    pixels[:, ::5] = 255
    pixels[::7] = 0
    return pixels


def encoded(pixels: Any, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    picture = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    picture.save(file, kind, **options)
    return file.getvalue()


def places(width: int, height: int) -> tuple[bytes, bytes]:
    """Two PNGs of 16 bits whose pixels say where they lie: 200 times their column, or row."""
    y, x = np.mgrid[0:height, 0:width]
    columns, rows = ((200 * axis).astype("u2") for axis in (x, y))
    return encoded(columns, "png"), encoded(rows, "png")


def resized(picture: Image.Image, width: int, height: int, filter: Any) -> Image.Image:
    """Rows first, then columns. Pillow 13 takes the columns first where that is less work."""
    return picture.resize((width, picture.height), filter).resize((width, height), filter)


@dataclass(frozen=True)
class Box:
    """A part of an image that was resized, and whether it was flipped after that."""

    left: int
    top: int
    width: int
    height: int
    flipped: bool

    @property
    def corners(self) -> tuple[int, int, int, int]:
        return self.left, self.top, self.left + self.width, self.top + self.height

    def of(self, picture: Image.Image, width: int, height: int, filter: Any) -> np.ndarray:
        """What Pillow makes of it."""
        part = resized(picture.crop(self.corners), width, height, filter)
        if self.flipped:
            part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return np.asarray(part)


def _line(values: np.ndarray) -> tuple[int, int]:
    """Where a part begins, and its length, of which these are the resized places."""
    count = len(values)
    inner = values[count // 4 : count - count // 4].astype(float)
    middle = np.arange(count // 4, count - count // 4) + 0.5
    slope, start = np.polyfit(middle, inner / 200 + 0.5, 1)
    assert abs(slope * count - round(slope * count)) < 0.2
    return round(start), round(slope * count)


def found_box(columns: np.ndarray, rows: np.ndarray) -> Box:
    """The box from what became of places()."""
    across = columns[len(columns) // 2]
    flipped = bool(across[-1] < across[0])
    left, width = _line(across[::-1] if flipped else across)
    top, height = _line(rows[:, rows.shape[1] // 2])
    return Box(left, top, width, height, flipped)
