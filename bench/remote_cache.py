"""The cache of remote shards: epochs with and without it, and processes that share a cold one."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from corpora import Corpus
from measuring import RunError
from remote_rows import Best, Row, Tools, as_fast, at_most, measure, run_row, table
from remote_servers import nginx
from targets import Verdict

PROCESSES = 8
SECOND_EPOCH = 0.95
# What is measured is not the first epoch of a process: that one loads libcurl and what it needs.
EPOCHS = 8
SENT = 1.02


def urls_at(port: int, corpus: Corpus) -> list[str]:
    return [f"http://127.0.0.1:{port}/{corpus.name}/{Path(shard).name}" for shard in corpus.shards]


def epochs(
    tools: Tools, corpus: Corpus, port: int, folder: Path, repeat: int
) -> tuple[Best, list[Verdict], bool]:
    """`folder` is for the caches; it is on the disk of the shards."""
    urls = urls_at(port, corpus)
    rows: list[Row] = []
    for make in (tools.c_row, tools.python_row):
        cache = folder / make.__name__
        option = f"cache={cache}"

        def empty(cache: Path = cache) -> None:
            shutil.rmtree(cache, ignore_errors=True)

        for row in make("none", "no cache", urls):
            rows.append(row)
        for row in make("first", "first epoch", urls, option):
            rows.append(Row(row.name, row.label, row.command, prepare=empty))
        # What the first epoch wrote is not written back to the disk while the second one runs.
        again = f"epochs={EPOCHS}"
        for row in (
            *make("second", "second epoch", urls, option, again),
            *make("local", "local file", corpus.shards, again),
        ):
            rows.append(replace(row, prepare=os.sync, epochs=EPOCHS))
    best, wrong = measure(corpus, rows, repeat)
    peer = "c-local" if "c-local" in best else "py-local"
    print(table("Cache", corpus, rows, best, peer))
    verdicts = []
    for kind, language in (("c", "C"), ("py", "Python")):
        text = f"cache, {corpus.name}, second epoch, {language}"
        verdicts += as_fast(text, best, f"{kind}-second", (f"{kind}-local",), SECOND_EPOCH)
        if f"{kind}-first" in best and f"{kind}-none" in best:
            ratio = best[f"{kind}-none"]["seconds"] / best[f"{kind}-first"]["seconds"]
            print(f"first epoch / no cache, {language}: {ratio:.2f}")
    return best, verdicts, wrong


def at_once(tools: Tools, corpus: Corpus, root: Path, folder: Path) -> tuple[Best, list[Verdict]]:
    """Processes that start together with one cold cache. RunError: one of them was wrong."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        log = Path(place, "sent")
        cache = f"cache={place}/cache"
        with nginx(root, log) as port:
            rows = [*tools.python_row("cold", "cold cache", urls_at(port, corpus), cache)]
            if not rows:
                return {}, []
            start = time.perf_counter()
            with ThreadPoolExecutor(PROCESSES) as pool:
                results = list(pool.map(lambda _: run_row(corpus, rows[0]), range(PROCESSES)))
            seconds = time.perf_counter() - start
        answers = [int(line) for line in log.read_text().split()]
    if sum(answers) < corpus.file_bytes:
        raise RunError(f"the server sent {sum(answers)} bytes of {corpus.file_bytes}")
    share = sum(answers) / corpus.file_bytes
    print(
        f"\n## {PROCESSES} processes on one cold cache: {corpus.name},"
        f" {corpus.file_bytes / 1e6:,.0f} MB in {len(corpus.shards)} shard(s)\n"
        f"{seconds:.2f} s, {len(answers)} answers, {sum(answers) / 1e6:,.1f} MB sent"
    )
    text = f"bytes sent for {PROCESSES} processes on one cold cache / bytes of the shards"
    slowest = max(results, key=lambda result: result["seconds"])
    figures = {"slowest": slowest, "all": {"sent": share, "answers": len(answers)}}
    return figures, [at_most(text, share, SENT)]
