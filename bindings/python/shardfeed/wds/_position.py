"""What a pipeline knows of itself beside its stages: how long it is, and where it stands.

A position is how many items were given out, and what the stages that count epochs counted. It is
resumed by running the pipeline again up to there, without the last stages as far as each of their
items is made of a known number of those before: functions of the program are taken as pure.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from .._plan import plan
from . import _collation, _keys, _shuffling, shardlists
from ._native_batches import _native_batched
from ._stage import FilterFunction
from ._threads import threads
from .handlers import reraise_exception

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .pipeline import DataPipeline

_VERSION = 1


def _no_state(stage: Any, why: str, help_: str) -> TypeError:
    return TypeError(f"the pipeline has no state: {stage!r} {why}; help: {help_}")


def counters(pipeline: DataPipeline) -> dict[str, int]:
    """The epochs of the stages that count them. TypeError for stages that draw otherwise."""
    from .filters import _rsample
    from .mix import RandomMix

    found: dict[str, int] = {}
    for number, stage in enumerate(pipeline.pipeline):
        if isinstance(stage, shardlists.ResampledShards):
            if not stage.deterministic:
                raise _no_state(stage, "draws new shards each time", "deterministic=True")
            found[str(number)] = stage.epoch
        elif isinstance(stage, _shuffling.detshuffle):
            found[str(number)] = stage.epoch
        elif isinstance(stage, (RandomMix, shardlists.DirectoryShardList)):
            raise _no_state(stage, "draws from the module random", "use shardfeed.mix()")
        elif isinstance(stage, FilterFunction) and stage.f is _shuffling._shuffle:
            given = dict(zip(("bufsize", "initial", "rng", "seed"), stage.args))
            given.update(stage.kw)
            if given.get("seed") is None or given.get("rng") is not None:
                raise _no_state(stage, "is another order each time", "shuffle(..., seed=1)")
        elif isinstance(stage, FilterFunction) and stage.f in (_rsample, shardlists.resampled_):
            raise _no_state(stage, "draws from the module random", "select() by a hash of the key")
        elif type(stage).__name__ == "DataLoader" and stage.num_workers:
            raise _no_state(stage, "reads in workers, ahead", "take the state of its data set")
    return found


def saved(pipeline: DataPipeline) -> dict[str, Any]:
    """The position, as a dict that JSON can hold."""
    epochs, items = pipeline._begun or (counters(pipeline), 0)
    return {"version": _VERSION, "stages": len(pipeline.pipeline), "epochs": epochs, "items": items}


def restored(pipeline: DataPipeline, state: dict[str, Any]) -> int:
    """Sets the stages back, and gives how many items to pass over."""
    if state.get("version") != _VERSION or state.get("stages") != len(pipeline.pipeline):
        raise ValueError(
            f"the state is of a pipeline with {state.get('stages')} stages, and this one has "
            f"{len(pipeline.pipeline)}; help: make the pipeline as it was when it was saved"
        )
    if set(counters(pipeline)) != set(state["epochs"]):
        raise ValueError(
            "the stages that count epochs are others than those of the state; help: make the "
            "pipeline as it was when it was saved"
        )
    for number, epoch in state["epochs"].items():
        pipeline.pipeline[int(number)].epoch = epoch
    return int(state["items"])


# ---- Resuming ----

# Functions of stages that give an item for each item, unless a handler leaves it out.
_ONE_FOR_ONE = (
    _keys._associate,
    _keys._extract_keys,
    _keys._map_dict,
    _keys._map_tuple,
    _keys._rename,
    _keys._rename_keys,
    _keys._to_tuple,
    _keys._xdecode,
)


class _Passing:
    """Passes over what becomes the first `skip` items of a pass."""

    def __init__(self, skip: int, batches: list[tuple[int, bool]]) -> None:
        self.skip = skip
        self.batches = batches  # of the stages behind it: see _batches()
        self.items = 0  # so many of the pass were passed over

    def __call__(self, source: Any) -> Iterator[Any]:
        source = iter(source)
        count = sum(1 for _ in itertools.islice(source, self.skip * math.prod(self._sizes())))
        for size, partial in self.batches:
            count = -(-count // size) if partial else count // size
        self.items = count
        yield from source

    def _sizes(self) -> list[int]:
        return [size for size, _ in self.batches]


def items_after(pipeline: DataPipeline, skip: int) -> Iterator[Any]:
    """The items of all passes without the first `skip`."""
    from ._compile import iterated

    at, batches = _tail(pipeline.pipeline)
    for _ in range(pipeline.repetitions):
        passing = _Passing(skip, batches)
        items = iterated(pipeline, at, passing) if skip else iterated(pipeline)
        given = 0
        for given, item in enumerate(items, 1):  # noqa: B007
            yield item
        skip -= passing.items
        if given + passing.items == 0:
            break


def _tail(stages: list[Any]) -> tuple[int, list[tuple[int, bool]]]:
    """Where the stages begin that make an item of a known number of items, and their batches."""
    at = len(stages)
    batches: list[tuple[int, bool]] = []
    while at > 1:
        stage = stages[at - 1]
        if isinstance(stage, FilterFunction) and stage.f in (_collation._batched, _native_batched):
            batches.insert(0, _batches(stage))
        elif type(stage) is not threads and not _makes_one_of_one(stage):
            break
        at -= 1
    return at, batches


def _makes_one_of_one(stage: Any) -> bool:
    """Whether a stage gives an item for each item, or ends with an error."""
    from ._compile import _decoder
    from .autodecode import Decoder

    if not isinstance(stage, FilterFunction):
        return False
    known = stage.f in _ONE_FOR_ONE or isinstance(_decoder(stage), Decoder)
    return known and stage.kw.get("handler", reraise_exception) is reraise_exception


# ---- Length ----


def length(pipeline: DataPipeline) -> int:
    """How many items a pass has, by the indexes of its shards. TypeError where nobody knows."""
    from ._compile import _reading_at
    from .compat import check_empty

    unknown = TypeError(
        f"object of type '{type(pipeline).__name__}' has no len(); help: it is known with the "
        "index of every shard, shardfeed.Dataset(urls), and stages that leave out no sample; or "
        "with_length(n)"
    )
    if pipeline.repetitions != 1 and pipeline.nsamples > 0:
        return pipeline._share()
    stages = pipeline.pipeline
    if type(stages[0]) is not shardlists.SimpleShardList or pipeline.repetitions > 1 << 40:
        raise unknown
    shards: Any = iter([{"url": url} for url in stages[0].urls])
    count: int | None = None
    at = 1
    while at < len(stages):
        stage = stages[at]
        reading = _reading_at(stages, at)
        if reading is not None:
            plain = reading.handler is reraise_exception and reading.rename_files is None
            if not plain or reading.select_files is not None:
                raise unknown
            count = _samples([reading.opening(shard).target for shard in shards])
            if count is None:
                raise unknown
            at += reading.stages
            continue
        function = stage.f if isinstance(stage, FilterFunction) else None
        if count is None:
            if function is not _shuffling._shuffle and type(stage) is not _shuffling.detshuffle:
                shards = stage(shards)
        elif function in (_collation._batched, _native_batched):
            size, rest = _batches(stage)
            count = -(-count // size) if rest else count // size
        elif function is itertools.islice:
            count = len(range(count)[slice(*stage.args)])
        elif not (
            stage is check_empty
            or type(stage) is _shuffling.detshuffle
            or function is _shuffling._shuffle
            or _makes_one_of_one(stage)
        ):
            raise unknown
        at += 1
    if count is None:
        raise unknown
    return count * pipeline.repetitions


def _batches(stage: FilterFunction) -> tuple[int, bool]:
    """The size of batches, and whether the last one may be smaller."""
    given = {"batchsize": 20, "partial": True}
    given.update(zip(("batchsize", "collation_fn", "partial"), stage.args))
    given.update(stage.kw)
    return int(given["batchsize"]), bool(given["partial"])


def _samples(targets: list[str | None]) -> int | None:
    """What the indexes say that these shards have."""
    if not targets:
        return 0
    if None in targets:
        return None
    listed = [str(target) for target in targets]
    distinct = list(dict.fromkeys(listed))
    counted = plan(distinct, expand=False, duplicate_keys="accept").shards
    samples = {url: shard["samples"] for url, shard in zip(distinct, counted)}
    total = 0
    for url in listed:
        count = samples[url]
        if count is None:
            return None
        total += count
    return total
