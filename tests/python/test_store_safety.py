"""What servers, proxies and URLs must not do to a reader: leak secrets, hide shards, end a run."""

from __future__ import annotations

import dataclasses
import json
import os
import ssl
import time
import urllib.parse
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from http_servers import Answer, Certificates, Decide, Request, StandIn, ranged, stand_in

SECRET = "hush-hush-secret"
S3 = {"s3_access_key": "AK", "s3_secret_key": "SK"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_tar(tmp_path_factory.mktemp("tar") / "a.tar", numbered(0, 5)).read_bytes()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.make(tmp_path_factory.mktemp("tls"))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No settings of this machine."""
    for name in os.environ:
        if name.lower().endswith("_proxy") or name.startswith(("AWS_", "GOOGLE_", "HF_", "AIS_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return tmp_path


def endpoint(server: StandIn) -> str:
    return server.url("").rstrip("/")


def count(url: str, **options: Any) -> int:
    return len(list(shardfeed.Stream(url, **{"retries": 2, "timeout": 20, **options})))


def refusal(kind: type[shardfeed.Error], match: str, url: str, **options: Any) -> str:
    with pytest.raises(kind, match=match) as caught:
        count(url, **options)
    for part in (SECRET, "hush"):
        assert part not in str(caught.value)
    return str(caught.value)


# ---- Secrets that servers send back -------------------------------------------------------------


def test_a_hub_that_shows_the_token() -> None:
    def hub(request: Request) -> Answer:
        said = f"the token {request.headers['authorization'][7:]} is not valid"
        return Answer(401, {"X-Error-Code": "InvalidToken", "X-Error-Message": said})

    with stand_in(hub) as server:
        url = "hf://datasets/o/n/a.tar"
        said = refusal(
            shardfeed.AuthError, "InvalidToken", url, hf_endpoint=endpoint(server), hf_token=SECRET
        )
    assert "the token *** is not valid" in said


def test_a_token_that_is_the_mask() -> None:
    """What was hidden before, and is given back as a token."""
    with stand_in(lambda _: Answer(401, {}, b'{"error": {"message": "no: ***"}}')) as server:
        url = "gs://bucket/a.tar"
        refusal(shardfeed.AuthError, "no", url, gs_endpoint=endpoint(server), gs_token="***")


def test_sts_that_shows_the_identity(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sts(request: Request) -> Answer:
        form = dict(urllib.parse.parse_qsl(request.body.decode()))
        said = f"cannot decode {form['WebIdentityToken']}"
        code = "<Code>InvalidIdentityToken</Code>"
        return Answer(
            400,
            body=f"<ErrorResponse><Error>{code}<Message>{said}</Message></Error></ErrorResponse>".encode(),
        )

    (home / "token").write_text(SECRET + "\n")
    with stand_in(sts) as server:
        monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(home / "token"))
        monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", endpoint(server))
        refusal(shardfeed.AuthError, r"decode \*\*\*", "s3://bkt/a.tar", s3_endpoint=server.url())


def test_a_store_that_shows_the_session_everywhere() -> None:
    def store(request: Request) -> Answer:
        token = request.headers["x-amz-security-token"]
        body = f"<Error><Code>{token}</Code><Message>{token}</Message></Error>"
        return Answer(403, {"x-amz-request-id": token, "x-amz-id-2": token}, body.encode())

    with stand_in(store) as server:
        keys = {**S3, "s3_session_token": SECRET}
        refusal(shardfeed.AuthError, "403", "s3://bkt/a.tar", s3_endpoint=endpoint(server), **keys)


@pytest.mark.parametrize("options", [{"token": SECRET}, {"headers": f"X-Api-Key: {SECRET}"}])
def test_a_request_id_that_is_the_token(options: dict[str, str]) -> None:
    def echo(request: Request) -> Answer:
        headers = request.headers
        return Answer(403, {"X-Request-Id": headers.get("authorization", "") + str(headers)})

    with stand_in(echo) as server:
        refusal(shardfeed.AuthError, "403", server.url(), **options)


# ---- Secrets in what users write ----------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "s3://AK:hush@bucket/a.tar",
        "s3://AK:hu/hush@bucket/a.tar",
        "gs://AK:hush@bucket/a.tar",
        "ais://u:hush@bucket/a.tar",
        "http://alice:pa/hush@127.0.0.1/a.tar",
    ],
)
def test_credentials_in_urls_are_not_shown(url: str) -> None:
    refusal(shardfeed.UsageError, "URL", url, ais_endpoint="http://127.0.0.1:1", **S3)


@pytest.mark.parametrize(
    "proxy", ["http://alice:hush@127.0.0.1:99999999/", "socks9://alice:hush@127.0.0.1:3128"]
)
def test_proxies_are_not_shown(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal(shardfeed.UsageError, "the proxy cannot be used", "http://h.invalid/a", proxy=proxy)
    monkeypatch.setenv("http_proxy", proxy)
    refusal(shardfeed.UsageError, "the proxy cannot be used", "http://h.invalid/a")


@pytest.mark.parametrize(
    "keys",
    [
        {"s3_access_key": "AK\r\nX-Evil: 1", "s3_secret_key": "hush"},
        {**S3, "s3_session_token": "hush\nX-Evil: 1"},
    ],
)
def test_keys_with_line_ends_become_no_headers(keys: dict[str, str], data: bytes) -> None:
    with stand_in(ranged(data)) as server:
        refusal(
            shardfeed.UsageError,
            "end of a line",
            "s3://bkt/a.tar",
            s3_endpoint=endpoint(server),
            **keys,
        )
        assert not server.requests


def test_keys_of_the_environment_with_the_end_of_their_line(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AK\n")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SK\r\n")
    with stand_in(ranged(data)) as server:
        assert count("s3://bkt/a.tar", s3_endpoint=endpoint(server)) == 5
        assert "Credential=AK/" in server.requests[0].headers["authorization"]


# ---- Redirects ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["https", "HTTPS", "Https"])
def test_no_downgrade_in_any_spelling(data: bytes, certificates: Certificates, scheme: str) -> None:
    with stand_in(ranged(data)) as plain:
        move = Answer(302, {"Location": plain.url()})
        with stand_in(lambda _: move, certificates) as server:
            url = server.url().replace("https", scheme)
            refusal(shardfeed.NetPermanentError, "not safe", url, ca_file=str(certificates.ca))
        assert not plain.requests


def far_archive(tmp_path: Path) -> bytes:
    """Members that the first request does not bring."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number in range(300):
            archive.writestr(f"{number}", os.urandom(10_000))
    return (tmp_path / "a.zip").read_bytes()


def test_a_place_that_is_gone_is_left(tmp_path: Path) -> None:
    archive = far_archive(tmp_path)

    def place(request: Request) -> Answer:
        answer = ranged(archive)(request)
        headers = {**answer.headers, "Connection": "close"}
        return dataclasses.replace(answer, headers=headers, cut=len(answer.body))

    with stand_in(place) as old, stand_in(place) as new:
        places = [old]
        with stand_in(lambda _: Answer(302, {"Location": places[0].url("x")})) as hub:
            far = shardfeed.Archive(hub.url("a.zip"), retries=3)
            far["100"].read()
            places[0] = new
            old.close()
            asked = len(hub.requests)
            assert len(far["290"].read()) == 10_000
            # It is asked for the new place once; later requests go there at once.
            for number in range(150, 160):
                far[str(number)].read()
            assert len(hub.requests) - asked <= 2


def test_a_place_that_refuses_is_forgotten(tmp_path: Path) -> None:
    archive = far_archive(tmp_path)
    refused: list[Request] = []

    def old(request: Request) -> Answer:
        if not places[1:]:
            return ranged(archive)(request)
        refused.append(request)
        return Answer(403)

    with stand_in(old) as first, stand_in(ranged(archive)) as second:
        places = [first]
        with stand_in(lambda _: Answer(302, {"Location": places[-1].url("x")})) as hub:
            far = shardfeed.Archive(hub.url("a.zip"), retries=3)
            places.append(second)
            for number in range(100, 120):
                far[str(number)].read()
            assert len(refused) == 1
            assert len(hub.requests) <= 4


# ---- Lists that are not whole -------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        lambda link: {"Link": "</style.css>; rel=preload", "link": link + 'rel="next"'},
        lambda link: {"Link": link + 'Rel="next"'},
        lambda link: {"Link": link + 'rel = "next"'},
        lambda link: {"Link": link + 'title="a, b"; rel="last next"'},
        lambda link: {"Link": '</a>; rel="nextish", ' + link + "rel=next"},
    ],
)
def test_all_pages_of_a_hub(data: bytes, headers: Callable[[str], dict[str, str]]) -> None:
    def hub(request: Request) -> Answer:
        if "/tree/" not in request.path:
            return ranged(data)(request)
        second = "cursor" in request.path
        page = json.dumps([{"type": "file", "path": "b.tar" if second else "a.tar"}]).encode()
        link = f"<{server.url('api/datasets/o/n/tree/main?cursor=2')}>; "
        return Answer(200, {} if second else headers(link), page)

    with stand_in(hub) as server:
        assert count("hf://datasets/o/n/", hf_endpoint=endpoint(server)) == 10


