"""gopen: real commands, a real HTTP server, the environment; beside gopen of webdataset."""

from __future__ import annotations

import gc
import inspect
import io
import os
import subprocess
import sys
import tarfile
import time
import warnings
from pathlib import Path

import pytest
from aws_servers import Bucket, endpoint
from http_servers import Answer, stand_in, whole
from shardfeed.wds import _pipe, utils
from shardfeed.wds import writer as shards
from shardfeed.wds._tar_stream import is_store

webdataset = pytest.importorskip("webdataset")
ours = sys.modules["shardfeed.wds.gopen"]
theirs = sys.modules["webdataset.gopen"]

gopen, Pipe = ours.gopen, ours.Pipe


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("GOPEN_VERBOSE", "GOPEN_REWRITE", "GOPEN_BUFFER", "WDS_SECURE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """commands("ais", "cat x"): a command of this name, before others of it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def make(name: str, script: str) -> None:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return make


def test_local_files(tmp_path):
    path = tmp_path / "a#b?c d.bin"
    with gopen(str(path), "wb") as stream:
        stream.write(b"12345")
    for module in (ours, theirs):
        with module.gopen(str(path)) as stream:
            assert stream.read() == b"12345"
        with module.gopen("file:" + str(tmp_path) + "/a%23b%3Fc%20d.bin") as stream:
            assert stream.read() == b"12345"
        assert module.gopen_file("file://" + str(path)).read() == b"12345"
        with pytest.raises(FileNotFoundError):
            module.gopen(str(tmp_path / "none"))
        with pytest.raises(AssertionError):
            module.gopen(str(path), "r")


def test_standard_input_and_output():
    script = (
        "import sys; from shardfeed.wds.gopen import gopen;"
        "gopen('-', 'wb').write(gopen('-').read()[::-1])"
    )
    made = subprocess.run(
        [sys.executable, "-c", script], input=b"abc", capture_output=True, check=True
    )
    assert made.stdout == b"cba"


def test_the_buffer_of_files(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"x")
    monkeypatch.setenv("GOPEN_BUFFER", "0")
    assert isinstance(gopen(str(tmp_path / "a")), io.FileIO)


def read_pieces(stream, size, got):
    while piece := stream.read(size):
        got += piece


@pytest.mark.parametrize("code", [0, 141, 1, 7, 255])
def test_a_command_that_fails_is_known_after_all_its_bytes(code):
    data = bytes(range(256)) * 1000
    stream = gopen(f"pipe:head -c {len(data)} /dev/zero; exit {code}")
    got = bytearray()
    if code in (0, 141):
        read_pieces(stream, 10000, got)
        stream.close()
    else:
        with pytest.raises(OSError, match=rf"exit {code} .*help:"):
            read_pieces(stream, 10000, got)
    assert got == bytes(len(data))  # all that it wrote came first


def test_reading_all_at_once_is_an_error_too():
    for _ in range(5):
        with pytest.raises(OSError, match="exit 3"):
            gopen("pipe:echo part; exit 3").read()
        with pytest.raises(OSError, match="exit 3"):
            gopen("pipe:exit 3").read(10)


def test_closing_early_is_no_error():
    for size in (0, 1, 100000):
        with gopen("pipe:yes") as stream:
            assert len(stream.read(size)) == size
    with Pipe(["yes"], mode="rb") as stream:  # no shell between, and no status that is ignored
        assert stream.read(10) == b"y\n" * 5


def test_closing_says_how_the_command_ended(monkeypatch):
    for verbose in ("0", "1"):  # webdataset forgets the status when it is verbose
        monkeypatch.setenv("GOPEN_VERBOSE", verbose)
        stream = gopen("pipe:printf 12345; exit 9")
        assert stream.read(3) == b"123"
        time.sleep(0.2)
        with pytest.raises(OSError, match="exit 9"):
            stream.close()


def test_a_failure_inside_of_a_pipeline_is_one_of_the_command():
    with pytest.raises(OSError, match="exit 5"):
        gopen("pipe:(echo a; exit 5) | cat").read()
    assert gopen("pipe:yes | head -n 1").read() == b"y\n"


def test_options_of_pipes():
    stream = gopen("pipe:exit 3")
    assert ours.set_options(stream, ignore_errors=True)
    assert stream.read() == b""
    stream.close()
    stream = gopen("pipe:exit 3")
    assert ours.set_options(stream, ignore_status=[3], timeout=5, handler=print)
    assert stream.read() == b""
    assert (stream.timeout, stream.handler) == (5, print)
    stream = gopen("pipe:true")
    assert ours.set_options(stream, ignore_status=[3])  # webdataset takes 0 for a failure then
    assert stream.read() == b""
    assert not ours.set_options(io.BytesIO(), timeout=1)
    slow = Pipe("sleep 60", shell=True, mode="rb", timeout=0.1)
    start = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        slow.close()
    assert time.monotonic() - start < 20
    assert slow.proc.poll() is not None


def test_lines_and_buffers():
    with gopen("pipe:printf 'a\\nbc\\n'") as stream:
        assert stream.readLine() == b"a\n"
        room = bytearray(8)
        assert stream.readinto(room) == 3
        assert bytes(room[:3]) == b"bc\n"
        assert stream.readinto(room) == 0
        assert stream.readable()
        assert not stream.writable()


def write_much():
    with gopen("pipe:exit 6", "wb") as stream:
        for _ in range(100):
            stream.write(bytes(100000))


def test_writing(tmp_path):
    path = tmp_path / "out"
    with gopen(f"pipe:cat >{path}", "wb") as stream:
        stream.write(b"abc")
        stream.flush()
    assert path.read_bytes() == b"abc"
    with pytest.raises(OSError, match="exit 4"), gopen("pipe:cat >/dev/null; exit 4", "wb") as out:
        out.write(b"abc")
    with pytest.raises(OSError, match=r"exit 6|Broken pipe"):
        write_much()


def test_a_stream_that_is_dropped_says_what_failed():
    stream = gopen("pipe:exit 8")
    with pytest.warns(RuntimeWarning, match="exit 8"):
        del stream
    gc.collect()
    stream = gopen("pipe:yes")
    process = stream.proc
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del stream
        gc.collect()
    assert process.wait(10) != 0


def test_http(tmp_path):
    with stand_in(whole(b"tar " * 100000)) as server:
        for module in (ours, theirs):
            with module.gopen(server.url("a.tar")) as stream:
                assert stream.read() == b"tar " * 100000
        with gopen(server.url("b"), "wb") as stream:
            stream.write(b"body")
        assert server.requests[-1].method == "PUT"
    with stand_in(lambda _: Answer(404)) as server, pytest.raises(OSError, match="exit 22"):
        gopen(server.url("a.tar")).read()
    cut = Answer(200, {}, bytes(100000), cut=50000)
    with stand_in(lambda _: cut) as server:
        stream, got = gopen(server.url("a.tar")), bytearray()
        with pytest.raises(OSError, match="exit 18"):
            read_pieces(stream, 1000, got)
        assert len(got) == 50000


@pytest.mark.parametrize(
    ("url", "mode", "command", "arguments"),
    [
        ("gs://b/x.tar", "rb", "gsutil", "cat gs://b/x.tar"),
        ("gs://b/x.tar", "wb", "gsutil", "cp - gs://b/x.tar"),
        ("ais://b/x.tar", "rb", "ais", "get ais://b/x.tar -"),
        ("ais://b/x.tar", "wb", "ais", "put - ais://b/x.tar"),
        (
            "sftp://h/x",
            "rb",
            "curl",
            "--connect-timeout 30 --retry 30 --retry-delay 2 -f -s -L sftp://h/x",
        ),
        ("https://h/x", "wb", "curl", "-f -s -X PUT -L -T - https://h/x"),
        ("htgs://b/x", "rb", "gsutil", "cat gs://b/x"),
    ],
)
def test_commands_are_those_of_webdataset(commands, tmp_path, url, mode, command, arguments):
    said = []
    for module in (ours, theirs):
        log = tmp_path / f"log-{module.__name__}"
        commands(command, f'echo "$@" >{log}; {"cat >/dev/null" if mode == "wb" else "echo data"}')
        if module is theirs and url.startswith("htgs"):
            continue  # it asks curl for gs://
        with module.gopen(url, mode) as stream:
            assert stream.write(b"data") == 4 if mode == "wb" else stream.read() == b"data\n"
        said.append(log.read_text().strip())
    assert set(said) == {arguments}


def test_ais_for_other_schemes(commands):
    commands("ais", 'echo "$@"')
    script = "from shardfeed.wds.gopen import gopen; print(gopen('s3://b/x').read())"
    environment = {**os.environ, "USE_AIS_FOR": "s3:http"}
    made = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, check=True, text=True
    )
    assert made.stdout.strip() == r"b'get s3://b/x -\n'"


