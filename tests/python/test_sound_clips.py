"""A sound that is cut to the clip of its video: crop=clip."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import rows_tar

av = pytest.importorskip("av")
if not {"video", "audio"} <= set(shardfeed.features()):
    pytest.skip("this build or this system has no libavformat", allow_module_level=True)

from sound_tracks import tones, track  # noqa: E402

RATE = 44100
PICTURES = 50
FRAMES = 2 * RATE
VIDEO = "v:video/clip=random:8/rgb8"


def read(path: str, decode: str, rows: int = 40, **options: Any) -> Any:
    (batch,) = shardfeed.Stream(path, **options).batches(rows, decode=f"{decode}, __augment__")
    return batch


def shard(tmp_path: Path, data: bytes, rows: int = 40) -> str:
    return rows_tar(tmp_path / "t.tar", [{"v": data}] * rows)


def starts(batch: Any) -> list[float]:
    """When the first picture of each clip is shown, after the first one of the video."""
    return [chosen["v"]["seconds"][0] for chosen in batch["__augment__"]]


@functools.cache
def tone(rate: int) -> np.ndarray:
    return tones(FRAMES, 1, rate)[:, 0]


def wanted(at: float, length: int, rate: int = RATE) -> np.ndarray:
    """Of the sound of track(): `length` frames from `at` seconds on, silent before and behind."""
    begin, whole = round(at * rate), tone(rate)
    heard = np.zeros(length, "f4")
    first, last = max(begin, 0), min(begin + length, FRAMES)
    if last > first:
        heard[first - begin : last - begin] = whole[first:last]
    return heard


# Formats of sound that lose nothing, so that every frame is where it was put.
@pytest.mark.parametrize(
    ("kind", "codec"),
    [("mp4", "alac"), ("mkv", "flac"), ("mov", "pcm_s16le"), ("avi", "pcm_s16le")],
)
@pytest.mark.parametrize("length", ["8000", "320ms"])
def test_it_begins_with_the_clip(tmp_path, kind, codec, length):
    data = track(kind, codec, channels=1, frames=FRAMES, pictures=PICTURES)
    decode = f"{VIDEO}, v:audio/mono/crop=clip:{length}"
    batch = read(shard(tmp_path, data), decode, seed=3)
    sounds, places = batch["v.audio"], starts(batch)
    assert batch["v"].shape[:2] == (40, 8)
    assert len(set(places)) > 20
    for sound, place in zip(sounds, places):
        np.testing.assert_allclose(sound, wanted(place, len(sound)), atol=1 / 32000)
    assert sounds.shape == (40, 8000 if length == "8000" else round(0.32 * RATE))


@pytest.mark.parametrize(
    ("kind", "codec", "slack"),
    [("mp4", "aac", 0.002), ("mkv", "aac", 0.002), ("mkv", "libopus", 0.002)],
)
def test_sounds_with_a_delay_of_their_encoder(tmp_path, kind, codec, slack):
    rate = 48000
    data = track(kind, codec, rate=rate, channels=1, frames=FRAMES, pictures=PICTURES)
    batch = read(shard(tmp_path, data), f"{VIDEO}, v:audio/mono/crop=clip:200ms/pad", seed=3)
    for sound, place in zip(batch["v.audio"], starts(batch)):
        # Where the sound fits best of all places near by.
        shifts = range(-400, 401, 10)
        errors = [
            np.abs(sound - wanted(place + shift / rate, len(sound), rate)).mean()
            for shift in shifts
        ]
        if place > 0.1:  # of the first frames lossy encoders make little
            assert abs(shifts[int(np.argmin(errors))]) <= slack * rate


@pytest.mark.parametrize(("sound_at", "pictures_at"), [(0.4, 0.0), (0.0, 0.4)])
def test_tracks_that_do_not_begin_together(tmp_path, sound_at, pictures_at):
    data = track(
        "mkv", "flac", channels=1, frames=FRAMES, pictures=PICTURES,
        sound_at=sound_at, pictures_at=pictures_at,
    )  # fmt: skip
    batch = read(shard(tmp_path, data), f"{VIDEO}, v:audio/mono/crop=clip:8000/pad", seed=3)
    silent = 0
    for sound, place, chosen in zip(batch["v.audio"], starts(batch), batch["__augment__"]):
        at = place + pictures_at - sound_at
        np.testing.assert_allclose(sound, wanted(at, 8000), atol=1 / 32000)
        record = chosen["v.audio"]
        assert record["silence"] == min(max(round(-at * RATE), 0), 8000)
        assert record["start"] == min(max(round(at * RATE), 0), FRAMES)
        silent += record["silence"] > 0
    assert (silent > 0) == (sound_at > 0)


def test_words_that_change_the_numbers(tmp_path):
    data = track("mov", "pcm_s16le", channels=2, frames=FRAMES, pictures=PICTURES)
    path = shard(tmp_path, data)
    whole = read(path, f"{VIDEO}, v:audio/crop=clip:8000/pad", seed=3)["v.audio"]
    ints = read(path, f"{VIDEO}, v:audio/int16/cf/crop=clip:8000/pad", seed=3)["v.audio"]
    assert ints.shape == (40, 2, 8000)
    np.testing.assert_array_equal(ints.transpose(0, 2, 1) / np.float32(32768), whole)
    # A part that is resampled is the same part of what the whole becomes.
    slow = read(path, f"{VIDEO}, v:audio/rate=16000/crop=clip:8000/pad", seed=3)
    every = read(path, "v:audio/rate=16000", seed=3)["v"][0]
    for sound, place in zip(slow["v.audio"], starts(slow)):
        begin = round(place * 16000)
        part = every[begin : begin + 8000]
        np.testing.assert_allclose(sound[: len(part)], part, atol=2e-6)
        assert not sound[len(part) :].any()


@pytest.mark.parametrize(
    "words", ["frames=4", "rate=5/clip=random:3", "clip=4", "clip=start:4/stride=3"]
)
def test_other_choices_of_frames(tmp_path, words):
    data = track("mov", "pcm_s16le", channels=1, frames=FRAMES, pictures=PICTURES)
    decode = f"v:video/{words}/rgb8, v:audio/mono/crop=clip:4000"
    batch = read(shard(tmp_path, data, 9), decode, seed=3)
    for sound, place in zip(batch["v.audio"], starts(batch)):
        np.testing.assert_allclose(sound, wanted(place, 4000), atol=1 / 32000)


def test_a_sound_that_is_over(tmp_path):
    data = track("mov", "pcm_s16le", channels=1, frames=4410, pictures=PICTURES)
    path = shard(tmp_path, data, 9)
    decode = "v:video/clip=16/rgb8, v:audio/mono/crop=clip:4000"
    batch = read(path, decode + "/pad")
    assert batch["v.audio"].shape == (9, 4000)
    assert not batch["v.audio"].any()
    with pytest.raises(shardfeed.FormatError, match=r"over when the clip.*pad makes it silence"):
        read(path, decode)


@pytest.mark.parametrize(
    "decode",
    [
        "v:audio/crop=clip:1s",
        "v:audio/crop=clip:1s, v:video/clip=8",
        "w:video/clip=8, v:audio/crop=clip:1s",
        "v;w:video/clip=8, v:audio/crop=clip:1s",
        "v:video/clip=random:8/views=2, v:audio/crop=clip:1s",
    ],
)
def test_there_is_no_clip(tmp_path, decode):
    path = shard(tmp_path, b"", 1)
    with pytest.raises(shardfeed.UsageError, match=r"cut to the clip.*mp4:audio/crop=clip:2s"):
        read(path, decode)
