"""Bad networks between the library and real servers: what is read is complete, or there is an
error that says why, in time."""

from __future__ import annotations

import contextlib
import socket
import statistics
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from aws_servers import put, versitygw
from bad_links import Link, Toxiproxy, toxiproxy
from conftest import numbered, write_tar
from http_servers import Nginx

SHARDS, SAMPLES, SIZE = 2, 100, 12_000  # shards of 1.3 MB

Content = list  # of (key, fields)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the shards and an archive."""
    folder = tmp_path_factory.mktemp("shards")
    for shard in range(SHARDS):
        write_tar(folder / f"s-{shard}.tar", numbered(shard * SAMPLES, SAMPLES, SIZE))
    with zipfile.ZipFile(folder / "i.zip", "w") as file:
        for name, data in numbered(0, SAMPLES, SIZE):
            file.writestr(name, data)
    return folder


class Server:
    """A real server of these files."""

    def __init__(self, port: int, store: bool, files: Path, certificates: Any = None) -> None:
        self.port, self.store, self.files, self.certificates = port, store, files, certificates

    def through(self, link: Link, name: str = "s-{0..1}.tar", **more: Any) -> dict[str, Any]:
        """What opens a file over a link: the argument urls and options."""
        if not self.store:
            return {"urls": f"http://127.0.0.1:{link.port}/{name}", **more}
        keys = {"s3_access_key": "testkey", "s3_secret_key": "testsecret"}
        endpoint = f"http://127.0.0.1:{link.port}"
        return {"urls": f"s3://shards/{name}", "s3_endpoint": endpoint, **keys, **more}


