"""RandAugment and TrivialAugment Wide against torchvision."""

from __future__ import annotations

import collections
import io
import math

import numpy as np
import pytest
import shardfeed
from batches import rows_tar

image = pytest.importorskip("PIL.Image")

from images import encoded, noise  # noqa: E402  they need Pillow

BINS = 31
OPERATIONS = [
    "Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color",
    "Contrast", "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize",
]  # fmt: skip


def photograph(width: int, height: int, seed: int) -> np.ndarray:
    """Smooth, with a range of levels of its own, and noise."""
    chance = np.random.default_rng(seed)
    coarse = chance.integers(30, 200, (5, 6, 3), "u1")
    smooth = np.asarray(image.fromarray(coarse).resize((width, height)))
    return np.clip(smooth + chance.normal(0, 8, smooth.shape), 20, 230).astype("u1")


@pytest.fixture(scope="module")
def pictures() -> list[np.ndarray]:
    return [photograph(61, 44, seed) for seed in range(6)] + [noise(40, 40), noise(33, 2)]


def augmented(path: str, words: str, size: int, **options: object) -> tuple[list, list]:
    decode = f"png:image/rgb8/{words}, __augment__"
    batch = next(shardfeed.Stream(path, ragged="offsets", **options).batches(size, decode=decode))
    return list(batch["png"]), [row["png"]["augment"] for row in batch["__augment__"]]


@pytest.fixture(scope="module")
def v2():
    # Threads that wait for one another take many times as long beside other programs.
    pytest.importorskip("torch").set_num_threads(1)
    return pytest.importorskip("torchvision.transforms.v2")


def by_torchvision(v2, pixels: np.ndarray, steps, words: str, fill: int | None) -> np.ndarray:
    import torch

    mode = "bilinear" if "bilinear" in words else "nearest"
    transform = v2.TrivialAugmentWide(
        interpolation=v2.InterpolationMode(mode), fill=None if fill is None else [fill] * 3
    )
    picture = torch.from_numpy(pixels.copy()).permute(2, 0, 1)
    for name, magnitude in steps:
        picture = transform._apply_image_or_video_transform(
            picture, name, magnitude, interpolation=transform.interpolation, fill=transform._fill
        )
    return picture.permute(1, 2, 0).numpy()


@pytest.mark.parametrize("words", ["trivialaugment", "trivialaugment=bilinear"])
@pytest.mark.parametrize("fill", [None, 128])
def test_every_operation_is_that_of_torchvision(tmp_path, v2, pictures, words, fill):
    """With the magnitudes that were drawn, within one level. Where a pixel lies just between two
    others, the rounding of sums in another order decides."""
    count = 500
    path = rows_tar(
        tmp_path / "t.tar",
        ({"png": encoded(pictures[n % len(pictures)], "png")} for n in range(count)),
    )
    given = words if fill is None else f"{words}/fill={fill}"
    seen: collections.Counter[str] = collections.Counter()
    for number, (found, steps) in enumerate(zip(*augmented(path, given, count))):
        wanted = by_torchvision(v2, pictures[number % len(pictures)], steps, words, fill)
        difference = np.abs(np.asarray(found).astype(int) - wanted)
        assert (difference > 1).mean() <= (0.04 if steps[0][1] else 0), steps
        seen[steps[0][0]] += not (difference > 1).any()
    assert sorted(seen) == sorted(OPERATIONS)
    assert min(seen.values()) >= 15, seen


def test_operations_follow_one_another(tmp_path, v2, pictures):
    count = 100
    few = pictures[:6]
    path = rows_tar(tmp_path / "t.tar", ({"png": encoded(few[n % 6], "png")} for n in range(count)))
    exact = 0
    for number, (found, steps) in enumerate(zip(*augmented(path, "randaugment=3:12", count))):
        assert len(steps) == 3
        wanted = by_torchvision(v2, few[number % 6], steps, "nearest", None)
        exact += bool((np.abs(found.astype(int) - wanted) <= 1).mean() > 0.97)
    # What differs by one level may differ by more after the next operation.
    assert exact > 0.9 * count


def magnitudes_of(transform, width: int, height: int) -> dict[str, np.ndarray]:
    space = transform._AUGMENTATION_SPACE
    assert sorted(space) == sorted(OPERATIONS)
    found = {name: (make(BINS, height, width), signed) for name, (make, signed) in space.items()}
    return {
        name: np.zeros(1)
        if numbers is None
        else np.concatenate([numbers.double(), -numbers.double()] if signed else [numbers.double()])
        for name, (numbers, signed) in found.items()
    }


