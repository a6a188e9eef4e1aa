"""What can be said to the command `shardfeed`.

It needs nothing of the package: the manual page is made from it where the package is not built.
"""

from __future__ import annotations

import argparse
from typing import Any

CACHE_VARIABLE = "SHARDFEED_CACHE"
EXIT_STATUS = {0: "done", 1: "it failed", 2: "the command line is wrong"}

# For the manual page: a command, and what it does.
EXAMPLES = [
    (
        "shardfeed plan 'train-{000..119}.tar' world_size=8 num_workers=4 shuffle=1000",
        "Prints what each of the 32 workers will read, and warns of shards that do not divide.",
    ),
    (
        "shardfeed merge-states all.json rank-0.json rank-1.json",
        "Makes one state of those of two ranks, from which any number of ranks can resume.",
    ),
    (
        "shardfeed cache ls --dir /local/ssd",
        "Lists the shards in a cache, as the option cache=/local/ssd fills it.",
    ),
    (
        "shardfeed cache clear --dir /local/ssd --older-than 30d",
        "Removes what was not used for 30 days.",
    ),
]


class _Parser(argparse.ArgumentParser):
    """Takes options between the arguments too: cache ls --dir DIR URL."""

    _inside = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._inside:
            return super().parse_known_args(args, namespace)
        self._inside = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._inside = False


def parser(program: str) -> argparse.ArgumentParser:
    """The parser of the words after the program's name. It stores the name of a command."""
    status = ", ".join(f"{number} {meaning}" for number, meaning in EXIT_STATUS.items())
    made = argparse.ArgumentParser(
        prog=program,
        description="Feeds machine-learning training from tar and ZIP files.",
        epilog=f"Exit status: {status}.",
    )
    commands = made.add_subparsers(
        title="commands",
        metavar="COMMAND",
        dest="command",
        required=True,
        parser_class=_Parser,
    )

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

    command = commands.add_parser(
        "merge-states",
        help="one saved state of those of all ranks and workers",
        description="Makes one state of those that all ranks and workers of a run saved with "
        "json.dump(stream.state_dict(), file). Any number of ranks and workers can continue "
        "from it; best one that divides the option lanes.",
    )
    command.add_argument("output", metavar="OUT.json", help="is made, and must not be there yet")
    command.add_argument(
        "states", metavar="IN.json", nargs="+", help="a state of each rank and worker"
    )

    command = commands.add_parser(
        "cache",
        help="what is in a cache: list it, compare its checksums, remove it",
        description="Looks after the folder that the option cache fills. Programs may use it "
        "meanwhile; what they have open stays readable.",
    )
    command.add_argument(
        "action",
        choices=["ls", "verify", "clear"],
        metavar="ls|verify|clear",
        help="ls: list the versions of shards; verify: read them and remove damaged blocks, with "
        "exit status 1 when there were any; clear: remove them",
    )
    command.add_argument(
        "urls",
        nargs="*",
        metavar="URL",
        help="these shards; a URL that ends in / means all below it; default: all",
    )
    command.add_argument(
        "--dir",
        dest="folder",
        metavar="DIR",
        help=f"the folder, as in the option cache; default: {CACHE_VARIABLE} in the environment",
    )
    command.add_argument(
        "--older-than",
        metavar="AGE",
        type=_seconds,
        default=0,
        help="only what was not used for so long: 90s, 45m, 12h, 30d",
    )
    return made


def _seconds(text: str) -> int:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdigit() and unit in units and len(number) < 10):
        raise argparse.ArgumentTypeError(f"{text!r} is no age such as 90s, 45m, 12h or 30d")
    return int(number) * units[unit]
