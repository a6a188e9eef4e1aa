"""The programs of docs/training.md and docs/frameworks.md, with the packages they are about."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed

np = pytest.importorskip("numpy")
pytest.importorskip("PIL")

from batches import npy, rows_tar  # noqa: E402
from images import encoded  # noqa: E402

DOCS = Path(__file__).parents[2] / "docs"
TEXT = "\n".join((DOCS / name).read_text() for name in ("training.md", "frameworks.md"))
SECTION = r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```"
PROGRAMS = dict(re.findall(SECTION, TEXT, re.M | re.S))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # frameworks have much to say about small data
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pixels(seed: int, width: int = 90, height: int = 80) -> Any:
    """A picture in the colour of its class, seed % 10, with some noise."""
    colour = np.random.default_rng(seed % 10).integers(0, 256, 3)
    noise = np.random.default_rng(seed).integers(-20, 21, (height, width, 3))
    return np.clip(colour + noise, 0, 255).astype("u1")


@pytest.fixture
def pictures(folder: Path) -> None:
    """imagenet-train-{000..003}.tar of 16 samples each, imagenet-val-{000..001}.tar of 10."""
    for name, shards, count in (("train", 4, 16), ("val", 2, 10)):
        for shard in range(shards):
            numbers = range(shard * count, (shard + 1) * count)
            rows = [{"jpg": encoded(pixels(n), "jpeg"), "cls": b"%d" % (n % 10)} for n in numbers]
            rows_tar(folder / f"imagenet-{name}-{shard:03}.tar", rows)


def run(title: str, *packages: str, **other: str) -> dict[str, Any]:
    """Runs a program here, with other sizes if they are given, and gives its names."""
    for package in packages:
        pytest.importorskip(package)
    code = PROGRAMS[title]
    for size, small in other.items():
        assert size in code
        code = code.replace(size, small)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, title, "exec"), names)
    return names


def run_apart(title: str, *packages: str, shown: str, **environment: str) -> Any:
    """Runs a program in a process of its own, and gives the value of an expression there."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")
    program = f"{PROGRAMS[title]}\nimport json\nprint('shown', json.dumps({shown}))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("shown "))
    return json.loads(line[len("shown ") :])