def test_a_page_of_a_hub_with_too_many_headers() -> None:
    page = json.dumps([{"type": "file", "path": "a.tar"}]).encode()
    many = {f"X-{number}": "1" for number in range(300)}
    with stand_in(lambda _: Answer(200, {**many, "Link": "<x>; rel=next"}, page)) as server:
        url = "hf://datasets/o/n/"
        refusal(shardfeed.NetPermanentError, "256 headers", url, hf_endpoint=endpoint(server))


@pytest.mark.parametrize(
    "second",
    [
        {"status": 503, "message": "target is down"},
        {},
        {"uuid": "u", "entries": None, "continuation_token": 7},
    ],
)
def test_a_second_page_of_ais_that_is_none(data: bytes, second: dict[str, Any]) -> None:
    def ais(request: Request) -> Answer:
        if not request.path.startswith("/v1/buckets"):
            return ranged(data)(request)
        if "continuation_token" in json.loads(request.body)["value"]:
            return Answer(200, body=json.dumps(second).encode())
        first = {"uuid": "u", "entries": [{"name": "a.tar"}], "continuation_token": "a.tar"}
        return Answer(200, body=json.dumps(first).encode())

    with stand_in(ais) as server:
        refusal(shardfeed.NetPermanentError, "list", "ais://b/", ais_endpoint=endpoint(server))


