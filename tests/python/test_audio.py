"""Sounds in batches: the numbers of libsndfile and libsoxr, parts, random choices, damage."""

from __future__ import annotations

import contextlib
import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import rows_tar

soundfile = pytest.importorskip("soundfile")
soxr = pytest.importorskip("soxr")

RATE = 16000
FORMATS = {
    "wav": ("WAV", "PCM_16"),
    "flac": ("FLAC", "PCM_16"),
    "mp3": ("MP3", "MPEG_LAYER_III"),
}


def sound(frames: int = RATE, channels: int = 2, seed: int = 0) -> np.ndarray:
    """Tones and a little noise, no two frames alike."""
    time = np.arange(frames)[:, None] / RATE
    tones = np.sin(2 * np.pi * time * (300 + 200 * np.arange(channels)) * (1 + time))
    noise = np.random.default_rng(seed).uniform(-0.1, 0.1, (frames, channels))
    return (0.5 * tones + noise).astype("f4")


def encoded(numbers: np.ndarray, suffix: str = "wav", rate: int = RATE, subtype: str = "") -> bytes:
    file = io.BytesIO()
    kind, usual = FORMATS[suffix]
    soundfile.write(file, numbers, rate, format=kind, subtype=subtype or usual)
    return file.getvalue()


def stored(data: bytes, dtype: str = "float32") -> np.ndarray:
    """What the package soundfile reads."""
    return soundfile.read(io.BytesIO(data), dtype=dtype, always_2d=True)[0]


def column(path: str, decode: str, rows: int = 10, **options: Any) -> Any:
    (batch,) = shardfeed.Stream(path, **options).batches(rows, decode=decode)
    return batch[decode.partition(":")[0]]


def one(tmp_path: Path, data: bytes, words: str = "", **options: Any) -> np.ndarray:
    """What one sound becomes."""
    path = rows_tar(tmp_path / "t.tar", [{"snd": data}])
    return column(path, f"snd:audio{words}", **options)[0]


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_numbers_of_soundfile(tmp_path, suffix):
    data = encoded(
        sound(48000 if suffix == "opus" else RATE), suffix, 48000 if suffix == "opus" else RATE
    )
    found = one(tmp_path, data)
    assert found.dtype == "float32"
    # Decoders of lossy formats differ between versions, in the last bits.
    exact = suffix in ("wav", "flac")
    np.testing.assert_allclose(found, stored(data), atol=0 if exact else 1e-4)
    assert np.array_equal(one(tmp_path, data, "/cf"), found.T)
    np.testing.assert_allclose(one(tmp_path, data, "/mono"), found.mean(1), atol=1e-6)
    whole = one(tmp_path, data, "/int16").astype(int)
    assert np.abs(whole - np.clip(np.rint(found * 32768.0), -32768, 32767)).max() <= 1


@pytest.mark.parametrize(
    "subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW"]
)
def test_numbers_of_wav(tmp_path, subtype):
    data = encoded(sound(1000, 3), "wav", subtype=subtype)
    assert np.array_equal(one(tmp_path, data), stored(data))
    if subtype in ("PCM_U8", "PCM_16"):
        assert np.array_equal(one(tmp_path, data, "/int16"), stored(data, "int16"))


def test_loud_numbers_stay_in_int16(tmp_path):
    data = encoded(np.array([[2.0], [-2.0], [1.0], [-1.0], [0.5]], "f4"), "wav", subtype="FLOAT")
    assert one(tmp_path, data, "/int16").ravel().tolist() == [32767, -32768, 32767, -32768, 16384]
    assert one(tmp_path, data).ravel().tolist() == [2, -2, 1, -1, 0.5]


def test_the_suffix_says_audio(tmp_path):
    row = {suffix: encoded(sound(4800), suffix, 48000) for suffix in FORMATS}
    path = rows_tar(tmp_path / "t.tar", [row])
    (batch,) = shardfeed.Stream(path).batches(10)
    for suffix, data in row.items():
        assert batch[suffix][0].shape == stored(data).shape, suffix


