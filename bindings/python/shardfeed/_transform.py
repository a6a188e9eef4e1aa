"""Functions of the user for samples and batches: what is called, with what, and what came of it."""

from __future__ import annotations

import random
import sys
import traceback
from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from ._column import KEYS, MIXED, URLS
from ._errors import TransformError
from ._stacking import SEED, Making, OddRowError, stacked

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._batch import Batch
    from ._stacking import Allocate
    from ._transform_options import Transform, Transforms

WHOLE = -1  # in place of the number of a row: the whole batch


# ---- What came of it ---------------------------------------------------------------------------


class Failure(NamedTuple):
    """A call that failed. It can be pickled, whatever was raised."""

    row: int  # or WHOLE
    what: str  # "raised ValueError: ...", ...
    help: str
    traceback: str  # where it was raised; "" where nothing was
    exception: BaseException | None  # None where it cannot be pickled


class Outcome(NamedTuple):
    """What came of a batch."""

    item: Any  # None: nothing is left of it
    dropped: int  # samples for which the transform gave None
    skipped: list[Failure]
    failure: Failure | None  # then the rest means nothing


class _RemoteTracebackError(Exception):
    """The cause of an exception that was raised elsewhere: its traceback, as text."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def error_of(failure: Failure, batch: Batch) -> TransformError:
    """The exception of a failed call, with the shard and the key."""
    keys, urls = batch.sample_keys, batch.urls
    row = max(failure.row, 0)
    key, url = keys[row], urls[row]
    where = f'the sample "{key}"'
    if failure.row == WHOLE:
        where = f'the batch of the samples "{key}" to "{keys[-1]}"'
    error = TransformError(
        f"{url}: the transform {failure.what}, with {where}; help: {failure.help}",
        url=url,
        key=key,
    )
    cause = failure.exception
    if failure.traceback:
        remote = _RemoteTracebackError(failure.traceback)
        if cause is None:
            cause = remote
        elif cause.__traceback__ is None:  # it came from another process
            cause.__cause__ = remote
    error.__cause__ = cause
    return error


def failure_of(row: int, exception: BaseException) -> Failure:
    text = "".join(traceback.format_exception(type(exception), exception, exception.__traceback__))
    name, words = type(exception).__qualname__, str(exception)
    return Failure(
        row,
        f"raised {name}{': ' * bool(words)}{words}",
        "see the traceback of the cause; on_error=skip_sample skips such samples"
        if row != WHOLE
        else "see the traceback of the cause",
        text,
        exception,
    )


# ---- One batch ---------------------------------------------------------------------------------


class Work:
    """One batch that is to be transformed.

    base: what the seeds of samples are made from. without: rows that are left out, and why.
    """

    def __init__(self, batch: Batch, base: bytes, skips: bool) -> None:
        self.batch = batch
        self.base = base
        self.skips = skips
        self.without: dict[int, Failure] = {}


class Place(NamedTuple):
    """Where transforms run, and what is different there."""

    progress: Callable[[int], object] = id  # is given the row whose turn it is
    allocate: Allocate = bytearray
    has_own_generators: bool = False  # of random numbers, which nobody else uses
    catches: type[BaseException] = BaseException


class Running:
    """The work on one batch."""

    def __init__(self, work: Work, transforms: Transforms, place: Place) -> None:
        self._work = work
        self._transforms = transforms
        self._place = place
        self._next = 0
        self._rows: list[Mapping[str, Any]] = []
        self._kept: list[int] = []
        self._dropped = 0
        self._skipped = list(work.without.values())
        self._given: dict[str, list[Any]] | None = None
        self._item: Batch | None = None  # what batch_transform gets

    def run(self) -> Outcome:
        """Calls the functions. It can be called again after an exception, which the place lets out:
        then it continues with the row that it came from.
        """
        try:
            return self._run()
        except self._place.catches as raised:  # what makes rows of the batch, as a hook
            return self._failed(failure_of(WHOLE, raised))

    def _failed(self, failure: Failure) -> Outcome:
        return Outcome(None, self._dropped, self._skipped, failure)

    def _run(self) -> Outcome:
        batch = self._work.batch
        if self._item is None:
            if self._transforms.transform is None:
                self._item = batch
            else:
                failure = self._transform_rows(self._transforms.transform) or self._stack()
                if failure is not None:
                    return self._failed(failure)
        item: Any = self._item
        function = self._transforms.batch_transform
        if item is not None and function is not None:
            self._place.progress(WHOLE)
            if self._place.has_own_generators:
                seed_generators(self._seed("", ""))
            item = function(item)
            if item is None:
                return Outcome(None, self._dropped + len(self._item or ()), self._skipped, None)
        return Outcome(item, self._dropped, self._skipped, None)

    def _transform_rows(self, function: Transform) -> Failure | None:
        batch = self._work.batch
        columns = {name: batch[name] for name in batch if name not in MIXED}
        if self._transforms.arrays == "torch":
            # Numbers stay those of NumPy, which augmentations do not take for images.
            tensors = batch.torch()
            columns.update((n, tensors[n]) for n in columns if batch.column(n).row_ndim)
        keys, urls = batch.sample_keys, batch.urls
        if self._given is None:
            self._given = {name: [None] * len(batch) for name in columns}
        while self._next < len(batch):
            number = self._next
            failure = None
            if number not in self._work.without:
                self._place.progress(number)
                seed = self._seed(urls[number], keys[number])
                try:
                    row = {name: values[number] for name, values in columns.items()}
                    for name, value in row.items():
                        self._given[name][number] = value
                    row.update({KEYS: keys[number], URLS: urls[number], SEED: seed})
                    if self._place.has_own_generators:
                        seed_generators(seed)
                    made = function(row)
                    if made is not None and not isinstance(made, Mapping):
                        raise TypeError(
                            f"{type(made).__qualname__} returned, and no dict of fields or None"
                        )
                    if made is None:
                        self._dropped += 1
                    else:
                        self._rows.append(made)
                        self._kept.append(number)
                except self._place.catches as raised:
                    failure = failure_of(number, raised)
            if failure is not None and not self._skip(failure):
                return failure
            self._next += 1
        return None

    def _skip(self, failure: Failure) -> bool:
        if self._work.skips:
            self._skipped.append(failure)
        return self._work.skips

    def _stack(self) -> Failure | None:
        assert self._given is not None
        while self._rows:
            given = {
                name: [values[at] for at in self._kept] for name, values in self._given.items()
            }
            try:
                self._item = stacked(
                    self._work.batch,
                    self._kept,
                    self._rows,
                    given,
                    Making(self._place.allocate, self._transforms.ragged),
                )
            except OddRowError as odd:
                why, _, help_ = odd.why.partition("; help: ")
                failure = Failure(
                    self._kept[odd.position], f"gave what cannot be stacked: {why}", help_, "", None
                )
                if not self._skip(failure):
                    return failure
                del self._rows[odd.position], self._kept[odd.position]
            else:
                return None
        return None

    def _seed(self, url: str, key: str) -> int:
        if not url:
            url, key = self._work.batch.urls[0], f"{self._work.batch.sample_keys[0]}\0batch"
        text = f"{url}\0{key}".encode("utf-8", "surrogateescape")
        return int.from_bytes(blake2b(text, key=self._work.base, digest_size=8).digest(), "little")


def seed_generators(seed: int) -> None:
    """Seeds the generators of this process that functions use when they are given none."""
    random.seed(seed)
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)
    if torch is not None:
        torch.default_generator.manual_seed(seed & 0x7FFFFFFFFFFFFFFF)
