"""map_shards: one task for each shard, under an executor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from .. import UsageError
from ._executors import EXECUTORS
from ._reducer import finished, merged_result, reducer_of
from ._report import MapReport, TaskReport, error_of
from ._run import Job
from ._tasks import NOT_FOR_WRITERS, make_folders, options_for, overwrites, tasks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .._integration import URLs
    from ._reducer import Reduce, Reducer
    from ._tasks import Output

# What would give a task other samples than those of its shard, or more than one shard.
_NOT_FOR_READERS = (
    *("shuffle", "resample", "epochs", "epoch_samples", "even", "lanes", "limit", "slice"),
    *("rank", "world_size", "worker", "num_workers", "batch"),
)


def map_shards(
    input: URLs,
    output: Output,
    function: Callable[[Any], Any] | str | None = None,
    *,
    executor: Literal["local", "array", "ray", "dask"] = "local",
    workers: int | None = None,
    samples_per_task: int | None = None,
    decode: str | None = None,
    reduce: Reduce | None = None,
    on_error: Literal["raise", "skip"] = "raise",
    retries: int = 2,
    encoder: Any = True,
    reader: Mapping[str, Any] | None = None,
    writer: Mapping[str, Any] | None = None,
    on_task: Callable[[TaskReport], object] | None = None,
) -> MapReport:
    """Makes a shard of each shard, one task for each, and says what each input became.

        def small(sample):
            return {"jpg": shrink(sample["jpg"]), "cls": sample["cls"]}

        report = shardfeed.map_shards("train-{000..999}.tar", "small/", small)

    input: as for Stream. output: a folder, which ends in "/" and gets the names of the inputs; a
    pattern with the number of the task, "out/%06d.tar"; a function from cluster.Task to a name; or
    None, for a reduction that publishes nothing.

    function: takes a Sample, or with `decode` a dict of decoded fields and "__key__"; returns a
    sample, a mapping from field to value, None to leave the sample out, or an iterable of them.
    Results without "__key__" get that of the sample, those of an iterable with "-0", "-1", ...
    behind it. "module:function" is imported where it is called. Without a function samples are
    passed on.

    executor: "local", processes of this machine; "array", one job of a job array, which takes its
    share of the tasks; "ray" and "dask", a cluster. workers: processes, by default one for each
    core; 0: this process.

    samples_per_task: tasks of so many samples instead of whole shards; by the indexes of the
    shards, which are made when they are missing.

    reduce: a cluster.Reducer, or several by name. The output of each task is then its partial
    result, and report.result is the result of all.

    on_error: when the function fails, "raise" ends the task, and "skip" skips the sample, with all
    that the function made of it. retries: how often a task is run again when its process dies or a
    fault may pass. encoder: that of Writer. reader, writer: options of Stream or Dataset, and of
    Writer.

    A task publishes its output whole or not at all. It is skipped when its output is there, so two
    runs at once do no harm, and a run that was interrupted is continued by another run. When tasks
    failed, MapError is raised after all others were run.

    on_task: called with the TaskReport of each task when it is done.
    """
    if executor not in EXECUTORS:
        raise UsageError(f"executor={executor!r}; help: give one of {', '.join(EXECUTORS)}")
    if on_error not in ("raise", "skip"):
        raise UsageError(f'on_error={on_error!r}; help: give "raise" or "skip"')
    reducer = reducer_of(reduce)
    if output is None and (reducer is None or executor == "array"):
        raise UsageError(
            "there is no output; help: give a folder or a pattern: without one only a reduction "
            "runs, and not in a job array"
        )
    read_options, write_options = dict(reader or {}), dict(writer or {})
    _refuse(read_options, _NOT_FOR_READERS, "reader")
    _refuse(write_options, NOT_FOR_WRITERS, "writer")
    if "overwrite" in write_options:
        write_options["overwrite"] = overwrites(write_options)
    tasks = tasks_of(input, output, samples_per_task=samples_per_task, reader=read_options)
    make_folders(tasks)
    job = Job(
        function=function,
        reducer=reducer,
        decode=decode,
        skips_faults=on_error == "skip",
        retries=retries,
        encoder=encoder,
        reader=read_options,
        writer=write_options,
    )
    reports: dict[int, TaskReport] = {}
    for report in EXECUTORS[executor](job, tasks, workers):
        reports[report.task.number] = report
        if on_task is not None:
            on_task(report)
    ordered = MapReport([reports[task.number] for task in tasks])
    if any(report.status == "failed" for report in ordered):
        raise error_of(ordered)
    if reducer is None or not ordered.is_complete:
        return ordered
    return MapReport(ordered.tasks, _result(reducer, ordered, read_options))


def _refuse(given: dict[str, Any], refused: tuple[str, ...], where: str) -> None:
    for name in given:
        if name in refused:
            raise UsageError(
                f"{where}: the option {name} is not for tasks, which read all of their input and "
                "write one shard; help: samples_per_task makes smaller ones"
            )


def _result(reducer: Reducer, report: MapReport, reader: dict[str, Any]) -> Any:
    if report.tasks and report.tasks[0].task.output is None:
        return finished(reducer, [task.partial for task in report])
    return merged_result(reducer, report.outputs, **options_for("stream", _plain(reader)))


def _plain(reader: dict[str, Any]) -> dict[str, Any]:
    """The options for reading partial results: those of inputs choose samples and fields."""
    chosen = ("fields", "select_keys", "decode", "on_error")
    return {name: value for name, value in reader.items() if name not in chosen}
