#!/usr/bin/env python3
"""Measures shardfeed and its peers on the same files, and prints tables and verdicts.

Slow is not an error; wrong is: the exit status is 1 when a reader fails or finds another number of
samples, members or bytes than the corpus has.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import corpora
import report
import targets
from building import (
    BUILT,
    build_rust,
    build_with_shardfeed,
    compile_program,
    importable,
    julia_command,
    note,
    own_python,
    packaged,
)
from command_line import parse_arguments
from corpora import Corpus
from measuring import (
    Comparison,
    Result,
    RunError,
    compare,
    differences,
    generate,
    machine,
    run,
    versions,
)
from rows import READERS, WALKED, Row, Tools
from targets import Verdict

PYTHON_READERS = ("shardfeed", "webdataset", "spdl.io")


# ---- Tools ---------------------------------------------------------------------------------------


def build_peers() -> None:
    compile_program("read_limit", [])
    compile_program("bare_walk", [])
    compile_program("libarchive_walk", packaged("libarchive"))


def gather_tools(arguments: argparse.Namespace) -> Tools:
    tools = Tools(BUILT)
    if "c" in arguments.reader:
        build_peers()
        tools.shardfeed_walk = build_with_shardfeed("shardfeed_walk", arguments.build.resolve())
    if "rust" in arguments.reader:
        tools.rust_tar = build_rust("rust_tar")
        tools.rust_zip = build_rust("rust_zip")
        tools.rust_shardfeed = build_rust("rust_shardfeed", arguments.build.resolve())
    if "julia" in arguments.reader:
        tools.julia = julia_command(arguments.build.resolve())
    if "python" in arguments.reader:
        # Not resolved: the link to the interpreter is what makes it that of its venv.
        tools.python = (arguments.python or own_python(arguments.reinstall)).absolute()
        tools.python_modules = importable(tools.python, PYTHON_READERS)
        for module in PYTHON_READERS:
            if module not in tools.python_modules:
                note(f"{tools.python} cannot import {module}; its rows are left out")
    return tools


# ---- Counts --------------------------------------------------------------------------------------


def mistake(row: Row, corpus: Corpus, result: Result) -> str:
    """What is wrong with the counts of a run; empty if nothing is."""
    wanted: Result = {"bytes": corpus.file_bytes}
    if row.counts != "file":
        wanted = {
            "members": corpus.members,
            "bytes": corpus.bytes,
            "checksum": corpus.checksum,
        }
    if row.counts.endswith("samples"):
        wanted["samples"] = corpus.samples
    if row.counts.startswith("every"):
        wanted["everything"] = corpus.everything
    return differences(result, wanted)


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


def libarchive_version() -> str:
    command = ["pkg-config", "--modversion", "libarchive"]
    done = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE)
    return done.stdout.strip()


def main() -> int:
    arguments = parse_arguments(__doc__, WALKED, tuple(READERS))
    tools = gather_tools(arguments)
    generate(arguments.only, arguments.scale)
    comparison = Comparison(
        rows=lambda corpus: [
            row for reader in arguments.reader for row in READERS[reader](tools, corpus)
        ],
        mistake=mistake,
        judge=targets.judge,
        peers=report.WALKERS,
    )
    outcome = compare(arguments.only, arguments.scale, arguments.repeat, comparison)
    checks, failures = run_checks(tools, arguments.scale, arguments.repeat)
    if checks or failures:
        print("## Planning, one huge member, import")
        print("".join(f"{line}\n" for line in [*checks, *failures]))
    outcome.add(checks)
    print(outcome.summary())
    if arguments.json is not None:
        found = versions(tools.python, ("shardfeed", "webdataset", "spdl-io", "numpy"))
        everything = {
            "machine": machine(),
            "versions": found | {"libarchive": libarchive_version()},
            "scale": arguments.scale,
            "repeat": arguments.repeat,
            "corpora": outcome.figures,
            "checks": [verdict.as_json() for verdict in checks],
            "failures": failures,
        }
        arguments.json.write_text(json.dumps(everything, indent=1) + "\n")
    return 1 if outcome.failed or failures else 0


if __name__ == "__main__":
    sys.exit(main())
