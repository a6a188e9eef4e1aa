"""Random access to images for training: a folder, zipfile in every worker, and shardfeed.

python zip_images.py [--images 2000] [--size 128] [--workers 2] [--folder FOLDER]

Makes JPEG images in a folder and the same ones in a ZIP file with labels, and reads them shuffled:
their bytes alone, then decoded through torch.utils.data.DataLoader. Needs Pillow and numpy to make
images and PyTorch for the second part; without them, random bytes take the place of images.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import tempfile
import time
import zipfile
from pathlib import Path

import shardfeed

try:
    import numpy
    from PIL import Image
except ModuleNotFoundError as missing:
    print(f"{missing.name} is not installed: random bytes instead of images, nothing is decoded")
    Image = None
try:
    import torch
    from torch.utils.data import DataLoader, Dataset
except ModuleNotFoundError:
    print("torch is not installed: bytes are read, but not through DataLoader")
    torch = None
    Dataset = object


def make_images(place: Path, count: int, size: int) -> tuple[Path, Path]:
    """A folder of images, and a ZIP file of the same with their labels."""
    folder, archive = place / "images", place / "images.zip"
    folder.mkdir()
    labels = {}
    with zipfile.ZipFile(archive, "w") as file:
        for number in range(count):
            name = f"img_{number:06d}.jpg"
            labels[name] = number % 10
            data = one_image(number, size)
            (folder / name).write_bytes(data)
            file.writestr(name, data)
        file.writestr("dataset.json", json.dumps({"labels": labels}))
    return folder, archive


def one_image(number: int, size: int) -> bytes:
    """A smooth pattern, as JPEG; it differs from number to number."""
    if Image is None:
        return random.Random(number).randbytes(size * size // 4)
    waves = numpy.arange(size) * (1 + number % 7) / size * 3.14
    pixels = numpy.sin(waves[:, None, None] + number + numpy.arange(3)) * numpy.cos(waves)[:, None]
    encoded = io.BytesIO()
    Image.fromarray((pixels * 127 + 128).astype("uint8")).save(encoded, "JPEG")
    return encoded.getvalue()


def to_tensor(image: Image.Image) -> torch.Tensor:
    """An image as numbers that can be put into a batch."""
    return torch.from_numpy(numpy.array(image)).permute(2, 0, 1)


class FolderImages(Dataset):
    """One file for each image."""

    def __init__(self, folder: Path, labels: dict[str, int]) -> None:
        self.folder, self.labels = folder, labels
        self.names = sorted(name.name for name in folder.iterdir())

    def __len__(self) -> int:
        return len(self.names)

    def read(self, index: int) -> bytes:
        """The bytes of one image."""
        return (self.folder / self.names[index]).read_bytes()

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = Image.open(io.BytesIO(self.read(index))).convert("RGB")
        return to_tensor(image), self.labels[self.names[index]]


class ZipfileImages(FolderImages):
    """Python's zipfile, opened by each process for itself.

    Forked workers that share one ZipFile share its file offset and read each other's bytes.
    """

    def __init__(self, archive: Path, labels: dict[str, int]) -> None:
        self.archive, self.labels = archive, labels
        self.process, self.file = None, None
        self.names = sorted(labels)

    def read(self, index: int) -> bytes:
        """The bytes of one image."""
        if self.process != os.getpid():
            self.process, self.file = os.getpid(), zipfile.ZipFile(self.archive)
        return self.file.read(self.names[index])


def report(name: str, count: int, seconds: float) -> None:
    """One row of the table."""
    print(f"{name:44}{count / seconds:12,.0f} images/s")


def read_bytes(folder: FolderImages, unzipped: ZipfileImages, archive: shardfeed.Archive) -> None:
    """Times the bytes alone, in one process; the best of three rounds counts."""
    order = list(range(len(folder)))
    random.Random(1).shuffle(order)
    positions = [archive[name].position for name in folder.names]

    def one_by_one() -> None:
        for index in order:
            archive.read(positions[index])

    def batches() -> None:
        for first in range(0, len(order), 256):
            archive.read_many([positions[index] for index in order[first : first + 256]])

    def each(read: object) -> None:
        for index in order:
            read(index)

    for name, work in (
        ("bytes from a folder", lambda: each(folder.read)),
        ("bytes with zipfile", lambda: each(unzipped.read)),
        ("bytes with shardfeed, one by one", one_by_one),
        ("bytes with shardfeed, batches of 256", batches),
    ):
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
        report(name, len(order), min(seconds))


def make_loader(data: Dataset, workers: int, batch_size: int = 64) -> DataLoader:
    """A DataLoader whose workers continue from epoch to epoch."""
    return DataLoader(
        data,
        batch_size=batch_size,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
    )


def run_epoch(loader: DataLoader) -> None:
    """Takes every image once, and does nothing with it."""
    count = sum(len(labels) for _, labels in loader)
    assert count == len(loader.dataset)


def train(name: str, data: Dataset, workers: int) -> None:
    """Times one epoch of a DataLoader, without the start of its workers."""
    loader = make_loader(data, workers)
    run_epoch(loader)
    start = time.perf_counter()
    run_epoch(loader)
    report(f"{name}, decoded, {workers} workers", len(data), time.perf_counter() - start)


def main() -> None:
    """Makes the images and compares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--size", type=int, default=128, help="width and height (128)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", help="where to make the images (a temporary folder)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as place:
        folder, path = make_images(Path(place), arguments.images, arguments.size)
        with shardfeed.Archive(path) as archive:
            labels = json.loads(archive.read("dataset.json"))["labels"]
            files, unzipped = FolderImages(folder, labels), ZipfileImages(path, labels)
            read_bytes(files, unzipped, archive)
        if torch is None or Image is None:
            return
        from shardfeed.torch import ZipDataset

        train("folder", files, arguments.workers)
        train("zipfile", unzipped, arguments.workers)
        train("shardfeed", ZipDataset(path, to_tensor, load_encoded=True), arguments.workers)


if __name__ == "__main__":
    main()
