"""The order that reshard gives samples, and the mark that says which one an output has."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from errno import EEXIST
from functools import cached_property
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

from .. import Stream, UsageError, Writer
from .._integration import canonical_text, option_texts
from ._permutation import Permutation
from ._tasks import is_published, local_path, of_marker, options_for, size_of_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ._tasks import Task

_LOOKS_AT_ONCE = 8  # whether outputs are there
_MOST_OF_MARK = 1 << 20  # bytes


@dataclass(frozen=True)
class NewOrder:
    """Where each sample comes from, and where it goes."""

    shards: tuple[tuple[str, int], ...]
    """URLs of the inputs, and how many samples each has."""
    samples: int
    """Of an output shard; the last one may have fewer."""
    seed: int | None
    """Of the permutation; None: samples keep their order, or have that of their keys."""
    by_key: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """Without the tables, which every process makes for itself."""
        return {name: getattr(self, name) for name in ("shards", "samples", "seed", "by_key")}

    @cached_property
    def starts(self) -> list[int]:
        """The first sample of each input, and how many there are in all."""
        return [0, *accumulate(count for _, count in self.shards)]

    @property
    def count(self) -> int:
        """Samples in all."""
        return self.starts[-1]

    @property
    def outputs(self) -> int:
        """Shards that are made."""
        return -(-self.count // self.samples)

    @cached_property
    def _permutation(self) -> Permutation:
        assert self.seed is not None
        return Permutation(self.seed, self.count)

    def source(self, place: int) -> tuple[int, int]:
        """The input of the sample at a place of the new order, and its number in that."""
        number = place if self.seed is None else self._permutation(place)
        shard = bisect_right(self.starts, number) - 1
        return shard, number - self.starts[shard]

    def place(self, shard: int, number: int) -> int:
        """The place of a sample in the new order."""
        number += self.starts[shard]
        return number if self.seed is None else self._permutation.place(number)


# ---- Marks ---------------------------------------------------------------------------------------


# Options that change which samples come out, or as which shards.
_OF_SAMPLES = ("fields", "concat", "trailing", "duplicate_keys", "ais_etl")
_OF_OUTPUTS = ("format", "compression")


def description_of(
    order: NewOrder, rekey: str | None, reader: Mapping[str, Any], writer: Mapping[str, Any]
) -> dict[str, Any]:
    """What two runs that write the same shards have in common.

    Inputs are identified by their URLs, numbers of samples and, where known, sizes. Local files
    have absolute paths, so a run may be started in any folder.
    """
    lines = [f"{_whole(url)} {count} {size_of_file(url)}\n" for url, count in order.shards]
    taken = {
        **{name: _canonical(name, reader, "dataset") for name in _OF_SAMPLES},
        **{name: _canonical(name, writer, "writer") for name in _OF_OUTPUTS},
    }
    return {
        **taken,
        "shards": len(order.shards),
        "samples": order.count,
        "samples_per_shard": order.samples,
        "order": "key" if order.by_key else "input" if order.seed is None else "random",
        "seed": order.seed or 0,
        "rekey": rekey or "",
        "inputs": hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest(),
    }


def _whole(url: str) -> str:
    path = local_path(url)
    return url if path is None else os.path.abspath(path)


def _canonical(name: str, options: Mapping[str, Any], opener: str) -> str:
    given = {n: value for n, value in options.items() if n == name}
    return canonical_text(name, option_texts(given), opener)


def claim(
    tasks: Sequence[Task],
    description: Mapping[str, Any],
    reader: Mapping[str, Any],
    writer: Mapping[str, Any],
) -> str:
    """Marks the output as being of this order, or finds that it is already; gives its name.

    Another order is refused: some samples would be there twice, and others would be missing. Shards
    without a mark are refused too. Each mark has a name of its own, so the files of an earlier run
    are not taken for those of this one.
    """
    name = f"{tasks[0].output}.plan"
    found = _marked(name, reader)
    if found is None:
        outputs = [task.output or "" for task in tasks]
        with ThreadPoolExecutor(_LOOKS_AT_ONCE) as pool:
            there = list(pool.map(lambda output: is_published(output, reader), outputs))
        if any(there):
            # Another run may have just begun: it marks the output before its first shard.
            found = _marked(name, reader)
            if found is None:
                raise UsageError(
                    f"{outputs[there.index(True)]}: it is there already, and reshard did not make "
                    "it; help: give a new folder"
                )
    if found is None:
        run = uuid.uuid4().hex
        sample = {"__key__": "plan", "json": {**description, "run": run}}
        try:
            with Writer(lambda _: name, **of_marker(writer)) as mark:
                mark.write(sample)
            return run
        except OSError as error:
            if error.errno != EEXIST:  # another run was quicker
                raise
        found = _marked(name, reader) or {}
    for what, value in description.items():
        if found.get(what) != value:
            raise UsageError(
                f"{name}: another order is being written here, or was: {what} is "
                f"{found.get(what)!r} there, and {value!r} here; help: give a new folder, or the "
                "inputs and options of the run that began it"
            )
    return str(found["run"])


def _marked(name: str, reader: Mapping[str, Any]) -> dict[str, Any] | None:
    if not is_published(name, reader):
        return None
    options: Any = options_for("stream", plain(reader))
    options.update(expand=False, max_member=_MOST_OF_MARK)
    try:
        with Stream(name, **options) as stream:
            (sample,) = islice(stream, 2)
        found = json.loads(bytes(sample["json"]))
        # The run is a part of names in scratch.
        if isinstance(found, dict) and str(found.get("run", "")).isalnum():
            return found
        what = "it names no run"
    except (ValueError, EOFError, KeyError, RecursionError) as error:  # of the bytes, not the store
        what = str(error)
    raise UsageError(
        f"{name}: this is no mark of reshard: {what}; help: give a new folder, or remove the file"
    )


def plain(reader: Mapping[str, Any]) -> dict[str, Any]:
    """The options for reading what a run has written for itself, without those about inputs."""
    of_inputs = ("fields", "missing", "index", "index_dir")
    return {name: value for name, value in reader.items() if name not in of_inputs}
