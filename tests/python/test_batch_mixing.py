"""mixup and cutmix: which rows of a batch are mixed, how much of each is left, and where."""

from __future__ import annotations

import numpy as np
import pytest
import shardfeed
from batches import bytes_of, digest, rows_tar

image = pytest.importorskip("PIL.Image")

from images import encoded, noise  # noqa: E402  they need Pillow

NAMES = ["__mix_index__", "__mix_weight__", "__mix_box__"]
WIDTH, HEIGHT = 40, 24


def url_of(tmp_path, count: int, width: int = 6, height: int = 5) -> str:
    return rows_tar(
        tmp_path / "t.tar",
        (
            {"png": encoded(noise(width, height, seed=n), "png"), "cls": b"%d" % n}
            for n in range(count)
        ),
    )


def circle(index: np.ndarray) -> list[int]:
    """The rows from row 0 on, each mixed with the next."""
    rows = [0]
    while index[rows[-1]]:
        rows.append(int(index[rows[-1]]))
    return rows


def distance(drawn: np.ndarray, wanted: np.ndarray) -> float:
    """Of two samples of one size: above 1.95 once in a thousand (Kolmogorov and Smirnov)."""
    both = np.sort(np.concatenate([drawn, wanted]))
    apart = np.searchsorted(np.sort(drawn), both, "right") - np.searchsorted(
        np.sort(wanted), both, "right"
    )
    return float(np.abs(apart).max() / np.sqrt(2 * len(drawn)))


def params(random: np.random.Generator, alpha: float) -> tuple[float, ...]:
    """CutMix.make_params() of torchvision, with numbers of NumPy: the share, and the box."""
    share = random.beta(alpha, alpha)
    x, y = random.integers(WIDTH), random.integers(HEIGHT)
    half = 0.5 * np.sqrt(1.0 - share)
    half_width, half_height = int(half * WIDTH), int(half * HEIGHT)
    left, right = max(x - half_width, 0), min(x + half_width, WIDTH)
    top, bottom = max(y - half_height, 0), min(y + half_height, HEIGHT)
    share = 1.0 - (right - left) * (bottom - top) / (WIDTH * HEIGHT)
    return share, top, left, bottom, right


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    picture = encoded(noise(WIDTH, HEIGHT, 1), "png")
    return rows_tar(tmp_path_factory.mktemp("many") / "t.tar", [{"png": picture}] * 10000)


@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.8, 1, 3])
def test_the_shares_have_the_distribution_of_numpy(many, alpha):
    stream = shardfeed.Stream(many, seed=1)
    (batch,) = stream.batches(10000, decode=f"png:image/l8/mixup={alpha}")
    assert list(batch) == ["png", *NAMES[:2]]
    drawn = batch["__mix_weight__"].astype(float)
    random = np.random.default_rng(5)
    wanted = random.beta(alpha, alpha, 10000).astype("f4").astype(float)
    assert distance(drawn, wanted) < 1.95
    other = random.beta(1.5 * alpha + 0.2, 1.5 * alpha + 0.2, 10000)
    assert distance(drawn, other) > 1.95


@pytest.mark.parametrize("alpha", [0.3, 1, 2])
def test_the_boxes_have_the_distribution_of_torchvision(many, alpha):
    stream = shardfeed.Stream(many, seed=2)
    (batch,) = stream.batches(10000, decode=f"png:image/l8/cutmix={alpha}")
    random = np.random.default_rng(6)
    wanted = np.array([params(random, alpha) for _ in range(10000)])
    box, share = batch["__mix_box__"], batch["__mix_weight__"]
    assert box.shape == (10000, 4)
    top, left, bottom, right = box.T
    outside = 1 - (bottom - top) * (right - left) / (WIDTH * HEIGHT)
    assert np.abs(share - outside).max() < 1e-6
    assert distance(share.astype(float), wanted[:, 0].astype("f4").astype(float)) < 1.95
    for side in range(4):
        assert distance(box[:, side].astype(float), wanted[:, 1 + side]) < 1.95
    # Height and width of one box belong together.
    assert distance(outside + bottom, wanted[:, 0] + wanted[:, 3]) < 1.95


def test_the_boxes_have_the_distribution_of_torchvision_itself(many):
    transforms = pytest.importorskip("torchvision.transforms.v2")
    import torch

    torch.manual_seed(4)
    (batch,) = shardfeed.Stream(many, seed=3).batches(10000, decode="png:image/l8/cutmix=0.7")
    cutmix = transforms.CutMix(alpha=0.7, num_classes=2)
    picture = [torch.zeros(1, HEIGHT, WIDTH)]
    wanted = []
    for _ in range(10000):
        made = cutmix.make_params(picture)
        left, top, right, bottom = made["box"]
        wanted.append((made["lam_adjusted"], top, left, bottom, right))
    theirs = np.array(wanted)
    ours = np.column_stack([batch["__mix_weight__"].astype(float), batch["__mix_box__"]])
    for number in range(5):
        column = theirs[:, number].astype("f4").astype(float)
        assert distance(ours[:, number], column) < 1.95


def test_rows_are_mixed_in_a_circle(tmp_path):
    url = url_of(tmp_path, 300)
    seen = []
    for batch in shardfeed.Stream(url).batches(100, decode="png:image/mixup=1, cls"):
        index = batch["__mix_index__"]
        assert index.dtype == "int64"
        assert sorted(circle(index)) == list(range(100))
        seen.append(tuple(index))
    assert len(set(seen)) == 3
    # Every other row is as likely as any other: none of 99 distances comes too often.
    away = (np.array(seen) - np.arange(100)) % 100
    counts = np.bincount(away.ravel(), minlength=100)
    assert counts[0] == 0
    assert counts.max() < 15
    (one,) = shardfeed.Stream(url_of(tmp_path, 1)).batches(8, decode="png:image/mixup=1")
    assert one["__mix_index__"].tolist() == [0]


