"""Random resized crops, padding, filters and normalized numbers, against Pillow and torchvision."""

from __future__ import annotations

import io
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import shardfeed
from batches import rows_tar

image = pytest.importorskip("PIL.Image")

from images import Box, encoded, found_box, noise, places, resized  # noqa: E402  they need Pillow

PROMISED = "jpg:image/rgb/chw/rrc=224x224/flip=random/normalize=imagenet"


def decoded(path: str, decode: str, size: int = 30, **options: object) -> dict[str, np.ndarray]:
    batch = next(shardfeed.Stream(path, **options).batches(size, decode=decode))
    return {name: np.asarray(batch[name]) for name in batch if not name.startswith("__")}


def pictures(path: Path, count: int, width: int, height: int, **options: object) -> str:
    """Samples with a JPEG and two PNGs of its size that say what became of which pixel."""
    columns, rows = places(width, height)
    quality = {"quality": 90, **options}
    return rows_tar(
        path,
        (
            {
                "jpg": encoded(noise(width, height, seed=number), "jpeg", **quality),
                "png": encoded(noise(width, height, seed=number), "png"),
                "x.png": columns,
                "y.png": rows,
            }
            for number in range(count)
        ),
    )


def boxes(batch: dict[str, np.ndarray]) -> list[Box]:
    return [found_box(x, y) for x, y in zip(batch["x.png"], batch["y.png"])]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("rrc=64x64/flip=random/exact", {}),
        ("rrc=100x40/flip=random/exact/scale=0.3..0.6/ratio=0.5..2", {"subsampling": 0}),
        ("rrc=20x30/exact", {"progressive": True, "subsampling": 1}),
        ("flip=always/rrc=300x200/exact/filter=bicubic", {}),
    ],
)
def test_a_random_resized_crop_is_that_of_pillow(tmp_path, words, options):
    """To the last bit, but for a flip before the crop, where the sums are in another order."""
    width, height, count = 211, 167, 25
    path = pictures(tmp_path / "t.tar", count, width, height, **options)
    place = words.replace("filter=bicubic", "filter=bilinear")
    batch = decoded(
        path,
        f"jpg:image/rgb8/{words}, png:image/rgb8/{words}, "
        f"x.png:image/l16/{place}, y.png:image/l16/{place}",
    )
    filter = image.Resampling.BICUBIC if "bicubic" in words else image.Resampling.BILINEAR
    to_height, to_width = batch["jpg"].shape[1:3]
    for number, box in enumerate(boxes(batch)):
        stored = image.fromarray(noise(width, height, seed=number))
        jpeg = image.open(io.BytesIO(encoded(stored, "jpeg", quality=90, **options)))
        for name, picture in (("png", stored), ("jpg", jpeg)):
            wanted = box.of(picture, to_width, to_height, filter).astype(int)
            difference = np.abs(batch[name][number] - wanted).max()
            assert difference <= (1 if words.startswith("flip") else 0), (name, box)


def test_a_random_resized_crop_is_that_of_torchvision(tmp_path):
    functional = pytest.importorskip("torchvision.transforms.v2.functional")
    torch = pytest.importorskip("torch")
    width, height, count = 180, 240, 20
    path = pictures(tmp_path / "t.tar", count, width, height)
    batch = decoded(
        path,
        "jpg:image/rgb/chw/rrc=96x96/exact/flip=random/normalize=imagenet, "
        "x.png:image/l16/rrc=96x96/flip=random, y.png:image/l16/rrc=96x96/flip=random",
    )
    mean, deviation = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    for number, box in enumerate(boxes(batch)):
        data = encoded(noise(width, height, seed=number), "jpeg", quality=90)
        picture = torch.from_numpy(np.array(image.open(io.BytesIO(data)))).permute(2, 0, 1)
        part = functional.resized_crop(
            picture, box.top, box.left, box.height, box.width, [96, 96], antialias=True
        )
        part = functional.horizontal_flip(part) if box.flipped else part
        floats = functional.to_dtype(part, torch.float32, scale=True)
        wanted = functional.normalize(floats, mean, deviation).numpy()
        levels = np.abs(batch["jpg"][number] - wanted) * np.array(deviation)[:, None, None] * 255
        assert levels.max() < 1.01


def drawn(count: int, scale: tuple[float, float], ratio: tuple[float, float]) -> np.ndarray:
    """Widths, heights, lefts and tops that torchvision draws for an image of 300 x 200."""
    transforms = pytest.importorskip("torchvision.transforms.v2")
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    crop = transforms.RandomResizedCrop(10, scale=scale, ratio=ratio)
    picture = torch.zeros(3, 200, 300)
    params = [crop.make_params([picture]) for _ in range(count)]
    return np.array([[p["width"], p["height"], p["left"], p["top"]] for p in params])


