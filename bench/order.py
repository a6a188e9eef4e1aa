#!/usr/bin/env python3
"""Measures what saving, restoring and planning cost, and what the order costs a plain pass.

Slow is not an error; wrong is: the exit status is 1 when a program fails.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import corpora
import targets
from building import BUILT, build_with_shardfeed
from command_line import add_build, add_measuring, parser_for
from corpora import Corpus
from measuring import Result, RunError, generate, machine, run, warm
from run import check_plan
from targets import Verdict

SAVED_LANES = 64
SHUFFLE = 1000
# Where a run stops, as a part of its samples.
STOPS = (0.001, 0.1, 0.5, 0.9, 0.99)


def best(command: list[str], repeat: int, key: str) -> Result:
    return min((run(command) for _ in range(repeat)), key=lambda result: result[key])


def save_command(program: Path, taken: int, options: list[str], urls: list[str]) -> list[str]:
    return [str(program), "save", str(taken), str(BUILT / "order.state"), *options, "--", *urls]


# ---- The figures ---------------------------------------------------------------------------------


def check_saving(program: Path, corpus: Corpus, repeat: int) -> Iterator[Verdict]:
    """Every lane in the middle of a shard, with a full shuffle buffer."""
    urls = corpus.shards * (SAVED_LANES // len(corpus.shards))
    options = [f"lanes={SAVED_LANES}", f"shuffle={SHUFFLE}", "shuffle_shards=true", "seed=1"]
    taken = SAVED_LANES * corpus.samples // len(corpus.shards) // 2
    for threads in ("1", "2"):
        command = save_command(program, taken, [*options, f"threads={threads}"], urls)
        result = best(command, repeat, "save_seconds")
        name = f"saving {SAVED_LANES} lanes with shuffle={SHUFFLE}, threads={threads}"
        yield targets.at_most(name, result["save_seconds"], targets.SAVE_SECONDS)
        yield targets.at_most_kib(
            f"a state of {SAVED_LANES} lanes", result["state_bytes"], targets.STATE_BYTES
        )


def check_restoring(
    program: Path, corpus: Corpus, most_lanes: int, repeat: int
) -> Iterator[Verdict]:
    """From before open to the first sample, wherever the run stopped; with indexes."""
    run([str(program), "index", "--", *corpus.shards])
    warm(corpus.shards)
    for lanes in sorted({1, len(corpus.shards), most_lanes}):
        urls = corpus.shards * max(lanes // len(corpus.shards), 1)
        samples = corpus.samples * len(urls) // len(corpus.shards)
        for shuffle in (0, SHUFFLE):
            options = [f"lanes={lanes}", f"shuffle={shuffle}", "shuffle_shards=true", "seed=1"]
            for stop in STOPS:
                # save takes some hundred more
                taken = round((samples - 300) * stop)
                run(save_command(program, taken, options, urls))
                command = [str(program), "restore", str(BUILT / "order.state"), *options, "--"]
                result = best([*command, *urls], repeat, "first_seconds")
                name = f"restoring {corpus.name} at {stop:.1%}, lanes={lanes}, shuffle={shuffle}"
                yield targets.at_most(name, result["first_seconds"], targets.RESTORE_SECONDS)


def check_by_index(walk: Path, corpus: Corpus, repeat: int) -> Iterator[Verdict]:
    """A pass whose order is computed from indexes, beside one that reads from front to back."""
    warm(corpus.shards)
    for shuffle in (0, SHUFFLE):
        options = [f"shuffle={shuffle}", "seed=1", "threads=1"]
        times: dict[str, list[float]] = {"false": [], "true": []}
        for _ in range(repeat * 3):
            for by_index, taken in times.items():
                command = [str(walk), "next", *options, f"by_index={by_index}", "--"]
                result = run([*command, *corpus.shards])
                if result["samples"] != corpus.samples:
                    raise RunError(f"{result['samples']} samples, not {corpus.samples}")
                taken.append(result["seconds"])
        name = f"by_index beside reading from front to back, {corpus.name}, shuffle={shuffle}"
        wanted = targets.BY_INDEX_RATES[shuffle > 0]
        yield targets.at_least_times(name, min(times["false"]) / min(times["true"]), wanted)


def check_order(walk: Path, before: Path, now: Path, repeat: int) -> Iterator[Verdict]:
    """A plain pass over tiny samples, with the library of another build and with this one."""
    generate(["tiny"], 1)
    corpus = corpora.load("tiny", 1)
    assert corpus is not None
    warm(corpus.shards)
    for mode in ("next", "block"):
        times: dict[Path, list[float]] = {before: [], now: []}
        for _ in range(repeat * 7):
            for build, taken in times.items():
                result = run(
                    ["env", f"LD_LIBRARY_PATH={build}", str(walk), mode, "--", *corpus.shards]
                )
                if result["samples"] != corpus.samples:
                    raise RunError(f"{mode}: {result['samples']} samples, not {corpus.samples}")
                taken.append(result["seconds"])
        share = min(times[now]) / min(times[before]) - 1
        name = f"cost of the order, tiny, {mode} ({min(times[now]) * 1e3:.1f} ms)"
        yield targets.at_most_share(name, share, targets.ORDER_COST)


# ---- Everything ----------------------------------------------------------------------------------


def parse_arguments() -> argparse.Namespace:
    parser = parser_for(__doc__)
    add_build(parser)
    parser.add_argument(
        "--before",
        type=Path,
        help="build directory of a checkout to which a plain pass is compared",
    )
    add_measuring(parser)
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    build = arguments.build.resolve()
    program = build_with_shardfeed("shardfeed_order", build)
    walk = build_with_shardfeed("shardfeed_walk", build)
    if program is None or walk is None:
        return 1
    generate(["tiny8", "image8"], arguments.scale)
    tiny, image = (corpora.load(name, arguments.scale) for name in ("tiny8", "image8"))
    assert tiny is not None
    assert image is not None
    parts = [
        check_saving(program, tiny, arguments.repeat),
        check_restoring(program, tiny, SAVED_LANES, arguments.repeat),
        # More full buffers of these would outgrow the memory.
        check_restoring(program, image, len(image.shards), arguments.repeat),
        check_by_index(walk, tiny, arguments.repeat),
        check_by_index(walk, image, arguments.repeat),
        check_plan(walk, arguments.scale, arguments.repeat),
    ]
    if arguments.before is not None:
        before = arguments.before.resolve()
        parts.append(check_order(walk, before, build, arguments.repeat))
    verdicts: list[Verdict] = []
    failed = False
    for part in parts:
        try:
            for verdict in part:
                print(verdict, flush=True)
                verdicts.append(verdict)
        except (RunError, ValueError) as error:
            print(f"FAILED: {error}")
            failed = True
    if arguments.json is not None:
        found = {"machine": machine(), "verdicts": [verdict.as_json() for verdict in verdicts]}
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
