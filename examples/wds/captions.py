"""Pairs of images and captions in the way of the programs that train CLIP models.

    python examples/wds/captions.py 'pairs-{000..003}.tar' --resampled

Shards are split over processes and workers, or drawn with replacement; members that cannot be read
are warned about; samples without a caption or an image are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import random
import sys
from typing import Any


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shards", help="the shards, with braces")
    parser.add_argument("--resampled", action="store_true")
    parser.add_argument("--batches", type=int, default=6, help="of an epoch")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--package", default="shardfeed.wds", help="or webdataset")
    options = parser.parse_args()
    wds = importlib.import_module(options.package)
    # As libraries reach below the surface of the package.
    filters = importlib.import_module(f"{options.package}.filters")
    tariterators = importlib.import_module(f"{options.package}.tariterators")
    shuffle_samples, keys_of = filters._shuffle, tariterators.base_plus_ext

    class EpochShuffle(wds.PipelineStage):  # type: ignore[misc, name-defined]
        """A shuffle of shards by the epoch, which the program counts."""

        def __init__(self, bufsize: int, initial: int, seed: int) -> None:
            self.bufsize, self.initial, self.seed, self.epoch = bufsize, initial, seed, -1

        def run(self, src: Any) -> Any:
            self.epoch += 1
            rng = random.Random(self.seed + self.epoch)
            return shuffle_samples(src, self.bufsize, self.initial, rng)

    def warn(exn: Exception) -> bool:
        print(f"left out: {type(exn).__name__}", file=sys.stderr)
        return True

    def grouped(members: Any) -> Any:
        """Samples; a name that comes twice begins a new one."""
        current: dict[str, Any] | None = None
        for member in members:
            if not member:
                continue
            prefix, suffix = keys_of(member["fname"])
            if prefix is None:
                continue
            new = current is None or prefix != current["__key__"] or suffix in current
            if new:
                if tariterators.valid_sample(current):
                    yield current
                current = {"__key__": prefix, "__url__": member["__url__"]}
            assert current is not None
            current[suffix.lower()] = member["data"]
        if tariterators.valid_sample(current):
            yield current

    def samples_of(source: Any) -> Any:
        streams = tariterators.url_opener(source, handler=warn)
        return grouped(tariterators.tar_file_expander(streams, handler=warn))

    def is_complete(sample: dict[str, Any]) -> bool:
        return "txt" in sample and any(name in sample for name in ("png", "jpg", "jpeg", "webp"))

    def tokens(text: str) -> list[int]:
        return [len(word) for word in text.split()][:8]

    if options.resampled:
        stages = [wds.ResampledShards(options.shards, deterministic=True, seed=11)]
    else:
        stages = [
            wds.SimpleShardList(options.shards),
            EpochShuffle(bufsize=2000, initial=500, seed=11),
            wds.split_by_node,
            wds.split_by_worker,
        ]
    stages += [
        samples_of,
        wds.shuffle(bufsize=50, initial=10, rng=random.Random(5)),
        wds.select(is_complete),
        wds.decode("rgb8", handler=warn),
        wds.rename(image="jpg;png;jpeg;webp", text="txt"),
        wds.map_dict(image=lambda image: image[:8, :8], text=tokens),
        wds.to_tuple("image", "text"),
        wds.batched(4, partial=not options.resampled),
    ]
    dataset = wds.DataPipeline(*stages).with_epoch(options.batches)
    epochs = []
    for _ in range(options.epochs):
        seen = hashlib.sha256()
        count = 0
        for images, texts in dataset:
            seen.update(images.tobytes() + json.dumps(texts).encode())
            count += len(texts)
        epochs.append({"samples": count, "content": seen.hexdigest()})
    print(json.dumps(epochs))


if __name__ == "__main__":
    main()
