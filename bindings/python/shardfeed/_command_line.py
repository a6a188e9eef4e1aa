"""What can be said to the command `shardfeed`.

It needs nothing of the package: the manual page is made from it where the package is not built.
"""

from __future__ import annotations

import argparse

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
]


def parser(program: str) -> argparse.ArgumentParser:
    """The parser of the words after the program's name. It stores the name of a command."""
    status = ", ".join(f"{number} {meaning}" for number, meaning in EXIT_STATUS.items())
    made = argparse.ArgumentParser(
        prog=program,
        description="Feeds machine-learning training from tar and ZIP files.",
        epilog=f"Exit status: {status}.",
    )
    commands = made.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", required=True
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
    return made
