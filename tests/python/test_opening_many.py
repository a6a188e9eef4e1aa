"""Many shards on a server are opened at once, and yet in one call: one result, one error, and one
thread that runs callbacks."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import shardfeed
from conftest import write_tar
from http_servers import Answer, Request, StandIn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SHARDS = 40


class Files:
    """What a server has, and how many requests it answers at once."""

    def __init__(self, folder: Path) -> None:
        self.bodies = []
        for shard in range(SHARDS):
            members = [(f"{shard:02}-{i}.txt", b"x" * (shard + 1)) for i in range(3)]
            self.bodies.append(write_tar(folder / f"{shard}.tar", members).read_bytes())
        self.missing: set[int] = set()
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()

    def decide(self, request: Request) -> Answer:
        shard = int(request.path.strip("/").partition(".")[0])
        if shard in self.missing or ".sfidx" in request.path:
            return Answer(404)
        body = self.bodies[shard]
        headers = {"Etag": f'"{shard}"', "Accept-Ranges": "bytes"}
        status = 200
        if request.first is not None:
            last = min(request.last or len(body) - 1, len(body) - 1)
            headers["Content-Range"] = f"bytes {request.first}-{last}/{len(body)}"
            body, status = body[request.first : last + 1], 206
        return Answer(status, headers, body, wait=self._wait)

    def _wait(self) -> None:
        """As a network does."""
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        time.sleep(0.02)
        with self._lock:
            self._now -= 1


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def server(files: Files) -> Iterator[StandIn]:
    server = StandIn(files.decide)
    yield server
    server.close()


def urls(server: StandIn) -> list[str]:
    return [server.url(f"{shard}.tar") for shard in range(SHARDS)]


def test_a_dataset_asks_for_several_shards_at_once(files: Files, server: StandIn) -> None:
    with shardfeed.Dataset(urls(server), index="memory") as data:
        assert len(data) == 3 * SHARDS
        keys = [data[number].key for number in range(len(data))]
    assert keys == [f"{shard:02}-{i}" for shard in range(SHARDS) for i in range(3)]
    assert 4 <= files.most_at_once <= 16


def test_streams_that_count_first_do_so_too(files: Files, server: StandIn, tmp_path: Path) -> None:
    index_dir = str(tmp_path / "indexes")
    shardfeed.Dataset(urls(server), index_dir=index_dir).close()
    files.most_at_once = 0
    options: dict[str, Any] = {"index_dir": index_dir, "rank": 1, "world_size": 3}
    stream = shardfeed.Stream(urls(server), even="drop", by_index=True, **options)
    assert len(stream) == SHARDS
    assert files.most_at_once >= 4
    keys = [sample.key for sample in stream]
    # Its own lane, and its part of the shard that the first lane has more.
    own = [f"{shard:02}-{i}" for shard in range(1, SHARDS - 1, 3) for i in range(3)]
    assert keys == [*own, f"{SHARDS - 1}-1"]


def test_the_first_bad_shard_of_the_list_is_named(files: Files, server: StandIn) -> None:
    files.missing = {7, 8, 30}
    for _ in range(3):
        with pytest.raises(shardfeed.Error, match=r"/7\.tar: "):
            shardfeed.Dataset(urls(server), index="memory", retries=0)


def test_messages_come_on_the_thread_of_the_call(server: StandIn) -> None:
    threads, messages = set(), []

    def log(level: int, message: str) -> None:
        threads.add(threading.get_ident())
        messages.append(message)

    shardfeed.Dataset(urls(server), index="memory", log=log).close()
    assert threads <= {threading.get_ident()}
    for message in messages:
        assert "/" in message


@pytest.fixture
def silent(server: StandIn) -> Iterator[StandIn]:
    """A server that takes requests and does not answer."""
    over = threading.Event()
    server.decide = lambda _: Answer(200, wait=lambda: over.wait(30) and None)
    yield server
    over.set()


@pytest.mark.parametrize("at_once", [SHARDS, 1])
def test_the_time_of_the_call_is_bounded(silent: StandIn, at_once: int) -> None:
    start = time.monotonic()
    with pytest.raises(shardfeed.TimeoutError):
        shardfeed.Dataset(urls(silent)[:at_once], index="memory", timeout=0.3)
    assert time.monotonic() - start < 5


def test_ctrl_c_ends_it(silent: StandIn, interrupted: Callable[..., None]) -> None:
    interrupted(lambda: shardfeed.Dataset(urls(silent), index="memory"))


@pytest.fixture
def interrupted() -> Callable[..., None]:
    import signal

    def run(call: Callable[[], object]) -> None:
        def fail(*_: object) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, fail)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            with pytest.raises(KeyboardInterrupt):
                call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    return run
