"""Variables of the environment, with both packages: each program runs once for each of them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from conftest import numbered, write_tar

pytest.importorskip("webdataset")

NAMES = [
    *("WDS_SEED", "WDS_CACHE", "WDS_CACHE_SIZE", "WDS_VERBOSE_CACHE", "WDS_SECURE", "WDS_X"),
    *("WDS_PYTORCH_WEIGHTS_ONLY", "WDS_SHOW_SEED", "GOPEN_VERBOSE", "GOPEN_BUFFER"),
    *("GOPEN_REWRITE", "USE_AIS_FOR", "RANK", "WORLD_SIZE", "WORKER", "NUM_WORKERS"),
    "ALLOW_OBSOLETE",
]

# Says of each case what it gives or raises. Cases are (variables, expression of the package `w`).
PROGRAM = """
import importlib, json, os, pickle, sys, warnings
warnings.simplefilter("ignore")
w = importlib.import_module(sys.argv[1])
for name in ("cache", "gopen", "autodecode", "shardlists", "utils", "filters"):
    importlib.import_module(sys.argv[1] + "." + name)
data, cases = json.loads(sys.argv[2])
module = lambda name: sys.modules[w.__name__ + "." + name]
shards = [f"{i}.tar" for i in range(9)]
keys = lambda pipeline: [s["__key__"] if "__key__" in s else s["url"] for s in pipeline]
urls = lambda kw: [s["url"] for s in shard_list(w.WebDataset(shards, **kw))]
def shard_list(dataset):
    return w.DataPipeline(*dataset.pipeline[:4])
decoded = lambda name, value: w.Decoder([])({"__key__": "k", name: value})[name]
for variables, expression in cases:
    os.environ.update(variables)
    try:
        result = eval(expression)
    except BaseException as error:
        texts = [str(error), str(error.__cause__ or "")]
        result = [type(error).__name__, any("security" in t or "unsafe" in t for t in texts)]
    for name in variables:
        del os.environ[name]
    print(json.dumps(result, default=repr))
