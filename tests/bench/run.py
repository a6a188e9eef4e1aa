#!/usr/bin/env python3
"""Measures shardfeed and its peers on the same files, and prints tables and verdicts.

Slow is not an error; wrong is: the exit status is 1 when a reader fails or finds another number of
samples, members or bytes than the corpus has.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import corpora
import report
import targets
from building import BUILT, build_rust, build_with_shardfeed, compile_program, note, packaged
from corpora import Corpus
from rows import READERS, Row, Tools
from targets import Verdict

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYTHON_READERS = ("shardfeed", "webdataset", "spdl.io")
RUN_SECONDS = 600
# Runs shorter than this are at the mercy of a neighbour's cache misses: they get more rounds.
SHORT_SECONDS = 0.3
SHORT_ROUNDS = 3


Result = dict[str, float]


class RunError(Exception):
    """A measuring process failed; the text is the last line of what it said."""


# ---- Tools ---------------------------------------------------------------------------------------


def build_peers() -> None:
    compile_program("read_limit", [])
    compile_program("bare_walk", [])
    compile_program("libarchive_walk", packaged("libarchive"))


def own_python(reinstall: bool) -> Path:
    """The interpreter of tests/bench/.venv, which is made on first use."""
    python = HERE / ".venv/bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(HERE / ".venv")], check=True)
        requirements = str(HERE / "requirements.txt")
        subprocess.run([*pip_install(python), "-r", requirements], check=True)
    missing = "shardfeed" not in importable(python, ("shardfeed",))
    if (reinstall or missing) and (ROOT / "pyproject.toml").exists():
        # The version does not change from one build to the next; pip would keep the old one.
        uninstall = [str(python), "-m", "pip", "uninstall", "--quiet", "--yes", "shardfeed"]
        subprocess.run(uninstall, check=False, stderr=subprocess.DEVNULL)
        if subprocess.run([*pip_install(python), str(ROOT)], check=False).returncode != 0:
            note("shardfeed's Python package could not be installed")
    return python


def pip_install(python: Path) -> list[str]:
    return [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def importable(python: Path, modules: tuple[str, ...]) -> frozenset[str]:
    def works(module: str) -> bool:
        command = [str(python), "-c", f"import {module}"]
        return subprocess.run(command, cwd="/", check=False, capture_output=True).returncode == 0

    return frozenset(filter(works, modules))


def gather_tools(arguments: argparse.Namespace) -> Tools:
    tools = Tools(BUILT)
    if "c" in arguments.reader:
        build_peers()
        tools.shardfeed_walk = build_with_shardfeed("shardfeed_walk", arguments.build.resolve())
    if "rust" in arguments.reader:
        tools.rust_tar = build_rust("rust_tar")
    if "python" in arguments.reader:
        # Not resolved: the link to the interpreter is what makes it that of its venv.
        tools.python = (arguments.python or own_python(arguments.reinstall)).absolute()
        tools.python_modules = importable(tools.python, PYTHON_READERS)
        for module in PYTHON_READERS:
            if module not in tools.python_modules:
                note(f"{tools.python} cannot import {module}; its rows are left out")
    return tools


# ---- Running -------------------------------------------------------------------------------------


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


def mistake(row: Row, corpus: Corpus, result: Result) -> str:
    """What is wrong with the counts of a run; empty if nothing is."""
    wanted: Result = {"bytes": corpus.file_bytes}
    if row.counts != "file":
        wanted = {
            "members": corpus.members,
            "bytes": corpus.bytes,
            "checksum": corpus.checksum,
        }
    if row.counts == "samples":
        wanted["samples"] = corpus.samples
    wrong = [f"{key} {result[key]}, not {n}" for key, n in wanted.items() if result[key] != n]
    return f"WRONG: {', '.join(wrong)}" if wrong else ""


def measure(
    corpus: Corpus, rows: list[Row], repeat: int
) -> tuple[dict[str, Result], dict[str, str]]:
    """The best run of each row, and what went wrong with rows that have none.

    Round after round over all rows: a neighbour that is busy for some seconds then spoils one run
    of many rows, and not all runs of one.
    """
    best: dict[str, Result] = {}
    problems: dict[str, str] = {}
    for round_number in range(repeat * SHORT_ROUNDS):
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


# ---- Checks that are not a pass over a corpus ----------------------------------------------------


def check_plan(walk: Path, scale: float, repeat: int) -> Iterator[Verdict]:
    """A list of a million shards that do not exist, planned up to the first shard's IO error."""
    count = max(1000, round(1_000_000 * scale))
    place = "/nonexistent/train-"
    listed = corpora.directory(scale) / "plan.txt"
    listed.parent.mkdir(parents=True, exist_ok=True)
    with listed.open("w") as out:
        out.writelines(f"{place}{n:07d}.tar\n" for n in range(count))
    braces = f"{place}{{0000000..{count - 1:07d}}}.tar"
    for text, url, options in (
        ("in braces", braces, []),
        ("in braces, shuffled", braces, ["shuffle_shards=true", "seed=1"]),
        ("from a @FILE, shuffled", f"@{listed}", ["shuffle_shards=true", "seed=1"]),
    ):
        command = [str(walk), "plan", *options, "--", url]
        result = min((run(command) for _ in range(repeat)), key=lambda r: r["first_seconds"])
        name = f"{count:,} shards {text}"
        yield targets.at_most(f"plan of {name}", result["first_seconds"], targets.PLAN_SECONDS)
        yield targets.at_most_bytes(
            f"memory for the plan of {name}", result["peak_rss_bytes"], targets.PLAN_RSS
        )


