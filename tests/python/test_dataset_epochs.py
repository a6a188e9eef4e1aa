"""Random crops and flips of samples by number: other ones in every epoch, the same in every run."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import warnings
import wave
from pathlib import Path

import numpy as np
import pytest
import shardfeed
from batches import rows_tar

image = pytest.importorskip("PIL.Image")

CROP = "png:image/rgb8/crop=random:6x6/flip=random"


def pictures(folder, count=12) -> str:
    """Each pixel says where it is."""
    y, x = np.mgrid[0:40, 0:60]
    file = io.BytesIO()
    image.fromarray(np.stack([y, x, y], axis=2).astype("u1")).save(file, "png")
    return rows_tar(folder / "t.tar", [{"png": file.getvalue()} for _ in range(count)])


def test_batches_differ_between_epochs(tmp_path):
    path = pictures(tmp_path)
    numbers = list(range(12))
    with shardfeed.Dataset(path, decode=CROP, index="memory") as data:
        data.set_epoch(0)
        first = data.batch(numbers)["png"].copy()
        assert np.array_equal(data.batch(numbers)["png"], first)
        data.set_epoch(1)
        assert data.epoch == 1
        second = data.batch(numbers)["png"].copy()
        assert not np.array_equal(first, second)
        assert sum(np.array_equal(a, b) for a, b in zip(first, second)) < 4
        # An epoch for one call, in any order.
        assert np.array_equal(data.batch(numbers, epoch=0)["png"], first)
        assert np.array_equal(data.batch(numbers[::-1], epoch=1)["png"], second[::-1])
        assert not np.array_equal(data.batch(numbers, epoch=1, seed=9)["png"], second)
    with shardfeed.Dataset(path, decode=CROP, epoch=1) as again:
        assert np.array_equal(again.batch(numbers)["png"], second)


def test_they_are_those_of_a_stream_of_that_epoch(tmp_path):
    path = pictures(tmp_path)
    (streamed,) = shardfeed.Stream(path, epoch=3, seed=5).batches(12, decode=CROP)
    with shardfeed.Dataset(path, seed=5, index="memory") as data:
        found = data.batch(range(12), decode=CROP, epoch=3)
        assert np.array_equal(found["png"], streamed["png"])


def test_samples_have_the_epoch_of_the_dataset(tmp_path):
    with shardfeed.Dataset(pictures(tmp_path), index="memory") as data:
        data.set_epoch(4)
        sample, (other,) = data[7], data.get_many([7])
        wanted = data.batch([7], decode=CROP)["png"][0]
        assert np.array_equal(sample.decode(CROP)["png"], wanted)
        assert np.array_equal(other.decode(CROP)["png"], wanted)
        data.set_epoch(5)
        assert np.array_equal(sample.decode(CROP)["png"], wanted)  # it was read before
        assert not np.array_equal(data[7].decode(CROP)["png"], wanted)


def test_options_of_one_batch(tmp_path):
    path = rows_tar(tmp_path / "t.tar", [{"cls": b"%d" % n, "txt": b"x" * n} for n in range(5)])
    with shardfeed.Dataset(path, decode="cls", index="memory") as data:
        assert data.batch([1, 2]).keys() == ["cls"]
        assert list(data.batch([1, 2], decode="txt")["txt"]) == ["x", "xx"]
        assert data.batch([1, 2]).keys() == ["cls"]
        empty = data.batch([3], decode="cls, jpg:bytes", missing="empty")
        assert empty["jpg"][0] is None
        with pytest.raises(TypeError, match='"shuffle" is no option of batch'):
            data.batch([1], shuffle=3)
        with pytest.raises(shardfeed.UsageError, match="epoch"):
            data.batch([1], epoch=-1)
        with pytest.raises(shardfeed.UsageError, match="epoch"):
            data.set_epoch(-1)


PROGRAM = """
import sys, warnings, shardfeed
warnings.simplefilter("always")
path, crop = sys.argv[1:]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    data = shardfeed.Dataset(path, index="memory")
    data.batch([1], decode="png:image/l8")
    data.set_epoch(0)
    data.batch([1], decode=crop)
    data[1].decode(crop)
    assert not caught, caught[0].message
    fresh = shardfeed.Dataset(path, index="memory")
    fresh.batch([1], decode=crop, epoch=0)
    assert not caught, caught[0].message
    for _ in range(3):
        fresh.batch([1], decode=crop)
        fresh[2].decode(crop)
    (warning,) = caught
    assert "set_epoch" in str(warning.message), warning.message
    assert warning.filename == "<string>", warning.filename
