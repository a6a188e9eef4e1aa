"""Lists of shards, and what of them a rank and a worker read."""

from __future__ import annotations

import os
import random
import re
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import utils
from ._braces import braceexpand
from ._directory import (
    DirectoryShardList,
    check_pid_is_running,
    get_pid_from_filename,
    without_last_extension,
)
from ._stage import pipelinefilter
from ._torch import IterableDataset
from .utils import is_iterable, obsolete

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "DirectoryShardList",
    "MSSource",
    "MultiShardSample",
    "ResampledShardList",
    "ResampledShards",
    "SimpleShardList",
    "check_pid_is_running",
    "default_rng",
    "envlookup",
    "envsubst",
    "expand",
    "expand_source",
    "expand_urls",
    "get_pid_from_filename",
    "non_empty",
    "resampled",
    "resampled_",
    "shardspec",
    "single_node_only",
    "split_by_node",
    "split_by_worker",
    "without_last_extension",
]

_MOST_SUBSTITUTIONS = 10


def envlookup(m: re.Match[str]) -> str:
    """The value of the variable WDS_NAME for the match of ${NAME}."""
    name = f"WDS_{m.group(1)}"
    assert name in os.environ, f"missing environment variable wds_{name}"
    return os.environ[name]


def envsubst(s: str) -> str:
    """A text with the variables WDS_NAME in place of ${NAME}."""
    return re.sub(r"\$\{(\w+)\}", envlookup, s)


def expand_urls(urls: str) -> list[str]:
    """The URLs that a text means: parts between "::", variables, braces."""
    expanded: list[str] = []
    for part in urls.split("::"):
        for _ in range(_MOST_SUBSTITUTIONS):
            before, part = part, envsubst(part)
            if part == before:
                break
        expanded.extend(braceexpand(part))
    return expanded


def expand_source(source: str | Iterable[str], max_urls: int = int(1e9)) -> list[str]:
    """The list of URLs; those of a list are taken as they are."""
    if isinstance(source, str):
        return expand_urls(source)
    if is_iterable(source):
        listed: list[str] = []
        for url in source:
            if len(listed) >= max_urls:
                break
            listed.append(url)
        return listed
    raise ValueError(f"cannot handle {type(source)}")


def split_by_node(src: Iterable[Any], group: Any = None) -> Iterator[Any]:
    """What of the shards this rank reads."""
    rank, world_size, _, _ = utils.pytorch_worker_info(group=group)
    return _every(src, rank, world_size)


def split_by_worker(src: Iterable[Any]) -> Iterator[Any]:
    """What of the shards of a rank this worker reads."""
    _, _, worker, num_workers = utils.pytorch_worker_info()
    return _every(src, worker, num_workers)


def _every(src: Iterable[Any], first: int, step: int) -> Iterator[Any]:
    if step <= 1:
        yield from src
        return
    for number, item in enumerate(src):
        if number % step == first:
            yield item


def single_node_only(src: Iterable[Any], group: Any = None) -> Iterator[Any]:
    """All shards, and an error where there are several ranks."""
    _, world_size, _, _ = utils.pytorch_worker_info(group=group)
    if world_size > 1:
        raise ValueError(
            "you need to add an explicit nodesplitter to your input pipeline for multi-node "
            "training; help: WebDataset(urls, nodesplitter=wds.split_by_node), or a resampled "
            "data set with nodesplitter=None"
        )
    yield from src


class SimpleShardList(IterableDataset):
    """The shards in their order; with a seed in that of the seed, the same in every epoch."""

    def __init__(self, urls: str | Iterable[str], seed: Any = None) -> None:
        self.urls = expand_urls(urls) if isinstance(urls, str) else list(urls)
        assert isinstance(self.urls[0], str), (
            f"a URL is a text, not {self.urls[0]!r}; help: str(path)"
        )
        self.seed = time.time() if seed is True else seed

    def __len__(self) -> int:
        return len(self.urls)

    def __iter__(self) -> Iterator[dict[str, str]]:
        urls = self.urls.copy()
        if self.seed is not None:
            random.Random(self.seed).shuffle(urls)
        for url in urls:
            yield {"url": url}


def resampled_(src: Iterable[Any], n: int = sys.maxsize) -> Iterator[Any]:
    """All items are read, and n of them drawn with replacement."""
    with open("/dev/random", "rb") as source:
        rng = random.Random(source.read(20))
    print("# resampled loading", file=sys.stderr)
    items = list(src)
    print(f"# resampled got {len(items)} samples, yielding {n}", file=sys.stderr)
    for _ in range(n):
        yield rng.choice(items)


resampled = pipelinefilter(resampled_)


def non_empty(src: Iterable[Any]) -> Iterator[Any]:
    """All items; an error where there is none."""
    count = 0
    for item in src:
        yield item
        count += 1
    if count == 0:
        raise ValueError("pipeline stage received no data at all and this was declared as an error")


