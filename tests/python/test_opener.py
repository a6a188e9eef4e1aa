"""Openers: file systems of fsspec, and other functions that give a binary file for a URL."""

from __future__ import annotations

import gc
import io
import json
import os
import pickle
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from archives import images, write_zip
from conftest import numbered, write_tar
from openers import BRACES, URLS, Files, ShortReads, numbers

fsspec = pytest.importorskip("fsspec")

# Of pyftpdlib with older versions of Python.
pytestmark = pytest.mark.filterwarnings("ignore:The async:DeprecationWarning")


def open_db(url: str) -> Any:
    """db:///PATH, for other processes: it can be pickled."""
    return open(url.removeprefix("db://"), "rb")


# ---- File systems of fsspec ----


def test_everything_that_takes_urls_takes_an_opener(memory: Any) -> None:
    stream = shardfeed.Stream(URLS, opener=fsspec.open, shuffle=20, seed=1)
    order = numbers(stream)
    assert sorted(order) == list(range(200))
    assert numbers(stream.recipe.open()) == order
    batches = shardfeed.Stream(URLS, opener=fsspec.open, batch=32, decode="cls:int").batches()
    assert sum(len(batch) for batch in batches) == 200
    with shardfeed.Dataset(URLS, opener=fsspec.open, index="memory") as data:
        assert numbers(data[190:] + data.get_many([3, 0, 150])) == [*range(190, 200), 3, 0, 150]
    with shardfeed.Archive("memory://s-001.tar", opener=fsspec.open) as archive:
        assert archive.read("000050.cls") == b"0"
        assert len(archive.read_many(range(100))) == 100
    with shardfeed.Members("memory://s-001.tar", opener=fsspec.open) as members:
        assert [member.name for member in members][:2] == ["000050.txt", "000050.cls"]
    mixed = shardfeed.mix([stream.recipe.with_options(shuffle=0), shardfeed.StreamRecipe(URLS)])
    with pytest.raises(shardfeed.UnsupportedError):
        list(mixed)
    assert len(list(mixed.recipe.with_options(opener=fsspec.open).open())) == 400


def test_lengths_and_plans_know_the_indexes(memory: Any, tmp_path: Path) -> None:
    folder = str(tmp_path / "indexes")
    options: Any = {"opener": fsspec.open, "index_dir": folder}
    assert len(shardfeed.Dataset(URLS, **options)) == 200
    assert len(shardfeed.Stream(URLS, **options)) == 200
    plan = shardfeed.plan(URLS, **options)
    assert [shard["samples"] for shard in plan.shards] == [50] * 4
    even = [
        shardfeed.Stream(URLS, even="drop", world_size=2, rank=rank, **options) for rank in range(2)
    ]
    assert [len(list(stream)) for stream in even] == [100] * 2


def test_a_state_is_that_of_a_version(memory: Any, tmp_path: Path) -> None:
    large = write_tar(tmp_path / "large.tar", numbered(200, 2000, 1000))
    memory.pipe("/large.tar", large.read_bytes())
    urls = [URLS, "memory://large.tar"]
    options: Any = {"opener": fsspec.open, "shuffle": 30, "shuffle_shards": False}
    whole = numbers(shardfeed.Stream(urls, **options))
    stream = shardfeed.Stream(urls, **options)
    samples = iter(stream)
    first = numbers(next(samples) for _ in range(1700))
    state = json.loads(json.dumps(stream.state_dict()))
    stream.close()
    again = shardfeed.Stream(urls, **options)
    again.load_state_dict(state)
    assert first + numbers(again) == whole
    time.sleep(0.001)
    memory.pipe("/large.tar", large.read_bytes())  # the same bytes, with another time
    changed = shardfeed.Stream(urls, **options)
    changed.load_state_dict(state)
    with pytest.raises(shardfeed.ChangedError, match="after the state was saved"):
        list(changed)


