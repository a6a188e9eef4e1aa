"""One rank of a training across hosts: DistributedDataParallel over gloo, on rows of a stream.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=... MASTER_PORT=... python feed_trainer.py OPTIONS URL...

OPTIONS is JSON for the stream. It prints a line for each batch, with the keys and a checksum of the
columns, and at the end one with a checksum of the weights. After every PAUSE batches (a variable of
the environment) it prints `pause`, and waits for a line on standard input.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys

import numpy as np
import shardfeed
import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

BATCH = 16


def checksum(*arrays: np.ndarray) -> str:
    """Of their bytes."""
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:16]


def main() -> None:
    """Trains one rank."""
    options, urls = json.loads(sys.argv[1]), sys.argv[2:]
    pause = int(os.environ.get("PAUSE", "0"))
    torch.manual_seed(1)
    torch.distributed.init_process_group("gloo")
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    with shardfeed.Stream(urls, rank=rank, world_size=world, **options) as stream:
        model = optimizer = None
        for number, batch in enumerate(stream.batches(BATCH)):
            rows, labels = np.asarray(batch["npy"]), np.asarray(batch["cls"])
            print(number, checksum(rows, labels), *batch["__key__"], flush=True)
            pixels = torch.from_numpy(rows.reshape(len(rows), -1)).float() / 255
            if model is None or optimizer is None:
                model = DistributedDataParallel(torch.nn.Linear(pixels.shape[1], 1))
                optimizer = torch.optim.SGD(model.parameters(), 1e-4)
            loss = (model(pixels)[:, 0] - torch.from_numpy(labels).float()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if pause and number % pause == pause - 1:
                print("pause", flush=True)
                sys.stdin.readline()
    assert model is not None
    weights = [parameter.detach().numpy() for parameter in model.parameters()]
    print("weights", checksum(*weights), flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
