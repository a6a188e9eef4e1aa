"""Makes shardfeed(1) from what the command's own parser says, so that it is the same as its help.

command_page.py COMMAND_LINE VERSION PAGE    COMMAND_LINE: shardfeed/_command_line.py
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from man_pages import Writer, escape, heading, verbatim


def loaded(path: Path) -> Any:
    """A file of the package, without the package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def usage(parser: argparse.ArgumentParser) -> str:
    """How a command is called, in one line."""
    words = parser.format_usage().split()
    return " ".join(word for word in words[1:] if word != "[-h]")


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    actions = parser._actions
    (found,) = [action for action in actions if isinstance(action, argparse._SubParsersAction)]
    return found.choices


def described(name: str, command: argparse.ArgumentParser, writer: Writer) -> list[str]:
    """What a command does, and what it takes."""
    lines = [f".SS {escape(name, code=True)}", *writer.prose(command.description or "")]
    for argument in command._actions:
        if not argument.option_strings:
            lines += writer.listed(str(argument.metavar), f"{argument.help}.")
        elif "--help" not in argument.option_strings:
            called = f"{argument.option_strings[0]} {argument.metavar}"
            lines += writer.listed(called, f"{argument.help}.")
    return lines


def page(module: Any, version: str, source: Path) -> list[str]:
    """The page."""
    writer = Writer({"shf_options", "shf_plan"})
    parser: argparse.ArgumentParser = module.parser("shardfeed")
    called = [usage(command) for command in commands_of(parser).values()]
    description = parser.description or ""
    lines = heading("shardfeed", 1, version, source)
    lines.append(f"shardfeed \\- {description[0].lower()}{description[1:].removesuffix('.')}")
    lines += [".SH SYNOPSIS", ".nf", *(escape(text, code=True) for text in called)]
    lines += [escape("shardfeed [COMMAND] --help", code=True), ".fi", ".SH COMMANDS"]
    for name, command in commands_of(parser).items():
        lines += described(name, command, writer)
    lines.append(".SH EXIT STATUS")
    for status, meaning in module.EXIT_STATUS.items():
        lines += writer.listed(str(status), f"{meaning}.")
    lines.append(".SH EXAMPLES")
    for number, (example, said) in enumerate(module.EXAMPLES):
        lines += [".PP"] if number else []  # a heading begins a paragraph by itself
        lines += [*writer.prose(said), *verbatim([example])]
    lines += [".SH SEE ALSO", "\\fBshardfeed\\fR(3), \\fBshf_options\\fR(3), \\fBshf_plan\\fR(3)"]
    return lines


def main() -> None:
    """Writes the page."""
    source, version, target = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    os.environ["NO_COLOR"] = "1"  # newer parsers colour their usage
    sys.dont_write_bytecode = True  # beside the sources
    target.write_text("\n".join(page(loaded(source), version, source)) + "\n")


if __name__ == "__main__":
    main()