def test_files_inside_of_a_zip(tmp_path: Path, memory: Any) -> None:
    shards = [(path.name, path.read_bytes()) for path in sorted(tmp_path.glob("*.tar"))]
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        outer = write_zip(tmp_path / "outer.zip", shards, method)
        # "::" is a list of URLs here, and chains file systems there.
        urls = [f"zip://{name}::file://{outer}" for name, _ in shards]
        stream = shardfeed.Stream(urls, opener=fsspec.open, expand=False)
        assert sorted(numbers(stream)) == list(range(200))
        inside = fsspec.filesystem("zip", fo=str(outer))
        stream = shardfeed.Stream("zip://" + BRACES, opener=inside.open, lanes=2)
        assert sorted(numbers(stream)) == list(range(200))
    write_zip(tmp_path / "images.zip", images(30))
    write_zip(tmp_path / "outer.zip", [("images.zip", (tmp_path / "images.zip").read_bytes())])
    url = f"zip://images.zip::file://{tmp_path}/outer.zip"
    with shardfeed.Archive(url, opener=fsspec.open) as archive:
        assert [bytes(data[:8]) for data in archive.read_many(range(30))] == [
            f"{number:08d}".encode() for number in range(30)
        ]


def test_an_ftp_server(ftp: str, memory: Any) -> None:
    stream = shardfeed.Stream(ftp + BRACES, opener=fsspec.open, shuffle=10, threads=3)
    assert sorted(numbers(stream)) == list(range(200))
    with shardfeed.Archive(ftp + "s-002.tar", opener=fsspec.open) as archive:
        assert archive.read("000101.cls") == b"1"
        assert len(archive.read_many(range(100))) == 100
    with shardfeed.Dataset(ftp + BRACES, opener=fsspec.open, index="memory") as data:
        assert numbers(data.get_many(range(0, 200, 7))) == list(range(0, 200, 7))
    with pytest.raises(shardfeed.Error) as caught:
        shardfeed.Archive(ftp.replace("sesame", "wrong-word") + "x.tar", opener=fsspec.open)
    assert "wrong-word" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)
    with pytest.raises(FileNotFoundError) as missing:
        shardfeed.Archive(ftp + "none.tar", opener=fsspec.open)
    assert isinstance(missing.value.__cause__, FileNotFoundError)
    assert "sesame" not in str(missing.value)


