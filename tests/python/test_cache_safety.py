"""What a cache must not do: serve another object, read a bad block for ever, outgrow its size."""

from __future__ import annotations

import itertools
import os
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from http_servers import Answer, Request, ranged, stand_in

MB = 1_000_000


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Three blocks."""
    return write_tar(tmp_path_factory.mktemp("tar") / "a.tar", numbered(0, 60, 80_000)).read_bytes()


def disk(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def count(url: str, **options: Any) -> int:
    return len(list(shardfeed.Stream(url, **options)))


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
@pytest.mark.parametrize("kind", ["stream", "archive"])
def test_a_bad_block_that_cannot_be_removed(data: bytes, tmp_path: Path, kind: str) -> None:
    """As on a disk that became read-only after an error."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder != Path("/") and folder.owner() == "root":
            folder.chmod(folder.stat().st_mode | 0o011)
    own = tmp_path / "own"
    own.mkdir()
    os.chown(own, 65534, 65534)
    with stand_in(ranged(data)) as server:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setgid(65534)
                os.setuid(65534)
                options: dict[str, Any] = {"cache": str(own / "c")}
                assert count(server.url(), **options) == 60
                blocks = sorted(p for p in own.glob("c/*/shards/*/*/*") if p.name.isdigit())
                with blocks[1].open("r+b") as file:
                    file.seek(-1000, os.SEEK_END)
                    file.write(b"damaged!")
                blocks[1].parent.chmod(0o500)
                begun = time.monotonic()
                if kind == "stream":
                    assert count(server.url(), timeout=20, **options) == 60
                else:
                    with shardfeed.Archive(server.url(), **options) as archive:
                        assert len(archive.read("000030.txt")) == 80_000
                status = 0 if time.monotonic() - begun < 10 else 2
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        limit = time.monotonic() + 30
        ended = 0
        while time.monotonic() < limit and not ended:
            ended, found = os.waitpid(child, os.WNOHANG)
            time.sleep(0.02)
        if not ended:
            os.kill(child, 9)
            os.waitpid(child, 0)
        assert ended, "it hangs"
        assert os.waitstatus_to_exitcode(found) == 0


def test_parameters_without_a_signature_tell_objects_apart(tmp_path: Path) -> None:
    """Their tags are versions of each, and their sizes are equal."""
    one = write_tar(tmp_path / "1.tar", numbered(0, 3, 100)).read_bytes()
    two = write_tar(tmp_path / "2.tar", numbered(5, 3, 100)).read_bytes()
    assert len(one) == len(two)

    def serve(request: Request) -> Answer:
        return ranged(two if "sr=44100" in request.path else one)(request)

    with stand_in(serve) as server:
        for rate, first in ((16000, "000000"), (44100, "000005")):
            url = server.url(f"get?sr={rate}")
            stream = shardfeed.Stream(url, cache=str(tmp_path / "c"))
            assert next(iter(stream)).key == first


def test_indexes_are_of_one_query_each(tmp_path: Path) -> None:
    one = write_tar(tmp_path / "1.tar", numbered(0, 3, 100)).read_bytes()
    two = write_tar(tmp_path / "2.tar", numbered(5, 4, 100)).read_bytes()

    def serve(request: Request) -> Answer:
        return ranged(two if "file=b" in request.path else one)(request)

    with stand_in(serve) as server:
        urls = [server.url("get?file=a.tar"), server.url("get?file=b.tar")]
        options: dict[str, Any] = {"cache": str(tmp_path / "c")}
        assert len(shardfeed.Dataset(urls, **options)) == 7
        assert len(shardfeed.Stream(urls, **options)) == 7
    assert len(list((tmp_path / "c").rglob("*.sfidx"))) == 2


def test_indexes_have_no_passwords_in_their_names(data: bytes, tmp_path: Path) -> None:
    with stand_in(ranged(data)) as server:
        url = server.url("a.tar", user="reader:sesame@")
        assert len(shardfeed.Dataset([url], cache=str(tmp_path / "c"))) == 60
    names = [path.name for path in (tmp_path / "c").rglob("*")]
    assert any(name.endswith(".sfidx") for name in names)
    assert not [name for name in names if "sesame" in name]


def test_index_files_count_and_are_evicted(tmp_path: Path) -> None:
    small = write_tar(tmp_path / "a.tar", numbered(0, 4000, 1)).read_bytes()
    folder = tmp_path / "c"
    options: dict[str, Any] = {"cache": str(folder), "cache_size": "12MB"}
    with stand_in(ranged(small)) as server:
        for number in range(60):
            with shardfeed.Dataset([server.url(f"{number}.tar")], **options) as dataset:
                assert len(dataset) == 4000
    assert disk(folder) <= 12 * MB
    indexes = sum(path.stat().st_size for path in folder.rglob("*.sfidx"))
    assert 0 < indexes < 8 * MB, "shards have room too"


def test_what_is_written_without_a_limit_counts_later(data: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with stand_in(ranged(data)) as server:
        assert count(server.url("a.tar"), cache=str(folder), cache_size="12MB") == 60
        for number in range(4):
            assert count(server.url(f"{number}.tar"), cache=str(folder), cache_size="0") == 60
        assert disk(folder) > 20 * MB
        assert count(server.url("b.tar"), cache=str(folder), cache_size="12MB") == 60
    assert disk(folder) <= 12 * MB


def test_two_readers_of_one_thread(data: bytes, tmp_path: Path) -> None:
    """Each holds blocks that the other one waits for."""
    large = data[:-10240] * 6 + data[-10240:]
    with stand_in(ranged(large)) as server:
        options: dict[str, Any] = {"cache": str(tmp_path / "c")}
        begun = time.monotonic()
        with (
            shardfeed.Members(server.url(), **options) as one,
            shardfeed.Members(server.url(), **options) as two,
        ):
            assert sum(1 for _ in zip(one, two)) == 720
        # It waits in vain three times, two seconds each, and no more.
        assert time.monotonic() - begun < 12


def test_the_folder_of_the_user(
    data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with stand_in(ranged(data)) as server:
        assert len(shardfeed.Dataset(server.url(), cache="~/c")) == 60
        files = [path for path in (tmp_path / "home/c").rglob("*") if path.is_file()]
        assert any(path.suffix == ".sfidx" for path in files)
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
        monkeypatch.delenv("HOME")
        said: list[str] = []
        options: dict[str, Any] = {"cache": "~/c", "log": lambda _, text: said.append(text)}
        assert count(server.url(), **options) == 60
    assert any("HOME is not set" in text for text in said)


def test_an_index_whose_time_others_set(data: bytes, tmp_path: Path) -> None:
    """As all who use one do: it is not another index for that."""
    said: list[str] = []
    over = threading.Event()
    options: dict[str, Any] = {"cache": str(tmp_path / "c")}

    def touch(path: Path) -> None:
        for now in itertools.count(time.time_ns()):
            if over.is_set():
                return
            os.utime(path, ns=(now, now))

    with stand_in(ranged(data)) as server:
        shardfeed.Dataset(server.url(), **options)
        (path,) = (tmp_path / "c").rglob("*.sfidx")
        thread = threading.Thread(target=touch, args=(path,))
        thread.start()
        try:
            for _ in range(60):
                shardfeed.Dataset(server.url(), log=lambda _, text: said.append(text), **options)
        finally:
            over.set()
            thread.join()
    assert [text for text in said if "is not used" in text] == []
