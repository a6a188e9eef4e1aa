"""Trains a small model on images in shards, in several processes, as ImageNet programs do.

    python examples/wds/imagenet.py 'train-{000..007}.tar' --world-size 2 --epochs 2

Each process reads its own shards; all of them see the same number of batches. With --package
webdataset the same program runs with the package webdataset.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import nn


def augment(image: torch.Tensor) -> torch.Tensor:
    """Half of the pixels: what a real program does here is its own."""
    return image[:, ::2, ::2].contiguous()


def identity(value: Any) -> Any:
    """The value."""
    return value


def make_loader(wds: Any, options: argparse.Namespace) -> Any:
    """The batches of a process."""
    dataset = wds.WebDataset(
        options.shards, shardshuffle=100, seed=options.seed, nodesplitter=wds.split_by_node
    )
    dataset = (
        dataset.shuffle(50, initial=10, seed=options.seed)
        .decode("torchrgb")
        .to_tuple("jpg;png", "cls")
        .map_tuple(augment, identity)
        .batched(8)
    )
    loader = wds.WebLoader(dataset, batch_size=None, num_workers=options.workers)
    return loader.unbatched().shuffle(20, seed=options.seed).batched(8).with_epoch(options.steps)


def train(rank: int, options: argparse.Namespace) -> None:
    """What each process does."""
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(options.world_size))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    wds = importlib.import_module(options.package)
    loader = make_loader(wds, options)
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 10))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = hashlib.sha256()
    for _ in range(options.epochs):
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), torch.as_tensor(labels))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen.update(images.numpy().tobytes())
    digests: list[Any] = [None] * options.world_size
    dist.all_gather_object(digests, seen.hexdigest())
    if rank == 0:
        print(json.dumps({"loss": round(loss.item(), 4), "batches": digests}))
    dist.destroy_process_group()


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shards", help="the shards, with braces")
    parser.add_argument("--world-size", type=int, default=2)
    parser.add_argument("--workers", type=int, default=0, help="of each process")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4, help="batches of an epoch and a process")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--port", type=int, default=29581)
    parser.add_argument("--package", default="shardfeed.wds", help="or webdataset")
    options = parser.parse_args()
    # A forked process ends without finalizing the interpreter: threads of gloo that still run
    # could abort it there.
    torch.multiprocessing.start_processes(
        train, (options,), nprocs=options.world_size, start_method="fork"
    )


if __name__ == "__main__":
    main()
