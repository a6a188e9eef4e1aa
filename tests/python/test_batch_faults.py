"""A stream that a bad sample ended resumes with all that it kept from the user."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shardfeed
from batches import npy, rows_tar


def rows_of(batch: shardfeed.Batch) -> Any:
    column = batch["npy"]
    rows = column if isinstance(column, shardfeed.Ragged) else list(column)
    return batch.sample_keys, [row.tolist() for row in rows]


@pytest.mark.parametrize("bad", [0, 3, 11, 26])
@pytest.mark.parametrize("order", [{}, {"shuffle": 5}, {"lanes": 2, "shuffle": 3}])
@pytest.mark.parametrize(
    "options",
    [
        {"batch": 4, "ragged": "offsets"},
        {"batch": 9, "batch_elements": 40, "ragged": "pad"},
        {"batch": 3, "bucket": "5,10,20"},
        {"batch": 2, "pack": 8},
        {"batch": 2, "pack": 8, "pack_window": 6},
    ],
)
def test_resume_after_a_fault(tmp_path, options, order, bad):
    rows = [{"npy": npy(np.arange(n * 100, n * 100 + n * 7 % 20, dtype="i4"))} for n in range(30)]
    rows[bad]["npy"] = b"?"
    urls = [rows_tar(tmp_path / f"{n}.tar", rows[n::2]) for n in (0, 1)]
    given: dict[str, Any] = {"decode": "npy", **options, **order}
    skipping = shardfeed.Stream(urls, on_error="skip_sample", log=None, **given)
    whole = [rows_of(batch) for batch in skipping.batches()]
    for threads in (1, 3):
        stream = shardfeed.Stream(urls, decode_threads=threads, **given)
        iterator, found = stream.batches(), []
        fault = None
        while fault is None:
            try:
                found.append(rows_of(next(iterator)))
            except shardfeed.FormatError as error:
                fault = error
        assert "npy array" in str(fault)
        resumed = shardfeed.Stream(urls, on_error="skip_sample", log=None, **given)
        resumed.load_state_dict(stream.state_dict())
        found += [rows_of(batch) for batch in resumed.batches()]
        assert found == whole