@pytest.mark.parametrize("words", ["mixup=0.4", "cutmix=1", "mixup=0.2/cutmix=1"])
def test_every_run_mixes_the_same(tmp_path, words):
    url = url_of(tmp_path, 100)
    options = {"decode": f"png:image/rgb/chw/flip=random/{words}, cls", "shuffle": 20, "seed": 3}
    stream = shardfeed.Stream(url, **options)
    first = [digest(batch) for batch in stream.batches(16)]
    second = [digest(batch) for batch in stream.batches(16)]
    assert not set(first) & set(second)
    for threads in (1, 2, 7):
        other = shardfeed.Stream(url, decode_threads=threads, threads=threads, **options)
        assert [digest(batch) for batch in other.batches(16)] == first
        batches = other.batches(16)
        assert [digest(next(batches)) for _ in range(3)] == second[:3]
        resumed = shardfeed.Stream(url, **options)
        resumed.load_state_dict(other.state_dict())
        assert [digest(batch) for batch in resumed.batches(16)] == second[3:]


def test_a_row_has_its_share_by_number_too(tmp_path):
    url = url_of(tmp_path, 40)
    decode = "png:image/mixup=0.4, cls"
    (batch,) = shardfeed.Stream(url, shuffle=0).batches(40, decode=decode)
    with shardfeed.Dataset(url, decode=decode) as data:
        data.set_epoch(0)
        whole = data.batch(range(40))
        for name in NAMES[:2]:
            assert bytes_of(whole[name]) == bytes_of(batch[name])
        rows = [31, 4, 17, 8]
        some = data.batch(rows)
        assert some["__mix_weight__"].tolist() == batch["__mix_weight__"][rows].tolist()
        assert sorted(circle(some["__mix_index__"])) == [0, 1, 2, 3]
        assert data.batch(rows, epoch=1)["__mix_weight__"].tolist() != (
            some["__mix_weight__"].tolist()
        )
    # One sample alone has nothing to be mixed with.
    sample = next(iter(shardfeed.Stream(url)))
    assert list(sample.decode(decode)) == ["png", "cls"]


def test_what_transforms_leave_is_mixed(tmp_path):
    url = url_of(tmp_path, 60)
    decode = "png:image/mixup=0.2/cutmix=1, cls"
    (whole,) = shardfeed.Stream(url).batches(60, decode=decode)

    def transform(row):
        assert sorted(row) == ["__key__", "__seed__", "__url__", "cls", "png"]
        return None if row["cls"] % 3 == 0 else row

    (batch,) = shardfeed.Stream(url).batches(60, decode=decode, transform=transform)
    kept = [row for row in range(60) if whole["cls"][row] % 3]
    assert batch["cls"].tolist() == whole["cls"][kept].tolist()
    for name in NAMES[1:]:
        assert np.array_equal(batch[name], whole[name][kept])
    # The circle, without the rows that are gone.
    left = [kept.index(row) for row in circle(whole["__mix_index__"]) if row in kept]
    start = left.index(0)
    assert circle(batch["__mix_index__"]) == left[start:] + left[:start]
    (all_of_them,) = shardfeed.Stream(url).batches(60, decode=decode, transform=lambda row: row)
    for name in NAMES:
        assert np.array_equal(all_of_them[name], whole[name])


def test_rows_without_an_image(tmp_path):
    url = rows_tar(tmp_path / "t.tar", [{"cls": b"1"}, {"png": encoded(noise(6, 5), "png"),
                                                        "cls": b"2"}])  # fmt: skip
    for ragged in ("error", "offsets", "pad"):
        stream = shardfeed.Stream(url, missing="empty", ragged=ragged)
        (batch,) = stream.batches(2, decode="cls, png:image/cutmix=0.5")
        assert batch["__mix_index__"].tolist() == [1, 0]
        assert (batch["__mix_box__"] <= [5, 6, 5, 6]).all()


@pytest.mark.parametrize(
    ("decode", "words"),
    [
        ("png:image/mixup=0", "from 0.001 up to 1000"),
        ("png:image/cutmix=much", "not a decimal number"),
        ("png:image/mixup=1/views=2", "views of an image are not mixed"),
        ("png:image/mixup=1, x.png:image/mixup=1", "a second column of images that are mixed"),
        ("npy:npy/mixup=1", "nothing may stand after this kind"),
    ],
)
def test_wrong_words(tmp_path, decode, words):
    with pytest.raises(shardfeed.UsageError, match=words):
        shardfeed.Stream(url_of(tmp_path, 1), decode=decode, batch=1)


def test_images_of_unequal_size(tmp_path):
    rows = [{"png": encoded(noise(6 + (n == 5), 5), "png")} for n in range(8)]
    url = rows_tar(tmp_path / "t.tar", rows)
    stream = shardfeed.Stream(url, ragged="pad")
    with pytest.raises(shardfeed.FormatError, match=r"000005\.png.*one size"):
        next(stream.batches(8, decode="png:image/mixup=1"))
    skipping = shardfeed.Stream(url, on_error="skip_sample", ragged="pad")
    (batch,) = skipping.batches(8, decode="png:image/mixup=1")
    assert sorted(circle(batch["__mix_index__"])) == list(range(7))
