"""Cases of batches: decoded columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from case import Case
from expected import BYTES, JSON, MSGPACK, TEXT, Folder, Sample, batch_bytes, even, items, xxh64


def batches(
    name: str,
    about: str,
    urls: str,
    made: Sequence[bytes],
    options: Mapping[str, str],
    *,
    error: tuple[str, int | None] | None = None,
    kind: str = "batches",
    **own: Any,
) -> Case:
    """Batches, and then perhaps an error."""
    digest = xxh64(b"".join(made))
    return Case(name, kind, about, [urls], options, len(made), digest, error, None, own)


def field(samples: Sequence[Sample], name: str) -> list[bytes]:
    """One field of each sample."""
    return [dict(sample.fields)[name.encode()] for sample in samples]


def groups(samples: Sequence[Sample], size: int) -> list[Sequence[Sample]]:
    return [samples[start : start + size] for start in range(0, len(samples), size)]


def ints(name: str, samples: Sequence[Sample]) -> bytes:
    """A column of decimal numbers."""
    rows = [int(row).to_bytes(8, "little", signed=True) for row in field(samples, name)]
    return even(name, "int64", (), rows)


def auto_columns(samples: Sequence[Sample]) -> list[bytes]:
    """What decode=auto makes of columns.tar."""
    return [
        even("npy", "float32", (2, 3), [row[-24:] for row in field(samples, "npy")]),
        ints("cls", samples),
        items("score.float", BYTES, field(samples, "score.float")),
        items("txt", TEXT, field(samples, "txt")),
        items("json", JSON, field(samples, "json")),
        items("mp", MSGPACK, field(samples, "mp")),
        items("bin", BYTES, field(samples, "bin")),
    ]


def cases(archives: Folder) -> list[Case]:
    """All of them."""
    columns = archives.samples("columns.tar")
    by_4 = [batch_bytes(part, auto_columns(part)) for part in groups(columns, 4)]
    return [
        batches("auto", "decode=auto: the suffix says what a field is", "columns.tar", by_4,
                {"batch": "4"}),
        batches("resume_batches", "saved between two batches", "columns.tar", by_4,
                {"batch": "4"}, kind="resume_batches", stop=1),
    ]  # fmt: skip
