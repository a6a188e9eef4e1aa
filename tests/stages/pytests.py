"""Runs test files in several processes of pytest beside each other, and adds up what they count.

    pytests.py OUTPUT PROCESSES FOLDER ARGUMENT...

Most tests of FOLDER wait, for time limits, servers and other processes, so that one process leaves
a core idle. Each process runs a part, and takes the next one when it is through: files whose names
begin with the same word, because they import the same. The arguments are for pytest.

What pytest prints is written to OUTPUT. Printed is the line "PASSED FAILED". The status is not 0
when a part failed, or a file was left out.
"""

from __future__ import annotations

import itertools
import operator
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

FILES_OF_PART = 8
# Families that take long: they begin, so that none of them ends alone.
LONGEST = ("torch", "ray", "grain", "convert", "batch")
# What hangs is a failure, and no CI that does not end: where a test takes so long, the output says
# what its threads do.
SECONDS_OF_TEST = 300
SECONDS_OF_PART = 1800
NOTHING_CHOSEN = 5  # the status of pytest when -k leaves nothing of a part


@dataclass
class Result:
    passed: int
    failed: int
    holds: bool  # whether pytest says so, too
    said: Path


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


def run(files: list[Path], arguments: list[str], report: Path, said: Path) -> Result:
    """One process of pytest."""
    report.unlink(missing_ok=True)
    command = ["timeout", "--kill-after=30", str(SECONDS_OF_PART), sys.executable, "-m", "pytest"]
    command += ["-v", "--tb=short", "-p", "no:cacheprovider"]
    command += ["-o", f"faulthandler_timeout={SECONDS_OF_TEST}", "--junit-xml", str(report)]
    with open(said, "wb") as output:
        status = subprocess.run(
            [*command, *arguments, *map(str, files)], stdout=output, stderr=subprocess.STDOUT
        ).returncode
    try:
        passed, failed = counted(report)
    except (OSError, ElementTree.ParseError, IndexError):
        passed, failed = 0, 1
    holds = status in (0, NOTHING_CHOSEN)
    return Result(passed, failed if holds else max(failed, 1), holds, said)


def main() -> int:
    output, processes, folder, *arguments = sys.argv[1:]

    def take(number: int, files: list[Path]) -> Result:
        return run(files, arguments, Path(f"{output}.{number}.xml"), Path(f"{output}.{number}"))

    every = parts(Path(folder), int(processes))
    with ThreadPoolExecutor(int(processes)) as pool:
        results = list(pool.map(take, range(len(every)), every))
    with open(output, "wb") as everything:
        # What failed comes last, where it is looked for.
        for result in sorted(results, key=lambda result: not result.holds):
            everything.write(result.said.read_bytes())
            result.said.unlink()
    print(sum(result.passed for result in results), sum(result.failed for result in results))
    return 0 if all(result.holds for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