@pytest.fixture(scope="module")
def nginx(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Nginx(tmp_path_factory.mktemp("nginx"))
    for file in root.iterdir():
        (server.root / file.name).write_bytes(file.read_bytes())
    yield Server(server.ports[0], False, root, server)
    server.stop()


@pytest.fixture(scope="module")
def bucket(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with versitygw(tmp_path_factory.mktemp("s3")) as url:
        put(f"{url}/shards")
        for file in root.iterdir():
            put(f"{url}/shards/{file.name}", file.read_bytes())
        yield Server(int(url.rpartition(":")[2]), True, root)


@pytest.fixture(params=["nginx", "bucket"])
def server(request: pytest.FixtureRequest) -> Server:
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def proxies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toxiproxy]:
    with toxiproxy(tmp_path_factory.mktemp("toxiproxy")) as started:
        yield started


@pytest.fixture
def link(proxies: Toxiproxy, server: Server) -> Iterator[Link]:
    with proxies.link(server.port) as made:
        yield made


@pytest.fixture(scope="module")
def expected(root: Path) -> Content:
    found = content(shardfeed.Stream(f"{root}/s-{{0..1}}.tar"))
    assert len(found) == SHARDS * SAMPLES
    return found


def content(samples: Any) -> Content:
    return [(s.key, {name: bytes(data) for name, data in s.items()}) for s in samples]


# ---- Links that are slow, and links that are cut ------------------------------------------------

Faults = Callable[[Link], None]

SLOW: dict[str, Faults] = {
    "latency": lambda link: link.add("latency", latency=50),
    "jitter": lambda link: link.add("latency", latency=20, jitter=20),
    "latency of requests": lambda link: link.add("latency", stream="upstream", latency=50),
    "bandwidth": lambda link: link.add("bandwidth", rate=4000),
    "slow_close": lambda link: link.add("slow_close", delay=100),
    "slicer": lambda link: link.add("slicer", average_size=1000, size_variation=300, delay=50),
    "slicer of requests": lambda link: link.add(
        "slicer", stream="upstream", average_size=20, size_variation=10, delay=100
    ),
}
CUT: dict[str, Faults] = {
    "limit_data": lambda link: link.cut_after(150_000, False),
    "limit_data in headers": lambda link: link.add("limit_data", toxicity=0.4, bytes=100),
    "reset_peer in the body": lambda link: link.cut_after(150_000, True),
    "reset_peer before the answer": lambda link: link.add("reset_peer", toxicity=0.4, timeout=0),
    "timeout": lambda link: link.add("timeout", toxicity=0.4, timeout=50),
}


@pytest.mark.parametrize("connections", [1, 8])
@pytest.mark.parametrize("fault", [*SLOW, *CUT])
def test_all_samples(
    server: Server, link: Link, expected: Content, fault: str, connections: int
) -> None:
    {**SLOW, **CUT}[fault](link)
    # Pieces of 256 KiB, so that there are many connections; slow_close needs some that end.
    more: dict[str, Any] = {"connections": connections, "range_size": "256KiB", "timeout": 10}
    stream = shardfeed.Stream(**server.through(link, **more, retries=20))
    assert content(stream) == expected
    if fault in SLOW:
        assert stream.stats()["retries"] == 0
    elif fault in ("limit_data", "reset_peer in the body"):
        assert stream.stats()["retries"] > 0


def test_all_members_of_archives(server: Server, link: Link, root: Path) -> None:
    """In random order, and together: connections end after 100 KB, by a reset."""
    link.cut_after(100_000, True)
    link.add("latency", latency=5, jitter=5)
    with shardfeed.Archive(root / "i.zip") as local:
        names = [member.name for member in local]
        wanted = [bytes(member.read()) for member in local]
    opened = server.through(link, "i.zip", retries=20)
    with shardfeed.Archive(opened.pop("urls"), **opened) as archive:
        assert [bytes(data) for data in archive.read_many(names)] == wanted
        assert [bytes(archive[name].read()) for name in names[::10]] == wanted[::10]


def test_all_samples_of_datasets(server: Server, link: Link, expected: Content) -> None:
    link.cut_after(200_000, False)
    dataset = shardfeed.Dataset(**server.through(link, retries=20, index="memory"))
    order = [*range(0, len(expected), 7), *range(5)]
    assert content(dataset.get_many(order)) == [expected[n] for n in order]


def test_http2(nginx: Server, proxies: Toxiproxy, expected: Content) -> None:
    """All ranges are on the connection that is cut."""
    server: Nginx = nginx.certificates
    more: dict[str, Any] = {"ca_file": server.certificates.ca, "http2": True, "retries": 20}
    for reset in (False, True):
        with proxies.link(server.ports[1]) as link:
            link.cut_after(600_000, reset)
            stream = shardfeed.Stream(f"https://127.0.0.1:{link.port}/s-{{0..1}}.tar", **more)
            assert content(stream) == expected
            assert stream.stats()["retries"] > 0


def test_the_cache_of_a_bad_link(
    server: Server, link: Link, expected: Content, tmp_path: Path
) -> None:
    """It is filled over cuts, and read without any link."""
    link.cut_after(300_000, True)
    more: dict[str, Any] = {"cache": tmp_path, "stale_ok": True, "retries": 20}
    stream = shardfeed.Stream(**server.through(link, **more))
    assert content(stream) == expected
    link.enable(False)
    again = shardfeed.Stream(**server.through(link, **{**more, "retries": 0}))
    assert content(again) == expected
    assert again.stats()["network_bytes"] == 0


# ---- Links that are gone for a while ------------------------------------------------------------


def begin(server: Server, link: Link, **more: Any) -> tuple[shardfeed.Stream, Any, Content]:
    """A stream whose first sample is there, its iterator and that sample; the rest is slow."""
    link.add("bandwidth", rate=2000)
    stream = shardfeed.Stream(**server.through(link, connections=2, **more))
    iterator = iter(stream)
    return stream, iterator, content([next(iterator)])


def take(iterator: Any, seen: Content, times: list[float] | None = None) -> None:
    """All that comes before an error."""
    for sample in iterator:
        seen += content([sample])
        if times is not None:
            times.append(time.monotonic())


def test_a_link_that_comes_back(server: Server, link: Link, expected: Content) -> None:
    stream, iterator, seen = begin(server, link, retries=10, timeout=10)
    link.enable(False)
    back = threading.Timer(0.3, link.enable)
    back.start()
    assert seen + content(iterator) == expected
    back.join()
    assert stream.stats()["retries"] > 0


def test_a_link_that_stays_away(server: Server, link: Link, expected: Content) -> None:
    _, iterator, seen = begin(server, link, retries=2)
    link.enable(False)
    begun = time.monotonic()
    with pytest.raises(shardfeed.NetTransientError) as caught:
        take(iterator, seen)
    assert time.monotonic() - begun < 3  # waits of at most 0.2 and 0.4 s
    assert seen == expected[: len(seen)]
    assert "s-0.tar" in str(caught.value)
    assert "testsecret" not in str(caught.value)


def test_a_black_hole_ends_by_the_timeout(server: Server, link: Link, expected: Content) -> None:
    """The stream goes on behind it, and so does one that was restored from its state."""
    stream, iterator, seen = begin(server, link, retries=10, timeout=0.5)
    link.add("timeout", timeout=0)
    last: list[float] = [time.monotonic()]
    with pytest.raises(shardfeed.TimeoutError):
        take(iterator, seen, last)
    assert 0.4 < time.monotonic() - last[-1] < 3
    assert seen == expected[: len(seen)]
    state = stream.state_dict()
    link.remove("timeout")  # which ends the connections that were in it
    assert seen + content(iterator) == expected
    restored = shardfeed.Stream(**server.through(link))
    restored.load_state_dict(state)
    assert seen + content(restored) == expected


@pytest.mark.parametrize(
    ("fault", "error", "longest"),
    [
        (lambda link: link.add("timeout", timeout=0), shardfeed.TimeoutError, 3),
        (lambda link: link.add("timeout", timeout=100), shardfeed.NetTransientError, 4),
        (lambda link: link.add("reset_peer", timeout=0), shardfeed.NetTransientError, 3),
        (lambda link: link.add("limit_data", bytes=0), shardfeed.NetTransientError, 3),
        (lambda link: link.add("limit_data", bytes=50), shardfeed.NetTransientError, 3),
        (lambda link: link.enable(False), shardfeed.NetTransientError, 3),
        (
            lambda link: link.add("timeout", stream="upstream", timeout=0),
            shardfeed.TimeoutError,
            3,
        ),
    ],
)
@pytest.mark.parametrize("kind", [shardfeed.Stream, shardfeed.Archive])
def test_faults_that_stay(
    server: Server, link: Link, fault: Faults, error: type[Exception], longest: float, kind: Any
) -> None:
    fault(link)
    opened = server.through(link, "i.zip", retries=1, timeout=0.5)
    begun = time.monotonic()
    with pytest.raises(error) as caught:
        list(kind(opened.pop("urls"), **opened))
    assert time.monotonic() - begun < longest
    # What a stream waits for when its time is over may be of several shards.
    assert "i.zip" in str(caught.value) or (error, kind) == (
        shardfeed.TimeoutError,
        shardfeed.Stream,
    )
    assert "testsecret" not in str(caught.value)


# ---- Who does not want to wait any longer -------------------------------------------------------

TIMES = 5


def lateness(opened: Any, way: str, work: Callable[[], Any]) -> float:
    """Seconds from cancel() or close() to the end of what waits in another thread."""
    errors: list[BaseException] = []
    ended: list[float] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)
        ended.append(time.monotonic())

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.05)
    assert thread.is_alive(), errors
    begun = time.monotonic()
    getattr(opened, way)()
    closed = time.monotonic()
    thread.join(5)
    assert not thread.is_alive()
    (error,) = errors
    assert isinstance(error, (shardfeed.CancelledError, shardfeed.UsageError)), error
    return max(ended[0], closed) - begun


