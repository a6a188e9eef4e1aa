"""FileCache, StreamingOpen, LRUCleanup and the older shard cache: real servers, several processes,
damaged downloads; beside those of webdataset."""

from __future__ import annotations

import inspect
import io
import os
import sys
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from conftest import numbered, write_tar
from http_servers import Answer, stand_in, whole
from shardfeed.wds import _cache_files, cache, shardcache
from wds_workers import downloaded_size

webdataset = pytest.importorskip("webdataset")
theirs = sys.modules["webdataset.cache"]


def tar_bytes(tmp_path: Path, first: int = 0) -> bytes:
    return write_tar(tmp_path / "made.tar", numbered(first, 3)).read_bytes()


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file())


URLS = [
    "a/b.tar",
    "/x/y/b.tar",
    "file:/x/b.tar",
    "http://h/p/q/b.tar?sig=1#f",
    "https://h/b.tar",
    "s3://bucket/k/b.tar",
    "gs://b.tar",
    "ais://bucket/d/e",
    "pipe:curl http://h/p.tar | cat",
    "htgs://b/c.tar",
    "hf://datasets/u/" + "x" * 200,
    "ftp://h/p/b.tar",
]


@pytest.mark.parametrize("url", URLS)
def test_names_are_those_of_webdataset(url, monkeypatch):
    for ndir in range(3):
        assert cache.url_to_cache_name(url, ndir) == theirs.url_to_cache_name(url, ndir)
    assert cache.islocal(url) == theirs.islocal(url)
    monkeypatch.delenv("ALLOW_OBSOLETE", raising=False)
    with pytest.raises(Exception, match="obsolete function pipe_cleaner"):
        cache.pipe_cleaner(url)
    monkeypatch.setenv("ALLOW_OBSOLETE", "1")
    assert cache.pipe_cleaner(url) == theirs.pipe_cleaner(url)


def test_what_a_file_is(tmp_path):
    tar = tmp_path / "a.tar"
    tar.write_bytes(tar_bytes(tmp_path))
    made = {"a.gz": b"\x1f\x8b\x08", "a.bin": b"x" * 600, "none": b"", "a.xz": b"\xfd7zXZ\0more"}
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    for name in ["a.tar", *made]:
        path = str(tmp_path / name)
        assert cache.magic_filetype(path) == theirs.magic_filetype(path)
        assert cache.get_filetype(path) == theirs.get_filetype(path)
        if name != "a.xz":  # which webdataset reads, and does not cache
            assert cache.check_tar_format(path) == theirs.check_tar_format(path)
    assert cache.check_tar_format(str(tmp_path / "a.xz"))
    with pytest.raises(AssertionError, match="no such file"):
        cache.get_filetype(str(tmp_path / "missing"))


def test_streams(tmp_path):
    path = tmp_path / "a#1?.tar"
    path.write_bytes(b"local")
    with stand_in(whole(b"remote")) as server:
        urls = [{"url": str(path)}, server.url("r.tar"), f"file:{tmp_path}/a%231%3F.tar"]
        opened = list(cache.StreamingOpen()(urls))
        assert [item["stream"].read() for item in opened] == [b"local", b"remote", b"local"]
        assert [item.get("local_path") for item in opened] == [str(path), None, str(path)]
        assert [item["url"] for item in opened] == [str(path), urls[1], urls[2]]
    seen = []
    missing = [str(tmp_path / "none"), str(path)]
    stage = cache.StreamingOpen(handler=lambda error: seen.append(error) or True)
    assert [item["url"] for item in stage(missing)] == missing[1:]
    assert list(cache.StreamingOpen(handler=lambda error: False)(missing)) == []
    with pytest.raises(FileNotFoundError):
        list(cache.StreamingOpen()(missing))
    assert [type(error) for error in seen] == [FileNotFoundError]


def test_a_shard_is_downloaded_once(tmp_path, capsys):
    data = tar_bytes(tmp_path)
    folder = tmp_path / "cache"
    with stand_in(whole(data)) as server:
        url = server.url("d/a.tar?sig=1")
        for signature in ("1", "1", "2"):
            url = server.url(f"d/a.tar?sig={signature}")
            (item,) = cache.FileCache(str(folder), verbose=True)([{"url": url}])
            assert item["stream"].read() == data
            assert item["local_path"] == str(folder / "a.tar")
            assert item["url"] == url
        assert len(server.requests) == 1
    assert files(folder) == ["a.tar"]
    assert capsys.readouterr().err.count("# downloading") == 1
    local = str(tmp_path / "made.tar")
    (item,) = cache.FileCache(str(folder))([local])
    assert item["local_path"] == local


