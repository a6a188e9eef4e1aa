#!/usr/bin/env python3
"""Measures reading over a network: shardfeed, curl and Python peers, from servers on loopback.

The same shards come from nginx and from versitygw (S3), over loopback as it is and, where toxiproxy
is installed, over slow links. Rounds go over all rows in turn; the best of each row counts. Slow is
not an error; wrong is: every reader must deliver the samples, bytes and checksum that were written,
else the exit status is 1. It needs nginx and curl; what else is not there is named in a note and
left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import corpora
from building import build_with_shardfeed, compile_program, own_python
from command_line import add_build, add_choice, add_measuring, parser_for
from corpora import Corpus
from measuring import RunError, generate, machine, versions
from remote_archive import LATENCY_MS as ARCHIVE_LATENCY_MS
from remote_archive import measure_archive
from remote_cache import at_once, epochs, urls_at
from remote_rows import (
    CONNECTIONS,
    MANY_CONNECTIONS,
    PEERS,
    Best,
    Row,
    Tools,
    as_fast,
    at_least,
    at_most,
    copy_row,
    curl_ranges_row,
    curl_row,
    measure,
    ours,
    piped_webdataset,
    s3_rows,
    table,
)
from remote_servers import S3, Proxies, nginx, toxiproxy, versitygw
from targets import DEFAULT_MEMORY, MEBI, MEMORY_SLACK, Verdict

LATENCY_MS = 50
LINK = 6250  # kB/s of each connection
LINK_SHARE = 0.9
ROUND_TRIPS = 3
ONE_CONNECTION, BEST_PEER = 0.95, 0.9
SMALL_MEMORY = 64  # MiB
CORPORA = ("image", "small")
PARTS = ("http", "s3", "slow", "archive", "cache", "memory")


class Report:
    """What was measured so far."""

    def __init__(self) -> None:
        self.figures: dict[str, object] = {}
        self.verdicts: list[Verdict] = []
        self.failed = False

    def add(self, name: str, verdicts: list[Verdict], figures: object = None) -> None:
        """`figures` are those of no table."""
        self.figures[f"targets, {name}"] = [verdict.as_json() for verdict in verdicts]
        if figures is not None:
            self.figures[name] = figures
        self.verdicts += verdicts
        print("".join(f"{verdict}\n" for verdict in verdicts), end="", flush=True)

    def rows(
        self, title: str, corpus: Corpus, rows: list[Row], repeat: int, peer: str = "curl"
    ) -> Best:
        """Measures rows and prints their table."""
        best, wrong = measure(corpus, rows, repeat)
        self.failed = self.failed or wrong
        print(table(title, corpus, rows, best, peer))
        self.figures[f"{title}, {corpus.name}"] = best
        return best


def corpus_of(name: str, scale: float) -> Corpus:
    corpus = corpora.load(name, scale)
    assert corpus is not None
    return corpus


# ---- Parts ---------------------------------------------------------------------------------------


def loopback(report: Report, tools: Tools, corpus: Corpus, port: int, repeat: int) -> None:
    urls = urls_at(port, corpus)
    rows = [copy_row(corpus), curl_row(urls), curl_ranges_row(corpus, urls)]
    rows += [*ours(tools, urls, 1, CONNECTIONS), *piped_webdataset(tools, urls)]
    best = report.rows("nginx", corpus, rows, repeat)
    verdicts = []
    for name in ("c-1", "py-1"):
        text = f"nginx, {corpus.name}, {name}"
        verdicts += as_fast(text, best, name, ("curl",), ONE_CONNECTION)
        if name in best and "curl" in best and "copy" in best:
            most = best["curl"]["cpu_seconds"] + best["copy"]["cpu_seconds"]
            share = best[name]["cpu_seconds"] / most
            verdicts.append(at_most(f"{text}: CPU seconds / those of curl and of a copy", share, 1))
    report.add(f"nginx, {corpus.name}", verdicts)


def buckets(report: Report, tools: Tools, corpus: Corpus, server: S3, repeat: int) -> None:
    for shard in corpus.shards:
        server.put(f"{corpus.name}/{Path(shard).name}", Path(shard))
    best = report.rows("S3", corpus, list(s3_rows(tools, corpus, server)), repeat)
    verdicts = []
    for kind in ("c", "py"):
        name = f"{kind}-{CONNECTIONS}"
        text = f"S3, {corpus.name}, {name}"
        clients = ("obstore", "obstore-ranges", "s3torchconnector")
        verdicts += as_fast(f"{text}, samples", best, name, clients, BEST_PEER)
        alone = tuple(f"{client}-bytes" for client in clients)
        verdicts += as_fast(f"{text}, samples", best, name, alone, BEST_PEER)
    report.add(f"S3, {corpus.name}", verdicts)


def slow_link(report: Report, tools: Tools, corpus: Corpus, port: int) -> None:
    """Over `port`, a link with LATENCY_MS and LINK."""
    urls = urls_at(port, corpus)
    rows = [curl_ranges_row(corpus, urls), *ours(tools, urls, CONNECTIONS)]
    if len(urls) > 1:
        # With one connection a whole shard of `image` would take more than a minute.
        rows += [curl_row(urls), *piped_webdataset(tools, urls)]
    link = LINK * CONNECTIONS / 1000
    title = f"{LATENCY_MS} ms, {link:.0f} MB/s by {CONNECTIONS}"
    best = report.rows(title, corpus, rows, 1, "curl-ranges")
    verdicts = []
    for kind in ("c", "py"):
        result = best.get(f"{kind}-{CONNECTIONS}")
        if result is not None:
            text = f"{LATENCY_MS} ms, {corpus.name}, {kind}-{CONNECTIONS}"
            rate = corpus.file_bytes / result["seconds"] / 1e6
            verdicts.append(at_least(f"{text}, share of the link", rate / link, LINK_SHARE))
            trips = result["first_seconds"] * 1000 / LATENCY_MS
            verdicts.append(at_most(f"{text}, first sample, round trips", trips, ROUND_TRIPS))
    report.add(f"{LATENCY_MS} ms, {corpus.name}", verdicts)


def peak_memory(report: Report, tools: Tools, corpus: Corpus, port: int) -> None:
    """Of consumers that are as fast as can be, and of one that lets shardfeed fill its memory. On
    `port` is the slow link: on a fast one shardfeed uses no more than one or two connections.
    """
    urls = urls_at(port, corpus)
    many = f"connections={MANY_CONNECTIONS}"
    rows: list[Row] = []
    budgets: dict[str, int] = {}
    for budget in (DEFAULT_MEMORY // MEBI, SMALL_MEMORY):
        words = (f"{budget} MiB", urls, many, f"memory={budget}MiB")
        rows += [*tools.c_row(f"memory-{budget}", *words)]
        rows += [*tools.python_row(f"memory-{budget}", *words)]
        if "shardfeed" in tools.modules:
            options = [f"--option={option}" for option in words[2:]]
            command = tools.reader("object_readers.py", "shardfeed-late", *options, *urls)
            rows.append(Row(f"late-{budget}", f"shardfeed Python, late, {budget} MiB", command))
        budgets |= {row.name: budget for row in rows if row.name not in budgets}
    best = report.rows(f"Memory, {MANY_CONNECTIONS} connections", corpus, rows, 1, rows[0].name)
    verdicts = [
        at_most(
            f"peak memory, {MANY_CONNECTIONS} connections, {row.label}",
            best[row.name]["peak_rss_bytes"] / MEBI,
            budgets[row.name] + MEMORY_SLACK // MEBI,
            " MiB",
        )
        for row in rows
        if row.name in best
    ]
    report.add("memory", verdicts)


def archives(
    report: Report, tools: Tools, server: S3, proxies: Proxies | None, arguments: argparse.Namespace
) -> None:
    link = (server.port, 0)
    if proxies is not None:
        link = (proxies.link(server.port, ARCHIVE_LATENCY_MS), ARCHIVE_LATENCY_MS)
    try:
        figures, verdicts = measure_archive(
            tools, server, link, arguments.scale, min(arguments.repeat, 3)
        )
    except RunError as error:
        print(f"Archive over S3: FAILED: {error}")
        report.failed = True
        return
    # Without latency the targets say nothing.
    report.add("archive", verdicts if proxies is not None else verdicts[:1], figures)


def caches(
    report: Report, tools: Tools, names: list[str], root: Path, arguments: argparse.Namespace
) -> None:
    with nginx(root) as port, tempfile.TemporaryDirectory(dir=root) as folder:
        for name in names:
            corpus = corpus_of(name, arguments.scale)
            best, verdicts, wrong = epochs(tools, corpus, port, Path(folder), arguments.repeat)
            report.failed = report.failed or wrong
            report.add(f"cache, {name}", verdicts, best)
        try:
            figures, verdicts = at_once(
                tools, corpus_of("image8", arguments.scale), root, Path(folder)
            )
            report.add("cold cache", verdicts, figures)
        except RunError as error:
            print(f"processes on one cold cache: FAILED: {error}")
            report.failed = True


# ---- All of them ---------------------------------------------------------------------------------


def main() -> int:
    parser = parser_for(__doc__)
    add_build(parser)
    parser.add_argument("--python", type=Path, help="interpreter with the readers (bench/.venv)")
    add_choice(parser, "--only", PARTS)
    add_choice(parser, "--corpus", CORPORA, ": for http, s3 and cache")
    add_measuring(parser, repeat=5)
    arguments = parser.parse_args()
    parts = set(arguments.only)
    compile_program("read_limit", [])
    walk = build_with_shardfeed("shardfeed_walk", arguments.build.resolve())
    python = arguments.python or own_python(False)
    tools = Tools.found(python, walk)
    names: list[str] = arguments.corpus
    scale, repeat = arguments.scale, arguments.repeat
    generate(sorted({*names, "image", "image8"}), scale, python)
    root = corpora.directory(scale)
    report = Report()
    report.figures["machine"] = machine()
    report.figures["versions"] = versions(python, ("shardfeed", "webdataset", *PEERS))
    with toxiproxy() as proxies:
        with nginx(root) as port:
            for name in names if "http" in parts else ():
                loopback(report, tools, corpus_of(name, scale), port, repeat)
            link = proxies.link(port, LATENCY_MS, LINK) if proxies is not None else None
            if "memory" in parts:
                peak_memory(report, tools, corpus_of("image", scale), link or port)
            if "slow" in parts and link is not None:
                for name in ("image", "image8"):
                    slow_link(report, tools, corpus_of(name, scale), link)
        if parts & {"s3", "archive"}:
            with versitygw(root) as server:
                if server is not None:
                    for name in names if "s3" in parts else ():
                        buckets(report, tools, corpus_of(name, scale), server, repeat)
                    if "archive" in parts and "shardfeed" in tools.modules:
                        archives(report, tools, server, proxies, arguments)
    if "cache" in parts:
        caches(report, tools, names, root, arguments)
    reached = sum(verdict.reached for verdict in report.verdicts)
    print(f"\ntargets: {reached} reached, {len(report.verdicts) - reached} missed")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(report.figures, indent=1) + "\n")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
