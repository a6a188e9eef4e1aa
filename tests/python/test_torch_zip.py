"""ZipDataset in PyTorch's own DataLoader. Skipped without PyTorch and Pillow."""

from __future__ import annotations

import io
import json
import multiprocessing
import pickle
import subprocess
import sys

import pytest
import shardfeed
from archives import write_archive, write_zip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*pin_memory"),
    pytest.mark.filterwarnings("ignore:.*suggested max number of worker"),
]

COUNT = 50
SHAPE = (3, 8, 8)


def raw(number: int) -> bytes:
    return bytes((number + n) % 256 for n in range(3 * 8 * 8))


def members(labels: object) -> list[tuple[str, bytes]]:
    """Raw images, in reverse order of their names, and what is not an image."""
    listed = [(f"{n % 3}/img_{n:03d}.png", raw(n)) for n in reversed(range(COUNT))]
    listed += [("readme.txt", b"text"), ("a/._img_000.png", b"?"), (".hidden.png", b"?")]
    if labels is not None:
        listed.insert(7, ("dataset.json", json.dumps({"labels": labels}).encode()))
    return listed


NAMES = sorted(f"{n % 3}/img_{n:03d}.png" for n in range(COUNT))
NUMBERS = [int(name[6:9]) for name in NAMES]
LABELS = {f"{n % 3}/img_{n:03d}.png": n * 7 for n in range(COUNT)}


@pytest.fixture
def raw_zip(tmp_path):
    return write_zip(tmp_path / "t.zip", members(LABELS))


def check_epoch(torch, loader) -> None:
    """Every image once, with its own label."""
    seen = []
    for images, labels in loader:
        assert images.dtype is torch.uint8
        assert labels.dtype is torch.int64
        for image, label in zip(images, labels):
            number = int(label) // 7
            assert image.shape == SHAPE
            assert bytes(image.flatten().tolist()) == raw(number)
            seen.append(number)
    assert sorted(seen) == list(range(COUNT))


# ---- Items --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["zip", "deflated.zip", "tar", "tar.gz"])
@pytest.mark.parametrize("listed", [False, True])
def test_raw_items(torch, datasets, tmp_path, form, listed):
    labels = [list(pair) for pair in LABELS.items()] if listed else LABELS
    path = write_archive(tmp_path / "t", members(labels), form)
    data = datasets.ZipDataset(path, shape=SHAPE)
    assert isinstance(data, torch.utils.data.Dataset)
    assert len(data) == COUNT
    for index, number in enumerate(NUMBERS):
        image, label = data[index]
        assert (image.dtype, tuple(image.shape), label) == (torch.uint8, SHAPE, number * 7)
        assert bytes(image.flatten().tolist()) == raw(number)
    assert data[-1][1] == data[COUNT - 1][1]
    assert data[torch.tensor(3)][1] == data[3][1]
    image.add_(1)  # private memory
    assert bytes(data[COUNT - 1][0].flatten().tolist()) == raw(NUMBERS[-1])
    many = data.__getitems__([4, 0, 4, -1])
    assert [label for _, label in many] == [NUMBERS[n] * 7 for n in (4, 0, 4, -1)]
    assert data.__getitems__([]) == []
    for index in (COUNT, -COUNT - 1):
        with pytest.raises(IndexError, match="50 images"):
            data[index]
    assert "50 images" in repr(data)
    assert [label for _, label in (data[n] for n in range(COUNT))] == [n * 7 for n in NUMBERS]


def test_labels_of_any_kind_and_none(datasets, tmp_path):
    kinds = ["cat", 1.5, True, [0.1, 0.2], None, {"box": [1, 2]}, 2**70, -3, "ä\ud800", 0]
    labels = {name: kinds[n % 10] for n, name in enumerate(NAMES)}
    data = datasets.ZipDataset(write_zip(tmp_path / "t.zip", members(labels)), shape=SHAPE)
    found = [label for _, label in (data[n] for n in range(COUNT))]
    assert found == [kinds[n % 10] for n in range(COUNT)]
    assert [type(label) for label in found] == [type(kinds[n % 10]) for n in range(COUNT)]
    plain = datasets.ZipDataset(write_zip(tmp_path / "u.zip", members(None)), None, False, None)
    assert len(plain) == COUNT
    alone = datasets.ZipDataset(tmp_path / "u.zip", labels=None, shape=SHAPE)
    assert bytes(alone[0].flatten().tolist()) == raw(NUMBERS[0])


@pytest.mark.parametrize(
    ("labels", "wrong"),
    [
        (None, "no member 'dataset.json'.*labels=None"),
        ({NAMES[0]: 1}, "no label of the image '0/img_003.png'.*labels=None"),
        ("text", '"labels" must be a mapping.*labels=None'),
        (5, '"labels" must be a mapping'),
        ([1, 2], '"labels" must be a mapping'),
    ],
)
def test_labels_that_are_missing_or_wrong(datasets, tmp_path, labels, wrong):
    path = write_zip(tmp_path / "t.zip", members(labels))
    with pytest.raises(shardfeed.Error, match=wrong):
        datasets.ZipDataset(path, shape=SHAPE)
    assert len(datasets.ZipDataset(path, labels=None)) == COUNT