def in_time(late: list[float]) -> None:
    """100 ms; other work of the machine may make one or another later."""
    print(", ".join(f"{1000 * seconds:.1f} ms" for seconds in late))
    assert statistics.median(late) < 0.1
    assert max(late) < 1


@pytest.mark.parametrize("way", ["cancel", "close"])
@pytest.mark.parametrize("connections", [1, 8])
def test_cancel_in_a_black_hole(
    server: Server, proxies: Toxiproxy, way: str, connections: int
) -> None:
    """In the middle of a body."""
    late = []
    for _ in range(TIMES):
        with proxies.link(server.port) as link:
            link.add("bandwidth", rate=4000)
            more: dict[str, Any] = {"connections": connections, "range_size": "256KiB"}
            stream = shardfeed.Stream(**server.through(link, **more))
            iterator = iter(stream)
            next(iterator)
            link.add("timeout", timeout=0)
            late.append(lateness(stream, way, lambda i=iterator: list(i)))
    in_time(late)


@pytest.mark.parametrize("way", ["cancel", "close"])
def test_cancel_while_it_connects(way: str) -> None:
    """To a server whose places for those who wait are taken."""
    late = []
    for _ in range(TIMES):
        with contextlib.ExitStack() as sockets:
            server = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
            for _ in range(3):
                filler = sockets.enter_context(socket.socket())
                filler.setblocking(False)
                filler.connect_ex(server.getsockname())
            stream = shardfeed.Stream(f"http://127.0.0.1:{server.getsockname()[1]}/a.tar")
            late.append(lateness(stream, way, lambda s=stream: list(s)))
    in_time(late)


@pytest.mark.parametrize("way", ["cancel", "close"])
@pytest.mark.parametrize("secure", [False, True])
def test_cancel_before_an_answer(nginx: Server, proxies: Toxiproxy, way: str, secure: bool) -> None:
    """The hole is there before the first byte; with TLS, before the server says hello."""
    late = []
    server: Nginx = nginx.certificates
    scheme = "https" if secure else "http"
    for _ in range(TIMES):
        with proxies.link(server.ports[secure]) as link:
            link.add("timeout", timeout=0)
            stream = shardfeed.Stream(
                f"{scheme}://127.0.0.1:{link.port}/s-0.tar", ca_file=server.certificates.ca
            )
            late.append(lateness(stream, way, lambda s=stream: list(s)))
    in_time(late)


@pytest.mark.parametrize("way", ["cancel", "close"])
def test_cancel_while_another_one_fetches(
    bucket: Server, proxies: Toxiproxy, way: str, tmp_path: Path
) -> None:
    """Which has the lock of the cache, and is in a black hole; our own link is good."""
    late = []
    for number in range(TIMES):
        cache = tmp_path / str(number)
        with proxies.link(bucket.port) as hole, proxies.link(bucket.port) as link:
            hole.add("bandwidth", rate=2000)
            with shardfeed.Stream(**bucket.through(hole, "s-0.tar", cache=cache)) as first:
                next(iter(first))
                hole.add("timeout", timeout=0)
                second = shardfeed.Stream(**bucket.through(link, "s-0.tar", cache=cache))
                late.append(lateness(second, way, lambda s=second: list(s)))
                assert second.stats()["network_bytes"] < 100_000  # those of the opening
    in_time(late)