@pytest.mark.parametrize(
    ("words", "scale", "ratio"),
    [
        ("", (0.08, 1.0), (3 / 4, 4 / 3)),
        ("/scale=0.25..0.5/ratio=0.5..3", (0.25, 0.5), (0.5, 3.0)),
        ("/scale=0.9..1/ratio=2..3", (0.9, 1.0), (2.0, 3.0)),  # always the last resort
    ],
)
def test_crops_are_as_likely_as_with_torchvision(tmp_path, words, scale, ratio):
    """Both have the same distribution of sizes and places: the largest distance of the two
    cumulative ones (Kolmogorov, Smirnov) is below what one pair in a million exceeds."""
    count = 2000
    columns, rows = places(300, 200)
    path = rows_tar(tmp_path / "t.tar", ({"x.png": columns, "y.png": rows} for _ in range(count)))
    step = f"rrc=64x64{words}/flip=random"
    batch = decoded(path, f"x.png:image/l16/{step}, y.png:image/l16/{step}", size=count)
    found = boxes(batch)
    ours = np.array([[b.width, b.height, b.left, b.top] for b in found])
    theirs = drawn(count, scale, ratio)
    limit = math.sqrt(math.log(2 / 1e-6) / count)
    for number, name in enumerate(["width", "height", "left", "top"]):
        values = np.arange(-1, 301)
        parts = [
            np.searchsorted(np.sort(side[:, number]), values, "right") / count
            for side in (ours, theirs)
        ]
        assert np.abs(parts[0] - parts[1]).max() < limit, name
    assert abs(np.mean([b.flipped for b in found]) - 0.5) < 5 * 0.5 / math.sqrt(count)


def test_choices_are_the_same_in_every_run(tmp_path):
    """Regardless of threads, batches, and of where it was interrupted; the next epoch differs."""
    path = pictures(tmp_path / "t.tar", 30, 60, 50)
    decode = PROMISED.replace("224x224", "16x16")

    def run(**options: object) -> np.ndarray:
        size = options.pop("batch", 30)
        stream = shardfeed.Stream(path, **options)
        return np.concatenate([b["jpg"] for b in stream.batches(size, decode=decode)])

    wanted = run()
    assert len({row.tobytes() for row in wanted}) == 30
    for options in ({"decode_threads": 1}, {"decode_threads": 3, "batch": 7}, {"batch": 1}):
        assert np.array_equal(run(**options), wanted)
    assert not np.array_equal(run(seed=1), wanted)
    assert not np.array_equal(run(epoch=1), wanted)

    stream = shardfeed.Stream(path)
    batches = stream.batches(7, decode=decode)
    first = [next(batches)["jpg"] for _ in range(2)]
    state = stream.state_dict()
    again = shardfeed.Stream(path)
    again.load_state_dict(state)
    rest = [b["jpg"] for b in again.batches(7, decode=decode)]
    assert np.array_equal(np.concatenate(first + rest), wanted)


FILTERS = ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("mode", ["rgb8", "l8"])
def test_filters_are_those_of_pillow(tmp_path, name, mode):
    """At sizes at random, to the last bit."""
    chance = np.random.default_rng(FILTERS.index(name))
    for _ in range(17):
        before = tuple(int(side) for side in chance.integers(1, 130, 2))
        width, height = (int(side) for side in chance.integers(1, 150, 2))
        pixels = noise(*before, 3 if mode == "rgb8" else 1)
        path = rows_tar(tmp_path / "t.tar", [{"png": encoded(pixels, "png")}])
        (found,) = decoded(path, f"png:image/{mode}/resize={width}x{height}/filter={name}")["png"]
        filter = getattr(image.Resampling, name.upper())
        wanted = resized(image.fromarray(pixels), width, height, filter)
        assert np.array_equal(found, np.asarray(wanted)), (before, width, height)


def test_sixteen_bits_stay_within_their_range(tmp_path):
    """Filters with negative weights go past black and white."""
    pixels = np.zeros((40, 40), "u2")
    pixels[10:30, 10:30] = 65535
    path = rows_tar(tmp_path / "t.tar", [{"png": encoded(pixels, "png")}])
    for name in ("bicubic", "lanczos"):
        (found,) = decoded(path, f"png:image/l16/resize=90x90/filter={name}")["png"]
        assert found[45, 45] == 65535
        assert found[0, 0] == 0
        assert (np.diff(found[45, :40].astype(int)) >= -3000).all()


