"""Videos in batches: the frames of PyAV, which of them, the steps of images, random choices."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import rows_tar

av = pytest.importorskip("av")
if "video" not in shardfeed.features():
    pytest.skip("this build or this system has no libavformat", allow_module_level=True)

from videos import KINDS, RATE, frames_of, video  # noqa: E402

# Versions of libswscale round colours in their own ways.
LEVELS = 2


def column(path: str, decode: str, rows: int = 10, **options: Any) -> Any:
    (batch,) = shardfeed.Stream(path, **options).batches(rows, decode=decode)
    return batch[decode.partition(":")[0]]


def one(tmp_path: Path, data: bytes, words: str = "", **options: Any) -> np.ndarray:
    """What one video becomes."""
    return column(rows_tar(tmp_path / "t.tar", [{"v": data}]), f"v:video{words}", **options)[0]


def alike(found: np.ndarray, wanted: np.ndarray) -> bool:
    return (
        found.shape == wanted.shape
        and np.abs(found.astype(int) - wanted.astype(int)).max() <= LEVELS
    )


def middles(count: int, there: int) -> list[int]:
    """The frames in the middles of equal parts."""
    return [(2 * i + 1) * there // (2 * count) for i in range(count)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_frames_of_pyav(tmp_path, kind):
    data = video(kind)
    frames, _ = frames_of(data)
    assert len(frames) == 30
    found = one(tmp_path, data)
    assert found.dtype == "uint8"
    assert alike(found, frames)
    # With jumps to key frames the same bytes.
    for count in (1, 2, 3, 7, 16, 29):
        assert np.array_equal(one(tmp_path, data, f"/frames={count}"), found[middles(count, 30)])
    assert np.array_equal(one(tmp_path, data, "/clip=start:4"), found[:4])
    assert np.array_equal(one(tmp_path, data, "/clip=4"), found[13:17])
    assert np.array_equal(one(tmp_path, data, "/clip=4/stride=5"), found[[7, 12, 17, 22]])


@pytest.mark.parametrize(
    ("kind", "codec", "options"),
    [
        ("mp4", "libx264", {"bf": "3", "x264-params": "open-gop=1:b-pyramid=normal"}),
        ("mkv", "libx264", {"x264-params": "intra-refresh=1", "bf": "0"}),
        ("mkv", "libx264", {"bf": "16", "g": "30", "x264-params": "b-adapt=0"}),
        ("mp4", "libx265", {"x265-params": "log-level=none:open-gop=1"}),
        ("mp4", "mpeg4", {"bf": "2"}),
        ("webm", "libvpx", {"auto-alt-ref": "1", "lag-in-frames": "16"}),
        ("webm", "libvpx-vp9", {"auto-alt-ref": "1", "lag-in-frames": "16"}),
        ("mp4", "libsvtav1", {"preset": "12", "svtav1-params": "lp=1"}),
        ("avi", "mjpeg", {"strict": "unofficial"}),
        ("avi", "libx264", {"bf": "2"}),
    ],
)
def test_frames_of_other_codecs(tmp_path, kind, codec, options):
    try:
        data = video(kind, codec=codec, size=(64, 64), **options)
    except (ValueError, av.FFmpegError):
        pytest.skip(f"this PyAV does not write {codec}")
    frames, _ = frames_of(data)
    found = one(tmp_path, data)
    assert alike(found, frames)
    for count in (1, 3, 7, 29):
        wanted = found[middles(count, len(frames))]
        assert np.array_equal(one(tmp_path, data, f"/frames={count}"), wanted)


@pytest.mark.parametrize("size", [(16, 16), (50, 38), (66, 34), (130, 98)])
def test_sizes_that_are_no_multiples(tmp_path, size):
    data = video(size=size, frames=3)
    assert alike(one(tmp_path, data), frames_of(data)[0])


def at_rate(times: list[float], end: float, rate: float) -> list[int]:
    """The last frames at or before each moment."""
    chosen = []
    while len(chosen) / rate < end - 1e-9:
        moment = len(chosen) / rate
        chosen.append(max(i for i, time in enumerate(times) if time <= moment + 1e-9))
    return chosen


@pytest.mark.parametrize("rate", [1, 5, 8, 12.5, 25, 30, 60])
def test_rates(tmp_path, rate):
    data = video(frames=30)
    whole = one(tmp_path, data)
    chosen = at_rate([i / RATE for i in range(30)], 30 / RATE, rate)
    assert np.array_equal(one(tmp_path, data, f"/rate={rate}"), whole[chosen])
    there = len(chosen)
    if there >= 6:
        wanted = whole[np.array(chosen)[middles(6, there)]]
        assert np.array_equal(one(tmp_path, data, f"/rate={rate}/frames=6"), wanted)
        assert np.array_equal(one(tmp_path, data, f"/rate={rate}/clip=start:6"), whole[chosen[:6]])


def test_frames_at_unequal_distances_go_by_their_times(tmp_path):
    times = [0, 40, 80, 400, 440, 900, 1000, 1300, 1340, 1380]
    data = video("mkv", frames=10, times=times)
    frames, read = frames_of(data)
    assert [round(1000 * time) for time in read] == times
    found = one(tmp_path, data, "/rate=10")
    end = times[-1] + (times[-1] - times[0]) // 9 if len(found) > 14 else times[-1] + 40
    chosen = at_rate([time / 1000 for time in times], end / 1000, 10)
    assert alike(found[:14], frames[chosen[:14]])
    assert len(found) in (14, 15, 16)


def test_the_steps_of_images(tmp_path):
    """Each frame becomes what the same pixels as a PNG become."""
    from PIL import Image

    data = video(frames=4)
    whole = one(tmp_path, data)
    pictures = []
    for pixels in whole:
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "png")
        pictures.append({"p": file.getvalue()})
    path = rows_tar(tmp_path / "p.tar", pictures)
    for words in (
        "/resize=32/crop=32x32",
        "/rgb/chw/resize=24x20/normalize=imagenet",
        "/l8",
        "/rgba8/pad=3/fill=9",
        "/crop=20x30/flip=always",
        "/rgb/float16/resize=fit:40x40/pad=to:40x40",
    ):
        assert np.array_equal(one(tmp_path, data, words), column(path, f"p:image{words}")), words


def test_all_frames_have_the_choices_of_their_video(tmp_path):
    row = {"v": video(frames=6)}
    path = rows_tar(tmp_path / "t.tar", [row] * 8)
    words = "rrc=32x32/flip=random/brightness=0.5..1.5"
    whole = column(path, "v:video", seed=3)[0]
    (batch,) = shardfeed.Stream(path, seed=3).batches(
        10, decode=f"v:video/{words}/frames=6, __augment__"
    )
    records = [row["v"] for row in batch["__augment__"]]
    assert len({json.dumps(record["part"]) for record in records}) == 8
    for record, frames in zip(records, batch["v"]):
        assert record["frames"] == list(range(6))
        assert record["seconds"] == pytest.approx([i / RATE for i in range(6)])
        left, top, width, height = record["part"]
        level = whole[:, top : top + height, left : left + width].mean((1, 2, 3))
        factors = frames.mean((1, 2, 3)) / level
        assert np.ptp(factors) < 0.03  # one factor for all


def test_random_clips_depend_on_key_and_epoch_alone(tmp_path):
    rows = [{"v": video(frames=20, size=(32, 32), seed=seed)} for seed in range(6)]
    path = rows_tar(tmp_path / "t.tar", rows)
    decode = "v:video/clip=random:4/stride=2/l8, __augment__"

    def starts(batch: int = 6, **options: Any) -> list[int]:
        batches = list(shardfeed.Stream(path, **options).batches(batch, decode=decode))
        return [row["v"]["frames"][0] for part in batches for row in part["__augment__"]]

    first = starts(seed=1)
    assert len(set(first)) > 2
    assert all(0 <= start <= 13 for start in first)
    for threads in (1, 3):
        assert starts(batch=2, seed=1, decode_threads=threads) == first
    assert starts(seed=2) != first
    both = starts(seed=1, epochs=2)
    assert both[:6] == first
    assert both[6:] != first
    with shardfeed.Dataset(path, seed=1, decode=decode) as data:
        data.set_epoch(0)
        batch = data.batch([4, 1])
        assert [row["v"]["frames"][0] for row in batch["__augment__"]] == [first[4], first[1]]


def test_resumed_runs_have_the_same_clips(tmp_path):
    rows = [{"v": video(frames=12, size=(32, 32), seed=seed)} for seed in range(8)]
    path = rows_tar(tmp_path / "t.tar", rows)
    decode = "v:video/clip=random:3/flip=random"

    def open_stream() -> shardfeed.Stream:
        return shardfeed.Stream(path, seed=5, shuffle=4, batch=2, decode=decode)

    whole = [batch["v"].copy() for batch in open_stream().batches()]
    stream = open_stream()
    taken = stream.batches()
    for _ in range(2):
        next(taken)
    state = stream.state_dict()
    resumed = open_stream()
    resumed.load_state_dict(state)
    rest = [batch["v"].copy() for batch in resumed.batches()]
    assert len(rest) == 2
    assert all(np.array_equal(a, b) for a, b in zip(rest, whole[2:]))


def test_columns_are_dense_or_ragged(tmp_path):
    rows = [{"v": video(frames=count, size=(32, 32))} for count in (10, 4, 7)]
    path = rows_tar(tmp_path / "t.tar", rows)
    dense = column(path, "v:video/frames=4/chw")
    assert dense.shape == (3, 4, 3, 32, 32)
    with pytest.raises(shardfeed.FormatError, match="ragged=pad and ragged=offsets"):
        column(path, "v:video")
    ragged = column(path, "v:video", ragged="offsets")
    assert [len(row) for row in ragged] == [10, 4, 7]
    padded = column(path, "v:video/rate=25", ragged="pad")
    assert padded.shape == (3, 10, 32, 32, 3)
    views = shardfeed.Stream(path, seed=1).batches(3, decode="v:video/clip=random:2/views=2")
    assert sorted(next(iter(views)).keys())[-2:] == ["v.0", "v.1"]


def test_too_few_frames(tmp_path):
    data = video(frames=5)
    whole = one(tmp_path, data)
    for words in ("/frames=6", "/clip=6", "/clip=3/stride=3", "/rate=10/frames=3"):
        with pytest.raises(shardfeed.FormatError, match=r"a video of [25] frames.* are needed"):
            one(tmp_path, data, words)
    assert np.array_equal(one(tmp_path, data, "/frames=8/repeat"), whole[middles(8, 5)])
    assert np.array_equal(one(tmp_path, data, "/clip=7/repeat"), whole[[0, 1, 2, 3, 4, 4, 4]])
    assert np.array_equal(one(tmp_path, data, "/clip=random:3/stride=3/repeat"), whole[[0, 3, 4]])


def turned(data: bytes, degrees: int) -> bytes:
    """The MP4 with a matrix in its track header (ISO 14496-12, 8.3.2)."""
    matrices = {90: (0, 1, -1, 0), 180: (-1, 0, 0, -1), 270: (0, -1, 1, 0)}
    a, b, c, d = matrices[degrees]
    at = data.index(b"tkhd") + 4 + 40
    new = bytearray(data)
    for place, number in ((0, a), (4, b), (12, c), (16, d)):
        new[at + place : at + place + 4] = (number * 65536).to_bytes(4, "big", signed=True)
    return bytes(new)


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_videos_are_turned_as_they_say(tmp_path, degrees):
    data = video(frames=2)
    whole = one(tmp_path, data)
    # A matrix turns clockwise, rot90 counterclockwise.
    wanted = np.rot90(whole, -degrees // 90, (1, 2))
    assert np.array_equal(one(tmp_path, turned(data, degrees)), wanted)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("/frames=0", "not a number of frames"),
        ("/frames=x", "not a number of frames"),
        ("/clip=end:5", "not a number of frames"),
        ("/rate=0", "not a rate"),
        ("/rate=1001", "not a rate"),
        ("/stride=2", "nothing that this belongs to"),
        ("/repeat", "nothing that this belongs to"),
        ("/frames=2/clip=2", "a clip of it"),
        ("/frames=2/frames=3", "a second number of frames for a video"),
        ("/rgb8/l8", "a second kind of pixels for a video"),
        ("/exif", 'unknown word "exif" for a video'),
        ("/mixup=1", 'unknown word "mixup=1" for a video'),
        ("/mono", 'unknown word "mono" for a video'),
    ],
)
def test_words_that_are_wrong(tmp_path, words, message):
    with pytest.raises(shardfeed.UsageError, match=message):
        one(tmp_path, b"", words)


PROGRAM = """
import sys
import shardfeed

def loaded():
    with open("/proc/self/maps") as maps:
        return "libavformat" in maps.read()

print(loaded())
try:
    for batch in shardfeed.Stream(sys.argv[1]).batches(1, decode="v:video"):
        print(batch["v"].shape, loaded())
except shardfeed.Error as error:
    print(error.code_name, error)
"""


def test_ffmpeg_is_loaded_for_the_first_video(tmp_path):
    path = rows_tar(tmp_path / "t.tar", [{"v": video(frames=2)}])

    def run(**environment: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, path],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    assert run() == ["False", "(1, 2, 48, 64, 3) True"]
    name = shardfeed.features()["video"].split()[1].split(".")[0]
    stand_in = tmp_path / f"libavcodec.so.{name}"
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", stand_in], check=True)
    folders = os.pathsep.join([str(tmp_path), os.environ.get("LD_LIBRARY_PATH", "")])
    before, line = run(LD_LIBRARY_PATH=folders)
    assert before == "False"
    assert line.startswith("UNSUPPORTED ")
    assert "libavcodec cannot be loaded: it has no function av_packet_alloc" in line
    assert "help: install libavformat" in line
