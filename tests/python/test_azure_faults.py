"""What Azure does and azurite does not show: busy servers, refusals, pages of lists."""

from __future__ import annotations

import urllib.parse
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from azure_servers import ACCOUNT, KEY, Azure, endpoint, fault
from conftest import numbered, write_tar
from http_servers import Answer, Request, StandIn, ranged, stand_in

SAMPLES = 20


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("tar") / "a.tar"
    return write_tar(path, numbered(0, SAMPLES)).read_bytes()


@pytest.fixture
def azure(data: bytes) -> Azure:
    return Azure.of(data)


@pytest.fixture
def server(azure: Azure) -> Iterator[StandIn]:
    with stand_in(azure) as server:
        yield server


def count(server: StandIn, url: str = "az://bkt1/a.tar", **options: Any) -> int:
    given = {"az_endpoint": endpoint(server), "az_account_key": KEY, **options}
    return len(list(shardfeed.Stream(url, **given)))


def refusal(
    server: StandIn,
    kind: type[shardfeed.Error],
    match: str,
    url: str = "az://bkt1/a.tar",
    **more: Any,
) -> str:
    with pytest.raises(kind, match=match) as caught:
        count(server, url, **more)
    assert KEY not in str(caught.value)
    return str(caught.value)


# ---- Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (503, "ServerBusy", "ThrottledError"),
        (500, "OperationTimedOut", "NetTransientError"),
        (500, "InternalError", "NetTransientError"),
    ],
)
def test_a_busy_server_is_asked_again(
    azure: Azure, server: StandIn, data: bytes, status: int, code: str, kind: str
) -> None:
    good = ranged(data)
    azure.blobs = lambda request: good(request) if request.number > 1 else fault(status, code)
    assert count(server) == SAMPLES
    azure.blobs = lambda _: fault(status, code)
    refusal(server, getattr(shardfeed, kind), code, retries=1)


@pytest.mark.parametrize(
    ("status", "code", "kind", "tip"),
    [
        (404, "BlobNotFound", "NetPermanentError", "spelling of the blob"),
        (404, "ContainerNotFound", "NetPermanentError", "spelling of the container"),
        (409, "BlobArchived", "NetPermanentError", "tier Hot"),
        (400, "InvalidQueryParameterValue", "NetPermanentError", "serves this endpoint"),
        (403, "AuthenticationFailed", "AuthError", "clock of this machine"),
        (403, "AuthorizationFailure", "AuthError", "Storage Blob Data Reader"),
        (403, "AuthorizationPermissionMismatch", "AuthError", "Storage Blob Data Reader"),
        (403, "AccountIsDisabled", "AuthError", "state of the account"),
        (409, "PublicAccessNotPermitted", "AuthError", "no public containers"),
        (418, "Teapot", "NetPermanentError", ""),
    ],
)
def test_refusals(
    azure: Azure, server: StandIn, status: int, code: str, kind: str, tip: str
) -> None:
    azure.blobs = lambda _: fault(status, code)
    said = refusal(server, getattr(shardfeed, kind), code)
    assert len(azure.asked) == 1
    assert f"answers {status} {code}: as the test says (request R1)" in said
    assert tip in said


def test_a_refusal_without_a_body(azure: Azure, server: StandIn) -> None:
    azure.blobs = lambda _: Answer(404, {"x-ms-error-code": "BlobNotFound"})
    refusal(server, shardfeed.NetPermanentError, "answers 404 BlobNotFound")


def test_conditions(azure: Azure, server: StandIn) -> None:
    azure.blobs = lambda _: fault(412, "ConditionNotMet")
    refusal(server, shardfeed.ChangedError, "another version")


def test_an_empty_range(azure: Azure, server: StandIn) -> None:
    def blobs(request: Request) -> Answer:
        if request.first is None:
            return Answer(200, {"ETag": '"v"'})
        return Answer(206, {"ETag": '"v"', "Content-Range": "bytes 0--1/0"})

    azure.blobs = blobs
    refusal(server, shardfeed.TruncatedError, "no bytes at all")


def test_headers_of_the_program(azure: Azure, server: StandIn) -> None:
    assert count(server, headers="x-ms-client-request-id: me", token="hush") == SAMPLES
    assert all(r.headers["x-ms-client-request-id"] == "me" for r in azure.asked)
    assert all("hush" not in str(request) for request in azure.asked)