def test_the_example_of_the_page(
    ftp: str, memory: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in sorted(tmp_path.glob("s-*.tar")):
        path.rename(path.with_name(path.name.replace("s-", "train-")))
    write_zip(tmp_path / "images.zip", images(3))
    page = (Path(__file__).parents[2] / "docs/opener.md").read_text()
    example = page.partition("```python\n")[2].partition("```")[0]
    assert example.count("ftp://host/") == 2
    example = example.replace("ftp://host/", ftp).replace("/data/", f"{tmp_path}/")
    exec(compile(example, "docs/opener.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines[:200]) == [f"{number:06d}" for number in range(200)]
    assert lines[200:] == ["1000", "200"]


# ---- Exceptions ----


def test_exceptions_are_the_cause(memory: Any, tmp_path: Path) -> None:
    class ThrottleError(Exception):
        pass

    def refuse(url: str) -> Any:
        raise ThrottleError(f"slow down at {url}")

    samples = iter(shardfeed.Stream("db://user:sesame@host/a?sig=abc123", opener=refuse))
    for _ in range(2):  # it repeats
        with pytest.raises(shardfeed.ReadError) as caught:
            next(samples)
        error = caught.value
        assert isinstance(error.__cause__, ThrottleError)
        assert str(error) == (
            "db://host/a: the opener raised ThrottleError: slow down at db://host/a"
        )
        assert error.errno is None

    class Breaks(ShortReads):
        def readinto(self, out: Any) -> int:
            if self.file.tell() > 100_000:
                raise OSError(5, "the cable is out")
            return super().readinto(out)

    files = Files(tmp_path, Breaks)
    stream = shardfeed.Stream("db://s-000.tar", opener=files, threads=1)
    with pytest.raises(shardfeed.ReadError, match="the cable is out") as failed:
        list(stream)
    assert isinstance(failed.value.__cause__, OSError)
    assert (failed.value.errno, failed.value.os_error) == (5, 5)
    assert pickle.loads(pickle.dumps(failed.value)).errno == 5
    stream.close()
    assert files.all_closed()

    skips: list[shardfeed.Skip] = []
    skipping: Any = {"on_error": "skip_shard", "log": None, "on_skip": skips.append}
    urls = ["db://s-000.tar", "memory://s-001.tar", "db://none.tar"]
    opened = [lambda url: files(url) if url.startswith("db:") else fsspec.open(url)]
    assert numbers(shardfeed.Stream(urls, opener=opened[0], **skipping))[-50:] == [*range(50, 100)]
    causes = {skip.url: skip.error.__cause__ for skip in skips}
    assert isinstance(causes["db://none.tar"], FileNotFoundError)
    assert isinstance(causes["db://s-000.tar"], OSError)


def test_what_is_no_error_comes_as_it_is() -> None:
    class Stop(BaseException):
        pass

    def stop(url: str) -> Any:
        raise Stop(url)

    for use in (
        lambda: shardfeed.Archive("db://x", opener=stop),
        lambda: list(shardfeed.Stream("db://x", opener=stop)),
        lambda: list(shardfeed.Stream("db://x", opener=stop, on_error="skip_shard", log=None)),
    ):
        with pytest.raises(Stop, match="db://x"):
            use()


# ---- Threads, processes and the end ----


def test_opener_runs_on_threads_of_the_library(memory: Any, tmp_path: Path) -> None:
    class Slow(ShortReads):
        def readinto(self, out: Any) -> int:
            time.sleep(0.001)
            return self.file.readinto(out)

    files = Files(tmp_path, Slow)
    stream = shardfeed.Stream("db://" + BRACES, opener=files, threads=4)
    assert sorted(numbers(stream)) == list(range(200))
    assert threading.get_ident() not in files.threads
    for _ in range(20):  # closed and collected while readers are inside
        with shardfeed.Stream("db://" + BRACES, opener=files, threads=4) as stream:
            next(iter(stream))
        unclosed = iter(shardfeed.Stream("db://" + BRACES, opener=files, threads=4))
        next(unclosed)
        del unclosed
    del stream
    gc.collect()
    assert files.all_closed()


def test_the_opener_is_let_go_of(memory: Any, tmp_path: Path) -> None:
    from shardfeed import _opener

    def serving() -> list[Any]:
        gc.collect()
        return [one for one in _opener._alive if getattr(one, "opener", None) is files]

    files = Files(tmp_path)
    list(shardfeed.Stream("db://" + BRACES, opener=files))
    shardfeed.Archive("db://s-000.tar", opener=files).close()
    assert serving() == []
    archive = shardfeed.Archive("db://s-000.tar", opener=files)
    assert len(serving()) == 1
    del archive
    assert serving() == []


EXIT = """
import sys, threading, time
import shardfeed

class Slow:
    def __init__(self, path):
        self.file = open(path, "rb")
    def read(self, size):
        time.sleep(0.05)
        return self.file.read(min(size, 1000))

opener = lambda url: Slow(url.removeprefix("db://"))
stream = shardfeed.Stream("db://" + sys.argv[1], opener=opener, epochs=0, threads=4)
samples = iter(stream)
print(next(samples).key)

def read_on():
    try:
        list(samples)
    except shardfeed.CancelledError as error:
        assert "Python ends" in str(error)

if sys.argv[2] == "thread":
    threading.Thread(target=read_on, daemon=True).start()
    time.sleep(0.1)
"""


@pytest.mark.parametrize("how", ["main", "thread"])
def test_python_ends_while_readers_are_inside(how: str, memory: Any, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", EXIT, str(tmp_path / BRACES), how],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "000000\n", "")


def test_a_forked_process_opens_again(memory: Any, tmp_path: Path) -> None:
    files = Files(tmp_path)
    archive = shardfeed.Archive("db://s-001.tar", opener=files)
    data = shardfeed.Dataset("db://" + BRACES, opener=files, index="memory")
    stream = shardfeed.Stream("db://" + BRACES, opener=files)
    next(iter(stream))
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            before = len(files.opened)
            assert archive.read("000050.cls") == b"0"
            assert numbers(data.get_many(range(200))) == list(range(200))
            assert sorted(numbers(stream)) == list(range(200))
            assert len(files.opened) == before + 1 + 4 + 4
            archive.close()
            data.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    assert archive.read("000099.cls") == b"9"
    assert numbers(data.get_many([199])) == [199]
    stream.close()


@pytest.mark.slow
def test_what_else_pytorch_takes(torch: Any, datasets: Any, memory: Any, tmp_path: Path) -> None:
    files = Files(tmp_path)
    batches = datasets.loader("db://" + BRACES, opener=files, batch=20, decode="cls:int")
    assert sum(len(batch["cls"]) for batch in batches) == 200
    stream = datasets.Stream("db://" + BRACES, opener=fsspec.open)
    again = datasets.loader(stream, opener=files, batch=20, decode="cls:int")
    assert len(list(again)) == 10
    write_zip(tmp_path / "images.zip", [(f"{n}.raw", bytes([n] * 12)) for n in range(5)])
    pictures = datasets.ZipDataset("db://images.zip", labels=None, shape=(3, 2, 2), opener=files)
    assert [int(image.sum()) for image in pictures] == [12 * n for n in range(5)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*suggested max number of worker")
@pytest.mark.parametrize(("method", "workers"), [("fork", 2), ("forkserver", 1), ("spawn", 1)])
def test_data_loader_workers(
    torch: Any, datasets: Any, memory: Any, tmp_path: Path, method: str, workers: int
) -> None:
    from torch.utils.data import DataLoader

    url = f"db://{tmp_path}/{BRACES}"
    options: Any = {"num_workers": workers, "multiprocessing_context": method, "timeout": 60}
    stream = datasets.Stream(
        url, opener=open_db, transform=_number, shuffle=10, rank=0, world_size=1
    )
    assert sorted(DataLoader(stream, batch_size=None, **options)) == list(range(200))
    data = datasets.Dataset(url, _number, opener=open_db, index="memory")
    assert data[0] == 0
    if method == "fork":
        assert list(DataLoader(data, batch_size=None, **options)) == list(range(200))


def _number(sample: shardfeed.Sample) -> int:
    return int(bytes(sample["txt"]).strip(b"."))


def test_recipes_and_copies_have_the_opener(memory: Any, tmp_path: Path) -> None:
    url = f"db://{tmp_path}/{BRACES}"
    recipe = shardfeed.StreamRecipe(url, opener=open_db)
    assert recipe.opener is open_db
    assert recipe.share(0, 2).opener is open_db
    assert recipe != shardfeed.StreamRecipe(url)
    copied = pickle.loads(pickle.dumps(recipe))
    assert copied == recipe
    assert sorted(numbers(copied.open())) == list(range(200))
    assert len(pickle.loads(pickle.dumps(shardfeed.Stream(url, opener=open_db))).recipe.urls) == 1
    archive = shardfeed.Archive(f"db://{tmp_path}/s-003.tar", opener=open_db)
    assert pickle.loads(pickle.dumps(archive)).read("000150.cls") == b"0"
    data = shardfeed.Dataset(url, opener=open_db, index="memory")
    assert numbers(pickle.loads(pickle.dumps(data))[:3]) == [0, 1, 2]
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(shardfeed.Stream(url, opener=lambda url: open_db(url)))


def test_ctrl_c_while_the_opener_waits(memory: Any) -> None:
    import signal

    def wait(url: str) -> Any:
        time.sleep(0.5)
        return io.BytesIO(b"")

    for use in (
        lambda: shardfeed.Archive("db://x", opener=wait),
        lambda: list(shardfeed.Stream("db://x", opener=wait)),
    ):
        timer = threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT])
        start = time.monotonic()
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            use()
        assert time.monotonic() - start < 5
        timer.join()
