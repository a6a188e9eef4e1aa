"""Pictures with the statistics of photographs, which nothing has to be downloaded for.

Noise of all sizes with amplitudes that fall with frequency, like in natural scenes; objects with
sharp outlines in front of each other, each with a texture, a brightness and a colour of its own;
and the grain of a sensor. At quality 85 with 4:2:0 chroma a JPEG of 500 x 375 gets about 60 kB,
like those of ImageNet. The bytes depend on the versions of NumPy, Pillow and libjpeg.
"""

from __future__ import annotations

import functools
import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

WIDTH, HEIGHT = 500, 375
# Different ones; a reader that decoded one picture twice would not be faster for it.
COUNT = 300
QUALITY = 90
OCTAVES = 8
OBJECTS = 12
# Amplitude by size: an exponent of 1 is that of natural scenes, less has more fine detail.
SLOPE = 0.6
GRAIN = 4.0

Plane = NDArray[np.float32]


def _noise(chance: np.random.Generator, octaves: range) -> Plane:
    """Noise with a standard deviation of about 1; octave n has details of 2**n pixels."""
    total = np.zeros((HEIGHT, WIDTH), np.float32)
    power = 0.0
    for octave in octaves:
        step = 2**octave
        strength = step**SLOPE
        grid = chance.standard_normal((HEIGHT // step + 2, WIDTH // step + 2), np.float32)
        smooth = Image.fromarray(grid).resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR)
        total += np.asarray(smooth) * np.float32(strength)
        power += strength**2
    return total / np.float32(power**0.5)


def _outline(chance: np.random.Generator) -> NDArray[np.bool_]:
    """The pixels of an ellipse or a polygon."""
    mask = Image.new("L", (WIDTH, HEIGHT))
    draw = ImageDraw.Draw(mask)
    size = chance.uniform(20, 160)
    x, y = chance.uniform(0, WIDTH), chance.uniform(0, HEIGHT)
    if chance.random() < 0.5:
        wide, high = size * chance.uniform(0.4, 1, 2)
        draw.ellipse((x - wide, y - high, x + wide, y + high), fill=1)
    else:
        turns = np.sort(chance.uniform(0, 2 * np.pi, chance.integers(3, 8)))
        corners = [(x + size * np.cos(turn), y + size * np.sin(turn)) for turn in turns]
        draw.polygon(corners, fill=1)
    return np.asarray(mask, np.bool_)


def _planes(chance: np.random.Generator) -> list[Plane]:
    """Red, green and blue: a common brightness, and differences without fine detail."""
    bright = 45 * _noise(chance, range(OCTAVES))
    tint = [12 * _noise(chance, range(4, OCTAVES)) for _ in range(3)]
    textures = [_noise(chance, range(finest, finest + 3)) for finest in range(3)]
    for _ in range(OBJECTS):
        inside = _outline(chance)
        texture = textures[chance.integers(len(textures))][inside]
        bright[inside] = chance.uniform(4, 30) * texture + chance.normal(0, 45)
        for plane, shift in zip(tint, chance.normal(0, 18, 3), strict=True):
            plane[inside] = shift
    return [118 + bright + plane for plane in tint]


@functools.lru_cache(COUNT)
def photograph(number: int) -> bytes:
    """The JPEG file of picture `number`."""
    chance = np.random.default_rng(number)
    pixels = np.stack(_planes(chance), axis=2)
    pixels += chance.normal(0, GRAIN, pixels.shape).astype(np.float32)
    file = io.BytesIO()
    image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    image.save(file, "JPEG", quality=QUALITY, subsampling="4:2:0")
    return file.getvalue()


@functools.lru_cache(COUNT)
def pixels_of(jpeg: bytes) -> bytes:
    """Its pixels as Pillow decodes them: rows of red, green, blue."""
    pixels: bytes = Image.open(io.BytesIO(jpeg)).convert("RGB").tobytes()
    return pixels
