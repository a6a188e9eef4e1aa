"""Writes cases.json: the cases of the conformance suite, and what they expect.

    python3 write_cases.py --check                   compares with cases.json
    python3 write_cases.py --freeze RUN_CONFORMANCE  writes it

What is expected is worked out by expected.py, without the library. Texts of messages, and digests
of cases whose order is the library's own, are taken from the C runner when cases are frozen, and
else from cases.json. What it finds otherwise than expected is printed, and then nothing is written.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cases_batches
import cases_errors
import cases_members
import cases_random_access
import cases_runs
import cases_streams
import cases_tensors
import cases_writing
from case import Case
from expected import Folder

HERE = Path(__file__).resolve().parent
PATH = HERE / "cases.json"


def all_cases(folder: Path) -> list[Case]:
    """All cases, with all that is known without the library."""
    archives = Folder(folder)
    modules = (
        cases_streams,
        cases_errors,
        cases_random_access,
        cases_members,
        cases_batches,
        cases_tensors,
        cases_runs,
        cases_writing,
    )
    cases = [case for module in modules for case in module.cases(archives)]
    names = [case.name for case in cases]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        sys.exit(f"cases with the same name: {', '.join(twice)}")
    return cases


def as_text(cases: Sequence[dict[str, Any]]) -> str:
    """The file: one line for each property of a case, so that diffs are short."""
    out = ['{"version": 1, "cases": [']
    for number, case in enumerate(cases):
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in case.items()]
        out.append("{\n" + ",\n".join(lines) + ("\n}," if number < len(cases) - 1 else "\n}"))
    return "\n".join([*out, "]}\n"])


def known() -> dict[str, dict[str, Any]]:
    """What cases.json expects, by name of case."""
    if not PATH.exists():
        return {}
    return {case["name"]: case["expect"] for case in json.loads(PATH.read_text())["cases"]}


def found(runner: str, folder: Path, cases: Sequence[Case]) -> dict[str, dict[str, Any]]:
    """What the C runner finds."""
    path = folder / "cases.json"
    path.write_text(as_text([case.as_json({}) for case in cases]))
    command = [runner, "--print", str(folder), str(path)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    found: dict[str, dict[str, Any]] = json.loads(output)
    return found


def unhelped(written: dict[str, dict[str, Any]]) -> list[str]:
    """The cases whose error does not say what to do."""
    return [
        name
        for name, case in written.items()
        if "; help: " not in case["expect"].get("error", {}).get("message", "; help: ")
    ]


def main() -> None:
    """Compares or writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--check", action="store_true", help="compare with cases.json")
    how.add_argument("--freeze", metavar="RUN_CONFORMANCE", help="write cases.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        subprocess.run([sys.executable, str(HERE / "make_archives.py"), str(folder)], check=True)
        cases = all_cases(folder)
        given = found(arguments.freeze, folder, cases) if arguments.freeze else known()
    different = [text for case in cases for text in case.differences(given.get(case.name, {}))]
    written = {case.name: case.as_json(given.get(case.name, {})) for case in cases}
    different += [f"{name}: the message has no help" for name in unhelped(written)]
    if different:
        sys.exit("\n".join(different))
    fresh = as_text(list(written.values()))
    if arguments.freeze:
        PATH.write_text(fresh)
        print(f"{len(cases)} cases")
    elif not PATH.exists() or fresh != PATH.read_text():
        sys.exit("cases.json is not what write_cases.py makes: run it with --freeze")


if __name__ == "__main__":
    main()
