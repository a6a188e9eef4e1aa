"""The samples of one tar, by number."""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from typing import TYPE_CHECKING, Any, BinaryIO

from .wids_mmtar import MMIndexedTar
from .wids_tar import TarFileReader, find_index_file

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAME = re.compile(r"((?:.*/)?.*?)(\..*)", re.DOTALL)


def compute_file_md5sum(fname: str | BinaryIO, chunksize: int = 1000000) -> str:
    """The MD5 of a file, in hexadecimal."""
    md5 = hashlib.md5()
    if isinstance(fname, (str, os.PathLike)):
        with open(fname, "rb") as stream:
            for piece in iter(lambda: stream.read(chunksize), b""):
                md5.update(piece)
    else:
        fname.seek(0)
        for piece in iter(lambda: fname.read(chunksize), b""):
            md5.update(piece)
    return md5.hexdigest()


def splitname(fname: str) -> tuple[str, str]:
    """The name of a file before the first dot of its last component, and the rest with the dot."""
    found = _NAME.fullmatch(fname)
    assert found is not None, (
        f"Filename must have an extension: {fname!r}; help: name it 0001.txt or so"
    )
    return found[1], found[2]


def group_by_key(names: Iterable[str]) -> list[list[int]]:
    """The numbers of the files of each sample: of neighbours with equal keys."""
    groups: list[list[int]] = []
    last: str | None = None
    for number, name in enumerate(names):
        if "." not in name:
            print(f"Warning: Ignoring file {name} (no '.')")
            continue
        key, _ = splitname(name)
        if key != last or not groups:
            groups.append([])
            last = key
        groups[-1].append(number)
    return groups


class IndexedTarSamples:
    """The samples of one tar, by number: dicts from suffix, with its dot, to a file in memory.

    path, or an open file as stream: the tar. md5sum, expected_size: what it must have, the latter
    in samples. use_mmap and index_file are as in wids, and change nothing: the library finds the
    members, and nothing is unpickled.
    """

    def __init__(
        self,
        *,
        path: Any = None,
        stream: Any = None,
        md5sum: str | None = None,
        expected_size: int | None = None,
        use_mmap: bool = True,
        index_file: Any = find_index_file,
    ) -> None:
        assert path is not None or stream is not None, "give path, or an open file as stream"
        self.path = path
        self.stream = stream
        if md5sum is not None:
            got = compute_file_md5sum(path if stream is None else stream)
            assert got == md5sum, (
                f"MD5 sum mismatch: expected {md5sum}, got {got}; help: {path} is damaged or "
                "another version; get it again"
            )
            if stream is not None:
                stream.seek(0)
        source = path if stream is None else stream
        kind = MMIndexedTar if use_mmap else TarFileReader
        self.reader: MMIndexedTar | TarFileReader = (
            kind(source) if use_mmap else TarFileReader(source, index_file=index_file)
        )
        self.samples = group_by_key(self.reader.names())
        if expected_size is not None:
            assert len(self) == expected_size, (
                f"Expected {expected_size} samples, got {len(self)}; help: {path} is another "
                "version than its index says; make the index again"
            )
        self.uuid = str(uuid.uuid4())

    def close(self) -> None:
        """Closes the tar."""
        self.reader.close()
        if self.stream is not None and not self.stream.closed:
            self.stream.close()

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, idx: int) -> dict[str, Any]:
        sample: dict[str, Any] = {}
        key = ""
        for number in self.samples[idx]:
            name, data = self.reader.get_file(number)
            key, suffix = splitname(name)
            if suffix in sample:
                raise ValueError(
                    f"{self.path}: the sample {key!r} has the file {name!r} twice; help: write the "
                    "shard again"
                )
            sample[suffix] = data
        sample["__key__"] = key
        return sample

    def __str__(self) -> str:
        return f"<IndexedTarSamples-{id(self)} {self.path}>"

    __repr__ = __str__


def compute_num_samples(fname: Any) -> int:
    """How many samples a tar has."""
    samples = IndexedTarSamples(path=fname)
    try:
        return len(samples)
    finally:
        samples.close()


__all__ = [
    "IndexedTarSamples",
    "compute_file_md5sum",
    "compute_num_samples",
    "group_by_key",
    "splitname",
]