@pytest.mark.parametrize(("width", "height"), [(16, 12), (224, 224), (331, 97)])
def test_magnitudes_are_those_of_torchvision(tmp_path, v2, width, height):
    count = 1000
    path = rows_tar(tmp_path / "t.tar", [{"png": encoded(noise(16, 12), "png")}] * count)
    words = f"resize={width}x{height}/crop=8x8" if width > 16 else "crop=16x12"
    # The size that counts is the one that the operations see.
    width, height = (8, 8) if width > 16 else (16, 12)
    spaces = magnitudes_of(v2.TrivialAugmentWide(), width, height)
    _, drawn = augmented(path, f"{words}/trivialaugment", count)
    for ((name, magnitude),) in drawn:
        nearest = spaces[name][np.abs(spaces[name] - magnitude).argmin()]
        # The last bit of torch.linspace() depends on the machine.
        assert magnitude == pytest.approx(nearest, rel=1e-6), name
    bins = {abs(m) for ((name, m),) in drawn if name == "Rotate"}
    assert len(bins) > 20
    for level in (0, 9, 17, 30):
        transform = v2.RandAugment(magnitude=level)
        _, drawn = augmented(path, f"{words}/randaugment=1:{level}", 100)
        wanted = magnitudes_of(transform, width, height)
        for ((name, magnitude),) in drawn:
            numbers = wanted[name]
            expected = numbers[level] if len(numbers) > 1 else 0
            assert abs(magnitude) == pytest.approx(expected, rel=1e-6)


def test_operations_and_signs_are_equally_likely(tmp_path):
    count = 3000
    path = rows_tar(tmp_path / "t.tar", [{"png": encoded(noise(6, 5), "png")}] * count)
    _, drawn = augmented(path, "randaugment=2:9", count)
    for place in range(2):
        names = collections.Counter(steps[place][0] for steps in drawn)
        expected = count / len(OPERATIONS)
        # One run in a million has more with 13 degrees of freedom.
        assert sum((names[name] - expected) ** 2 / expected for name in OPERATIONS) < 54
    pairs = collections.Counter((one[0], other[0]) for one, other in drawn)
    assert len(pairs) == len(OPERATIONS) ** 2
    signs = [math.copysign(1, m) for steps in drawn for name, m in steps if name == "ShearX"]
    assert abs(np.mean(signs)) < 5 / math.sqrt(len(signs))


def test_they_see_the_image_flipped_and_padded(tmp_path, v2):
    """The recipe of CIFAR: what is padded is part of the image."""
    count = 200
    picture = photograph(32, 32, 1)
    path = rows_tar(tmp_path / "t.tar", [{"png": encoded(picture, "png")}] * count)
    decode = "png:image/rgb8/pad=4/crop=random:32x32/flip=random/fill=7/trivialaugment, __augment__"
    batch = next(shardfeed.Stream(path).batches(count, decode=decode))
    flips = 0
    for found, row in zip(batch["png"], batch["__augment__"]):
        record = row["png"]
        left, top, width, height = record["crop"]
        canvas = np.full((32, 32, 3), 7, "u1")
        at_x, at_y = record["place"]
        canvas[at_y : at_y + height, at_x : at_x + width] = picture[
            top : top + height, left : left + width
        ]
        canvas = canvas[:, ::-1] if record["flip"] else canvas
        flips += record["flip"]
        wanted = by_torchvision(v2, canvas, record["augment"], "nearest", 7)
        assert (np.abs(found.astype(int) - wanted) > 1).mean() <= 0.04, record
    assert 60 < flips < 140


