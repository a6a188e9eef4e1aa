"""A program of webdataset, over this package: python -m shardfeed.wds MODULE ARGUMENT...

    python -m shardfeed.wds open_clip_train.main --train-data 'pairs-{0000..0999}.tar' ...
    torchrun --nproc-per-node 4 -m shardfeed.wds train.py --epochs 90

The program is a module, or a file whose name ends in .py. It runs as without these words, and what
it imports as webdataset is this package.
"""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ._install import install

if TYPE_CHECKING:
    from collections.abc import Sequence

_USAGE = "usage: python -m shardfeed.wds MODULE_OR_FILE.py [ARGUMENT ...]"


def main(words: Sequence[str] | None = None) -> None:
    """Runs a program as __main__, with its arguments. Exits with 2 where there is none."""
    given = list(sys.argv[1:] if words is None else words)
    if given[:1] in (["-h"], ["--help"]):
        print(f"{_USAGE}\n\nRuns a program that imports webdataset over shardfeed.wds.")
        return
    if not given:
        _refuse("no program was given")
    program = given[0]
    if program.startswith("-"):
        _refuse(f"unknown option {program}", "options of the program come after its name")
    install()
    sys.argv = given
    if program.endswith(".py"):
        if not Path(program).is_file():
            _refuse(f"there is no file {program}")
        if not getattr(sys.flags, "safe_path", False):
            sys.path[0] = str(Path(program).resolve().parent)
        runpy.run_path(program, run_name="__main__")
        return
    if not _is_there(program):
        _refuse(f"there is no module {program}", "a file has a name that ends in .py")
    runpy.run_module(program, run_name="__main__", alter_sys=True)


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            return False
        raise  # what a package of it imports is missing


def _refuse(what: str, to_do: str = "") -> None:
    text = f"shardfeed.wds: {what}" + (f"; help: {to_do}" if to_do else "")
    print(f"{text}\n{_USAGE}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