"""


def test_one_warning_where_no_epoch_was_set(tmp_path):
    path = pictures(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, path, CROP], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# What the page says of a word that chooses at random, and a use of each.
BY_CHANCE = re.compile(r"\brandom\b|\bthe chance\b|\bof every second\b|\bis drawn from\b")
CHOICES = [
    "png:image/rgb8/crop=random:6x6",
    "png:image/rgb8/flip=random",
    "png:image/rgb/chw/rrc=6x6",
    "png:image/rgb8/brightness=0.6..1.4",
    "png:image/rgb8/contrast=0.6..1.4",
    "png:image/rgb8/saturation=0.6..1.4",
    "png:image/rgb8/hue=-0.1..0.1",
    "png:image/rgb8/brightness=0.6..1.4/jitter=0.8",
    "png:image/rgb8/grayscale=0.2",
    "png:image/rgb8/blur=0.5",
    "png:image/rgb8/blur=1/sigma=0.1..2",
    "png:image/rgb8/solarize=0.2",
    "png:image/rgb8/randaugment",
    "png:image/rgb8/randaugment=2:9:bilinear",
    "png:image/rgb8/trivialaugment",
    "png:image/rgb8/mixup=0.2",
    "png:image/rgb8/cutmix=1",
    "wav:bytes, png:image/rgb8 / resize=8x8 / trivialaugment",
    "wav:audio/crop=random:80",
]


@pytest.mark.parametrize("decode", CHOICES)
def test_a_warning_for_every_word_that_is_random(tmp_path, monkeypatch, decode):
    sound = io.BytesIO()
    with wave.open(sound, "wb") as out:
        out.setparams((1, 2, 8000, 0, "NONE", ""))
        out.writeframes(bytes(1600))
    png = io.BytesIO()
    image.new("RGB", (16, 16)).save(png, "png")
    fields = {"png": png.getvalue(), "wav": sound.getvalue()}
    path = rows_tar(tmp_path / "t.tar", [fields] * 3)
    monkeypatch.setattr(shardfeed._dataset, "_warned", False)
    warned = pytest.warns(UserWarning, match="no epoch was set")
    with shardfeed.Dataset(path, index="memory") as data, warned:
        data.batch([0, 1, 2], decode=decode)


def test_the_page_has_no_other_word_that_is_random():
    page = (Path(__file__).parents[2] / "docs/decode.md").read_text()
    words = set()
    for row in re.findall(r"^\| (.*?) \| (.*?) \|$", page, re.M):
        if BY_CHANCE.search(row[1]):
            words |= {word.partition("=")[0] for word in re.findall(r"`([a-z]+[^`]*)`", row[0])}
    assert {"crop", "flip", "rrc", "solarize", "trivialaugment", "cutmix"} <= words
    used = {word.partition("=")[0] for text in CHOICES for word in re.split("[/ ]+", text)}
    assert words <= used, words - used


@pytest.mark.parametrize(
    "decode",
    ["png:image/rgb8/crop=6x6/flip=always", "png:image/rgb8/grayscale=1", "png, rrc:bytes"],
)
def test_no_warning_without_random_choices(tmp_path, monkeypatch, decode):
    monkeypatch.setattr(shardfeed._dataset, "_warned", False)
    with warnings.catch_warnings(), shardfeed.Dataset(pictures(tmp_path), index="memory") as data:
        warnings.simplefilter("error")
        data.batch([0], decode=decode, missing="empty")
