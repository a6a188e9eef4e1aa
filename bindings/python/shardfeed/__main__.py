"""The commands of `python -m shardfeed`, which some packages install as `shardfeed`.

Errors go to standard error.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from ._cache import cached
from ._command_line import parser
from ._errors import Error, FormatError, UsageError
from ._plan import plan
from ._state import merge_states

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_DONE, _FAILED, _WRONG_COMMAND_LINE = 0, 1, 2
_OPTION = re.compile("([a-z_]+)=(.*)", re.DOTALL)


def _plan(arguments: argparse.Namespace) -> int:
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
    return _DONE


def _read_state(path: str) -> Any:
    with open(path, encoding="utf-8") as file:
        try:
            return json.load(file)
        except ValueError as error:
            raise FormatError(
                f"{path}: this is no JSON ({error}); help: write it with json.dump(state, file)"
            ) from None


def _merge_states(arguments: argparse.Namespace) -> int:
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
    return _DONE


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def _age(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"


def _cache(arguments: argparse.Namespace) -> int:
    shards = cached(arguments.action, arguments.folder, arguments.urls, arguments.older_than)
    faults = sum(shard.faults for shard in shards)
    for shard in shards:
        damaged = f"  {shard.faults} damaged, removed" if shard.faults else ""
        part = 100 * shard.data // shard.size if shard.size else 0
        url = "".join(c if c.isprintable() else "?" for c in shard.url) or "(no label)"
        print(f"{_size(shard.data):>9}  {part:>3}%  used {_age(shard.age):>4} ago  {url}{damaged}")
    done = {"ls": "in the cache", "verify": "verified", "clear": "removed"}[arguments.action]
    total = _size(sum(shard.disk for shard in shards))
    print(f"{len(shards)} version{'' if len(shards) == 1 else 's'} of shards, {total} {done}")
    if faults:
        print(
            f"shardfeed: {faults} block{'' if faults == 1 else 's'} of the cache did not have the "
            "bytes that were written; help: they are fetched again; test the disk when more follow",
            file=sys.stderr,
        )
    return _FAILED if faults else _DONE


_COMMANDS = {"plan": _plan, "merge-states": _merge_states, "cache": _cache}


def main(words: Sequence[str] | None = None) -> int:
    """Runs a command and gives its exit status."""
    installed = os.path.basename(sys.argv[0]) == "shardfeed"
    arguments = parser("shardfeed" if installed else "python -m shardfeed").parse_args(words)
    try:
        return _COMMANDS[arguments.command](arguments)
    except (Error, OSError) as error:
        print(f"shardfeed: {error}", file=sys.stderr)
        return _WRONG_COMMAND_LINE if isinstance(error, UsageError) else _FAILED


if __name__ == "__main__":
    sys.exit(main())
