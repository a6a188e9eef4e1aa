"""Tasks: which input each one reads, and which shard it publishes."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from errno import EEXIST
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from .. import (
    AuthError,
    Dataset,
    Members,
    NetPermanentError,
    NotFoundError,
    UsageError,
    Writer,
    expand_urls,
    options,
)
from .._integration import canonical_text, option_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing_extensions import TypeAlias

    from .._integration import URLs

    Output: TypeAlias = "str | os.PathLike[str] | Callable[[Task], str | os.PathLike[str]] | None"

_ARCHIVES = (".tar", ".tgz", ".zip", ".tar.gz", ".tar.zst", ".tar.xz", ".tar.lz4", ".tar.bz2")


@dataclass(frozen=True)
class Task:
    """One input and the shard that is made of it."""

    number: int
    """Of all tasks, from 0."""
    input: str
    """The URL of a shard; of reshard "samples", whose numbers are places in the new order."""
    start: int | None = None
    """The first sample of it; None for all samples of the shard."""
    stop: int | None = None
    """The first sample after them."""
    output: str | None = None
    """The name of the shard that is made; None when nothing is published."""

    def __str__(self) -> str:
        part = "" if self.start is None else f"[{self.start}:{self.stop}]"
        return self.input + part


def options_for(opener: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the options that this opener ("stream", "dataset", ...) takes."""
    takes = {o["name"] for o in options() if opener in o["openers"].split()}
    return {name: value for name, value in given.items() if name in takes}


def tasks_of(
    inputs: URLs,
    output: Output,
    *,
    samples_per_task: int | None,
    reader: Mapping[str, Any],
) -> list[Task]:
    """The tasks of a run: the same list on every machine that is given the same inputs."""
    tasks: list[Task] = []
    for url in expand_urls(inputs, **options_for("stream", reader)):
        for start, stop in _ranges(url, samples_per_task, reader):
            tasks.append(Task(len(tasks), url, start, stop))
    if output is None:
        return tasks
    named = [Task(t.number, t.input, t.start, t.stop, _name(t, output)) for t in tasks]
    seen: dict[str, Task] = {}
    for task in named:
        other = seen.setdefault(task.output or "", task)
        if other is not task:
            raise UsageError(
                f"{other} and {task} would both make {task.output}; help: give an output with the "
                'number of the task, such as "out/%06d.tar", or a function of the task'
            )
    return named


def _ranges(
    url: str, samples: int | None, reader: Mapping[str, Any]
) -> Iterable[tuple[int | None, int | None]]:
    if samples is None:
        return [(None, None)]
    if samples < 1:
        raise UsageError(f"samples_per_task={samples}; help: give 1 or more")
    with Dataset(url, **options_for("dataset", {**reader, "expand": False})) as data:
        count = len(data)
    return [(start, min(start + samples, count)) for start in range(0, count, samples)]


def _name(task: Task, output: Output) -> str:
    if callable(output):
        return os.fspath(output(task))
    pattern = os.fspath(output or "")
    if pattern.endswith("/") or ("://" not in pattern and os.path.isdir(pattern)):
        return posixpath.join(pattern, _base_name(task))
    if "%" not in pattern:
        raise UsageError(
            f"the output {pattern!r} has no number of the task; help: give a folder, which ends "
            'in "/", or a pattern such as "out/%06d.tar"'
        )
    try:
        return pattern % task.number
    except (TypeError, ValueError):
        raise UsageError(
            f"the output {pattern!r} is no pattern; help: give one with one number, such as "
            '"out/%06d.tar"'
        ) from None


def _base_name(task: Task) -> str:
    if task.input == "-" or task.input.startswith("pipe:"):
        raise UsageError(
            f"{task.input.split()[0]} has no name for an output in a folder; help: give a pattern "
            'such as "out/%06d.tar"'
        )
    name = posixpath.basename(task.input.split("?", 1)[0] if "://" in task.input else task.input)
    for suffix in sorted(_ARCHIVES, key=len, reverse=True):
        if name.endswith(suffix):
            break
    else:
        raise UsageError(
            f"the name {name!r} says no format of a shard that can be written; help: give a "
            'pattern such as "out/%06d.tar"'
        )
    part = "" if task.start is None else f"-{task.start:09d}"
    return name[: -len(suffix)] + part + suffix


# ---- What is published ---------------------------------------------------------------------------


def local_path(url: str) -> str | None:
    """The path of a file of this machine, also of a file: URL; None for what is elsewhere."""
    if url.startswith("file:"):
        rest = url[len("file:") :]
        if rest.startswith("//"):
            rest = "/" + rest[2:].partition("/")[2]  # without the host, which is this machine
        return os.fsdecode(unquote_to_bytes(rest))
    return None if "://" in url else url


def size_of_file(url: str) -> int | None:
    """Bytes of a file of this machine; None for others."""
    path = local_path(url)
    try:
        return None if path is None else os.stat(path).st_size
    except OSError:
        return None


def make_folders(tasks: Iterable[Task]) -> None:
    """Makes the local folders of outputs."""
    for task in tasks:
        path = None if task.output is None else local_path(task.output)
        folder = os.path.dirname(path or "")
        if folder:
            os.makedirs(folder, exist_ok=True)


def overwrites(writer: Mapping[str, Any]) -> bool:
    """Whether shards that are there are replaced. From a command line it is a text: "no"."""
    texts = option_texts({n: value for n, value in writer.items() if n == "overwrite"})
    return canonical_text("overwrite", texts, "writer") == "true"


def marker_of(output: str) -> str:
    """What is published for a task of which no sample is left: readers refuse empty shards."""
    return output + ".empty"


def is_published(url: str, reader: Mapping[str, Any]) -> bool:
    """Whether a shard is there."""
    path = local_path(url)
    if path is not None:
        return os.path.lexists(path)
    taken: Any = options_for("archive", reader)
    try:
        with Members(url, **taken) as members:
            next(iter(members), None)
    except (NotFoundError, NetPermanentError, AuthError):
        return False  # or hidden: the writer overwrites nothing, and says so
    return True


# Options of a writer that would make another number of shards than one, or leave a part.
NOT_FOR_WRITERS = (
    *("max_samples", "max_bytes", "first_shard", "wids_index", "keep_partial"),
    "prepare",
)

# Options of a writer that are not for markers.
_OF_SHARDS = {
    *("format", "compression", "level", "encode_threads", "index", "write_index"),
    *("index_for", "index_dir", "duplicate_keys"),
}


def of_marker(writer: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a writer of a plain tar that is not for readers of the output."""
    kept = {n: value for n, value in writer.items() if n not in _OF_SHARDS}
    return {**kept, "format": "tar", "compression": "none"}


def publish_marker(task: Task, samples: int, writer: Mapping[str, Any]) -> None:
    """Says that the task is done and made no sample."""
    name = marker_of(task.output or "")
    sample = {"__key__": "empty", "json": {"input": task.input, "samples": samples}}
    try:
        with Writer(lambda _: name, **of_marker(writer)) as marker:
            marker.write(sample)
    except OSError as error:
        if error.errno != EEXIST:  # another run was quicker
            raise