def check_huge(walk: Path, scale: float) -> Iterator[Verdict]:
    """One member of 1 GiB: in one piece if the budget allows, else an error that says so."""
    size = round(1024 * targets.MEBI * scale)
    path = corpora.directory(scale) / "huge.tar"
    corpora.huge_member(path, size)
    try:
        yield from _check_huge(walk, path, size)
    finally:
        path.unlink()


def _check_huge(walk: Path, path: Path, size: int) -> Iterator[Verdict]:
    name = f"member of {size // targets.MEBI:,} MiB"
    enough = size * 5 // 4 // 1024 * 1024
    result = run([str(walk), "next", f"memory={enough // 1024}KiB", "--", str(path)])
    if result["bytes"] != size or result["samples"] != 1:
        raise RunError(f"{name}: {result['samples']} samples, {result['bytes']} bytes")
    limit = enough + targets.MEMORY_SLACK
    yield targets.at_most_bytes(f"peak memory, {name}", result["peak_rss_bytes"], limit)
    try:
        run([str(walk), "next", f"memory={size // 4 // 1024}KiB", "--", str(path)])
    except RunError as error:
        told = str(error).endswith("LIMIT") and "memory" in str(error)
        yield Verdict(f"{name} over the budget", "LIMIT that names `memory`", str(error), told)
    else:
        raise RunError(f"{name} was delivered on a quarter of its size")


def check_import(python: Path, repeat: int) -> Verdict:
    """In a fresh interpreter that has imported nothing but `time`."""
    code = "import time; t = time.perf_counter(); import shardfeed; print(time.perf_counter() - t)"
    command = [str(python), "-c", code]
    times = [
        float(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout)
        for _ in range(max(repeat, 5))
    ]
    return targets.at_most("import shardfeed", min(times), targets.IMPORT_SECONDS)


def run_checks(tools: Tools, scale: float, repeat: int) -> tuple[list[Verdict], list[str]]:
    verdicts: list[Verdict] = []
    failures: list[str] = []
    parts: list[Iterator[Verdict]] = []
    if tools.shardfeed_walk is not None:
        parts.append(check_plan(tools.shardfeed_walk, scale, repeat))
        parts.append(check_huge(tools.shardfeed_walk, scale))
    if tools.python is not None and "shardfeed" in tools.python_modules:
        parts.append(iter([check_import(tools.python, repeat)]))
    for part in parts:
        try:
            verdicts.extend(part)
        except (RunError, ValueError) as error:
            failures.append(f"FAILED: {error}")
    return verdicts, failures


