"""`ShardListDataset`: the samples of many tars, by number."""

from __future__ import annotations

import base64
import hashlib
import io
import operator
import os
import sys
import warnings
from bisect import bisect_right
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Callable, TypeVar
from urllib.parse import urlparse

from ._bases import Dataset, Sampler
from ._localnames import DEFAULT_DIR, CacheLocalname, DefaultLocalname, hash_localname
from ._samplers import (
    ChunkedSampler,
    DistributedChunkedSampler,
    ShardedSampler,
    ShardListSampler,
    intersect_range,
    intersect_ranges,
    iterate_ranges,
    lengths_to_ranges,
)
from ._tar_samples import (
    IndexedTarSamples,
    compute_file_md5sum,
    compute_num_samples,
    group_by_key,
    splitname,
)
from .wids_decode import default_decoder
from .wids_dl import download_and_open, local_path
from .wids_lru import LRUCache
from .wids_specs import load_dsdesc_and_resolve, urldir

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

_AGAIN = "help: make the index again with python -m shardfeed.wids create"


class LRUShards:
    """The tars that were used last, of which at most `lru_size` are open.

    localname: the local file of a URL. in_place: local tars are opened where they are. Files are
    never deleted, whatever `keep` says.
    """

    def __init__(
        self,
        lru_size: int,
        keep: bool = False,
        localname: Callable[[str], str] = DefaultLocalname(),  # has no state
        in_place: bool = False,
    ) -> None:
        self.localname = localname
        self.in_place = in_place
        self.lru = LRUCache(lru_size, release_handler=self.release_handler)
        self._urls: dict[str, str] = {}  # of local files
        self.reset_stats()

    def reset_stats(self) -> None:
        """Counts from zero again."""
        self.accesses = 0
        self.misses = 0
        self.last_missed = False

    def __len__(self) -> int:
        return len(self.lru)

    def release_handler(self, key: Any, value: Any) -> None:
        """Closes a tar that is dropped."""
        value.close()

    def clear(self) -> None:
        """Closes all tars."""
        self.lru.clear()

    def get_shard(self, url: str, desc: dict[str, Any] | None = None) -> IndexedTarSamples:
        """The samples of the tar at a URL. desc: what the index says of it, which must be true."""
        assert isinstance(url, str), f"{type(url)}: a URL is a str"
        self.accesses += 1
        self.last_missed = url not in self.lru
        if self.last_missed:
            self.lru[url] = self._opened(url, desc or {})
            self.misses += 1
        found: IndexedTarSamples = self.lru[url]
        return found

    def _opened(self, url: str, desc: dict[str, Any]) -> IndexedTarSamples:
        if self.in_place and urlparse(url).scheme in ("", "file"):
            path = local_path(url)
        else:
            path = self.localname(url)
            if self._urls.setdefault(path, url) != url:
                raise ValueError(
                    f"{url} and {self._urls[path]} have the same local file {path}; help: without "
                    "cache_dir, or with localname=wids.hash_localname(DIR), each has one of its own"
                )
            download_and_open(url, path).close()
        size = os.path.getsize(path)
        if desc.get("filesize", size) != size:
            raise ValueError(
                f"{url}: {path} has {size} bytes, and by its index {desc['filesize']}; help: "
                "delete the file if it is one of a cache, or make the index again"
            )
        samples = IndexedTarSamples(path=path)
        if desc.get("nsamples", len(samples)) != len(samples):
            count = len(samples)
            samples.close()
            raise ValueError(
                f"{url}: {path} has {count} samples, and by its index {desc['nsamples']}; {_AGAIN}"
            )
        return samples


def interpret_transformations(transformations: Any) -> list[Callable[[Any], Any]]:
    """A list of functions from one, from many, or from the words "PIL" and "numpy"."""
    if not isinstance(transformations, list):
        transformations = [transformations]
    result = []
    for transformation in transformations:
        if transformation in ("PIL", "numpy"):
            warnings.warn(
                "String specifications for transformations are deprecated. Use functions instead.",
                stacklevel=3,
            )
            transformation = partial(default_decoder, format=transformation)
        assert callable(transformation), (
            f"{transformation!r} is no transformation; help: a function of a sample"
        )
        result.append(transformation)
    return result


def hash_dataset_name(input_string: str) -> str:
    """Sixteen characters that name a data set."""
    digest = hashlib.sha256(input_string.encode()).digest()
    return base64.urlsafe_b64encode(digest)[:16].decode("ascii")


def _described(shard: Any) -> dict[str, Any]:
    if isinstance(shard, dict):
        return shard
    try:
        url, count = shard
    except (TypeError, ValueError):
        raise ValueError(
            f'{shard!r} is no shard; help: {{"url": ..., "nsamples": ...}}, or (url, nsamples)'
        ) from None
    return {"url": os.fspath(url), "nsamples": count}


