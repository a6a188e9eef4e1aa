"""Cases of archives and datasets: members and samples in any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from case import Case
from expected import Folder, Sample, sample_bytes, text, u64, xxh64

EMPTY = xxh64(b"")


def archive(
    name: str,
    about: str,
    url: str,
    members: Sequence[tuple[bytes, bytes]],
    options: Mapping[str, str] | None = None,
    *,
    find: Mapping[str, int] | None = None,
    missing: str | None = None,
    error: tuple[str, int | None] | None = None,
) -> Case:
    """Members, then names with their positions, then perhaps a name that ends in an error."""
    hashed = b"".join(text(name) + text(data) for name, data in members)
    hashed += b"".join(map(u64, (find or {}).values()))
    names = [*(find or {}), *([missing] if missing is not None else [])]
    own = {"find": names} if names else {}
    return Case(
        name, "archive", about, [url], options or {}, len(members), xxh64(hashed), error, None, own
    )


def dataset(
    name: str,
    about: str,
    urls: Sequence[str],
    samples: Sequence[Sample],
    positions: Sequence[int],
    options: Mapping[str, str] | None = None,
    *,
    find: Mapping[str, int] | None = None,
    missing: str | None = None,
    bad: int | None = None,
    error: tuple[str, int | None] | None = None,
) -> Case:
    """Samples by number, then keys with their numbers, then perhaps what ends in an error: the
    sample `bad` or the key `missing`.
    """
    hashed = sample_bytes(samples[number] for number in positions)
    hashed += b"".join(map(u64, (find or {}).values()))
    names = [*(find or {}), *([missing] if missing is not None else [])]
    own = {
        "positions": [*positions, *([bad] if bad is not None else [])],
        **({"find": names} if names else {}),
    }
    return Case(
        name, "dataset", about, list(urls), options or {}, len(samples), xxh64(hashed), error, None,
        own,
    )  # fmt: skip


def cases(archives: Folder) -> list[Case]:
    """All of them."""
    return [*archive_cases(archives), *dataset_cases(archives)]


def archive_cases(archives: Folder) -> list[Case]:
    """Archives."""
    members = archives.members
    return [
        archive("archive_tar", "members of a tar, some found by name", "plain.tar",
                members("plain.tar"), find={"00003.cls": 10, "00000.txt": 0}),
        archive("archive_zip", "members of a ZIP file, some found by name", "stored.zip",
                members("stored.zip"), find={"00005.bin": 17, "00001.txt": 3}),
    ]  # fmt: skip


def dataset_cases(archives: Folder) -> list[Case]:
    """Datasets."""
    return [
        dataset("dataset_tar", "samples of a tar by number and key", ["plain.tar"],
                archives.samples("plain.tar"), [5, 0, 3, 3], {"index": "memory"},
                find={"00004": 4}),
    ]  # fmt: skip
