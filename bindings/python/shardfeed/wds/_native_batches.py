"""Batches of the engine, made of the samples of a pipeline."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from .._batch import Batch, new_holder
from .._errors import UsageError, error_from
from .._native import ffi, lib
from .._options import native_options
from ._rows import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def _native_batched(
    data: Iterable[Any], batchsize: int, decode: str = "auto", partial: bool = True
) -> Iterator[Batch]:
    """shardfeed.Batch of so many samples; decode: which columns, as the option of streams."""
    rows = iter(data)
    texts = {"decode": decode}
    options = native_options(texts)
    while chunk := list(islice(rows, batchsize)):
        if len(chunk) < batchsize and not partial:
            return
        for row in chunk:
            if type(row) is not Row:
                raise UsageError(
                    "native batches are of samples that the engine has grouped, and this one was "
                    "read as members, or a stage before has made it; help: batched() without "
                    "native, or only shuffle() and slice() before it, and no select_files"
                )
        samples = ffi.new("shf_sample *[]", [row.native for row in chunk])
        holder, error = new_holder(), ffi.new("shf_error *")
        if lib.shf_batch_make(holder, samples, len(chunk), options, error):
            raise error_from(error)
        yield Batch.received(holder, texts)
