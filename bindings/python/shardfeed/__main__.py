"""The command `shardfeed`, which `python -m shardfeed` starts too: `help` lists its verbs."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from ._native import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command and gives its exit status."""
    given = list(sys.argv[1:] if words is None else words)
    if given[:1] == ["map"]:
        from .cluster.__main__ import is_for_tasks
        from .cluster.__main__ import main as run_tasks

        if is_for_tasks(given):
            return run_tasks(given[1:])
    os.environ.setdefault("SHARDFEED_PYTHON", sys.executable)  # of functions that verbs call
    said = [ffi.new("char[]", os.fsencode(word)) for word in given]
    for file in (sys.stdout, sys.stderr):
        if file is not None:
            file.flush()
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        # It would only take a note: nothing of Python runs until the command ends.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return lib.python_command(len(said), ffi.new("char *[]", said))
    finally:
        signal.signal(signal.SIGINT, before)


if __name__ == "__main__":
    sys.exit(main())
