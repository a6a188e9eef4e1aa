"""Which functions transform samples and batches, and where they run.

What runs them is imported where there are some: this module is imported with the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ._errors import UsageError
from ._recipe import seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import TypeAlias

    from ._recipe import Duration

    Transform: TypeAlias = Callable[[dict[str, Any]], Any]
    BatchTransform: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True)
class Transforms:
    """The functions, and where they run: in the thread that asks, in threads, or in processes."""

    transform: Transform | None
    batch_transform: BatchTransform | None
    threads: int
    workers: int
    timeout: float  # of one call, in seconds; 0: none
    start: str | None  # the start method of multiprocessing; None: its default
    arrays: str  # what those of rows are: "numpy" or "torch"
    ragged: Mapping[str, str] = field(default_factory=dict)  # "offsets" or "pad", by field


class TransformOptions(TypedDict, total=False):
    """What batches() and others take: see Stream.batches()."""

    transform: Transform | None
    batch_transform: BatchTransform | None
    transform_threads: int
    transform_workers: int
    transform_timeout: Duration
    transform_start: Literal["fork", "spawn", "forkserver"] | None
    transform_arrays: Literal["numpy", "torch"]
    transform_ragged: Mapping[str, Literal["offsets", "pad"]]


_ONE_OF = {
    "transform_start": (None, "fork", "spawn", "forkserver"),
    "transform_arrays": ("numpy", "torch"),
}


_NAMES = frozenset(TransformOptions.__annotations__)


def checked_transforms(options: dict[str, Any]) -> Transforms | None:
    """Takes what TransformOptions has out of some options. None where nothing is to be called."""
    given = {name: options.pop(name) for name in list(options) if name in _NAMES}
    for name in ("transform_threads", "transform_workers"):
        count = given.get(name, 0)
        if not isinstance(count, int) or not 0 <= count <= 1024:
            raise UsageError(f"{name}: {count!r} is no number of 0..1024; help: give how many")
    for name, choices in _ONE_OF.items():
        chosen = given.get(name, choices[0])
        if chosen not in choices:
            shown = ", ".join(map(repr, filter(None, choices)))
            raise UsageError(f"{name}: {chosen!r} is not known; help: give one of {shown}")
    for name in ("transform", "batch_transform"):
        if given.get(name) is not None and not callable(given[name]):
            raise TypeError(f"{name}: a function expected, not {type(given[name]).__qualname__}")
    made = Transforms(
        given.get("transform"),
        given.get("batch_transform"),
        given.get("transform_threads", 0),
        given.get("transform_workers", 0),
        seconds(given.get("transform_timeout")),
        given.get("transform_start"),
        given.get("transform_arrays", "numpy"),
        dict(given.get("transform_ragged") or {}),
    )
    for name, how in made.ragged.items():
        if how not in ("offsets", "pad"):
            raise UsageError(
                f'transform_ragged: {how!r} for "{name}" is not known; help: give "offsets" or '
                '"pad" for each field, as in {"boxes": "offsets"}'
            )
    if made.transform is None and made.batch_transform is None:
        if made != Transforms(None, None, 0, 0, 0.0, None, made.arrays):
            raise UsageError(
                "nothing is to be transformed; help: give transform= or batch_transform=, or leave "
                "out transform_threads, transform_workers, transform_timeout, transform_start and "
                "transform_ragged"
            )
        return None
    if made.threads and made.workers:
        raise UsageError(
            "transform_threads and transform_workers: a transform runs in threads or in worker "
            "processes; help: give one of the two"
        )
    if made.timeout and not (made.threads or made.workers):
        raise UsageError(
            "transform_timeout: nobody can watch a transform that runs in the thread that asks for "
            "batches; help: give transform_workers, or transform_threads"
        )
    return made
