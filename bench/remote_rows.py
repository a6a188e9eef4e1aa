"""The rows of remote.py, how they are measured, and their tables."""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from building import BUILT, importable, note
from corpora import Corpus
from measuring import HERE, Result, RunError, differences, run, warm
from remote_servers import BUCKET, CURL_SIGNS, S3
from targets import Verdict

CONNECTIONS, MANY_CONNECTIONS = 8, 32
RANGE = 8 << 20
CHUNK = 256 << 10
PEERS = ("boto3", "s3fs", "s3torchconnector", "obstore")


@dataclass(frozen=True)
class Row:
    """`counted`: what a run has to find, "samples", "bytes" (of the shards) or "" for curl, which
    counts nothing. `epochs`: how often it finds that; seconds are those of one. `prepare` comes
    before each run.
    """

    name: str
    label: str
    command: list[str]
    counted: str = "samples"
    prepare: Callable[[], object] | None = field(default=None, compare=False)
    epochs: int = 1

    def with_environment(self, variables: Mapping[str, str]) -> Row:
        words = [f"{name}={value}" for name, value in variables.items()]
        return replace(self, command=["env", *words, *self.command])


@dataclass(frozen=True)
class Tools:
    python: Path
    walk: Path | None  # the stream in C
    modules: frozenset[str]

    @staticmethod
    def found(python: Path, walk: Path | None) -> Tools:
        wanted = ("shardfeed", "webdataset", *PEERS)
        modules = importable(python, wanted)
        if missing := [name for name in wanted if name not in modules]:
            note(f"not importable and left out: {', '.join(missing)} (requirements-remote.txt)")
        return Tools(python, walk, modules)

    def reader(self, script: str, name: str, *words: str) -> list[str]:
        return [str(self.python), str(HERE / script), name, *words]

    def c_row(self, name: str, label: str, urls: list[str], *options: str) -> Iterator[Row]:
        if self.walk is not None:
            words = [str(self.walk), "block", "threads=1", *options, "--", *urls]
            yield Row(f"c-{name}", f"shardfeed C, {label}", words)

    def python_row(self, name: str, label: str, urls: list[str], *options: str) -> Iterator[Row]:
        if "shardfeed" in self.modules:
            words = [f"--option={option}" for option in ("threads=1", *options)]
            command = self.reader("python_readers.py", "shardfeed", *words, *urls)
            yield Row(f"py-{name}", f"shardfeed Python, {label}", command)


# ---- Rows ----------------------------------------------------------------------------------------


def curl_row(urls: list[str], *options: str) -> Row:
    words = ["curl", "-s", "-f", *options]
    for url in urls:
        words += ["-o", "/dev/null", url]
    return Row("curl", "curl, bytes alone", words, "")


def curl_ranges_row(corpus: Corpus, urls: list[str]) -> Row:
    """The bare link: ranges over as many connections as shardfeed has."""
    words: list[str] = []
    for shard, url in zip(corpus.shards, urls):
        size = Path(shard).stat().st_size
        for start in range(0, size, RANGE):
            part = f"{start}-{min(start + RANGE, size) - 1}"
            words += ["--next"] if words else []
            words += ["-s", "-f", "-r", part, "-o", "/dev/null", url]
    most = ["-Z", "--parallel-max", str(CONNECTIONS)]
    label = f"curl, bytes alone, {CONNECTIONS} conn."
    return Row("curl-ranges", label, ["curl", *most, *words], "")


def ours(tools: Tools, urls: list[str], *connections: int) -> Iterator[Row]:
    for count in connections:
        words = (str(count), f"{count} conn.", urls, f"connections={count}")
        yield from tools.c_row(*words)
        yield from tools.python_row(*words)


def piped_webdataset(tools: Tools, urls: list[str]) -> Iterator[Row]:
    if "webdataset" in tools.modules:
        pipes = [f"pipe:curl -s -f {url}" for url in urls]
        command = tools.reader("python_readers.py", "webdataset", *pipes)
        yield Row("webdataset", "webdataset, pipe:curl", command)


def copy_row(corpus: Corpus) -> Row:
    """What a copy of the bytes takes."""
    command = [str(BUILT / "read_limit"), str(CHUNK), "touch", *corpus.shards]
    return Row("copy", "read(2) of the files", command, "bytes")


