"""What pipelines of shardfeed.wds can do beside those of the original."""

from __future__ import annotations

import io
import itertools
import json
import pickle
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import shardfeed
import shardfeed.wds as wds
from conftest import numbered, write_tar
from shardfeed.wds import _reading


@pytest.fixture
def urls(tmp_path: Path) -> list[str]:
    return [str(write_tar(tmp_path / f"s{n}.tar", numbered(100 * n, 40))) for n in range(4)]


def test_explain_says_where_stages_run(urls: list[str]) -> None:
    pipeline = wds.WebDataset(urls, shardshuffle=False).shuffle(10).decode().map(len).batched(4)
    text = pipeline.explain()
    assert "read, group" in text
    assert "engine" in text
    assert "map(len" in text
    assert len(text.splitlines()) == 10


@pytest.mark.slow
def test_a_loader_explains_its_data_set_too(urls: list[str]) -> None:
    pytest.importorskip("torch")
    data = wds.WebDataset(urls, shardshuffle=False).select(is_any).batched(3)
    lines = wds.WebLoader(data, batch_size=None).unbatched().explain().splitlines()
    assert lines[0].startswith("DataLoader")
    assert [line.strip() for line in lines[1:-1]] == data.explain().splitlines()
    assert any("select(is_any)" in line for line in lines)


def is_any(sample: Any) -> bool:
    return bool(sample)


def pipeline_with_state(urls: list[str]) -> Any:
    data = wds.WebDataset(urls, shardshuffle=3, detshuffle=True, seed=5)
    return data.shuffle(20, seed=1).decode().to_tuple("__key__", "cls").batched(7)


def shown(items: Any) -> list[Any]:
    return [(list(keys), list(map(int, labels))) for keys, labels in items]


@pytest.mark.parametrize("taken", [0, 1, 5, 22])
def test_state_resumes_with_the_next_item(urls: list[str], taken: int) -> None:
    first = pipeline_with_state(urls)
    first.state_dict()
    list(first)  # an epoch
    iterator = iter(first)
    before = shown(itertools.islice(iterator, taken))
    state = json.loads(json.dumps(first.state_dict()))
    rest = shown(iterator)
    assert len(before) + len(rest) == 23
    second = pipeline_with_state(urls)
    second.load_state_dict(state)
    assert second.state_dict() == state
    assert shown(second) == rest
    assert shown(second) == shown(first)  # the epoch after it


