"""Shards on the Hugging Face Hub: a stand-in answers as documented, a second host has the data."""

from __future__ import annotations

import json
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from http_servers import Answer, Decide, Request, StandIn, ranged, stand_in

SAMPLES = 60
TOKEN = "hf_hush"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def fault(status: int, code: str, said: str = "as the test says", **more: str) -> Answer:
    return Answer(status, {"X-Error-Code": code, "X-Error-Message": said, **more}, b"{}")


@dataclass
class Hub:
    """The hub and the host that it sends its clients to. Repositories are private to TOKEN."""

    data: bytes
    small: set[str] = field(default_factory=set)  # files that the hub gives itself
    paths: list[str] = field(default_factory=list)
    page: int = 1000  # entries of a list
    instead: Decide | None = None
    expired: bool = False  # links that were given before
    links: int = 0
    cdn: StandIn | None = None
    lists: int = 0

    def hub(self, request: Request) -> Answer:
        if self.instead:
            return self.instead(request)
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return fault(401, "RepoNotFound", "Repository not found")
        path, _, query = request.path.partition("?")
        if path.startswith("/api/"):
            return self.list(request, path, query)
        assert "/resolve/" in path, path
        name = urllib.parse.unquote(path.split("/resolve/", 1)[1].split("/", 1)[1])
        if name in self.small:
            place = "/api/resolve-cache" + path
            return Answer(307, {"Location": place})
        if name not in self.paths:
            return fault(404, "EntryNotFound")
        assert self.cdn
        self.links += 1
        place = self.cdn.url(f"blob?X-Amz-Signature=hush&link={self.links}")
        return Answer(302, {"Location": place, "X-Repo-Commit": COMMIT, "X-Linked-Etag": '"sha"'})

    def list(self, request: Request, path: str, query: str) -> Answer:
        if path.startswith("/api/resolve-cache/"):
            return ranged(self.data, '"git"')(request)
        self.lists += 1
        folder = urllib.parse.unquote(path.split("/tree/", 1)[1].partition("/")[2])
        values = dict(urllib.parse.parse_qsl(query))
        assert values["recursive"] == "true"
        inside = [p for p in sorted(self.paths) if not folder or p.startswith(folder + "/")]
        folders = {p.rpartition("/")[0] for p in inside} - {""}
        entries = [{"type": "directory", "path": p} for p in sorted(folders)]
        entries += [{"type": "file", "path": p, "size": 1, "oid": "x"} for p in inside]
        first = int(values.get("cursor", 0))
        headers = {}
        if first + self.page < len(entries):
            url = (
                f"http://{request.headers['host']}{path}?recursive=true&cursor={first + self.page}"
            )
            headers["Link"] = f'<{url}>; rel="next"'
        return Answer(200, headers, json.dumps(entries[first : first + self.page]).encode())

    def blob(self, request: Request) -> Answer:
        if "authorization" in request.headers:
            return Answer(400)
        if self.expired and f"link={self.links}" not in request.path:
            return Answer(403, {}, b"<Error><Code>AccessDenied</Code></Error>")
        return ranged(self.data, '"cdn"')(request)


@dataclass(frozen=True)
class Servers:
    hub: Hub
    front: StandIn


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("tar") / "a.tar"
    return write_tar(path, numbered(0, SAMPLES, 10_000)).read_bytes()


@pytest.fixture
def servers(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_ENDPOINT", "HF_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    hub = Hub(data, paths=["data/a.tar", "data/b.tar", "data/sub/c.zip", "README.md", "z/d.tar"])
    with stand_in(hub.hub) as front, stand_in(hub.blob) as cdn:
        hub.cdn = cdn
        yield Servers(hub, front)


def stream(servers: Servers, url: str = "hf://datasets/o/n/data/a.tar", **options: Any) -> Any:
    endpoint = servers.front.url("").rstrip("/")
    return shardfeed.Stream(url, **{"hf_endpoint": endpoint, "hf_token": TOKEN, **options})


def shards(stream: Any) -> list[str]:
    return list(dict.fromkeys(sample.shard for sample in stream))


def refusal(servers: Servers, kind: type[shardfeed.Error], match: str, **options: Any) -> str:
    with pytest.raises(kind, match=match) as caught:
        list(stream(servers, **options))
    assert "hush" not in str(caught.value)
    return str(caught.value)


def test_the_token_stays_with_the_hub(servers: Servers) -> None:
    # The second host refuses requests that have it.
    assert len(list(stream(servers, range_size="256KiB", connections=4))) == SAMPLES
    first = servers.front.requests[0]
    assert first.path == "/datasets/o/n/resolve/main/data/a.tar"
    assert servers.hub.links == 1  # the link is used again


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("hf://o/n/data/a.tar", "/o/n/resolve/main/"),
        ("hf://models/o/n/data/a.tar", "/o/n/resolve/main/"),
        ("hf://spaces/o/n/data/a.tar", "/spaces/o/n/resolve/main/"),
        ("hf://datasets/o/n@v1.0/data/a.tar", "/datasets/o/n/resolve/v1.0/"),
        ("hf://datasets/o/n@a%2Fb/data/a.tar", "/datasets/o/n/resolve/a%2Fb/"),
        (
            "hf://datasets/o/n@refs/convert/x/data/a.tar",
            "/datasets/o/n/resolve/refs%2Fconvert%2Fx/",
        ),
    ],
)
def test_repositories_and_revisions(servers: Servers, url: str, path: str) -> None:
    assert len(list(stream(servers, url))) == SAMPLES
    assert servers.front.requests[0].path == path + "data/a.tar"


