"""Several ranges of a shard on their way at once: the same samples, each byte once."""

from __future__ import annotations

import dataclasses
import io
import itertools
import random
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from http_servers import Answer, Certificates, Decide, Nginx, Request, StandIn, ranged, stand_in

HEAD = 64 * 1024  # what the first request asks for
PIECE = 256 * 1024


@pytest.fixture(scope="module")
def tar(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A shard of 3.5 MB."""
    path = tmp_path_factory.mktemp("http") / "t.tar"
    return write_tar(path, numbered(0, 100, 34000)).read_bytes()


Seen = list  # of (key, fields)


def read(url: object, seen: Seen | None = None, **options: Any) -> Seen:
    """All samples, by four connections; `seen` has those before an error."""
    seen = [] if seen is None else seen
    given = {"retries": 3, "timeout": 10, "connections": 4, "range_size": PIECE, **options}
    for sample in shardfeed.Stream(url, **given):
        seen.append((sample.key, {name: bytes(data) for name, data in sample.items()}))
    return seen


@pytest.fixture(scope="module")
def samples(tar: bytes, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    path = tmp_path_factory.mktemp("local") / "t.tar"
    path.write_bytes(tar)
    seen = read(path)
    assert len(seen) == 100
    return seen


class Slow:
    """Answers like `right`, each after some time, and counts how many wait together.

    After the first one, which is alone, none is answered before `wanted` have waited together: a
    busy machine changes nothing. Ten seconds end that.
    """

    def __init__(self, right: Decide, delay: float = 0.02, wanted: int = 0) -> None:
        self.right, self.delay, self.wanted = right, delay, wanted
        self.waiting = self.most = 0
        self.changed = threading.Condition()

    def __call__(self, request: Request) -> Answer:
        wanted = self.wanted if request.number else 0
        return dataclasses.replace(self.right(request), wait=lambda: self.wait(wanted))

    def wait(self, wanted: int) -> None:
        with self.changed:
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.most >= wanted, timeout=10)
        time.sleep(self.delay)
        with self.changed:
            self.waiting -= 1


def asked(server: StandIn) -> list[tuple[int, int]]:
    return [(request.first, request.last) for request in server.requests]  # type: ignore[misc]


@pytest.mark.parametrize("connections", [1, 2, 4, 16])
def test_ranges_are_fetched_at_once(tar: bytes, samples: Seen, connections: int) -> None:
    wanted = min(connections, 8)
    slow = Slow(ranged(tar), wanted=wanted)
    with stand_in(slow) as server:
        assert read(server.url(), connections=connections, timeout=60) == samples
        ranges = sorted(asked(server))
        assert all(request.headers["if-match"] == '"v1"' for request in server.requests[1:])
    # Each byte was asked for once, in ranges that meet.
    assert ranges[0] == (0, HEAD - 1)
    assert [first for first, _ in ranges[1:]] == [last + 1 for _, last in ranges[:-1]]
    assert ranges[-1][1] == len(tar) - 1
    if connections == 1:
        assert len(ranges) == 2
    assert wanted <= slow.most <= connections


def test_the_next_shard_is_asked_for_before_the_end(tar: bytes) -> None:
    """By two threads: the last range of a shard is not answered before that."""
    asked = threading.Event()
    in_time: list[bool] = []

    def decide(request: Request) -> Answer:
        answer = ranged(tar)(request)
        if "s-1" in request.path:
            asked.set()
        elif request.last is not None and request.last >= len(tar) - 1:
            return dataclasses.replace(answer, wait=lambda: in_time.append(asked.wait(10)))
        return answer

    with stand_in(decide) as server:
        urls = [server.url("s-0.tar"), server.url("s-1.tar")]
        stream = shardfeed.Stream(urls, threads=2, connections=4, range_size=PIECE)
        assert len(list(stream)) == 200
    assert in_time == [True]


def test_every_answer_fails_once(tar: bytes, samples: Seen) -> None:
    """In another way and at another place each time: no byte is lost, none comes twice."""
    for seed in range(20):
        choose = random.Random(seed)
        failed: set[int] = set()

        def fail(request: Request, choose=choose, failed=failed) -> Answer:
            right = ranged(tar)(request)
            end = request.last or 0
            if end in failed:
                return right
            failed.add(end)
            kind = choose.choice(["fin", "rst", "503", "429", "nothing"])
            if kind in ("503", "429"):
                return Answer(int(kind), {"Retry-After": "0"})
            cut = 0 if kind == "nothing" else choose.randrange(len(right.body))
            return dataclasses.replace(right, cut=cut, end=kind if kind == "rst" else "fin")

        with stand_in(fail) as server:
            assert read(server.url(), retries=5) == samples, seed
            ends = {request.last for request in server.requests}
        assert failed == ends


@pytest.mark.parametrize("place", [HEAD, HEAD + PIECE, len("x") + 5 * PIECE])
@pytest.mark.parametrize("checks", [True, False])
def test_another_version_comes_while_ranges_are_fetched(
    tar: bytes, samples: Seen, place: int, checks: bool
) -> None:
    """412, and a server that gives the new version regardless of If-Match."""
    new = ranged(bytes(len(tar)), '"v2"')

    def swap(request: Request) -> Answer:
        if (request.first or 0) < place:
            return ranged(tar)(request)
        headers = dict(request.headers)
        if not checks:
            headers.pop("if-match", None)
        return new(dataclasses.replace(request, headers=headers))

    seen: Seen = []
    with stand_in(Slow(swap, 0.005)) as server, pytest.raises(shardfeed.ChangedError):
        read(server.url(), seen)
    assert seen == samples[: len(seen)]
    assert len(seen) < len(samples)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_range_is_refused(tar: bytes, samples: Seen, status: int) -> None:
    """The samples before it are delivered, and then the error."""

    def refuse(request: Request) -> Answer:
        first = request.first or 0
        return Answer(status) if first >= 4 * PIECE else ranged(tar)(request)

    seen: Seen = []
    kind = shardfeed.NetPermanentError if status == 404 else shardfeed.AuthError
    with stand_in(Slow(refuse, 0.005)) as server, pytest.raises(kind, match=str(status)):
        read(server.url(), seen)
    assert seen == samples[: len(seen)]
    assert len(seen) * 34000 > 3 * PIECE


def test_a_busy_server_gets_fewer_requests_at_once(tmp_path: Path) -> None:
    """Of all readers of the process, and slowly more again."""
    data = write_tar(tmp_path / "b.tar", numbered(0, 150, 100_000)).read_bytes()
    slow = Slow(ranged(data), delay=0.02, wanted=0)
    refused: list[int] = []
    at_once: list[int] = []

    def decide(request: Request) -> Answer:
        at_once.append(slow.waiting + 1)
        # From the fourth request on, as long as four of them take, all that come together.
        if request.number > 3 and len(refused) < 4:
            refused.append(request.number)
            return Answer(503, {"Retry-After": "0"}, b"<Error><Code>SlowDown</Code></Error>")
        return slow(request)

    with stand_in(decide) as server:
        given: dict[str, Any] = {"connections": 8, "range_size": PIECE, "retries": 8}
        stream = shardfeed.Stream(server.url(), **given)
        assert sum(1 for _ in stream) == 150
        assert len(refused) == 4
        after = at_once[max(refused) + 1 :]
        assert max(after[8:24]) <= 4, at_once
        assert max(after) >= 4, at_once
        # Another reader begins with as few.
        begun = len(at_once)
        assert sum(1 for _ in shardfeed.Stream(server.url(), **given)) == 150
        assert max(at_once[begun : begun + 16]) <= 6, at_once
        # They are 8 again some day.
        for _ in range(20):
            assert sum(1 for _ in shardfeed.Stream(server.url(), **given)) == 150
            if max(at_once[begun:]) == 8:
                break
        assert max(at_once[begun:]) == 8, at_once


def test_close_while_ranges_are_on_their_way(tar: bytes) -> None:
    stall = dataclasses.replace(ranged(tar)(Request(0, "", {})), cut=0, end="stall")

    def decide(request: Request) -> Answer:
        right = ranged(tar)(request)
        return (
            right
            if (request.first or 0) <= HEAD
            else dataclasses.replace(right, cut=1000, end=stall.end)
        )

    with stand_in(decide) as server:
        stream = shardfeed.Stream(server.url(), connections=4, range_size=PIECE)
        next(iter(stream))
        server.wait_for_stall()
        start = time.monotonic()
        stream.close()
        assert time.monotonic() - start < 0.5


def test_resume_in_the_middle(tar: bytes, samples: Seen) -> None:
    options = {"connections": 3, "range_size": PIECE}
    with stand_in(Slow(ranged(tar), 0.002)) as server:
        for taken in (1, 33, 98):
            stream = shardfeed.Stream(server.url(), **options)
            head = [sample.key for sample in itertools.islice(stream, taken)]
            state = stream.state_dict()
            stream.close()
            before = len(server.requests)
            again = shardfeed.Stream(server.url(), **options)
            again.load_state_dict(state)
            keys = head + [sample.key for sample in again]
            assert keys == [key for key, _ in samples]
            # What lies before the position is not fetched again, but for the head. Among these may
            # be a late request of the first stream.
            firsts = [first for first in server.firsts[before:] if first]
            assert min(firsts, default=len(tar)) >= (taken - 1) * 34000 or taken == 1


def test_counters(tar: bytes) -> None:
    def fail(request: Request) -> Answer:
        return Answer(503, {"Retry-After": "0"}) if request.number == 1 else ranged(tar)(request)

    with stand_in(fail) as server:
        stream = shardfeed.Stream(server.url(), connections=1)
        before = stream.stats()
        assert before["requests"] == before["network_bytes"] == 0
        assert len(list(stream)) == 100
        after = stream.stats()
        assert after["requests"] == len(server.requests) == 3
    assert after["retries"] == 1
    assert after["network_bytes"] == len(tar)
    assert after["connect_ns"] > 0
    assert after["first_byte_ns"] > 0


# ---- Random access -------------------------------------------------------------------------------


def test_members_are_read_together(tar: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.tar").write_bytes(tar)
    local = shardfeed.Archive(tmp_path / "t.tar")
    slow = Slow(ranged(tar), 0.03)
    with stand_in(slow) as server:
        far = shardfeed.Archive(server.url(), connections=8)
        before, slow.most = len(server.requests), 0
        names = [member.name for member in local][::9]
        assert far.read_many(names) == local.read_many(names)
        # One request for each member that the first one has not brought.
        assert len(server.requests) - before <= len(names)
    assert 2 <= slow.most <= 8


def test_samples_of_a_dataset_are_read_together(tar: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.tar").write_bytes(tar)
    local = shardfeed.Dataset(tmp_path / "t.tar")
    slow = Slow(ranged(tar), 0.05)
    with stand_in(slow) as server:
        far = shardfeed.Dataset(server.url(), connections=8, index="memory")
        slow.most = 0
        numbers = list(range(0, 100, 17))
        for mine, theirs in zip(local.get_many(numbers), far.get_many(numbers)):
            assert {name: bytes(data) for name, data in mine.items()} == {
                name: bytes(data) for name, data in theirs.items()
            }
    assert slow.most >= 2


# ---- What requests carry -------------------------------------------------------------------------


def test_headers_and_tokens_stay_at_their_host(tar: bytes, samples: Seen) -> None:
    own = {"headers": {"X-One": "1", "X-Two": "two words"}, "token": "abc"}
    wanted = {"x-one": "1", "x-two": "two words", "authorization": "Bearer abc"}
    with stand_in(ranged(tar)) as other:

        def move(request: Request) -> Answer:
            return Answer(302, {"Location": other.url()})

        with stand_in(move) as server:
            assert read(server.url(), **own) == samples
            assert all(request.headers.items() >= wanted.items() for request in server.requests)
        assert not any(set(wanted) & set(request.headers) for request in other.requests)
    with stand_in(
        lambda request: (
            Answer(302, {"Location": "/there"})
            if request.path != "/there"
            else ranged(tar)(request)
        )
    ) as server:
        assert read(server.url(), **own) == samples
        assert all(request.headers.items() >= wanted.items() for request in server.requests)


@pytest.mark.parametrize(
    "headers", ["no colon", "X Y: 1", ": 1", "X: a\rb", "X: \x01", "X-Ok: 1\nbad"]
)
def test_headers_that_are_none(headers: str) -> None:
    with stand_in(ranged(b"")) as server:
        with pytest.raises(shardfeed.UsageError, match="headers") as caught:
            read(server.url(), headers=headers)
        assert server.requests == []
    assert headers not in str(caught.value)


def test_tokens_with_a_line_end() -> None:
    with stand_in(ranged(b"")) as server:
        with pytest.raises(shardfeed.UsageError, match="token") as caught:
            read(server.url(), token="secret\n")
        assert server.requests == []
    assert "secret" not in str(caught.value)


def test_proxies(tar: bytes, samples: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """By option, by environment, and none."""
    with stand_in(ranged(tar)) as proxy:
        address = f"http://127.0.0.1:{proxy.port}"
        assert read("http://nowhere.invalid/t.tar", proxy=address) == samples
        assert proxy.requests[0].path == "http://nowhere.invalid/t.tar"
        monkeypatch.setenv("http_proxy", address)
        monkeypatch.setenv("no_proxy", "")
        assert read("http://nowhere.invalid/t.tar") == samples
        asked_before = len(proxy.requests)
        with stand_in(ranged(tar)) as server:
            assert read(server.url(), proxy="none") == samples
            for excepted in ("127.0.0.1", "localhost,127.0.0.1", "*"):
                monkeypatch.setenv("no_proxy", excepted)
                assert read(server.url()) == samples
            monkeypatch.delenv("http_proxy")
            monkeypatch.delenv("no_proxy")
            # Servers set it from a header that their clients send: Proxy.
            monkeypatch.setenv("HTTP_PROXY", address)
            assert read(server.url()) == samples
        assert len(proxy.requests) == asked_before


def test_client_certificates(tmp_path: Path, tar: bytes, samples: Seen) -> None:
    certificates = Certificates.make(tmp_path)
    options = {"ca_file": certificates.ca}  # a Path
    with stand_in(ranged(tar), certificates, ask_for_certificate=True) as server:
        with pytest.raises(shardfeed.Error):
            read(server.url(), retries=0, **options)
        assert server.requests == []
        given = {"client_cert": certificates.server, "client_key": certificates.key, **options}
        assert read(server.url(), **given) == samples


def test_client_certificates_stay_at_their_host(tmp_path: Path, tar: bytes, samples: Seen) -> None:
    certificates = Certificates.make(tmp_path)
    given: dict[str, Any] = {"client_cert": certificates.server, "client_key": certificates.key}
    given["ca_file"] = certificates.ca
    with stand_in(ranged(tar), certificates, ask_for_certificate=True) as other:
        moved = {"Location": other.url()}
        with stand_in(lambda _: Answer(302, moved), certificates, True) as server:
            with pytest.raises(shardfeed.Error):
                read(server.url(), retries=0, **given)
            assert len(server.requests) == 1
        assert other.requests == []  # which shook no hands
        assert read(other.url(), **given) == samples
    right = ranged(tar)

    def within(request: Request) -> Answer:
        if request.path == "/there":
            return right(request)
        return Answer(302, {"Location": "/there"})

    with stand_in(within, certificates, ask_for_certificate=True) as server:
        assert read(server.url(), **given) == samples


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Any:
    server = Nginx(tmp_path_factory.mktemp("nginx"))
    yield server
    server.stop()


def test_http2(nginx: Nginx, tar: bytes, samples: Seen) -> None:
    (nginx.root / "two.tar").write_bytes(tar)
    options = {"ca_file": nginx.certificates.ca}
    assert read(nginx.https("two.tar"), **options) == samples
    # Of another host there is no connection yet.
    assert read(nginx.https("two.tar", "localhost"), http2=True, **options) == samples
    protocols = {line.protocol for line in nginx.logged() if line.path == "/two.tar"}
    assert protocols == {"HTTP/1.1", "HTTP/2.0"}


@pytest.mark.parametrize("http2", [False, True])
def test_a_server_that_ends_connections(
    nginx: Nginx, tar: bytes, samples: Seen, http2: bool
) -> None:
    """After every third request, while others are on their way; of HTTP/2 that is GOAWAY."""
    (nginx.root / "brief.tar").write_bytes(tar)
    before = len(nginx.logged())
    options = {"ca_file": nginx.certificates.ca, "http2": http2}
    stream = shardfeed.Stream(
        [nginx.brief("brief.tar")] * 3, connections=4, range_size=PIECE, **options
    )
    seen = [(s.key, {name: bytes(data) for name, data in s.items()}) for s in stream]
    assert seen == 3 * samples
    requests = nginx.logged()[before:]
    assert len(requests) > 6
    assert {request.protocol for request in requests} == {"HTTP/2.0" if http2 else "HTTP/1.1"}


@pytest.mark.parametrize("members", [5000, 66000])
def test_requests_of_an_archive(members: int) -> None:
    """The head, the end and the directory, each once; of 66,000 members the end is one of ZIP64."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("first", bytes(200_000))
        for number in range(1, members):
            file.writestr(f"{number:06}", b"")
    with stand_in(ranged(made.getvalue())) as server:
        archive = shardfeed.Archive(server.url())
        assert len(archive) == members
        assert archive.names()[-1] == f"{members - 1:06}"
        assert len(server.requests) == 3
        assert bytes(archive["first"].read()) == bytes(200_000)
