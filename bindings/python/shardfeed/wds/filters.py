"""The stages: each takes the iterator of the stage before it and gives one."""

from __future__ import annotations

import itertools
import os
import random
import sys
from functools import reduce
from typing import TYPE_CHECKING, Any

from . import autodecode
from ._cached import Cached
from ._collation import (
    _batched,
    _unbatched,
    _unlisted,
    combine_values,
    default_collation_fn,
    dict2tuple,
    tuple2dict,
)
from ._keys import (
    _associate,
    _extract_keys,
    _map_dict,
    _map_tuple,
    _rename,
    _rename_keys,
    _to_tuple,
    _xdecode,
    decode_bin,
    decode_pickle,
    decode_text,
    default_decoders,
    find_decoder,
    getfirst,
    parse_field_spec,
    transform_with,
)
from ._shuffling import _shuffle, detshuffle, pick
from ._stage import FilterFunction, RestCurried, pipelinefilter
from .cache import LMDBCached
from .handlers import reraise_exception
from .utils import PipelineStage, identity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "Cached",
    "FilterFunction",
    "LMDBCached",
    "PipelineStage",
    "RestCurried",
    "associate",
    "batched",
    "combine_values",
    "compose",
    "compose2",
    "decode",
    "decode_bin",
    "decode_pickle",
    "decode_text",
    "default_collation_fn",
    "default_decoders",
    "detshuffle",
    "dict2tuple",
    "extract_keys",
    "find_decoder",
    "getfirst",
    "identity",
    "info",
    "log_keys",
    "map",
    "map_dict",
    "map_tuple",
    "parse_field_spec",
    "pick",
    "pipeline",
    "pipelinefilter",
    "rename",
    "rename_keys",
    "reraise_exception",
    "rsample",
    "select",
    "shuffle",
    "slice",
    "to_tuple",
    "transform_with",
    "tuple2dict",
    "unbatched",
    "unlisted",
    "xdecode",
]


def compose2(f: Callable[[Any], Any], g: Callable[..., Any]) -> Callable[..., Any]:
    """One function after another."""
    return lambda x: g(f(x))


def compose(*args: Callable[..., Any]) -> Callable[..., Any]:
    """Functions one after another, the first one first."""
    return reduce(compose2, args)


def pipeline(source: Any, *args: Callable[[Any], Any]) -> Any:
    """A source through stages."""
    return reduce(lambda data, stage: stage(data), args, source)


def _info(
    data: Iterable[Any],
    fmt: str | None = None,
    n: int = 3,
    every: int = -1,
    width: int = 50,
    stream: Any = sys.stderr,
    name: str = "",
) -> Iterator[Any]:
    """Prints the first n samples, and each that `every` divides."""
    for i, sample in enumerate(data):
        if i < n or (every > 0 and (i + 1) % every == 0):
            if fmt is None:
                print("---", name, file=stream)
                for key, value in sample.items():
                    print(key, repr(value)[:width], file=stream)
            else:
                print(fmt.format(**sample), file=stream)
        yield sample


def _select(data: Iterable[Any], predicate: Callable[[Any], Any]) -> Iterator[Any]:
    """The samples for which a function is true."""
    for sample in data:
        if predicate(sample):
            yield sample


def _log_keys(data: Iterable[Any], logfile: str | None = None) -> Iterator[Any]:
    """Writes the key of each sample to a file, which several processes may share."""
    if logfile is None:
        yield from data
        return
    # One write to the end of a file is whole, whoever else appends to it.
    file = os.open(logfile, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        for i, sample in enumerate(data):
            get = sample.get
            line = f"{i}\t{get('__worker__')}\t{get('__rank__')}\t{get('__key__')}\n"
            os.write(file, line.encode("utf-8", "surrogateescape"))
            yield sample
    finally:
        os.close(file)


def _map(
    data: Iterable[Any],
    f: Callable[[Any], Any],
    handler: Callable[[Exception], bool] = reraise_exception,
) -> Iterator[Any]:
    """A function of each sample; None leaves it out. A dict keeps the key of its sample."""
    for sample in data:
        try:
            result = f(sample)
        except Exception as exn:
            if handler(exn):
                continue
            break
        if result is None:
            continue
        if isinstance(sample, dict) and isinstance(result, dict):
            result["__key__"] = sample.get("__key__")
        yield result


def _decode(
    data: Iterable[Any],
    *args: Any,
    handler: Callable[[Exception], bool] = reraise_exception,
    **kw: Any,
) -> Iterator[Any]:
    """Fields decoded by their suffixes: see Decoder."""
    return _map(data, decoder_of(args, kw), handler=handler)


def decoder_of(handlers: tuple[Any, ...], kw: dict[str, Any]) -> autodecode.Decoder:
    """The decoder of the arguments of decode(): a text is an image handler."""
    made = [autodecode.imagehandler(h) if isinstance(h, str) else h for h in handlers]
    return autodecode.Decoder(made, **kw)


def _rsample(data: Iterable[Any], p: float = 0.5) -> Iterator[Any]:
    """Each sample with this probability, drawn from the module random."""
    assert 0.0 <= p <= 1.0, f"rsample: {p} is no probability"
    for sample in data:
        if random.uniform(0.0, 1.0) < p:
            yield sample


info = pipelinefilter(_info)
shuffle = pipelinefilter(_shuffle)
select = pipelinefilter(_select)
log_keys = pipelinefilter(_log_keys)
decode = pipelinefilter(_decode)
map = pipelinefilter(_map)
rename = pipelinefilter(_rename)
associate = pipelinefilter(_associate)
map_dict = pipelinefilter(_map_dict)
to_tuple = pipelinefilter(_to_tuple)
map_tuple = pipelinefilter(_map_tuple)
batched = pipelinefilter(_batched)
unlisted = pipelinefilter(_unlisted)
unbatched = pipelinefilter(_unbatched)
rsample = pipelinefilter(_rsample)
slice = pipelinefilter(itertools.islice)
extract_keys = pipelinefilter(_extract_keys)
rename_keys = pipelinefilter(_rename_keys)
xdecode = pipelinefilter(_xdecode)
