"""WebDataset and WebLoader: pipelines that grow by methods."""

from __future__ import annotations

import os
import random
import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlparse

from . import cache, filters, shardlists
from . import pytorch as _pytorch
from ._collation import converted
from ._native_batches import _native_batched
from ._threads import progress
from .handlers import reraise_exception
from .pipeline import DataPipeline
from .tariterators import group_by_keys, tar_file_expander
from .utils import is_iterable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from typing_extensions import Self


class FluidInterface:
    """Stages as methods: each gives a copy of the pipeline with one stage more."""

    def compose(self, *args: Any) -> Self:
        raise NotImplementedError  # of DataPipeline

    def batched(
        self,
        batchsize: int,
        collation_fn: Callable[[list[Any]], Any] | None = filters.default_collation_fn,
        partial: bool = True,
        *,
        native: bool | str = False,
    ) -> Self:
        """Batches of so many samples.

        native: True, or a text for the option decode: shardfeed.Batch, decoded by the engine.
        """
        if native:
            decode = native if isinstance(native, str) else "auto"
            return self.compose(filters.FilterFunction(_native_batched, batchsize, decode, partial))
        return self.compose(filters.batched(batchsize, collation_fn=collation_fn, partial=partial))

    def progress(self, total: int | None = None, name: str = "samples") -> Self:
        """Shows how many items have passed, by tqdm or rich where one is installed."""
        return self.compose(progress(total, name))

    def unbatched(self) -> Self:
        """The rows of batches."""
        return self.compose(filters.unbatched())

    def listed(self, batchsize: int, partial: bool = True) -> Self:
        """Lists of so many samples. partial is not looked at, as in the original."""
        return self.compose(filters.batched(batchsize, collation_fn=None))

    def unlisted(self) -> Self:
        """The items of lists."""
        return self.compose(filters.unlisted())

    def log_keys(self, logfile: str | None = None) -> Self:
        """Writes the key of each sample to a file."""
        return self.compose(filters.log_keys(logfile))

    def shuffle(self, size: int, **kw: Any) -> Self:
        """A buffer of so many samples, out of which they come at random."""
        return self if size < 1 else self.compose(filters.shuffle(size, **kw))

    def map(self, f: Callable[[Any], Any], handler: Any = reraise_exception) -> Self:
        """A function of each sample; None leaves it out."""
        return self.compose(filters.map(f, handler=handler))

    def decode(
        self,
        *args: Any,
        pre: Any = None,
        post: Any = None,
        only: Any = None,
        partial: bool = False,
        handler: Any = reraise_exception,
    ) -> Self:
        """Fields decoded by their suffixes; a text such as "rgb8" says what images become."""
        kw = {"pre": pre, "post": post, "only": only, "partial": partial}
        return self.map(filters.decoder_of(args, kw), handler=handler)

    def map_dict(self, handler: Any = reraise_exception, **kw: Callable[[Any], Any]) -> Self:
        """Functions of fields."""
        return self.compose(filters.map_dict(handler=handler, **kw))

    def select(self, predicate: Callable[[Any], Any], **kw: Any) -> Self:
        """The samples for which a function is true."""
        return self.compose(filters.select(predicate, **kw))

    def to_tuple(self, *args: Any, **kw: Any) -> Self:
        """Tuples of fields."""
        return self.compose(filters.to_tuple(*args, **kw))

    def map_tuple(self, *args: Any, handler: Any = reraise_exception) -> Self:
        """Functions of the positions of tuples."""
        return self.compose(filters.map_tuple(*args, handler=handler))

    def slice(self, *args: Any) -> Self:
        """Some of the samples, as itertools.islice()."""
        return self.compose(filters.slice(*args))

    def rename(self, **kw: Any) -> Self:
        """Fields under new names."""
        return self.compose(filters.rename(**kw))

    def rsample(self, p: float = 0.5) -> Self:
        """Each sample with this probability."""
        return self.compose(filters.rsample(p))

    def rename_keys(self, *args: Any, **kw: Any) -> Self:
        """Fields that match patterns under new names."""
        return self.compose(filters.rename_keys(*args, **kw))

    def extract_keys(self, *args: Any, **kw: Any) -> Self:
        """Tuples of fields that match patterns."""
        return self.compose(filters.extract_keys(*args, **kw))

    def xdecode(self, *args: Any, **kw: Any) -> Self:
        """Fields decoded by patterns."""
        return self.compose(filters.xdecode(*args, **kw))

    def mcached(self) -> Self:
        """Keeps the samples of a pass in memory."""
        return self.compose(filters.Cached())

    def lmdb_cached(self, *args: Any, **kw: Any) -> Self:
        """Keeps the samples of a pass in a database."""
        return self.compose(filters.LMDBCached(*args, **kw))


def check_empty(source: Iterable[Any]) -> Iterator[Any]:
    """All samples; an error where there is none."""
    count = 0
    for sample in source:
        count = 1
        yield sample
        break
    yield from source
    if count == 0:
        raise ValueError(
            "No samples found in dataset; perhaps you have fewer shards than workers.\n"
            "Turn off using empty_check=False in the WebDataset constructor."
        )


