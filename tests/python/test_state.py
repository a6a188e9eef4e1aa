"""A stream that is saved resumes with exactly the next sample, also in another process."""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
import shardfeed
from conftest import write_tar

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS: list[dict[str, Any]] = [
    {},
    {"lanes": 4},
    {"shuffle": 20, "shuffle_shards": True, "seed": 3, "lanes": 2},
    {"shuffle": 500, "seed": 3, "lanes": 4},
    {"shuffle": 10, "epochs": 3, "shuffle_shards": True},
    {"epoch_samples": 70, "shuffle": 10, "lanes": 2},
    {"resample": True, "shuffle": 10},
    {"slice": "1::3", "shuffle": 10},
]


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("state")
    paths = []
    for shard in range(6):
        path = folder / f"{shard}.tar"
        write_tar(
            path, [(f"{shard}-{i:03}.txt", f"{shard}-{i}".encode()) for i in range(20 + 7 * shard)]
        )
        paths.append(str(path))
    return paths


def stored(state: dict[str, object]) -> dict[str, object]:
    """What a program reads back that wrote the state to a file."""
    text = json.dumps(state)
    assert len(text) < 4096
    loaded: dict[str, object] = json.loads(text)
    return loaded


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_resumes_with_the_next_sample_wherever_it_stopped(
    urls: list[str], options: dict[str, Any]
) -> None:
    whole = [sample.key for sample in shardfeed.Stream(urls, **options)]
    for stop in random.Random(1).sample(range(len(whole) + 1), 12):
        stream = shardfeed.Stream(urls, **options)
        iterator = iter(stream)
        keys = [next(iterator).key for _ in range(stop)]
        state = stored(stream.state_dict())
        other = shardfeed.Stream(urls, **options)
        other.load_state_dict(state)
        assert stored(other.state_dict()) == state
        assert keys + [sample.key for sample in other] == whole
        # The one that was saved continues as well.
        assert keys + [sample.key for sample in iterator] == whole


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_resumes_with_the_next_batch(urls: list[str], options: dict[str, Any]) -> None:
    def batches(stream: shardfeed.Stream) -> shardfeed.BatchIterator:
        return stream.batches(9, decode="txt:bytes")

    whole = [batch.sample_keys for batch in batches(shardfeed.Stream(urls, **options))]
    for stop in range(len(whole) + 1):
        stream = shardfeed.Stream(urls, **options)
        iterator = batches(stream)
        keys = [next(iterator).sample_keys for _ in range(stop)]
        other = shardfeed.Stream(urls, **options)
        other.load_state_dict(stored(stream.state_dict()))
        rest = [batch.sample_keys for batch in batches(other)]
        if stop < len(whole):
            assert keys + rest == whole


def test_the_next_epoch_follows_the_one_that_was_resumed(urls: list[str]) -> None:
    options: dict[str, Any] = {"shuffle": 20, "shuffle_shards": True, "seed": 3}
    stream = shardfeed.Stream(urls, **options)
    epochs = [[sample.key for sample in stream] for _ in range(3)]
    assert epochs[0] != epochs[1]
    other = shardfeed.Stream(urls, **options)
    for _ in other:
        pass
    # Between two epochs.
    third = shardfeed.Stream(urls, **options)
    third.load_state_dict(stored(other.state_dict()))
    assert [sample.key for sample in third] == epochs[1]
    # In the middle of the second.
    iterator = iter(other)
    keys = [next(iterator).key for _ in range(50)]
    third = shardfeed.Stream(urls, **options)
    third.load_state_dict(stored(other.state_dict()))
    assert keys + [sample.key for sample in third] == epochs[1]
    assert [sample.key for sample in third] == epochs[2]


