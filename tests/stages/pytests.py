"""Runs test files in several processes of pytest beside each other, and adds up what they count.

    pytests.py OUTPUT PROCESSES FOLDER ARGUMENT...

Most tests of FOLDER wait, for time limits, servers and other processes, so that one process leaves
a core idle. Each process runs a part, and takes the next one when it is through: files whose names
begin with the same word, because they import the same. The arguments are for pytest.

A few tests that fail are run again, alone: one that passes three times depends on what ran beside
it. That is a fault too, of the test or of what it tests, and its name and first failure are written
to OUTPUT.unsteady; but it counts as passed, so that one in thousands does not hide the others. A
test that ended its process, or was ended because it took too long, is treated likewise, after
all tests of its part have run again.

What pytest prints is written to OUTPUT, the names of failed tests to OUTPUT.failures. Printed is
the line "PASSED FAILED". The status is not 0 when a part failed, or a file was left out.
"""

from __future__ import annotations

import itertools
import json
import operator
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

FILES_OF_PART = 8
# Families that take long: they begin, so that none of them ends alone.
LONGEST = ("torch", "ray", "grain", "convert", "batch")
# What hangs is a failure, and no CI that does not end: where a test takes so long, the output says
# what its threads do, and pytest (since 9) ends.
SECONDS_OF_TEST = 300
SECONDS_OF_PART = 1800
NOTHING_CHOSEN = 5  # the status of pytest when -k leaves nothing of a part
MOST_UNSTEADY = 5  # more failures of a part are no accident
TIMES_ALONE = 3
LINES_SHOWN = 80  # of what pytest printed of them


@dataclass
class Result:
    passed: int
    failed: int
    holds: bool  # whether pytest says so, too
    ended: bool  # before all tests had run
    said: Path
    failures: list[str]  # what pytest calls those tests


def parts(folder: Path, processes: int) -> list[list[Path]]:
    """The test files, those that belong together beside each other."""
    if processes == 1:
        return [[folder]]

    def family(path: Path) -> str:
        return path.stem.split("_")[1]

    found = []
    for name, files in itertools.groupby(sorted(folder.glob("test_*.py")), family):
        members = list(files)
        for first in range(0, len(members), FILES_OF_PART):
            found.append((name not in LONGEST, members[first : first + FILES_OF_PART]))
    return [files for _, files in sorted(found, key=operator.itemgetter(0))]


def counted(report: Path) -> tuple[int, int]:
    """How many tests passed and failed."""
    suite = ElementTree.parse(report).getroot()[0]

    def number(name: str) -> int:
        return int(suite.get(name, 0))

    failed = number("failures") + number("errors")
    return number("tests") - failed - number("skipped"), failed


def failures_in(cache: Path) -> list[str]:
    """What pytest itself has noted for --last-failed."""
    try:
        return list(json.loads((cache / "v/cache/lastfailed").read_text()))
    except (OSError, ValueError):
        return []


def last_begun(said: Path) -> list[str]:
    """The test that ran when pytest ended: -v writes its name before it runs."""
    lines = said.read_text(errors="replace").splitlines()
    begun = [line.split(" ")[0] for line in lines if re.match(r"\S+\.py::\S+ ", line)]
    return begun[-1:]


def run(tests: list[str], arguments: list[str], report: Path, said: Path) -> Result:
    """One process of pytest."""
    report.unlink(missing_ok=True)
    cache = report.with_suffix(".cache")
    command = ["timeout", "--kill-after=30", str(SECONDS_OF_PART), sys.executable, "-m", "pytest"]
    command += ["-v", "--tb=short", "-o", f"cache_dir={cache}"]
    command += ["-o", f"faulthandler_timeout={SECONDS_OF_TEST}"]
    command += ["-o", "faulthandler_exit_on_timeout=true", "--junit-xml", str(report)]
    with open(said, "wb") as output:
        status = subprocess.run(
            [*command, *arguments, *tests], stdout=output, stderr=subprocess.STDOUT
        ).returncode
    try:
        passed, failed = counted(report)
        ended = False
    except (OSError, ElementTree.ParseError, IndexError):
        passed, failed, ended = 0, 1, True
    failures = last_begun(said) if ended else failures_in(cache)
    shutil.rmtree(cache, ignore_errors=True)
    holds = status in (0, NOTHING_CHOSEN)
    return Result(passed, failed if holds else max(failed, 1), holds, ended, said, failures)


def passed_alone(result: Result, again: Callable[[list[str]], Result], tests: list[str]) -> int:
    """How many tests of a part pass, if all that failed, and is not much, passes alone; or 0."""
    if not 0 < len(result.failures) == result.failed <= MOST_UNSTEADY:
        return 0
    passed = result.passed + result.failed
    if result.ended:
        whole = again(tests)
        if not whole.holds:
            return 0
        passed = whole.passed
    return passed if all(again(result.failures).holds for _ in range(TIMES_ALONE)) else 0


def main() -> int:
    output, processes, folder, *arguments = sys.argv[1:]

    def take(number: int, files: list[Path]) -> Result:
        tests = [str(file) for file in files]
        return run(tests, arguments, Path(f"{output}.{number}.xml"), Path(f"{output}.{number}"))

    every = parts(Path(folder), int(processes))
    with ThreadPoolExecutor(int(processes)) as pool:
        results = list(pool.map(take, range(len(every)), every))
    unsteady, failures = Path(f"{output}.unsteady"), Path(f"{output}.failures")
    for notes in (unsteady, failures):
        notes.unlink(missing_ok=True)
    alone = Path(f"{output}.alone")

    def again(tests: list[str]) -> Result:
        chosen = arguments if tests and "::" not in tests[0] else []
        return run(tests, chosen, Path(f"{output}.alone.xml"), alone)

    with open(output, "wb") as everything:
        # What failed comes last, where it is looked for.
        for result, files in sorted(zip(results, every), key=lambda each: not each[0].holds):
            if not result.holds:
                passed = passed_alone(result, again, [str(file) for file in files])
                with open(unsteady if passed else failures, "a") as notes:
                    ended = ", which ended its process" if result.ended else ""
                    word = "UNSTEADY" if passed else "FAILED"
                    notes.writelines(f"{word} {test}{ended}\n" for test in result.failures)
                    if passed:
                        lines = result.said.read_text(errors="replace").splitlines(True)
                        notes.writelines(lines[-LINES_SHOWN:])
                if passed:
                    result.passed, result.failed, result.holds = passed, 0, True
                everything.write(alone.read_bytes() if alone.exists() else b"")
                alone.unlink(missing_ok=True)
            everything.write(result.said.read_bytes())
            result.said.unlink()
    print(sum(result.passed for result in results), sum(result.failed for result in results))
    return 0 if all(result.holds for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
