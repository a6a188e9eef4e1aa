"""Random access to samples of tar shards, for programs that import wids.

    from shardfeed import wids

    dataset = wids.ShardListDataset("train.json")
    sampler = wids.DistributedChunkedSampler(dataset, chunksize=1000)
    loader = torch.utils.data.DataLoader(dataset, sampler=sampler, batch_size=64)

`train.json` is made by `python -m shardfeed.wids create train-{000000..000099}.tar -o train.json`.
"""

from .wids import ChunkedSampler, DistributedChunkedSampler, ShardedSampler, ShardListDataset

__version__ = "0.1.11"
__all__ = ["ChunkedSampler", "DistributedChunkedSampler", "ShardListDataset", "ShardedSampler"]
