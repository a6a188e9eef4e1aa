"""What the command starts for `shardfeed reshard`."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from typing import TYPE_CHECKING

from .. import Error, UsageError
from ._executors import EXECUTORS
from ._report import MapError
from ._reshard import reshard

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def _described(report: MapReport) -> str:
    names = ("status", "samples", "bytes", "digest", "error")
    return json.dumps(
        {
            "tasks": [
                {
                    "start": done.task.start,
                    "stop": done.task.stop,
                    "output": done.task.output,
                    **{name: getattr(done, name) for name in names},
                }
                for done in report
            ]
        }
    )


def main(words: Sequence[str] | None = None) -> int:
    """Runs it and gives the exit status: 1 when tasks failed, 2 for a wrong command line."""
    try:
        given = _parser().parse_args(words)
    except SystemExit as ended:
        return int(ended.code or 0)
    # What is not whole is removed, and processes are ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    def say(task: TaskReport) -> None:
        if not given.quiet and task.status != "elsewhere":
            sys.stderr.write(f"{task}\n")

    try:
        report = reshard(
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
            on_task=say,
        )
    except MapError as error:
        if given.json:
            sys.stdout.write(_described(error.report) + "\n")
        sys.stderr.write(f"shardfeed: {error}\n")
        return 1
    except (UsageError, ImportError) as error:
        sys.stderr.write(f"shardfeed: {error}\n")
        return 2
    except (Error, OSError) as error:
        sys.stderr.write(f"shardfeed: {error}\n")
        return 1
    if given.json:
        sys.stdout.write(_described(report) + "\n")
    missing = sum(task.status == "elsewhere" for task in report)
    if missing and not given.quiet:
        sys.stderr.write(
            f"{missing} of {len(report)} shards are those of other jobs, and not there yet; help: "
            "when all jobs have ended, another run makes what is missing\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
