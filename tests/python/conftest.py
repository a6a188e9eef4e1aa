"""Real shards for the tests: written with tarfile, read with shardfeed."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import tarfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed

# Shells start background commands with Ctrl-C ignored, and the tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)

Members = Iterable[tuple[str, bytes]]


@pytest.fixture
def serve() -> Iterator[Callable[..., Any]]:
    """Starts servers of feeds: serve(*words) as after "shardfeed feed". All are ended behind it."""
    from feed_servers import running

    with running() as start:
        yield start


def write_tar(path: Path, members: Members, **options: object) -> Path:
    """A tar file of these members. Names may hold surrogate escapes."""
    mode = options.pop("mode", "w")
    with tarfile.open(path, mode, **options) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def numbered(first: int, count: int, size: int = 10) -> list[tuple[str, bytes]]:
    """Members of `count` samples with the fields txt and cls; the number is in both."""
    members = []
    for number in range(first, first + count):
        members.append((f"{number:06d}.txt", f"{number}".encode().ljust(size, b".")))
        members.append((f"{number:06d}.cls", f"{number % 10}".encode()))
    return members


def tar_of(number_of_samples: int, path: Path) -> Path:
    return write_tar(path, numbered(0, number_of_samples))


@pytest.fixture
def shards(tmp_path: Path) -> Callable[..., str]:
    """shards(4, 100): the URL of four shards with 100 samples each, numbered through."""

    def make(count: int, samples: int, size: int = 10, name: str = "s") -> str:
        for number in range(count):
            path = tmp_path / f"{name}-{number:03d}.tar"
            write_tar(path, numbered(number * samples, samples, size))
        return str(tmp_path / f"{name}-{{000..{count - 1:03d}}}.tar")

    return make


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Any]:
    """The file system memory:// of fsspec, with four shards of 50 samples, also in `tmp_path`."""
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for shard in range(4):
        path = write_tar(tmp_path / f"s-{shard:03}.tar", numbered(50 * shard, 50, 5000))
        store.pipe(f"/{path.name}", path.read_bytes())
    yield store
    store.store.clear()


@pytest.fixture
def ftp(tmp_path: Path) -> Iterator[str]:
    """An FTP server of `tmp_path`; its URL, with a password."""
    pytest.importorskip("pyftpdlib")
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.servers import FTPServer

    authorizer = DummyAuthorizer()
    authorizer.add_user("reader", "sesame", str(tmp_path))
    handler = type("Handler", (FTPHandler,), {"authorizer": authorizer, "auth_failed_timeout": 0})
    server = FTPServer(("127.0.0.1", 0), handler)
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            server.serve_forever(timeout=0.01, blocking=False)
        server.close_all()

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"ftp://reader:sesame@127.0.0.1:{server.address[1]}/"
    over.set()
    thread.join()


@pytest.fixture(scope="session")
def torch():
    """PyTorch; tests that ask for it are skipped without."""
    return pytest.importorskip("torch")


@pytest.fixture(scope="session")
def datasets(torch):
    """The module shardfeed.torch."""
    import shardfeed.torch

    return shardfeed.torch


@pytest.fixture
def even(tmp_path: Path) -> shardfeed.Batch:
    """A batch of five rows, with a column of every dtype, and cls."""
    np = pytest.importorskip("numpy")
    from batches import DTYPES, npy, rows_tar

    rows = [
        {
            **{f"{d}.npy": npy(np.full((2, 3), n % 2 if d == "?" else n, d)) for d in DTYPES},
            "cls": b"%d" % n,
        }
        for n in range(5)
    ]
    (batch,) = shardfeed.Stream(rows_tar(tmp_path / "t.tar", rows)).batches(9)
    return batch


@pytest.fixture
def silent_fifo(tmp_path: Path):
    """A FIFO that has a writer and never gets a byte."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR)
    yield path
    os.close(descriptor)


@contextlib.contextmanager
def threads_run():
    """Another thread must get its turn during the body, which takes at least 0.2 s."""
    counted = []

    def count():
        end = time.monotonic() + 0.2
        number = 0
        while time.monotonic() < end:
            number += 1
        counted.append(number)

    thread = threading.Thread(target=count)
    thread.start()
    yield
    thread.join()
    assert counted[0] > 1000


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Runs programs of examples/wds: see wds_programs.py."""
    from wds_programs import Programs

    made = Programs(tmp_path_factory.mktemp("programs") / "output")
    yield made
    made.server.communicate()
