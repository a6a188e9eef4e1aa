"""The tables that run.py and batches.py print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corpora import Corpus
from rows import Row

# Heading and the rows that it may stand for, the most telling one first.
Peers = tuple[tuple[str, tuple[str, ...]], ...]
WALKERS: Peers = (
    ("webds", ("webdataset",)),
    ("spdl", ("spdl",)),
    ("libarch", ("libarchive",)),
    ("crate", ("rust", "rust-file")),
    ("bare", ("bare",)),
    ("read(2)", ("read-member", "read")),
)

BATCH_PEERS: Peers = (
    ("webds", ("webdataset",)),
    ("loader", ("loader-2", "loader-0")),
    ("wds-rs", ("rust-2", "rust")),
    ("mlx", ("mlx-2", "mlx-1")),
    ("limit", ("jpeg-all", "read")),
)

HEAD = (
    f"{'':40}{'samples/s':>12}{'data MB/s':>11}{'wall ms':>9}{'cpu ms':>9}{'proc ms':>9}"
    f"{'peak MB':>9}{'first ms':>9} |"
)

# Readers with one thread and warm files never wait, so wall and CPU time are the same.
WITHOUT_WAITING = (
    "read", "bare", "libarchive", "webdataset", "tarfile", "jpeg-1", "mlx-1"
)  # fmt: skip
BUSY = 1.1


def was_busy(best: Mapping[str, Mapping[str, float]]) -> bool:
    """Whether other programs kept the CPU from the peers even in their best runs."""
    return any(
        best[name]["seconds"] > BUSY * best[name]["cpu_seconds"]
        for name in WITHOUT_WAITING
        if name in best
    )


def table(
    corpus: Corpus,
    rows: Sequence[Row],
    best: Mapping[str, Mapping[str, float]],
    problems: Mapping[str, str],
    wanted: Peers,
) -> str:
    peers = [
        (heading, next(name for name in names if name in best))
        for heading, names in wanted
        if any(name in best for name in names)
    ]
    lines = [
        f"## {corpus.name}: {corpus.samples:,} samples of {corpus.fields} field(s),"
        f" {corpus.file_bytes / 1e6:,.1f} MB in {len(corpus.shards)} shard(s)",
        HEAD + "".join(f"{'/ ' + heading:>10}" for heading, _ in peers),
    ]
    for row in rows:
        if row.name in problems:
            lines.append(f"{row.label:40}{problems[row.name]}")
            continue
        result = best[row.name]
        seconds = result["seconds"]
        cells = (
            f"{row.label:40}{corpus.samples / seconds:12,.0f}"
            f"{corpus.bytes / seconds / 1e6:11,.0f}{seconds * 1e3:9.1f}"
            f"{result['cpu_seconds'] * 1e3:9.1f}{result['process_cpu_seconds'] * 1e3:9.1f}"
            f"{result['peak_rss_bytes'] / 1e6:9.1f}{result['first_seconds'] * 1e3:9.2f} |"
        )
        ratios = "".join(f"{best[peer]['seconds'] / seconds:10.2f}" for _, peer in peers)
        lines.append(cells + ratios)
    return "\n".join(lines)
