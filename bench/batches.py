#!/usr/bin/env python3
"""Measures decoded batches of shardfeed and its peers on the same files.

Like run.py: slow is not an error; wrong is: the exit status is 1 when a reader fails, or finds
other samples, labels or decoded bytes than the corpus has.
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
from batch_rows import (
    HANDED,
    READERS,
    WORK,
    handing_command,
    litdata_folder,
    litdata_reads,
)
from building import (
    BUILT,
    build_rust,
    build_with_shardfeed,
    compile_program,
    importable,
    note,
    own_python,
    packaged,
)
from command_line import parse_arguments
from corpora import Corpus
from measuring import (
    Comparison,
    Outcome,
    Result,
    RunError,
    compare,
    differences,
    generate,
    machine,
    run,
    versions,
)
from rows import Row, Tools
from targets import Verdict

HERE = Path(__file__).resolve().parent
PEERS = ("webdataset", "torch", "litdata", "mlx.data", "spdl.io")
PACKAGES = (
    "shardfeed", "webdataset", "torch", "litdata", "mlx-data", "spdl-io", "numpy", "pillow",
)  # fmt: skip
# Decoders of JPEG round differently; a reader that is off by more shows other pictures.
ROUNDING = 0.01


def gather_tools(arguments: argparse.Namespace) -> Tools:
    tools = Tools(BUILT)
    # Not resolved: the link to the interpreter is what makes it that of its venv.
    python = (arguments.python or own_python(arguments.reinstall)).absolute()
    wanted = ["numpy", "PIL"]
    wanted += ["shardfeed"] if "python" in arguments.reader else []
    wanted += PEERS if "peers" in arguments.reader else []
    modules = importable(python, tuple(wanted))
    if "c" in arguments.reader:
        compile_program("read_limit", [])
        try:
            options = [*packaged("libturbojpeg"), "-pthread"]
            tools.jpeg_limit = compile_program("jpeg_limit", options)
        except subprocess.CalledProcessError:
            note("no libturbojpeg; the limit of decoding JPEG is left out")
        build = arguments.build.resolve()
        tools.shardfeed_batches = build_with_shardfeed("shardfeed_batches", build)
    if "rust" in arguments.reader:
        tools.rust_webdataset = build_rust("rust_webdataset")
    # The photographs are made with NumPy and Pillow, also for readers in C.
    if "photo" in arguments.only and not {"numpy", "PIL"} <= modules:
        note(f"{python} has no NumPy or no Pillow; the photographs are left out")
        arguments.only.remove("photo")
    generate(arguments.only, arguments.scale, python)
    tools.python, tools.python_modules = python, modules
    for module in wanted:
        if module not in modules:
            note(f"{python} cannot import {module}; its rows are left out")
    if "spdl.io" in modules:
        # Images need the shared libraries of FFmpeg, which the package does not bring.
        code = "import spdl.io; spdl.io.decode_config()"
        done = subprocess.run([str(python), "-c", code], check=False, capture_output=True)
        tools.spdl_decodes = done.returncode == 0
        if not tools.spdl_decodes:
            note("spdl-io finds no FFmpeg; it decodes no photographs")
    if "litdata" in modules:
        write_litdata(python, arguments.only, arguments.scale)
    return tools


def write_litdata(python: Path, names: list[str], scale: float) -> None:
    for name in filter(litdata_reads, names):
        corpus = corpora.load(name, scale)
        assert corpus is not None
        folder = litdata_folder(corpus)
        if not (folder / "index.json").exists():
            command = [str(python), str(HERE / "litdata_format.py"), str(folder), *corpus.shards]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def mistake(row: Row, corpus: Corpus, result: Result) -> str:
    """What is wrong with the counts of a run; empty if nothing is."""
    if row.counts == "file":
        return differences(result, {"bytes": corpus.file_bytes})
    wanted: Result = {"samples": corpus.samples}
    if row.counts != "pixels":
        wanted["labels"] = corpus.labels
    if row.counts != "labels":
        wanted["bytes"] = corpus.decoded_bytes
        exact = corpus.decoded_checksum
        near = abs(result["checksum"] - exact) <= ROUNDING * exact
        if corpus.name != "photo" or not near:
            wanted["checksum"] = exact
    if row.ours:
        wanted["batches"] = -(-corpus.samples // WORK[corpus.name].batch)
    return differences(result, wanted)


def check_handing(python: Path, scale: float) -> Iterator[Verdict]:
    """All columns of a batch as arrays and as tensors."""
    for what, (size, count) in HANDED.items():
        result = run(handing_command(python, scale, size, count))
        for package in ("numpy", "torch"):
            seconds = result.get(f"{package}_seconds")
            if seconds is not None:
                text = f"handing {what} to {package}"
                yield targets.at_most(text, seconds, targets.HANDING_SECONDS)


def run_checks(tools: Tools, scale: float, outcome: Outcome) -> list[Verdict]:
    if tools.python is None or "shardfeed" not in tools.python_modules:
        return []
    if corpora.load("npy4", scale) is None:
        return []
    verdicts: list[Verdict] = []
    print("## Handing over")
    try:
        verdicts.extend(check_handing(tools.python, scale))
    except (RunError, ValueError) as error:
        print(f"FAILED: {error}")
        outcome.failed = True
    print("".join(f"{verdict}\n" for verdict in verdicts))
    outcome.add(verdicts)
    return verdicts


def main() -> int:
    arguments = parse_arguments(__doc__, tuple(WORK), tuple(READERS))
    tools = gather_tools(arguments)
    comparison = Comparison(
        rows=lambda corpus: [
            row for reader in arguments.reader for row in READERS[reader](tools, corpus)
        ],
        mistake=mistake,
        judge=targets.judge_batches,
        peers=report.BATCH_PEERS,
    )
    outcome = compare(arguments.only, arguments.scale, arguments.repeat, comparison)
    checks = run_checks(tools, arguments.scale, outcome)
    print(outcome.summary())
    if arguments.json is not None:
        everything = {
            "machine": machine(),
            "versions": versions(tools.python, PACKAGES),
            "scale": arguments.scale,
            "repeat": arguments.repeat,
            "corpora": outcome.figures,
            "checks": [verdict.as_json() for verdict in checks],
        }
        arguments.json.write_text(json.dumps(everything, indent=1) + "\n")
    return 1 if outcome.failed else 0


if __name__ == "__main__":
    sys.exit(main())
