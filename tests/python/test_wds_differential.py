"""The same pipelines with webdataset and with shardfeed.wds: the same samples in the same order.

SHARDFEED_PIPELINES=3000 makes it a campaign; SHARDFEED_FIRST=... begins it elsewhere.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")
pytest.importorskip("PIL")
original = pytest.importorskip("webdataset")

import shardfeed.wds as wds  # noqa: E402
import wds_column_grammar  # noqa: E402
import wds_grammar as grammar  # noqa: E402
from shardfeed.wds import _columns, _reading  # noqa: E402

COUNT = int(os.environ.get("SHARDFEED_PIPELINES", "400"))
FIRST = int(os.environ.get("SHARDFEED_FIRST", "0"))
PARTS = 8


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return grammar.corpora(Path(tmp_path_factory.mktemp("corpora")))


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return wds_column_grammar.corpora(Path(tmp_path_factory.mktemp("columns")))


@pytest.mark.parametrize("part", range(PARTS))
def test_random_pipelines(
    made: dict[str, list[str]], part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare(grammar.Spec, made, part, monkeypatch)


@pytest.mark.parametrize("part", range(PARTS))
def test_random_pipelines_on_columns(
    columns: dict[str, list[str]], part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    make = _columns._Parts.columns
    monkeypatch.setattr(_columns._Parts, "columns", lambda *a: found.append(make(*a)) or found[-1])
    compare(wds_column_grammar.ColumnSpec, columns, part, monkeypatch)
    assert sum(each is not None for each in found) > COUNT // PARTS // 4


def compare(
    spec_class: Any, made: dict[str, list[str]], part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = []
    for seed in range(FIRST + part, FIRST + COUNT, PARTS):
        # Small shards are read as members, unless the engine has to.
        monkeypatch.setattr(_reading, "small_shard", 0 if seed % 4 else 32 * 1024)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = grammar.run(original, spec_class(seed, made))
            found = grammar.run(wds, spec_class(seed, made))
        spec = spec_class(seed, made)
        different = grammar.difference(expected, found, has_batches_of_dicts(spec))
        if different is not None:
            failures.append(f"{spec}\n{different}")
    assert not failures, f"{len(failures)} of {COUNT // PARTS}:\n" + "\n\n".join(failures[:3])


def has_batches_of_dicts(spec: Any) -> bool:
    return any(name == "batched" for name, _, _ in spec.stages)