def test_special_names(servers: Servers) -> None:
    name = "data/k=1+ b%&?#é'().tar"
    servers.hub.paths.append(name)
    assert len(list(stream(servers, f"hf://datasets/o/n/{name}", expand=False))) == SAMPLES


def test_small_files_come_from_the_hub_itself(servers: Servers) -> None:
    servers.hub.small.add("data/a.tar")
    assert len(list(stream(servers, range_size="256KiB"))) == SAMPLES
    assert {r.headers.get("authorization") for r in servers.front.requests} == {f"Bearer {TOKEN}"}


def test_links_that_expire(servers: Servers) -> None:
    samples = iter(stream(servers, range_size="256KiB", connections=1, memory="1MiB"))
    next(samples)
    servers.hub.expired = True
    servers.hub.links += 1  # the one that was given is an older one now
    assert len(list(samples)) == SAMPLES - 1


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("hf://datasets/o/n/data/", 3),
        ("hf://datasets/o/n/data/*.tar", 2),
        ("hf://datasets/o/n@main/*/*.tar", 3),
        ("hf://datasets/o/n/", 4),
    ],
)
@pytest.mark.parametrize("page", [2, 1000])
def test_lists(servers: Servers, url: str, found: int, page: int) -> None:
    servers.hub.page = page
    listed = shards(stream(servers, url))
    assert len(listed) == found
    assert listed == sorted(listed)
    assert all(shard.startswith(url.split("/n")[0]) for shard in listed)
    if page == 2:
        assert servers.hub.lists > 1


def test_a_list_that_leads_elsewhere(servers: Servers) -> None:
    link = '<http://127.0.0.1:1/api/datasets/o/n/tree/main>; rel="next"'
    entry = b'[{"type": "file", "path": "data/a.tar"}]'
    servers.hub.instead = lambda _: Answer(200, {"Link": link}, entry)
    refusal(servers, shardfeed.NetPermanentError, "another server", url="hf://datasets/o/n/data/")


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b'[{"type": "file"}]', b"<html>", b"[" * 99])
def test_a_list_that_is_none(servers: Servers, body: bytes) -> None:
    servers.hub.instead = lambda _: Answer(200, {}, body)
    refusal(servers, shardfeed.NetPermanentError, "not one", url="hf://datasets/o/n/data/")


def test_a_list_without_an_end(servers: Servers) -> None:
    servers.hub.instead = lambda _: Answer(
        200, {"Link": '</api/datasets/o/n/tree/main?cursor=1>; rel="next"'}, b"[]"
    )
    refusal(servers, shardfeed.NetPermanentError, "no end", url="hf://datasets/o/n/data/")


def test_where_the_token_comes_from(
    servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal(servers, shardfeed.AuthError, "RepoNotFound.*help: .*HF_TOKEN", hf_token="")
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf/token").write_text(TOKEN + "\n")
    assert len(list(stream(servers, hf_token=""))) == SAMPLES
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    refusal(servers, shardfeed.AuthError, "rights of the token", hf_token="")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert len(list(stream(servers, hf_token=""))) == SAMPLES
    monkeypatch.setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")
    refusal(servers, shardfeed.AuthError, "RepoNotFound", hf_token="")
    refusal(servers, shardfeed.UsageError, "bad characters", hf_token="hf_hush\nX: y")


@pytest.mark.parametrize(
    ("answer", "kind", "match"),
    [
        (fault(403, "GatedRepo"), shardfeed.AuthError, "help: agree .*/datasets/o/n"),
        (fault(404, "RepoNotFound"), shardfeed.NetPermanentError, "spelling of datasets/o/n"),
        (fault(404, "RevisionNotFound"), shardfeed.NetPermanentError, "behind @"),
        (fault(404, "EntryNotFound"), shardfeed.NetPermanentError, "spelling of the path"),
        (
            Answer(200, {"Content-Type": "text/html"}, b"<html>login</html>"),
            shardfeed.FormatError,
            "HTML",
        ),
    ],
)
def test_refusals(
    servers: Servers, answer: Answer, kind: type[shardfeed.Error], match: str
) -> None:
    servers.hub.instead = lambda _: answer
    refusal(servers, kind, match)


def test_no_request_is_left_for_a_second(servers: Servers) -> None:
    limits = {"RateLimit": '"resolvers";r=0;t=1', "RateLimit-Policy": '"resolvers";q=3000;w=300'}

    def once(request: Request) -> Answer:
        servers.hub.instead = None
        return Answer(429, limits)

    servers.hub.instead = once
    before = time.monotonic()
    assert len(list(stream(servers))) == SAMPLES
    assert time.monotonic() - before >= 0.9


@pytest.mark.parametrize(
    "url",
    ["hf://", "hf://datasets/o", "hf://datasets/o/n", "hf://o", "hf://o/n@/a.tar", "hf://../n/a"],
)
def test_urls_that_name_nothing(servers: Servers, url: str) -> None:
    refusal(servers, shardfeed.UsageError, "help: write hf://", url=url)
    assert not servers.front.requests


def test_a_restored_stream_continues(servers: Servers) -> None:
    half = stream(servers, "hf://datasets/o/n/data/*.tar")
    samples = iter(half)
    keys = [next(samples).key for _ in range(SAMPLES + 5)]
    state = half.state_dict()
    rest = stream(servers, "hf://datasets/o/n/data/*.tar")
    rest.load_state_dict(state)
    assert len(keys) + len(list(rest)) == 2 * SAMPLES
    assert "hush" not in json.dumps(state, default=repr)
