"""The conformance suite through the Python package.

python run_conformance.py FOLDER CASES.JSON [NAME...]
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import shardfeed
import xxhash

_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128", "bfloat16",
)  # fmt: skip
_KINDS = ("array", "bytes", "text", "json", "msgpack")
_MEMBER_KINDS = ("file", "directory", "hard link", "symbolic link", "special")
_MASK = (1 << 64) - 1


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


class Run:
    """A case, and what came of it."""

    def __init__(self, case: dict[str, Any], folder: str) -> None:
        self._case = case
        self._folder = folder
        self._urls = self._urls_of(case)
        self._options = self._options_of(case)
        self._hash = xxhash.xxh64()
        self._count = 0
        self._stats: dict[str, int] = {}
        self._out = ""  # where a case writes

    def _urls_of(self, case: dict[str, Any]) -> list[str]:
        """The URLs of a case, or of a part of a mix."""
        return [
            url.replace("$FOLDER", self._folder)
            if "$FOLDER" in url or "://" in url
            else f"{self._folder}/{url}"
            for url in case["urls"]
        ]

    def _options_of(self, case: dict[str, Any]) -> dict[str, Any]:
        return {
            name: value.replace("$FOLDER", self._folder) for name, value in case["options"].items()
        }

    def result(self) -> dict[str, Any]:
        """What "expect" has to be."""
        expect: dict[str, Any] = {}
        kinds: dict[str, Callable[[], None]] = {
            "stream": self._stream,
            "resume": self._resume,
            "batches": self._batches,
            "resume_batches": self._resume_batches,
            "merge": self._merge,
            "archive": self._archive,
            "members": self._members,
            "dataset": self._dataset,
            "expand": self._expand,
            "mix": self._mix,
            "plan": self._plan,
            "simulate": self._simulate,
            "write": self._write,
        }
        try:
            kinds[self._case["kind"]]()
        except shardfeed.Error as error:
            message = self._shown(error.message)
            expect["error"] = {"class": error.code_name, "message": message}
            if error.offset is not None:
                expect["error"]["offset"] = error.offset
        expect["digest"] = self._hash.hexdigest()
        expect["count"] = self._count
        if "stats" in self._case["expect"]:
            expect["stats"] = {
                name: self._stats.get(name) for name in self._case["expect"]["stats"]
            }
        return expect

    # ---- Hashing ----

    def _u64(self, *numbers: int) -> None:
        self._hash.update(b"".join((int(n) & _MASK).to_bytes(8, "little") for n in numbers))

    def _str(self, data: bytes | memoryview) -> None:
        self._u64(len(data))
        self._hash.update(data)

    def _url(self, url: str) -> None:
        self._str(_bytes(self._shown(url)))

    def _shown(self, text: str) -> str:
        """Without the folders of this run."""
        text = text.replace(f"{self._folder}/", "")
        return text.replace(f"{self._out}/", "") if self._out else text

    def _sample(self, sample: shardfeed.Sample) -> None:
        self._str(_bytes(sample.key))
        self._url(sample.shard)
        self._u64(len(sample))
        for name, data in sample.items():
            self._str(_bytes(name))
            self._str(data)

    def _batch(self, batch: shardfeed.Batch) -> None:
        names = batch.keys()
        names += [name for name in ("__valid__", "__key__", "__url__") if name in batch]
        self._u64(len(batch), len(names))
        for name in names:
            self._str(_bytes(name))
            if name == "__url__":
                for url in batch.urls:
                    self._url(url)
            else:
                self._column(batch.column(name))

    def _column(self, column: shardfeed.Column) -> None:
        self._u64(_KINDS.index(column.kind), _DTYPES.index(column.dtype), column.row_ndim)
        self._u64(len(column.shape), *column.shape)
        self._str(column.view())
        for numbers in (column.offsets, column.shapes):
            flat = [] if numbers is None else numbers.ravel().tolist()
            self._u64(len(flat), *flat)

    # ---- Streams ----

    def _open(self, **more: int) -> shardfeed.Stream:
        return shardfeed.Stream(self._urls, log=None, **{**self._options, **more})

    def _take(self, samples: Iterator[shardfeed.Sample], most: int | None = None) -> None:
        for number, sample in enumerate(samples, 1):
            self._sample(sample)
            self._count += 1
            if number == most:
                break

    def _take_batches(self, batches: Iterator[shardfeed.Batch], most: int | None = None) -> None:
        for number, batch in enumerate(batches, 1):
            self._batch(batch)
            self._count += 1
            if number == most:
                break

    def _stream(self) -> None:
        with self._open() as stream:
            try:
                self._take(iter(stream))
            finally:
                self._stats = stream.stats()

    def _resume(self) -> None:
        with self._open() as stream:
            self._take(iter(stream), self._case["stop"])
            state = stream.state_dict()
        with self._open() as stream:
            stream.load_state_dict(state)
            self._take(iter(stream))

    def _batches(self) -> None:
        with self._open() as stream:
            self._take_batches(stream.batches())

    def _resume_batches(self) -> None:
        with self._open() as stream:
            self._take_batches(stream.batches(), self._case["stop"])
            state = stream.state_dict()
        with self._open() as stream:
            stream.load_state_dict(state)
            self._take_batches(stream.batches())

    def _merge(self) -> None:
        before, after = self._case["consumers"]
        states = []
        for rank in range(before):
            with self._open(world_size=before, rank=rank) as stream:
                self._take(iter(stream), self._case["stop"])
                states.append(stream.state_dict())
        merged = shardfeed.merge_states(states)
        for rank in range(after):
            with self._open(world_size=after, rank=rank) as stream:
                stream.load_state_dict(merged)
                self._take(iter(stream))

    def _open_mix(self) -> shardfeed.Stream:
        parts = [
            shardfeed.Stream(self._urls_of(part), log=None, **self._options_of(part))
            for part in self._case["parts"]
        ]
        weights = self._case.get("weights")
        return shardfeed.mix(parts, weights=weights, log=None, **self._options)

    def _mix(self) -> None:
        with self._open_mix() as stream:
            self._take(iter(stream), self._case.get("stop"))
            if "stop" not in self._case:
                return
            state = stream.state_dict()
        with self._open_mix() as stream:
            stream.load_state_dict(state)
            self._take(iter(stream))

    def _plan(self) -> None:
        plan = shardfeed.plan(self._urls, **self._options)
        self._url(str(plan))
        self._u64(len(plan.warnings))
        for warning in plan.warnings:
            self._url(warning)
        for consumer in plan.consumers:
            self._share(consumer)

    def _simulate(self) -> None:
        numbers = (self._case["shards"], self._case.get("bytes"))
        plan = shardfeed.simulate_plan(*numbers, **self._options)
        for number, consumer in enumerate(plan.consumers):
            self._share(consumer)
            reads = plan.reads(number)
            self._u64(len(reads))
            for read in reads:
                self._u64(read["shard"], read["samples"], read["first"], read["last"])

    def _share(self, consumer: dict[str, int | None]) -> None:
        self._count += 1
        for name in ("rank", "worker", "lanes", "shards", "samples", "bytes"):
            value = consumer[name]
            self._u64(_MASK if value is None else value)

    # ---- Random access ----

    def _archive(self) -> None:
        with shardfeed.Archive(self._urls[0], **self._options) as archive:
            for position, name in enumerate(archive.names()):
                data = archive.read(position)
                self._str(_bytes(name))
                self._str(data)
                self._count += 1
            for name in self._case.get("find", []):
                self._u64(archive[name].position)

    def _members(self) -> None:
        with shardfeed.Members(self._urls[0], **self._options) as members:
            for member in members:
                data = member.read()
                self._str(member.name_bytes)
                self._u64(_MEMBER_KINDS.index(member.kind))
                for number in (member.mode, member.uid, member.gid, member.mtime_ns):
                    self._u64(-1 if number is None else number)
                for text in (member.link, member.user, member.group):
                    self._str(_bytes(text or ""))
                self._str(data)
                self._count += 1

    def _dataset(self) -> None:
        with shardfeed.Dataset(self._urls, log=None, **self._options) as dataset:
            self._count = len(dataset)
            for number in self._case.get("positions", []):
                self._sample(dataset[number])
            for key in self._case.get("find", []):
                self._u64(dataset.find(key))

    def _write(self) -> None:
        with tempfile.TemporaryDirectory() as out:
            self._out = out
            self._write_into(Path(out))

    def _write_into(self, out: Path) -> None:
        options = {n: v.replace("$OUT/", f"{out}/") for n, v in self._options.items()}
        names = self._case.get("names")
        pattern = (lambda i: f"{out}/{names[i]}") if names else f"{out}/{self._case['pattern']}"
        writer = shardfeed.Writer(pattern, encoder=False, **options)
        for sample in self._case["samples"]:
            key, *parts = (bytes.fromhex(part) for part in sample)
            fields = {_text(n): data for n, data in zip(parts[::2], parts[1::2], strict=True)}
            try:
                writer.write({"__key__": _text(key), **fields})
            except shardfeed.Error as error:
                self._str(error.code_name.encode())
        writer.finish()
        for shard in writer.shards:
            self._url(shard.url)
            self._u64(shard.samples)
        for path in sorted(out.iterdir()):
            self._str(_bytes(path.name))
            if path.suffix in (".tar", ".idx"):
                self._str(path.read_bytes())
        for sample in shardfeed.Stream([shard.url for shard in writer.shards]):
            self._sample(sample)
            self._count += 1

    def _expand(self) -> None:
        for url in shardfeed.expand_urls(self._urls, **self._options):
            self._url(url)
            self._count += 1


def difference(case: dict[str, Any], folder: str | Path) -> str | None:
    """What is otherwise than the case expects; None when it passes. `folder` may be a URL."""
    place = folder if isinstance(folder, str) and "://" in folder else Path(folder).resolve()
    found = Run(case, os.fspath(place)).result()
    if found == case["expect"]:
        return None
    return f"{case['name']}: {case['expect']} expected, not {found}"


def read_cases(path: Path) -> list[dict[str, Any]]:
    """The cases of a file."""
    whole = json.loads(path.read_text(encoding="utf-8"))
    if whole["version"] != 1:
        raise ValueError("cases of another version")
    cases: list[dict[str, Any]] = whole["cases"]
    return cases


def main() -> int:
    """Runs the cases."""
    folder, path, *names = sys.argv[1:]
    cases = [case for case in read_cases(Path(path)) if not names or case["name"] in names]
    differences = [text for case in cases if (text := difference(case, folder))]
    print(*differences, sep="\n", end="\n" if differences else "")
    failed = f", {len(differences)} failed" if differences else ""
    print(f"{len(cases) - len(differences)} cases passed{failed}")
    return int(bool(differences) or not cases)


if __name__ == "__main__":
    sys.exit(main())