class WebDataset(DataPipeline, FluidInterface):
    """The samples of shards: WebDataset("train-{0000..0099}.tar", shardshuffle=100).

    A sample is a dict: field -> bytes, and "__key__" and "__url__".
    """

    def __init__(
        self,
        urls: Any,
        handler: Any = reraise_exception,
        mode: str | None = None,
        resampled: bool = False,
        repeat: bool = False,
        shardshuffle: Any = None,
        cache_size: int = -1,
        cache_dir: str | None = None,
        url_to_name: Callable[[str], str] = cache.pipe_cleaner,
        detshuffle: bool = False,
        nodesplitter: Any = shardlists.single_node_only,
        workersplitter: Any = shardlists.split_by_worker,
        select_files: Callable[[str], bool] | None = None,
        rename_files: Callable[[str], str] | None = None,
        empty_check: bool = True,
        verbose: bool = False,
        seed: Any = None,
    ) -> None:
        super().__init__()
        if resampled:
            mode = "resampled"
        if mode == "resampled" and shardshuffle not in (False, None):
            warnings.warn(
                "WebDataset(shardshuffle=...) is ignored for resampled datasets", stacklevel=2
            )
        elif shardshuffle is None:
            warnings.warn(
                "WebDataset(shardshuffle=...) is None; set explicitly to False or a number",
                stacklevel=2,
            )
        if shardshuffle is True:
            warnings.warn(
                "set WebDataset(shardshuffle=...) to a positive integer or 0 or False",
                stacklevel=2,
            )
            shardshuffle = 100
        self.seed: Any = (
            os.environ.get("WDS_SEED", random.randint(0, 1000000)) if seed is None else seed
        )
        args = SimpleNamespace(urls=urls, mode=mode, cache_dir=cache_dir, cache_size=cache_size)
        self.update_cache_info(args)
        self.create_url_iterator(args)
        if nodesplitter is not None:
            self.append(nodesplitter)
        if workersplitter:
            self.append(workersplitter)
        if shardshuffle is not None:
            if detshuffle:
                self.append(filters.detshuffle(shardshuffle, seed=cast("int", self.seed)))
            else:
                self.append(filters.shuffle(shardshuffle, seed=self.seed))
        if cache_dir is None or cache_size == 0:
            self.append(cache.StreamingOpen(handler=handler))
        else:
            self.append(cache.FileCache(cache_dir, cache_size=cache_size, handler=handler))
        expander = pipelinefilter(tar_file_expander)
        self.append(expander(handler=handler, select_files=select_files, rename_files=rename_files))
        self.append(pipelinefilter(group_by_keys)(handler=handler))
        if empty_check:
            self.append(check_empty)

    def update_cache_info(self, args: Any) -> None:
        """Looks at the folder and the size of the environment. They do not make a cache."""
        int(os.environ.get("WDS_CACHE_SIZE", args.cache_size))
        folder = os.environ.get("WDS_CACHE", args.cache_dir)
        if folder is not None and not os.path.exists(os.path.expanduser(folder)):
            raise ValueError(f"cache directory {folder} does not exist; help: make it before")

    def create_url_iterator(self, args: Any) -> None:
        """Appends the list of shards."""
        urls, mode = args.urls, args.mode
        if isinstance(urls, str) and urls.endswith((".yaml", ".yml")):
            import yaml

            with open(urls) as stream:
                urls = yaml.safe_load(stream)
        if isinstance(urls, dict):
            assert "datasets" in urls, "a list of data sets has the key datasets"
            self.append(shardlists.MultiShardSample(urls))
        elif isinstance(urls, str) and urls.endswith(".json"):
            raise ValueError("unimplemented; help: shardfeed.wids reads such an index")
        elif isinstance(urls, str) and urlparse(urls).path.endswith("/"):
            self.append(shardlists.DirectoryShardList(urls, mode=mode))
        elif isinstance(urls, str) or is_iterable(urls):
            is_drawn = mode == "resampled"
            self.append(
                (shardlists.ResampledShards if is_drawn else shardlists.SimpleShardList)(urls)
            )
        else:
            raise ValueError(
                f"cannot handle urls of type {type(urls)}; help: a text or a list of them"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()


pipelinefilter = filters.pipelinefilter


class FluidWrapper(DataPipeline, FluidInterface):
    """Any source with the methods of pipelines."""

    def __init__(self, initial: Any) -> None:
        super().__init__(initial)


class WebLoader(DataPipeline, FluidInterface):
    """A torch.utils.data.DataLoader with the methods of pipelines."""

    def __init__(self, *args: Any, **kw: Any) -> None:
        loader = _pytorch.DataLoader(*args, **kw)
        if loader.collate_fn is _pytorch.default_convert:
            loader.collate_fn = converted  # the same, faster
        super().__init__(loader)