@pytest.mark.parametrize("taken", [1, 12, 13, 27, 40])
def test_state_resumes_in_a_later_pass_and_decodes_nothing_again(
    urls: list[str], taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapped = []

    def number(value: bytes) -> int:
        mapped.append(value)
        return int(value)

    def made(partial: bool, size: int) -> Any:
        data = wds.WebDataset(urls, shardshuffle=3, detshuffle=True, seed=5).shuffle(20, seed=1)
        data = data.map_dict(cls=number).compose(wds.threads(2)).to_tuple("__key__", "cls")
        return data.batched(7).unbatched().batched(size, partial=partial).with_epoch(41)

    for partial, size in [(True, 7), (False, 7), (True, 13), (False, 13)]:
        expected = shown(made(partial, size))
        first = made(partial, size)
        first.state_dict()
        taken_items = shown(itertools.islice(iter(first), taken))
        assert taken_items == expected[:taken]
        second = made(partial, size)
        second.load_state_dict(first.state_dict())
        mapped.clear()
        assert shown(second) == expected[taken:]

    def without_unbatched() -> Any:
        data = wds.WebDataset(urls, shardshuffle=False).decode(only="txt").map_dict(cls=number)
        return data.to_tuple("__key__", "cls").batched(7).with_epoch(41)

    expected = shown(without_unbatched())
    second = without_unbatched()
    second.load_state_dict({**second.state_dict(), "items": taken})
    mapped.clear()
    assert shown(second) == expected[taken:]
    rest = sum(len(keys) for keys, _ in expected[taken:])
    assert rest <= len(mapped) <= rest + 7


def numbers_of(rank: int, worker: int, **kw: Any) -> Any:
    """An epoch of a worker of 2 ranks with 3 workers each."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"RANK": rank, "WORLD_SIZE": 2, "WORKER": worker}.items():
            patch.setenv(name, str(value))
        patch.setenv("NUM_WORKERS", "3")
        shards = [{"url": str(number)} for number in range(kw.pop("shards", 8))]
        data = wds.DataPipeline(lambda: shards, wds.split_by_node, wds.split_by_worker)
        return [item["url"] for item in data.with_epoch(**kw)]


def test_an_epoch_is_exact_over_ranks_and_workers() -> None:
    def counts(**kw: Any) -> list[list[int]]:
        return [[len(numbers_of(rank, worker, **kw)) for worker in range(3)] for rank in (0, 1)]

    assert counts(nsamples=22) == [[22] * 3] * 2
    assert counts(nsamples=22, total=True) == [[4, 4, 3]] * 2
    assert counts(nbatches=2, total=True) == [[1, 0, 0]] * 2
    assert numbers_of(1, 0, nsamples=22, total=True) == ["1", "7", "1", "7"]
    with pytest.raises(ValueError, match="22 or 24 items"):
        numbers_of(0, 0, nsamples=23, total=True)
    with pytest.raises(ValueError, match="0 of 3 items in rank 1, worker 2"):
        numbers_of(1, 2, nsamples=22, total=True, shards=5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANK", "1")
        patch.setenv("WORLD_SIZE", "2")
        data = wds.DataPipeline(lambda: [1, 2]).with_epoch(10, total=True)
        assert len(data) == len(list(data)) == 5
        first = wds.DataPipeline(lambda: [1, 2]).with_epoch(10, total=True)
        first.load_state_dict({**first.state_dict(), "items": 3})
        assert list(first) == [2, 1]
        assert list(data.with_epoch(10)) == [1, 2] * 5


def test_state_needs_seeds(urls: list[str]) -> None:
    data = wds.WebDataset(urls, shardshuffle=False)
    with pytest.raises(TypeError, match="seed=1"):
        data.shuffle(10).state_dict()
    with pytest.raises(TypeError, match="random"):
        data.rsample(0.5).state_dict()
    with pytest.raises(ValueError, match="stages"):
        data.load_state_dict(data.batched(3).state_dict())


def test_length_is_known_with_indexes(urls: list[str]) -> None:
    data = wds.WebDataset(urls, shardshuffle=False)
    with pytest.raises(TypeError, match="no len"):
        len(data)
    assert bool(data)
    shardfeed.Dataset(urls).close()
    assert len(data) == 160
    assert len(data.shuffle(10).decode().to_tuple("cls").batched(7)) == 23
    assert len(data.batched(7, partial=False).slice(2, 9)) == 7
    assert len(wds.WebDataset(urls, shardshuffle=False).with_epoch(12)) == 12
    with pytest.raises(TypeError, match="no len"):
        len(data.select(bool))


def test_with_length_can_be_pickled(urls: list[str]) -> None:
    data = wds.WebDataset(urls, shardshuffle=False).with_length(7, silent=True)
    again = pickle.loads(pickle.dumps(data))
    assert len(again) == 7
    assert len(list(again)) == 160


def test_pipelines_pickle(urls: list[str]) -> None:
    data = pipeline_with_state(urls)
    assert shown(pickle.loads(pickle.dumps(data))) == shown(data)


def test_native_batches(urls: list[str]) -> None:
    data = wds.WebDataset(urls, shardshuffle=False).shuffle(30, seed=2)
    batches = list(data.batched(64, native="cls"))
    assert [len(batch) for batch in batches] == [64, 64, 32]
    assert isinstance(batches[0], shardfeed.Batch)
    keys = [key for batch in batches for key in batch.sample_keys]
    assert keys == [sample["__key__"] for sample in data]
    with pytest.raises(shardfeed.UsageError, match="members"):
        list(data.map(dict).batched(3, native=True))


def test_threads_keep_the_order(urls: list[str]) -> None:
    used = set()

    def slow(sample: Any) -> Any:
        used.add(threading.get_ident())
        time.sleep(0.002 if sample["__key__"].endswith("1") else 0)
        if sample["__key__"].endswith("5"):
            raise ValueError("five")
        return None if sample["__key__"].endswith("7") else sample

    def keys(stages: list[Any]) -> list[str]:
        data = wds.WebDataset(urls, shardshuffle=False).compose(*stages)
        data = data.map(slow, handler=wds.ignore_and_continue).map_dict(cls=int)
        return [s["__key__"] for s in data]

    expected = keys([])
    used.clear()
    assert keys([wds.threads(3)]) == expected
    assert len(used) > 1
    with pytest.raises(ValueError, match="five"):
        list(wds.WebDataset(urls, shardshuffle=False).compose(wds.threads(2)).map(slow))


def test_progress_changes_nothing(urls: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    data = wds.WebDataset(urls, shardshuffle=False)
    assert len(list(data.progress(160))) == 160


def test_shards_are_asked_for_one_by_one_where_somebody_sees_it(urls: list[str]) -> None:
    asked = []

    def watch(source: Any) -> Any:
        for shard in source:
            asked.append(shard["url"])
            yield shard

    data = wds.WebDataset(urls, shardshuffle=False, nodesplitter=watch)
    next(iter(data))
    assert asked == urls[:1]


def test_jpeg_of_the_engine_is_that_of_pillow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = pytest.importorskip("PIL.Image")
    numpy = pytest.importorskip("numpy")
    rng = numpy.random.RandomState(0)
    members = []
    for number in range(60):
        mode = ["RGB", "L", "CMYK"][number % 3 if number % 10 == 0 else number % 2]
        bands = {"RGB": 3, "L": 1, "CMYK": 4}[mode]
        shape = (rng.randint(1, 70), rng.randint(1, 70), bands)
        pixels = (numpy.cumsum(rng.randint(-20, 21, shape), axis=1) % 256).astype("uint8")
        made = image.fromarray(pixels[..., 0] if bands == 1 else pixels, mode)
        stream = io.BytesIO()
        options = {} if bands == 1 else {"subsampling": int(rng.randint(0, 3))}
        quality = int(rng.randint(20, 100))
        made.save(stream, "JPEG", quality=quality, progressive=bool(number % 4 == 0), **options)
        members.append((f"{number:03d}.jpg", stream.getvalue()))
    path = str(write_tar(tmp_path / "jpg.tar", members))
    for spec in ("rgb8", "l8", "torchrgb", "rgb"):
        if "torch" in spec:
            pytest.importorskip("torch")
        data = wds.WebDataset(path, shardshuffle=False).decode(spec)
        assert "JPEG by threads" in data.explain()
        found = [numpy.asarray(s["jpg"]) for s in data]
        handler = wds.imagehandler(spec)
        expected = [numpy.asarray(handler(".jpg", data)) for _, data in members]
        assert all(map(numpy.array_equal, found, expected))


@pytest.mark.slow
def test_a_data_set_that_is_older_than_torch_is_one_of_torch() -> None:
    pytest.importorskip("torch")
    program = """
import copy, pickle, sys
import shardfeed.wds as wds
data = wds.DataPipeline(range(3).__iter__)
assert "torch" not in sys.modules
import torch
assert isinstance(data, torch.utils.data.IterableDataset) and isinstance(data, wds.DataPipeline)
for each in (data, copy.copy(data), data.with_length(4, silent=True), wds.FluidWrapper([5])):
    again = pickle.loads(pickle.dumps(each))
    assert type(again).__name__ == type(each).__name__
    assert isinstance(again, torch.utils.data.IterableDataset)
    pickle.loads(pickle.dumps(each, 0))
class Both(wds.DataPipeline, torch.utils.data.IterableDataset):
    pass
assert Both(range(3).__iter__).__class__ is Both
data = wds.DataPipeline(range(3).__iter__)
for workers in (0, 2):
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=workers)
    print(sorted(loader))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[0, 1, 2]\n[0, 0, 1, 1, 2, 2]\n", done.stderr