def in_numpy(pixels: np.ndarray, steps: tuple[str, ...]) -> np.ndarray:
    """The steps one after another."""
    for step in steps:
        name, value = step.split("=")
        height, width = pixels.shape[:2]
        if name == "flip":
            pixels = pixels[:, ::-1]
        elif name == "crop":
            to_width, to_height = map(int, value.split("x"))
            left, top = round((width - to_width) / 2), round((height - to_height) / 2)
            pixels = pixels[top : top + to_height, left : left + to_width]
        elif value.startswith("to:"):
            sides = [
                ((max(to - side, 0)) // 2, (max(to - side, 0) + 1) // 2)
                for to, side in zip(map(int, value[3:].split("x")), (width, height))
            ]
            pixels = np.pad(pixels, (sides[1], sides[0], (0, 0)), constant_values=7)
        else:
            across, down = (*map(int, value.split("x")), *map(int, value.split("x")))[:2]
            pixels = np.pad(pixels, ((down, down), (across, across), (0, 0)), constant_values=7)
    return pixels


@pytest.mark.parametrize("kind", ["png", "jpg"])
@pytest.mark.parametrize("words", ["rgb8", "rgb8/chw", "rgb", "rgb/chw"])
@pytest.mark.parametrize("pad", ["pad=3", "pad=2x9", "pad=to:50x20", "pad=to:50x61"])
def test_padding(tmp_path, kind, words, pad):
    pixels = noise(31, 23)
    data = encoded(pixels, "png" if kind == "png" else "jpeg")
    stored = np.asarray(image.open(io.BytesIO(data)))
    path = rows_tar(tmp_path / "t.tar", [{kind: data}])
    for others in (("crop=20x15",), ("crop=20x15", "flip=always"), ("flip=always",), ()):
        for steps in itertools.permutations((pad, *others)):
            wanted = in_numpy(stored, steps)
            decode = f"{kind}:image/{words}/fill=7/" + "/".join(steps)
            (found,) = decoded(path, decode)[kind]
            if "chw" in words:
                found = found.transpose(1, 2, 0)
            if words.startswith("rgb/") or words == "rgb":
                found = found * 255
            assert np.abs(found - wanted.astype(float)).max() < 1e-4, steps


def test_padding_around_a_random_crop(tmp_path):
    """The recipe of CIFAR: every place of the padded image occurs, also of nothing but padding."""
    y, x = np.mgrid[0:4, 0:4]
    pixels = np.stack([x + 1, y + 1, x * 0 + 9], axis=2).astype("u1")
    path = rows_tar(tmp_path / "t.tar", [{"png": encoded(pixels, "png")}] * 2000)
    found = decoded(path, "png:image/rgb8/pad=4/crop=random:4x4", size=2000)["png"]
    padded = np.pad(pixels, ((4, 4), (4, 4), (0, 0)))
    wanted = {padded[y : y + 4, x : x + 4].tobytes() for y in range(9) for x in range(9)}
    assert {row.tobytes() for row in found} == wanted


def test_numbers_that_training_takes(tmp_path):
    torch = pytest.importorskip("torch")
    path = pictures(tmp_path / "t.tar", 3, 50, 40)
    for mode in ("png:image/rgb", "x.png:image/rgb"):  # 8 and 16 bits
        for steps in ("", "/resize=20/normalize=imagenet", "/chw/normalize=0.1:0.2:0.3:4:5:1e-3"):
            (name,) = [mode.split(":")[0]]
            (wanted,) = shardfeed.Stream(path).batches(3, decode=mode + steps)
            wanted = wanted.column(name).torch()
            assert wanted.dtype == torch.float32
            for number in ("float16", "bfloat16", "float32"):
                (batch,) = shardfeed.Stream(path).batches(3, decode=f"{mode}/{number}{steps}")
                column = batch.column(name)
                assert column.dtype == number
                found = column.torch()
                assert torch.equal(found, wanted.to(getattr(torch, number)))
                assert torch.equal(torch.from_dlpack(column), found)
                array = batch[name]
                if number == "bfloat16" and array.dtype == "uint16":
                    array = (array.astype("u4") << 16).view("f4")
                assert np.array_equal(np.asarray(array, "f4"), found.to(torch.float32).numpy())
    floats = decoded(path, "png:image/rgb")["png"]
    assert np.array_equal(
        decoded(path, "png:image/normalize=half")["png"], (floats - np.float32(0.5)) / 0.5
    )
    grey = decoded(path, "png:image/l/normalize=0.25:0.5")["png"]
    assert np.array_equal(grey, (decoded(path, "png:image/l")["png"] - np.float32(0.25)) * 2)
    assert decoded(path, "png:image/uint8/l")["png"].dtype == "u1"


def test_scaled_decoding_is_near_and_can_be_left_out(tmp_path):
    """What it changes in a photograph-like image is a few levels on average."""
    smooth = image.fromarray(noise(20, 16)).resize((1000, 800), image.Resampling.BICUBIC)
    path = rows_tar(
        tmp_path / "t.tar",
        [{"jpg": encoded(smooth, "jpeg", quality=95)}] * 20,
    )
    step = "rrc=64x64/scale=0.3..1"
    fast = decoded(path, f"jpg:image/rgb8/{step}")["jpg"].astype(int)
    exact = decoded(path, f"jpg:image/rgb8/{step}/exact")["jpg"].astype(int)
    assert not np.array_equal(fast, exact)
    assert np.abs(fast - exact).mean() < 1.5


@pytest.mark.parametrize("mode", ["CMYK", "YCCK"])
def test_inks_become_colours_as_with_pillow(tmp_path, mode):
    picture = image.fromarray(noise(64, 48, 4), "CMYK")
    data = encoded(picture, "jpeg", quality=92)
    if mode == "YCCK":  # the same numbers, which Adobe's marker says are YCCK
        data = bytearray(encoded(picture, "jpeg", quality=92))
        at = data.index(b"Adobe")
        assert data[at + 11] == 0
        data[at + 11] = 2
        data = bytes(data)
    opened = image.open(io.BytesIO(data))
    assert opened.mode == "CMYK"
    wanted = np.asarray(opened.convert("RGB"))
    path = rows_tar(tmp_path / "t.tar", [{"jpg": data}])
    assert np.array_equal(decoded(path, "jpg:image/rgb8")["jpg"][0], wanted)
    part = decoded(path, "jpg:image/rgb8/crop=20x10")["jpg"][0]
    assert np.array_equal(part, wanted[19:29, 22:42])
    grey = decoded(path, "jpg:image/l8")["jpg"][0]
    assert np.array_equal(grey, np.asarray(opened.convert("RGB").convert("L")))
    floats = decoded(path, "jpg:image/rgba8")["jpg"][0]
    assert np.array_equal(floats[..., :3], wanted)
    assert (floats[..., 3] == 255).all()


def test_a_file_without_its_end_is_an_error_whatever_is_cropped(tmp_path):
    data = encoded(noise(200, 160), "jpeg", quality=90)
    rows = [{"jpg": data[:end]} for end in range(len(data) // 2, len(data), 97)]
    path = rows_tar(tmp_path / "t.tar", [*rows, {"jpg": data}])
    for steps in ("rrc=32x32/scale=0.01..0.02", "crop=random:16x16", "rrc=8x8"):
        stream = shardfeed.Stream(path, on_error="skip_sample")
        (batch,) = stream.batches(1000, decode=f"jpg:image/rgb8/{steps}")
        assert len(batch) == 1
        assert stream.stats()["skipped_samples"] == len(rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rrc=64", "no height"),
        ("rrc=0x5", "1 to 65535"),
        ("rrc=64x64/resize=9", "second"),
        ("crop=64x64/rrc=9x9", "second"),
        ("scale=0.1..1", "nothing that this belongs to"),
        ("rrc=64x64/scale=0..1", "above 0"),
        ("rrc=64x64/scale=0.1..1.5", "more than the whole image"),
        ("rrc=64x64/ratio=2..1", "ends above its beginning"),
        ("rrc=64x64/ratio=2", "no range"),
        ("pad=4/resize=9", "before pad"),
        ("pad=x", "1 to 65535"),
        ("fill=3", "nothing that this belongs to"),
        ("pad=4/fill=256", "no level"),
        ("filter=bicubic", "nothing that this belongs to"),
        ("resize=9/filter=cubic", "unknown filter"),
        ("rgb8/normalize=imagenet", "integers cannot be normalized"),
        ("rgb/normalize=0.5:0.5", "three means"),
        ("l/normalize=imagenet", "one mean"),
        ("rgb/normalize=nan:0:0:1:1:1", "not a decimal number"),
        ("rgb/normalize=0:0:0:1:1:0", "not above 0"),
        ("rgb/normalize=1:2:3", "neither six numbers nor two"),
        ("rgb8/float16", "numbers of their own"),
        ("rgb/float16/bfloat16", "second kind of numbers"),
        ("rrc=9x9/exif", "before all other steps"),
    ],
)
def test_words_that_make_no_sense_are_refused(tmp_path, words, message):
    path = rows_tar(tmp_path / "t.tar", [{"png": encoded(noise(30, 20), "png")}])
    with pytest.raises(shardfeed.UsageError, match=message):
        decoded(path, f"png:image/{words}")
