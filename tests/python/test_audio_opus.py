"""Opus in Ogg: what its pages promise of the end, and damage with and without right checksums."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import rows_tar
from ogg_pages import LAST, joined, pages

soundfile = pytest.importorskip("soundfile")
if "OPUS" not in soundfile.available_subtypes("OGG"):
    pytest.skip("this libsndfile has no Opus", allow_module_level=True)


def sound(frames: int, channels: int = 2, seed: int = 0) -> np.ndarray:
    time = np.arange(frames)[:, None] / 48000
    tones = np.sin(2 * np.pi * time * (300 + 200 * np.arange(channels)) * (1 + time))
    return (0.5 * tones + np.random.default_rng(seed).uniform(-0.1, 0.1, tones.shape)).astype("f4")


def encoded(frames: int = 48000, channels: int = 2, rate: int = 48000) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, sound(frames, channels), rate, format="OGG", subtype="OPUS")
    return file.getvalue()


def read(data: bytes) -> np.ndarray:
    """What the package soundfile reads."""
    return soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)[0]


def one(tmp_path: Path, data: bytes, words: str = "", **options: Any) -> np.ndarray:
    path = rows_tar(tmp_path / "t.tar", [{"x": data}])
    with shardfeed.Stream(path, **options) as stream:
        (batch,) = stream.batches(1, decode=f"x:audio{words}")
    return batch["x"][0]


def refusal(tmp_path: Path, data: bytes, words: str = "") -> str:
    with pytest.raises((shardfeed.FormatError, shardfeed.UnsupportedError)) as info:
        one(tmp_path, data, words)
    assert "000000" in str(info.value)
    return str(info.value)


@pytest.mark.parametrize("rate", [8000, 12000, 16000, 24000, 48000])
@pytest.mark.parametrize("channels", [1, 2, 6])
@pytest.mark.parametrize("frames", [100, 9600, 96001])
def test_the_numbers_of_soundfile(tmp_path, frames, channels, rate):
    data = encoded(frames, channels, rate)
    wanted = read(data)
    found = one(tmp_path, data)
    assert found.shape == wanted.shape == (frames, channels)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    path = rows_tar(tmp_path / "s.tar", [{"opus": data}])
    with shardfeed.Stream(path) as stream:
        (batch,) = stream.batches(1)  # the suffix says audio
    assert np.array_equal(batch["opus"][0], found)


def test_parts(tmp_path):
    data = encoded(96000)
    whole = one(tmp_path, data)
    for words, part in {
        "/crop=start:100": whole[:100],
        "/crop=250ms": whole[42000:54000],
        "/crop=0.5s/cf": whole[36000:60000].T,
    }.items():
        np.testing.assert_allclose(one(tmp_path, data, words), part, atol=1e-5)
    mono = one(tmp_path, data, "/crop=random:1s/mono")
    assert mono.shape == (48000,)


def test_what_other_programs_write(tmp_path):
    av = pytest.importorskip("av")
    file = io.BytesIO()
    with av.open(file, "w", format="ogg") as container:
        stream = container.add_stream("libopus", rate=48000, layout="stereo")
        for start in range(0, 96000, 960):
            part = sound(96000)[start : start + 960]
            frame = av.AudioFrame.from_ndarray(part.reshape(1, -1), format="flt", layout="stereo")
            frame.sample_rate = 48000
            frame.pts = start
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    found = one(tmp_path, file.getvalue())
    assert found.shape == read(file.getvalue()).shape
    np.testing.assert_allclose(found, read(file.getvalue()), atol=1e-6)


def test_every_cut_is_an_error(tmp_path):
    data = encoded(48000, 1)
    wrong = []
    for size in {*range(0, len(data), max(1, len(data) // 1000)), len(data) - 1}:
        for words in ("", "/crop=start:10"):
            try:
                one(tmp_path, data[:size], words)
                wrong.append((size, words))
            except (shardfeed.FormatError, shardfeed.UnsupportedError) as error:
                assert "000000" in str(error)
    assert wrong == []


def test_every_flip_is_an_error(tmp_path):
    """Pages have CRCs, and all of them are looked at, whatever part is wanted."""
    data = encoded(48000, 1)
    random = np.random.default_rng(1)
    for number in range(1000):
        damaged = bytearray(data)
        damaged[random.integers(len(data))] ^= 1 << int(random.integers(8))
        refusal(tmp_path, bytes(damaged), "/crop=start:10" if number % 2 else "")


def test_damage_with_right_checksums_crashes_nothing(tmp_path):
    data = encoded(4800, 2)
    random = np.random.default_rng(2)
    outcomes = {True: 0, False: 0}
    for number in range(1000):
        found = pages(data)
        page = found[random.integers(len(found) if number % 2 else 2)]  # headers, or any
        body = bytearray(page.body)
        for _ in range(random.integers(1, 4)):
            body[random.integers(len(body))] = random.integers(256)
        page.body = bytes(body)
        crop = "/crop=random:100" if number % 3 == 0 else ""
        with contextlib.suppress(shardfeed.FormatError, shardfeed.UnsupportedError):
            one(tmp_path, joined(found), crop)
            outcomes[True] += 1
            continue
        outcomes[False] += 1
    assert min(outcomes.values()) > 100


def test_pages_that_are_missing_or_too_many(tmp_path):
    data = encoded(288000)
    good = pages(data)
    assert joined(good) == data
    count = len(good)
    assert count >= 6
    for number in range(count):
        refusal(tmp_path, joined(good[:number] + good[number + 1 :]))
        refusal(tmp_path, joined(good[: number + 1] + good[number:]))
    assert "page 3 is missing" in refusal(tmp_path, joined(good[:3] + good[4:]), "/crop=start:9")
    # Numbered as if nothing was missing: the positions say that something is.
    renumbered = [replace(page, number=at) for at, page in enumerate(good[:3] + good[4:])]
    assert "frames" in refusal(tmp_path, joined(renumbered), "/crop=start:9")
    assert "no page is marked as the last one" in refusal(tmp_path, joined(good[:-1]))
    unmarked = [*good[:-1], replace(good[-1], flags=good[-1].flags & ~LAST)]
    refusal(tmp_path, joined(unmarked))
    assert "no page" in refusal(tmp_path, data + b"more")
    assert "several streams" in refusal(tmp_path, data + data)
    other = [replace(page, serial=page.serial ^ 1) for page in good]
    assert "several streams" in refusal(tmp_path, joined([good[0], other[0], *good[1:]]))
    assert "several streams" in refusal(tmp_path, joined([*good[:4], other[4], *good[5:]]))
    assert "0 frames" in refusal(
        tmp_path, joined([*good[:2], replace(good[2], flags=LAST, granule=100)])
    )


def test_positions(tmp_path):
    data = encoded(144000)
    good = pages(data)
    whole = one(tmp_path, data)

    def moved(by: int, which: int) -> bytes:
        return joined(
            [
                replace(page, granule=page.granule + by) if which in (at, -1) and at > 1 else page
                for at, page in enumerate(good)
            ]
        )

    # What was recorded in the middle of a stream.
    assert one(tmp_path, moved(480000, -1)).shape == whole.shape
    for by in (-1, 1, 2**40, -(2**40), 2**62, -(2**63)):
        with contextlib.suppress(OverflowError):
            refusal(tmp_path, moved(by, 3) if abs(by) < 2**62 else moved(by, 2))
    last = len(good) - 1
    assert len(one(tmp_path, moved(-1, last))) == len(whole) - 1
    assert "position" in refusal(tmp_path, moved(960 * 60, last))
    assert "position" in refusal(tmp_path, moved(-960 * 60, last))


def test_headers_that_are_none(tmp_path):
    good = pages(encoded(9600))

    def with_body(number: int, body: bytes) -> str:
        lacing = b"\xff" * (len(body) // 255) + bytes([len(body) % 255])
        changed = list(good)
        changed[number] = replace(good[number], body=body, lacing=lacing)
        return refusal(tmp_path, joined(changed))

    head, tags = good[0].body, good[1].body
    assert "damaged header of Opus" in with_body(0, head[:18])
    assert "damaged header of Opus" in with_body(0, head + b"x")
    assert "damaged header of Opus" in with_body(0, head[:8] + b"\x10" + head[9:])
    for channels in (0, 3, 255):
        assert "damaged header" in with_body(0, head[:9] + bytes([channels]) + head[10:])
    assert "no loudspeakers" in with_body(0, head[:18] + b"\xff" + b"\x02\0\0\1")
    for table in (b"", b"\0\0\0\0", b"\2\3\0\1", b"\xff\xff\0\1", b"\1\1\0\2", b"\1\1\0"):
        assert "damaged header" in with_body(0, head[:18] + b"\x01" + table)
    assert "Vorbis" in with_body(0, b"\x01vorbis" + bytes(23))
    assert "damaged tags" in with_body(1, b"OpusTagz" + tags[8:])
    assert "damaged tags" in with_body(1, tags[:8] + b"\xff\xff\xff\xff" + tags[12:])
    assert "damaged tags" in with_body(1, b"OpusTags" + bytes(4) + b"\xff\xff\xff\xff")
    assert "damaged tags" in with_body(1, b"OpusTags" + bytes(4) + b"\1\0\0\0" + b"\5\0\0\0abcd")
    assert "a packet that Opus does not have" in with_body(2, b"\xff\0")