def test_schemes_of_ones_own(monkeypatch):
    calls = []
    monkeypatch.setitem(
        ours.gopen_schemes, "mine", lambda *a, **k: calls.append((a, k)) or io.BytesIO(b"7")
    )
    assert gopen("mine://x", "rb", 5, extra=1).read() == b"7"
    assert calls == [(("mine://x", "rb", 5), {"extra": 1})]
    with pytest.raises(ValueError, match="no gopen handler defined; help:"):
        gopen("other://x")
    with pytest.raises(TypeError):
        gopen("http://x", ignore_errors=True)
    assert set(theirs.gopen_schemes) <= set(ours.gopen_schemes)
    assert is_store("s3://b/x")
    monkeypatch.setitem(ours.gopen_schemes, "s3", lambda *a, **k: io.BytesIO())
    assert not is_store("s3://b/x")


@pytest.mark.parametrize(
    "rules",
    ["", None, "a=b", "http://old/=http://new/;ftp://=x", "h(t+)p=\\1", "nothing=x;http=y;h=z"],
)
def test_rewriting(monkeypatch, rules):
    if rules:
        monkeypatch.setenv("GOPEN_REWRITE", rules)
    for url in ("http://old/a", "abc", "ftp://x", "htttp://a"):
        assert ours.rewrite_url(url) == theirs.rewrite_url(url)
    monkeypatch.setenv("GOPEN_REWRITE", "no rule;")
    with pytest.raises(ValueError, match="help:"):
        ours.rewrite_url("abc")


