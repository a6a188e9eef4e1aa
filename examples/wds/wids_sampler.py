"""Trains with random access to samples of tar shards, in two processes.

    python examples/wds/wids_sampler.py --make shards
    python examples/wds/wids_sampler.py shards/index.json --processes 2 --epochs 3

Each process reads a part of its own, in an order that keeps it in few shards. With --package wids
the same program runs with the package wids.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import os
import random
import socket
import tarfile
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader


def make(folder: Path, shards: int, samples: int) -> None:
    """Shards of points, and whether they lie inside of a circle; and their index."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(0)
    listed = []
    for shard in range(shards):
        path = folder / f"points-{shard:04d}.tar"
        with tarfile.open(path, "w") as tar:
            for number in range(samples):
                x, y = chance.uniform(-1, 1), chance.uniform(-1, 1)
                fields = {"json": json.dumps([x, y]), "cls": str(int(x * x + y * y < 0.5))}
                for name, text in fields.items():
                    info = tarfile.TarInfo(f"{shard:04d}{number:06d}.{name}")
                    info.size = len(text)
                    tar.addfile(info, io.BytesIO(text.encode()))
        listed.append({"url": path.name, "nsamples": samples})
    index = {"wids_version": 1, "name": "points", "shardlist": listed}
    (folder / "index.json").write_text(json.dumps(index))


def decode(sample: dict[str, Any]) -> tuple[torch.Tensor, float, str]:
    """What the model takes, and the key."""
    point = torch.tensor(json.loads(sample[".json"].read()))
    return point, float(sample[".cls"].read()), sample["__key__"]


def train(rank: int, port: int, options: argparse.Namespace) -> None:
    """One process of the training."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=options.processes)
    torch.manual_seed(0)
    wids = importlib.import_module(options.package)

    dataset = wids.ShardListDataset(
        options.index, transformations=[decode], cache_dir=options.cache_dir
    )
    sampler = wids.DistributedChunkedSampler(dataset, chunksize=100, shuffle=True, seed=7)
    loader = DataLoader(dataset, batch_size=20, sampler=sampler, num_workers=options.workers)

    layers = [torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        keys: list[str] = []
        total = torch.zeros(2)
        for points, labels, names in loader:
            logits = model(points).squeeze(1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            keys += names
            total += torch.tensor([loss.item() * len(names), len(names)])
        dist.all_reduce(total)
        report = {"rank": rank, "epoch": epoch, "loss": round((total[0] / total[1]).item(), 4)}
        report |= {"samples": len(keys), "first": keys[:3], "last": keys[-3:]}
        reports: list[Any] = [None] * options.processes
        dist.all_gather_object(reports, report)
        if rank == 0:
            print("\n".join(map(json.dumps, reports)), flush=True)
    dist.destroy_process_group()


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("index", nargs="?", help="the index of the shards")
    parser.add_argument("--make", type=Path, metavar="FOLDER", help="make shards, and end")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--samples", type=int, default=100, help="of each shard")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--cache-dir")
    parser.add_argument("--package", default="shardfeed.wids", help="or wids")
    options = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)
    if options.make:
        make(options.make, options.shards, options.samples)
        return
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    # A forked process ends without finalizing the interpreter: threads of gloo that still run
    # could abort it there.
    mp.start_processes(train, (port, options), nprocs=options.processes, start_method="fork")


if __name__ == "__main__":
    main()
