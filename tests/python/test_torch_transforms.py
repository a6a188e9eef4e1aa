"""Transforms of shardfeed.torch.loader, and those of other packages, as they are."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

import shardfeed.torch  # noqa: E402
import transforms as given  # noqa: E402
from batches import rows_tar  # noqa: E402
from transforms import DECODE, PLACES, ROWS, SIDE  # noqa: E402

everywhere = pytest.mark.parametrize("place", PLACES, ids=["caller", "threads", "workers"])
ORDERED = [list(range(first, first + 8)) for first in range(0, ROWS, 8)]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return given.rows(tmp_path / "rows.tar")


@pytest.fixture
def images(tmp_path: Path) -> str:
    """A shard of images of unequal size, with masks."""
    image = pytest.importorskip("PIL.Image")
    made = []
    for number in range(12):
        pixels = np.random.default_rng(number).integers(0, 256, (60 + number, 80, 3), "u1")
        files = {}
        for field, array in (("jpg", pixels), ("seg.png", pixels[:, :, 0] // 128)):
            file = io.BytesIO()
            image.fromarray(array).save(file, "JPEG" if field == "jpg" else "PNG")
            files[field] = file.getvalue()
        made.append({**files, "cls": b"%d" % number})
    return rows_tar(tmp_path / "images.tar", made)


def halved(row: dict[str, Any]) -> dict[str, Any] | None:
    assert isinstance(row["x.npy"], torch.Tensor)
    assert not isinstance(row["cls"], torch.Tensor)
    if row["cls"] == 3:
        return None
    return {"half": row["x.npy"] / 2, "cls": row["cls"], "label": torch.tensor(row["cls"])}


def pair(batch: dict[str, Any]) -> Any:
    assert all(isinstance(value, torch.Tensor) for value in batch.values())
    return batch["half"].transpose(1, 2), {"labels": batch["label"]}, "text"


@everywhere
def test_a_loader_with_a_transform(url, place):
    batches = shardfeed.torch.loader(
        url, batch=8, decode=DECODE, transform=halved, keys=True, **place
    )
    read = list(batches)
    assert [b["cls"].tolist() for b in read] == [[n for n in b if n != 3] for b in ORDERED]
    for batch in read:
        assert batch["half"].dtype == torch.float32
        assert bool((batch["half"] * 2 == batch["cls"].reshape(-1, 1, 1)).all())
        assert batch["label"].dtype == torch.int64
        assert batch["__key__"] == [f"{n:06d}" for n in batch["cls"].tolist()]
    assert batches.stats()["dropped_samples"] == 1
    batches.close()


@everywhere
def test_a_loader_with_a_batch_transform(url, place):
    batches = shardfeed.torch.loader(
        url, batch=8, decode=DECODE, transform=halved, batch_transform=pair, device="cpu", **place
    )
    for halves, labels, text in batches:
        assert bool((halves * 2 == labels["labels"].reshape(-1, 1, 1)).all())
        assert halves.shape[1:] == (SIDE, SIDE)
        assert text == "text"
    batches.close()


@everywhere
def test_a_loader_resumes_in_the_middle(url, place):
    def loader() -> Any:
        return shardfeed.torch.loader(
            url, batch=8, decode=DECODE, shuffle=20, seed=1, transform=halved, **place
        )

    whole, states = [], []
    with loader() as batches:
        for batch in batches:
            whole.append(batch["cls"].tolist())
            states.append(batches.state_dict())
    with loader() as resumed:
        for count in (1, 4):
            resumed.load_state_dict(states[count - 1])
            assert [batch["cls"].tolist() for batch in resumed] == whole[count:]


def test_the_stream_has_a_transform_of_its_own(url):
    stream = shardfeed.torch.Stream(url, batch=8, decode=DECODE, transform=given.same)
    with pytest.raises(shardfeed.UsageError, match="batch_transform"):
        shardfeed.torch.loader(stream)


# ---- Other packages ----------------------------------------------------------------------------


def test_torchvision_as_it_is(images):
    v2 = pytest.importorskip("torchvision.transforms.v2")
    augment = v2.Compose(
        [
            v2.RandomResizedCrop(32, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.5] * 3, [0.5] * 3),
        ]
    )

    def epoch(workers: int) -> list[Any]:
        with shardfeed.torch.loader(
            images,
            batch=4,
            decode="jpg:image/rgb8/chw, cls:int",
            ragged="offsets",
            transform=augment,
            transform_workers=workers,
            seed=3,
        ) as batches:
            return list(batches)

    one, three = epoch(1), epoch(3)
    for batch, other in zip(one, three):
        assert batch["jpg"].shape == (4, 3, 32, 32)
        assert batch["jpg"].dtype == torch.float32
        assert batch["cls"].dtype == torch.int64
        # The generators are seeded for each sample: what is drawn does not depend on workers.
        assert torch.equal(batch["jpg"], other["jpg"])
    assert [n for batch in one for n in batch["cls"].tolist()] == list(range(12))
    assert len(list(epoch(0))) == 3


def test_masks_with_torchvision(images):
    v2 = pytest.importorskip("torchvision.transforms.v2")
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    crop = v2.RandomCrop(40)

    def both(row: dict[str, Any]) -> dict[str, Any]:
        image, mask = crop(tv_tensors.Image(row["jpg"]), tv_tensors.Mask(row["seg.png"]))
        return {"image": image, "mask": mask, "cls": row["cls"]}

    for place in PLACES:
        with shardfeed.torch.loader(
            images,
            batch=4,
            decode="jpg:image/rgb8/chw, seg.png:image/l8, cls:int",
            ragged="offsets",
            transform=both,
            **place,
        ) as batches:
            for batch in batches:
                assert batch["image"].shape == (4, 3, 40, 40)
                assert batch["mask"].shape[0] == 4
                assert type(batch["image"]) is torch.Tensor


def test_albumentations_as_it_is(images):
    augmentations = pytest.importorskip("albumentations")
    augment = augmentations.Compose(
        [
            augmentations.RandomResizedCrop((32, 32)),
            augmentations.HorizontalFlip(),
            augmentations.Normalize(),
        ]
    )

    def made(row: dict[str, Any]) -> dict[str, Any]:
        augment.set_random_seed(row["__seed__"] % 2**32)
        done = augment(image=row["jpg"], mask=row["seg.png"].reshape(row["jpg"].shape[:2]))
        return {"image": done["image"], "mask": done["mask"], "cls": row["cls"]}

    epochs = []
    for place in PLACES:
        if "transform_threads" in place:
            continue  # a Compose serves one thread
        with shardfeed.Stream(images, seed=2) as stream:
            read = list(
                stream.batches(
                    4,
                    decode="jpg:image/rgb8, seg.png:image/l8, cls:int",
                    ragged="offsets",
                    transform=made,
                    **place,
                )
            )
        assert [batch["image"].shape for batch in read] == [(4, 32, 32, 3)] * 3
        assert [batch["mask"].dtype for batch in read] == [np.uint8] * 3
        epochs.append(read)
    for one, other in zip(*epochs):
        assert (one["image"] == other["image"]).all()
        assert (one["mask"] == other["mask"]).all()


def test_kornia_on_batches(images):
    augmentation = pytest.importorskip("kornia.augmentation")
    augment = torch.nn.Sequential(
        augmentation.RandomHorizontalFlip(p=0.5), augmentation.RandomRotation(20.0)
    )

    def made(batch: dict[str, Any]) -> dict[str, Any]:
        return {"jpg": augment(batch["jpg"]), "cls": batch["cls"]}

    for place in PLACES:
        with shardfeed.torch.loader(
            images,
            batch=4,
            decode="jpg:image/rgb/chw/crop=32x32, cls:int",
            batch_transform=made,
            **place,
        ) as batches:
            read = list(batches)
        assert [batch["jpg"].shape for batch in read] == [(4, 3, 32, 32)] * 3
        assert [n for batch in read for n in batch["cls"].tolist()] == list(range(12))
