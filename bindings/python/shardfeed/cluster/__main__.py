"""`shardfeed map` with an executor or a reduction: one task for each shard."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from .. import UsageError, options
from .._integration import function_named
from ._command import Command
from ._command_line import parsed, run_tasks, task_rows
from ._executors import EXECUTORS
from ._map_shards import map_shards
from ._reducer import Reducer, reducer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .. import Sample
    from ._report import MapReport, TaskReport

_WORDS = ("--executor", "--reduce")


def is_for_tasks(words: Sequence[str]) -> bool:
    """Whether these words of a command line are for this `map`, and not for that of one output."""
    return words[:1] == ["map"] and any(word.split("=", 1)[0] in _WORDS for word in words)


class _OfDicts:
    """A function as `shardfeed map --python` calls it: with a dict of bytes and "__key__"."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._function: Any = None

    def __call__(self, sample: Sample) -> Any:
        if self._function is None:
            self._function = function_named(self._name)
        return self._function({"__key__": sample.key, **sample.to_dict()})

    def __reduce__(self) -> tuple[object, ...]:
        return _OfDicts, (self._name,)


def _function(given: argparse.Namespace) -> _OfDicts | Command | None:
    if given.command:
        return Command(given.command)
    return _OfDicts(given.python) if given.python else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="shardfeed map",
        description="Makes a shard of each shard, one task for each. What is published is skipped, "
        "so that a run that was interrupted is run again. Options of the library are --NAME VALUE.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("inputs", nargs="+", metavar="INPUT", help="shards")
    add("output", metavar="OUTPUT", help='a folder, "out/", or a pattern, "out/%%06d.tar"')
    add("--executor", choices=sorted(EXECUTORS), default="local", help="where the tasks run")
    what = parser.add_mutually_exclusive_group().add_argument
    what("-c", "--command", help="a shell command, in a folder with the files sample.FIELD")
    what("--python", metavar="FUNCTION", help="MODULE:FUNCTION, called with a dict of bytes")
    add("--reduce", metavar="REDUCER", help="MODULE:NAME of a shardfeed.cluster.Reducer")
    add("-p", "--parallel", type=int, metavar="N", help="processes; by default one for each core")
    add("--samples-per-task", type=int, metavar="N", help="tasks of so many samples")
    add("-e", "--on-error", choices=["abort", "skip"], default="abort", help="of the function")
    add("--task-retries", type=int, default=2, metavar="N", help="when a task dies; default 2")
    add("--json", action="store_true", help="print the report as JSON")
    add("-q", "--quiet", action="store_true", help="no line for each task")
    return parser


def _library_options(words: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Options of readers and writers among what the parser did not know."""
    known = {option["name"]: option for option in options()}
    reader: dict[str, str] = {}
    writer: dict[str, str] = {}
    left = list(words)
    while left:
        word, given, value = left.pop(0).partition("=")
        option = known.get(word[2:].replace("-", "_")) if word.startswith("--") else None
        if option is None:
            raise UsageError(f"{word} is no option; help: shardfeed map --executor local --help")
        if not given:
            flag = option["type"] == "bool" and not (left and left[0] in ("true", "false"))
            if not flag and not left:
                raise UsageError(f"{word} has no value; help: give {word} VALUE")
            value = "true" if flag else left.pop(0)
        takes = option["openers"].split()
        # Only outputs are written: an index beside inputs is the reader's affair.
        if "writer" in takes:
            writer[option["name"]] = value
        if ("stream" in takes or "dataset" in takes) and option["name"] != "write_index":
            reader[option["name"]] = value
    return reader, writer


def _described(report: MapReport) -> dict[str, Any]:
    names = ("input", "start", "stop", "output", "status", "samples", "written", "skipped")
    return {
        "tasks": task_rows(report, *names, "bytes", "digest", "error"),
        "result": report.result,
    }


def main(words: Sequence[str] | None = None) -> int:
    """Runs it and gives the exit status: 1 when tasks failed, 2 for a wrong command line."""
    given, rest, status = parsed(_parser(), words)
    if given is None:
        return status
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `shardfeed map --python` finds modules

    def run(on_task: Callable[[TaskReport], None]) -> MapReport:
        reader, writer = _library_options(rest)
        reduce: Any = function_named(given.reduce) if given.reduce else None
        if isinstance(reduce, type) and issubclass(reduce, Reducer):
            reduce = reduce()
        return map_shards(
            given.inputs,
            given.output,
            _function(given),
            executor=given.executor,
            workers=given.parallel,
            samples_per_task=given.samples_per_task,
            reduce=reducer_of(reduce),
            on_error="raise" if given.on_error == "abort" else "skip",
            retries=given.task_retries,
            reader=reader,
            writer=writer,
            on_task=on_task,
        )

    status, report = run_tasks(run, _described, as_json=given.json, quiet=given.quiet)
    if report is not None and report.result is not None and not given.json:
        sys.stdout.write(json.dumps(report.result) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
