"""What run.py and batches.py take on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from building import ROOT


def comma_list(choices: Sequence[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in choices:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(choices)}")
        return names

    return parse


def add_build(parser: argparse.ArgumentParser) -> None:
    """The option that all programs have that measure the library from C."""
    parser.add_argument(
        "--build",
        type=Path,
        default=ROOT / "build",
        help="meson build directory with libshardfeed.so (build)",
    )


def parse_arguments(
    description: str | None, names: Sequence[str], readers: Sequence[str]
) -> argparse.Namespace:
    """`names` and `readers` are the corpora and the kinds of readers that there are."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    add_build(parser)
    parser.add_argument(
        "--python",
        type=Path,
        help="interpreter of an environment with the readers (bench/.venv, made if absent)",
    )
    parser.add_argument(
        "--reinstall",
        action="store_true",
        help="install this checkout's Python package into bench/.venv again",
    )
    parser.add_argument(
        "--only",
        type=comma_list(names),
        default=list(names),
        metavar="CORPUS,...",
        help=f"of {', '.join(names)}",
    )
    parser.add_argument(
        "--reader",
        type=comma_list(readers),
        default=list(readers),
        metavar="READER,...",
        help=f"of {', '.join(readers)}",
    )
    parser.add_argument(
        "--repeat",
        type=int,
        default=3,
        help="rounds, three times as many for runs under 0.3 s; the best counts (3)",
    )
    parser.add_argument("--scale", type=float, default=1.0, help="size of the corpora (1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    return parser.parse_args()
