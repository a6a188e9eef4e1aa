"""What S3 does and versitygw does not show: redirects, wrong clocks, busy servers, broken lists."""

from __future__ import annotations

import contextlib
import email.utils
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from aws_servers import Aws, endpoint, fault, signed
from conftest import numbered, write_tar
from http_servers import Answer, Request, StandIn, ranged, stand_in

KEYS = {"s3_access_key": "KEY", "s3_secret_key": "hush-KEY"}
SAMPLES = 20
PORTS: set[int] = set()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("tar") / "a.tar"
    return write_tar(path, numbered(0, SAMPLES)).read_bytes()


@pytest.fixture
def aws(data: bytes) -> Aws:
    return Aws.of(data)


@pytest.fixture
def server(aws: Aws) -> Iterator[StandIn]:
    """At a port that no other test had: the library remembers the region of a bucket there."""
    with contextlib.ExitStack() as stack:
        while (server := stack.enter_context(stand_in(aws))).port in PORTS:
            continue
        PORTS.add(server.port)
        yield server


def count(server: StandIn, url: str = "s3://bkt/a.tar", **options: Any) -> int:
    stream = shardfeed.Stream(url, **{"s3_endpoint": endpoint(server), **KEYS, **options})
    return len(list(stream))


def refusal(
    server: StandIn,
    kind: type[shardfeed.Error],
    match: str | None,
    url: str = "s3://bkt/a.tar",
    **more: Any,
) -> str:
    with pytest.raises(kind, match=match) as caught:
        count(server, url, **more)
    assert "hush" not in str(caught.value)
    return str(caught.value)


# ---- The region ---------------------------------------------------------------------------------

ENDPOINT = "<Endpoint>bkt.s3.eu-north-1.amazonaws.com</Endpoint>"


@pytest.mark.parametrize(
    "wrong",
    [
        fault(301, "PermanentRedirect", ENDPOINT, Location="http://127.0.0.1:1/stolen"),
        fault(301, "PermanentRedirect", x_amz_bucket_region="eu-north-1"),
        fault(307, "TemporaryRedirect", ENDPOINT, Location="http://127.0.0.1:1/stolen"),
        fault(400, "AuthorizationHeaderMalformed", "<Region>eu-north-1</Region>"),
        Answer(400, {"x-amz-bucket-region": "eu-north-1"}),
    ],
)
def test_a_wrong_region_is_corrected_and_remembered(
    aws: Aws, server: StandIn, data: bytes, wrong: Answer
) -> None:
    good = ranged(data)
    aws.s3 = lambda request: good(request) if signed(request).region == "eu-north-1" else wrong
    assert count(server, s3_region="us-east-2") == SAMPLES
    assert [signed(request).region for request in aws.asked][:2] == ["us-east-2", "eu-north-1"]
    asked = len(aws.asked)
    assert count(server, s3_region="us-east-2") == SAMPLES
    assert {signed(request).region for request in aws.asked[asked:]} == {"eu-north-1"}


@pytest.mark.parametrize("region", ["us-east-2", "evil.example.com/", "", "x" * 100])
def test_a_redirect_that_leads_nowhere(aws: Aws, server: StandIn, region: str) -> None:
    aws.s3 = lambda _: fault(301, "PermanentRedirect", x_amz_bucket_region=region)
    refusal(server, shardfeed.NetPermanentError, "PermanentRedirect", s3_region="us-east-2")
    assert len(aws.asked) == 1


def test_regions_that_contradict_one_another(aws: Aws, server: StandIn) -> None:
    aws.s3 = lambda r: fault(301, "PermanentRedirect", x_amz_bucket_region=f"r-{r.number}")
    refusal(server, shardfeed.NetPermanentError, "PermanentRedirect")
    assert len(aws.asked) == 4