def test_the_matrix_says_where_pixels_come_to_lie(tmp_path):
    """A bright spot in a dark image is found where the matrix says."""
    spots = np.random.default_rng(3).integers(30, 70, (300, 2))
    pictures = []
    for x, y in spots:
        picture = np.zeros((100, 100, 3), "u1")
        picture[y - 1 : y + 2, x - 1 : x + 2] = 255
        pictures.append(encoded(picture, "png"))
    path = rows_tar(tmp_path / "t.tar", ({"png": data} for data in pictures))
    decode = "png:image/rgb8/resize=120x150/crop=100x130/flip=random/trivialaugment, __augment__"
    batch = next(shardfeed.Stream(path).batches(len(spots), decode=decode))
    moved = 0
    for found, row, spot in zip(batch["png"], batch["__augment__"], spots):
        ((name, magnitude),) = row["png"]["augment"]
        if name not in ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate"):
            continue
        a, b, c, d, e, f = row["png"]["matrix"]
        x, y = spot + 0.5
        x, y = a * x + b * y + c, d * x + e * y + f
        if not (5 < x < 95 and 5 < y < 125):
            continue
        moved += 1
        rows, columns = np.nonzero(found[..., 0] > 100)
        assert abs(columns.mean() + 0.5 - x) < 1, (name, magnitude)
        assert abs(rows.mean() + 0.5 - y) < 1, (name, magnitude)
    assert moved > 50


def test_operations_are_the_same_in_every_run(tmp_path):
    path = rows_tar(
        tmp_path / "t.tar", ({"png": encoded(noise(30, 20, seed=n), "png")} for n in range(20))
    )
    decode = "png:image/rgb/rrc=16x16/flip=random/randaugment=2:9/blur=0.5/views=2"

    def run(size: int, **options: object) -> np.ndarray:
        batches = shardfeed.Stream(path, **options).batches(size, decode=decode)
        return np.concatenate([np.stack([b["png.0"], b["png.1"]], axis=1) for b in batches])

    wanted = run(20)
    assert not np.array_equal(wanted[:, 0], wanted[:, 1])
    for size, threads in ((20, 1), (7, 3)):
        assert np.array_equal(run(size, decode_threads=threads), wanted)
    assert not np.array_equal(run(20, seed=1), wanted)


MOVES = {"ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate"}


