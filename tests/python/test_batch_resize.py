"""Resized images against Pillow's, which training code was made with."""

from __future__ import annotations

import io
import itertools

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


STEPS = ("resize=64x48", "crop=41x32", "flip=always", "resize=33", "crop=90x70")


def in_steps(pixels: np.ndarray, steps: tuple[str, ...]) -> np.ndarray:
    """The steps one after another, as a program that uses Pillow has them."""
    result = image.fromarray(pixels)
    for step in steps:
        width, height = result.size
        name, value = step.split("=")
        numbers = [int(number) for number in value.split("x")] if name != "flip" else []
        if name == "flip":
            result = result.transpose(image.Transpose.FLIP_LEFT_RIGHT)
        elif name == "crop":
            left, top = round((width - numbers[0]) / 2.0), round((height - numbers[1]) / 2.0)
            result = result.crop((left, top, left + numbers[0], top + numbers[1]))
        else:
            if len(numbers) == 1:
                short = min(width, height)
                numbers = [numbers[0] * width // short, numbers[0] * height // short]
            result = result.resize(tuple(numbers), image.Resampling.BILINEAR)
    return np.asarray(result)


@pytest.mark.parametrize("kind", ["png", "jpg"])
@pytest.mark.parametrize("mode", ["rgb8", "l8"])
def test_steps_are_done_in_their_order(tmp_path, kind, mode):
    pixels = noise(121, 83, 3 if mode == "rgb8" else 1)
    file = io.BytesIO()
    image.fromarray(pixels).save(file, "png" if kind == "png" else "jpeg", quality=95)
    path = rows_tar(tmp_path / "t.tar", [{"png": file.getvalue()}])
    stored = np.asarray(image.open(file))
    tried = 0
    for count in (1, 2, 3):
        for steps in itertools.permutations(STEPS, count):
            names = [step.split("=")[0] for step in steps]
            if len(set(names)) < count:
                continue
            whole = "resize" in names and "crop" not in names[: names.index("resize")]
            if whole and "crop=90x70" in steps:
                continue  # larger than the image: an error, see below
            if whole and kind == "jpg":
                continue  # the decoder reduces it
            wanted = in_steps(stored, steps)
            found = resized(path, "/".join((mode, *steps)))
            assert found.shape == wanted.shape, steps
            assert np.abs(found.astype(int) - wanted.astype(int)).max() <= 1, steps
            tried += 1
    assert tried >= (10 if kind == "jpg" else 25)


def test_a_crop_that_comes_first_is_exactly_that_of_pillow(tmp_path):
    pixels = noise(121, 83, 3)
    path = rows_tar(tmp_path / "t.tar", [{"png": png(pixels)}])
    for steps in (
        ("crop=32x32", "resize=64x64"),
        ("crop=41x32", "resize=16"),
        ("flip=always", "crop=32x31", "resize=64x64"),
        ("crop=32x31", "flip=always", "resize=20x9"),
    ):
        wanted = in_steps(pixels, steps)
        assert np.array_equal(resized(path, "/".join(("rgb8", *steps))), wanted), steps
        assert np.array_equal(
            resized(path, "/".join(("rgb8", "chw", *steps))), wanted.transpose(2, 0, 1)
        )


def test_a_random_crop_that_comes_first_lies_in_the_stored_image(tmp_path):
    """Each pixel says where it was: a crop of 8 x 8 that is doubled keeps its place."""
    y, x = np.mgrid[0:40, 0:60]
    pixels = np.stack([y, x, y + x], axis=2).astype("u1")
    path = rows_tar(tmp_path / "t.tar", [{"png": png(pixels)} for _ in range(30)])
    (batch,) = shardfeed.Stream(path).batches(30, decode="png:image/rgb8/crop=random:8x8")
    (twice,) = shardfeed.Stream(path).batches(
        30, decode="png:image/rgb8/crop=random:8x8/resize=16x16"
    )
    places = set()
    for crop, doubled in zip(batch["png"], twice["png"]):
        wanted = image.fromarray(crop).resize((16, 16), image.Resampling.BILINEAR)
        assert np.array_equal(doubled, np.asarray(wanted))
        places.add((int(crop[0, 0, 0]), int(crop[0, 0, 1])))
    assert len(places) > 20


def test_a_crop_larger_than_the_image_names_the_size_of_the_image(tmp_path):
    path = rows_tar(tmp_path / "t.tar", [{"png": png(noise(30, 20, 3))}])
    with pytest.raises(shardfeed.FormatError, match=r"30x20 is smaller than its crop, 64x64"):
        resized(path, "rgb8/crop=64x64/resize=16x16")
    with pytest.raises(shardfeed.FormatError, match=r"24x16 is smaller than its crop, 64x64"):
        resized(path, "rgb8/resize=16/crop=64x64")


@pytest.mark.parametrize(
    "words", ["resize=9/crop=4x4/resize=8", "crop=4x4/crop=2x2", "crop=4x4/exif", "rgb8/rgb"]
)
def test_a_step_that_would_be_lost_is_refused(tmp_path, words):
    path = rows_tar(tmp_path / "t.tar", [{"png": png(noise(30, 20, 3))}])
    with pytest.raises(shardfeed.UsageError, match=r"second|before"):
        resized(path, words)