# ---- Versions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", ['""', '"', 'W/""'])
def test_an_empty_tag_joins_no_versions(tag: str, tmp_path: Path) -> None:
    old = write_tar(tmp_path / "old.tar", numbered(0, 100, 10_000)).read_bytes()
    new = bytes(byte ^ 1 for byte in old)

    def swap(request: Request) -> Answer:
        return ranged(old if request.number < 2 else new, tag)(request)

    seen: list[str] = []
    with stand_in(swap) as server:
        try:
            for sample in shardfeed.Stream(
                server.url(), connections=2, range_size="256KiB", retries=2
            ):
                seen.append(sample.key)
        except shardfeed.Error:
            return
    assert len(seen) == 100
    assert len(server.requests) <= 2


def test_dots_in_keys_are_sent(data: bytes) -> None:
    with stand_in(ranged(data)) as server:
        assert count("s3://bkt/a/../c.tar", s3_endpoint=endpoint(server), **S3) == 5
        assert server.requests[0].path == "/bkt/a/%2E%2E/c.tar"
        assert count(server.url("x/../c.tar")) == 5
        assert server.requests[-1].path == "/c.tar"


# ---- Services that give credentials -------------------------------------------------------------


def test_a_credential_process_that_runs_on(home: Path, data: bytes) -> None:
    script = home / "keys.sh"
    keys = '{"Version":1,"AccessKeyId":"AK","SecretAccessKey":"SK"}'
    script.write_text(f"#!/bin/sh\necho '{keys}'\nexec >&-\nexec sleep 30\n")
    script.chmod(0o755)
    (home / ".aws").mkdir()
    (home / ".aws/config").write_text(f"[default]\ncredential_process = {script}\n")
    with stand_in(ranged(data)) as server:
        begun = time.monotonic()
        with pytest.raises(shardfeed.Error):
            shardfeed.Archive("s3://bkt/a.tar", s3_endpoint=endpoint(server), timeout=0.5)
        assert time.monotonic() - begun < 5