@pytest.mark.parametrize("words", ["randaugment=3:12", "trivialaugment", "trivialaugment=bilinear"])
@pytest.mark.parametrize("steps", ["", "/rrc=40x30/flip=random", "/pad=4/crop=random:32x32"])
@pytest.mark.parametrize("fill", [0, 255])
def test_a_mask_is_moved_as_its_image_is(tmp_path, words, steps, fill):
    """An image whose levels are the labels, moved alone, is what the mask has to be."""
    count, width, height = 60, 44, 36
    labels = [
        np.random.default_rng(n).integers(0, 21, (height, width), dtype=np.uint8)
        for n in range(count)
    ]
    path = rows_tar(
        tmp_path / "t.tar",
        (
            {
                "png": encoded(np.stack([label] * 3, axis=2), "png"),
                "seg.png": encoded(label, "png"),
                "wide.png": encoded(label.astype(np.uint16) * 1000, "png"),
            }
            for label in labels
        ),
    )
    given = f"mask{steps}/fill={fill}/{words}"
    of_image = given.replace("mask", "rgb8/filter=nearest" if "rrc" in steps else "rgb8")
    decode = f"png:image/{of_image}, seg.png:image/{given}, wide.png:image/l16/{given}, __augment__"
    batch = next(shardfeed.Stream(path, seed=3).batches(count, decode=decode))
    moved = kept = 0
    for number, drawn in enumerate(batch["__augment__"]):
        names = {name for name, _ in drawn["seg.png"]["augment"]}
        assert drawn["png"]["augment"] == drawn["seg.png"]["augment"]
        mask = np.asarray(batch["seg.png"][number])
        assert set(np.unique(mask)) <= {*range(21), fill}
        wide = np.asarray(batch["wide.png"][number])
        beside = (wide == 65535) if fill else np.zeros(wide.shape, bool)
        assert np.array_equal(np.where(beside, 255, wide // 1000), mask)
        if names <= MOVES | {"Identity"} and "bilinear" not in words:
            assert np.array_equal(mask, np.asarray(batch["png"][number])[..., 0])
            moved += bool(names & MOVES)
        if not names & MOVES and not steps:
            assert np.array_equal(mask, labels[number])
            kept += 1
    assert moved > 0 or "bilinear" in words
    assert kept > 3 or steps


def test_labels_of_a_mask_are_the_numbers_that_are_stored(tmp_path):
    """Those of Pascal VOC are numbers of colours in a palette."""
    labels = np.random.default_rng(1).integers(0, 21, (18, 14), dtype=np.uint8)
    voc = image.fromarray(labels, "P")
    voc.putpalette([value for n in range(21) for value in (n * 12, 255 - n * 12, 7)] + [0] * 705)
    packed = image.fromarray(labels % 4, "P")
    packed.putpalette([200, 10, 10, 10, 200, 10, 10, 10, 200, 90, 90, 90])

    def png(picture, **options):
        file = io.BytesIO()
        picture.save(file, "png", **options)
        return file.getvalue()

    sample = {
        "voc.png": png(voc),
        "clear.png": png(voc, transparency=0),
        "packed.png": png(packed, bits=2),
        "deep.png": encoded(labels.astype(np.uint16) + 300, "png"),
        "rgb.png": encoded(np.stack([labels] * 3, axis=2), "png"),
    }
    path = rows_tar(tmp_path / "t.tar", [sample])

    def read(decode: str) -> np.ndarray:
        batch = next(shardfeed.Stream(path).batches(1, decode=decode))
        return np.asarray(batch[decode.partition(":")[0]])[0]

    assert np.array_equal(read("voc.png:image/mask"), labels)
    assert np.array_equal(read("clear.png:image/mask"), labels)
    assert np.array_equal(read("packed.png:image/mask"), labels % 4)
    assert np.array_equal(read("voc.png:image/mask/crop=6x4"), labels[7:11, 4:10])
    assert np.array_equal(read("deep.png:image/l16/mask"), labels.astype(int) + 300)
    assert np.array_equal(read("rgb.png:image/rgb8/mask")[..., 1], labels)
    for decode, words in (
        ("deep.png:image/mask", "16 bits.*l16/mask"),
        ("voc.png:image/l16/mask", "8 bits.*l8/mask"),
        ("rgb.png:image/mask", "in colours.*rgb8/mask"),
    ):
        with pytest.raises(shardfeed.UnsupportedError, match=words):
            read(decode)


def test_grey_images_are_changed_as_colours_that_are_all_the_same(tmp_path):
    count = 200
    levels = [noise(30, 24, seed=n)[..., 0] for n in range(count)]
    path = rows_tar(
        tmp_path / "t.tar",
        (
            {"png": encoded(np.stack([grey] * 3, axis=2), "png"), "grey.png": encoded(grey, "png")}
            for grey in levels
        ),
    )
    words = (
        "rrc=20x20/flip=random/trivialaugment/brightness=0.6..1.4/contrast=0.6..1.4/"
        "saturation=0.5..1.5/hue=-0.1..0.1/grayscale=0.2/blur=0.5/solarize=0.2"
    )
    batch = next(
        shardfeed.Stream(path).batches(
            count, decode=f"png:image/rgb8/{words}, grey.png:image/l8/{words}"
        )
    )
    coloured, grey = np.asarray(batch["png"]).astype(int), np.asarray(batch["grey.png"]).astype(int)
    assert grey.shape == (count, 20, 20)
    assert np.abs(coloured - grey[..., None]).max() <= 1
    assert len({image.tobytes() for image in grey}) > 0.9 * count


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("randaugment=", "not a decimal number"),
        ("randaugment=2", "no magnitude"),
        ("randaugment=0:9", "no number of operations"),
        ("randaugment=17:9", "no number of operations"),
        ("randaugment=2:31", "no magnitude"),
        ("randaugment=2:9:cubic", "neither nearest nor bilinear"),
        ("randaugment=2:9:nearest:1", "neither nearest nor bilinear"),
        ("trivialaugment=9", "neither nearest nor bilinear"),
        ("trivialaugment/randaugment=2:9", "a second set of operations"),
        ("l16/trivialaugment", "no colours to change"),
        ("rgb16/randaugment", "no colours to change"),
        ("mask/blur=0.5", "a mask has no colours to change"),
        ("rgb/mask", "labels of a mask are whole numbers"),
        ("mask/normalize=0.5:0.2", "integers cannot be normalized"),
        ("mask/float32", "numbers of their own"),
        ("mask/resize=20/filter=bilinear", "between labels there are none"),
        ("mask/mask", "a second mask"),
    ],
)
def test_words_that_make_no_sense_are_refused(tmp_path, words, message):
    path = rows_tar(tmp_path / "t.tar", [{"png": encoded(noise(6, 5), "png")}])
    with pytest.raises(shardfeed.UsageError, match=message):
        next(shardfeed.Stream(path).batches(1, decode=f"png:image/{words}"))
