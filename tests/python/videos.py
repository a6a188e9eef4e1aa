"""Videos for the tests: made with PyAV, and what PyAV reads of them."""

from __future__ import annotations

import io
from fractions import Fraction
from typing import Any

import av
import numpy as np

RATE = 25
# A codec for each container: what is usual in it.
KINDS = {
    "mp4": "libx264",
    "mkv": "libx264",
    "webm": "libvpx-vp9",
    "avi": "mpeg4",
}


def picture(number: int, width: int, height: int, seed: int = 0) -> np.ndarray:
    """A frame: shades that move, a square whose place says the number, a little noise."""
    y, x = np.mgrid[0:height, 0:width]
    shades = np.stack([x * 2 + number * 5, y * 2 + number * 3, x + y + number * 7], -1) % 256
    noise = np.random.default_rng([seed, number]).integers(0, 9, (height, width, 1))
    whole = np.clip(128 + (shades - 128) // 2 + noise, 0, 255).astype("u1")
    left = 4 * number % max(width - 8, 1)
    whole[4:12, left : left + 8] = (255, 255 - number, number)
    return whole


def video(
    kind: str = "mp4",
    frames: int = 30,
    size: tuple[int, int] = (64, 48),
    codec: str = "",
    times: list[int] | None = None,
    seed: int = 0,
    **options: str,
) -> bytes:
    """A video of so many frames. times: when each is shown, in units of 1 / 1000 s."""
    file = io.BytesIO()
    container: Any = av.open(file, "w", format={"mkv": "matroska"}.get(kind, kind))
    name = codec or KINDS[kind]
    choices = {"g": "10", "threads": "1", **options}
    if name == "libx264":
        choices = {"preset": "fast", "bf": "2", "crf": "28", **choices}
    stream = container.add_stream(name, rate=RATE, options=choices)
    stream.width, stream.height = size
    stream.pix_fmt = "yuv420p"
    if times:
        stream.codec_context.time_base = Fraction(1, 1000)
    for number in range(frames):
        frame = av.VideoFrame.from_ndarray(picture(number, *size, seed), format="rgb24")
        if times:
            frame.pts, frame.time_base = times[number], Fraction(1, 1000)
        container.mux(stream.encode(frame))
    container.mux(stream.encode(None))
    container.close()
    return file.getvalue()


def frames_of(data: bytes) -> tuple[np.ndarray, list[float]]:
    """All frames as PyAV has them, and when they are shown in seconds after the first one."""
    with av.open(io.BytesIO(data)) as container:
        found = [(f.to_ndarray(format="rgb24"), f.time) for f in container.decode(video=0)]
    first = found[0][1] or 0.0
    return np.stack([pixels for pixels, _ in found]), [(time or 0.0) - first for _, time in found]
