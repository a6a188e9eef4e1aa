"""Resized images against Pillow's, which training code was made with."""

from __future__ import annotations

import io

import numpy as np
import pytest
import shardfeed
from batches import rows_tar

image = pytest.importorskip("PIL.Image")

# Levels of 255: both work in fixed point and round between rows and columns.
TOLERANCE = 2


def noise(width: int, height: int, channels: int) -> np.ndarray:
    """Pixels without any smoothness, extremes among them: a wrong weight shows."""
    shape = (height, width, channels) if channels > 1 else (height, width)
    pixels = np.random.default_rng(width * height).integers(0, 256, shape, "u1")
    pixels[:, ::5] = 255
    pixels[::7] = 0
    return pixels


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def resized(path: str, words: str) -> np.ndarray:
    (batch,) = shardfeed.Stream(path).batches(10, decode=f"png:image/{words}")
    (row,) = batch["png"]
    return row


def assert_close(found: np.ndarray, wanted: np.ndarray) -> None:
    assert found.shape == wanted.shape
    assert np.abs(found.astype(int) - wanted.astype(int)).max() <= TOLERANCE


@pytest.mark.parametrize("mode", ["rgb8", "l8"])
@pytest.mark.parametrize("before", [(1, 1), (3, 200), (64, 48), (333, 217)])
def test_as_bilinear_of_pillow(tmp_path, before, mode):
    pixels = noise(*before, 3 if mode == "rgb8" else 1)
    path = rows_tar(tmp_path / "t.tar", [{"png": png(pixels)}])
    wider, taller = before[0] * 2 + 1, before[1] * 3
    smaller = [(1, 1), (5, 3), (32, 24), (16, 100)]
    larger = [(wider, taller), (wider, 2), (2, taller), (331, 219), before]
    for width, height in smaller + larger:
        wanted = np.asarray(
            image.fromarray(pixels).resize((width, height), image.Resampling.BILINEAR)
        )
        assert_close(resized(path, f"{mode}/resize={width}x{height}"), wanted)


def test_planes_and_floats_are_the_same_image(tmp_path):
    pixels = noise(90, 70, 3)
    path = rows_tar(tmp_path / "t.tar", [{"png": png(pixels)}])
    wanted = np.asarray(image.fromarray(pixels).resize((41, 33), image.Resampling.BILINEAR))
    planes = resized(path, "rgb8/chw/resize=41x33")
    assert_close(planes.transpose(1, 2, 0), wanted)
    floats = resized(path, "rgb/resize=41x33")
    assert floats.dtype == "f4"
    assert np.abs(floats - wanted / 255.0).max() <= TOLERANCE / 255


def test_a_crop_is_a_part_of_the_resized_image(tmp_path):
    pixels = noise(120, 80, 3)
    path = rows_tar(tmp_path / "t.tar", [{"png": png(pixels)}])
    whole = image.fromarray(pixels).resize((96, 64), image.Resampling.BILINEAR)
    wanted = np.asarray(whole.crop((16, 8, 80, 56)))
    assert_close(resized(path, "rgb8/resize=64/crop=64x48"), wanted)
