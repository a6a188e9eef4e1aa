"""The plan of a pipeline: what of its stages the engine does, and what Python does on top."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _collation, _columns, _engine, _fast, _keys, _reading, _shuffled_parts, _shuffling
from ._native_batches import _native_batched
from ._rows import Supply
from ._stage import FilterFunction, arguments_of
from ._threads import in_threads, threads
from .utils import PipelineStage, identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._reading import Shard
    from .pipeline import DataPipeline


class Step(NamedTuple):
    """Some stages, and how they run."""

    name: str
    where: str  # "engine", "Python", ...
    why: str
    make: Callable[[Any], Any]  # the iterator, of that before it
    stages: int = 1


class _Reading(NamedTuple):
    """Stages that read shards: opening, members, grouping."""

    opening: Callable[[dict[str, Any]], Shard]
    handler: Any
    select_files: Any
    rename_files: Any
    opener: Any  # a stage before, which opens in Python; None: there is none
    stages: int


def iterated(pipeline: DataPipeline, at: int = -1, between: Callable[[Any], Any] = identity) -> Any:
    """An iterator over one pass of a pipeline; `between` gets what goes into the stage `at`."""
    with _engine.using(pipeline._settings):
        steps = _steps(pipeline, by_columns=at < 0)
        source = pipeline.invoke(pipeline.pipeline[0])
        stage = 1
        for step in steps[1:]:
            source = step.make(between(source) if stage == at else source)
            stage += step.stages
    return between(source) if stage == at else source


def explained(pipeline: DataPipeline) -> str:
    """The plan as text, a line for each step."""
    with _engine.using(pipeline._settings):
        steps = _steps(pipeline)
    width = max((len(step.name) for step in steps), default=0)
    where = max((len(step.where) for step in steps), default=0)
    lines = [f"{s.name:<{width}}  {s.where:<{where}}  {s.why}".rstrip() for s in steps]
    explain = getattr(getattr(pipeline.pipeline[0], "dataset", None), "explain", None)
    if explain is not None:  # a loader
        lines[1:1] = ["    " + line for line in explain().splitlines()]
    if pipeline.repetitions != 1:
        most = f", {pipeline.nsamples} items in all" if pipeline.nsamples > 0 else ""
        passes = "passes without an end" if pipeline.repetitions > 1 << 40 else "passes"
        number = "" if pipeline.repetitions > 1 << 40 else f"{pipeline.repetitions} "
        lines.append(f"{number}{passes}{most}")
    return "\n".join(lines)


def _name(stage: Any) -> str:
    if isinstance(stage, FilterFunction):
        shown = [*map(_short, stage.args), *(f"{k}={_short(v)}" for k, v in stage.kw.items())]
        return f"{stage.f.__name__.lstrip('_')}({', '.join(shown)})"
    return getattr(stage, "__name__", type(stage).__name__)


def _short(value: Any) -> str:
    text = getattr(value, "__name__", None) or repr(value)
    if text.startswith("<") and " object at " in text:
        text = type(value).__name__
    return text if len(text) <= 40 else text[:37] + "..."


def _steps(pipeline: DataPipeline, by_columns: bool = True) -> list[Step]:
    """The plan. by_columns: stages may be carried out together, and not seen one by one."""
    stages = pipeline.pipeline
    supply = Supply()
    steps = [Step(_name(stages[0]), "Python", "the list of shards, or the source", lambda _: None)]
    is_pure = _is_pure_source(stages[0])
    at, count = 1, 1
    while at < len(stages):
        reading = _reading_at(stages, at)
        if reading is not None:
            if by_columns and count == 1:
                together = _column_steps(pipeline, at, reading, is_pure)
                if together:
                    steps += together
                    at += sum(step.stages for step in together)
                    is_pure = False
                    continue
            form = _form(stages, at, reading)
            step = _reading_step(stages, at, reading, form, is_pure, supply)
        else:
            step = _native_images_step(stages, at, supply) or _python_step(
                pipeline, stages[at], count
            )
            if type(stages[at]) is threads:
                count = stages[at].n
            is_pure = is_pure and _is_pure(stages[at])
        steps.append(step)
        at += step.stages
    return steps


# ---- Reading ----


def _is_pure_source(stage: Any) -> bool:
    from .shardlists import ResampledShards, SimpleShardList

    return type(stage) in (SimpleShardList, ResampledShards, list)


def _is_pure(stage: Any) -> bool:
    """Whether nobody sees when it is asked for its items."""
    from . import shardlists

    if isinstance(stage, FilterFunction):
        own_rng = stage.f is _shuffling._shuffle and stage.kw.get("rng") is None
        return (own_rng and len(stage.args) < 3) or stage.f is itertools.islice
    splitters = (shardlists.split_by_node, shardlists.split_by_worker, shardlists.single_node_only)
    return stage in splitters or type(stage) is _shuffling.detshuffle


def _reading_at(stages: list[Any], at: int) -> _Reading | None:
    """The stages from `at` on that read shards, if they are those of this package."""
    from . import cache, handlers, tariterators

    reraise = handlers.reraise_exception
    names = ("handler", "select_files", "rename_files")
    stage = stages[at]
    whole = {"handler": reraise} if stage is tariterators.tarfile_samples else None
    whole = whole or arguments_of(stage, tariterators.tarfile_samples, names)
    if whole is not None:
        return _Reading(_reading.by_gopen, *_chosen(whole), None, 1)
    if type(stage) not in (cache.StreamingOpen, cache.FileCache) or len(stages) < at + 3:
        return None
    expander = arguments_of(stages[at + 1], tariterators.tar_file_expander, names)
    grouper = arguments_of(stages[at + 2], tariterators.group_by_keys, ())
    if grouper is None:
        grouper = _handler_alone(stages[at + 2], tariterators.group_by_keys)
    if expander is None or grouper is None:
        return None
    handler = expander.get("handler", reraise)
    if grouper.get("handler", reraise) is not handler or stage.handler is not handler:
        return None
    if type(stage) is cache.FileCache:
        return _Reading(_reading.of_stream, *_chosen(expander), stage, 3)
    return _Reading(_reading.by_path, *_chosen(expander), None, 3)


def _chosen(given: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Handler, select_files and rename_files of a stage with these arguments."""
    from .handlers import reraise_exception

    handler = given.get("handler", reraise_exception)
    return handler, given.get("select_files"), given.get("rename_files")


