"""What test_wds_open_clip.py runs: the real open_clip over one of the packages.

    open_clip_runs.py PACKAGE batches CASES  # the batches of get_wds_dataset, for cases in JSON
    open_clip_runs.py PACKAGE train RANKS ARGUMENT...  # open_clip_train.main

PACKAGE is shardfeed.wds, or the folder with the webdataset that open_clip asks for.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import random
import runpy
import sys
import time
from pathlib import Path
from typing import Any

import open_clip
import torch


def use(package: str) -> None:
    """Decides what `import webdataset` means in this process."""
    assert "webdataset" not in sys.modules
    if package == "shardfeed.wds":
        import shardfeed.wds

        shardfeed.wds.install()
    else:
        sys.path.insert(0, package)


def digest(tensor: Any) -> str:
    return hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest()[:16]


# ---- Batches ----


def batches_of(case: dict[str, Any]) -> dict[str, Any]:
    """What one data set of open_clip gives, batch by batch, for some epochs."""
    from open_clip_train.data import get_wds_dataset
    from open_clip_train.params import parse_args

    os.environ.update(case.get("environ", {}))
    options = parse_args(case["arguments"])
    options.world_size = int(os.environ.get("WORLD_SIZE", "1"))
    torch.manual_seed(7)
    random.seed(7)
    is_train = options.train_data is not None
    made = get_wds_dataset(
        options,
        open_clip.image_transform(16, is_train=is_train),
        is_train=is_train,
        tokenizer=functools.partial(open_clip.tokenize, context_length=12),
    )
    epochs = []
    for epoch in range(2):
        made.set_epoch(epoch)
        epochs.append([described(*batch) for batch in made.dataloader])
    for name in case.get("environ", {}):
        del os.environ[name]
    loader = made.dataloader
    return {
        "epochs": epochs,
        "num_batches": loader.num_batches,
        "num_samples": loader.num_samples,
    }


def described(images: Any, texts: Any) -> dict[str, Any]:
    """A batch: its types, and caption and content of each of its rows."""
    shape = [str(images.dtype), str(texts.dtype), *images.shape[1:], *texts.shape[1:]]
    captions = [open_clip.decode(row[row != 0][1:-1]).strip() for row in texts]
    return {"shape": shape, "rows": [[c, digest(i)] for c, i in zip(captions, images)]}


def run_batches(cases: str) -> dict[str, Any]:
    import webdataset

    # The shuffle of samples is seeded with os.getpid() + time.time().
    time.time = lambda: 2e9 - os.getpid()
    done = {name: batches_of(case) for name, case in json.loads(cases).items()}
    return {"package": webdataset.__name__, "cases": done}


# ---- Training ----


def run_training(package: str, ranks: int, arguments: list[str]) -> dict[str, Any]:
    """Trains, each rank in a process, and says what came out of it."""
    children = []
    for rank in range(ranks if ranks > 1 else 0):
        child = os.fork()
        if child == 0:
            try:
                os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks))
                meeting = f"file://{Path('meeting').absolute()}?rank={rank}&world_size={ranks}"
                train(package, [*arguments, "--dist-url", meeting])
                os._exit(0)
            except BaseException:
                import traceback

                traceback.print_exc()
                os._exit(1)
        children.append(child)
    if not children:
        train(package, arguments)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    (folder,) = Path("logs").iterdir()
    weights = torch.load(folder / "checkpoints" / "epoch_1.pt", weights_only=True)["state_dict"]
    log = (folder / "out.log").read_text()
    results = folder / "checkpoints" / "results.jsonl"
    return {
        "weights": {name.removeprefix("module."): digest(w) for name, w in weights.items()},
        "losses": [
            line.rpartition("Loss: ")[2] for line in log.splitlines() if "Train Epoch" in line
        ],
        "results": json.loads(results.read_text()) if results.exists() else None,
    }


def train(package: str, arguments: list[str]) -> None:
    """open_clip_train.main as a program; over shardfeed started by python -m shardfeed.wds."""
    import open_clip_train.data

    # The shuffle of samples has another order at each time: none here.
    open_clip_train.data._SAMPLE_SHUFFLE_SIZE = 1
    # open_clip gives device_ids to it, which it refuses for models on the CPU.
    distributed = torch.nn.parallel.DistributedDataParallel
    torch.nn.parallel.DistributedDataParallel = lambda model, device_ids: distributed(model)
    program = "open_clip_train.main"
    if package == "shardfeed.wds":
        sys.argv = [package, program, *arguments]
        runpy.run_module(package, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [program, *arguments]
        runpy.run_module(program, run_name="__main__", alter_sys=True)


def main() -> None:
    """The program."""
    package, action, *words = sys.argv[1:]
    use(package)
    if action == "batches":
        print(json.dumps(run_batches(words[0])))
    else:
        print(json.dumps(run_training(package, int(words[0]), words[1:])))


if __name__ == "__main__":
    main()
