"""Changes of colour against torchvision, and several views of one image."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import shardfeed
from batches import rows_tar

pytest.importorskip("PIL.Image")

from images import encoded, noise, places


def decoded(path: str, decode: str, size: int = 30, **options: object) -> dict[str, np.ndarray]:
    batch = next(shardfeed.Stream(path, **options).batches(size, decode=decode))
    return {name: np.asarray(batch[name]) for name in batch if not name.startswith("__")}


def written(path, pictures) -> str:
    return rows_tar(path, ({"png": encoded(picture, "png")} for picture in pictures))


@pytest.fixture(scope="module")
def functional():
    # Threads that wait for one another take many times as long beside other programs.
    pytest.importorskip("torch").set_num_threads(1)
    return pytest.importorskip("torchvision.transforms.v2.functional")


def changed(functional, pixels: np.ndarray, changes) -> np.ndarray:
    """What torchvision makes of it, change by change."""
    import torch

    picture = torch.from_numpy(pixels.copy()).permute(2, 0, 1)
    for name, factor in changes:
        picture = getattr(functional, f"adjust_{name}")(picture, factor)
    return picture.permute(1, 2, 0).numpy()


@pytest.mark.parametrize("name", ["brightness", "contrast", "saturation", "hue"])
def test_each_change_is_that_of_torchvision(tmp_path, functional, name):
    """At factors at random, within one level."""
    chance = np.random.default_rng(1)
    pictures = [noise(40, 30, seed=number) for number in range(4)]
    path = written(tmp_path / "t.tar", pictures)
    for factor in chance.uniform(*((-0.5, 0.5) if name == "hue" else (0, 2.5)), 25):
        text = f"{factor:.6f}"
        found = decoded(path, f"png:image/rgb8/{name}={text}..{text}")["png"]
        for row, picture in zip(found, pictures):
            wanted = changed(functional, picture, [(name, float(text))])
            difference = np.abs(row.astype(int) - wanted)
            assert difference.max() <= 1, factor
            assert (difference > 0).mean() < 0.02


@pytest.mark.parametrize("name", ["x.jpg", "x.png"])
def test_blur_is_that_of_torchvision(tmp_path, functional, name):
    """At kernels and sigmas at random, in images that are smaller than the kernel too."""
    import torch

    chance = np.random.default_rng(2)
    kind = "jpeg" if name == "x.jpg" else "png"
    pictures = [noise(width, height) for width, height in ((40, 30), (64, 24), (5, 70))]
    path = rows_tar(tmp_path / "t.tar", ({name: encoded(p, kind)} for p in pictures))

    def rows(words: str) -> list[np.ndarray]:
        stream = shardfeed.Stream(path, ragged="offsets")
        return list(next(stream.batches(3, decode=f"{name}:image/rgb8{words}"))[name])

    stored = rows("")
    for sigma, half in zip(chance.uniform(0.1, 4, 100), chance.integers(1, 12, 100)):
        kernel = 2 * half + 1
        text = f"{sigma:.6f}"
        words = f"/blur=1/sigma={text}..{text}/kernel={kernel}"
        for row, picture in zip(rows(words), stored):
            # torchvision pads by less than the size of the image, so it is padded here.
            padded = np.pad(picture, ((half, half), (half, half), (0, 0)), "reflect")
            planes = torch.from_numpy(padded).permute(2, 0, 1)
            wanted = functional.gaussian_blur(planes, [kernel, kernel], [float(text)] * 2)
            wanted = wanted[:, half:-half, half:-half].permute(1, 2, 0).numpy()
            assert np.abs(row.astype(int) - wanted).max() <= 1, words


def test_grey_and_solarized(tmp_path, functional):
    import torch

    picture = noise(40, 30)
    path = written(tmp_path / "t.tar", [picture])
    planes = torch.from_numpy(picture.copy()).permute(2, 0, 1)
    grey = functional.rgb_to_grayscale(planes, num_output_channels=3).permute(1, 2, 0).numpy()
    found = decoded(path, "png:image/rgb8/grayscale=1")["png"][0]
    assert np.abs(found.astype(int) - grey).max() <= 1
    inverted = functional.solarize(planes, 128).permute(1, 2, 0).numpy()
    assert np.array_equal(decoded(path, "png:image/rgb8/solarize=1")["png"][0], inverted)
    floats = decoded(path, "png:image/rgb/chw/solarize=1")["png"][0]
    assert np.array_equal(floats, inverted.transpose(2, 0, 1) / np.float32(255))


FACTORS = [("brightness", 1.5), ("contrast", 0.5), ("saturation", 2.0), ("hue", 0.25)]


def test_every_order_is_as_likely_as_any_other(tmp_path, functional):
    picture = noise(12, 9)
    count = 2400
    path = written(tmp_path / "t.tar", [picture] * count)
    words = "/".join(f"{name}={factor}..{factor}" for name, factor in FACTORS)
    found = decoded(path, f"png:image/rgb8/{words}", size=count)["png"]
    orders = [changed(functional, picture, order) for order in itertools.permutations(FACTORS)]
    seen = np.zeros(len(orders), int)
    for row in found:
        distances = [np.abs(row.astype(int) - order).mean() for order in orders]
        assert min(distances) < 1
        seen[int(np.argmin(distances))] += 1
    expected = count / 24
    # One run in a million has more with 23 degrees of freedom.
    assert ((seen - expected) ** 2 / expected).sum() < 75


@pytest.mark.parametrize(
    "words", ["grayscale=0.3", "blur=0.3", "solarize=0.3", "brightness=2..2/jitter=0.3"]
)
def test_chances(tmp_path, words):
    picture = noise(8, 8)
    count = 2000
    path = written(tmp_path / "t.tar", [picture] * count)
    rows = decoded(path, f"png:image/rgb8/{words}", size=count)["png"]
    share = np.mean([not np.array_equal(row, picture) for row in rows])
    assert abs(share - 0.3) < 5 * math.sqrt(0.3 * 0.7 / count)


def test_factors_are_uniform(tmp_path):
    """Of a flat picture the level says the factor."""
    count = 2000
    path = written(tmp_path / "t.tar", [np.full((4, 4, 3), 100, "u1")] * count)
    rows = decoded(path, "png:image/rgb8/brightness=0.5..1.5", size=count)["png"]
    levels = np.sort(rows[:, 0, 0, 0])
    parts = np.searchsorted(levels, np.arange(50, 150), "right") / count
    limit = math.sqrt(math.log(2 / 1e-6) / (2 * count))
    assert np.abs(parts - (np.arange(50, 150) - 49) / 100).max() < limit


def test_sigma_is_uniform(tmp_path):
    """Of one bright column the level in it says how far it was blurred."""
    count = 2000
    picture = np.zeros((3, 41, 3), "u1")
    picture[:, 20] = 255
    path = written(tmp_path / "t.tar", [picture] * count)
    words = "png:image/rgb8/blur=1/kernel=41/sigma="
    levels = decoded(path, f"{words}1..3", size=count)["png"][:, 1, 20, 0]
    limit = math.sqrt(math.log(2 / 1e-6) / (2 * count))
    for sigma in np.arange(1, 3, 0.1):
        (level,) = decoded(path, f"{words}{sigma:.6f}..{sigma:.6f}", size=1)["png"][:, 1, 20, 0]
        share = [np.mean(levels > level), np.mean(levels >= level)]
        assert share[0] - limit < (sigma - 1) / 2 < share[1] + limit


def test_blur_comes_before_solarize(tmp_path):
    path = written(tmp_path / "t.tar", [noise(30, 20)])
    blurred, both = (
        decoded(path, f"png:image/rgb8/{words}")["png"]
        for words in ("blur=1/sigma=1..1", "solarize=1/blur=1/sigma=1..1")
    )
    assert np.array_equal(both, np.where(blurred >= 128, 255 - blurred, blurred))


def test_changes_of_grey_and_deep_images(tmp_path):
    deep = (noise(30, 20, 1).astype("u2") << 8) + 99
    path = written(tmp_path / "t.tar", [deep])
    (found,) = decoded(path, "png:image/rgb/chw/brightness=0.5..0.5")["png"]
    levels = np.floor(np.round(deep / 257) * 0.5)
    assert np.array_equal(found, np.stack([levels] * 3).astype("f4") / np.float32(255))


def test_views_have_choices_of_their_own(tmp_path):
    """The first one those of an image that is wanted once; masks have the geometry of each."""
    columns, rows = places(120, 90)
    count = 25
    path = rows_tar(
        tmp_path / "t.tar",
        (
            {"png": encoded(noise(120, 90, seed=n), "png"), "x.png": columns, "y.png": rows}
            for n in range(count)
        ),
    )
    steps = "rrc=24x24/flip=random"
    colours = "brightness=0.6..1.4/hue=-0.1..0.1/grayscale=0.2"
    batch = decoded(
        path,
        f"png:image/rgb8/{steps}/{colours}/views=2, x.png:image/l16/{steps}/views=2/filter=nearest",
    )
    assert sorted(batch) == ["png.0", "png.1", "x.png.0", "x.png.1"]
    alone = decoded(path, f"png:image/rgb8/{steps}/{colours}, x.png:image/l16/{steps}")
    assert np.array_equal(batch["png.0"], alone["png"])
    for name in ("png", "x.png"):
        for one, other in zip(batch[f"{name}.0"], batch[f"{name}.1"]):
            assert not np.array_equal(one, other)
    # The pixels that the mask's view names are those of the image's view.
    both = decoded(
        path,
        f"png:image/rgb8/{steps}/filter=nearest/views=3, "
        f"x.png:image/l16/{steps}/filter=nearest/views=3, "
        f"y.png:image/l16/{steps}/filter=nearest/views=3",
    )
    for view, number in itertools.product(range(3), range(count)):
        x, y = (both[f"{name}.png.{view}"][number] // 200 for name in "xy")
        assert np.array_equal(both[f"png.{view}"][number], noise(120, 90, seed=number)[y, x])


def test_changes_are_the_same_in_every_run(tmp_path):
    path = written(tmp_path / "t.tar", [noise(30, 20, seed=n) for n in range(20)])
    decode = (
        "png:image/rgb/rrc=9x9/brightness=0.5..1.5/contrast=0.5..1.5/saturation=0.5..1.5/"
        "hue=-0.1..0.1/jitter=0.8/grayscale=0.2/blur=0.5/solarize=0.2/views=2"
    )

    def run(size: int, **options: object) -> np.ndarray:
        batches = shardfeed.Stream(path, **options).batches(size, decode=decode)
        return np.concatenate([np.stack([b["png.0"], b["png.1"]], axis=1) for b in batches])

    wanted = run(20)
    for size, threads in ((20, 1), (7, 3), (1, 2)):
        assert np.array_equal(run(size, decode_threads=threads), wanted)
    assert not np.array_equal(run(20, seed=1), wanted)
    stream = shardfeed.Stream(path)
    batches = stream.batches(6, decode=decode)
    next(batches)
    again = shardfeed.Stream(path)
    again.load_state_dict(stream.state_dict())
    rest = np.concatenate([b["png.1"] for b in again.batches(6, decode=decode)])
    assert np.array_equal(rest, wanted[6:, 1])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("brightness=-1..1", "begins too low"),
        ("brightness=1", "no range"),
        ("hue=-0.6..0", "begins too low"),
        ("hue=0..0.6", "ends too high"),
        ("contrast=2..1", "ends above its beginning"),
        ("grayscale=1.5", "no chance"),
        ("jitter=0.5", "nothing that this belongs to"),
        ("blur=2", "no chance"),
        ("blur=0.5/sigma=0..1", "begins too low"),
        ("blur=0.5/sigma=1..101", "ends too high"),
        ("blur=0.5/kernel=4", "no size of a kernel"),
        ("blur=0.5/kernel=257", "no size of a kernel"),
        ("blur=0.5/kernel=5.5", "no size of a kernel"),
        ("sigma=1..2", "nothing that this belongs to"),
        ("kernel=5", "nothing that this belongs to"),
        ("l16/blur=0.5", "no colours to change"),
        ("l16/hue=0..0.1", "no colours to change"),
        ("rgb16/grayscale=0.5", "no colours to change"),
        ("views=1", "no number of views"),
        ("views=2.5", "no number of views"),
        ("views=2/views=3", "second number of views"),
    ],
)
def test_words_that_make_no_sense_are_refused(tmp_path, words, message):
    path = written(tmp_path / "t.tar", [noise(30, 20)])
    with pytest.raises(shardfeed.UsageError, match=message):
        decoded(path, f"png:image/{words}")


def test_columns_of_views_must_be_new(tmp_path):
    path = written(tmp_path / "t.tar", [noise(30, 20)])
    with pytest.raises(shardfeed.UsageError, match=r'column "png.1" is there twice'):
        decoded(path, "png.1:image, png:image/views=2")
