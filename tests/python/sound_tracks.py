"""Sounds in containers of videos for the tests: made with PyAV, and what PyAV reads of them."""

from __future__ import annotations

import io
from fractions import Fraction
from typing import Any

import av
import numpy as np
from videos import picture

# Of FFmpeg's names of formats.
FORMATS = {"mkv": "matroska", "m4a": "mp4"}
LAYOUTS = {1: "mono", 2: "stereo", 6: "5.1"}


def tones(frames: int, channels: int, rate: int) -> np.ndarray:
    """frames x channels."""
    time = np.arange(frames)[:, None] / rate
    pitch = 220 + 110 * np.arange(channels)
    return (0.4 * np.sin(2 * np.pi * pitch * time) + 0.1 * np.sin(18000 * time)).astype("f4")


def track(
    kind: str = "mp4",
    codec: str = "aac",
    rate: int = 44100,
    channels: int = 2,
    frames: int = 30000,
    pictures: int = 0,
    sound_at: float = 0.0,
    pictures_at: float = 0.0,
) -> bytes:
    """A sound of so many frames, beside so many pictures, 25 a second, which begin at so many
    seconds."""
    file = io.BytesIO()
    container: Any = av.open(file, "w", format=FORMATS.get(kind, kind))
    video: Any = None
    if pictures:
        video = container.add_stream("mpeg4", rate=25, options={"threads": "1"})
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
    sound = container.add_stream(codec, rate=rate)
    sound.layout = LAYOUTS[channels]
    numbers = tones(frames, channels, rate)
    resampler = av.AudioResampler(
        format=sound.codec_context.format, layout=LAYOUTS[channels], rate=rate
    )
    for number in range(pictures):
        frame = av.VideoFrame.from_ndarray(picture(number, 64, 48), format="rgb24")
        frame.pts, frame.time_base = number + round(25 * pictures_at), Fraction(1, 25)
        container.mux(video.encode(frame))
    for begin in range(0, frames, 4000):
        part = np.ascontiguousarray(numbers[begin : begin + 4000].T)
        given = av.AudioFrame.from_ndarray(part, format="fltp", layout=LAYOUTS[channels])
        given.sample_rate, given.pts = rate, begin + round(rate * sound_at)
        for resampled in resampler.resample(given):
            container.mux(sound.encode(resampled))
    container.mux(sound.encode(None))
    if pictures:
        container.mux(video.encode(None))
    container.close()
    return file.getvalue()


def sound_of(data: bytes) -> np.ndarray:
    """All frames as PyAV has them, frames x channels."""
    found = []
    with av.open(io.BytesIO(data)) as container:
        resampler = av.AudioResampler(format="fltp")
        for frame in container.decode(audio=0):
            found += [part.to_ndarray() for part in resampler.resample(frame)]
    return np.concatenate(found, 1).T