# ---- The clock ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [-86400, 3600])
def test_a_wrong_clock_is_repaired_once(aws: Aws, server: StandIn, data: bytes, ahead: int) -> None:
    good = ranged(data)

    def s3(request: Request) -> Answer:
        now = time.time() + ahead
        sent = time.strptime(request.headers["x-amz-date"] + "UTC", "%Y%m%dT%H%M%SZ%Z")
        if abs(time.mktime(sent) - time.timezone - now) < 900:
            return good(request)
        return fault(403, "RequestTimeTooSkewed", Date=email.utils.formatdate(now, usegmt=True))

    aws.s3 = s3
    assert count(server) == SAMPLES
    asked = len(aws.asked)
    assert count(server) == SAMPLES
    assert len(aws.asked) == 2 * asked - 1  # the second time it was right at once


@pytest.mark.parametrize("date", [None, "nonsense", "now"])
def test_a_clock_that_cannot_be_repaired(aws: Aws, server: StandIn, date: str | None) -> None:
    text = email.utils.formatdate(usegmt=True) if date == "now" else date
    aws.s3 = lambda _: fault(403, "RequestTimeTooSkewed", **({"Date": text} if text else {}))
    refusal(server, shardfeed.AuthError, "RequestTimeTooSkewed.*\n?.*clock of this machine")
    # Once more where the port was that of another test's server, whose clock was learned.
    assert len(aws.asked) <= 2


# ---- Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (503, "SlowDown"),
        (500, "InternalError"),
        (400, "RequestTimeout"),
        (503, "ServiceUnavailable"),
    ],
)
def test_a_busy_server_is_asked_again(
    aws: Aws, server: StandIn, data: bytes, status: int, code: str
) -> None:
    good = ranged(data)
    aws.s3 = lambda request: good(request) if request.number > 1 else fault(status, code)
    assert count(server) == SAMPLES
    aws.s3 = lambda _: fault(status, code)
    kind = "ThrottledError" if status == 503 else "NetTransientError"
    refusal(server, getattr(shardfeed, kind), code, retries=1)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, "NoSuchKey", "NetPermanentError"),
        (404, "NoSuchBucket", "NetPermanentError"),
        (403, "AccessDenied", "AuthError"),
        (403, "InvalidObjectState", "NetPermanentError"),
        (412, "PreconditionFailed", "ChangedError"),
    ],
)
def test_refusals(aws: Aws, server: StandIn, status: int, code: str, kind: str) -> None:
    inside = "<RequestId>R1</RequestId><HostId>H1</HostId>"
    aws.s3 = lambda _: fault(status, code, inside)
    said = refusal(server, getattr(shardfeed, kind), None)
    assert len(aws.asked) == 1
    if status != 412:
        assert f"answers {status} {code}: as the test says (request R1, host H1)" in said


def test_what_a_refusal_repeats_of_the_request_is_not_shown(aws: Aws, server: StandIn) -> None:
    def s3(request: Request) -> Answer:
        text = request.headers["x-amz-security-token"]
        body = f"<Error><Code>AccessDenied</Code><Message>token {text}</Message></Error>"
        return Answer(403, {}, body.encode())

    aws.s3 = s3
    refusal(server, shardfeed.AuthError, "AccessDenied", s3_session_token="hush-of-a-token")


def test_requester_pays(aws: Aws, server: StandIn) -> None:
    assert count(server, s3_requester_pays=True) == SAMPLES
    for request in aws.asked:
        assert request.headers["x-amz-request-payer"] == "requester"
        assert "x-amz-request-payer" in signed(request).names
    asked = len(aws.asked)
    assert count(server) == SAMPLES
    assert all("x-amz-request-payer" not in r.headers for r in aws.asked[asked:])


def test_the_token_of_http_is_not_sent(aws: Aws, server: StandIn) -> None:
    assert count(server, token="hush") == SAMPLES
    assert all("hush" not in str(request) for request in aws.asked)


def test_the_bucket_in_front_of_the_host(aws: Aws, server: StandIn) -> None:
    host = endpoint(server).replace("127.0.0.1", "s3.localhost")
    more = {"s3_endpoint": host, "s3_addressing": "virtual", "allow_private": True}
    assert count(server, **more) == SAMPLES
    assert {request.headers["host"] for request in aws.asked} == {f"bkt.s3.localhost:{server.port}"}
    assert {request.path for request in aws.asked} == {"/a.tar"}


# ---- Lists --------------------------------------------------------------------------------------


