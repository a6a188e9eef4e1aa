"""What the measuring programs take on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build"


def comma_list(choices: Sequence[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in choices:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(choices)}")
        return names

    return parse


def parser_for(description: str | None) -> argparse.ArgumentParser:
    """`description` is the program's docstring, of which the first line is shown."""
    return argparse.ArgumentParser(description=(description or "").partition("\n")[0])


def add_build(parser: argparse.ArgumentParser) -> None:
    """The option that all programs have that measure the library from C."""
    parser.add_argument(
        "--build",
        type=Path,
        default=BUILD,
        help="meson build directory with libshardfeed.so (build)",
    )


def add_choice(
    parser: argparse.ArgumentParser, option: str, names: Sequence[str], note: str = ""
) -> None:
    """An option for some of `names`, with commas between them; without it all are taken."""
    parser.add_argument(
        option,
        type=comma_list(names),
        default=list(names),
        metavar="NAME,...",
        help=f"of {', '.join(names)}{note}",
    )


def add_scale(parser: argparse.ArgumentParser, what: str = "size of the corpora") -> None:
    parser.add_argument("--scale", type=float, default=1.0, help=f"{what} (1)")


def add_measuring(
    parser: argparse.ArgumentParser,
    repeat: int = 3,
    rounds: str = "rounds; the best counts",
    scaled: str = "size of the corpora",
) -> None:
    """How often, how much, and where the figures go."""
    parser.add_argument("--repeat", type=int, default=repeat, help=f"{rounds} ({repeat})")
    add_scale(parser, scaled)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")


def parse_arguments(
    description: str | None, names: Sequence[str], readers: Sequence[str]
) -> argparse.Namespace:
    """Of run.py and batches.py. `names` and `readers` are the corpora and the kinds of readers."""
    parser = parser_for(description)
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
    add_choice(parser, "--only", names)
    add_choice(parser, "--reader", readers)
    add_measuring(
        parser, rounds="rounds, three times as many for runs under 0.3 s; the best counts"
    )
    return parser.parse_args()
