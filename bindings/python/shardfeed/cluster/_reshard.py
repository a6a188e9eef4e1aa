"""reshard: the samples of many shards into others, in their order or in a random one."""

from __future__ import annotations

import operator
import os
import posixpath
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from .. import Dataset, UsageError, expand_urls, options
from .._integration import canonical_text
from ._executors import EXECUTORS
from ._gather import Gather, Sort
from ._key_order import KeyGather, KeyMerge, KeySort, keys_of
from ._new_order import NewOrder, claim, description_of
from ._report import MapReport, TaskReport, error_of
from ._tasks import (
    NOT_FOR_WRITERS,
    Task,
    local_path,
    make_folders,
    options_for,
    overwrites,
    size_of_file,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .._integration import URLs
    from ._run import TaskJob

_NOT_FOR_READERS = ("decode", "expand", "seed", "epoch")  # of those that Dataset takes
_OPENED_AT_ONCE = 8  # shards whose indexes are looked at
_MOST_MEMORY = 1 << 44


def reshard(
    input: URLs,
    output: str | os.PathLike[str],
    *,
    samples: int,
    shuffle: bool = False,
    seed: int = 0,
    sort: bool = False,
    rekey: str | None = None,
    scratch: str | os.PathLike[str] | None = None,
    memory: int | str = "256MiB",
    executor: Literal["local", "array", "ray", "dask"] = "local",
    workers: int | None = None,
    retries: int = 2,
    reader: Mapping[str, Any] | None = None,
    writer: Mapping[str, Any] | None = None,
    on_task: Callable[[TaskReport], object] | None = None,
) -> MapReport:
    """Makes shards of `samples` samples each of all inputs, one task for each that is made.

        report = shardfeed.reshard("train-{000..999}.tar", "new/", samples=10_000, shuffle=True)

    input: as for Dataset: files that can be read at any place. Indexes that are missing are made
    beforehand. output: a folder, which ends in "/" and gets 000000.tar and so on, or a pattern,
    "new/%06d.tar.zst".

    shuffle: all samples in one random order, which `seed` and their number determine. Without it,
    samples keep their order.

    sort: all samples in the order of their keys, as bytes; of equal ones that of the first input is
    first. It needs scratch: every input is sorted there, and one task merges the keys.

    rekey: new keys, by the place in the new order: "#" for nine digits, or a pattern such as
    "train/%07d". A shard cannot have a key twice, which inputs may have together.

    scratch: a folder, which ends in "/", for two phases: every input is first sorted by where its
    samples go, so that inputs are read from front to back, and an output reads one stretch of each.
    For object stores, where reading sample by sample is slow. The same shards come out.

    memory: bytes that the samples which a task holds take at most, and the largest sample. Up to 64
    samples may come on top where sizes jump, and the indexes of shards.

    executor, workers, retries, reader, writer, on_task: as for map_shards. Shards are published
    whole or not at all, those that are there are skipped, and the bytes are the same under every
    executor. A mark beside the first output, 000000.tar.plan, says which order it is: a run with
    another one is refused. Nothing is overwritten, since two orders could mix. When tasks failed,
    MapError is raised after all others were run.
    """
    samples, seed = _whole_number("samples", samples), _whole_number("seed", seed)
    read_options, write_options = _checked(executor, samples, seed, reader, writer)
    if scratch is not None:
        _check_scratch(os.fspath(scratch), shuffle or sort, read_options)
    if sort and (shuffle or scratch is None):
        raise UsageError(
            "sort is another order than shuffle; help: give one of them"
            if shuffle
            else "sort needs a folder for sorted inputs; help: give scratch"
        )
    rekey = _checked_rekey(rekey)
    held = _checked_memory(memory)
    pattern = _checked_pattern(os.fspath(output))
    shards = _counted(input, read_options)
    order = NewOrder(shards, samples, seed if shuffle else None, sort)
    if not order.count:
        raise UsageError("the inputs have no samples; help: look at them with shardfeed ls")
    if read_options.get("index") == "rebuild":
        del read_options["index"]  # once is enough
    tasks = [
        Task(n, "samples", n * samples, min((n + 1) * samples, order.count), pattern % n)
        for n in range(order.outputs)
    ]
    _check_outputs(tasks, shards)
    make_folders(tasks)
    description = description_of(order, rekey, read_options, write_options)
    run_name = claim(tasks, description, read_options, write_options)
    common: Any = {
        "order": order,
        "memory": held,
        "mean": _mean_size(order),
        "retries": retries,
        "reader": read_options,
        "writer": write_options,
    }

    def run(job: TaskJob, tasks: Sequence[Task]) -> MapReport:
        reports: dict[int, TaskReport] = {}
        for report in EXECUTORS[executor](job, tasks, workers):
            reports[report.task.number] = report
            if on_task is not None:
                on_task(report)
        ordered = MapReport([reports[task.number] for task in tasks])
        if any(report.status == "failed" for report in ordered):
            error = error_of(ordered)
            if not isinstance(job, (Sort, KeySort)):  # each of which has an input
                error.shard = next(t.task.output or "" for t in ordered if t.status == "failed")
            raise error
        return ordered

    if scratch is None:
        return run(Gather(**common, rekey=rekey, sorted_inputs=None), tasks)
    sorts = _sort_tasks(os.fspath(scratch), run_name, order)
    names = {task.number: task.output or "" for task in sorts}
    # Of shuffle one sample more: it says where those of each output start.
    copies = tuple(
        (names[n], count + (not sort)) if count else ("", 0) for n, (_, count) in enumerate(shards)
    )
    phases: list[tuple[TaskJob, list[Task]]]
    gather: Gather
    if sort:
        plan = posixpath.join(os.fspath(scratch), f"{run_name}-plan.tar")
        phases = [
            (KeySort(**common), sorts),
            (KeyMerge(**common, copies=copies), [Task(0, "keys", output=plan)]),
        ]
        gather = KeyGather(**common, rekey=rekey, sorted_inputs=copies, plan=plan)
    else:
        phases = [(Sort(**common), sorts)]
        gather = Gather(**common, rekey=rekey, sorted_inputs=copies)
    there = [gather.found_there(task) for task in tasks]
    if None in there:
        make_folders(sorts)
        for job, parts in phases:
            if not run(job, parts).is_complete:  # another job of the array has not ended
                found = zip(there, tasks)
                return MapReport([done or TaskReport(task, "elsewhere") for done, task in found])
    report = run(gather, tasks)
    if report.is_complete:
        for _, parts in phases:
            _remove_local(parts)
    return report


# ---- What is asked for ---------------------------------------------------------------------------


def _whole_number(name: str, value: int) -> int:
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise UsageError(f"{name}={value!r}; help: give a whole number")


def _checked(
    executor: str,
    samples: int,
    seed: int,
    reader: Mapping[str, Any] | None,
    writer: Mapping[str, Any] | None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of readers and writers."""
    if executor not in EXECUTORS:
        raise UsageError(f"executor={executor!r}; help: give one of {', '.join(EXECUTORS)}")
    if samples < 1:
        raise UsageError(f"samples={samples}; help: give 1 or more, for each output shard")
    if not 0 <= seed < 1 << 64:
        raise UsageError(f"seed={seed}; help: give a number from 0 to 2^64 - 1")
    read_options, write_options = dict(reader or {}), dict(writer or {})
    known = {o["name"] for o in options() if "dataset" in o["openers"].split()}
    for name in read_options:
        if name not in known or name in _NOT_FOR_READERS:
            raise UsageError(
                f"reader: the option {name} is not for reshard, which reads samples by number and "
                "as they are; help: leave it out"
            )
    for name in NOT_FOR_WRITERS:
        if name in write_options:
            raise UsageError(f"writer: the option {name} is not for reshard; help: give samples")
    if overwrites(write_options):
        raise UsageError(
            "writer: overwrite is not for reshard, since outputs of another order could stay among "
            "the new ones; help: give a new folder, or remove the old shards and their mark, .plan"
        )
    write_options.pop("overwrite", None)
    return read_options, write_options


def _check_scratch(scratch: str, has_order: bool, reader: Mapping[str, Any]) -> None:
    if not scratch.endswith("/") and not ("://" not in scratch and os.path.isdir(scratch)):
        raise UsageError(f"scratch={scratch!r}; help: give a folder, which ends in /")
    if not has_order:
        raise UsageError(
            "scratch is for shuffle and sort; help: leave it out, since the order stays"
        )
    if str(reader.get("duplicate_keys", "error")) != "error":
        raise UsageError(
            "reader: duplicate_keys is not for two phases, where samples with one key may become "
            "neighbours; help: leave out scratch"
        )


def _checked_rekey(rekey: str | None) -> str | None:
    if rekey == "#":
        return "%09d"
    if rekey is not None and not (isinstance(rekey, str) and _has_one_number(rekey)):
        raise UsageError(
            f'rekey={rekey!r} is no pattern; help: give "#", or one number, as in "train/%07d"'
        )
    return rekey


def _checked_memory(memory: int | str) -> int:
    held = int(canonical_text("memory", {"memory": str(memory)}))
    return min(held, _MOST_MEMORY)


def _checked_pattern(output: str) -> str:
    if output == "-" or output.startswith("pipe:"):
        raise UsageError(
            f"{output.split()[0]}: reshard publishes shards by their names, and a pipe keeps none; "
            "help: give a folder or a pattern"
        )
    if output.endswith("/") or ("://" not in output and os.path.isdir(output)):
        folder = output.replace("%", "%%")
        return posixpath.join(folder, "%06d.tar")
    if not _has_one_number(output):
        raise UsageError(
            f"the output {output!r} has no number of the shard; help: give a folder, which ends in "
            '"/", or a pattern such as "out/%06d.tar"'
        )
    return output


def _check_outputs(tasks: Sequence[Task], shards: Sequence[tuple[str, int]]) -> None:
    """Refuses outputs that are inputs, and two with one name."""
    inputs = {_place_of(url): url for url, _ in shards}
    outputs: dict[str, Task] = {}
    for task in tasks:
        other = outputs.setdefault(task.output or "", task)
        if other is not task:
            raise UsageError(
                f"{other} and {task} would both make {task.output}; help: give an output with the "
                'whole number of the shard, such as "out/%06d.tar"'
            )
        same = inputs.get(_place_of(task.output or ""))
        if same is not None:
            raise UsageError(
                f"{task.output}: it would be an output, and is the input {same}; help: give a new "
                "folder"
            )


def _place_of(url: str) -> str:
    path = local_path(url)
    return url if path is None else os.path.realpath(path)


def _has_one_number(pattern: str) -> bool:
    try:
        return bool(pattern % 0 != pattern % 1)
    except (TypeError, ValueError):
        return False


# ---- Inputs --------------------------------------------------------------------------------------


def _counted(input: URLs, reader: dict[str, Any]) -> tuple[tuple[str, int], ...]:
    """The shards, and how many samples their indexes say."""
    urls = expand_urls(input, **options_for("stream", reader))
    for url in urls:
        if url == "-" or url.startswith("pipe:") or _is_pipe(url):
            raise UsageError(
                f"{url.split()[0]}: a pipe cannot be read at any place; help: write it to a file "
                "first, with shardfeed cat"
            )
    pool = ThreadPoolExecutor(_OPENED_AT_ONCE)
    try:
        counts = list(pool.map(lambda url: _count(url, reader), urls))
    finally:
        pool.shutdown(cancel_futures=True)
    return tuple(zip(urls, counts))


def _count(url: str, reader: dict[str, Any]) -> int:
    own: Any = {**reader, "expand": False}
    with Dataset(url, **own) as data:
        return len(data)


def _is_pipe(url: str) -> bool:
    if "://" in url:
        return False
    try:
        return stat.S_ISFIFO(os.stat(url).st_mode)
    except OSError:
        return False  # which opening it says better


def _mean_size(order: NewOrder) -> int | None:
    """Bytes of a sample, when all inputs are files of this machine."""
    sizes = [size_of_file(url) for url, _ in order.shards]
    known = [size for size in sizes if size is not None]
    return sum(known) // order.count if len(known) == len(sizes) else None


# ---- Two phases ----------------------------------------------------------------------------------


def _sort_tasks(scratch: str, run: str, order: NewOrder) -> list[Task]:
    """A task for each input. What it makes is named after the run, and found by no other one."""
    return [
        Task(n, url, output=posixpath.join(scratch, f"{run}-{n:06d}.tar"))
        for n, (url, count) in enumerate(order.shards)
        if count
    ]


def _remove_local(sorts: Sequence[Task]) -> None:
    """Removes sorted inputs, where they are files; of a store its owner does that."""
    for task in sorts:
        path = None if task.output is None else local_path(task.output)
        if path is not None:
            for name in (path, keys_of(path)):
                for file in (name, f"{name}.sfidx"):
                    with suppress(FileNotFoundError):
                        os.unlink(file)