# ---- Everything ----------------------------------------------------------------------------------


def versions(tools: Tools) -> dict[str, str]:
    """What was compared: the peers' versions, and those of the interpreter that ran them."""
    found: dict[str, str] = {}
    if tools.python is not None:
        code = (
            "import importlib.metadata as m, json, platform\n"
            "found = {'python': platform.python_version()}\n"
            "for name in ('shardfeed', 'webdataset', 'spdl-io', 'numpy'):\n"
            "    try: found[name] = m.version(name)\n"
            "    except m.PackageNotFoundError: pass\n"
            "print(json.dumps(found))"
        )
        out = subprocess.run([str(tools.python), "-c", code], check=True, capture_output=True)
        found |= json.loads(out.stdout)
    command = ["pkg-config", "--modversion", "libarchive"]
    found["libarchive"] = subprocess.run(
        command, check=False, text=True, stdout=subprocess.PIPE
    ).stdout.strip()
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


def comma_list(choices: tuple[str, ...]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in choices:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(choices)}")
        return names

    return parse


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    names, readers = tuple(corpora.RECIPES), tuple(READERS)
    parser.add_argument(
        "--build",
        type=Path,
        default=ROOT / "build",
        help="meson build directory with libshardfeed.so (build)",
    )
    parser.add_argument(
        "--python",
        type=Path,
        help="interpreter of an environment with the readers (tests/bench/.venv, made if absent)",
    )
    parser.add_argument(
        "--reinstall",
        action="store_true",
        help="install this checkout's Python package into tests/bench/.venv again",
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


def main() -> int:
    arguments = parse_arguments()
    tools = gather_tools(arguments)
    # In a process of its own, so that this one stays small: the system counts a process's memory
    # from that of the one that started it.
    generator = [sys.executable, str(HERE / "corpora.py"), "--scale", str(arguments.scale)]
    subprocess.run([*generator, "--only", ",".join(arguments.only)], check=True)
    if arguments.scale != 1:
        note("corpora are not of full size: counts are checked, ratios mean little")

    figures: dict[str, object] = {}
    failed = False
    missed = reached = 0
    for name in arguments.only:
        corpus = corpora.load(name, arguments.scale)
        assert corpus is not None
        rows = [row for reader in arguments.reader for row in READERS[reader](tools, corpus)]
        best, problems = measure(corpus, rows, arguments.repeat)
        failed = failed or bool(problems)
        labels = {row.name: row for row in rows}
        verdicts = list(targets.judge(name, corpus.samples, labels, best))
        print(report.table(corpus, rows, best, problems))
        if report.was_busy(best):
            print(
                "note: peers with one thread had to wait for a CPU; measure again when it is idle"
            )
        print("".join(f"{verdict}\n" for verdict in verdicts), flush=True)
        reached += sum(verdict.reached for verdict in verdicts)
        missed += sum(not verdict.reached for verdict in verdicts)
        figures[name] = {
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
    checks, failures = run_checks(tools, arguments.scale, arguments.repeat)
    if checks or failures:
        print("## Planning, one huge member, import")
        print("".join(f"{line}\n" for line in [*checks, *failures]))
    reached += sum(verdict.reached for verdict in checks)
    missed += sum(not verdict.reached for verdict in checks)
    failed = failed or bool(failures)
    print(f"targets: {reached} reached, {missed} missed")
    if arguments.json is not None:
        everything = {
            "machine": machine(),
            "versions": versions(tools),
            "scale": arguments.scale,
            "repeat": arguments.repeat,
            "corpora": figures,
            "checks": [verdict.as_json() for verdict in checks],
            "failures": failures,
        }
        arguments.json.write_text(json.dumps(everything, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
