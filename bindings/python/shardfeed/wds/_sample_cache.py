"""Stages that keep the samples of a pipeline in a database: DBCache (SQLite), LMDBCached (LMDB)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import sqlite3
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import utils
from .utils import PipelineStage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_COMMIT_EVERY = 100


@contextlib.contextmanager
def _filling(path: str) -> Iterator[bool]:
    """Whether this one may fill the cache: one at a time does, others take the source as it is."""
    with open(f"{path}.filling", "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _loads(data: bytes, loads: Any, path: str) -> Any:
    if utils.enforce_security:
        raise ValueError(
            f"{path}: Unpickling is not allowed for security reasons when enforce_security is set; "
            "help: unset WDS_SECURE if the file is to be trusted"
        )
    return loads(data)


def _packed(value: Any) -> tuple[str, bytes]:
    if isinstance(value, bytes):
        return "bytes", value
    if isinstance(value, str):
        return "str", value.encode("utf-8", "surrogateescape")
    return "pickle", pickle.dumps(value)


class DBCache(PipelineStage):
    """Keeps the first `size` samples of a source in the SQLite file `dbname`, and serves them from
    there in later epochs and processes, in the same order, or with `shuffle` in a random one.

    All samples of the source are delivered: those behind the first `size` come from the source each
    time. One process fills a file; others meanwhile take the source alone. Without `dbname`
    nothing is kept. The file knows nothing of the source: with another one take another file.
    """

    def __init__(
        self,
        dbname: str | None,
        size: int,
        source: Iterable[Any] | None = None,
        shuffle: bool = False,
        verbose: bool = True,
    ) -> None:
        self.dbname = dbname
        self.size = size
        self.source = source
        self.shuffle = shuffle
        self.verbose = verbose

    def invoke(self, *args: Any, **kw: Any) -> Any:
        """The samples of a source, through the cache."""
        return self.run(*args, **kw)

    def __call__(self, source: Iterable[Any]) -> Iterator[Any]:
        return self.run(source)

    def __iter__(self) -> Iterator[Any]:
        if self.source is None:
            raise ValueError("the DBCache has no source; help: DBCache(dbname, size, source)")
        return self.run(self.source)

    def run(self, source: Iterable[Any]) -> Iterator[Any]:
        """The samples of a source, through the cache."""
        if self.dbname is None:
            yield from source
            return
        with contextlib.closing(self._opened()) as db:
            complete, count = self._state(db)
            self._say(f"opened {self.dbname} size {count} total {self.size}")
            if complete or count >= self.size:
                yield from self._stored(db)
                if not complete:
                    yield from self._after(source, min(count, self.size))
                return
            with _filling(self.dbname) as may:
                yield from self._fill(db, source) if may else source

    def _opened(self) -> sqlite3.Connection:
        assert self.dbname is not None
        db = sqlite3.connect(self.dbname, timeout=60)
        with db:
            db.execute("CREATE TABLE IF NOT EXISTS samples (number INTEGER PRIMARY KEY, key TEXT)")
            db.execute(
                "CREATE TABLE IF NOT EXISTS fields (number INTEGER, place INTEGER, name TEXT, "
                "kind TEXT, data BLOB, PRIMARY KEY (number, place))"
            )
            db.execute("CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value INTEGER)")
        return db

    @staticmethod
    def _state(db: sqlite3.Connection) -> tuple[bool, int]:
        """Whether the file has all of the source, and how many samples it has."""
        done = db.execute("SELECT value FROM state WHERE name = 'complete'").fetchone()
        (count,) = db.execute("SELECT count(*) FROM samples").fetchone()
        return done is not None, count

    def _stored(self, db: sqlite3.Connection) -> Iterator[Any]:
        self._say(f"starting dbiter {self.dbname}")
        order = "random()" if self.shuffle else "number"
        rows = db.execute(f"SELECT number FROM samples ORDER BY {order} LIMIT ?", (self.size,))
        for (number,) in rows.fetchall():
            yield self._sample(db, number)

    def _sample(self, db: sqlite3.Connection, number: int) -> Any:
        sample = {}
        for name, kind, data in db.execute(
            "SELECT name, kind, data FROM fields WHERE number = ? ORDER BY place", (number,)
        ):
            if kind == "pickle":
                data = _loads(data, pickle.loads, str(self.dbname))
            elif kind == "str":
                data = data.decode("utf-8", "surrogateescape")
            if name is None:
                return data
            sample[name] = data
        return sample

    @staticmethod
    def _after(source: Iterable[Any], count: int) -> Iterator[Any]:
        for number, sample in enumerate(source):
            if number >= count:
                yield sample

    def _fill(self, db: sqlite3.Connection, source: Iterable[Any]) -> Iterator[Any]:
        self._say("more caching")
        with db:  # what an interrupted filling has left may be of another source
            db.execute("DELETE FROM samples")
            db.execute("DELETE FROM fields")
        number = -1
        for number, sample in enumerate(source):
            if number < self.size:
                self._insert(db, number, sample)
                if number % _COMMIT_EVERY == _COMMIT_EVERY - 1 or number + 1 == self.size:
                    db.commit()
            yield sample
        if number + 1 <= self.size:
            with db:
                db.execute("INSERT OR REPLACE INTO state VALUES ('complete', ?)", (number + 1,))
            self._say(f"finished caching {self.dbname} size {number + 1}")

    @staticmethod
    def _insert(db: sqlite3.Connection, number: int, sample: Any) -> None:
        fields = list(sample.items()) if isinstance(sample, dict) else [(None, sample)]
        key = sample.get("__key__") if isinstance(sample, dict) else None
        db.execute("INSERT INTO samples VALUES (?, ?)", (number, None if key is None else str(key)))
        rows = [
            (number, place, name, *_packed(value)) for place, (name, value) in enumerate(fields)
        ]
        db.executemany("INSERT INTO fields VALUES (?, ?, ?, ?, ?)", rows)

    def _say(self, text: str) -> None:
        if self.verbose:
            print(f"[DBCache {text}]", file=sys.stderr)


class LMDBCached(PipelineStage):
    """Keeps the samples of a pipeline in an LMDB database, and serves them from there once all are
    in it, in the same order.

    One process fills it; others meanwhile take the source alone. pickler has `dumps` and `loads`.
    """

    def __init__(
        self, fname: str, map_size: float = 1e12, pickler: Any = pickle, chunksize: int = 500
    ) -> None:
        self.fname = fname
        self.map_size = int(map_size)
        self.pickler = pickler
        self.chunksize = chunksize
        self._opened: tuple[int, Any] | None = None
        self.db  # noqa: B018  # a file that cannot be opened is to be known at once

    @property
    def db(self) -> Any:
        """The database. Each process opens it for itself, as LMDB asks for."""
        if self._opened is None or self._opened[0] != os.getpid():
            try:
                lmdb = import_module("lmdb")
            except ImportError as error:
                raise ImportError(f"{error}; help: pip install lmdb") from error
            self._opened = (
                os.getpid(),
                lmdb.open(self.fname, readonly=False, map_size=self.map_size),
            )
        return self._opened[1]

    def __getstate__(self) -> dict[str, Any]:
        pickler = self.pickler.__name__ if isinstance(self.pickler, ModuleType) else self.pickler
        return {**self.__dict__, "_opened": None, "pickler": pickler}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if isinstance(self.pickler, str):  # a module, which cannot be pickled
            self.pickler = import_module(self.pickler)

    def is_complete(self) -> bool:
        """Whether all samples are in the database."""
        with self.db.begin(write=False) as transaction:
            return transaction.get(b"_") is not None

    def add_samples(self, samples: Iterable[tuple[str, Any]]) -> None:
        """Stores pairs of key and sample, in one transaction."""
        with self.db.begin(write=True) as transaction:
            dumps = self.pickler.dumps
            transaction.cursor().putmulti([(key.encode(), dumps(value)) for key, value in samples])

    def run(self, source: Iterable[Any]) -> Iterator[Any]:
        """The samples of a source, or those of the database once it has all."""
        if self.is_complete():
            with self.db.begin(write=False) as transaction:
                for key, value in transaction.cursor():
                    if key != b"_":
                        yield _loads(value, self.pickler.loads, self.fname)
            return
        with _filling(self.fname) as may:
            yield from self._fill(source) if may else source

    def invoke(self, *args: Any, **kw: Any) -> Any:
        """The samples of a source, through the cache."""
        return self.run(*args, **kw)

    def _fill(self, source: Iterable[Any]) -> Iterator[Any]:
        with self.db.begin(write=True) as transaction:  # what an interrupted filling has left
            for key in list(transaction.cursor().iternext(keys=True, values=False)):
                transaction.delete(key)
        waiting: list[tuple[str, Any]] = []
        for number, sample in enumerate(source):
            # Numbers keep the order, and samples with equal keys apart.
            waiting.append((f"{number:016d}", sample))
            if len(waiting) >= self.chunksize:
                self.add_samples(waiting)
                waiting = []
            yield sample
        self.add_samples(waiting)
        with self.db.begin(write=True) as transaction:
            transaction.put(b"_", b"1")


__all__ = ["DBCache", "LMDBCached"]
