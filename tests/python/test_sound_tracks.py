"""Sounds in MP4, Matroska, WebM, AVI and Ogg Vorbis: the numbers of PyAV, parts, damage."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import rows_tar

av = pytest.importorskip("av")
if not {"video", "audio"} <= set(shardfeed.features()):
    pytest.skip("this build or this system has no libavformat", allow_module_level=True)

from sound_tracks import sound_of, tones, track  # noqa: E402
from videos import video  # noqa: E402

# Versions of FFmpeg differ in the last bits of what lossy decoders make.
TOLERANCE = 1e-5
# The container, the codec, the rate, whether nothing is lost.
TRACKS = [
    ("mp4", "aac", 44100, False),
    ("mp4", "ac3", 48000, False),
    ("mp4", "libmp3lame", 44100, False),
    ("mp4", "alac", 44100, True),
    ("mp4", "flac", 44100, True),
    ("m4a", "aac", 22050, False),
    ("mov", "pcm_s16le", 44100, True),
    ("mov", "pcm_s24le", 44100, True),
    ("mov", "pcm_u8", 16000, False),
    ("mkv", "aac", 44100, False),
    ("mkv", "flac", 44100, True),
    ("mkv", "pcm_s16le", 44100, True),
    ("mkv", "pcm_f32le", 44100, True),
    ("webm", "libopus", 48000, False),
    ("avi", "pcm_s16le", 44100, True),
    ("avi", "libmp3lame", 44100, False),
]


def column(path: str, decode: str, rows: int = 10, **options: Any) -> Any:
    (batch,) = shardfeed.Stream(path, **options).batches(rows, decode=decode)
    return batch[decode.partition(":")[0]]


def one(tmp_path: Path, data: bytes, words: str = "", **options: Any) -> np.ndarray:
    """What the sound of one field becomes."""
    return column(rows_tar(tmp_path / "t.tar", [{"v": data}]), f"v:audio{words}", **options)[0]


def made(kind: str, codec: str, **options: Any) -> bytes:
    try:
        return track(kind, codec, **options)
    except (ValueError, av.FFmpegError):
        pytest.skip(f"this PyAV does not write {codec}")


@pytest.mark.parametrize("pictures", [0, 20])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(("kind", "codec", "rate", "exact"), TRACKS)
def test_the_numbers_of_pyav(tmp_path, kind, codec, rate, exact, channels, pictures):
    # The pictures are MPEG-4, which WebM does not take; Matroska is the same container.
    container = "mkv" if pictures and kind == "webm" else kind
    data = made(container, codec, rate=rate, channels=channels, pictures=pictures)
    wanted = sound_of(data)
    found = one(tmp_path, data)
    assert found.dtype == "float32"
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, atol=TOLERANCE)
    if exact:
        np.testing.assert_allclose(found, tones(30000, channels, rate), atol=1 / 32768)


def test_six_channels(tmp_path):
    data = made("mp4", "aac", channels=6)
    np.testing.assert_allclose(one(tmp_path, data), sound_of(data), atol=TOLERANCE)


@pytest.mark.parametrize(
    ("kind", "codec"), [("mp4", "aac"), ("mkv", "aac"), ("webm", "libopus"), ("avi", "pcm_s16le")]
)
def test_words(tmp_path, kind, codec):
    soxr = pytest.importorskip("soxr")
    data = made(kind, codec, rate=48000)
    whole = one(tmp_path, data)
    assert np.array_equal(one(tmp_path, data, "/cf"), whole.T)
    np.testing.assert_allclose(one(tmp_path, data, "/mono"), whole.mean(1), atol=1e-6)
    numbers = one(tmp_path, data, "/int16").astype(int)
    assert np.array_equal(numbers, np.clip(np.rint(whole * 32768.0), -32768, 32767))
    low = one(tmp_path, data, "/rate=16000")
    np.testing.assert_allclose(low, soxr.resample(whole, 48000, 16000), atol=1e-6)
    # Parts are those of the whole, bit by bit.
    assert np.array_equal(one(tmp_path, data, "/crop=start:777"), whole[:777])
    middle = (len(whole) - 5000) // 2
    assert np.array_equal(one(tmp_path, data, "/crop=5000"), whole[middle : middle + 5000])
    padded = one(tmp_path, data, "/crop=50000/pad")
    assert np.array_equal(padded[: len(whole)], whole)
    assert len(padded) == 50000
    assert not padded[len(whole) :].any()
    part = one(tmp_path, data, "/crop=random:4000", seed=5)
    starts = [at for at in range(len(whole) - 3999) if whole[at, 0] == part[0, 0]]
    assert any(np.array_equal(whole[at : at + 4000], part) for at in starts)


def test_pictures_and_sound_of_one_field(tmp_path):
    rows = [{"mp4": track("mp4", pictures=20, frames=20000 + 1000 * i)} for i in range(4)]
    path = rows_tar(tmp_path / "t.tar", rows)
    decode = "mp4:video/frames=3, mp4:audio/mono/rate=16000/crop=start:500ms/pad, __augment__"
    (batch,) = shardfeed.Stream(path).batches(4, decode=decode)
    assert batch["mp4"].shape == (4, 3, 48, 64, 3)
    assert batch["mp4.audio"].shape == (4, 8000)
    alone = "mp4:audio/mono/rate=16000/crop=start:500ms/pad"
    assert np.array_equal(batch["mp4.audio"], column(path, alone))
    assert set(batch["__augment__"][0]) == {"mp4", "mp4.audio"}
    with pytest.raises(shardfeed.UsageError, match='column "mp4" is there twice'):
        shardfeed.Stream(path).batches(1, decode="mp4:audio, mp4:video")
    with pytest.raises(shardfeed.UsageError, match=r'column "mp4\.audio" is there twice'):
        shardfeed.Stream(path).batches(1, decode="mp4:video, mp4:audio, mp4:audio/mono")


def test_a_field_is_a_sound_where_it_is_said(tmp_path):
    """As it was when these were read by hooks."""
    rows = [{"m4a": track("m4a"), "ogg": vorbis(3000)}]
    path = rows_tar(tmp_path / "t.tar", rows)
    (batch,) = shardfeed.Stream(path).batches(1, hooks={"ogg": len})
    assert batch["ogg"] == [len(rows[0]["ogg"])]
    assert column(path, "ogg:audio").shape == (1, 3000, 2)


@pytest.mark.parametrize("threads", [0, 3])
def test_threads_change_nothing(tmp_path, threads):
    rows = [{"v": track("mkv", frames=9000 + 100 * i)} for i in range(8)]
    path = rows_tar(tmp_path / "t.tar", rows)
    options: dict[str, Any] = {"ragged": "offsets", "decode_threads": threads}
    (batch,) = shardfeed.Stream(path).batches(8, decode="v:audio", **options)
    for row, given in zip(batch["v"], rows):
        np.testing.assert_allclose(row, sound_of(given["v"]), atol=TOLERANCE)


def refusal(tmp_path: Path, data: bytes, words: str = "", **options: Any) -> str:
    with pytest.raises(shardfeed.Error) as caught:
        one(tmp_path, data, words, **options)
    return f"{caught.value.code_name} {caught.value}"


def test_what_is_refused(tmp_path):
    silent = refusal(tmp_path, video("mp4", frames=3))
    assert "a video without sound: it has no audio stream" in silent
    assert '"000000.v"' in silent
    assert "help: " in silent
    for kind in ("mp4", "mkv"):
        assert refusal(tmp_path, track(kind), max_decoded=1000).startswith("LIMIT ")
    # The packets of most codecs do not say how many frames there are. These are counted, but not
    # without end.
    short = refusal(tmp_path, track("mkv", "flac"), "/crop=start:10", max_decoded=1000)
    assert "a sound of more than 2000 frames" in short
    assert "help: convert it to AAC or Opus" in short
    assert len(one(tmp_path, track("mp4"), "/crop=start:10", max_decoded=1000)) == 10


@pytest.mark.parametrize("kind", ["mp4", "mkv", "avi"])
def test_every_cut_is_an_error(tmp_path, kind):
    good = track(kind, "pcm_s16le" if kind == "avi" else "aac", frames=4000)
    for size in range(0, len(good), max(len(good) // 100, 1)):
        assert "help: " in refusal(tmp_path, good[:size])


def mutated(data: bytes, seed: int) -> bytes:
    """Other bytes, or a stretch that is missing or comes twice."""
    random = np.random.default_rng(seed)
    at, length = int(random.integers(len(data))), int(random.integers(1, 64))
    if seed % 3 == 0:
        return data[:at] + data[at + length :]
    if seed % 3 == 1:
        return data[:at] + data[at : at + length] * 2 + data[at + length :]
    new = bytearray(data)
    for _ in range(1 + seed % 4):
        new[int(random.integers(len(data)))] ^= int(random.integers(1, 256))
    return bytes(new)


@pytest.mark.parametrize(
    ("kind", "codec", "rate"),
    [
        ("mp4", "aac", 44100),
        ("mp4", "alac", 44100),
        ("mkv", "aac", 44100),
        ("webm", "libopus", 48000),
        ("avi", "libmp3lame", 44100),
        ("ogg", "vorbis", 44100),
    ],
)
def test_damage_is_an_error_or_a_sound(tmp_path, kind, codec, rate):
    """Damaged samples may be missing, each is counted, and the others are whole."""
    good = vorbis(6000) if kind == "ogg" else made(kind, codec, rate=rate, frames=6000)
    rows = []
    for seed in range(1000):
        damaged = mutated(good, seed)
        rows.append({"v": with_right_checksums(damaged) if kind == "ogg" else damaged})
        rows[-1]["cls"] = b"0"
        if seed % 10 == 0:
            rows.append({"v": good, "cls": b"1"})
    whole = one(tmp_path, good)
    path = rows_tar(tmp_path / "t.tar", rows)
    skipped: list[Any] = []
    stream = shardfeed.Stream(path, on_error="skip_sample", on_skip=skipped.append)
    given = kept = 0
    decode = "v:audio/crop=start:5000, cls"
    for batch in stream.batches(16, decode=decode, ragged="offsets", max_decoded="16MiB"):
        for row, number in zip(batch["v"], batch["cls"]):
            given += 1
            if number == 1:
                kept += 1
                assert np.array_equal(row, whole[:5000])
    assert kept == 100
    assert stream.stats()["skipped_samples"] == len(skipped) == len(rows) - given
    assert len(skipped) > 100


# ---- Vorbis in Ogg ----


def vorbis(frames: int, channels: int = 2, rate: int = 44100) -> bytes:
    soundfile = pytest.importorskip("soundfile")
    file = io.BytesIO()
    soundfile.write(file, tones(frames, channels, rate), rate, format="OGG", subtype="VORBIS")
    return file.getvalue()


def pages_of(data: bytes) -> list[bytes]:
    pages = []
    while len(data) >= 27 and data[:4] == b"OggS":
        size = 27 + data[26] + sum(data[27 : 27 + data[26]])
        pages.append(data[:size])
        data = data[size:]
    return [*pages, data] if data else pages


def crc_of(page: bytes) -> int:
    """The CRC of Ogg is zlib's with the bits of each byte and of the result turned around."""
    turned = bytes(int(f"{byte:08b}"[::-1], 2) for byte in page)
    plain = zlib.crc32(turned, 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{plain:032b}"[::-1], 2)


def with_right_checksums(data: bytes) -> bytes:
    made = b""
    for page in pages_of(data):
        if page[:4] == b"OggS" and len(page) >= 27:
            empty = page[:22] + bytes(4) + page[26:]
            page = empty[:22] + struct.pack("<I", crc_of(empty)) + empty[26:]
        made += page
    return made


@pytest.mark.parametrize("frames", [1, 100, 4096, 44100, 200000])
def test_the_numbers_of_soundfile(tmp_path, frames):
    import soundfile

    for channels, rate in ((1, 16000), (2, 44100)):
        data = vorbis(frames, channels, rate)
        assert with_right_checksums(data) == data
        wanted, _ = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
        found = one(tmp_path, data)
        assert found.shape == wanted.shape == (frames, channels)
        np.testing.assert_allclose(found, wanted, atol=TOLERANCE)


def test_pages_prove_that_vorbis_is_whole(tmp_path):
    good = vorbis(100000)
    pages = pages_of(good)
    assert len(pages) > 4
    for number in range(1, len(pages)):
        cut = b"".join(pages[:number])
        assert "no page is marked as the last one" in refusal(tmp_path, cut)
        missing = b"".join(pages[:number] + pages[number + 1 :])
        assert refusal(tmp_path, missing).startswith("FORMAT ")
    assert "Ogg with another codec" in refusal(tmp_path, b"".join(pages[1:]))
    for size in (1, 26, 27, 40, 58, len(good) // 2, len(good) - 1):
        assert "help: " in refusal(tmp_path, good[:size])
    for at in range(100, len(good), 997):
        damaged = bytearray(good)
        damaged[at] ^= 1
        assert refusal(tmp_path, bytes(damaged)).startswith("FORMAT ")
    assert "behind the last page" in refusal(tmp_path, good + pages[-1])
    assert "no page" in refusal(tmp_path, good + b"x")
    assert "several streams" in refusal(tmp_path, good + good)
    for number in range(3):
        packet = (b"\1vorbis", b"\3vorbis", b"\5vorbis")[number]
        broken = with_right_checksums(good.replace(packet, b"\7vorbis", 1))
        assert refusal(tmp_path, broken).startswith(("FORMAT ", "UNSUPPORTED "))


@pytest.mark.parametrize("shift", [-700, -100, 5000])
def test_vorbis_that_does_not_begin_at_its_first_frame(tmp_path, shift):
    """Frames before position 0 are left out, and a recording from the middle has all."""
    good = vorbis(150000)
    moved = []
    for number, page in enumerate(pages_of(good)):
        position = int.from_bytes(page[6:14], "little", signed=True)
        if number > 0 and position > 0:
            page = page[:6] + struct.pack("<q", position + shift) + page[14:]
        moved.append(page)
    found = one(tmp_path, with_right_checksums(b"".join(moved)))
    assert np.array_equal(found, one(tmp_path, good)[max(-shift, 0) :])
