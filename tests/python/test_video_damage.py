"""Damaged and truncated videos: an error of their sample or rows, no crash, little memory."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import rows_tar

av = pytest.importorskip("av")
if "video" not in shardfeed.features():
    pytest.skip("this build or this system has no libavformat", allow_module_level=True)

from videos import KINDS, video  # noqa: E402

FRAMES = 24
MUTATIONS = 1000


def mutated(data: bytes, seed: int) -> bytes:
    """Other bytes, a stretch that is missing, comes twice or is another, or the start alone."""
    random = np.random.default_rng(seed)
    # Half of them near one of the ends, where headers are.
    size = len(data)
    near = random.integers(2) == 0
    at = int(random.integers(min(size, 900)) if near else random.integers(size))
    if near and random.integers(2) == 0:
        at = size - 1 - at
    length = int(random.integers(1, 64))
    kind = seed % 6
    if kind == 0:
        new = bytearray(data)
        new[at] ^= int(random.integers(1, 256))
        return bytes(new)
    if kind == 1:
        new = bytearray(data)
        for _ in range(8):
            new[int(random.integers(size))] = int(random.integers(256))
        return bytes(new)
    if kind == 2:
        return data[:at] + data[at + length :]
    if kind == 3:
        return data[:at] + data[at : at + length] * 2 + data[at + length :]
    if kind == 4:
        return data[:at] + random.bytes(length) + data[at + length :]
    return data[:at]


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_an_error_or_rows(tmp_path, kind):
    """Exactly the damaged samples may be missing, each is counted, and the others are whole."""
    good = video(kind, frames=FRAMES, size=(64, 48))
    rows = []
    for seed in range(MUTATIONS):
        rows.append({"v": mutated(good, seed), "cls": str(seed).encode()})
        if seed % 10 == 0:
            rows.append({"v": good, "cls": b"-1"})
    path = rows_tar(tmp_path / "t.tar", rows)
    whole = next(
        iter(
            shardfeed.Stream(rows_tar(tmp_path / "g.tar", rows[1:2])).batches(
                1, decode="v:video/frames=6"
            )
        )
    )["v"][0]
    skipped: list[Any] = []
    stream = shardfeed.Stream(path, on_error="skip_sample", on_skip=skipped.append)
    given = 0
    kept_good = 0
    damaged_rows = 0
    for batch in stream.batches(16, decode="v:video/frames=6, cls"):
        given += len(batch["cls"])
        for frames, number in zip(batch["v"], batch["cls"]):
            assert frames.shape == whole.shape
            if number == -1:
                kept_good += 1
                assert np.array_equal(frames, whole)
            else:
                damaged_rows += 1
    assert kept_good == MUTATIONS // 10
    assert stream.stats()["skipped_samples"] == len(skipped) == len(rows) - given
    # Much of the damage is seen.
    assert damaged_rows < MUTATIONS * 0.75


@pytest.mark.parametrize("kind", KINDS)
def test_every_cut_is_an_error(tmp_path, kind):
    good = video(kind, frames=8, size=(32, 32))
    step = max(len(good) // 150, 1)
    for size in range(0, len(good), step):
        path = rows_tar(tmp_path / "t.tar", [{"v": good[:size]}])
        with pytest.raises((shardfeed.FormatError, shardfeed.UnsupportedError)) as caught:
            list(shardfeed.Stream(path).batches(1, decode="v:video/frames=1"))
        text = str(caught.value)
        assert "t.tar" in text
        assert '"000000.v"' in text
        assert "help: " in text


def test_damage_in_frames_that_are_not_needed_is_not_looked_for(tmp_path):
    good = video("mp4", frames=20)
    bad = bytearray(good)
    at = good.index(b"mdat")
    last = len(good) - 40 if good.index(b"moov") < at else good.index(b"moov") - 40
    bad[last : last + 20] = bytes(20)
    path = rows_tar(tmp_path / "t.tar", [{"v": bytes(bad)}])
    (batch,) = shardfeed.Stream(path).batches(1, decode="v:video/clip=start:5")
    (wanted,) = shardfeed.Stream(rows_tar(tmp_path / "g.tar", [{"v": good}])).batches(
        1, decode="v:video/clip=start:5"
    )
    assert np.array_equal(batch["v"], wanted["v"])


def refusal(tmp_path: Path, data: bytes, words: str = "", **options: Any) -> str:
    path = rows_tar(tmp_path / "t.tar", [{"v": data}])
    with pytest.raises(shardfeed.Error) as caught:
        list(shardfeed.Stream(path, **options).batches(1, decode=f"v:video{words}"))
    return f"{caught.value.code_name} {caught.value}"


def test_what_is_refused(tmp_path):
    good = video("mp4", frames=20)
    assert "max_decoded=100000" in refusal(tmp_path, good, max_decoded=100000)
    assert refusal(tmp_path, good, max_decoded=1000).startswith("LIMIT ")
    # Of 10,000 times as many frames the memory is not even asked for.
    many = refusal(tmp_path, good, "/rate=1000/rgb", max_decoded="16MiB")
    assert many.startswith("LIMIT ")
    assert "800 frames of a video take more than max_decoded=16777216" in many
    assert "not a video that is known" in refusal(tmp_path, b"GIF89a" + bytes(100))
    assert "a video of 0 bytes" in refusal(tmp_path, b"")
    assert "without pictures" in refusal(tmp_path, sound_alone())


def sound_alone() -> bytes:
    import io

    file = io.BytesIO()
    container: Any = av.open(file, "w", format="mp4")
    stream = container.add_stream("aac", rate=16000)
    frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), "f4"), format="fltp", layout="mono")
    frame.sample_rate = 16000
    container.mux(stream.encode(frame))
    container.mux(stream.encode(None))
    container.close()
    return file.getvalue()


def test_a_size_that_is_claimed_takes_no_memory(tmp_path):
    """The container says 16,000 x 16,000 pixels; nothing of this size is allocated."""
    good = bytearray(video("mp4", frames=4))
    at = good.rindex(b"avc1") + 4 + 24
    assert good[at : at + 4] == (64).to_bytes(2, "big") + (48).to_bytes(2, "big")
    good[at : at + 4] = (16000).to_bytes(2, "big") * 2
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = refusal(tmp_path, bytes(good), "/frames=2/resize=32x32")
    assert said.startswith("LIMIT ")
    assert "an image of 16000x16000" in said
    said = refusal(tmp_path, bytes(good), "/frames=2/resize=32x32", max_decoded="64GiB")
    assert "a frame of 64x48 in a video of 16000x16000" in said
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_a_text_that_is_claimed_takes_no_memory(tmp_path):
    """A text of the list INFO of an AVI, and the list with it, say that they have 1.5 GiB."""
    data = bytearray(video("avi", frames=4))
    at = data.index(b"INFOISFT")
    data[at - 4 : at] = (0x70000000).to_bytes(4, "little")
    data[at + 8 : at + 12] = (0x60000000).to_bytes(4, "little")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert 'AVI: list "INFO": the file ends after' in refusal(tmp_path, bytes(data), "/frames=2")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_memory_does_not_grow_with_the_number_of_videos(tmp_path):
    rows = [{"v": video("mp4", frames=30, size=(320, 240))}] * 60
    path = rows_tar(tmp_path / "t.tar", rows)

    def run(count: int) -> int:
        for number, batch in enumerate(
            shardfeed.Stream(path, epochs=0).batches(4, decode="v:video/frames=8/resize=64")
        ):
            assert batch["v"].shape == (4, 8, 64, 85, 3)
            if number == count:
                break
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    first = run(10)
    assert run(60) - first < 30_000  # KiB
