"""What the command starts for `shardfeed reshard`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from ._command_line import parsed, run_tasks, task_rows
from ._executors import EXECUTORS
from ._reshard import reshard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._report import MapReport, TaskReport


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="shardfeed reshard", allow_abbrev=False)
    add = parser.add_argument
    add("inputs", nargs="+")
    add("--output", required=True)
    add("--samples", type=int, required=True)
    add("--shuffle", action="store_true")
    add("--seed", type=int, default=0)
    add("--sort", action="store_true")
    add("--rekey")
    add("--scratch")
    add("--memory", default="256MiB")
    add("--executor", choices=sorted(EXECUTORS), default="local")
    add("--parallel", type=int)
    add("--task-retries", type=int, default=2)
    add("--json", action="store_true")
    add("--quiet", action="store_true")
    add("--reader", action="append", default=[], metavar="NAME=VALUE")
    add("--writer", action="append", default=[], metavar="NAME=VALUE")
    return parser


def _pairs(words: Sequence[str]) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def _described(report: MapReport) -> dict[str, Any]:
    names = ("start", "stop", "output", "status", "samples", "bytes", "digest", "error")
    return {"tasks": task_rows(report, *names)}


def main(words: Sequence[str] | None = None) -> int:
    """Runs it and gives the exit status: 1 when tasks failed, 2 for a wrong command line."""
    given, rest, status = parsed(_parser(), words)
    if given is None:
        return status
    if rest:
        sys.stderr.write(
            f"shardfeed: {' '.join(rest)} is not known; help: shardfeed help reshard\n"
        )
        return 2

    def run(on_task: Callable[[TaskReport], None]) -> MapReport:
        return reshard(
            given.inputs,
            given.output,
            samples=given.samples,
            shuffle=given.shuffle,
            seed=given.seed,
            sort=given.sort,
            rekey=given.rekey,
            scratch=given.scratch,
            memory=given.memory,
            executor=given.executor,
            workers=given.parallel,
            retries=given.task_retries,
            reader=_pairs(given.reader),
            writer=_pairs(given.writer),
            on_task=on_task,
        )

    status, report = run_tasks(run, _described, as_json=given.json, quiet=given.quiet)
    missing = sum(task.status == "elsewhere" for task in report or ())
    if report is not None and missing and not given.quiet:
        sys.stderr.write(
            f"{missing} of {len(report)} shards are those of other jobs, and not there yet; help: "
            "when all jobs have ended, another run makes what is missing\n"
        )
    return status


if __name__ == "__main__":
    sys.exit(main())
