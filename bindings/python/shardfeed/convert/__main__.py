"""What the command starts for `shardfeed convert` between shards and other formats."""

from __future__ import annotations

import argparse
import signal
import sys

from .. import Error
from ._convert import convert
from ._rows import ConvertError, ReadOptions


def _pairs(words: list[str]) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def main(words: list[str] | None = None) -> int:
    """Runs it and gives the exit status."""
    parser = argparse.ArgumentParser(prog="shardfeed convert")
    parser.add_argument("inputs", nargs="+")
    parser.add_argument("--output", required=True)
    parser.add_argument("--from", dest="source", required=True)
    parser.add_argument("--to", dest="target", required=True)
    parser.add_argument("--key", default=ReadOptions.key)
    parser.add_argument("--keys", default=ReadOptions.keys)
    parser.add_argument("--nested", default=ReadOptions.nested)
    parser.add_argument("--field", default=ReadOptions.field)
    parser.add_argument("--columns", default="")
    parser.add_argument("--reader", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--writer", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args(words)
    # The command is interrupted: what is not whole is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        convert(
            given.inputs,
            given.output,
            source=given.source,
            target=given.target,
            options=ReadOptions(given.key, given.keys, given.nested, given.field),
            columns=given.columns.split(),
            reader=_pairs(given.reader),
            writer=_pairs(given.writer),
        )
    except (ConvertError, Error, OSError) as error:
        sys.stderr.write(f"shardfeed: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