@pytest.fixture
def torch() -> Iterator[Any]:
    """PyTorch, with one thread: beside other tests several would wait for one another."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(threads)


def test_every_program_of_the_page_is_run() -> None:
    tested = Path(__file__).read_text()
    assert len(PROGRAMS) == TEXT.count("```python")
    assert [title for title in PROGRAMS if f'"{title}"' not in tested] == []


def test_classification(torch: Any, pictures: None, capsys: pytest.CaptureFixture[str]) -> None:
    shardfeed.Dataset("imagenet-val-{000..001}.tar").close()  # makes the index files
    title = "Classification: ImageNet"
    small = {"224x224": "32x32", "resize=256": "resize=36"}
    names = run(title, "torchvision", **small)
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["epoch 1", "epoch 2"]
    assert all(line.split()[4] == "20" for line in lines)
    assert names["batch"]["jpg"].shape[1:] == (3, 32, 32)
    assert math.isfinite(names["loss"].item())
    # The run ended in the second epoch, behind its first batch.
    again = run(title, **small)
    assert again["step"] == 2
    assert again["train"].epoch == 2


def test_images_and_captions(torch: Any, folder: Path) -> None:
    for shard in range(4):
        rows = [
            {"jpg": encoded(pixels(n), "jpeg"), "txt": b"number %d" % n}
            for n in range(8 * shard, 8 * shard + 8)
        ]
        rows[3]["jpg"] = rows[3]["jpg"][:200]  # damaged
        rows_tar(folder / f"pairs-{shard:03}.tar", rows)
    names = run("Images and captions: CLIP", "transformers")
    batch = names["batch"]
    assert batch["pixel_values"].shape == (16, 3, 64, 64)
    assert batch["input_ids"].shape == (16, 32)
    text = bytes(n for n in batch["input_ids"][0].tolist() if 0 < n < 256)
    assert re.fullmatch(rb"number \d+", text)
    assert torch.isfinite(names["loss"])
    assert names["batches"].epoch == 2
    assert names["batches"].stats()["samples"] == 2 * 96
    assert names["batches"].stats()["skipped_samples"] > 0


def test_segmentation(torch: Any, folder: Path) -> None:
    for shard in range(2):
        rows = []
        for n in range(8 * shard, 8 * shard + 8):
            picture = pixels(n, 160, 120)
            # Bright on the right: so is the mask.
            picture[:, 80:], picture[:, :80] = 230, 20
            mask = np.zeros((120, 160), "u1")
            mask[:, 80:] = 2
            rows.append({"jpg": encoded(picture, "jpeg"), "seg.png": encoded(mask, "png")})
        rows_tar(folder / f"scenes-{shard:03}.tar", rows)
    names = run("Segmentation", "torchvision")
    batch = names["batch"]
    assert batch["jpg"].shape == (8, 3, 96, 96)
    assert set(batch["seg.png"].unique().tolist()) == {0, 2}
    bright = batch["jpg"].mean(1) > 0
    agreement = (bright == (batch["seg.png"] == 2)).float().mean().item()
    assert agreement > 0.97
    assert math.isfinite(names["loss"].item())


def test_speech(torch: Any, folder: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    for shard in range(2):
        rows = []
        for n in range(6 * shard, 6 * shard + 6):
            length = 8000 + 3000 * n
            sound = np.sin(np.arange(length) * (0.05 + 0.01 * n)) / 2
            soundfile.write("sound.flac", sound, 16000)
            rows.append({"flac": Path("sound.flac").read_bytes(), "txt": b"it's %c" % (97 + n)})
        rows_tar(folder / f"speech-{shard:03}.tar", rows)
    names = run("Speech")
    seen = []
    for batch in names["batches"]:
        assert batch["sound"].shape[1] // 160 + 1 == batch["frames"].max()
        assert sum(160 * (frames - 1) for frames in batch["frames"].tolist()) <= 10 * 16000
        assert batch["text"].shape == (6 * len(batch["sound"]),)
        seen += batch["frames"].tolist()
    assert sorted(seen) == [(8000 + 3000 * n) // 160 + 1 for n in range(12)]
    assert torch.isfinite(names["loss"])


def test_video_clips(torch: Any, folder: Path) -> None:
    pytest.importorskip("av")
    if not shardfeed.features().get("video"):
        pytest.skip("built without video")
    from videos import video

    for shard in range(2):
        rows = [
            {"mp4": video(frames=10 + 3 * n, seed=n), "cls": b"%d" % (n % 3)}
            for n in range(4 * shard, 4 * shard + 4)
        ]
        rows_tar(folder / f"clips-{shard:03}.tar", rows)
    names = run("Video clips", "torchvision")
    assert names["clips"].shape == (4, 3, 8, 64, 64)
    assert math.isfinite(names["loss"].item())


def test_language_model(torch: Any, folder: Path) -> None:
    if torch.__version__.startswith("1."):
        pytest.skip("scaled_dot_product_attention is of PyTorch 2")
    for shard in range(4):
        rows = [
            {"npy": npy(np.arange(n, n + 40 + n % 50).astype("i4") % 256)}
            for n in range(30 * shard, 30 * shard + 30)
        ]
        rows_tar(folder / f"tokens-{shard:03}.tar", rows)
    names = run("Language models")
    assert names["tokens"].shape == (8, 64)
    # Each token is followed by the next number, within its document.
    wanted, tokens = names["wanted"], names["tokens"]
    counts = wanted >= 0
    assert 0.8 < counts.float().mean() < 1
    assert torch.equal(wanted[counts], ((tokens[:, :-1] + 1) % 256)[counts])
    # No token sees another document, or what follows it.
    mask, document = names["same"].tril(), names["document"]
    row, one, other = mask.nonzero(as_tuple=True)
    assert (one >= other).all()
    assert torch.equal(document[row, one], document[row, other])
    assert names["loss"] < math.log(256)


def test_language_model_of_texts(torch: Any, folder: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    texts = [" ".join(f"n{k % 50}" for k in range(n, n + 40 + n % 50)) for n in range(120)]
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(unk_token="?"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.WordLevelTrainer(
        special_tokens=["?", "<end>"], show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    made.save("tokenizer.json")
    for shard in range(4):
        rows = [{"txt": text.encode()} for text in texts[30 * shard : 30 * shard + 30]]
        rows_tar(folder / f"texts-{shard:03}.tar", rows)
    names = run("Language models: shards of texts", "transformers")
    tokens, positions = names["tokens"], names["positions"]
    assert tokens.shape == (8, 64)
    # Behind each end a document begins, and within it each word follows the one before.
    ended = tokens[:, :-1] == made.token_to_id("<end>")
    assert torch.equal(positions[:, 1:] == 0, ended)
    for row, starts in zip(tokens, positions == 0):
        words = [made.id_to_token(token) for token in row.tolist()]
        for one, two, starts_two in zip(words, words[1:], starts[1:].tolist()):
            assert starts_two or two == "<end>" or int(two[1:]) == (int(one[1:]) + 1) % 50
    # 52 words, of which the next one is nearly always the next number.
    assert names["loss"] < 0.9 * math.log(52)


def test_lightning(torch: Any, pictures: None) -> None:
    names = run("Lightning", "lightning")
    trainer = names["trainer"]
    assert (trainer.current_epoch, trainer.global_step) == (2, 16)
    assert 0 <= trainer.callback_metrics["right"] <= 1
    (saved,) = Path("checkpoints").glob("*.ckpt")
    states = torch.load(saved, weights_only=False)["loops"]["fit_loop"]["state_dict"]
    assert states["combined_loader"][0]["shardfeed"] == 1


def test_timm(torch: Any, pictures: None) -> None:
    names = run("timm", "timm")
    assert names["batch"]["jpg"].shape == (16, 3, 160, 160)
    assert math.isfinite(names["loss"].item())
    assert names["batches"].epoch == 2


TWO_DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}


def test_jax(pictures: None) -> None:
    shown = (
        "[len(images.addressable_shards), images.addressable_shards[1].data.shape, images.shape, "
        "len({shard.device for shard in images.addressable_shards}), float(value), stream.epoch]"
    )
    count, part, whole, devices, loss, epoch = run_apart("JAX", "jax", shown=shown, **TWO_DEVICES)
    assert (count, devices, epoch) == (2, 2, 2)
    assert (part, whole) == ([8, 32, 32, 3], [16, 32, 32, 3])
    assert loss < math.log(10)


def test_keras(pictures: None) -> None:
    shown = "[keras.backend.backend(), history.history['loss'], model.input_shape]"
    backend = {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    name, losses, shape = run_apart("Keras 3", "keras", "jax", shown=shown, **backend)
    assert name == "jax"
    assert losses[1] < losses[0]
    assert shape[1:] == [32, 32, 3]


def test_tf_data(pictures: None) -> None:
    shown = "[list(map(str, data.element_spec.items())), len(loss), float(loss[0]), stream.epoch]"
    spec, rows, loss, epoch = run_apart("tf.data", "tensorflow", shown=shown)
    assert (rows, epoch) == (16, 2)
    assert loss < math.log(10)
    assert "(None, 32, 32, 3)" in spec[0]
    assert "float32" in spec[0]
    assert "int64" in spec[1]


def test_mlx(pictures: None) -> None:
    loss, epoch = run_apart("MLX", "mlx", shown="[loss.item(), stream.epoch]")
    assert epoch == 2
    assert 0 < loss < 2 * math.log(10)
