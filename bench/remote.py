#!/usr/bin/env python3
"""Measures reading over HTTP: shardfeed, curl and Python peers, from one nginx on loopback.

The same shards go over loopback as it is and, where toxiproxy is installed, over a link of 50 ms
and 6.25 MB/s for each connection, so 50 MB/s by eight. Rounds go over all rows in turn; the best of
each row counts. Slow is not an error; wrong is: every reader must deliver the samples, bytes and
checksum that were written, else the exit status is 1. It needs nginx and curl; what else is not
there is named in a note and left out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import corpora
from building import build_with_shardfeed, importable, note, own_python
from command_line import add_build
from corpora import Corpus
from measuring import HERE, Result, RunError, differences, generate, run, warm

LATENCY_MS = 50
LINK = 6250  # kB/s of each connection
CONNECTIONS = 8


@dataclass(frozen=True)
class Row:
    label: str
    command: list[str]
    bytes_only: bool = False  # curl: nothing is counted


# ---- Servers -------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_for(port: int) -> None:
    for _ in range(500):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.02)
    raise SystemExit(f"nothing answers on port {port}")


@contextlib.contextmanager
def running(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        yield
    finally:
        process.terminate()
        process.wait(10)


@contextlib.contextmanager
def nginx(root: Path) -> Iterator[int]:
    """The port at which the files of `root` are served."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        raise SystemExit("nginx is not installed")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        paths = " ".join(
            f"{name}_temp_path {folder}/{name};"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        user = "user root;" if os.geteuid() == 0 else ""
        configuration = Path(folder, "nginx.conf")
        configuration.write_text(
            f"{user} daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error;\n"
            "events { worker_connections 256; }\n"
            f"http {{ access_log off; sendfile on; root {root}; {paths}\n"
            f"server {{ listen 127.0.0.1:{port}; }} }}\n"
        )
        with running([program, "-p", folder, "-c", str(configuration)], port):
            yield port


@contextlib.contextmanager
def slow_link(upstream: int) -> Iterator[int | None]:
    """The port of a proxy with latency and a bounded rate; None without toxiproxy."""
    program = shutil.which("toxiproxy-server")
    if program is None:
        note("toxiproxy-server is not in PATH; the slow link is left out")
        yield None
        return
    control, port = free_port(), free_port()

    def post(path: str, what: dict[str, object]) -> None:
        url = f"http://127.0.0.1:{control}{path}"
        request = urllib.request.Request(url, json.dumps(what).encode(), method="POST")
        urllib.request.urlopen(request).close()

    with running([program, "-host", "127.0.0.1", "-port", str(control)], control):
        link = {"listen": f"127.0.0.1:{port}", "upstream": f"127.0.0.1:{upstream}"}
        post("/proxies", {"name": "link", "enabled": True, **link})
        for kind, attributes in (
            ("latency", {"latency": LATENCY_MS}),
            ("bandwidth", {"rate": LINK}),
        ):
            post("/proxies/link/toxics", {"type": kind, "attributes": attributes})
        yield port


# ---- Rows ----------------------------------------------------------------------------------------


def rows_of(corpus: Corpus, base: str, walk: Path | None, python: Path) -> Iterator[Row]:
    urls = [f"{base}/{corpus.name}/{Path(shard).name}" for shard in corpus.shards]
    yield Row("curl, bytes alone", ["curl", "-s", "-f", "-o", "/dev/null", *urls], True)
    if walk is not None:
        for count in (1, CONNECTIONS):
            options = [f"connections={count}", "threads=1"]
            yield Row(
                f"shardfeed C, block, {count} conn.", [str(walk), "block", *options, "--", *urls]
            )
    readers = [str(python), str(HERE / "python_readers.py")]
    modules = importable(python, ("shardfeed", "webdataset"))
    if "shardfeed" in modules:
        yield Row("shardfeed Python", [*readers, "shardfeed", *urls])
    if "webdataset" in modules:
        pipes = [f"pipe:curl -s -f {url}" for url in urls]
        yield Row("webdataset, pipe:curl", [*readers, "webdataset", *pipes])


def run_bytes(command: list[str]) -> Result:
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    if subprocess.run(command, check=False).returncode != 0:
        raise RunError("exit status is not 0")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": time.perf_counter() - start, "process_cpu_seconds": cpu}


def measure(corpus: Corpus, rows: list[Row], repeat: int) -> tuple[dict[str, Result], bool]:
    """The best run of each row, and whether one was wrong."""
    wanted = {"samples": corpus.samples, "bytes": corpus.bytes, "checksum": corpus.checksum}
    best: dict[str, Result] = {}
    wrong = False
    for _ in range(repeat):
        for row in rows:
            warm(corpus.shards)
            try:
                result = run_bytes(row.command) if row.bytes_only else run(row.command)
            except (RunError, ValueError) as error:
                print(f"{row.label}: FAILED: {error}")
                wrong = True
                continue
            mistake = "" if row.bytes_only else differences(result, wanted)
            if mistake:
                print(f"{row.label}: {mistake}")
                wrong = True
            elif row.label not in best or result["seconds"] < best[row.label]["seconds"]:
                best[row.label] = result
    return best, wrong


def show(title: str, corpus: Corpus, best: dict[str, Result]) -> None:
    print(f"\n{title}, {corpus.name}: {corpus.file_bytes / 1e6:.0f} MB\n")
    print(f"{'':28}{'MB/s':>8}{'/ curl':>8}{'cpu s/GB':>10}{'first ms':>10}")
    curl = next((result["seconds"] for label, result in best.items() if "curl," in label), None)
    for label, result in best.items():
        ratio = f"{curl / result['seconds']:.2f}" if curl else "-"
        first = result.get("first_seconds")
        print(
            f"{label:28}{corpus.file_bytes / result['seconds'] / 1e6:8.0f}{ratio:>8}"
            f"{result['process_cpu_seconds'] / corpus.file_bytes * 1e9:10.2f}"
            + (f"{first * 1000:10.1f}" if first else f"{'':10}")
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_build(parser)
    parser.add_argument("--python", type=Path, help="interpreter with the readers (bench/.venv)")
    parser.add_argument("--repeat", type=int, default=5, help="rounds; the best counts (5)")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the corpora (1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    arguments = parser.parse_args()
    walk = build_with_shardfeed("shardfeed_walk", arguments.build)
    python = arguments.python or own_python(False)
    names = ("image", "small")
    generate(names, arguments.scale, python)
    figures: dict[str, object] = {}
    failed = False
    root = corpora.directory(arguments.scale)
    with nginx(root) as port, slow_link(port) as slow:
        links = {"Loopback": (port, arguments.repeat)}
        if slow is not None:
            links[f"{LATENCY_MS} ms, {LINK * CONNECTIONS / 1000:.0f} MB/s by 8"] = (slow, 1)
        for title, (at, repeat) in links.items():
            for name in names if at == port else names[:1]:
                corpus = corpora.load(name, arguments.scale)
                assert corpus is not None
                rows = list(rows_of(corpus, f"http://127.0.0.1:{at}", walk, python))
                best, wrong = measure(corpus, rows, repeat)
                failed = failed or wrong
                show(title, corpus, best)
                figures[f"{title}, {name}"] = best
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
