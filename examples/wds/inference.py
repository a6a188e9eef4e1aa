"""Runs a model over all samples of shards once, in workers, and writes what it says of each.

python examples/wds/inference.py 'test-{0..3}.tar' result.tsv --workers 2
"""

from __future__ import annotations

import argparse
import importlib

import torch
from torch import nn


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shards", help="the shards, with braces")
    parser.add_argument("target", help="a text file: key, tab, class")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--package", default="shardfeed.wds", help="or webdataset")
    options = parser.parse_args()
    wds = importlib.import_module(options.package)
    torch.manual_seed(0)
    model = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 10)).eval()
    dataset = (
        wds.WebDataset(options.shards, shardshuffle=False)
        .decode("torchrgb")
        .to_tuple("__key__", "jpg;png")
        .batched(16)
    )
    loader = wds.WebLoader(dataset, batch_size=None, num_workers=options.workers)
    with open(options.target, "w") as target, torch.no_grad():
        for keys, images in loader:
            for key, label in zip(keys, model(images).argmax(dim=1).tolist()):
                target.write(f"{key}\t{label}\n")


if __name__ == "__main__":
    main()
