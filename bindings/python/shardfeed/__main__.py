"""The commands of `python -m shardfeed`, which some packages install as `shardfeed`.

Exit status: 0 done, 1 it failed, 2 the command line is wrong. Errors go to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from ._errors import Error, FormatError, UsageError
from ._plan import plan
from ._state import merge_states

if TYPE_CHECKING:
    from collections.abc import Sequence

_FAILED, _WRONG_COMMAND_LINE = 1, 2
_OPTION = re.compile("([a-z_]+)=(.*)", re.DOTALL)


def _plan(arguments: argparse.Namespace) -> None:
    urls: list[str] = []
    options: dict[str, Any] = {}
    for word in arguments.words:
        option = _OPTION.fullmatch(word)
        if option is None:
            urls.append(word)
        else:
            options[option[1]] = option[2]
    try:
        planned = plan(urls, **options)
    except TypeError as error:  # an unknown option, which Python calls an unexpected keyword
        raise UsageError(str(error).replace("unexpected keyword argument: ", "")) from None
    print(planned, end="")


def _read_state(path: str) -> Any:
    with open(path, encoding="utf-8") as file:
        try:
            return json.load(file)
        except ValueError as error:
            raise FormatError(
                f"{path}: this is no JSON ({error}); help: write it with json.dump(state, file)"
            ) from None


def _merge_states(arguments: argparse.Namespace) -> None:
    states = []
    for path in arguments.states:
        state = _read_state(path)
        try:
            merge_states([state])  # so that a bad one is named
        except Error as error:
            raise type(error)(f"{path}: {error}") from None
        states.append(state)
    text = json.dumps(merge_states(states)) + "\n"
    try:
        # An old file is never replaced: with the output forgotten, it would be a state of a rank.
        file = open(arguments.output, "x", encoding="utf-8")  # noqa: SIM115
    except FileExistsError:
        raise UsageError(
            f"{arguments.output}: there is such a file already; help: name first the new file, and "
            "after it those of the ranks and workers"
        ) from None
    try:
        with file:
            file.write(text)
    except OSError:
        os.unlink(arguments.output)  # rather none than a part
        raise


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="shardfeed" if os.path.basename(sys.argv[0]) == "shardfeed" else "python -m shardfeed",
        description="Feeds machine-learning training from tar and ZIP files.",
        epilog="Exit status: 0 done, 1 it failed, 2 the command line is wrong.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    command = commands.add_parser(
        "plan",
        help="what each rank and worker will read, and warnings, before a run",
        description="Prints what each rank and worker will read, and warnings. Opens no shard.",
    )
    command.add_argument(
        "words",
        nargs="+",
        metavar="URL|NAME=VALUE",
        help="shards, and options of Stream such as world_size=8 or shuffle=1000; a file with such "
        "a name is written ./NAME=VALUE",
    )
    command.set_defaults(run=_plan)

    command = commands.add_parser(
        "merge-states",
        help="one saved state of those of all ranks and workers",
        description="Makes one state of those that all ranks and workers of a run saved with "
        "json.dump(stream.state_dict(), file). Any number of ranks and workers can go on "
        "from it; best one that divides the option lanes.",
    )
    command.add_argument("output", metavar="OUT.json", help="is made, and must not be there yet")
    command.add_argument("states", metavar="IN.json", nargs="+")
    command.set_defaults(run=_merge_states)
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Runs a command and gives its exit status."""
    arguments = _parser().parse_args(words)
    try:
        arguments.run(arguments)
    except (Error, OSError) as error:
        print(f"shardfeed: {error}", file=sys.stderr)
        return _WRONG_COMMAND_LINE if isinstance(error, UsageError) else _FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
