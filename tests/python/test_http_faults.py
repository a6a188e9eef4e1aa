"""Servers that fail: what is read is complete, or there is an error that says why."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from http_servers import (
    Answer,
    Certificates,
    Decide,
    Request,
    StandIn,
    free_port,
    ranged,
    stand_in,
    whole,
)

SAMPLES = 100
HEAD = 64 * 1024  # what the first request asks for


@pytest.fixture(scope="module")
def tar(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A shard of 460 KB."""
    path = tmp_path_factory.mktemp("http") / "t.tar"
    return write_tar(path, numbered(0, SAMPLES, 3000)).read_bytes()


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Another shard of the same size."""
    path = tmp_path_factory.mktemp("http") / "t.tar"
    return write_tar(path, numbered(1000, SAMPLES, 3000)).read_bytes()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("tls"))


Seen = list  # of (key, fields)


def read(url: object, seen: Seen | None = None, **options: Any) -> Seen:
    """All samples; `seen` has those before an error."""
    seen = [] if seen is None else seen
    for sample in shardfeed.Stream(url, **{"retries": 2, "timeout": 10, **options}):
        seen.append((sample.key, {name: bytes(data) for name, data in sample.items()}))
    return seen


@pytest.fixture(scope="module")
def samples(tar: bytes, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    path = tmp_path_factory.mktemp("local") / "t.tar"
    path.write_bytes(tar)
    seen = read(path)
    assert len(seen) == SAMPLES
    return seen


class Once:
    """Answers like `right`, but what covers byte `place` is cut there, the first time."""

    def __init__(self, right: Decide, place: int, end: str) -> None:
        self.right, self.place, self.end = right, place, end
        self.number: int | None = None  # of the request that was cut

    def __call__(self, request: Request) -> Answer:
        answer = self.right(request)
        first = request.first or 0
        if self.number is not None or not first <= self.place < first + len(answer.body):
            return answer
        self.number = request.number
        return dataclasses.replace(answer, cut=self.place - first, end=self.end)


def places(size: int) -> list[int]:
    return [0, 1, 700, HEAD - 1, HEAD, HEAD + 1, 200_000, size - 1]


# ---- Answers that end too early -----------------------------------------------------------------


@pytest.mark.parametrize("end", ["fin", "rst"])
def test_cut_answers_are_resumed_where_they_ended(tar: bytes, samples: Seen, end: str) -> None:
    for place in places(len(tar)):
        fault = Once(ranged(tar), place, end)
        with stand_in(fault) as server:
            assert read(server.url()) == samples, place
            assert fault.number is not None
            cut, again = server.requests[fault.number], server.requests[fault.number + 1]
        assert cut.first is not None
        if cut.first == 0:  # nothing of the first answer is delivered before it is complete
            assert again.first in (0, place)
            continue
        assert again.headers["if-match"] == '"v1"'
        assert again.first is not None
        if end == "fin":
            assert again.first == place
        else:  # a reset may overtake bytes
            assert cut.first <= again.first <= place
        assert again.last is None or again.last == len(tar) - 1


def test_every_answer_is_cut(tar: bytes, samples: Seen) -> None:
    """More faults than retries: what comes in between counts as a success."""
    right = ranged(tar)
    decide = lambda request: dataclasses.replace(right(request), cut=80_000)  # noqa: E731
    with stand_in(decide) as server:
        assert read(server.url(), retries=1) == samples
        assert server.firsts == [0, *range(HEAD, len(tar), 80_000)]


def test_answers_without_a_byte_end_in_an_error(tar: bytes, samples: Seen) -> None:
    right = ranged(tar)

    def decide(request: Request) -> Answer:
        return dataclasses.replace(right(request), cut=0) if request.first else right(request)

    seen: Seen = []
    with stand_in(decide) as server:
        with pytest.raises(shardfeed.NetTransientError, match="3 requests failed"):
            read(server.url(), seen)
        assert server.firsts == [0, HEAD, HEAD, HEAD]
    assert 0 < len(seen) < SAMPLES
    assert seen == samples[: len(seen)]


@pytest.mark.parametrize("tag", [None, 'W/"v1"'])
@pytest.mark.parametrize("end", ["fin", "rst"])
@pytest.mark.parametrize("ranges", [False, True])
def test_without_a_strong_tag_it_is_read_again_from_the_start(
    tar: bytes, samples: Seen, tag: str | None, end: str, ranges: bool
) -> None:
    for place in (1, HEAD + 1, len(tar) - 1):
        fault = Once((ranged if ranges else whole)(tar, tag), place, end)
        with stand_in(fault) as server:
            assert read(server.url()) == samples, place
            assert fault.number is not None
            assert all(first in (None, 0) for first in server.firsts)  # nothing is joined
            assert not any("if-match" in request.headers for request in server.requests)


@pytest.mark.parametrize("tag", [None, 'W/"v1"'])
@pytest.mark.parametrize("place", [HEAD + 1, 400_000])
def test_without_a_strong_tag_other_bytes_are_found(
    tar: bytes, samples: Seen, tag: str | None, place: int
) -> None:
    """One byte of those that were delivered is another."""
    other = bytearray(tar)
    other[600] ^= 1  # in the first member
    right = [whole(tar, tag), whole(bytes(other), tag)]

    def decide(request: Request) -> Answer:
        answer = right[min(request.number, 1)](request)
        return answer if request.number else dataclasses.replace(answer, cut=place)

    seen: Seen = []
    with stand_in(decide) as server, pytest.raises(shardfeed.ChangedError):
        read(server.url(), seen)
    assert seen == samples[: len(seen)]


@pytest.mark.parametrize("what", ["shorter", "longer", "weak tag", "strong tag"])
def test_without_ranges_another_version_is_found(tar: bytes, samples: Seen, what: str) -> None:
    def decide(request: Request) -> Answer:
        tag = {"weak tag": f'W/"{request.number}"', "strong tag": f'"{request.number}"'}.get(what)
        if request.number == 0:
            return dataclasses.replace(whole(tar, tag)(request), cut=300_000)
        data = {"shorter": tar[:-10_240], "longer": tar + bytes(512)}.get(what, tar)
        return whole(data, tag)(request)

    seen: Seen = []
    with stand_in(decide) as server, pytest.raises(shardfeed.ChangedError):
        read(server.url(), seen)
    assert seen == samples[: len(seen)]


def zip_of(count: int, size: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        for number in range(count):
            written.writestr(f"{number:06d}.txt", (b"%d" % number).ljust(size, b"."))
    return file.getvalue()


def chunked(data: bytes, end: bool = True) -> bytes:
    parts = [b"%x\r\n%s\r\n" % (len(p), p) for p in (data[:100_000], data[100_000:]) if p]
    return b"".join(parts) + (b"0\r\n\r\n" if end else b"")


@pytest.mark.parametrize("tag", [None, 'W/"v1"', '"v1"'])
def test_chunked_answers(tar: bytes, samples: Seen, tag: str | None) -> None:
    headers = {"Transfer-Encoding": "chunked", **({"ETag": tag} if tag else {})}

    def decide(request: Request) -> Answer:
        return Answer(200, headers, chunked(tar), length=False)

    with stand_in(decide) as server:
        assert read(server.url()) == samples


def test_chunked_answers_without_their_end(tar: bytes, samples: Seen) -> None:
    """Without a length only the last chunk says that all came: once it is missing, then not."""
    headers = {"Transfer-Encoding": "chunked"}
    for data in (tar, tar[:200_000]):

        def decide(request: Request, data: bytes = data) -> Answer:
            body = chunked(tar) if request.number else chunked(data, end=False)
            return Answer(200, headers, body, length=False)

        with stand_in(decide) as server:
            assert read(server.url()) == samples


def test_the_whole_without_a_length_after_a_range_with_one(tar: bytes, samples: Seen) -> None:
    """As nginx with gzip does for objects whose tag is weak."""
    right = ranged(tar, 'W/"v1"')

    def decide(request: Request) -> Answer:
        if request.first is not None:
            return right(request)
        headers = {"Transfer-Encoding": "chunked", "ETag": 'W/"v1"'}
        return Answer(200, headers, chunked(tar), length=False)

    with stand_in(decide) as server:
        assert read(server.url()) == samples


def test_answer_without_any_length_that_is_cut(tar: bytes, samples: Seen) -> None:
    """HTTP/1.0: the end of the connection is the end of the body, so only the tar can tell."""
    seen: Seen = []
    cut = Answer(200, {}, tar[:250_000], length=False)
    with stand_in(lambda _: cut) as server, pytest.raises(shardfeed.TruncatedError):
        read(server.url(), seen)
    assert seen == samples[: len(seen)]


# ---- Other versions -----------------------------------------------------------------------------


def test_precondition_failed_is_another_version(tar: bytes, other: bytes, samples: Seen) -> None:
    versions = [ranged(tar, '"v1"'), ranged(other, '"v2"')]
    seen: Seen = []
    with stand_in(lambda request: versions[min(request.number, 1)](request)) as server:
        with pytest.raises(shardfeed.ChangedError) as caught:
            read(server.url(), seen)
        assert len(server.requests) == 2
        assert server.url() in str(caught.value)
    assert seen == samples[: len(seen)]


@pytest.mark.parametrize("what", ["tag", "no tag", "weak tag", "total"])
def test_another_version_from_a_server_that_ignores_if_match(
    tar: bytes, samples: Seen, what: str
) -> None:
    right = ranged(tar)

    def decide(request: Request) -> Answer:
        answer = right(request)
        if request.number == 0:
            return answer
        if what == "no tag":
            return dataclasses.replace(answer, headers=answer.without("ETag"))
        headers = dict(answer.headers)
        if what == "total":
            headers["Content-Range"] = headers["Content-Range"].split("/")[0] + f"/{len(tar) + 1}"
        else:
            headers["ETag"] = '"v2"' if what == "tag" else 'W/"v1"'
        return dataclasses.replace(answer, headers=headers)

    seen: Seen = []
    with stand_in(decide) as server, pytest.raises(shardfeed.ChangedError):
        read(server.url(), seen)
    assert seen == samples[: len(seen)]


def test_another_version_after_a_cut(tar: bytes, other: bytes, samples: Seen) -> None:
    def decide(request: Request) -> Answer:
        if request.number < 2:
            return dataclasses.replace(ranged(tar)(request), cut=80_000)
        return ranged(other, '"v2"')(request)

    seen: Seen = []
    with stand_in(decide) as server, pytest.raises(shardfeed.ChangedError):
        read(server.url(), seen)
    assert seen == samples[: len(seen)]


def test_another_version_under_an_archive(tmp_path: Path) -> None:
    data = zip_of(100, 3000)
    versions = [ranged(data, '"v1"'), ranged(zip_of(100, 3001), '"v2"')]
    with stand_in(lambda request: versions[0](request)) as server:
        archive = shardfeed.Archive(server.url("t.zip"), retries=2)
        assert archive.read(99) == b"99".ljust(3000, b".")
        versions.pop(0)
        with pytest.raises(shardfeed.ChangedError):
            archive.read(50)


# ---- Answers that are wrong ---------------------------------------------------------------------

PERMANENT_OR_CHANGED = (shardfeed.NetPermanentError, shardfeed.ChangedError)


def wrong(what: str, right: Answer, request: Request, data: bytes) -> Answer:
    """An answer to a request for a range that is wrong in one respect."""
    first, body = request.first or 0, right.body
    headers = dict(right.headers)
    total = len(data)

    def named(text: str) -> Answer:
        return dataclasses.replace(right, headers={**headers, "Content-Range": text})

    if what == "later start":
        body = data[first + 512 : first + 512 + len(body)]
        text = f"bytes {first + 512}-{first + 512 + len(body) - 1}/{total}"
        return dataclasses.replace(named(text), body=body)
    if what == "no Content-Range":
        return dataclasses.replace(right, headers=right.without("Content-Range"))
    if what == "multipart":
        body = b"--x\r\nContent-Type: application/octet-stream\r\n\r\n" + body + b"\r\n--x--\r\n"
        headers = {**right.without("Content-Range"), "Content-Type": "multipart/byteranges; b=x"}
        return Answer(206, headers, body)
    if what == "multipart with Content-Range":
        return dataclasses.replace(
            right, headers={**headers, "Content-Type": "Multipart/Byteranges; boundary=x"}
        )
    texts = {
        "unit": f"lines {first}-{first + len(body) - 1}/{total}",
        "reversed": f"bytes {first + len(body)}-{first}/{total}",
        "beyond the total": f"bytes {first}-{total}/{total}",
        "negative": f"bytes -1-{first + len(body) - 1}/{total}",
        "huge": f"bytes {first}-99999999999999999999/99999999999999999999",
        "unsatisfied": f"bytes */{total}",
        "text": "bytes all/of it",
        "empty": "",
    }
    return named(texts[what])


WRONG = [
    "later start",
    "no Content-Range",
    "multipart",
    "multipart with Content-Range",
    "unit",
    "reversed",
    "beyond the total",
    "negative",
    "huge",
    "unsatisfied",
    "text",
    "empty",
]


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("when", ["first", "later"])
def test_ranges_that_are_not_what_was_asked_for(
    tar: bytes, samples: Seen, what: str, when: str
) -> None:
    right = ranged(tar)

    def decide(request: Request) -> Answer:
        answer = right(request)
        if (when == "first") != (request.number == 0):
            return answer
        return wrong(what, answer, request, tar)

    seen: Seen = []
    with stand_in(decide) as server:
        with pytest.raises(PERMANENT_OR_CHANGED):
            read(server.url(), seen)
        assert len(server.requests) == (1 if when == "first" else 2)
    assert seen == samples[: len(seen)]


def test_whole_object_in_the_middle(tar: bytes, other: bytes, samples: Seen) -> None:
    """An answer 200 at an offset must not be taken for the rest."""
    for later, tag in ((tar, '"v1"'), (other, '"v2"')):
        right = [ranged(tar), whole(later, tag)]
        seen: Seen = []
        with stand_in(lambda request, r=right: r[min(request.number, 1)](request)) as server:
            try:
                assert read(server.url(), seen) == samples
                assert later == tar
            except PERMANENT_OR_CHANGED:
                assert 0 < len(seen) < SAMPLES
                assert seen == samples[: len(seen)]


def test_more_bytes_than_the_range(tar: bytes, samples: Seen) -> None:
    right = ranged(tar)

    def decide(request: Request) -> Answer:
        answer = right(request)
        if request.number:
            return dataclasses.replace(answer, body=answer.body + bytes(1000))
        return answer

    seen: Seen = []
    with stand_in(decide) as server, pytest.raises(shardfeed.NetPermanentError, match="more bytes"):
        read(server.url(), seen)
    assert seen == samples[: len(seen)]


def test_more_bytes_than_the_first_range(tar: bytes, samples: Seen) -> None:
    right = ranged(tar)

    def decide(request: Request) -> Answer:
        answer = right(request)
        if request.number == 0:
            return dataclasses.replace(answer, body=answer.body + bytes(1000))
        return answer

    seen: Seen = []
    with stand_in(decide) as server:
        try:
            assert read(server.url(), seen) == samples
        except shardfeed.NetPermanentError:
            assert seen == samples[: len(seen)]


def test_more_bytes_than_announced(tar: bytes, samples: Seen) -> None:
    """What comes after the end of a body must not become the answer to the next request."""
    right = ranged(tar)

    def decide(request: Request) -> Answer:
        answer = right(request)
        headers = {**answer.headers, "Content-Length": str(len(answer.body))}
        extra = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"
        return dataclasses.replace(answer, headers=headers, body=answer.body + extra)

    seen: Seen = []
    with stand_in(decide) as server:
        try:
            assert read(server.url(), seen) == samples
            assert read(server.url()) == samples
        except shardfeed.Error:
            assert seen == samples[: len(seen)]


def test_fewer_bytes_of_a_range_than_asked_for(tar: bytes, samples: Seen) -> None:
    """A server may give less; then the rest is asked for."""
    right = ranged(tar)

    def decide(request: Request) -> Answer:
        assert request.first is not None
        last = min(request.first + 50_000 - 1, len(tar) - 1)
        headers = {**request.headers, "range": f"bytes={request.first}-{last}"}
        return right(dataclasses.replace(request, headers=headers))

    with stand_in(decide) as server:
        assert read(server.url()) == samples
        assert server.firsts == list(range(0, len(tar), 50_000))


def test_range_not_satisfiable(tar: bytes, samples: Seen) -> None:
    for headers in ({}, {"Content-Range": "bytes */100000"}):
        refused = Answer(416, headers)
        seen: Seen = []
        with stand_in(lambda request, r=refused: r if request.number else ranged(tar)(request)) as (
            server
        ):
            with pytest.raises(shardfeed.ChangedError):
                read(server.url(), seen)
            assert len(server.requests) == 2
        assert seen == samples[: len(seen)]
        with stand_in(lambda _, r=refused: r) as server:
            with pytest.raises(shardfeed.Error):
                read(server.url())
            # Some servers say no more of an empty object: it is asked for without a range.
            assert len(server.requests) == (1 if headers else 2)


def test_claimed_sizes_take_no_memory(tar: bytes) -> None:
    """The first answer says that it is 1 GiB, and is not."""
    size = 1 << 30
    headers = {"ETag": '"v1"', "Content-Range": f"bytes 0-{size - 1}/{size}"}
    headers["Content-Length"] = str(size)
    program = r"""
