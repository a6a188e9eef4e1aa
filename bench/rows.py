"""What is measured on which corpus: one row of a table is one reader with its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from corpora import Corpus

HERE = Path(__file__).resolve().parent

# Bytes that the peers in C and Rust read at once: for each of them the best of 64 KiB to 5 MB, or
# within the noise of it.
CHUNK = 256 * 1024

# The corpora of run.py.
COMPRESSED = ("small4-gz", "small4-zst")
ZIPPED = ("tiny-zip", "small-zip", "text-zip")
WALKED = ("tiny", "small", "npy", "image", "large", "small4", *COMPRESSED, *ZIPPED)
# Those where every byte is added up as well.
EVERY = ("tiny", "small", *ZIPPED)
EVERY_BYTE = ", every byte"
# Where a copy is most of the work, and peers make none: read with map=true too.
MAPPED = ("image", "large", "small-zip")

ZIP_LABELS = {
    "file": "Rust crate zip",
    "map": "Rust crate zip, map",
    "stream": "Rust crate zip, stream",
}


@dataclass
class Tools:
    """The programs and interpreters that are there; None for those that are not."""

    programs: Path
    shardfeed_walk: Path | None = None
    shardfeed_batches: Path | None = None
    jpeg_limit: Path | None = None
    rust_tar: Path | None = None
    rust_zip: Path | None = None
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
    # What the reader must report: "samples" (and members and bytes), "members" (and bytes), both
    # with "every" and a blank in front for those that add up every byte, or "file" for those that
    # only read. In batches.py "batches" (labels and decoded bytes), "labels",
    # or "pixels" for those that only decode.
    counts: str

    @property
    def ours(self) -> bool:
        return "shardfeed" in self.label


def page_rounded(size: int) -> int:
    return -(-size // 4096) * 4096


def _c_rows(tools: Tools, corpus: Corpus) -> Iterator[Row]:
    if corpus.name not in COMPRESSED:
        command = [str(tools.programs / "read_limit"), str(CHUNK)]
        yield Row("read", "read(2), 256 KiB", [*command, "touch", *corpus.shards], "file")
        if corpus.name in EVERY:
            every = [*command, "every", *corpus.shards]
            yield Row("read-every", f"read(2), 256 KiB{EVERY_BYTE}", every, "file")
    if corpus.name == "large":
        member = page_rounded(corpus.largest_member)
        command = [str(tools.programs / "read_limit"), str(member), "touch"]
        yield Row("read-member", "read(2), 5 MB", command + corpus.shards, "file")
    if corpus.name not in (*COMPRESSED, *ZIPPED):
        command = [str(tools.programs / "bare_walk"), str(CHUNK)]
        yield Row("bare", "bare walk over read(2)", command + corpus.shards, "members")
    if corpus.name not in ZIPPED:
        command = [str(tools.programs / "libarchive_walk"), str(CHUNK)]
        yield Row("libarchive", "libarchive", command + corpus.shards, "members")
    if tools.shardfeed_walk is not None:
        yield from _walks(
            tools.shardfeed_walk, "", "shardfeed C", ("next", "block", "columns"), corpus
        )


def _rust_rows(tools: Tools, corpus: Corpus) -> Iterator[Row]:
    peers: dict[str, tuple[str, list[str]]] = {}
    # The crate reads plain tars; what a program puts in front of it is not its speed.
    if tools.rust_tar is not None and corpus.name not in (*COMPRESSED, *ZIPPED):
        peers["rust"] = "Rust crate tar", [str(tools.rust_tar), str(CHUNK)]
    if tools.rust_zip is not None and corpus.name in ZIPPED:
        for how in ("file", "map", "stream"):
            peers[f"rust-{how}"] = ZIP_LABELS[how], [str(tools.rust_zip), f"walk-{how}"]
    for name, (label, command) in peers.items():
        yield Row(name, label, [*command, "touch", *corpus.shards], "members")
        if corpus.name in EVERY:
            every = [*command, "every", *corpus.shards]
            yield Row(f"{name}-every", f"{label}{EVERY_BYTE}", every, "every members")
    if tools.rust_shardfeed is not None:
        yield from _walks(tools.rust_shardfeed, "rs-", "shardfeed Rust", ("next", "block"), corpus)


def _walks(
    program: Path, prefix: str, label: str, modes: Sequence[str], corpus: Corpus
) -> Iterator[Row]:
    """The ways to walk that a program of ours has."""

    def row(name: str, mode: str, text: str, counts: str, options: dict[str, int | str]) -> Row:
        settings = [f"{key}={value}" for key, value in options.items()]
        command = [str(program), mode, *settings, "--", *corpus.shards]
        return Row(f"{prefix}{name}", f"{label}, {text}", command, counts)

    for mode in modes:
        for name, text, options in _threads(corpus):
            yield row(f"{mode}{name}", mode, f"{mode}{text}", "samples", options)
    if corpus.name in MAPPED:
        yield row("block-map", "block", "block, mapped", "samples", {"map": "true"})
    if corpus.name in EVERY:
        yield row("every", "every", f"next{EVERY_BYTE}", "every samples", {})
        yield row("every-block", "every-block", f"block{EVERY_BYTE}", "every samples", {})
        one: dict[str, int | str] = {"threads": 1}
        yield row("every-1", "every", f"next{EVERY_BYTE}, 1 thr.", "every samples", one)


def _python_rows(tools: Tools, corpus: Corpus) -> Iterator[Row]:
    if tools.python is None:
        return
    script = [str(tools.python), str(HERE / "python_readers.py")]

    def row(name: str, label: str, reader: str, counts: str, **options: int | str) -> Row:
        words = [word for key, n in options.items() for word in ("--option", f"{key}={n}")]
        return Row(name, label, [*script, reader, *words, *corpus.shards], counts)

    if corpus.name == "large":
        member = page_rounded(corpus.largest_member)
        yield row("py-read", "Python, readv, 5 MB", "read", "file", chunk=member)
    # small4 is there for the two threads, its peers are measured on small. webdataset 1.0.2 and
    # tarfile before Python 3.14 cannot read .tar.zst; spdl-io reads no compressed tars, and none of
    # them ZIP files.
    if corpus.name not in ("small4", "small4-zst", *ZIPPED):
        if "webdataset" in tools.python_modules:
            yield row("webdataset", "Python, webdataset", "webdataset", "samples")
        yield row("tarfile", "Python, tarfile", "tarfile", "members")
    if "spdl.io" in tools.python_modules and corpus.name not in ("small4", *COMPRESSED, *ZIPPED):
        yield row("spdl", "Python, spdl-io over a map", "spdl", "members")
    if "shardfeed" in tools.python_modules:
        for name, label, options in _threads(corpus):
            yield row(f"py{name}", f"shardfeed Python{label}", "shardfeed", "samples", **options)
        if corpus.name in MAPPED:
            label = "shardfeed Python, mapped"
            yield row("py-map", label, "shardfeed", "samples", map="true")


def _julia_rows(tools: Tools, corpus: Corpus) -> Iterator[Row]:
    if tools.julia is not None and len(corpus.shards) == 1 and corpus.name not in ZIPPED:
        command = [*tools.julia, "samples", *corpus.shards]
        yield Row("julia-samples", "shardfeed Julia", command, "samples")
        if corpus.name == "tiny":
            command = [*tools.julia, "every", *corpus.shards]
            yield Row("julia-every", f"shardfeed Julia{EVERY_BYTE}", command, "every samples")


def _threads(corpus: Corpus) -> Iterator[tuple[str, str, dict[str, int | str]]]:
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