def _handler_alone(stage: Any, function: Any) -> dict[str, Any] | None:
    if not isinstance(stage, FilterFunction) or stage.f is not function or stage.args:
        return None
    return stage.kw if set(stage.kw) <= {"handler"} else None


def _form(stages: list[Any], at: int, reading: _Reading) -> _reading.Form:
    return "rows" if _wants_rows(stages[at + reading.stages :]) else "samples"


def _reading_step(
    stages: list[Any],
    at: int,
    reading: _Reading,
    form: _reading.Form,
    is_pure: bool,
    supply: Supply | None = None,
) -> Step:
    ahead = is_pure and reading.opener is None
    name = "read, group"
    if reading.select_files is not None or reading.rename_files:
        where, why = "engine", "members one by one: functions choose or rename them"
    elif ahead:
        where, why = "engine", "blocks of samples, several shards at once"
    else:
        where, why = "engine", "blocks of samples, one shard after another: each is asked for alone"

    def make(source: Any) -> Any:
        if reading.opener is not None:
            source = reading.opener(source)
        return _reading.read_samples(
            source,
            reading.opening,
            reading.handler,
            select_files=reading.select_files,
            rename_files=reading.rename_files,
            look_ahead=ahead,
            form=form,
            supply=supply,
        )

    return Step(name, where, why, make, reading.stages)


# ---- Stages after reading ----


def _column_steps(pipeline: DataPipeline, at: int, reading: _Reading, is_pure: bool) -> list[Step]:
    """Reading, shuffles and the stages behind them, if these can be carried out on columns."""
    stages = pipeline.pipeline
    if reading.select_files is not None or reading.rename_files:
        return []
    start = at + reading.stages
    first = start
    while first < len(stages) and _passes_parts(stages[first]):
        first += 1
    count = _columns.column_stages(stages[first:], _decoder)
    if not count or _wants_rows(stages[start:]):
        return []
    steps = [_reading_step(stages, at, reading, "parts", is_pure)]
    for stage in stages[start:first]:
        step = _python_step(pipeline, stage, 1)
        steps.append(step._replace(make=_shuffling_parts(step.make)) if _shuffles(stage) else step)
    together = stages[first : first + count]
    make: Any = _columns.ColumnStages(together, _decoder)
    for stage in together:
        steps.append(_column_step(stage, make))
        make = identity  # the first one does all of it
    return steps


def _passes_parts(stage: Any) -> bool:
    """Whether a stage passes samples on, draws from nothing that others see, and drops none."""
    from . import compat

    return stage is compat.check_empty or (_shuffles(stage) and _is_pure(stage))


def _shuffles(stage: Any) -> bool:
    is_shuffle = isinstance(stage, FilterFunction) and stage.f is _shuffling._shuffle
    return is_shuffle or type(stage) is _shuffling.detshuffle


