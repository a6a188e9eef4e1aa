"""Stages beside those of the original: threads for functions of the program, and progress."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from ._keys import _map_dict, _map_tuple
from ._stage import FilterFunction, pipelinefilter
from .handlers import reraise_exception

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# Samples that each thread has before it.
_AHEAD = 2


class threads:  # noqa: N801  it is used as a function, and read as a stage
    """From here on functions of the program run in n threads, in the order of the samples.

        dataset.compose(wds.threads(4)).map(download).map_dict(jpg=augment)

    map, map_dict, map_tuple and decode run so. They should let other threads run, as NumPy, Pillow
    and reading do. threads(1) ends it.
    """

    def __init__(self, n: int) -> None:
        if n < 1:
            raise ValueError(f"threads({n}); help: 1 or more")
        self.n = n

    def __call__(self, data: Iterable[Any]) -> Iterable[Any]:
        return data

    def __repr__(self) -> str:
        return f"threads({self.n})"


def in_threads(
    stage: FilterFunction, function: Callable[[Any], Any] | None, n: int
) -> Callable[[Any], Iterator[Any]] | None:
    """A stage whose function runs in n threads; None where it has none.

    function: of a map stage.
    """
    from .filters import _map

    kw = {name: value for name, value in stage.kw.items() if name != "handler"}
    handler = stage.kw.get("handler", reraise_exception)
    if function is not None:

        def work(sample: Any) -> list[Any]:
            return list(_map([sample], function))
    elif stage.f in (_map_dict, _map_tuple):

        def work(sample: Any) -> list[Any]:
            return list(stage.f([sample], *stage.args, **kw))
    else:
        return None
    return lambda source: _ordered(source, work, n, handler)


def _ordered(
    source: Iterable[Any],
    work: Callable[[Any], list[Any]],
    n: int,
    handler: Callable[[Exception], bool],
) -> Iterator[Any]:
    from concurrent.futures import ThreadPoolExecutor

    waiting: deque[Any] = deque()
    items = iter(source)
    failed: Exception | None = None
    at_end = False
    with ThreadPoolExecutor(n, thread_name_prefix="shardfeed-map") as pool:
        try:
            while True:
                while not at_end and len(waiting) < n * _AHEAD:
                    try:
                        waiting.append(pool.submit(work, next(items)))
                    except StopIteration:
                        at_end = True
                    except Exception as exn:  # comes after the samples before it
                        failed, at_end = exn, True
                if not waiting:
                    break
                try:
                    results = waiting.popleft().result()
                except Exception as exn:
                    if handler(exn):
                        continue
                    return
                yield from results
        finally:
            for job in waiting:
                job.cancel()
    if failed is not None:
        raise failed


def _progress(
    data: Iterable[Any], total: int | None = None, name: str = "samples"
) -> Iterator[Any]:
    """Shows how many items have passed: by tqdm, else by rich; without either it does nothing."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        try:
            from rich.progress import track
        except ImportError:
            yield from data
            return
        yield from track(data, description=name, total=total)
        return
    yield from tqdm(data, total=total, unit=f" {name}")


progress = pipelinefilter(_progress)