def s3_rows(tools: Tools, corpus: Corpus, server: S3) -> Iterator[Row]:
    keys = [f"{corpus.name}/{Path(shard).name}" for shard in corpus.shards]
    urls = [f"s3://{BUCKET}/{key}" for key in keys]
    yield curl_row([server.url(key) for key in keys], *CURL_SIGNS)
    rows = list(ours(tools, urls, 1, CONNECTIONS))
    for peer in PEERS:
        if peer not in tools.modules:
            continue
        kinds = {peer: peer}
        if peer == "obstore":
            kinds["obstore-ranges"] = f"obstore, {CONNECTIONS} ranges"
        for name, label in kinds.items():
            command = tools.reader("object_readers.py", f"{name}-bytes", *urls)
            rows.append(Row(f"{name}-bytes", f"{label}, bytes alone", command, "bytes"))
            if "webdataset" in tools.modules:
                command = tools.reader("object_readers.py", name, *urls)
                rows.append(Row(name, label, command))
    yield from (row.with_environment(server.environment()) for row in rows)


# ---- Measuring -----------------------------------------------------------------------------------


def run_curl(command: list[str]) -> Result:
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    # It shows its progress, with -Z also under -s.
    done = subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RunError(f"curl: exit status {done.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": time.perf_counter() - start, "cpu_seconds": cpu}


def wanted_of(corpus: Corpus, row: Row) -> Result:
    wanted = {"samples": corpus.samples, "bytes": corpus.bytes, "checksum": corpus.checksum}
    if row.counted == "bytes":
        wanted = {"bytes": corpus.file_bytes}
    return {name: row.epochs * count for name, count in wanted.items()}


def run_row(corpus: Corpus, row: Row) -> Result:
    """RunError: it failed, or counted something else."""
    if row.prepare is not None:
        row.prepare()
    if not row.counted:
        return run_curl(row.command)
    result = run(row.command)
    if mistake := differences(result, wanted_of(corpus, row)):
        raise RunError(mistake)
    # Those of the curl of a pipe.
    result["cpu_seconds"] += result.get("children_cpu_seconds", 0)
    for name in ("seconds", "cpu_seconds"):
        result[name] /= row.epochs
    return result


Best = dict[str, Result]


def measure(corpus: Corpus, rows: list[Row], repeat: int) -> tuple[Best, bool]:
    """The best run of each row, and whether one was wrong."""
    best: Best = {}
    wrong = False
    for _ in range(repeat):
        for row in rows:
            warm(corpus.shards)
            try:
                result = run_row(corpus, row)
            except (RunError, ValueError) as error:
                print(f"{row.label}: FAILED: {error}")
                wrong = True
                continue
            if row.name not in best or result["seconds"] < best[row.name]["seconds"]:
                best[row.name] = result
    return best, wrong


def table(title: str, corpus: Corpus, rows: list[Row], best: Best, peer: str) -> str:
    """`peer`: the name of the row that the others are compared with."""
    shards = f"{len(corpus.shards)} shard(s)"
    lines = [
        f"\n## {title}: {corpus.name}, {corpus.file_bytes / 1e6:,.0f} MB in {shards}",
        f"{'':36}{'MB/s':>9}{'/ ' + peer:>9}{'cpu s/GB':>10}{'first ms':>10}{'peak MB':>9}",
    ]
    for row in rows:
        result = best.get(row.name)
        if result is None:
            continue
        ratio = f"{best[peer]['seconds'] / result['seconds']:.2f}" if peer in best else "-"
        first, peak = result.get("first_seconds"), result.get("peak_rss_bytes")
        lines.append(
            f"{row.label:36}{corpus.file_bytes / result['seconds'] / 1e6:9,.1f}{ratio:>9}"
            f"{result['cpu_seconds'] / corpus.file_bytes * 1e9:10.2f}"
            + (f"{first * 1000:10.1f}" if first else f"{'':10}")
            + (f"{peak / 1e6:9.0f}" if peak else "")
        )
    return "\n".join(lines)


# ---- Targets -------------------------------------------------------------------------------------


def at_least(text: str, got: float, wanted: float) -> Verdict:
    return Verdict(text, f"at least {wanted:g}", f"{got:.3g}", got >= wanted)


def at_most(text: str, got: float, wanted: float, unit: str = "") -> Verdict:
    return Verdict(text, f"at most {wanted:.4g}{unit}", f"{got:.4g}{unit}", got <= wanted)


def as_fast(
    text: str, best: Best, name: str, peers: tuple[str, ...], least: float
) -> list[Verdict]:
    """Against the fastest of the peers that are there; nothing where one side is not."""
    there = [peer for peer in peers if peer in best]
    if name not in best or not there:
        return []
    peer = min(there, key=lambda one: best[one]["seconds"])
    ratio = best[peer]["seconds"] / best[name]["seconds"]
    return [at_least(f"{text} / {peer}", ratio, least)]
