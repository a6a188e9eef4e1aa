from __future__ import annotations

import copy
import pickle

import pytest
import shardfeed


def log(level: int, message: str) -> None:
    pass


def keys(stream) -> list[str]:
    return [sample.key for sample in stream]


@pytest.mark.parametrize("duplicate", [copy.copy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_copy_is_opened_again(shards, duplicate):
    url = shards(2, 50)
    stream = shardfeed.Stream(url, shuffle=20, seed=4, timeout="20s", log=log)
    epochs = [keys(shardfeed.Stream(url, shuffle=20, seed=4, epoch=epoch)) for epoch in range(3)]
    unused = duplicate(stream)
    assert keys(stream) == epochs[0]
    later = duplicate(stream)
    assert keys(unused) == epochs[0]
    assert keys(later) == epochs[1]
    assert keys(later) == epochs[2]
    assert keys(stream) == epochs[1]
    assert repr(later) == repr(stream)
    assert (later.urls, later.options) == (stream.urls, stream.options)


def test_pickling_in_the_middle_of_an_epoch_leaves_it_alone(shards):
    stream = shardfeed.Stream(shards(2, 500))
    iterator = iter(stream)
    next(iterator)
    pickle.dumps(stream)
    assert len(list(iterator)) == 999


def test_pickled_stream_opens_nothing_until_it_is_used(shards, tmp_path):
    listed = tmp_path / "list"
    listed.write_text(shards(1, 5))
    stream = shardfeed.Stream(f"@{listed}")
    data = pickle.dumps(stream)
    listed.unlink()
    loaded = pickle.loads(data)
    assert loaded.stats()["samples"] == 0
    loaded.cancel()
    with pytest.raises(FileNotFoundError):
        iter(loaded)
    loaded.close()


def test_iterators_are_not_pickled(shards):
    with pytest.raises(TypeError):
        pickle.dumps(iter(shardfeed.Stream(shards(1, 1))))