@pytest.mark.parametrize(
    "rates", [(48000, 16000), (44100, 16000), (8000, 16000), (22050, 44100), (16001, 16000)]
)
def test_rates_of_soxr(tmp_path, rates):
    before, after = rates
    data = encoded(sound(30000, 2), "wav", before, "FLOAT")
    wanted = soxr.resample(stored(data), before, after)
    found = one(tmp_path, data, f"/rate={after}")
    assert found.shape[0] == round(30000 * after / before)
    np.testing.assert_allclose(found[: len(wanted)], wanted[: len(found)], atol=1e-5)
    mono = one(tmp_path, data, f"/rate={after}/mono")
    np.testing.assert_allclose(mono, found.mean(1), atol=1e-5)
    # libsoxr leaves the last frame out where it has no room for one more than it makes.
    for frames in (100000, 100001, 131072):
        longer = encoded(sound(frames, 1), "wav", before, "FLOAT")
        assert len(one(tmp_path, longer, f"/rate={after}")) == (2 * frames * after + before) // (
            2 * before
        )
    # A part is what the whole has there.
    part = one(tmp_path, data, f"/rate={after}/crop=500")
    start = (len(found) - 500) // 2
    np.testing.assert_allclose(part, found[start : start + 500], atol=1e-5)


def test_parts(tmp_path):
    data = encoded(sound(), "flac")
    whole = stored(data)
    assert np.array_equal(one(tmp_path, data, "/crop=start:100"), whole[:100])
    assert np.array_equal(one(tmp_path, data, "/crop=250ms"), whole[6000:10000])
    assert np.array_equal(one(tmp_path, data, "/crop=0.5s"), whole[4000:12000])
    assert np.array_equal(one(tmp_path, data, "/crop=2s"), whole)
    padded = one(tmp_path, data, "/crop=2s/pad/cf")
    assert padded.shape == (2, 2 * RATE)
    assert np.array_equal(padded[:, :RATE], whole.T)
    assert not padded[:, RATE:].any()
    assert np.array_equal(one(tmp_path, data, "/crop=2s/pad/int16")[:RATE], stored(data, "int16"))


def test_sounds_of_any_length(tmp_path):
    sounds = [sound(length, 1) for length in (700, 300, 500)]
    path = rows_tar(tmp_path / "t.tar", ({"flac": encoded(s, "flac")} for s in sounds))
    with pytest.raises(shardfeed.Error, match=r"crop|ragged"):
        column(path, "flac:audio/mono")
    ragged = column(path, "flac:audio/mono", ragged="offsets")
    assert [len(row) for row in ragged] == [700, 300, 500]
    assert column(path, "flac:audio/mono/crop=400/pad").shape == (3, 400)


