"""Reads texts and sounds with handlers of the program's own, and pads them to batches.

python examples/wds/speech.py 'speech-{0..3}.tar' --rate 8000
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import wave
from typing import Any

import numpy


def read_wave(data: bytes) -> tuple[numpy.ndarray[Any, Any], int]:
    """The samples of a WAV file, and how many there are in a second."""
    with wave.open(io.BytesIO(data)) as sound:
        frames = sound.readframes(sound.getnframes())
        return numpy.frombuffer(frames, "<i2"), sound.getframerate()


def words(data: bytes) -> list[str]:
    """The words of a text, in lower case."""
    return data.decode("utf-8").lower().split()


def padded(batch: list[Any]) -> dict[str, Any]:
    """Sounds as one array, filled up with zeros, with their lengths and words."""
    lengths = numpy.array([len(sound) for sound, _ in batch])
    sounds = numpy.zeros((len(batch), lengths.max()), "<i2")
    for row, (sound, _) in enumerate(batch):
        sounds[row, : len(sound)] = sound
    return {"sounds": sounds, "lengths": lengths, "words": [text for _, text in batch]}


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shards", help="the shards, with braces")
    parser.add_argument("--rate", type=int, default=8000, help="leave out sounds with another rate")
    parser.add_argument("--package", default="shardfeed.wds", help="or webdataset")
    options = parser.parse_args()
    wds = importlib.import_module(options.package)
    failed: list[str] = []

    def note(exn: Exception) -> bool:
        failed.append(type(exn).__name__)
        return True

    dataset = (
        wds.WebDataset(options.shards, shardshuffle=False, handler=note)
        .decode(
            wds.handle_extension("wav", read_wave),
            wds.handle_extension("txt", words),
            handler=note,
        )
        .select(lambda sample: sample["wav"][1] == options.rate)
        .map_dict(wav=lambda sound: sound[0])
        .to_tuple("wav", "txt", handler=note)
        .batched(4, collation_fn=padded)
    )
    total, count = 0, 0
    vocabulary = set()
    for batch in dataset:
        total += int(numpy.abs(batch["sounds"].astype("i8")).sum())
        count += len(batch["lengths"])
        vocabulary.update(word for text in batch["words"] for word in text)
    shown = {"sounds": count, "loudness": total, "words": sorted(vocabulary), "failed": failed}
    print(json.dumps(shown))


if __name__ == "__main__":
    main()
