"""What is measured on which corpus: one row of a table is one reader with its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from corpora import Corpus

HERE = Path(__file__).resolve().parent

# Bytes that the peers in C and Rust read at once: for each of them the best of 64 KiB to 5 MB, or
# within the noise of it.
CHUNK = 256 * 1024

# The corpora of run.py.
WALKED = ("tiny", "small", "npy", "image", "large", "small4", "small4-gz", "small4-zst")
COMPRESSED = ("small4-gz", "small4-zst")


@dataclass
class Tools:
    """The programs and interpreters that are there; None for those that are not."""

    programs: Path
    shardfeed_walk: Path | None = None
    shardfeed_batches: Path | None = None
    jpeg_limit: Path | None = None
    rust_tar: Path | None = None
    rust_shardfeed: Path | None = None
    rust_webdataset: Path | None = None
    julia: list[str] | None = None
    python: Path | None = None
    python_modules: frozenset[str] = frozenset()
    spdl_decodes: bool = False


@dataclass(frozen=True)
class Row:
    name: str
    label: str
    command: list[str]
    # What the reader must report: "samples" (and members and bytes), "members" (and bytes), or
    # "file" for those that only read. In batches.py "batches" (labels and decoded bytes), "labels",
    # or "pixels" for those that only decode.
    counts: str

    @property
    def ours(self) -> bool:
        return "shardfeed" in self.label


def page_rounded(size: int) -> int:
    return -(-size // 4096) * 4096


def _c_rows(tools: Tools, corpus: Corpus) -> Iterator[Row]:
    compressed = corpus.name in COMPRESSED
    if not compressed:
        command = [str(tools.programs / "read_limit"), str(CHUNK)]
        yield Row("read", "read(2), 256 KiB", command + corpus.shards, "file")
        if corpus.name == "large":
            member = page_rounded(corpus.largest_member)
            command = [str(tools.programs / "read_limit"), str(member)]
            yield Row("read-member", "read(2), 5 MB", command + corpus.shards, "file")
        command = [str(tools.programs / "bare_walk"), str(CHUNK)]
        yield Row("bare", "bare walk over read(2)", command + corpus.shards, "members")
    command = [str(tools.programs / "libarchive_walk"), str(CHUNK)]
    yield Row("libarchive", "libarchive", command + corpus.shards, "members")
    if tools.shardfeed_walk is None:
        return
    for mode in ("next", "block", "columns"):
        for name, label, options in _threads(corpus):
            command = [str(tools.shardfeed_walk), mode]
            command += [f"{key}={value}" for key, value in options.items()]
            command += ["--", *corpus.shards]
            yield Row(f"{mode}{name}", f"shardfeed C, {mode}{label}", command, "samples")
    if corpus.name == "tiny":
        command = [str(tools.shardfeed_walk), "every", "--", *corpus.shards]
        yield Row("every", "shardfeed C, next, every byte", command, "samples")


def _rust_rows(tools: Tools, corpus: Corpus) -> Iterator[Row]:
    # The crate reads plain tars; what a program puts in front of it is not its speed.
    if tools.rust_tar is not None and corpus.name not in COMPRESSED:
        command = [str(tools.rust_tar), str(CHUNK)]
        yield Row("rust", "Rust crate tar", command + corpus.shards, "members")
    if tools.rust_shardfeed is None:
        return
    for mode in ("next", "block"):
        for name, label, options in _threads(corpus):
            command = [str(tools.rust_shardfeed), mode]
            command += [f"{key}={value}" for key, value in options.items()]
            command += ["--", *corpus.shards]
            yield Row(f"rs-{mode}{name}", f"shardfeed Rust, {mode}{label}", command, "samples")


def _python_rows(tools: Tools, corpus: Corpus) -> Iterator[Row]:
    if tools.python is None:
        return
    script = [str(tools.python), str(HERE / "python_readers.py")]

    def row(name: str, label: str, reader: str, counts: str, **options: int) -> Row:
        words = [word for key, n in options.items() for word in ("--option", f"{key}={n}")]
        return Row(name, label, [*script, reader, *words, *corpus.shards], counts)

    if corpus.name == "large":
        member = page_rounded(corpus.largest_member)
        yield row("py-read", "Python, readv, 5 MB", "read", "file", chunk=member)
    # small4 is there for the two threads, its peers are measured on small. webdataset 1.0.2 and
    # tarfile before Python 3.14 cannot read .tar.zst; spdl-io reads no compressed tars.
    if corpus.name not in ("small4", "small4-zst"):
        if "webdataset" in tools.python_modules:
            yield row("webdataset", "Python, webdataset", "webdataset", "samples")
        yield row("tarfile", "Python, tarfile", "tarfile", "members")
    if "spdl.io" in tools.python_modules and corpus.name not in ("small4", *COMPRESSED):
        yield row("spdl", "Python, spdl-io over a map", "spdl", "members")
    if "shardfeed" in tools.python_modules:
        for name, label, options in _threads(corpus):
            yield row(f"py{name}", f"shardfeed Python{label}", "shardfeed", "samples", **options)


def _julia_rows(tools: Tools, corpus: Corpus) -> Iterator[Row]:
    if tools.julia is not None and len(corpus.shards) == 1:
        for mode, label in (("samples", ""), ("every", ", every byte")):
            command = [*tools.julia, mode, *corpus.shards]
            if mode == "samples" or corpus.name == "tiny":
                yield Row(f"julia-{mode}", f"shardfeed Julia{label}", command, "samples")


def _threads(corpus: Corpus) -> Iterator[tuple[str, str, dict[str, int]]]:
    """The settings of shardfeed: as it comes on one shard, one and two threads on four."""
    if len(corpus.shards) == 1:
        yield "", "", {}
        return
    yield "-1", ", 1 thread", {"threads": 1}
    yield "-2", ", 2 threads", {"threads": 2}


READERS: dict[str, Callable[[Tools, Corpus], Iterator[Row]]] = {
    "c": _c_rows,
    "rust": _rust_rows,
    "python": _python_rows,
    "julia": _julia_rows,
}
