"""Servers of a feed that are of another version, or whose disk hangs."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from feed_messages import HELLO, PONG, REFUSED, WELCOME, entries, frame
from feed_servers import Server

if shardfeed.features()["feed"] is None:
    pytest.skip("this build has no feed", allow_module_level=True)

from feed_faults import LONGEST, ORDER, descriptors, write_shards

zmq = pytest.importorskip("zmq")


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """A server that says this to everybody. Its URL."""
    context = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.setsockopt(zmq.LINGER, 0)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            if socket.poll(20):
                name, *_ = socket.recv_multipart()
                socket.send_multipart([name, answer])

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"feed://127.0.0.1:{port}"
    finally:
        ended.set()
        thread.join()
        socket.close()
        context.term()


WORDS: dict[str, Any] = {"shards": b"", "decode": b"", "counts": b"", "rows": 0}


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (frame(WELCOME, version=2, **WORDS), shardfeed.UnsupportedError, "version 2"),
        (b"HTTP/1.1 400 Bad Request", shardfeed.FormatError, "message of a feed"),
        (frame(99), shardfeed.FormatError, "unknown type"),
        (frame(WELCOME), shardfeed.FormatError, "shards"),
        (frame(REFUSED, fault=b"none"), shardfeed.FormatError, "message about a fault"),
        # It says nothing of use.
        (frame(PONG), shardfeed.NetTransientError, "no server"),
    ],
    ids=["version", "no message", "type", "entries", "fault", "pong"],
)
def test_another_version_is_a_clear_error(answer: bytes, error: Any, text: str) -> None:
    with answering(answer) as url:
        began = time.monotonic()
        with pytest.raises(error, match=text) as raised:
            list(shardfeed.Stream(url, feed_wait="1s", feed_timeout="1s"))
        assert url in str(raised.value)
        assert time.monotonic() - began < LONGEST


def test_a_stream_of_another_version_is_refused(tmp_path: Path) -> None:
    server = Server(write_shards(tmp_path))
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, 0)
    try:
        socket.connect("tcp" + server.url[len("feed") :])
        socket.send(frame(HELLO, version=2, token=b"", options=b""))
        assert socket.poll(10_000)
        answer = entries(socket.recv())
        assert answer["type"] == REFUSED
        assert b"version 2" in answer["fault"]
    finally:
        socket.close()
        context.term()
        server.kill()


def test_a_server_whose_disk_hangs_gives_its_lanes_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of its shards is a FIFO to which nobody writes; it answers all the while."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.mkdir()
    write_shards(good)
    shutil.copytree(good, bad)
    for name in ("s-2.tar", "s-4.tar"):
        (bad / name).unlink()
        os.mkfifo(bad / name)
    shards = "s-{0..5}.tar"
    servers = [Server(shards, "--feed-timeout=1s", folder=folder) for folder in (bad, good)]
    try:
        idle = descriptors(servers[0].process.pid)
        monkeypatch.chdir(good)
        expected = [sample.key for sample in shardfeed.Stream(shards, **ORDER)]
        began = time.monotonic()
        options: dict[str, Any] = {**ORDER, "feed_timeout": "1s", "feed_wait": "1s"}
        with shardfeed.Stream([server.url for server in servers], **options) as stream:
            assert [sample.key for sample in stream] == expected
        assert time.monotonic() - began < 3 * LONGEST
        assert servers[0].process.poll() is None
        # What hangs has been given up.
        until = time.monotonic() + LONGEST
        while descriptors(servers[0].process.pid) > idle:
            assert time.monotonic() < until, "the server keeps descriptors"
            time.sleep(0.05)
    finally:
        for server in servers:
            server.kill()
