"""Servers of a feed of another version, with other copies of shards, or whose disk hangs."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from feed_messages import HELLO, PONG, REFUSED, WELCOME, entries, frame
from feed_servers import Server, running
from http_servers import free_port

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
    """Two of its shards are FIFOs to which nobody writes; it answers all the while."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.mkdir()
    write_shards(good)
    # A file that hangs is still the same version. A FIFO has none, and is another one than a file
    # that has: so the files have none either. Else a lane that comes here from the other server in
    # the middle of such a shard, as happens when that one is silent for a moment, is refused.
    for shard in good.iterdir():
        os.utime(shard, (0, 0))
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


SHARDS_OF_COPIES = "s-{0..5}.tar"


@pytest.fixture(name="serve_copy")
def fixture_serve_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[int], Server]]:
    """Starts a server of a copy of the shards whose files are so many seconds younger than those of
    copy 0, where the test itself is."""
    first = tmp_path / "0"
    first.mkdir()
    write_shards(first)
    monkeypatch.chdir(first)
    with running() as serve:

        def serve_copy(younger: int) -> Server:
            folder = tmp_path / str(younger)
            if not folder.exists():
                shutil.copytree(first, folder)
                for shard in folder.iterdir():
                    time_ns = shard.stat().st_mtime_ns + younger * 10**9
                    os.utime(shard, ns=(time_ns, time_ns))
            server: Server = serve(SHARDS_OF_COPIES, "--feed-timeout=1s", folder=folder)
            return server

        yield serve_copy


def keys_of_copies() -> list[str]:
    return [sample.key for sample in shardfeed.Stream(SHARDS_OF_COPIES, **ORDER)]


def stopped_among_copies() -> Any:
    """The state of a stream of copy 0 after 100 samples, with versions of its shards."""
    # In the middle of a block the state would be that of its start, and count the samples since.
    with shardfeed.Stream(SHARDS_OF_COPIES, **ORDER, decode="txt:bytes") as stream:
        samples = sum(
            len(batch["txt"]) for _, batch in zip(range(10), stream.batches(10), strict=False)
        )
        assert samples == 100
        return stream.state_dict()


@pytest.mark.parametrize("right_one", [0, 1, 2])
def test_a_server_with_another_copy_gives_its_lanes_to_others(
    serve_copy: Callable[[int], Server], right_one: int
) -> None:
    expected = keys_of_copies()
    state = stopped_among_copies()
    copies = [1, 2]
    copies.insert(right_one, 0)
    urls = [serve_copy(copy).url for copy in copies]
    with shardfeed.Stream(urls, **ORDER) as stream:
        stream.load_state_dict(state)
        assert [sample.key for sample in stream] == expected[100:]


def test_copies_of_which_none_is_the_right_one_are_an_error(
    serve_copy: Callable[[int], Server],
) -> None:
    state = stopped_among_copies()
    servers = [serve_copy(1), serve_copy(2)]
    gone = f"feed://127.0.0.1:{free_port()}"
    for urls, feed_wait in (
        ([servers[0].url], 60),
        ([server.url for server in servers], 60),
        # The one that is not there may have the right one.
        ([servers[0].url, gone], 1),
    ):
        began = time.monotonic()
        with shardfeed.Stream(urls, **ORDER, feed_wait=f"{feed_wait}s") as stream:
            stream.load_state_dict(state)
            with pytest.raises(shardfeed.ChangedError, match="after the state was saved"):
                next(iter(stream))
            # The state still says which one that is.
            again = stream.state_dict()
        assert time.monotonic() - began < LONGEST
        assert (time.monotonic() - began >= feed_wait) == (gone in urls)
        with shardfeed.Stream(urls, **ORDER, feed_wait="1s") as stream:
            stream.load_state_dict(again)
            with pytest.raises(shardfeed.ChangedError, match="after the state was saved"):
                next(iter(stream))


def test_lanes_wait_for_a_silent_server_when_others_have_another_copy(
    serve_copy: Callable[[int], Server],
) -> None:
    expected = keys_of_copies()
    state = stopped_among_copies()
    other, right = serve_copy(1), serve_copy(0)
    options: dict[str, Any] = {**ORDER, "feed_timeout": "1s"}
    with shardfeed.Stream([right.url, other.url], **options) as stream:
        stream.load_state_dict(state)
        samples = iter(stream)
        keys = [next(samples).key for _ in range(20)]
        # Until its lanes have gone to the other one, and were refused there.
        right.process.send_signal(signal.SIGSTOP)
        timer = threading.Timer(3, right.process.send_signal, [signal.SIGCONT])
        timer.start()
        try:
            keys += [sample.key for sample in samples]
        finally:
            timer.join()
        assert keys == expected[100:]