def test_an_epoch_of_so_many_samples_continues_after_the_last(urls: list[str]) -> None:
    options: dict[str, Any] = {"epoch_samples": 70, "shuffle": 10}
    stream = shardfeed.Stream(urls, **options)
    epochs = [[sample.key for sample in stream] for _ in range(4)]
    for stop in (0, 30, 70, 71, 100, 140):
        first = shardfeed.Stream(urls, **options)
        keys: list[str] = []
        while len(keys) < stop:
            for sample in first:
                keys.append(sample.key)
                if len(keys) == stop:
                    break
        other = shardfeed.Stream(urls, **options)
        other.load_state_dict(stored(first.state_dict()))
        while len(keys) < 210:
            keys += [sample.key for sample in other]
        assert keys == epochs[0] + epochs[1] + epochs[2]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_number_of_the_epoch(urls: list[str], options: dict[str, Any]) -> None:
    step = options.get("epochs", 1)
    stream = shardfeed.Stream(urls, **options, epoch=2)
    assert stream.epoch == stream.state_dict()["epoch"] == 2
    keys: list[list[str]] = []
    while stream.epoch < 2 + 2 * step:
        keys.append([])
        for sample in stream:
            assert stream.epoch == 2 + step * (len(keys) - 1)
            keys[-1].append(sample.key)
            if len(keys[-1]) == 7:
                state = json.loads(json.dumps(stream.state_dict()))
                assert state["epoch"] == stream.epoch
    assert len(keys) == 2
    resumed = shardfeed.Stream(urls, **options, epoch=2)
    resumed.load_state_dict(state)
    assert resumed.epoch == resumed.state_dict()["epoch"] == 2 + step
    assert [sample.key for sample in resumed] == keys[1][7:]
    assert resumed.epoch == 2 + 2 * step
    # States of versions without "opened".
    if "epoch_samples" not in options:
        del state["opened"]
        resumed.load_state_dict(state)
        assert [sample.key for sample in resumed] == keys[1][7:]


def test_a_stream_that_waits_to_go_on_can_be_pickled(urls: list[str]) -> None:
    stream = shardfeed.Stream(urls, shuffle=20)
    iterator = iter(stream)
    keys = [next(iterator).key for _ in range(33)]
    other = shardfeed.Stream(urls, shuffle=20)
    other.load_state_dict(stream.state_dict())
    copy = pickle.loads(pickle.dumps(other))
    assert keys + [sample.key for sample in copy] == [
        sample.key for sample in shardfeed.Stream(urls, shuffle=20)
    ]


def test_says_what_changed(urls: list[str]) -> None:
    stream = shardfeed.Stream(urls, shuffle=20, seed=1)
    next(iter(stream))
    state = stream.state_dict()
    for options, word in (({"shuffle": 21, "seed": 1}, "shuffle"), ({"shuffle": 20}, "seed")):
        other = shardfeed.Stream(urls, **options)
        other.load_state_dict(state)
        with pytest.raises(shardfeed.UsageError, match=word):
            next(iter(other))
    other = shardfeed.Stream(urls[:-1], shuffle=20, seed=1)
    other.load_state_dict(state)
    with pytest.raises(shardfeed.UsageError, match="6 shards, and these are 5"):
        next(iter(other))


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"shardfeed": 1},
        {"shardfeed": 1, "epoch": 0, "state": "?", "left": -1, "merged": False, "of": "samples"},
        {"shardfeed": 1, "epoch": "0", "state": "", "left": -1, "merged": False, "of": "x"},
    ],
)
def test_refuses_what_is_no_state(urls: list[str], state: dict[str, object]) -> None:
    stream = shardfeed.Stream(urls)
    with pytest.raises(shardfeed.FormatError):
        stream.load_state_dict(state)
    assert len(list(stream)) == sum(20 + 7 * shard for shard in range(6))


def test_refuses_a_later_format(urls: list[str]) -> None:
    state = {**shardfeed.Stream(urls).state_dict(), "shardfeed": 2}
    with pytest.raises(shardfeed.UsageError, match="version 2"):
        shardfeed.Stream(urls).load_state_dict(state)


