"""Shards in AIStore: a stand-in of a proxy and a target answers as a cluster was seen to do."""

from __future__ import annotations

import json
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
TOKEN = "hush.token"


def refused(status: int, said: str) -> Answer:
    body = {"message": said, "method": "GET", "status": status}
    return Answer(status, {"Content-Type": "application/json"}, json.dumps(body).encode())


@dataclass
class Cluster:
    """One proxy, which looks at tokens when `auth` is set, and one target, which does not."""

    data: bytes
    names: list[str] = field(default_factory=list)
    auth: bool = False
    page: int = 1000
    checksum: str = "0123456789abcdef"
    instead: Decide | None = None  # of the target
    target: StandIn | None = None
    asked: list[Request] = field(default_factory=list)

    def proxy(self, request: Request) -> Answer:
        self.asked.append(request)
        if self.auth and request.headers.get("authorization") != f"Bearer {TOKEN}":
            return refused(401, f"token is invalid: {request.headers.get('authorization')}")
        path, _, query = request.path.partition("?")
        values = dict(urllib.parse.parse_qsl(query))
        assert values["provider"] == "ais"
        if path.startswith("/v1/buckets/"):
            return self.list(request)
        name = urllib.parse.unquote(path.removeprefix("/v1/objects/bck/"))
        if name not in self.names:
            return refused(404, f"ais://bck/{name} does not exist")
        assert self.target
        place = self.target.url(request.path[1:]) + "&pid=p1&utm=1"
        return Answer(301, {"Location": place})

    def list(self, request: Request) -> Answer:
        message = json.loads(request.body)
        assert message["action"] == "list"
        value = message["value"]
        after = value.get("continuation_token", "")
        assert bool(after) == (value.get("uuid") == "u1")
        found = [n for n in sorted(self.names) if n.startswith(value["prefix"]) and n > after]
        page = found[: self.page]
        token = page[-1] if len(found) > len(page) else ""
        entries = [{"name": name, "size": "1"} for name in page] or None
        reply = {"uuid": "u1", "continuation_token": token, "entries": entries, "flags": 0}
        return Answer(200, {}, json.dumps(reply).encode())

    def give(self, request: Request) -> Answer:
        assert "pid=p1" in request.path, request.path
        if self.instead:
            return self.instead(request)
        if "archpath=" in request.path or "etl_name=" in request.path:
            return Answer(400) if request.first is not None else Answer(200, {}, self.data)
        answer = ranged(self.data, None)(request)
        checksum = {"Ais-Checksum-Type": "xxhash2", "Ais-Checksum-Value": self.checksum}
        return Answer(answer.status, {**answer.headers, **checksum}, answer.body)


@dataclass(frozen=True)
class Servers:
    cluster: Cluster
    proxy: StandIn
    target: StandIn


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("tar") / "a.tar"
    return write_tar(path, numbered(0, SAMPLES, 10_000)).read_bytes()