def test_random_parts_depend_on_key_and_epoch_alone(tmp_path):
    count, length, part = 400, 40, 30
    ramp = np.arange(length, dtype="i2")
    path = rows_tar(tmp_path / "t.tar", ({"wav": encoded(ramp)} for _ in range(count)))
    decode = f"wav:audio/int16/mono/crop=random:{part}"

    def starts(**options: Any) -> list[int]:
        rows = column(path, decode, count, **options)
        assert all(np.array_equal(row - row[0], ramp[:part]) for row in rows)
        return [int(row[0]) for row in rows]

    first = starts(seed=1)
    assert first == starts(seed=1, threads=3)
    assert first != starts(seed=2)
    # 11 places, each as likely as any other: chi square with 10 degrees of freedom.
    counts = np.bincount(first, minlength=length - part + 1)
    expected = count / len(counts)
    assert ((counts - expected) ** 2 / expected).sum() < 35
    with shardfeed.Dataset(path, decode=decode, seed=1) as data:
        data.set_epoch(0)
        assert [int(row[0]) for row in data.batch(range(count))["wav"]] == first
        data.set_epoch(1)
        assert [int(row[0]) for row in data.batch(range(count))["wav"]] != first


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_that_is_cut_is_an_error(tmp_path, suffix):
    data = encoded(sound(9600, 1), suffix, 48000)
    wrong = []
    for size in range(0, len(data), max(1, len(data) // 150)):
        try:
            one(tmp_path, data[:size])
            wrong.append(size)
        except shardfeed.Error as error:
            assert isinstance(error, (shardfeed.FormatError, shardfeed.UnsupportedError)), error
            assert "000000" in str(error)
    assert wrong == []


@pytest.mark.parametrize("suffix", FORMATS)
def test_damage_is_an_error_or_harmless(tmp_path, suffix):
    """No crash; where the format has checksums no other numbers either."""
    data = encoded(sound(4800, 1), suffix, 48000)
    whole = one(tmp_path, data)
    random = np.random.default_rng(1)
    different = 0
    for _ in range(100):
        damaged = bytearray(data)
        damaged[random.integers(len(data))] ^= 1 << int(random.integers(8))
        with contextlib.suppress(shardfeed.Error):
            different += not np.array_equal(one(tmp_path, bytes(damaged)), whole)
    if suffix == "flac":  # bits of its header, as the rate, are in no checksum
        assert different <= 5


def test_what_is_refused(tmp_path):
    assert "another codec" in refusal(tmp_path, b"OggS" + bytes(22) + b"\1\x08Speex   ")
    mp3 = bytearray(encoded(sound(4800), "mp3"))
    for name in (b"Xing", b"Info"):
        mp3 = mp3.replace(name, b"none")
    assert "does not say how long it is" in refusal(tmp_path, bytes(mp3))
    tagged = b"ID3\x04\0\0\0\0\0\x0a" + bytes(10) + encoded(sound(100))
    assert "no WAV, FLAC, MP3, Ogg, MP4, Matroska or AVI" in refusal(tmp_path, tagged)
    assert "0 bytes" in refusal(tmp_path, b"")
    assert "0 frames" in refusal(tmp_path, encoded(sound(0), "wav"))
    assert "re-encode" in refusal(tmp_path, b"no sound at all, but text" * 9)
    file = io.BytesIO()
    soundfile.write(file, sound(10), RATE, format="AIFF")
    assert "no WAV, FLAC, MP3, Ogg, MP4, Matroska or AVI" in refusal(tmp_path, file.getvalue())
    limit = refusal(tmp_path, encoded(sound(RATE)), max_decoded=1000)
    assert "max_decoded=1000" in limit


def refusal(tmp_path: Path, data: bytes, **options: Any) -> str:
    with pytest.raises(shardfeed.Error) as caught:
        one(tmp_path, data, **options)
    return str(caught.value)


def test_a_wav_of_a_program_that_wrote_into_a_pipe(tmp_path):
    data = bytearray(encoded(sound(100), "wav"))
    at = data.index(b"data") + 4
    data[at : at + 4] = b"\xff" * 4
    assert np.array_equal(one(tmp_path, bytes(data)), sound_of_wav(data))


def rf64(numbers: np.ndarray, said: int, missing: int = 0) -> bytes:
    """An RF64 file of 16-bit numbers, whose chunk "data" has the size `said`."""
    data = numbers.astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", 1, 1, RATE, 2 * RATE, 2, 16)
    sizes = struct.pack("<QQQI", 72 + len(data), len(data), len(numbers), 0)
    chunks = (
        b"ds64" + struct.pack("<I", len(sizes)) + sizes + b"fmt " + struct.pack("<I", 16) + form
    )
    whole = b"RF64\xff\xff\xff\xffWAVE" + chunks + b"data" + struct.pack("<I", said) + data
    return whole[: len(whole) - missing]


def test_the_size_of_rf64_is_the_large_one(tmp_path):
    numbers = np.arange(1000)
    found = one(tmp_path, rf64(numbers, 0xFFFFFFFF), "/int16/mono")
    assert found.tolist() == numbers.tolist()
    for said in (0, 1000, 0xFFFFFFFF):
        with pytest.raises(shardfeed.FormatError, match="the file ends after"):
            one(tmp_path, rf64(numbers, said, missing=500))


def sound_of_wav(data: bytes) -> np.ndarray:
    """The numbers of a WAV with two channels of 16 bits."""
    return np.frombuffer(data[data.index(b"data") + 8 :], "<i2").reshape(-1, 2).astype("f4") / 32768


def test_damaged_sounds_are_skipped_and_counted(tmp_path):
    rows = [{"wav": encoded(sound(500, 1, seed))} for seed in range(5)]
    rows[2]["wav"] = rows[2]["wav"][:-10]
    path = rows_tar(tmp_path / "t.tar", rows)
    stream = shardfeed.Stream(path, on_error="skip_sample")
    (batch,) = stream.batches(10, decode="wav:audio")
    assert batch["wav"].shape == (4, 500, 1)
    assert stream.stats()["skipped_samples"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("/pad", "padded to the length of its crop"),
        ("/rate=0", "not a rate"),
        ("/rate=x", "not a rate"),
        ("/crop=0", "not a length"),
        ("/crop=5 s", "not a length"),
        ("/crop=5m", "not a length"),
        ("/crop=-1s", "not a length"),
        ("/crop=infs", "not a length"),
        ("/mono/mono", "a second mono"),
        ("/cf/fc", "a second layout"),
        ("/rgb8", 'unknown word "rgb8" for a sound'),
    ],
)
def test_words_that_are_wrong(tmp_path, words, message):
    with pytest.raises(shardfeed.UsageError, match=message):
        one(tmp_path, b"", words)
