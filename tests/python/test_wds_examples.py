"""The programs of examples/wds, run with both packages: the same output."""

from __future__ import annotations

import io
import socket
import wave
from pathlib import Path

import pytest
from conftest import write_tar
from wds_programs import Programs

pytest.importorskip("webdataset")
numpy = pytest.importorskip("numpy")
image = pytest.importorskip("PIL.Image")

pytestmark = pytest.mark.slow


def jpeg(number: int) -> bytes:
    rng = numpy.random.RandomState(number)
    pixels = (numpy.cumsum(rng.randint(-9, 10, (16, 16, 3)), axis=1) % 256).astype("uint8")
    stream = io.BytesIO()
    image.fromarray(pixels).save(stream, "JPEG")
    return stream.getvalue()


@pytest.fixture
def images(tmp_path: Path) -> str:
    for shard in range(4):
        members = []
        for number in range(12):
            key = f"{shard}_{number:03d}"
            members.append((f"{key}.jpg", jpeg(100 * shard + number)))
            members.append((f"{key}.cls", str(number % 10).encode()))
            if number % 5:
                members.append((f"{key}.txt", f"a picture of {'x' * number}".encode()))
        write_tar(tmp_path / f"images-{shard}.tar", members)
    return str(tmp_path / "images-{0..3}.tar")


@pytest.mark.parametrize("workers", ["0", "2"])
def test_training_in_two_processes(programs: Programs, images: str, workers: str) -> None:
    pytest.importorskip("torch")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    theirs, ours = programs.run_both("imagenet.py", images, "--workers", workers, "--port", port)
    assert '"batches"' in theirs
    assert theirs == ours


def test_mixture(programs: Programs, images: str) -> None:
    theirs, ours = programs.run_both("mixture.py", f"{images}=3", f"{images[:-10]}{{0..1}}.tar=1")
    assert '"source 1"' in theirs
    assert theirs == ours


def test_speech(programs: Programs, tmp_path: Path) -> None:
    for shard in range(2):
        members = []
        for number in range(9):
            stream = io.BytesIO()
            with wave.open(stream, "wb") as sound:
                sound.setnchannels(1)
                sound.setsampwidth(2)
                sound.setframerate(16000 if number == 4 else 8000)
                sound.writeframes((numpy.arange(50 + number) * shard).astype("<i2").tobytes())
            data = b"no sound" if number == 7 else stream.getvalue()
            members += [(f"{shard}{number}.wav", data), (f"{shard}{number}.txt", b"Hello World")]
        write_tar(tmp_path / f"speech-{shard}.tar", members)
    theirs, ours = programs.run_both("speech.py", str(tmp_path / "speech-{0..1}.tar"))
    assert '"sounds": 14' in theirs
    assert theirs == ours


def test_inference(programs: Programs, images: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    results = []
    for package in ("webdataset", "shardfeed.wds"):
        target = tmp_path / f"{package}.tsv"
        programs.run("inference.py", images, target, "--package", package)
        results.append(target.read_text())
    assert len(results[0].splitlines()) == 48
    assert results[0] == results[1]


@pytest.mark.parametrize("arguments", [[], ["--resampled"]])
def test_captions(programs: Programs, images: str, arguments: list[str]) -> None:
    theirs, ours = programs.run_both("captions.py", images, *arguments)
    assert '"samples"' in theirs
    assert theirs == ours