def _shuffling_parts(shuffle: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda source: _shuffled_parts.shuffled(source, shuffle)


def _column_step(stage: Any, make: Callable[[Any], Any]) -> Step:
    if _decoder(stage) is not None:
        why = "columns of a block: numbers, texts, JSON and arrays; one by one where that fails"
        return Step("decode", "Python", why, make)
    if _columns.is_batched(stage):
        why = "columns: .npy files of one layout become one array"
        return Step(_name(stage), "Python", why, make)
    if _columns.predicate_of(stage) is not None:
        why = "columns: a function of the program, called for each sample in its turn"
        return Step(_name(stage), "Python", why, make)
    return Step(_name(stage), "Python", "columns: names are looked at once for a block", make)


def _wants_rows(following: list[Any]) -> bool:
    """Whether samples stay in the engine up to a decoder of images."""
    from . import _native_images

    for stage in following:
        if _passes_rows(stage):
            continue
        if isinstance(stage, FilterFunction) and stage.f is _native_batched:
            return True
        return _native_images.spec_of(_decoder(stage)) is not None
    return False


def _passes_rows(stage: Any) -> bool:
    """Whether a stage does not look at samples."""
    from . import compat

    if isinstance(stage, FilterFunction):
        from .filters import _rsample

        return stage.f in (_shuffling._shuffle, itertools.islice, _rsample)
    return type(stage) is _shuffling.detshuffle or stage is compat.check_empty


def _decoder(stage: Any) -> Any:
    """The function of a map stage."""
    from .filters import _decode, _map, decoder_of

    if not isinstance(stage, FilterFunction):
        return None
    if stage.f is _map and len(stage.args) == 1:
        return stage.args[0]
    if stage.f is _decode:
        return decoder_of(stage.args, {k: v for k, v in stage.kw.items() if k != "handler"})
    return None


def _native_images_step(stages: list[Any], at: int, supply: Supply) -> Step | None:
    """The step of a decoder of images, where its samples are still in the engine."""
    from . import _native_images
    from .handlers import reraise_exception

    before = stages[:at]
    first = next((i for i in range(1, at) if _reading_at(stages, i) is not None), None)
    if first is None:
        return None
    reading = _reading_at(stages, first)
    assert reading is not None
    between = before[first + reading.stages :]
    if not all(map(_passes_rows, between)):
        return None
    decoder = _decoder(stages[at])
    spec = _native_images.spec_of(decoder)
    if spec is None:
        return None
    handler = stages[at].kw.get("handler", reraise_exception)
    threads = _engine.settings().threads
    most = math.prod(map(_most_taken, between))
    ahead = None if any(map(_draws_globally, before)) else supply

    def make(source: Any) -> Any:
        return _native_images.decoded(source, decoder, spec, handler, threads, ahead, most)

    return Step("decode", "engine", f"{spec}: JPEG by threads, in order; other fields here", make)


def _most_taken(stage: Any) -> int:
    """How many items a stage that passes rows takes at most for one, when it has given others."""
    if _shuffles(stage):
        return 2  # as long as its buffer grows
    if isinstance(stage, FilterFunction) and stage.f is itertools.islice:
        return int(slice(*stage.args).step or 1)
    return 1


def _draws_globally(stage: Any) -> bool:
    """Whether a stage draws from what others may draw from, too."""
    from .filters import _rsample

    if not isinstance(stage, FilterFunction):
        return False
    own_rng = stage.f is not _shuffling._shuffle or _is_pure(stage)
    return stage.f is _rsample or not own_rng


def _python_step(pipeline: DataPipeline, stage: Any, count: int) -> Step:
    from .filters import _decode, _map

    name = _name(stage)
    if count > 1 and isinstance(stage, FilterFunction):
        made = in_threads(stage, _fast.fast(_decoder(stage)), count)
        if made is not None:
            return Step(name, "Python", f"{count} threads, in order", made)
    if isinstance(stage, FilterFunction) and stage.f is _native_batched:
        return Step(name, "engine", "batches of the engine", stage)
    if isinstance(stage, FilterFunction) and stage.f in (_map, _decode):
        decoder = _fast.fast(_decoder(stage))
        handler = {k: v for k, v in stage.kw.items() if k == "handler"}
        if isinstance(decoder, _fast.FastDecoder):
            return Step(
                "decode",
                "Python",
                "worked out once for each field",
                lambda source: _map(source, decoder, **handler),
            )
        return Step(name, "Python", "a function of the program", stage)
    if isinstance(stage, FilterFunction) and stage.f is _shuffling._shuffle:
        why = "draws of random.Random, as the original"
    elif isinstance(stage, FilterFunction) and stage.f in (_keys._to_tuple, _collation._batched):
        why = "no more than tuples and arrays are made"
    elif isinstance(stage, (PipelineStage, FilterFunction)):
        why = ""
    else:
        own = (getattr(stage, "__module__", None) or "").startswith(f"{__package__}.")
        why = "a function of the program" if callable(stage) and not own else ""
    return Step(name, "Python", why, lambda source: pipeline.invoke(stage, source))