@pytest.fixture
def servers(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    for name in ("AIS_ENDPOINT", "AIS_AUTHN_TOKEN", "AIS_AUTHN_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    cluster = Cluster(data, [f"data/{i}.tar" for i in range(5)] + ["data/readme.md", "x y?.tar"])
    with stand_in(cluster.proxy) as proxy, stand_in(cluster.give) as target:
        cluster.target = target
        yield Servers(cluster, proxy, target)


def stream(servers: Servers, url: str = "ais://bck/data/0.tar", **options: Any) -> Any:
    return shardfeed.Stream(url, **{"ais_endpoint": servers.proxy.url(""), **options})


def shards(stream: Any) -> list[str]:
    return list(dict.fromkeys(sample.shard for sample in stream))


def refusal(servers: Servers, kind: type[shardfeed.Error], match: str, **options: Any) -> str:
    with pytest.raises(kind, match=match) as caught:
        list(stream(servers, **options))
    assert "hush" not in str(caught.value)
    return str(caught.value)


def test_every_request_begins_at_the_proxy(servers: Servers) -> None:
    assert len(list(stream(servers, range_size="256KiB", connections=2))) == SAMPLES
    assert len(servers.target.requests) > 1
    assert len(servers.cluster.asked) == len(servers.target.requests)


def test_special_names(servers: Servers) -> None:
    assert len(list(stream(servers, "ais://bck/x y?.tar", expand=False))) == SAMPLES


def test_another_version_in_the_middle(servers: Servers) -> None:
    # It has the same size, and its servers look at no If-Match.
    give = servers.target.decide

    def give_another(request: Request) -> Answer:
        if request.number == 1:
            servers.cluster.checksum = "fedcba9876543210"
        return give(request)

    servers.target.decide = give_another
    with pytest.raises(shardfeed.ChangedError):
        list(stream(servers, range_size="256KiB", connections=1))


def test_buckets_without_checksums_are_read_whole(servers: Servers, data: bytes) -> None:
    servers.cluster.instead = ranged(data, None)
    assert len(list(stream(servers))) == SAMPLES
    assert servers.target.requests[-1].first is None


@pytest.mark.parametrize("page", [2, 1000])
def test_lists(servers: Servers, page: int) -> None:
    servers.cluster.page = page
    wanted = [f"ais://bck/data/{i}.tar" for i in range(5)]
    assert shards(stream(servers, "ais://bck/data/")) == wanted
    assert shards(stream(servers, "ais://bck/data/[12].tar")) == wanted[1:3]
    refusal(servers, shardfeed.NetPermanentError, "no object matches", url="ais://bck/none/")


def test_members_and_jobs_have_no_ranges(servers: Servers) -> None:
    url = "ais://bck/data/0.tar?archpath=in/b.tar"
    assert len(list(stream(servers, url, expand=False))) == SAMPLES
    assert "archpath=in/b.tar" in servers.target.requests[-1].path
    assert len(list(stream(servers, ais_etl="a job"))) == SAMPLES
    assert "etl_name=a%20job" in servers.target.requests[-1].path
    refusal(servers, shardfeed.UsageError, "no member", url="ais://bck/a?archpath=", expand=False)


def test_where_the_token_comes_from(
    servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers.cluster.auth = True
    refusal(servers, shardfeed.AuthError, "token is invalid.*help: run ais auth login")
    refusal(servers, shardfeed.AuthError, "rights of the token", ais_token="hush.other")
    assert len(list(stream(servers, ais_token=TOKEN))) == SAMPLES
    (tmp_path / "ais/cli").mkdir(parents=True)
    (tmp_path / "ais/cli/auth.token").write_text(json.dumps({"token": TOKEN}))
    assert len(list(stream(servers))) == SAMPLES
    monkeypatch.setenv("AIS_AUTHN_TOKEN", TOKEN)
    assert len(list(stream(servers, "ais://bck/data/*.tar"))) == 5 * SAMPLES
    for request in servers.target.requests:
        assert "authorization" not in request.headers
    refusal(servers, shardfeed.UsageError, "bad characters", ais_token="hush\nX: y")


def test_where_the_proxy_is(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal(servers, shardfeed.UsageError, "AIS_ENDPOINT", ais_endpoint="")
    monkeypatch.setenv("AIS_ENDPOINT", servers.proxy.url(""))
    assert len(list(stream(servers, ais_endpoint=""))) == SAMPLES
    refusal(servers, shardfeed.UsageError, "http:// or https://", ais_endpoint="aistore:51080")


def test_refusals(servers: Servers) -> None:
    said = refusal(servers, shardfeed.NetPermanentError, "404.*does not exist", url="ais://bck/no")
    assert said.startswith("ais://bck/no: ")
    servers.cluster.instead = lambda _: refused(403, "no rights")
    refusal(servers, shardfeed.AuthError, "no rights")
    for url in ("ais://", "ais://bck", "ais://b k/a.tar"):
        refusal(servers, shardfeed.UsageError, "help: write ais://", url=url)


def test_a_target_that_is_busy_or_starts(servers: Servers) -> None:
    answers = [refused(409, "busy"), Answer(503)]

    def some_time(request: Request) -> Answer:
        answer = answers.pop(0)
        if not answers:
            servers.cluster.instead = None
        return answer

    servers.cluster.instead = some_time
    assert len(list(stream(servers))) == SAMPLES


@pytest.mark.parametrize("body", [b"", b"[]", b'{"entries": 1}', b'{"entries": [{}]}', b"<html>"])
def test_a_list_that_is_none(servers: Servers, body: bytes) -> None:
    servers.proxy.decide = lambda _: Answer(200, {}, body)
    refusal(servers, shardfeed.NetPermanentError, "not one", url="ais://bck/data/")
