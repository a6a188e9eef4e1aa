"""What training takes from shards of JPEGs: batches of random crops, flipped and normalized.

    python3 training.py [--python PATH]... [--images N] [--repeat N] [--only NAME]...

Every reader makes float32 batches of 64 in CHW from the same shards of photographs, made by
photographs.py, with two threads or worker processes, in a process of its own; the runs are
interleaved, and the best of each counts. Printed are images/s and CPU milliseconds an image. Worker
processes are counted; imports, and an epoch before the one that is measured, are not. One reader
of shardfeed has a transform that does nothing, in as many worker processes. A peer is run
by the first --python that can import it, and left out with a note when none can: shardfeed,
nvidia-dali-cuda120 (its CPU pipeline), torch and torchvision, webdataset and Pillow.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SIZE, BATCH, AT_ONCE, SHARDS = 224, 64, 2, 4
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PROMISED = f"jpg:image/rgb/chw/rrc={SIZE}x{SIZE}/flip=random/normalize=imagenet"

# An epoch: numbers of images in the batches.
Epoch = Callable[[], Iterator[int]]


def _shardfeed(decode: str, **transforms: Any) -> Callable[[list[str]], Epoch]:
    def prepare(paths: list[str]) -> Epoch:
        import shardfeed

        stream = shardfeed.Stream(paths, decode_threads=AT_ONCE, threads=1)

        def epoch() -> Iterator[int]:
            for batch in stream.batches(BATCH, decode=f"{decode}, cls", **transforms):
                yield batch["jpg"].shape[0]

        return epoch

    return prepare


def _nothing(row: dict[str, Any]) -> dict[str, Any]:
    return row


def _dali(paths: list[str]) -> Epoch:
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=AT_ONCE, device_id=None)
    def pipeline() -> Any:
        files, labels = fn.readers.webdataset(paths=paths, ext=["jpg", "cls"], name="reader")
        images = fn.decoders.image_random_crop(
            files, device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3]
        )
        images = fn.resize(images, size=[SIZE, SIZE], antialias=True)
        return (
            fn.crop_mirror_normalize(
                images,
                dtype=types.FLOAT,
                output_layout="CHW",
                mirror=fn.random.coin_flip(),
                mean=[255 * mean for mean in MEAN],
                std=[255 * deviation for deviation in DEVIATION],
            ),
            labels,
        )

    made = pipeline()
    made.build()
    count = made.reader_meta("reader")["epoch_size"]

    def epoch() -> Iterator[int]:
        for done in range(0, count, BATCH):
            images, _ = made.run()
            assert images.as_array().shape[1:] == (3, SIZE, SIZE)
            yield min(BATCH, count - done)

    return epoch


def _transform() -> Any:
    import torch
    from torchvision.transforms import v2

    return v2.Compose(
        [
            v2.RandomResizedCrop(SIZE, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, DEVIATION),
        ]
    )


def _workers(dataset: Any, batch: int | None) -> Epoch:
    import torch

    def epoch() -> Iterator[int]:
        for images, _ in torch.utils.data.DataLoader(
            dataset, batch_size=batch, num_workers=AT_ONCE
        ):
            yield len(images)

    return epoch


def _torchvision(paths: list[str]) -> Epoch:
    """Members of the tars by their offsets, decode_image and transforms v2 in worker processes."""
    import torch
    from torchvision.io import ImageReadMode, decode_image

    torch.set_num_threads(1)
    places = []
    for path in paths:
        with tarfile.open(path) as shard:
            places += [(path, m.offset_data, m.size) for m in shard if m.name.endswith(".jpg")]

    class Images(torch.utils.data.Dataset):
        transform = _transform()

        def __len__(self) -> int:
            return len(places)

        def __getitem__(self, number: int) -> tuple[Any, int]:
            path, offset, size = places[number]
            with open(path, "rb", buffering=0) as file:
                file.seek(offset)
                data = torch.frombuffer(bytearray(file.read(size)), dtype=torch.uint8)
            return self.transform(decode_image(data, ImageReadMode.RGB)), number

    return _workers(Images(), BATCH)


def _webdataset(paths: list[str]) -> Epoch:
    """Decoded by Pillow, then transforms v2, in worker processes."""
    import torch
    import webdataset
    from PIL import Image
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    transform = v2.Compose([v2.PILToTensor(), _transform()])

    def decoded(data: bytes) -> Any:
        return transform(Image.open(io.BytesIO(data)).convert("RGB"))

    dataset = (
        webdataset.WebDataset(paths, shardshuffle=False)
        .to_tuple("jpg", "cls")
        .map_tuple(decoded, int)
        .batched(BATCH)
    )
    return _workers(dataset, None)


TRANSFORMED = f"shardfeed, {AT_ONCE} workers"
READERS: dict[str, Callable[[list[str]], Epoch]] = {
    "shardfeed": _shardfeed(PROMISED),
    TRANSFORMED: _shardfeed(PROMISED, transform=_nothing, transform_workers=AT_ONCE),
    "shardfeed float16": _shardfeed(PROMISED.replace("rgb/", "rgb/float16/")),
    "shardfeed uint8": _shardfeed(f"jpg:image/rgb8/rrc={SIZE}x{SIZE}/flip=random"),
    "DALI on the CPU": _dali,
    "torchvision": _torchvision,
    "webdataset + PIL": _webdataset,
}
PACKAGES = {
    "DALI on the CPU": ["nvidia.dali"],
    "torchvision": ["torchvision"],
    "webdataset + PIL": ["webdataset", "torchvision", "PIL"],
}


def _cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    ticks = 0
    for process in multiprocessing.active_children():  # which stay for the next epoch
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    used = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return used + ticks / os.sysconf("SC_CLK_TCK")


def run_reader(name: str, paths: list[str]) -> dict[str, float]:
    """One epoch that is measured, after one that is not."""
    epoch = READERS[name](paths)
    sum(epoch())
    cpu, start = _cpu_seconds(), time.perf_counter()
    images = sum(epoch())
    return {
        "images": images,
        "wall": time.perf_counter() - start,
        "cpu": _cpu_seconds() - cpu,
    }


def write_shards(folder: Path, images: int) -> list[str]:
    from photographs import COUNT, photograph

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"training-{images}-{number}.tar" for number in range(SHARDS)]
    for number, path in enumerate(paths):
        if path.exists():
            continue
        with tarfile.open(path.with_suffix(".part"), "w", format=tarfile.USTAR_FORMAT) as shard:
            for key in range(number, images, SHARDS):
                fields = {"jpg": photograph(key % COUNT), "cls": b"%d" % (key % 1000)}
                for field, data in fields.items():
                    member = tarfile.TarInfo(f"{key:06d}.{field}")
                    member.size = len(data)
                    shard.addfile(member, io.BytesIO(data))
        path.with_suffix(".part").rename(path)
    return [str(path) for path in paths]


def interpreter_for(name: str, pythons: list[str]) -> str | None:
    """The first one that can import what a reader needs."""
    imports = "; ".join(f"import {package}" for package in PACKAGES.get(name, ["shardfeed, numpy"]))
    for python in pythons:
        if subprocess.run([python, "-c", imports], capture_output=True).returncode == 0:
            return python
    print(f"{name} is left out: no interpreter can '{imports}'")
    return None


def measured(python: str, name: str, paths: list[str]) -> dict[str, float]:
    done = subprocess.run(
        [python, __file__, "--reader", name, *paths], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SystemExit(f"{name}: {done.stderr.strip()[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--images", type=int, default=3000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", action="append", default=[], choices=list(READERS))
    parser.add_argument("--folder", type=Path, default=HERE / "data")
    parser.add_argument("--reader", choices=list(READERS), help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.reader:
        print(json.dumps(run_reader(given.reader, given.paths)))
        return
    paths = write_shards(given.folder, given.images)
    names = given.only or list(READERS)
    pythons = {name: interpreter_for(name, given.python or [sys.executable]) for name in names}
    results: dict[str, list[dict[str, float]]] = {}
    for _ in range(given.repeat):
        for name in names:
            if python := pythons[name]:
                result = measured(python, name, paths)
                if result["images"] != given.images:
                    raise SystemExit(f"{name}: {result['images']} images, not {given.images}")
                results.setdefault(name, []).append(result)
    best = {
        name: (min(run["wall"] for run in runs), min(run["cpu"] for run in runs))
        for name, runs in results.items()
    }
    print(f"{'reader':20} {'images/s':>9} {'CPU ms/image':>13} {'CPU / shardfeed':>16}")
    for name, (wall, cpu) in best.items():
        relative = f"{cpu / best['shardfeed'][1]:.2f}" if "shardfeed" in best else ""
        rate, each = given.images / wall, 1000 * cpu / given.images
        print(f"{name:20} {rate:9.0f} {each:13.3f} {relative:>16}")
    if {"shardfeed", "DALI on the CPU"} <= best.keys():
        share = best["shardfeed"][1] / best["DALI on the CPU"][1]
        verdict = "reached" if share <= 0.6 else "missed"
        print(f"at most 0.6 of DALI's CPU time: {share:.2f}, {verdict}")
    if {"shardfeed", TRANSFORMED} <= best.keys():
        share = best["shardfeed"][0] / best[TRANSFORMED][0]
        verdict = "reached" if share >= 0.8 else "missed"
        print(f"0.8 of the images/s with a transform that does nothing: {share:.2f}, {verdict}")
    if {"shardfeed", "torchvision"} <= best.keys():
        times = best["torchvision"][0] / best["shardfeed"][0]
        print(f"2 times torchvision: {times:.2f}, {'reached' if times >= 2 else 'missed'}")
    if {"shardfeed", "webdataset + PIL"} <= best.keys():
        times = best["webdataset + PIL"][0] / best["shardfeed"][0]
        print(f"3 times webdataset + PIL: {times:.2f}, {'reached' if times >= 3 else 'missed'}")


if __name__ == "__main__":
    main()