"""


def outcomes(data: Path, cases: list[Any], **start: str) -> list[list[str]]:
    """What both packages say, started with these variables."""
    import json

    environment = {name: value for name, value in os.environ.items() if name not in NAMES}
    found = []
    for package in ("webdataset", "shardfeed.wds"):
        command = [sys.executable, "-c", PROGRAM, package, json.dumps([str(data), cases])]
        done = subprocess.run(
            command, env={**environment, **start}, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.splitlines())
    return found


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_tar(tmp_path / "a.tar", numbered(0, 5))


def test_variables_that_are_read_when_they_are_used(data: Path) -> None:
    folder = data.parent
    ranks = {"RANK": "1", "WORLD_SIZE": "3"}
    cases = [
        ({}, "urls(dict(shardshuffle=5, seed=4))"),
        ({"WDS_SEED": "7"}, "urls(dict(shardshuffle=5))"),
        ({"WDS_SEED": "7"}, "w.WebDataset(shards, shardshuffle=5).seed"),
        ({"WDS_SEED": "7"}, "urls(dict(shardshuffle=5, detshuffle=True))"),
        ({"WDS_CACHE": str(folder)}, "keys(w.WebDataset(data, shardshuffle=False))"),
        ({"WDS_CACHE": str(folder)}, "sorted(os.listdir(os.environ['WDS_CACHE']))"),
        ({"WDS_CACHE": "/missing"}, "w.WebDataset(data, shardshuffle=False)"),
        ({"WDS_CACHE_SIZE": "1000"}, "keys(w.WebDataset(data, shardshuffle=False))"),
        ({"WDS_CACHE_SIZE": "1e9"}, "w.WebDataset(data, shardshuffle=False)"),
        ({"WDS_X": "b{0..2}"}, "w.shardlists.expand_urls('${X}.tar::c')"),
        ({}, "w.shardlists.expand_urls('${X}.tar')"),
        ({"GOPEN_BUFFER": "0"}, "type(w.gopen(data)).__name__"),
        ({"GOPEN_BUFFER": "99"}, "type(w.gopen(data)).__name__"),
        ({"GOPEN_REWRITE": "x:=" + str(folder)}, "len(w.gopen('x:/a.tar').read())"),
        (ranks, "w.utils.pytorch_worker_info()"),
        ({"RANK": "1"}, "w.utils.pytorch_worker_info()"),
        ({"WORKER": "1", "NUM_WORKERS": "2"}, "w.utils.pytorch_worker_info()"),
        ({**ranks, "WORKER": "1", "NUM_WORKERS": "2"}, "w.utils.pytorch_worker_seed()"),
        (ranks, "urls(dict(shardshuffle=False, nodesplitter=w.split_by_node))"),
        (ranks, "keys(w.WebDataset(data, shardshuffle=False))"),
        ({"WORKER": "1", "NUM_WORKERS": "2"}, "urls(dict(shardshuffle=False))"),
        ({"WORKER": "1", "NUM_WORKERS": "2"}, "keys(w.WebDataset(data, shardshuffle=False))"),
        ({}, "w.pipe_cleaner('pipe:curl http://h/a.tar')"),
        ({"ALLOW_OBSOLETE": "1"}, "w.pipe_cleaner('pipe:curl http://h/a.tar')"),
        ({}, "w.MultiShardSample(dict(datasets=[dict(shards='a{0..3}')]))"),
        (
            {"ALLOW_OBSOLETE": "1"},
            "sorted(keys(w.MultiShardSample(dict(datasets=[dict(shards='a{0..3}')]))))",
        ),
        ({"GOPEN_VERBOSE": "1"}, "len(w.gopen(data).read())"),
        ({"WDS_SHOW_SEED": "1"}, "len(list(w.ResampledShards(shards, 3, deterministic=True)))"),
        ({"WDS_SECURE": "1"}, "len(w.gopen(data).read())"),  # it was read before
        ({}, "decoded('pyd', pickle.dumps(3))"),
    ]
    theirs, ours = outcomes(data, cases)
    assert len(theirs) == len(cases) + 1  # and the line of WDS_SHOW_SEED
    for case, expected, found in zip([*cases[:28], "", *cases[28:]], theirs, ours):
        assert found == expected, case


def test_variables_that_are_read_at_the_import(data: Path) -> None:
    cases: list[Any] = [
        ({}, "w.utils.enforce_security"),
        ({}, "w.gopen(data)"),
        ({}, "w.gopen('pipe:cat ' + data)"),
        ({}, "w.gopen('file:' + data)"),
        ({"GOPEN_REWRITE": "a=b"}, "w.gopen('a')"),
        ({}, "keys(w.DataPipeline(w.SimpleShardList(data), w.tarfile_to_samples()))"),
        ({}, "keys(w.WebDataset('pipe:cat ' + data, shardshuffle=False))"),
        ({}, "keys(w.WebDataset(data, shardshuffle=False))"),
        ({}, "decoded('pyd', pickle.dumps(3))"),
        ({}, "decoded('pkl', pickle.dumps(3))"),
        ({}, "decoded('pickle', pickle.dumps(3))"),
        *([({}, "decoded('pth', b'')")] if find_spec("torch") else []),
        ({}, "decoded('cls', b'3')"),
        ({}, "module('autodecode').pytorch_weights_only"),
        ({}, "module('cache').verbose_cache"),
        ({}, "'s9' in w.gopen_schemes"),
    ]
    secure = {"WDS_SECURE": "1", "USE_AIS_FOR": "s9", "WDS_VERBOSE_CACHE": "2"}
    theirs, ours = outcomes(data, cases, WDS_PYTORCH_WEIGHTS_ONLY="1", **secure)
    for case, expected, found in zip(cases, theirs, ours):
        assert found == expected, case
    assert theirs[:3] == ["true", '["ValueError", true]', '["ValueError", true]']
