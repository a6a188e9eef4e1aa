"""The column "__augment__": what was chosen for each row, so that other data can have the same."""

from __future__ import annotations

import io
import wave

import numpy as np
import pytest
import shardfeed
from batches import rows_tar

image = pytest.importorskip("PIL.Image")

from images import AUGMENTED, encoded, noise, places, resized  # noqa: E402  they need Pillow


def again(picture: image.Image, record: dict, fill: int = 0) -> np.ndarray:
    """The image of a record, by Pillow: crop, resize, crop, pad, flip."""
    left, top, width, height = record["part"]
    picture = picture.crop((left, top, left + width, top + height))
    picture = resized(picture, *record["resize"], image.Resampling.BILINEAR)
    left, top, width, height = record["crop"]
    picture = picture.crop((left, top, left + width, top + height))
    canvas = image.new("RGB", tuple(record["size"]), (fill,) * 3)
    canvas.paste(picture, tuple(record["place"]))
    flip = image.Transpose.FLIP_LEFT_RIGHT
    return np.asarray(canvas.transpose(flip) if record["flip"] else canvas)


@pytest.mark.parametrize("steps", AUGMENTED)
def test_the_geometry_can_be_done_again(tmp_path, steps):
    width, height, count = 61, 47, 30
    x, y = places(width, height)
    path = rows_tar(
        tmp_path / "t.tar",
        ({"png": encoded(noise(width, height, seed=n), "png"), "x.png": x, "y.png": y}
         for n in range(count)),
    )  # fmt: skip
    fill = 9 if "fill" in steps else 0
    masks = ", ".join(f"{name}.png:image/l16/{steps}" for name in "xy")
    decode = f"png:image/rgb8/{steps}, {masks}, __augment__"
    batch = next(shardfeed.Stream(path).batches(count, decode=decode))
    assert list(batch) == ["png", "x.png", "y.png", "__augment__"]
    for number, row in enumerate(batch["__augment__"]):
        record = row["png"]
        assert row["x.png"] == record == row["y.png"]
        assert record["image"] == [width, height]
        wanted = again(image.fromarray(noise(width, height, seed=number)), record, fill)
        found = batch["png"][number]
        # A flip before resizing sums in another order.
        assert np.abs(found.astype(int) - wanted).max() <= 1, record
        # The matrix says where the middle of each pixel came from.
        a, b, c, d, e, f = record["matrix"]
        assert b == d == 0
        rows, columns = np.mgrid[0 : found.shape[0], 0 : found.shape[1]] + 0.5
        at_x, at_y = (columns - c) / a, (rows - f) / e
        inner = (at_x > 3) & (at_x < width - 3) & (at_y > 3) & (at_y < height - 3)
        for name, at in (("x", at_x), ("y", at_y)):
            given = batch[f"{name}.png"][number] / 200 + 0.5
            assert np.abs(given - at)[inner].max() < 0.5, (name, record)


def test_colours_can_be_done_again(tmp_path):
    functional = pytest.importorskip("torchvision.transforms.v2.functional")
    import torch

    torch.set_num_threads(1)
    count = 60
    path = rows_tar(
        tmp_path / "t.tar", ({"png": encoded(noise(30, 20, seed=n), "png")} for n in range(count))
    )
    words = (
        "brightness=0.5..1.5/contrast=0.5..1.5/saturation=0.5..1.5/hue=-0.1..0.1/jitter=0.8/"
        "grayscale=0.2/blur=0.5/sigma=0.3..2/kernel=5/solarize=0.2/views=2"
    )
    decode = f"png:image/rgb8/{words}, __augment__"
    batch = next(shardfeed.Stream(path).batches(count, decode=decode))
    seen = set()
    for number, row in enumerate(batch["__augment__"]):
        assert sorted(row) == ["png.0", "png.1"]
        assert row["png.0"] != row["png.1"]
        for name, record in row.items():
            picture = torch.from_numpy(noise(30, 20, seed=number)).permute(2, 0, 1)
            for change, factor in record["colours"]:
                picture = getattr(functional, f"adjust_{change}")(picture, factor)
            if record["grayscale"]:
                picture = functional.rgb_to_grayscale(picture, 3)
            if record["blur"] is not None:
                picture = functional.gaussian_blur(picture, [5, 5], [record["blur"]] * 2)
            if record["solarize"]:
                picture = functional.solarize(picture, 128)
            seen.add((record["grayscale"], record["blur"] is None, len(record["colours"])))
            difference = np.abs(batch[name][number].astype(int) - picture.permute(1, 2, 0).numpy())
            # One level more or less after one change is some after the next, and at 128 all.
            assert np.median(difference) <= 1, record
    assert {gray for gray, _, _ in seen} == {none for _, none, _ in seen} == {False, True}
    assert {changes for _, _, changes in seen} == {0, 4}


def test_a_crop_of_a_sound(tmp_path):
    if shardfeed.features()["audio"] is None:
        pytest.skip("the library was built without sounds")
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(np.arange(20000).astype("<i2").tobytes())
    path = rows_tar(tmp_path / "t.tar", [{"wav": file.getvalue()}] * 20)
    decode = "wav:audio/int16/mono/crop=random:500, __augment__"
    batch = next(shardfeed.Stream(path).batches(20, decode=decode))
    starts = [row["wav"]["start"] for row in batch["__augment__"]]
    assert [int(sound[0]) for sound in batch["wav"]] == starts
    assert len(set(starts)) > 10
    assert batch["__augment__"][0]["wav"] == {"rate": 8000, "start": starts[0], "frames": 500}


def test_what_is_not_there_is_null(tmp_path):
    path = rows_tar(tmp_path / "t.tar", [{"png": encoded(noise(6, 5), "png"), "cls": b"1"},
                                         {"cls": b"2"}])  # fmt: skip
    stream = shardfeed.Stream(path, missing="empty")
    batch = next(stream.batches(2, decode="cls, png:image, __augment__"))
    first, second = batch["__augment__"]
    assert first["png"]["size"] == [6, 5]
    assert second == {"png": None}


def test_it_is_the_same_by_number_and_of_one_sample(tmp_path):
    path = rows_tar(
        tmp_path / "t.tar", ({"png": encoded(noise(30, 20, seed=n), "png")} for n in range(9))
    )
    decode = "png:image/rrc=9x9/flip=random, __augment__"
    wanted = next(shardfeed.Stream(path).batches(9, decode=decode))["__augment__"]
    for size in (1, 4):
        batches = shardfeed.Stream(path, decode_threads=3).batches(size, decode=decode)
        assert [row for batch in batches for row in batch["__augment__"]] == list(wanted)
    with shardfeed.Dataset(path, decode=decode) as data:
        assert list(data.batch(range(9))["__augment__"]) == list(wanted)


@pytest.mark.parametrize("decode", ["__augment__:json", "png;__augment__", "__augment__:image"])
def test_it_is_of_no_field(tmp_path, decode):
    path = rows_tar(tmp_path / "t.tar", [{"png": encoded(noise(6, 5), "png")}])
    with pytest.raises(shardfeed.UsageError, match="this column is of no field"):
        next(shardfeed.Stream(path).batches(1, decode=decode))


def test_damage_is_an_error_of_its_sample(tmp_path):
    good = encoded(noise(6, 5), "png")
    path = rows_tar(tmp_path / "t.tar", [{"png": good}, {"png": good[:20]}, {"png": good}])
    stream = shardfeed.Stream(path, on_error="skip_sample")
    (batch,) = stream.batches(3, decode="__augment__, png")
    assert [row["png"]["size"] for row in batch["__augment__"]] == [[6, 5]] * 2