@dataclass
class MSSource:
    """A data set of a MultiShardSample."""

    name: str = ""
    perepoch: int = -1
    resample: bool = False
    urls: list[str] = field(default_factory=list)


default_rng = random.Random()


def expand(s: str) -> str:
    """A path with its home folder and variables."""
    return os.path.expanduser(os.path.expandvars(s))


class ResampledShards(IterableDataset):
    """Shards drawn with replacement, without an end.

    deterministic: the draws are those of the seed, the epoch and the worker, else new ones.
    """

    def __init__(
        self,
        urls: str | Iterable[str],
        nshards: int = sys.maxsize,
        seed: int = 0,
        worker_seed: Callable[[], int] | None = None,
        deterministic: bool = False,
        max_urls: int = int(1e6),
        empty_check: bool = True,
    ) -> None:
        self.urls = expand_source(urls, max_urls)
        if empty_check and not self.urls:
            raise ValueError("empty_check=True, but no shards found in ResampledShards")
        assert isinstance(self.urls[0], str)
        self.nshards = nshards
        self.worker_seed = utils.pytorch_worker_seed if worker_seed is None else worker_seed
        self.deterministic = deterministic
        self.seed = seed
        self.epoch = -1

    def _next_seed(self) -> int:
        if self.deterministic:
            return utils.make_seed(self.worker_seed(), self.epoch, self.seed)
        return utils.make_seed(
            self.worker_seed(), self.epoch, self.seed, os.getpid(), time.time_ns(), os.urandom(4)
        )

    def __iter__(self) -> Iterator[dict[str, str]]:
        self.epoch += 1
        seed = self._next_seed()
        if os.environ.get("WDS_SHOW_SEED", "0") == "1":
            print(f"# ResampledShards seed {seed}")
        self.rng = random.Random(seed)
        for _ in range(self.nshards):
            yield {"url": self.urls[self.rng.randint(0, len(self.urls) - 1)]}


ResampledShardList = ResampledShards

_TOP = {"prefix", "datasets", "buckets"}
_PART = {"buckets", "name", "shards", "resample", "choose"}


class MultiShardSample(IterableDataset):
    """Shards of several data sets, as a YAML file or a dict says; needs ALLOW_OBSOLETE=1."""

    @obsolete(reason="this is going to be replaced with the WIDS JSON format")  # type: ignore[untyped-decorator]
    def __init__(self, fname: str | dict[str, Any]) -> None:
        self.epoch = -1
        self.rng = default_rng
        self.parse_spec(fname)

    def parse_spec(self, fname: str | dict[str, Any]) -> None:
        if isinstance(fname, dict):
            spec = fname
        else:
            import yaml

            with open(fname) as stream:
                spec = yaml.safe_load(stream)
        assert set(spec) <= _TOP, f"unknown keys {sorted(set(spec) - _TOP)}; help: {sorted(_TOP)}"
        prefix = expand(spec.get("prefix", ""))
        self.sources = [
            self._source(part, prefix, spec.get("buckets", [])) for part in spec["datasets"]
        ]

    @staticmethod
    def _source(part: dict[str, Any], prefix: str, buckets: Any) -> MSSource:
        assert set(part) <= _PART, f"unknown keys {sorted(set(part) - _PART)}; help: {_PART}"
        own = expand_source(part.get("buckets", buckets))
        assert len(own) <= 1, f"{own}: only a single bucket is supported"
        bucket = expand(own[0]) if own else ""
        shards = part["shards"]
        urls: list[str] = []
        for name in [shards] if isinstance(shards, str) else shards:
            urls.extend(braceexpand(expand(prefix + os.path.join(bucket, name))))
        perepoch = part.get("choose", -1)
        drawn = part.get("resample", -1)
        if perepoch > len(urls):
            raise ValueError("perepoch n must be no greater than the number of shards")
        if perepoch > 0 and drawn > 0:
            raise ValueError("specify only one of perepoch or choose")
        name = part.get("name", "@" + bucket)
        return MSSource(name, drawn if drawn > 0 else perepoch, drawn > 0, urls)

    def set_epoch(self, seed: int) -> None:
        """Makes the choices those of a seed."""
        self.rng = random.Random(seed)

    def get_shards_for_epoch(self) -> list[str]:
        chosen: list[str] = []
        for source in self.sources:
            if source.resample:
                chosen += self.rng.choices(source.urls, k=source.perepoch)
            elif source.perepoch > 0:
                listed = list(source.urls)
                self.rng.shuffle(listed)
                chosen += listed[: source.perepoch]
            else:
                chosen += source.urls
        self.rng.shuffle(chosen)
        return chosen

    def __iter__(self) -> Iterator[dict[str, str]]:
        for url in self.get_shards_for_epoch():
            yield {"url": url}


def shardspec(spec: str) -> SimpleShardList | MultiShardSample:
    """The list of shards that a YAML file or a text with braces means."""
    return MultiShardSample(spec) if spec.endswith(".yaml") else SimpleShardList(spec)