class ShardListDataset(Dataset[T]):
    """The samples of many tars, by number.

    shards: the path or URL of an index, an open one, or a list of dicts with url and nsamples.
    base: what relative URLs in the index are seen from; its own folder without it. options: replace
    what the index says.

    Tars of servers are downloaded to `cache_dir`, or to where `localname` says, else to a folder of
    its own, WIDS_CACHE. Local tars are copied there too when one of these is given, and otherwise
    read where they are. Nothing is deleted there: `keep` and `cache_size` have no effect. lru_size:
    how many tars are open at once.

    A sample is a dict from suffix, with its dot, to a file in memory, with `__key__`,
    `__dataset__`, `__index__`, `__shard__` and `__shardindex__`, which then goes through the
    transformations: functions, or "PIL" and "numpy" for the decoding of common suffixes.
    """

    def __init__(
        self,
        shards: Any,
        *,
        cache_size: int = int(1e12),
        cache_dir: str | None = None,
        lru_size: int = 10,
        dataset_name: str | None = None,
        localname: Callable[[str], str] | None = None,
        transformations: Any = "PIL",
        keep: bool = False,
        base: str | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        options = options or {}
        self.base: str | None = None
        self.spec: dict[str, Any]
        if isinstance(shards, (str, os.PathLike, io.IOBase)):
            if isinstance(shards, os.PathLike):
                shards = os.fspath(shards)
            self.base = urldir(shards) if base is None and isinstance(shards, str) else base
            self.spec = load_dsdesc_and_resolve(shards, options=options, base=self.base)
            self.shards = [*self.spec.get("shardlist", [])]
            self.dataset_name = self.spec.get("name") or hash_dataset_name(str(shards))
        else:
            self.spec = options
            self.shards = [_described(shard) for shard in shards]
            self.dataset_name = dataset_name or hash_dataset_name(str(shards))
        if not self.shards:
            raise IndexError("No shards found; help: give at least one")
        self.lengths: list[int] = [shard["nsamples"] for shard in self.shards]
        self._ends = list(accumulate(self.lengths))
        self.total_length: int = self._ends[-1]

        in_place = False
        self.cache_dir: str | None = None
        self.localname: Callable[[str], str]
        if cache_dir is not None:
            self.cache_dir = cache_dir
            self.localname = CacheLocalname(cache_dir)
        elif localname is not None:
            self.localname = localname
        else:
            in_place = "WIDS_CACHE" not in os.environ
            self.cache_dir = os.environ.get("WIDS_CACHE", DEFAULT_DIR)
            self.localname = DefaultLocalname(self.cache_dir)
        self._announce(shards)
        self.transformations = interpret_transformations(transformations)
        if lru_size > 200:
            warnings.warn(
                "LRU size is very large; consider reducing it to avoid running out of file "
                "descriptors",
                stacklevel=2,
            )
        self.cache = LRUShards(lru_size, keep=keep, localname=self.localname, in_place=in_place)
        self._warned = False

    def _announce(self, shards: Any) -> None:
        size = sum(shard.get("filesize", 0) for shard in self.shards)
        print(
            f"{str(shards)[:50]} base: {self.base} name: {self.spec.get('name')} nfiles: "
            f"{len(self.shards)} nbytes: {size} samples: {self.total_length} cache: "
            f"{self.cache_dir}",
            file=sys.stderr,
        )

    @property
    def cum_lengths(self) -> Any:
        """The number behind the last sample of each shard, as an array."""
        import numpy as np

        return np.cumsum(self.lengths)

    def add_transform(self, transform: Callable[[Any], Any]) -> ShardListDataset[T]:
        """Adds a function that samples go through last."""
        self.transformations.append(transform)
        return self

    def __len__(self) -> int:
        return self.total_length

    def get_stats(self) -> tuple[int, int]:
        """How many samples were asked for, and for how many of them a tar had to be opened."""
        return self.cache.accesses, self.cache.misses

    def check_cache_misses(self) -> None:
        """Warns, once, when a tar has to be opened for too many samples."""
        accesses, misses = self.get_stats()
        if not self._warned and accesses > 100 and misses / accesses > 0.3:
            self._warned = True
            print(
                f"Warning: ShardListDataset has a cache miss rate of {misses / accesses:.1%}; "
                "help: a sampler that stays in a shard, or a larger lru_size"
            )

    def get_shard(self, index: int) -> tuple[IndexedTarSamples, int, dict[str, Any]]:
        """The tar of a sample, the number of the sample in it, and what the index says of it."""
        number = operator.index(index)
        if number < 0:
            number += self.total_length
        if not 0 <= number < self.total_length:
            raise IndexError(
                f"sample {index} of a data set with {self.total_length}; help: count from 0"
            )
        at = bisect_right(self._ends, number)
        desc = self.shards[at]
        shard = self.cache.get_shard(desc["url"], desc)
        return shard, number - (self._ends[at] - self.lengths[at]), desc

    def __getitem__(self, index: int) -> Any:
        shard, inner, desc = self.get_shard(index)
        sample: Any = shard[inner]
        self.check_cache_misses()
        sample["__dataset__"] = desc.get("dataset")
        sample["__index__"] = index
        sample["__shard__"] = desc["url"]
        sample["__shardindex__"] = inner
        for transform in self.transformations:
            sample = transform(sample)
        return sample

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Many samples, as PyTorch's loader asks for those of a batch."""
        return [self[index] for index in indices]

    def close(self) -> None:
        """Closes all tars."""
        self.cache.clear()


__all__ = [
    "CacheLocalname",
    "ChunkedSampler",
    "Dataset",
    "DefaultLocalname",
    "DistributedChunkedSampler",
    "IndexedTarSamples",
    "LRUShards",
    "Sampler",
    "ShardListDataset",
    "ShardListSampler",
    "ShardedSampler",
    "compute_file_md5sum",
    "compute_num_samples",
    "default_decoder",
    "group_by_key",
    "hash_dataset_name",
    "hash_localname",
    "interpret_transformations",
    "intersect_range",
    "intersect_ranges",
    "iterate_ranges",
    "lengths_to_ranges",
    "splitname",
]
