"""`python -m shardfeed.wids.wids_bench wids|wds INDEX`: reads all samples, prints their keys."""

from __future__ import annotations

import argparse
from typing import Any

from .wids import ShardListDataset
from .wids_specs import load_dsdesc_and_resolve, urldir


def _shards(args: argparse.Namespace) -> list[dict[str, Any]]:
    shards: list[dict[str, Any]] = load_dsdesc_and_resolve(args.dataset, base=urldir(args.dataset))[
        "shardlist"
    ]
    return shards


def main_wids(args: argparse.Namespace) -> None:
    """Reads them by number."""
    dataset: ShardListDataset[Any] = ShardListDataset(_shards(args), lru_size=4, transformations=[])
    print(len(dataset))
    for number in range(len(dataset)):
        print(number, dataset[number]["__key__"])
    dataset.close()


def main_wds(args: argparse.Namespace) -> None:
    """Reads them from front to back."""
    from ..wds import WebDataset

    urls = [shard["url"] for shard in _shards(args)]
    for number, sample in enumerate(WebDataset(urls, shardshuffle=False)):
        print(number, sample["__key__"])


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m shardfeed.wids.wids_bench")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("wids", "wds"):
        commands.add_parser(name).add_argument("dataset", help="the index")
    args = parser.parse_args()
    {"wids": main_wids, "wds": main_wds}[args.command](args)


if __name__ == "__main__":
    main()