@pytest.mark.parametrize("status", [429, 503])
def test_a_metadata_service_that_is_busy(
    status: int, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = Answer(200, body=b'{"AccessKeyId":"AK","SecretAccessKey":"SK","Token":"T"}')
    with (
        stand_in(ranged(data)) as server,
        stand_in(lambda r: keys if r.number else Answer(status)) as near,
    ):
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", near.url("creds"))
        assert count("s3://bkt/a.tar", s3_endpoint=endpoint(server)) == 5


def test_the_time_of_an_opening_says_nothing_of_a_service(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def machine(request: Request) -> Answer:
        if request.method == "PUT":
            slow = not request.number
            return Answer(200, body=b"t", wait=lambda: time.sleep(0.8 if slow else 0))
        if request.path.endswith("/security-credentials/"):
            return Answer(200, body=b"role")
        return Answer(200, body=b'{"AccessKeyId":"AK","SecretAccessKey":"SK","Token":"T"}')

    with stand_in(machine) as near, stand_in(ranged(data)) as server:
        monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint(near))
        options: dict[str, Any] = {"s3_endpoint": endpoint(server)}
        with pytest.raises(shardfeed.Error) as caught:
            shardfeed.Archive("s3://bkt/a.tar", timeout=0.3, **options)
        assert caught.value.code_name == "TIMEOUT"
        assert len(shardfeed.Archive("s3://bkt/a.tar", timeout=10, **options)) == 10


# ---- Which class an error has -------------------------------------------------------------------


def test_proxies_that_refuse() -> None:
    for status in (403, 407):
        with stand_in(lambda _, status=status: Answer(status)) as proxy:
            options = {"proxy": endpoint(proxy)}
            refusal(
                shardfeed.AuthError, f"proxy answers {status}", "https://h.invalid/a", **options
            )
            assert len(proxy.requests) <= 1
    with stand_in(lambda _: Answer(407)) as proxy:
        options = {"proxy": endpoint(proxy)}
        refusal(shardfeed.AuthError, "option proxy", "http://h.invalid/a", **options)


def test_tls_that_will_not_be(data: bytes, certificates: Certificates) -> None:
    options = {"ca_file": str(certificates.ca)}
    with stand_in(ranged(data), certificates, True) as server:
        # Of 1.3 the refusal may come after the connection is gone.
        server._context.maximum_version = ssl.TLSVersion.TLSv1_2
        refusal(shardfeed.TLSError, "SSL routines", server.url(), **options)
    old = StandIn(ranged(data), certificates)
    old._context.set_ciphers("ALL:@SECLEVEL=0")
    old._context.minimum_version = ssl.TLSVersion.TLSv1
    old._context.maximum_version = ssl.TLSVersion.TLSv1_1
    refusal(shardfeed.TLSError, "SSL routines", old.url(), **options)
    old.close()


def test_attempts_are_not_used_up_at_once(data: bytes) -> None:
    """A server that is busy for half a second, and asks for no pause."""
    until = time.monotonic() + 0.5
    right: Decide = ranged(data)

    def busy(request: Request) -> Answer:
        wait = time.monotonic() < until
        return Answer(503, {"Retry-After": "0"}) if wait else right(request)

    with stand_in(busy) as server:
        assert count(server.url(), retries=8) == 5


def test_the_log_has_the_first_retry(data: bytes) -> None:
    lines: list[str] = []

    def fails_twice(request: Request) -> Answer:
        return ranged(data)(request) if request.number > 1 else Answer(500)

    with stand_in(fails_twice) as server:
        stream = shardfeed.Stream(server.url(), log=lambda level, text: lines.append(text))
        assert len(list(stream)) == 5
        assert stream.stats()["retries"] == 2
    assert [line for line in lines if "the request is retried" in line] == lines
    assert len(lines) == 1
    assert "500" in lines[0]


def test_a_size_that_is_not_known(data: bytes) -> None:
    headers = {"Content-Range": f"bytes 0-{len(data) - 1}/*", "ETag": '"a"'}
    with stand_in(lambda _: Answer(206, headers, data)) as server:
        refusal(shardfeed.NetPermanentError, "how large", server.url())
