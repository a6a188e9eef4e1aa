"""Trains on all ranks that are started, and continues with any other number of them.

torchrun --nproc-per-node=2 train_ranks.py URL...
"""

import os
import sys

import shardfeed.torch
import torch
import torch.distributed as dist

EPOCHS, BATCH, EVERY = int(os.environ.get("EPOCHS", "3")), 32, 20
CHECKPOINT = "last.pt"

if "RANK" not in os.environ:  # started by srun
    names = {"RANK": "PROCID", "WORLD_SIZE": "NTASKS", "LOCAL_RANK": "LOCALID"}
    os.environ.update({name: os.environ[f"SLURM_{theirs}"] for name, theirs in names.items()})
cuda = torch.cuda.is_available()
dist.init_process_group("nccl" if cuda else "gloo")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")

# Batches are dealt out by the indexes of shards (shardfeed index URL... makes them), so that all
# ranks have as many, and a checkpoint is good for any number of them up to lanes.
batches = shardfeed.torch.loader(
    sys.argv[1:],
    batch=BATCH,
    decode="png:image/l, cls:int",
    by_index=True,
    lanes=64,
    shuffle=1000,
    seed=1,
    even="drop",
    last="drop",
    device=device if cuda else None,
)
model = torch.nn.Linear(8 * 8, 10).to(device)
trained = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(trained.parameters(), lr=0.5)
if os.path.exists(CHECKPOINT):
    saved = torch.load(CHECKPOINT, map_location=device, weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    batches.load_state_dict(saved["data"])


def save() -> None:
    """On every rank, since the state of the data is gathered from all."""
    state = shardfeed.torch.gather_state(batches)
    if dist.get_rank() == 0:
        parts = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "data": state}
        torch.save(parts, CHECKPOINT + ".new")
        os.replace(CHECKPOINT + ".new", CHECKPOINT)


steps = right = seen = 0
while batches.epoch < EPOCHS:
    for batch in batches:
        optimizer.zero_grad()
        scores = trained(batch["png"].flatten(1))
        torch.nn.functional.cross_entropy(scores, batch["cls"]).backward()
        optimizer.step()
        steps += 1
        right += int((scores.argmax(1) == batch["cls"]).sum())
        seen += len(scores)
        if steps % EVERY == 0:
            save()
    save()
totals = torch.tensor([right, seen], device=device)
dist.all_reduce(totals)
if dist.get_rank() == 0:
    right, seen = totals.tolist()
    print(f"{dist.get_world_size()} ranks, {steps} steps each, {right / max(seen, 1):.2f} right")
dist.destroy_process_group()