def test_size_mismatch_says_what_to_do(datasets, raw_zip):
    data = datasets.ZipDataset(raw_zip)
    with pytest.raises(ValueError, match=r"0/img_000\.png") as caught:
        data[0]
    for text in ("192 bytes", "(3, 256, 256)", "196608", "load_encoded=True"):
        assert text in str(caught.value)


def test_archive_without_images(datasets, tmp_path):
    with pytest.raises(shardfeed.UsageError, match="no images"):
        datasets.ZipDataset(write_zip(tmp_path / "t.zip", [("a.txt", b"")]), labels=None)


def test_encoded_items(datasets, tmp_path):
    image = pytest.importorskip("PIL.Image")
    listed = []
    for n, (suffix, mode) in enumerate(
        [("png", "RGBA"), ("PNG", "L"), ("jpg", "RGB"), ("webp", "RGB"), ("gif", "P"), ("ppm", "1")]
    ):
        encoded = io.BytesIO()
        image.new(mode, (10 + n, 5)).save(encoded, {"jpg": "JPEG"}.get(suffix, suffix))
        listed.append((f"{n}.{suffix}", encoded.getvalue()))
    listed.append(("6.raw", bytes(5)))  # nothing to decode
    path = write_zip(tmp_path / "t.zip", listed)
    data = datasets.ZipDataset(path, load_encoded=True, labels=None)
    assert [(item.mode, item.size) for item in (data[n] for n in range(len(data)))] == [
        ("RGB", (10 + n, 5)) for n in range(6)
    ]
    sizes = datasets.ZipDataset(path, lambda item: item.size, True, None)
    assert sizes.__getitems__([3, 1]) == [(13, 5), (11, 5)]
    broken = write_zip(tmp_path / "u.zip", [("a.png", b"no image")])
    with pytest.raises(shardfeed.FormatError, match=r"a\.png.*load_encoded=False"):
        datasets.ZipDataset(broken, load_encoded=True, labels=None)[0]


# ---- DataLoader ---------------------------------------------------------------------------------


def as_it_is(image):
    return image


@pytest.mark.parametrize("workers", [0, 1, 2, 8, 32])
@pytest.mark.parametrize("used", [False, True])
def test_forked_workers(torch, datasets, raw_zip, workers, used):
    data = datasets.ZipDataset(raw_zip, shape=SHAPE, transform=lambda image: image)
    if used:
        check_epoch(torch, [torch.utils.data.default_collate([item]) for item in data])
    loader = torch.utils.data.DataLoader(
        data,
        batch_size=8,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
        pin_memory=True,
        multiprocessing_context="fork" if workers else None,
        timeout=240 if workers else 0,
    )
    for _ in range(3):
        check_epoch(torch, loader)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_of_other_start_methods(torch, datasets, raw_zip, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("not on this system")
    data = datasets.ZipDataset(raw_zip, as_it_is, shape=SHAPE)
    data[0]
    loader = torch.utils.data.DataLoader(
        data,
        batch_size=8,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
        multiprocessing_context=method,
        timeout=240,
    )
    for _ in range(2):
        check_epoch(torch, loader)


def test_single_items_without_batches(torch, datasets, raw_zip):
    data = datasets.ZipDataset(raw_zip, shape=SHAPE)
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=2)
    assert [label for _, label in loader] == [n * 7 for n in NUMBERS]
    subset = torch.utils.data.Subset(data, [5, 6])
    assert [label for _, label in subset] == [NUMBERS[5] * 7, NUMBERS[6] * 7]


def test_pickle_holds_no_file_and_no_images(datasets, tmp_path):
    data = datasets.ZipDataset(write_zip(tmp_path / "t.zip", members(LABELS)), shape=SHAPE)
    pickled = pickle.dumps(data)
    assert len(pickled) < 1000 + 16 * COUNT
    copied = pickle.loads(pickled)
    assert copied[3][0].equal(data[3][0])
    assert copied[3][1] == data[3][1]


def test_fault_of_a_worker_reaches_the_parent(torch, datasets, raw_zip):
    data = datasets.ZipDataset(raw_zip)  # of another shape
    loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=1, timeout=240)
    with pytest.raises(shardfeed.UsageError, match="load_encoded=True"):
        next(iter(loader))


# ---- Import -------------------------------------------------------------------------------------


def test_package_imports_neither_torch_nor_pillow(datasets):
    program = "import sys, shardfeed; sys.exit('torch' in sys.modules or 'PIL' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_import_without_torch_says_what_to_install():
    program = "import sys; sys.modules['torch'] = None; import shardfeed.torch"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert b"pip install torch" in done.stderr
