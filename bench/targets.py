"""The figures that the project has set itself, and whether a run reached them.

A missed target is printed and never fails the run: machines and their neighbours differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass

from corpora import Corpus
from rows import ZIPPED, Row

MEBI = 1 << 20
DEFAULT_MEMORY = 256 * MEBI
MEMORY_SLACK = 64 * MEBI
FIRST_SAMPLE_SECONDS = 0.005
IMPORT_SECONDS = 0.100
HANDING_SECONDS = 20e-6
PLAN_SECONDS = 1.0
PLAN_RSS = 100_000_000
SAVE_SECONDS = 50e-6
STATE_BYTES = 64 << 10
RESTORE_SECONDS = 0.020
ORDER_COST = 0.05
# Without and with shuffle, of the rate of reading from front to back.
BY_INDEX_RATES = (0.6, 0.8)


@dataclass(frozen=True)
class Verdict:
    text: str
    wanted: str
    got: str
    reached: bool

    def __str__(self) -> str:
        word = "reached" if self.reached else "MISSED "
        return f"{word}  {self.text}: {self.got} (wanted {self.wanted})"

    def as_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class Ratio:
    """Row `ours` of a corpus is to be at least `least` times as fast as row `peer`."""

    corpus: str
    ours: str
    peer: str
    least: float


RATIOS = (
    Ratio("tiny", "py", "webdataset", 25),
    Ratio("small", "py", "webdataset", 20),
    Ratio("npy", "py", "webdataset", 12),
    Ratio("image", "py", "webdataset", 7),
    Ratio("tiny", "py", "spdl", 1),
    Ratio("small", "py", "spdl", 1),
    Ratio("npy", "py", "spdl", 1),
    Ratio("image", "py", "spdl", 1),
    Ratio("large", "py", "py-read", 0.85),
    Ratio("image", "py-map", "spdl", 1.1),
    Ratio("large", "py-map", "spdl", 1.1),
    Ratio("image", "block-map", "spdl", 1.1),
    Ratio("large", "block-map", "spdl", 1.1),
    Ratio("small-zip", "block-map", "rust-map", 1.1),
    Ratio("tiny", "block", "libarchive", 3),
    Ratio("tiny", "next", "libarchive", 2),
    Ratio("tiny", "julia-samples", "next", 0.8),
    Ratio("tiny", "julia-every", "every", 0.8),
    Ratio("tiny", "rs-next", "next", 0.95),
    Ratio("tiny", "rs-block", "block", 0.95),
    Ratio("tiny", "rs-block", "rust", 3),
    # The user's loops, every byte looked at.
    Ratio("tiny", "rs-every", "every", 0.95),
    *(
        Ratio(corpus, mode, "rust-every", 3)
        for corpus in ("tiny", "small")
        for mode in ("rs-every", "rs-every-block", "rs-every-1")
    ),
    *(
        Ratio(corpus, mode, "rust-file-every", 3)
        for corpus in ("tiny-zip", "small-zip")
        for mode in ("rs-every", "rs-every-block", "rs-every-1")
    ),
    *(
        Ratio(corpus, mode, "bare", 0.8)
        for corpus in ("small", "npy", "image")
        for mode in ("next", "block")
    ),
    Ratio("large", "next", "read-member", 0.9),
    Ratio("large", "block", "read-member", 0.9),
    Ratio("small4", "block-2", "block-1", 1.6),
    Ratio("small4-gz", "block-1", "libarchive", 1.7),
    Ratio("small4-gz", "block-2", "block-1", 1.8),
    Ratio("small4-zst", "block-1", "libarchive", 0.95),
    Ratio("small4-zst", "block-2", "block-1", 1.8),
)

BATCH_RATIOS = (
    Ratio("npy4", "py-2", "loader-0", 20),
    Ratio("npy4", "py-2", "loader-2", 15),
    Ratio("npy4", "py-workers", "loader-2", 8),
    Ratio("npy4", "py-2", "rust", 2.5),
    Ratio("npy4", "py-2", "rust-2", 2.5),
    Ratio("npy4", "py-2", "read", 0.5),
    Ratio("npy4", "c-2", "read", 0.5),
    Ratio("photo", "py-2", "mlx-2", 1),
    Ratio("photo", "c-2", "jpeg-all", 0.95),
    Ratio("photo", "py-2", "jpeg-all", 0.95),
    Ratio("photo", "c-2", "c-1", 1.8),
    Ratio("photo", "resized-2", "resized-1", 1.8),
)


@dataclass(frozen=True)
class Goal:
    """Row `row` of a corpus is to deliver so many samples a second."""

    corpus: str
    row: str
    rate: float


GOAL = Goal("tiny", "py", 600_000)
BATCH_GOAL = Goal("tiny", "py-2", 1_000_000)


def ratios(
    wanted: Iterable[Ratio],
    corpus: str,
    rows: Mapping[str, Row],
    best: Mapping[str, Mapping[str, float]],
) -> Iterator[Verdict]:
    """The verdicts on the ratios of one corpus; rows that were not run have none."""
    for want in wanted:
        if want.corpus == corpus and want.ours in best and want.peer in best:
            got = best[want.peer]["seconds"] / best[want.ours]["seconds"]
            text = f"{rows[want.ours].label} / {rows[want.peer].label}"
            yield Verdict(text, f"{want.least:g}", f"{got:.2f}", got >= want.least)


def goal(
    wanted: Goal,
    corpus: Corpus,
    rows: Mapping[str, Row],
    best: Mapping[str, Mapping[str, float]],
) -> Iterator[Verdict]:
    """The verdict on a rate, which is that of one machine."""
    if corpus.name == wanted.corpus and wanted.row in best:
        got = corpus.samples / best[wanted.row]["seconds"]
        text = f"{rows[wanted.row].label}, samples/s (goal)"
        yield Verdict(text, f"{wanted.rate:,}", f"{got:,.0f}", got >= wanted.rate)


def judge(
    corpus: Corpus,
    rows: Mapping[str, Row],
    best: Mapping[str, Mapping[str, float]],
) -> Iterator[Verdict]:
    """The verdicts on one corpus of run.py."""
    yield from ratios(RATIOS, corpus.name, rows, best)
    yield from goal(GOAL, corpus, rows, best)
    ours = [name for name in best if rows[name].ours]
    if ours:
        slowest = max(ours, key=lambda name: best[name]["first_seconds"])
        # Of a ZIP file the whole directory is read before.
        if corpus.name not in ZIPPED:
            yield at_most(
                f"first sample, slowest: {rows[slowest].label}",
                best[slowest]["first_seconds"],
                FIRST_SAMPLE_SECONDS,
            )
        yield peak_memory(rows, best)


def judge_batches(
    corpus: Corpus,
    rows: Mapping[str, Row],
    best: Mapping[str, Mapping[str, float]],
) -> Iterator[Verdict]:
    """The verdicts on one corpus of batches.py."""
    yield from ratios(BATCH_RATIOS, corpus.name, rows, best)
    yield from goal(BATCH_GOAL, corpus, rows, best)
    if any(rows[name].ours and name != "py-workers" for name in best):
        yield peak_memory(rows, best)


def peak_memory(rows: Mapping[str, Row], best: Mapping[str, Mapping[str, float]]) -> Verdict:
    """That of the hungriest row of ours, which has to be there. That of PyTorch is its own."""
    ours = [name for name in best if rows[name].ours and name != "py-workers"]
    largest = max(ours, key=lambda name: best[name]["peak_rss_bytes"])
    return at_most_bytes(
        f"peak memory, largest: {rows[largest].label}",
        best[largest]["peak_rss_bytes"],
        DEFAULT_MEMORY + MEMORY_SLACK,
    )


def at_most(text: str, seconds: float, limit: float) -> Verdict:
    unit, scale = ("ms", 1e3) if limit >= 1e-3 else ("us", 1e6)
    return Verdict(
        text,
        f"under {limit * scale:,.0f} {unit}",
        f"{seconds * scale:,.2f} {unit}",
        seconds < limit,
    )


def at_most_kib(text: str, size: float, limit: float) -> Verdict:
    return Verdict(text, f"under {limit / 1024:g} KiB", f"{size / 1024:.1f} KiB", size < limit)


def at_most_share(text: str, share: float, limit: float) -> Verdict:
    return Verdict(text, f"under {limit:.0%}", f"{share:+.1%}", share < limit)


def at_least_times(text: str, ratio: float, least: float) -> Verdict:
    return Verdict(text, f"at least {least:.2f} times", f"{ratio:.2f} times", ratio >= least)


def at_most_bytes(text: str, size: float, limit: float) -> Verdict:
    return Verdict(text, f"at most {limit / 1e6:,.0f} MB", f"{size / 1e6:,.1f} MB", size <= limit)
