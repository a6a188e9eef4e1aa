"""Runs the readers of a benchmark, each in a process of its own, and compares what they report."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import corpora
import report
from building import note
from corpora import Corpus
from rows import Row
from targets import Verdict

HERE = Path(__file__).resolve().parent
RUN_SECONDS = 600
# Runs shorter than this are at the mercy of a neighbour's cache misses: they get more rounds.
SHORT_SECONDS = 0.3
SHORT_ROUNDS = 3


Result = dict[str, float]
# What is wrong with the counts of a run; empty if nothing is.
Mistake = Callable[[Row, Corpus, Result], str]


class RunError(Exception):
    """A measuring process failed; the text is the last line of what it said."""


def warm(paths: list[str]) -> None:
    """Brings the files into the page cache."""
    buffer = bytearray(1 << 20)
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def run(command: list[str]) -> Result:
    """Runs one measuring process; its JSON line and what the system says about the process."""
    # OpenBLAS, which numpy and so two of the peers load, starts threads that spin for a while.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=out, stderr=errors, env=environment, cwd="/")
        watchdog = threading.Timer(RUN_SECONDS, process.kill)
        watchdog.start()
        try:
            # Popen.wait would throw the resource usage away.
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            watchdog.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        said = errors.read().strip()
        if process.returncode != 0:
            last = said.splitlines()[-1] if said else f"exit status {process.returncode}"
            raise RunError(last)
        result: Result = json.loads(out.read())
    result["process_cpu_seconds"] = usage.ru_utime + usage.ru_stime
    result["process_max_rss_bytes"] = usage.ru_maxrss * 1024
    return result


def differences(result: Result, wanted: Result) -> str:
    """What a run counted otherwise than is wanted; empty if nothing."""
    wrong = [f"{key} {result[key]}, not {n}" for key, n in wanted.items() if result[key] != n]
    return f"WRONG: {', '.join(wrong)}" if wrong else ""


def measure(
    corpus: Corpus, rows: list[Row], repeat: int, short_rounds: int, mistake: Mistake
) -> tuple[dict[str, Result], dict[str, str]]:
    """The best run of each row, and what went wrong with rows that have none.

    Round after round over all rows: a neighbour that is busy for some seconds then spoils one run
    of many rows, and not all runs of one.
    """
    best: dict[str, Result] = {}
    problems: dict[str, str] = {}
    for round_number in range(repeat * short_rounds):
        for row in rows:
            if row.name in problems:
                continue
            if round_number >= repeat and best[row.name]["seconds"] >= SHORT_SECONDS:
                continue
            warm(corpus.shards)
            try:
                result = run(row.command)
            except (RunError, ValueError) as error:
                problems[row.name] = f"FAILED: {error}"
                continue
            wrong = mistake(row, corpus, result)
            if wrong:
                problems[row.name] = wrong
            elif row.name not in best or result["seconds"] < best[row.name]["seconds"]:
                best[row.name] = result
    for name in problems:
        best.pop(name, None)
    return best, problems


# ---- All corpora of a program --------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """What a program compares on each corpus."""

    rows: Callable[[Corpus], list[Row]]
    mistake: Mistake
    judge: Callable[[Corpus, Mapping[str, Row], Mapping[str, Result]], Iterator[Verdict]]
    peers: report.Peers


@dataclass
class Outcome:
    figures: dict[str, object] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    failed: bool = False

    def add(self, verdicts: Sequence[Verdict]) -> None:
        self.verdicts.extend(verdicts)

    def summary(self) -> str:
        reached = sum(verdict.reached for verdict in self.verdicts)
        return f"targets: {reached} reached, {len(self.verdicts) - reached} missed"


def generate(names: Sequence[str], scale: float, python: Path | None = None) -> None:
    """Makes the corpora that are not there, in a process of its own, so that this one stays small:
    the system counts a process's memory from that of the one that started it.
    """
    generator = [str(python or sys.executable), str(HERE / "corpora.py"), "--scale", str(scale)]
    subprocess.run([*generator, "--only", ",".join(names)], check=True)
    if scale != 1:
        note("corpora are not of full size: counts are checked, ratios mean little")


def compare(names: Sequence[str], scale: float, repeat: int, comparison: Comparison) -> Outcome:
    """Measures all rows on each corpus, and prints tables and verdicts."""
    outcome = Outcome()
    for name in names:
        corpus = corpora.load(name, scale)
        assert corpus is not None
        rows = comparison.rows(corpus)
        # Of small corpora only the counts mean something.
        short_rounds = SHORT_ROUNDS if scale == 1 else 1
        best, problems = measure(corpus, rows, repeat, short_rounds, comparison.mistake)
        outcome.failed = outcome.failed or bool(problems)
        labels = {row.name: row for row in rows}
        verdicts = list(comparison.judge(corpus, labels, best))
        outcome.add(verdicts)
        print(report.table(corpus, rows, best, problems, comparison.peers))
        if report.was_busy(best):
            print(
                "note: peers with one thread had to wait for a CPU; measure again when it is idle"
            )
        print("".join(f"{verdict}\n" for verdict in verdicts), flush=True)
        outcome.figures[name] = {
            "samples": corpus.samples,
            "bytes": corpus.bytes,
            "file_bytes": corpus.file_bytes,
            "rows": {
                row: result
                | {
                    "label": labels[row].label,
                    "samples_per_second": corpus.samples / result["seconds"],
                }
                for row, result in best.items()
            },
            "problems": problems,
            "targets": [verdict.as_json() for verdict in verdicts],
        }
    return outcome


# ---- What was compared, and where ----------------------------------------------------------------


def versions(python: Path | None, packages: Sequence[str]) -> dict[str, str]:
    """The versions of the interpreter that ran the readers, and of their packages."""
    if python is None:
        return {}
    code = (
        "import importlib.metadata as m, json, platform, sys\n"
        "found = {'python': platform.python_version()}\n"
        "for name in sys.argv[1:]:\n"
        "    try: found[name] = m.version(name)\n"
        "    except m.PackageNotFoundError: pass\n"
        "print(json.dumps(found))"
    )
    command = [str(python), "-c", code, *packages]
    found: dict[str, str] = json.loads(
        subprocess.run(command, check=True, capture_output=True).stdout
    )
    return found


def machine() -> dict[str, object]:
    model = platform.processor()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
    }