@pytest.mark.parametrize("before", [1, 2, 3, 6])
@pytest.mark.parametrize("after", [1, 2, 3, 6])
@pytest.mark.parametrize("epoch_samples", [0, 120])
def test_another_number_of_ranks_resumes(
    urls: list[str], before: int, after: int, epoch_samples: int
) -> None:
    options: dict[str, Any] = {"lanes": 6, "shuffle": 15, "seed": 2}
    options["epoch_samples"] = epoch_samples
    whole = [sample.key for sample in shardfeed.Stream(urls, **options)]

    def weave(parts: list[list[str]]) -> list[str]:
        return [part[i] for i in range(max(map(len, parts))) for part in parts if i < len(part)]

    streams = [shardfeed.Stream(urls, rank=r, world_size=before, **options) for r in range(before)]
    iterators = [iter(stream) for stream in streams]
    first = weave([[next(it).key for _ in range(60 // before)] for it in iterators])
    merged = stored(shardfeed.merge_states([stream.state_dict() for stream in streams]))
    rest = []
    for rank in range(after):
        stream = shardfeed.Stream(urls, rank=rank, world_size=after, **options)
        stream.load_state_dict(merged)
        rest.append([sample.key for sample in stream])
    if epoch_samples:
        assert first + weave(rest) == whole
    else:
        # Lanes of unequal length end the alignment of the last rounds.
        assert sorted(first + weave(rest)) == sorted(whole)
        assert (first + weave(rest))[:100] == whole[:100]


RUN = """
import json, os, sys, time
import shardfeed
urls, path, most = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
stream = shardfeed.Stream(urls, shuffle=200, shuffle_shards=True, seed=9, lanes=3)
if os.path.exists(path):
    with open(path) as file:
        saved = json.load(file)
    stream.load_state_dict(saved["state"])
    keys = saved["keys"]
else:
    keys = []
def save():
    with open(path + ".new", "w") as file:
        json.dump({"state": stream.state_dict(), "keys": keys}, file)
    os.replace(path + ".new", path)
for number, sample in enumerate(stream):
    keys.append(sample.key)
    if number % 7 == 0:
        save()
    if number == most:
        time.sleep(60)
save()
"""


@pytest.mark.slow
def test_killed_a_hundred_times_it_delivers_the_epoch(tmp_path: Path) -> None:
    urls = []
    for shard in range(9):
        urls.append(str(tmp_path / f"{shard}.tar"))
        write_tar(
            tmp_path / f"{shard}.tar", [(f"{shard}-{i:04}.txt", b"x") for i in range(300 + shard)]
        )
    whole = [
        sample.key
        for sample in shardfeed.Stream(urls, shuffle=200, shuffle_shards=True, seed=9, lanes=3)
    ]
    path, dice = str(tmp_path / "state.json"), random.Random(4)
    command = [sys.executable, "-c", RUN, json.dumps(urls), path]
    for _ in range(100):
        # It waits after 25 samples, so that the epoch is long enough for all.
        process = subprocess.Popen([*command, "25"])
        before = os.stat(path).st_mtime_ns if os.path.exists(path) else 0
        deadline = time.monotonic() + 60
        # Killed some time after its first save, so that every run comes a little further.
        while not os.path.exists(path) or os.stat(path).st_mtime_ns == before:
            assert process.poll() is None
            assert time.monotonic() < deadline
        time.sleep(dice.random() * 0.003)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    with open(path) as file:
        assert 100 <= len(json.load(file)["keys"]) < len(whole)
    subprocess.run([*command, "-1"], check=True)
    with open(path) as file:
        assert json.load(file)["keys"] == whole


def test_a_state_without_lanes_is_said_once_to_fit_its_number_of_ranks(urls: list[str]) -> None:
    program = """
import json, sys
import shardfeed
urls, said = json.loads(sys.argv[1]), []
def save(rank, **options):
    stream = shardfeed.Stream(urls, log=lambda _, text: said.append(text), rank=rank, **options)
    stream.state_dict()  # between two epochs: good for any number
    next(iter(stream))
    stream.state_dict()
save(0, world_size=1)
save(0, world_size=2, lanes=4)
save(1, world_size=2)
assert said == []
for again in range(2):
    save(0, world_size=2)
(text,) = said
assert text.startswith("this state is good for 2 ranks, and for no other number"), text
assert "help: give lanes" in text
"""
    subprocess.run([sys.executable, "-c", program, json.dumps(urls)], check=True, timeout=100)
