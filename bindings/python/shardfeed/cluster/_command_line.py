"""What the commands that run tasks have in common: reports, messages, exit statuses."""

from __future__ import annotations

import json
import signal
import sys
from typing import TYPE_CHECKING, Any

from .. import Error, UsageError
from ._report import MapError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from ._report import MapReport, TaskReport


def parsed(
    parser: argparse.ArgumentParser, words: Sequence[str] | None
) -> tuple[argparse.Namespace | None, list[str], int]:
    """The arguments, the words that the parser does not know, and the status that ends it early."""
    try:
        given, rest = parser.parse_known_args(words)
    except SystemExit as ended:
        return None, [], int(ended.code or 0)
    return given, rest, 0


def run_tasks(
    run: Callable[[Callable[[TaskReport], None]], MapReport],
    described: Callable[[MapReport], dict[str, Any]],
    *,
    as_json: bool,
    quiet: bool,
) -> tuple[int, MapReport | None]:
    """Calls run(on_task) and prints what became of it.

    Returns the exit status, 1 when tasks failed and 2 for a wrong command line, and the report of a
    run whose tasks all ended well.
    """
    # What is not whole is removed, and processes are ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    def say(task: TaskReport) -> None:
        if not quiet and task.status != "elsewhere":
            sys.stderr.write(f"{task}\n")

    def show(report: MapReport) -> None:
        if as_json:
            sys.stdout.write(json.dumps(described(report)) + "\n")

    try:
        report = run(say)
    except MapError as error:
        show(error.report)
        sys.stderr.write(f"shardfeed: {error}\n")
        return 1, None
    except (UsageError, ImportError) as error:
        sys.stderr.write(f"shardfeed: {error}\n")
        return 2, None
    except (Error, OSError) as error:
        sys.stderr.write(f"shardfeed: {error}\n")
        return 1, None
    show(report)
    return 0, report


def task_rows(report: MapReport, *names: str) -> list[dict[str, Any]]:
    """For each task what it was, and these attributes of its report."""
    places = ("input", "start", "stop", "output")
    return [
        {name: getattr(done.task if name in places else done, name) for name in names}
        for done in report
    ]
