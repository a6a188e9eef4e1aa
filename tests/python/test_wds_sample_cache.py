"""DBCache and LMDBCached: the same samples in the same order from the second epoch on."""

from __future__ import annotations

import itertools
import pickle
import sqlite3

import numpy as np
import pytest
from shardfeed.wds import utils
from shardfeed.wds.cache import DBCache, LMDBCached


def samples(count: int, first: int = 0) -> list[dict]:
    return [
        {"__key__": f"k{number % 7}", "jpg": bytes([number % 256]), "txt": "ü", "n": number}
        for number in range(first, first + count)
    ]


class Counted:
    """A source that counts what was taken of it."""

    def __init__(self, items):
        self.items = items
        self.taken = 0

    def __iter__(self):
        for item in self.items:
            self.taken += 1
            yield item


def test_a_source_is_read_once(tmp_path, capsys):
    source = Counted(samples(250))
    stage = DBCache(str(tmp_path / "c.db"), 1000, source)
    assert list(stage) == source.items  # equal keys are samples of their own
    assert source.taken == 250
    assert list(stage) == source.items
    assert list(DBCache(str(tmp_path / "c.db"), 1000).run([])) == source.items
    assert source.taken == 250
    shuffled = list(DBCache(str(tmp_path / "c.db"), 1000, source, shuffle=True))
    assert shuffled != source.items
    assert sorted(shuffled, key=lambda s: s["n"]) == source.items
    assert "[DBCache finished caching" in capsys.readouterr().err


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 249, 250, 251])
def test_all_samples_come_whatever_the_size(tmp_path, size):
    for _ in range(3):
        source = Counted(samples(250))
        assert list(DBCache(str(tmp_path / "c.db"), size, source, verbose=False)) == source.items
    assert source.taken == (0 if size >= 250 else 250)


def test_values_of_any_kind_and_no_dict(tmp_path):
    items = [(1, b"x"), 5, {"a": np.arange(3).tolist(), "b": None, "c": b""}, {}]
    stage = DBCache(str(tmp_path / "c.db"), 10, items, verbose=False)
    assert list(stage) == list(stage) == items
    assert list(DBCache(None, 10, items)) == items
    with pytest.raises(ValueError, match="no source; help:"):
        list(DBCache(str(tmp_path / "d.db"), 10))
    assert list(stage(items)) == items


def test_what_was_interrupted_begins_again(tmp_path):
    path = str(tmp_path / "c.db")
    half = DBCache(path, 1000, samples(300), verbose=False)
    assert len(list(itertools.islice(half, 150))) == 150
    other = samples(200, first=1000)
    assert list(DBCache(path, 1000, other, verbose=False)) == other
    assert list(DBCache(path, 1000, [], verbose=False)) == other
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM samples").fetchone() == (200,)


def test_one_fills_and_others_pass_through(tmp_path):
    path = str(tmp_path / "c.db")
    first = iter(DBCache(path, 1000, samples(10), verbose=False))
    assert next(first)["n"] == 0
    assert list(DBCache(path, 1000, samples(5, 100), verbose=False)) == samples(5, 100)
    assert len(list(first)) == 9
    assert list(DBCache(path, 1000, [], verbose=False)) == samples(10)


def test_pickles_are_not_loaded_when_secure(tmp_path, monkeypatch):
    path = str(tmp_path / "c.db")
    plain = [{"__key__": "a", "x": b"1", "t": "s"}]
    assert list(DBCache(path, 9, plain, verbose=False)) == plain
    other = str(tmp_path / "d.db")
    assert list(DBCache(other, 9, samples(2), verbose=False)) == samples(2)
    monkeypatch.setattr(utils, "enforce_security", True)
    assert list(DBCache(path, 9, [], verbose=False)) == plain
    with pytest.raises(ValueError, match=r"Unpickling is not allowed.*help:"):
        list(DBCache(other, 9, [], verbose=False))


def test_lmdb(tmp_path, monkeypatch):
    pytest.importorskip("lmdb")
    source = Counted(samples(1203))
    stage = LMDBCached(str(tmp_path / "lmdb"), map_size=1e8, chunksize=100)
    assert not stage.is_complete()
    assert list(stage.run(source)) == source.items
    assert stage.is_complete()
    assert list(stage.run(source)) == source.items  # same order, and nothing collapsed
    assert source.taken == 1203
    half = LMDBCached(str(tmp_path / "half"), map_size=1e8, chunksize=10)
    assert len(list(itertools.islice(half.run(samples(100)), 50))) == 50
    assert list(half.run(samples(20, 500))) == samples(20, 500)
    copy = pickle.loads(pickle.dumps(half))
    half.db.close()  # a process has a database open once
    assert list(copy.run([])) == samples(20, 500)
    monkeypatch.setattr(utils, "enforce_security", True)
    with pytest.raises(ValueError, match="Unpickling is not allowed"):
        list(stage.run([]))


def test_lmdb_files_of_webdataset_and_back(tmp_path):
    pytest.importorskip("lmdb")
    webdataset = pytest.importorskip("webdataset")
    unique = [{"__key__": f"{n:03}", "n": n} for n in range(30)]
    its = webdataset.LMDBCached(str(tmp_path / "t"), map_size=1e8)
    assert list(its.run(unique)) == unique
    its.db.close()
    assert list(LMDBCached(str(tmp_path / "t"), map_size=1e8).run([])) == unique
    mine = LMDBCached(str(tmp_path / "o"), map_size=1e8)
    assert list(mine.run(unique)) == unique
    mine.db.close()
    assert list(webdataset.LMDBCached(str(tmp_path / "o"), map_size=1e8).run([])) == unique