import re, sys
import shardfeed
try:
    print(len(list(shardfeed.Stream(sys.argv[1], retries=0, timeout=10))))
except shardfeed.Error as error:
    print(error.code_name)
# Not ru_maxrss, which begins with what the parent had before the exec.
with open("/proc/self/status") as status:
    print(int(re.search(r"VmHWM:\s*(\d+)", status.read())[1]) // 1024)
"""
    with stand_in(lambda _: Answer(206, headers, tar, cut=len(tar))) as server:
        done = subprocess.run(
            [sys.executable, "-c", program, server.url()],
            capture_output=True,
            text=True,
            check=True,
        )
    said, mebibytes = done.stdout.split()
    assert said in ("NET_TRANSIENT", "NET_PERMANENT")
    assert int(mebibytes) < 256


# ---- Statuses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504, 522, 524, 429])
@pytest.mark.parametrize("number", [0, 1])
def test_faults_that_pass(tar: bytes, samples: Seen, status: int, number: int) -> None:
    """One of the requests fails: the first, or one for the rest."""
    right = ranged(tar)

    def decide(request: Request) -> Answer:
        return Answer(status, {}, b"busy") if request.number == number else right(request)

    with stand_in(decide) as server:
        assert read(server.url()) == samples
        assert server.firsts[number] == server.firsts[number + 1]
        assert len(server.requests) == 3


@pytest.mark.parametrize("status", [503, 429])
@pytest.mark.parametrize("pause", [0, 1])
@pytest.mark.parametrize("number", [0, 1])
def test_waits_as_long_as_the_server_asks(
    tar: bytes, samples: Seen, status: int, pause: int, number: int
) -> None:
    right = ranged(tar)
    times: list[float] = []

    def decide(request: Request) -> Answer:
        times.append(time.monotonic())
        if request.number == number:
            return Answer(status, {"Retry-After": str(pause)}, b"busy")
        return right(request)

    with stand_in(decide) as server:
        assert read(server.url()) == samples
    waited = times[number + 1] - times[number]
    assert pause - 0.01 <= waited < pause + 1


def test_a_pause_holds_for_all_readers_of_a_server(tar: bytes, samples: Seen) -> None:
    right = ranged(tar)
    times: dict[str, list[float]] = {"/a.tar": [], "/b.tar": []}
    asked = threading.Event()

    def decide(request: Request) -> Answer:
        times[request.path].append(time.monotonic())
        if request.number == 0:
            asked.set()
            return Answer(503, {"Retry-After": "1"}, b"busy")
        return right(request)

    with stand_in(decide) as server:
        first: Seen = []
        thread = threading.Thread(target=read, args=(server.url("a.tar"), first))
        thread.start()
        assert asked.wait(5)
        time.sleep(0.2)
        assert read(server.url("b.tar")) == samples
        thread.join()
    assert first == samples
    assert times["/b.tar"][0] - times["/a.tar"][0] > 0.95


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "0"}])
@pytest.mark.parametrize("retries", [0, 2])
def test_busy_for_ever(headers: dict[str, str], retries: int) -> None:
    with stand_in(lambda _: Answer(503, headers, b"busy")) as server:
        with pytest.raises((shardfeed.ThrottledError, shardfeed.NetTransientError)) as caught:
            read(server.url(), retries=retries)
        assert len(server.requests) == 1 + retries
        assert "503" in str(caught.value)
        assert server.url() in str(caught.value)


@pytest.mark.parametrize("pause", ["3600", "9223372036854775807", "Fri, 31 Dec 2060 23:59:59 GMT"])
def test_a_long_pause_is_an_error_at_once(tar: bytes, pause: str) -> None:
    begun = time.monotonic()
    with stand_in(lambda _: Answer(503, {"Retry-After": pause}, b"busy")) as server:
        with pytest.raises(shardfeed.ThrottledError, match=r"pause of \d{4,} s"):
            read(server.url())
        assert len(server.requests) == 1
        right = ranged(tar)
        # Other readers do not wait for it.
        server.decide = right
        assert len(read(server.url())) == SAMPLES
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize("pause", ["soon", "-5", "1.5", "", "99999999999999999999999"])
def test_pauses_that_cannot_be_understood(tar: bytes, samples: Seen, pause: str) -> None:
    right = ranged(tar)

    def decide(request: Request) -> Answer:
        return right(request) if request.number else Answer(503, {"Retry-After": pause})

    with stand_in(decide) as server:
        try:
            assert read(server.url()) == samples
        except shardfeed.ThrottledError:
            assert pause.startswith("999")


@pytest.mark.parametrize("status", [401, 403, 407])
@pytest.mark.parametrize("number", [0, 1])
def test_refused_credentials_are_asked_once(tar: bytes, status: int, number: int) -> None:
    right = ranged(tar)

    def decide(request: Request) -> Answer:
        return Answer(status, {}, b"no") if request.number == number else right(request)

    with stand_in(decide) as server:
        with pytest.raises(shardfeed.AuthError, match=str(status)):
            read(server.url(), retries=7)
        assert len(server.requests) == number + 1


@pytest.mark.parametrize("status", [400, 404, 405, 410, 414, 501, 505, 300, 304, 204, 201, 205])
def test_other_statuses_are_asked_once(tar: bytes, status: int) -> None:
    with stand_in(lambda _: Answer(status)) as server:
        with pytest.raises(shardfeed.NetPermanentError, match=str(status)) as caught:
            read(server.url(), retries=7)
        assert len(server.requests) == 1
        assert server.url() in str(caught.value)


def test_login_page_instead_of_a_shard() -> None:
    page = b"<!DOCTYPE html><html><body><form>Please log in</form></body></html>" + b" " * 3000
    headers = {"Content-Type": "text/html; charset=utf-8"}
    good = ranged(page, '"page"')
    for decide in (lambda _: Answer(200, headers, page), good):
        with stand_in(decide) as server:
            for name in ("t.tar", "t.tar.gz", "t.zip", "t"):
                with pytest.raises(shardfeed.Error):
                    read(server.url(name))
                with pytest.raises(shardfeed.Error):
                    shardfeed.Archive(server.url(name))
                with pytest.raises(shardfeed.Error):
                    list(shardfeed.Members(server.url(name)))
            assert len(server.requests) <= 24  # not tried again


@pytest.mark.parametrize("number", [0, 1])
def test_answers_that_end_in_their_headers(tar: bytes, samples: Seen, number: int) -> None:
    """Wherever that is: in the status, in a name, between \\r and \\n."""
    right = ranged(tar)
    for head in (1, 4, 8, 13, 14, 21, 22, 23, 24, 40, 100):

        def decide(request: Request, head: int = head) -> Answer:
            answer = right(request)
            return dataclasses.replace(answer, head=head) if request.number == number else answer

        with stand_in(decide) as server:
            assert read(server.url()) == samples
            assert len(server.requests) == 3
    cut = dataclasses.replace(Answer(404), head=30)
    with stand_in(lambda _: cut) as server, pytest.raises(shardfeed.NetTransientError):
        read(server.url(), retries=1)


@pytest.mark.parametrize("end", ["fin", "rst"])
def test_connections_that_end_without_an_answer(tar: bytes, samples: Seen, end: str) -> None:
    """The server closes connections that were idle, and one right after it was opened."""
    right = ranged(tar)

    class Rude(StandIn):
        closed = 0

        def _answer(self, connection: Any, head: str, body: bytes) -> bool:
            if len(self.requests) in (0, 1) and self.closed <= len(self.requests):
                self.closed += 1
                return False
            return super()._answer(connection, head, body)

    server = Rude(right)
    try:
        assert read(server.url()) == samples
        assert server.closed == 2
    finally:
        server.close()


def test_refused_connection() -> None:
    begun = time.monotonic()
    with pytest.raises(shardfeed.NetTransientError, match=r"127\.0\.0\.1"):
        read(f"http://127.0.0.1:{free_port()}/t.tar", retries=0)
    assert time.monotonic() - begun < 2


def test_not_http() -> None:
    class Gibberish(StandIn):
        def _answer(self, connection: Any, head: str, body: bytes) -> bool:
            connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n\r\n" + bytes(3000))
            return False

    server = Gibberish(lambda _: Answer())
    try:
        for kind in (shardfeed.Stream, shardfeed.Members):
            with pytest.raises(shardfeed.Error):
                list(kind(server.url(), retries=1))
    finally:
        server.close()


def test_endless_headers() -> None:
    """The headers of one answer are bounded."""
    answer = Answer(200, {f"X-{n}": "x" * 1000 for n in range(2000)})
    with stand_in(lambda _: answer) as server, pytest.raises(shardfeed.Error):
        read(server.url(), retries=0)


# ---- Redirects ----------------------------------------------------------------------------------


def to(url: str, status: int = 302, body: bytes = b"") -> Answer:
    return Answer(status, {"Location": url}, body)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_to_another_server(tar: bytes, samples: Seen, status: int) -> None:
    """Where the object is now is remembered; the credentials stay at the server of the URL."""
    with stand_in(ranged(tar)) as server:
        with stand_in(lambda _: to(server.url("other.tar"), status, b"moved")) as before:
            assert read(before.url(user="reader:secret@")) == samples
            assert len(server.requests) > len(before.requests) == 1
            assert all("authorization" in request.headers for request in before.requests)
        assert not any("authorization" in request.headers for request in server.requests)
        assert {request.path for request in server.requests} == {"/other.tar"}


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_the_place_of_a_redirect_expires(tar: bytes, samples: Seen, status: int) -> None:
    """As of a store that redirects to signed addresses: the URL that was given is asked again."""
    places = [f"place{number}.tar" for number in range(3)]

    def serve(request: Request) -> Answer:
        # The first place serves the first request alone.
        return (
            ranged(tar)(request)
            if places[0] not in request.path
            else (ranged(tar)(request) if request.number == 0 else Answer(status, {}))
        )

    with (
        stand_in(serve) as server,
        stand_in(lambda request: to(server.url(places[request.number]), 302)) as before,
    ):
        assert read(before.url()) == samples
        assert len(before.requests) == 2


def test_redirect_loop() -> None:
    with stand_in(lambda request: to(request.path)) as server:
        with pytest.raises(shardfeed.NetPermanentError, match="redirect"):
            read(server.url())
        assert len(server.requests) == 11


@pytest.mark.parametrize("form", ["file://{}", "file://localhost{}", "FILE:{}"])
def test_redirect_to_a_local_file(tar: bytes, tmp_path: Path, form: str) -> None:
    (tmp_path / "t.tar").write_bytes(tar)
    with stand_in(lambda _: to(form.format(tmp_path / "t.tar"))) as server:
        with pytest.raises(shardfeed.NetPermanentError, match="redirect"):
            read(server.url())
        assert len(server.requests) == 1


@pytest.mark.parametrize("scheme", ["ftp", "dict", "gopher", "scp", "pipe"])
def test_redirect_to_another_scheme(scheme: str) -> None:
    with stand_in(lambda _: to(f"{scheme}://127.0.0.1:{free_port()}/t.tar")) as server:
        with pytest.raises(shardfeed.NetPermanentError, match="redirect"):
            read(server.url())
        assert len(server.requests) == 1


def test_redirect_from_https_to_http(tar: bytes, certificates: Certificates) -> None:
    with stand_in(ranged(tar)) as plain:
        with stand_in(lambda _: to(plain.url()), certificates) as server:
            with pytest.raises(shardfeed.NetPermanentError, match="redirect"):
                read(server.url(), ca_file=str(certificates.ca))
            assert len(server.requests) == 1
        assert plain.requests == []


def test_redirect_from_http_to_https(tar: bytes, samples: Seen, certificates: Certificates) -> None:
    with stand_in(ranged(tar), certificates) as server, stand_in(ranged(b"")) as plain:
        plain.decide = lambda _: to(server.url())
        assert read(plain.url(), ca_file=str(certificates.ca)) == samples


@pytest.mark.parametrize("status", [300, 301, 302, 307])
@pytest.mark.parametrize("size", [10, 100_000])
def test_redirect_to_nowhere(status: int, size: int) -> None:
    """It has a body and no Location."""
    with stand_in(lambda _: Answer(status, {}, b"x" * size)) as server:
        with pytest.raises(shardfeed.NetPermanentError, match=str(status)):
            read(server.url(), timeout=3)
        assert len(server.requests) == 1


# ---- URLs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["\r\nX-Evil: 1", "\n", "\r", "a b", "\x01", "\x7f"])
def test_urls_that_would_inject_a_header(tar: bytes, text: str) -> None:
    with stand_in(ranged(tar)) as server:
        with pytest.raises(shardfeed.UsageError):
            read([server.url(f"t.tar{text}")])
        assert server.requests == []


def test_credentials_with_a_line_end_in_them(tar: bytes) -> None:
    with stand_in(ranged(tar)) as server:
        with contextlib.suppress(shardfeed.Error):
            read(server.url(user="a:b%0d%0aX-Evil:%201@"))
        assert not any("x-evil" in request.headers for request in server.requests)


# ---- Formats ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w:bz2"])
@pytest.mark.parametrize("tag", ['"v1"', None])
def test_cut_compressed_tar(samples: Seen, tmp_path: Path, mode: str, tag: str | None) -> None:
    import random

    noise = random.Random(1)
    members = [(name, noise.randbytes(3000)) for name, _ in numbered(0, 50)]
    path = write_tar(tmp_path / "t.tar.x", members, mode=mode)
    with tarfile.open(path) as tar:
        assert len(tar.getmembers()) == 100
    data = path.read_bytes()
    expected = read(path)
    for place in (HEAD + 1, len(data) - 1):
        with stand_in(Once(ranged(data, tag), place, "fin")) as server:
            assert read(server.url("t.tar.x")) == expected


def test_cut_answers_under_an_archive() -> None:
    data = zip_of(100, 3000)
    expected = [(b"%d" % n).ljust(3000, b".") for n in range(100)]
    right = ranged(data)
    cuts = {1, 3, 4}

    def decide(request: Request) -> Answer:
        answer = right(request)
        return dataclasses.replace(answer, cut=1000) if request.number in cuts else answer

    with stand_in(decide) as server:
        archive = shardfeed.Archive(server.url("t.zip"), retries=3)
        assert [bytes(view) for view in archive.read_many(range(100))] == expected
        assert [archive.read(n) for n in range(99, -1, -1)] == expected[::-1]
        assert len(server.requests) > max(cuts)


def test_wrong_ranges_under_an_archive() -> None:
    data = zip_of(100, 3000)
    for what in WRONG:
        right = ranged(data)
        with stand_in(right) as server:
            archive = shardfeed.Archive(server.url("t.zip"), retries=1)

            def decide(request: Request, what: str = what, right: Decide = right) -> Answer:
                return wrong(what, right(request), request, data)

            server.decide = decide
            with pytest.raises(PERMANENT_OR_CHANGED):
                archive.read_many(range(30, 60))
            server.decide = right
            assert archive.read(40) == b"40".ljust(3000, b".")