def page(keys: list[str], following: str | None, more: str = "") -> bytes:
    text = f"<IsTruncated>{'true' if following is not None else 'false'}</IsTruncated>{more}"
    if following:
        text += f"<NextContinuationToken>{following}</NextContinuationToken>"
    text += "".join(f"<Contents><Key>{key}</Key></Contents>" for key in keys)
    return f'<?xml version="1.0"?><ListBucketResult>{text}</ListBucketResult>'.encode()


def lists(pages: list[bytes], data: bytes) -> Any:
    """Page after page, by tokens "=&0", "=&1" ..., the last one for all later; else the shard."""
    good = ranged(data)

    def s3(request: Request) -> Answer:
        path, _, query = request.path.partition("?")
        if not query:
            return good(request)
        fields = dict(urllib.parse.parse_qsl(query, strict_parsing=True, keep_blank_values=True))
        assert path == "/bkt"
        assert fields["list-type"] == "2"
        assert fields["encoding-type"] == "url"
        number = int(fields.get("continuation-token", "=&0")[2:])
        return Answer(body=pages[min(number, len(pages) - 1)])

    return s3


def test_a_list_of_three_pages(aws: Aws, server: StandIn, data: bytes) -> None:
    keys = [f"x/{number:04}" for number in range(2498)] + ["x/a.tar", "x/b.tar"]
    pages = [
        page(keys[:1000], "=&amp;1"),
        page(keys[1000:2000], "=&amp;2"),
        page(keys[2000:], None),
    ]
    aws.s3 = lists(pages, data)
    assert count(server, "s3://bkt/x/*.tar") == 2 * SAMPLES
    assert sum("list-type" in request.path for request in aws.asked) == 3
    assert "prefix=x%2F" in aws.asked[0].path
    refusal(server, shardfeed.LimitError, "max_shards", "s3://bkt/x/*.tar", max_shards=2000)


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (page(["x/a.tar"], None)[:-30], "not whole"),
        (b"", "not whole"),
        (page(["x/a.tar"], ""), "where the next page is"),
        (page(["x/a.tar"], "=&amp;0"), "no end|a key twice"),
        (page([], "=&amp;0"), "no end"),
        (page(["x/a.tar", "x/a.tar"], None), "a key twice"),
        (page(["y/a.tar"], None), "not asked for"),
        (page(["x/a.tar"], None, "<KeyCount>2</KeyCount>"), "another number"),
        (b"<html>a proxy</html>", "something else"),
        (b"<Error><Code>InternalError</Code></Error>", "something else"),
    ],
)
def test_lists_that_are_not_whole(
    aws: Aws, server: StandIn, data: bytes, first: bytes, said: str
) -> None:
    aws.s3 = lists([first], data)
    refusal(server, shardfeed.NetPermanentError, said, "s3://bkt/x/")


def test_keys_that_are_encoded(aws: Aws, server: StandIn, data: bytes) -> None:
    more = "<EncodingType>url</EncodingType>"
    aws.s3 = lists([page(["x/a+b%2B%25%0A%C3%A9.tar"], None, more)], data)
    assert count(server, "s3://bkt/x/") == SAMPLES
    assert aws.asked[-1].path == "/bkt/x/a%20b%2B%25%0A%C3%A9.tar"


def test_a_list_that_breaks_off_is_asked_for_again(aws: Aws, server: StandIn, data: bytes) -> None:
    whole = page(["x/a.tar"], None)
    good = lists([whole], data)
    aws.s3 = lambda request: good(request) if request.number else Answer(body=whole, cut=40)
    assert count(server, "s3://bkt/x/") == SAMPLES


def test_endpoints_that_are_none(aws: Aws, server: StandIn, tmp_path: Path) -> None:
    assert tmp_path.exists()
    for bad in ("ftp://h", "h", "http://", "http://u:hush@h", "http://h?x", "http://h x"):
        refusal(server, shardfeed.UsageError, "endpoint of S3 is not", s3_endpoint=bad)
    refusal(server, shardfeed.UsageError, "bad characters", s3_region="Eu_1/")
    refusal(server, shardfeed.UsageError, "do not fit", s3_anonymous=True)
    assert not aws.asked