def test_a_cache_for_reading_alone(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "a.tar").write_bytes(tar_bytes(tmp_path))

    def refused(*_args, **_keywords):
        raise PermissionError(13, "for reading alone")

    monkeypatch.setattr(os, "makedirs", refused)  # the tests may run as root, who writes anywhere
    assert cache.FileCache(str(folder)).get_file("http://h/a.tar") == str(folder / "a.tar")
    assert files(folder) == ["a.tar"]


def test_processes_and_threads_that_want_the_same_shard_wait(tmp_path):
    data = tar_bytes(tmp_path)
    slow = Answer(200, {}, data, wait=lambda: time.sleep(0.3))
    with stand_in(lambda _: slow) as server:
        wanted = (str(tmp_path / "cache"), server.url("a.tar"))
        with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
            assert list(pool.map(downloaded_size, [wanted] * 4)) == [len(data)] * 4
        assert len(server.requests) == 1
        got = []
        wanted = (str(tmp_path / "cache"), server.url("b.tar"))
        threads = [
            threading.Thread(target=lambda: got.append(downloaded_size(wanted))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert got == [len(data)] * 4
        assert len(server.requests) == 2
    assert files(tmp_path / "cache") == ["a.tar", "b.tar"]


def test_two_urls_with_one_name_are_an_error(tmp_path):
    left, right = tar_bytes(tmp_path, 0), tar_bytes(tmp_path, 50)
    pages = {"/l/a.tar": left, "/r/a.tar": right}
    with stand_in(lambda request: Answer(200, {}, pages[request.path])) as server:
        urls = [server.url("l/a.tar"), server.url("r/a.tar")]
        # webdataset serves the first shard for both.
        its = theirs.FileCache(str(tmp_path / "t"))(urls)
        assert [item["stream"].read() for item in its] == [left, left]
        folder = str(tmp_path / "o")
        with pytest.raises(ValueError, match=r"a\.tar is the file of another URL.*help:"):
            list(cache.FileCache(folder)(urls))
        named = cache.FileCache(folder, url_to_name=lambda url: url.replace("/", "_"))
        assert [item["stream"].read() for item in named(urls)] == [left, right]
        # What another program has downloaded is taken for that of the first URL that asks.
        found = cache.FileCache(str(tmp_path / "t"))
        assert found.get_file(urls[0]) == str(tmp_path / "t" / "a.tar")
        with pytest.raises(ValueError, match="another URL"):
            found.get_file(urls[1])


def test_damaged_downloads_leave_nothing(tmp_path, monkeypatch):
    data = tar_bytes(tmp_path)
    folder = tmp_path / "cache"
    answers = [
        Answer(200, {}, data, cut=700),
        Answer(404),
        Answer(200, {}, b"<html>no</html>"),
        Answer(200, {}, data),
    ]
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    with stand_in(lambda request: answers[request.number]) as server:
        url = server.url("a.tar")
        with pytest.raises(OSError, match="exit 18"):
            cache.FileCache(str(folder)).get_file(url)
        assert files(folder) == []
        with pytest.raises(OSError, match="exit 22"):
            cache.FileCache(str(folder)).get_file(url)
        with pytest.raises(ValueError, match=r"(?s)is not a tar archive, but a .*html.*help:"):
            cache.FileCache(str(folder)).get_file(url)
        assert files(folder) == []
        assert cache.FileCache(str(folder)).get_file(url) == str(folder / "a.tar")
    with stand_in(lambda _: Answer(404)) as server:
        urls = [server.url("x.tar"), server.url("y.tar")]
        errors = []
        assert (
            list(cache.FileCache(str(folder), handler=lambda e: not errors.append(e))(urls)) == []
        )
        assert (len(errors), len(server.requests)) == (20, 20)
        # Beside those of waiting for the end of a process.
        assert [pause for pause in pauses if pause >= 1][:3] == [1.0, 1.5, 2.25]
        assert list(cache.FileCache(str(folder), handler=lambda e: False)(urls)) == []
    with pytest.raises(AssertionError, match="bad cache name"):
        cache.FileCache(str(folder), url_to_name=lambda url: "a/b").get_file(urls[0])


def test_the_oldest_files_are_deleted(tmp_path, capsys):
    made = {}
    for module in (cache, theirs):
        folder = tmp_path / module.__name__
        folder.mkdir()
        for number in range(6):
            (folder / f"f{number}").write_bytes(bytes(100))
            os.utime(folder / f"f{number}", (0, (number * 7) % 5))
        cleaner = module.LRUCleanup(
            str(folder), 350, keyfn=os.path.getmtime, verbose=True, interval=None
        )
        cleaner.cleanup()
        cleaner.set_cache_dir(str(tmp_path / "missing"))
        cleaner.cleanup()
        made[module] = files(folder), capsys.readouterr().err.replace(str(folder), "")
    assert made[cache][0] == ["f1", "f2", "f4"] == made[theirs][0] or len(made[cache][0]) == 3
    assert sorted(made[cache][1].splitlines()) == sorted(made[theirs][1].splitlines())


def test_a_cache_stays_below_its_size(tmp_path):
    data = tar_bytes(tmp_path)
    with stand_in(whole(data)) as server:
        folder = tmp_path / "cache"
        stage = cache.FileCache(str(folder), cache_size=3 * len(data), cache_cleanup_interval=0)
        for number in range(8):
            stage.get_file(server.url(f"{number}.tar"))
            time.sleep(0.01)  # of which the times of the files tell
        assert "7.tar" in files(folder)
        assert len(files(folder)) <= 4
        notes = [n for n in files(folder / _cache_files.NOTES) if not n.endswith(".lock")]
        assert len(notes) == len(files(folder))


def test_the_older_cache(tmp_path, monkeypatch):
    data = tar_bytes(tmp_path)
    folder = tmp_path / "cache"
    monkeypatch.setenv("WEBDATASET_CACHE", str(folder))
    with stand_in(whole(data)) as server:
        url = server.url("d/a.tar?x")
        (item,) = shardcache.cache_shards([url])
        item["stream"].read(100)
        item["stream"].close()
        assert files(folder) == []  # a part is no shard
        (item,) = shardcache.cache_shards([{"url": url}])
        assert isinstance(item["stream"], io.RawIOBase)
        got = b""
        while piece := item["stream"].read(1000):
            got += piece
        assert got == data
        assert files(folder) == [shardcache.shard_uuid(url)]
        (item,) = shardcache.cache_shards([url], cache_size=1e9)
        assert item["stream"].read() == data
        assert len(server.requests) == 2
        monkeypatch.setenv("WEBDATASET_CACHE_NAME", "guess_shard")
        (item,) = shardcache.cache_shards([url])
        with item["stream"] as stream:
            assert stream.read() == data
        assert "a.tar" in files(folder)
        cut = Answer(200, {}, data, cut=1000)
        server.decide = lambda _: cut
        (item,) = shardcache.cache_shards([server.url("b.tar")])
        with pytest.raises(OSError, match="exit 18"):
            item["stream"].read()
        assert "b.tar" not in files(folder)
    assert shardcache.guess_shard("http://h/a/b.tar?c#d") == "b.tar"
    (item,) = shardcache.cache_shards([str(tmp_path / "made.tar")])
    assert item["stream"].read() == data


def test_every_name_and_signature():
    for name, value in vars(theirs).items():
        if getattr(value, "__module__", "") != theirs.__name__:
            continue
        mine = getattr(cache, name)
        had, has = inspect.signature(value), inspect.signature(mine)
        for p, q in zip(had.parameters.values(), has.parameters.values()):
            assert (p.name, p.kind) == (q.name, q.kind), name
            if callable(p.default) and p.default is not inspect.Parameter.empty:
                assert p.default.__name__ == q.default.__name__
            else:
                assert p.default == q.default, name
        assert len(had.parameters) == len(has.parameters)
    for name in ("default_cache_dir", "default_cache_size", "verbose_cache"):
        assert getattr(cache, name) == getattr(theirs, name)


def test_no_warning_is_left_behind(tmp_path):
    with stand_in(whole(tar_bytes(tmp_path))) as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.FileCache(str(tmp_path / "c")).get_file(server.url("a.tar"))
