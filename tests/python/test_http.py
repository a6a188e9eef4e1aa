"""Shards on an HTTP server: what is read is what a local file would give."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import os
import pickle
import random
import re
import socket
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from archives import images, write_archive, write_zip
from conftest import numbered, write_tar
from forked_readers import campaign, reads_right
from http_servers import Answer, Nginx, Request, ranged, stand_in
from test_fork import child_status

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

SAMPLES = 100
FORMS = ["tar", "tar.gz", "zip"]


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    """With t.tar, t.tar.gz and t.zip of the same 100 samples, i.* of 40 images, and "empty"."""
    server = Nginx(tmp_path_factory.mktemp("nginx"))
    members = numbered(0, SAMPLES, 3000)
    write_tar(server.root / "t.tar", members)
    write_tar(server.root / "t.tar.gz", members, mode="w:gz")
    write_zip(server.root / "t.zip", members)
    for form in ("zip", "deflated.zip", "tar", "tar.gz"):
        write_archive(server.root / "i", images(40), form)
    (server.root / "empty.tar").touch()
    write_tar(server.root / "none.tar", [])
    for shard in range(3):
        write_tar(server.root / f"s-{shard}.tar", numbered(shard * 200, 200, 3000))
    yield server
    server.stop()


def content(samples: Any) -> list[tuple[str, dict[str, bytes]]]:
    return [(s.key, {name: bytes(data) for name, data in s.items()}) for s in samples]


# ---- The same as from a file --------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_stream(nginx: Nginx, form: str) -> None:
    expected = content(shardfeed.Stream(nginx.root / f"t.{form}"))
    assert len(expected) == SAMPLES
    stream = shardfeed.Stream(nginx.url(f"t.{form}"))
    for _ in range(2):  # epochs
        samples = list(stream)
        assert content(samples) == expected
        assert {sample.shard for sample in samples} == {nginx.url(f"t.{form}")}


def test_many_shards_in_lanes(nginx: Nginx) -> None:
    options: dict[str, Any] = {"lanes": 3, "shuffle": 50, "shuffle_shards": True, "seed": 5}
    expected = content(shardfeed.Stream(f"{nginx.root}/s-{{0..2}}.tar", **options))
    assert len(expected) == 600
    assert content(shardfeed.Stream(nginx.url("s-{0..2}.tar"), **options)) == expected


def test_batches(nginx: Nginx) -> None:
    def keys(url: str) -> list[list[str]]:
        return [batch.sample_keys for batch in shardfeed.Stream(url).batches(7, decode="txt:bytes")]

    assert keys(nginx.url("t.tar")) == keys(str(nginx.root / "t.tar"))


@pytest.mark.parametrize("form", ["tar", "zip"])
def test_dataset(nginx: Nginx, form: str) -> None:
    local = content(shardfeed.Dataset([nginx.root / f"t.{form}"], index="memory"))
    with shardfeed.Dataset([nginx.url(f"t.{form}")], index="memory") as data:
        assert len(data) == SAMPLES
        order = list(range(SAMPLES))
        random.Random(1).shuffle(order)
        assert content(data[n] for n in order) == [local[n] for n in order]
        assert content(data.get_many(order)) == [local[n] for n in order]
        assert content(data) == local


def test_dataset_of_many_shards(nginx: Nginx) -> None:
    with shardfeed.Dataset(nginx.url("s-{0..2}.tar"), index="memory") as data:
        assert len(data) == 600
        assert [data[n].key for n in (599, 0, 200, 199)] == ["000599", "000000", "000200", "000199"]


@pytest.mark.parametrize("form", ["zip", "deflated.zip", "tar", "tar.gz"])
def test_archive(nginx: Nginx, form: str) -> None:
    members = images(40)
    with shardfeed.Archive(nginx.url(f"i.{form}")) as archive:
        assert archive.names() == [name for name, _ in members]
        assert [archive.read(n) for n in range(39, -1, -1)] == [data for _, data in members[::-1]]
        assert archive.read("img_00019.png") == archive[19].read() == members[19][1]
        order = [39, 0, 7, 7, 19, 20, 21, -1]
        assert [bytes(v) for v in archive.read_many(order)] == [members[n][1] for n in order]
        with archive[29].open() as file:
            file.seek(50_000)
            assert file.read(10) == b"x" * 10
        copy = pickle.loads(pickle.dumps(archive))
        assert copy.read(9) == members[9][1]


@pytest.mark.parametrize("form", ["tar", "tar.gz"])
def test_members(nginx: Nginx, form: str) -> None:
    def members(url: str | Path) -> list[tuple[str, bytes]]:
        return [(member.name, member.read()) for member in shardfeed.Members(url)]

    assert members(nginx.url(f"t.{form}")) == members(nginx.root / f"t.{form}")


@pytest.mark.parametrize("name", ["empty.tar", "none.tar"])
def test_shards_without_samples(nginx: Nginx, name: str) -> None:
    def outcome(url: str | Path) -> object:
        try:
            return content(shardfeed.Stream([url, url]))
        except shardfeed.Error as error:
            return type(error)

    assert outcome(nginx.url(name)) == outcome(nginx.root / name)
    assert outcome(nginx.url(f"norange/{name}")) == outcome(nginx.root / name)


def test_archive_without_members(nginx: Nginx) -> None:
    with zipfile.ZipFile(nginx.root / "none.zip", "w"):
        pass
    assert len(shardfeed.Archive(nginx.url("none.zip"))) == 0
    assert len(shardfeed.Archive(nginx.url("none.tar"))) == 0


def test_the_examples_of_the_page(nginx: Nginx, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs/http.md").read_text()
    first, second = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    exec(compile(first.replace("https://host/", nginx.url("")), "docs/http.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 601
    assert lines[-1] == str(len(images(40)[0][1]))
    exec(compile(second.replace("https://host/", nginx.url("")), "docs/http.md", "exec"), {})
    samples, size = map(int, capsys.readouterr().out.split())
    assert (samples, size) == (200, (nginx.root / "s-0.tar").stat().st_size)


def test_every_size_around_the_first_request(nginx: Nginx) -> None:
    for size in (65_535, 65_536, 65_537, 131_072, 131_073):
        data = random.Random(size).randbytes(size - 2048)
        path = write_tar(nginx.root / "sized.tar", [("1.bin", data)])
        with open(path, "r+b") as file:
            file.truncate(size)
        expected = [("1", {"bin": data})]
        for name in ("sized.tar", "norange/sized.tar"):
            assert content(shardfeed.Stream(nginx.url(name))) == expected, size
        assert shardfeed.Archive(nginx.url("sized.tar")).read(0) == data


# ---- Servers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["tar", "tar.gz"])
def test_tar_from_a_server_without_ranges(nginx: Nginx, form: str) -> None:
    expected = content(shardfeed.Stream(nginx.root / f"t.{form}"))
    assert content(shardfeed.Stream(nginx.url(f"norange/t.{form}"))) == expected
    members = [member.read() for member in shardfeed.Members(nginx.url(f"norange/t.{form}"))]
    assert len(members) == 2 * SAMPLES


def test_zip_from_a_server_without_ranges(nginx: Nginx) -> None:
    url = nginx.url("norange/t.zip")
    with pytest.raises(shardfeed.UnsupportedError, match="help: ") as caught:
        list(shardfeed.Stream(url))
    assert url in str(caught.value)
    # As from a pipe it is read into memory.
    archive = shardfeed.Archive(nginx.url("norange/i.zip"))
    assert [archive.read(n) for n in range(40)] == [data for _, data in images(40)]


def test_dataset_from_a_server_without_ranges(nginx: Nginx) -> None:
    for form in ("tar", "zip"):
        url = nginx.url(f"norange/t.{form}")
        with pytest.raises(shardfeed.UsageError, match="help: ") as caught:
            shardfeed.Dataset([url], index="memory")
        assert url in str(caught.value)


def test_server_that_compresses(nginx: Nginx) -> None:
    """The bytes of the shard are wanted, and no others are asked for."""
    expected = content(shardfeed.Stream(nginx.root / "t.tar"))
    assert content(shardfeed.Stream(nginx.url("gz/t.tar"))) == expected


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("location", ["r302", "r301"])
def test_redirect(nginx: Nginx, form: str, location: str) -> None:
    url = nginx.url(f"{location}/t.{form}")
    samples = list(shardfeed.Stream(url))
    assert content(samples) == content(shardfeed.Stream(nginx.root / f"t.{form}"))
    assert {sample.shard for sample in samples} == {url}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_https(nginx: Nginx, host: str) -> None:
    ca = str(nginx.certificates.ca)
    expected = content(shardfeed.Stream(nginx.root / "t.tar"))
    for form in FORMS:
        assert content(shardfeed.Stream(nginx.https(f"t.{form}", host), ca_file=ca)) == expected
    archive = shardfeed.Archive(nginx.https("i.zip", host), ca_file=ca)
    assert [bytes(view) for view in archive.read_many(range(40))] == [d for _, d in images(40)]
    data = shardfeed.Dataset([nginx.https("t.tar", host)], ca_file=ca, index="memory")
    assert content(data) == expected
    members = shardfeed.Members(nginx.https("t.tar", host), ca_file=ca)
    assert len([member.read() for member in members]) == 2 * SAMPLES


def test_https_with_a_ca_that_is_not_known(nginx: Nginx) -> None:
    """Also after others have connected: a verified connection is not used for those who do not."""
    url = nginx.https("t.tar")
    ca = str(nginx.certificates.ca)
    assert len(list(shardfeed.Stream(url, ca_file=ca))) == SAMPLES
    before = len(nginx.logged())
    for read in (
        lambda: list(shardfeed.Stream(url)),
        lambda: shardfeed.Archive(url),
        lambda: shardfeed.Dataset([url], index="memory"),
        lambda: list(shardfeed.Members(url)),
    ):
        begun = time.monotonic()
        with pytest.raises(shardfeed.TLSError, match="ca_file") as caught:
            read()
        assert url in str(caught.value)
        assert time.monotonic() - begun < 1  # not tried again
    assert len(nginx.logged()) == before
    assert len(list(shardfeed.Stream(url, ca_file=ca))) == SAMPLES


def test_https_with_a_wrong_ca_file(nginx: Nginx, tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("no certificate\n")
    for path in (tmp_path / "missing.pem", tmp_path / "bad.pem"):
        with pytest.raises(shardfeed.TLSError):
            list(shardfeed.Stream(nginx.https("t.tar"), ca_file=str(path)))


def test_https_to_another_name(nginx: Nginx) -> None:
    """The certificate is of localhost and 127.0.0.1 alone."""
    with pytest.raises(shardfeed.TLSError):
        list(
            shardfeed.Stream(nginx.https("t.tar", "127.0.0.2"), ca_file=str(nginx.certificates.ca))
        )


def test_environment_does_not_turn_verification_off(
    nginx: Nginx, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SSL_NO_VERIFY", "GIT_SSL_NO_VERIFY", "CURL_INSECURE", "PYTHONHTTPSVERIFY"):
        monkeypatch.setenv(name, "0" if name.startswith("PYTHON") else "1")
    with pytest.raises(shardfeed.TLSError):
        list(shardfeed.Stream(nginx.https("t.tar")))


def test_redirect_from_https_to_http(nginx: Nginx) -> None:
    with pytest.raises(shardfeed.NetPermanentError, match="redirect"):
        list(shardfeed.Stream(nginx.https("down/t.tar"), ca_file=str(nginx.certificates.ca)))


# ---- Errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [shardfeed.Stream, shardfeed.Members, shardfeed.Archive])
def test_missing_object(nginx: Nginx, kind: Callable[[str], Any]) -> None:
    url = nginx.url("nothing.tar")
    before = len(nginx.logged())
    with pytest.raises(shardfeed.NetPermanentError, match="404") as caught:
        list(kind(url))
    assert str(caught.value).startswith(url)
    assert "help: " in str(caught.value)
    assert len(nginx.logged()) - before == 1


def test_missing_objects_are_counted(nginx: Nginx) -> None:
    urls = [nginx.url("t.tar"), nginx.url("nothing.tar"), nginx.url("s-1.tar")]
    skips: list[shardfeed.Skip] = []
    stream = shardfeed.Stream(urls, on_error="skip_shard", log=None, on_skip=skips.append)
    assert len(list(stream)) == SAMPLES + 200
    assert stream.stats()["skipped_shards"] == 1
    (skip,) = skips
    assert skip.url == urls[1]
    assert isinstance(skip.error, shardfeed.NetPermanentError)


def test_only_missing_objects_are_an_error(nginx: Nginx) -> None:
    stream = shardfeed.Stream(nginx.url("gone-{0..3}.tar"), on_error="skip_shard", log=None)
    with pytest.raises(shardfeed.NetPermanentError, match="404"):
        list(stream)


def test_credentials(nginx: Nginx) -> None:
    def url(user: str) -> str:
        return nginx.url("auth/t.tar").replace("://", f"://{user}@")

    samples = list(shardfeed.Stream(url("reader:pass%25word")))
    assert len(samples) == SAMPLES
    assert {sample.shard for sample in samples} == {nginx.url("auth/t.tar")}
    for wrong in ("reader:sesame", "opener:sesame", "sesame"):
        with pytest.raises(shardfeed.AuthError, match="401") as caught:
            list(shardfeed.Stream(url(wrong)))
        assert nginx.url("auth/t.tar") in str(caught.value)
        assert "sesame" not in str(caught.value)
    with pytest.raises(PermissionError):
        list(shardfeed.Stream(nginx.url("auth/t.tar")))


@pytest.mark.parametrize(
    "place",
    [
        "http://reader:sesame@127.0.0.1:{port}/nothing.tar?signature=sesame#sesame",
        "http://reader:sesame@127.0.0.1:{port}/t.tar/x y?signature=sesame",
        "http://reader:sesame@127.0.0.1:1/t.tar?signature=sesame",
        "http://reader:sesame@127.0.0.1:99999/t.tar?signature=sesame",
        "https://reader:sesame@127.0.0.1:{tls}/t.tar?signature=sesame",
        "https://reader:sesame@127.0.0.1:{port}/t.tar?signature=sesame",
        "http://reader:sesame@nothing.invalid/t.tar?signature=sesame",
    ],
)
def test_secrets_are_not_shown(nginx: Nginx, capfd: pytest.CaptureFixture[str], place: str) -> None:
    url = place.format(port=nginx.ports[0], tls=nginx.ports[1])
    options: dict[str, Any] = {"retries": 0, "timeout": 10}
    shown = []
    for read in (
        lambda: list(shardfeed.Stream([url], **options)),
        lambda: list(shardfeed.Stream([url], on_error="skip_shard", **options)),
        lambda: shardfeed.Archive(url, **options),
        lambda: shardfeed.Dataset([url], index="memory", **options),
        lambda: list(shardfeed.Members(url, **options)),
    ):
        with pytest.raises(shardfeed.Error) as caught:
            read()
        shown.append(str(caught.value))
    shown.append(repr(shardfeed.Stream([url], **options)))
    said = capfd.readouterr()
    assert "sesame" not in "".join([*shown, said.out, said.err])


# ---- Going on -----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"lanes": 3, "shuffle": 30, "shuffle_shards": True}])
def test_resumes_with_the_next_sample(nginx: Nginx, options: dict[str, Any]) -> None:
    url = nginx.url("s-{0..2}.tar")
    expected = content(shardfeed.Stream(url, **options))
    assert len(expected) == 600
    for stop in (0, 1, 199, 200, 350, 600):
        stream = shardfeed.Stream(url, **options)
        iterator = iter(stream)
        begin = content(next(iterator) for _ in range(stop))
        state = json.loads(json.dumps(stream.state_dict()))
        other = shardfeed.Stream(url, **options)
        other.load_state_dict(state)
        assert begin + content(other) == expected


def test_resuming_does_not_read_from_the_start(tmp_path: Path) -> None:
    """Three shards of 3 MB; it stops at nine tenths of the second."""
    shards = [
        write_tar(tmp_path / "t.tar", numbered(n * 1200, 1200, 1000)).read_bytes() for n in range(3)
    ]
    decide = {f"/{n}.tar": ranged(shard, f'"{n}"') for n, shard in enumerate(shards)}
    with stand_in(lambda request: decide[request.path](request)) as server:
        urls = [server.url(f"{n}.tar") for n in range(3)]
        stream = shardfeed.Stream(urls)
        iterator = iter(stream)
        begin = [next(iterator).key for _ in range(1200 + 1080)]
        state = stream.state_dict()
        stream.close()
        server.requests.clear()
        other = shardfeed.Stream(urls)
        other.load_state_dict(state)
        keys = begin + [sample.key for sample in other]
        assert keys == [f"{n:06d}" for n in range(3600)]

        def asked(path: str) -> int:
            """Bytes of this shard, without the first answer, which tells its size and version."""
            size = len(shards[int(path[1])])
            ranges = [r for r in server.requests if r.path == path and r.first]
            return sum((size if r.last is None else r.last + 1) - (r.first or 0) for r in ranges)

        assert asked("/0.tar") == 0
        # A tar is resumed at most 256 samples before.
        assert len(shards[1]) / 10 < asked("/1.tar") < len(shards[1]) * (120 + 256 + 30) / 1200
        assert asked("/2.tar") > len(shards[2]) * 0.9
        assert not [r for r in server.requests if r.first is None]


@pytest.mark.parametrize("dated", [False, True])
def test_resuming_finds_another_version(tmp_path: Path, dated: bool) -> None:
    """Of the same size: the tag tells, with or without a date."""
    versions = [
        write_tar(tmp_path / "t.tar", numbered(n, 1200, 1000)).read_bytes() for n in (0, 2000)
    ]

    def server_of(number: int) -> Callable[[Request], Answer]:
        right = ranged(versions[number], f'"v{number}"')
        date = {"Last-Modified": f"Mon, 0{number + 1} Jan 2024 00:00:00 GMT"} if dated else {}
        return lambda request: dataclasses.replace(
            right(request), headers={**right(request).headers, **date}
        )

    with stand_in(server_of(0)) as server:
        stream = shardfeed.Stream(server.url())
        iterator = iter(stream)
        for _ in range(1080):
            next(iterator)
        state = stream.state_dict()
        server.decide = server_of(1)
        other = shardfeed.Stream(server.url())
        other.load_state_dict(state)
        with pytest.raises(shardfeed.ChangedError):
            list(other)


# ---- Waiting ------------------------------------------------------------------------------------


def stalls(data: bytes, cut: int, number: int = 1) -> Any:
    """Right answers; that to request `number` stalls after `cut` bytes of its body."""
    right = ranged(data)

    def decide(request: Request) -> Any:
        answer = right(request)
        if request.number != number:
            return answer
        return dataclasses.replace(answer, cut=cut, end="stall")

    return decide


@pytest.fixture(scope="module")
def tar(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("stalled") / "t.tar"
    return write_tar(path, numbered(0, SAMPLES, 3000)).read_bytes()


@pytest.mark.parametrize("way", ["cancel", "close"])
@pytest.mark.parametrize(
    ("kind", "number", "cut"),
    [
        (shardfeed.Stream, 0, 0),
        (shardfeed.Stream, 0, 1000),
        (shardfeed.Stream, 1, 0),
        (shardfeed.Stream, 1, 100_000),
        (shardfeed.Members, 1, 0),  # request 0 is made before there is anything to close
        (shardfeed.Members, 1, 100_000),
    ],
)
def test_another_thread_ends_what_waits(
    tar: bytes, way: str, kind: Any, number: int, cut: int
) -> None:
    with stand_in(stalls(tar, cut, number)) as server:
        opened = kind(server.url())
        errors: list[BaseException] = []

        def work() -> None:
            try:
                for member in opened:
                    if kind is shardfeed.Members:
                        member.read()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        server.wait_for_stall()
        time.sleep(0.1)
        assert thread.is_alive()
        begun = time.monotonic()
        getattr(opened, way)()
        thread.join(5)
        assert not thread.is_alive()
        assert time.monotonic() - begun < 2
        (error,) = errors
        assert isinstance(error, (shardfeed.CancelledError, shardfeed.UsageError))


@pytest.mark.parametrize("way", ["cancel", "close"])
@pytest.mark.parametrize("stage", ["connect", "TLS", "answer"])
def test_a_server_that_says_nothing_does_not_hold_a_cancel(stage: str, way: str) -> None:
    with contextlib.ExitStack() as sockets:
        backlog = 0 if stage == "connect" else 8
        server = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=backlog))
        for _ in range(3 if stage == "connect" else 0):  # then it answers nobody
            filler = sockets.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(server.getsockname())
        scheme = "https" if stage == "TLS" else "http"
        stream = shardfeed.Stream(f"{scheme}://127.0.0.1:{server.getsockname()[1]}/a.tar")
        called: list[float] = []

        def call() -> None:
            called.append(time.monotonic())
            getattr(stream, way)()

        timer = threading.Timer(0.3, call)
        timer.start()
        with pytest.raises(shardfeed.CancelledError):
            next(iter(stream))
        late = time.monotonic() - called[0]
        timer.join()
        print(f"{stage}, {way}: {late * 1000:.1f} ms")
        assert late < 2  # 0.1 on a machine that does nothing else


def test_cancel_while_it_waits_for_another_try() -> None:
    with stand_in(lambda _: Answer(503, {"Retry-After": "30"})) as server:
        stream = shardfeed.Stream(server.url())
        threading.Timer(0.3, stream.cancel).start()
        begun = time.monotonic()
        with pytest.raises(shardfeed.CancelledError):
            list(stream)
        assert time.monotonic() - begun < 2


def test_timeout_of_a_stream_ends_one_call(tar: bytes) -> None:
    """The next call goes on where it was, on the same connection."""
    with stand_in(stalls(tar, 100_000)) as server:
        iterator = iter(shardfeed.Stream(server.url(), timeout=0.3))
        seen = []
        begun = time.monotonic()
        with pytest.raises(shardfeed.TimeoutError):
            seen.extend(sample.key for sample in iterator)
        assert 0.25 < time.monotonic() - begun < 3
        server.go_on()
        seen.extend(sample.key for sample in iterator)
        assert seen == [f"{n:06d}" for n in range(SAMPLES)]
        assert len(server.requests) == 2


@pytest.mark.parametrize("kind", [shardfeed.Archive, shardfeed.Dataset])
@pytest.mark.parametrize(("number", "cut"), [(0, 0), (0, 1000), (1, 100)])
def test_timeout_of_an_opening(tar: bytes, kind: Any, number: int, cut: int) -> None:
    with stand_in(stalls(tar, cut, number)) as server:
        begun = time.monotonic()
        options = {"index": "memory"} if kind is shardfeed.Dataset else {}
        with pytest.raises(shardfeed.TimeoutError):
            kind(server.url(), timeout=0.3, **options)
        assert 0.25 < time.monotonic() - begun < 3


# ---- Processes and threads ----------------------------------------------------------------------


def test_threads_share_an_archive(nginx: Nginx) -> None:
    archive = shardfeed.Archive(nginx.url("i.zip"))
    wrong: list[object] = []

    def work(seed: int) -> None:
        try:
            if not reads_right(archive, seed):
                wrong.append(seed)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("form", ["zip", "tar"])
def test_children_read_the_archive_of_their_parent(nginx: Nginx, form: str, secure: bool) -> None:
    """It reads at the same time, in two threads, which are in the middle of it at each fork."""
    make_url = nginx.https if secure else nginx.url
    options = {"ca_file": str(nginx.certificates.ca)} if secure else {}
    archive = shardfeed.Archive(make_url(f"i.{form}"), retries=0, **options)
    # tests/faults/forks.sh does thousands.
    count = campaign(archive, 100, seconds=1.5 if secure else 0.3)
    assert count > 0  # a loaded machine has no time for more


def test_children_read_the_dataset_of_their_parent(nginx: Nginx) -> None:
    data = shardfeed.Dataset(nginx.url("s-{0..2}.tar"), index="memory", retries=0)
    expected = [f"{n:06d}" for n in range(600)]

    def body() -> int:
        return 0 if [data[n].key for n in range(0, 600, 7)] == expected[::7] else 1

    data[5]
    for _ in range(3):
        assert child_status(body) == 0
        assert [data[n].key for n in range(0, 600, 11)] == expected[::11]


@pytest.mark.parametrize("secure", [False, True])
def test_a_child_that_ends_leaves_the_streams_of_its_parent_alone(
    nginx: Nginx, secure: bool
) -> None:
    """Neither the connections in use nor those that wait: one retry would show."""
    make_url = nginx.https if secure else nginx.url
    options: dict[str, Any] = {"retries": 0}
    if secure:
        options["ca_file"] = str(nginx.certificates.ca)
    expected = [f"{n:06d}" for n in range(600)]
    stream = shardfeed.Stream(make_url("s-{0..2}.tar"), **options)
    iterator = iter(stream)
    keys = [next(iterator).key for _ in range(60)]

    def body() -> int:
        nonlocal stream, iterator
        with pytest.raises(shardfeed.ForkedError):
            list(iterator)
        del stream, iterator
        gc.collect()
        # And one of its own to the same server.
        again = shardfeed.Stream(make_url("s-{0..2}.tar"), **options)
        return 0 if [sample.key for sample in again] == expected else 1

    for _ in range(2):
        assert child_status(body) == 0
        keys += [next(iterator).key for _ in range(60)]
    keys += [sample.key for sample in iterator]
    assert keys == expected


def test_connections_are_used_again(nginx: Nginx, tmp_path: Path) -> None:
    """A hundred reads of an archive do not take a hundred ports."""
    archive = shardfeed.Archive(nginx.url("i.zip"))

    def sockets() -> int:
        return sum(
            os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
            for fd in os.listdir("/proc/self/fd")
            if os.path.islink(f"/proc/self/fd/{fd}")
        )

    archive.read(39)
    before = sockets()
    for number in range(200):
        archive.read(number % 40)
    assert sockets() <= before + 1
