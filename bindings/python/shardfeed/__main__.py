"""The commands of `python -m shardfeed`, which some packages install as `shardfeed`.

Errors go to standard error.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from ._command_line import parser
from ._errors import Error, FormatError, UsageError
from ._plan import plan
from ._state import merge_states

if TYPE_CHECKING:
    import argparse
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


_COMMANDS = {"plan": _plan, "merge-states": _merge_states}


def main(words: Sequence[str] | None = None) -> int:
    """Runs a command and gives its exit status."""
    installed = os.path.basename(sys.argv[0]) == "shardfeed"
    arguments = parser("shardfeed" if installed else "python -m shardfeed").parse_args(words)
    try:
        _COMMANDS[arguments.command](arguments)
    except (Error, OSError) as error:
        print(f"shardfeed: {error}", file=sys.stderr)
        return _WRONG_COMMAND_LINE if isinstance(error, UsageError) else _FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