def test_ranges_are_never_counted_from_the_end(
    azure: Azure, server: StandIn, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        for name, text in numbered(0, 20, 10_000):
            file.writestr(name, text)
    azure.blobs = ranged((tmp_path / "a.zip").read_bytes())
    given = {"az_endpoint": endpoint(server), "az_account_key": KEY}
    archive = shardfeed.Archive("az://bkt1/a.zip", **given)
    assert bytes(archive["000019.txt"].read()).rstrip(b".") == b"19"
    assert len(azure.asked) > 1
    assert all(request.first is not None for request in azure.asked)


# ---- Lists --------------------------------------------------------------------------------------


def page(names: list[str], following: str | None, more: str = "") -> bytes:
    text = "".join(f"<Blob><Name>{name}</Name></Blob>" for name in names)
    text = f"<Blobs>{text}{more}</Blobs>"
    if following is not None:
        text += f"<NextMarker>{following}</NextMarker>"
    head = '\ufeff<?xml version="1.0" encoding="utf-8"?>'
    return f"{head}<EnumerationResults>{text}</EnumerationResults>".encode()


def lists(pages: list[bytes], data: bytes) -> Any:
    """Page after page, by markers "=&0", "=&1" ...; all else is the shard."""
    good = ranged(data)

    def blobs(request: Request) -> Answer:
        path, _, query = request.path.partition("?")
        if not query:
            return good(request)
        fields = dict(urllib.parse.parse_qsl(query, strict_parsing=True))
        assert path == f"/{ACCOUNT}/bkt1"
        assert (fields["restype"], fields["comp"]) == ("container", "list")
        assert fields["maxresults"] == "5000"
        return Answer(body=pages[int(fields.get("marker", "=&0")[2:])])

    return blobs


def test_a_list_of_four_pages(azure: Azure, server: StandIn, data: bytes) -> None:
    names = [f"x/{number:05}" for number in range(9998)] + ["x/b.tar", "x/a.tar"]
    pages = [page(names[:5000], "=&amp;1"), page([], "=&amp;2"), page([], "=&amp;3")]
    azure.blobs = lists([*pages, page(names[5000:], "")], data)
    assert count(server, "az://bkt1/x/*.tar") == 2 * SAMPLES
    # By two threads.
    assert {r.path.partition("?")[0] for r in azure.asked[-2:]} == {
        f"/{ACCOUNT}/bkt1/x/{name}.tar" for name in "ab"
    }
    assert sum("comp=list" in request.path for request in azure.asked) == 4
    assert "prefix=x%2F" in azure.asked[0].path
    refusal(server, shardfeed.LimitError, "max_shards", "az://bkt1/x/*.tar", max_shards=6000)


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (page(["x/a.tar"], "")[:-30], "not whole"),
        (b"", "not whole"),
        (page(["x/a.tar"], None), "last page"),
        (page(["x/a.tar"], "=&amp;0"), "no end"),
        (page([], "=&amp;0"), "no end"),
        (page(["x/a.tar", "x/a.tar"], ""), "a key twice"),
        (page(["y/a.tar"], ""), "not asked for"),
        (page([""], ""), "without a name"),
        (b"<html>a proxy</html>", "something else"),
        (b"<Error><Code>InternalError</Code></Error>", "something else"),
    ],
)
def test_lists_that_are_not_whole(
    azure: Azure, server: StandIn, data: bytes, first: bytes, said: str
) -> None:
    azure.blobs = lists([first], data)
    refusal(server, shardfeed.NetPermanentError, said, "az://bkt1/x/")


def test_pages_without_blobs_end_somewhere(azure: Azure, server: StandIn) -> None:
    azure.blobs = lambda request: Answer(body=page([], f"m{request.number}"))
    refusal(server, shardfeed.NetPermanentError, "no end", "az://bkt1/x/")
    assert len(azure.asked) == 1001


def test_names_that_are_encoded_and_folders(azure: Azure, server: StandIn, data: bytes) -> None:
    kind = "<Properties><ResourceType>{}</ResourceType></Properties>"
    folder = f"<Blob><Name>x/d.tar</Name>{kind.format('directory')}</Blob>"
    file = f"<Blob><Name Encoded='true'>x/%EF%BF%BE+%25.tar</Name>{kind.format('file')}</Blob>"
    azure.blobs = lists([page([], "", folder + file)], data)
    assert count(server, "az://bkt1/x/") == SAMPLES
    assert azure.asked[-1].path == f"/{ACCOUNT}/bkt1/x/%EF%BF%BE%2B%25.tar"


def test_a_list_that_breaks_off_is_asked_for_again(
    azure: Azure, server: StandIn, data: bytes
) -> None:
    whole = page(["x/a.tar"], "")
    good = lists([whole], data)
    azure.blobs = lambda r: good(r) if r.number else Answer(body=whole, cut=40)
    assert count(server, "az://bkt1/x/") == SAMPLES