def test_secure(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"x")
    monkeypatch.setattr(utils, "enforce_security", True)
    for url in (str(tmp_path / "a"), f"file:{tmp_path}/a"):
        with pytest.raises(ValueError, match="cannot open local files; help:"):
            gopen(url)
    with pytest.raises(ValueError, match="cannot open pipe URLs; help:"):
        gopen("pipe:true")
    monkeypatch.setenv("GOPEN_REWRITE", "a=b")
    with pytest.raises(ValueError, match=r"cannot rewrite URLs .*help:"):
        gopen("http://x")


def test_being_verbose(monkeypatch, capfd):
    monkeypatch.setenv("GOPEN_VERBOSE", "1")
    monkeypatch.setenv("GOPEN_REWRITE", "old=pipe")
    gopen("old:true").read()
    said = capfd.readouterr()
    assert "GOPEN REWRITE old:true -> pipe:true" in said.out
    assert "GOPEN old:true" in said.err
    assert "pipe exit [0 " in said.err


def test_without_commands(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with stand_in(whole(b"data" * 1000)) as server:
        with gopen(server.url("a.tar")) as stream:
            assert stream.read() == b"data" * 1000
        with pytest.raises(FileNotFoundError, match="help: install the command"):
            gopen(server.url("a.tar"), "wb")
    with pytest.raises(FileNotFoundError, match="help: install the command"):
        gopen("ais://b/x", "wb")


def test_objects_of_stores(monkeypatch):
    """There is no command for s3: the library reads and writes it."""
    with stand_in(Bucket()) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint(server))
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "KEY")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-KEY")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        samples = [{"__key__": f"a{n}", "bin": bytes([n]) * 1000} for n in range(5)]
        with shards.ShardWriter("s3://bkt/t-%02d.tar", maxcount=3, verbose=0) as writer:
            for sample in samples:
                writer.write(sample)
        got = []
        for number in range(2):
            url = f"s3://bkt/t-{number:02d}.tar"
            with gopen(url) as stream, tarfile.open(fileobj=stream) as tar:
                got += [(m.name, tar.extractfile(m).read()) for m in tar.getmembers()]
        assert got == [(f"a{n}.bin", bytes([n]) * 1000) for n in range(5)]
        with pytest.raises(OSError, match="404"):
            gopen("s3://bkt/none.tar")
        with pytest.raises(ValueError, match="help: TarWriter"):
            gopen("s3://bkt/x", "wb")
        with pytest.raises(ValueError, match=r"help: write .tar"):
            shards.TarWriter("s3://bkt/x.tar.gz")


def test_every_name_and_signature():
    for name, value in vars(theirs).items():
        if getattr(value, "__module__", "") != theirs.__name__:
            continue
        mine = getattr(ours, name)
        had, has = inspect.signature(value), inspect.signature(mine)
        assert [(p.name, p.default, p.kind) for p in has.parameters.values()] == [
            (p.name, p.default, p.kind) for p in had.parameters.values()
        ], name
    for name in vars(theirs.Pipe):
        assert hasattr(_pipe.Pipe, name), name


def test_tars_into_commands(tmp_path):
    with shards.TarWriter(f"pipe:cat >{tmp_path}/a.tar") as writer:
        writer.write({"__key__": "a", "x": b"1"})
    assert Path(tmp_path / "a.tar").stat().st_size == 10240
    writer = shards.TarWriter("pipe:cat >/dev/null; exit 2")
    writer.write({"__key__": "a", "x": b"1"})
    with pytest.raises(OSError, match="exit 2"):
        writer.close()