@pytest.mark.slow
def test_loader_workers_give_what_the_original_gives(urls: list[str]) -> None:
    torch = pytest.importorskip("torch")
    original = pytest.importorskip("webdataset")
    outcomes = []
    # The original is the same with both; processes that are spawned import PyTorch again.
    for package, context in ((original, "fork"), (wds, "fork"), (wds, "spawn")):
        data = package.WebDataset(urls, shardshuffle=2, seed=3).shuffle(9, seed=4).decode()
        data = data.to_tuple("__key__", "cls").batched(6)
        loader = package.WebLoader(
            data, batch_size=None, num_workers=2, multiprocessing_context=context
        )
        loader = loader.unbatched().shuffle(11, seed=5).batched(8).with_epoch(15)
        outcomes.append([(list(k), torch.as_tensor(c).tolist()) for k, c in loader])
    assert len(outcomes[0]) == 15
    assert outcomes[0] == outcomes[1] == outcomes[2]


class Point(NamedTuple):
    x: Any
    y: Any


@pytest.mark.slow
def test_a_loader_converts_as_that_of_torch() -> None:
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    items = [
        {"a": ["x", b"y", 1, 2.5, None, True], "b": (1, "z"), "c": {"d": numpy.arange(3)}},
        (numpy.float32(3), [numpy.ones(2), "x"], ["x", ["y", numpy.int64(4)]], Point(1, "a")),
        [bytearray(b"ab"), range(3), torch.ones(2), numpy.array(["s"]), numpy.array(3), 1j],
        OrderedDict(x=(), y=[], z={}),
    ]
    found = list(wds.WebLoader(items, batch_size=None))
    expected = list(torch.utils.data.DataLoader(items, batch_size=None))
    assert repr(found) == repr(expected)
    own = wds.WebLoader(items, batch_size=None, collate_fn=repr)
    assert list(own) == list(map(repr, items))
    assert len(list(wds.WebLoader([1, 2, 3], batch_size=2))) == 2


def test_small_shards_are_read_as_members(urls: list[str]) -> None:
    assert _reading.small_shard > 0
