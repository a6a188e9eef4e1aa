"""Credentials for Azure: from where its own tools find them, renewed, and shown nowhere."""

from __future__ import annotations

import os
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from azure_servers import ACCOUNT, KEY, Azure, endpoint, fault, sas
from conftest import numbered, write_tar
from http_servers import Answer, Request, StandIn, free_port, ranged, stand_in

URL = "az://bkt1/a.tar"
WEB = f"https://{ACCOUNT}.blob.core.windows.net/bkt1/"
SAMPLES = 20


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("tar") / "a.tar"
    return write_tar(path, numbered(0, SAMPLES)).read_bytes()


@pytest.fixture
def azure(data: bytes) -> Azure:
    return Azure.of(data)


@pytest.fixture
def server(azure: Azure, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """All services; no variables of Azure but the machine's service, which is not there."""
    for name in os.environ:
        if name.startswith(("AZURE_", "IDENTITY_")):
            monkeypatch.delenv(name)
    nobody = f"http://127.0.0.1:{free_port()}"
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", nobody)
    with stand_in(azure) as server:
        yield server


def count(server: StandIn, url: str = URL, **options: Any) -> int:
    given = {"az_endpoint": endpoint(server), "retries": 0, **options}
    return len(list(shardfeed.Stream(url, **given)))


def refusal(
    server: StandIn, expected: type[shardfeed.Error], match: str, url: str = URL, **options: Any
) -> str:
    """The message, in which nothing is secret."""
    with pytest.raises(expected, match=match) as caught:
        count(server, url, **options)
    said = str(caught.value) + repr(caught.value)
    assert "hush" not in said
    assert KEY not in said
    return said


def of_machine(server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", endpoint(server).rpartition("/")[0])


# ---- Where they come from -----------------------------------------------------------------------


def test_environment(azure: Azure, server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "?" + sas())
    assert count(server) == SAMPLES
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    assert count(server) == SAMPLES
    text = f"AccountName={ACCOUNT};SharedAccessSignature={sas()}"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
    assert count(server) == SAMPLES
    assert count(server, az_account_key=KEY) == SAMPLES
    key = f"SharedKey {ACCOUNT}"
    assert azure.signers == ["sas", key, "sas", key]


def test_where_the_account_is(
    azure: Azure, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"accountname={ACCOUNT};AccountKey={KEY};BlobEndpoint={endpoint(server)}"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
    assert count(server, az_endpoint="") == SAMPLES
    assert count(server, WEB + "a.tar", az_endpoint="") == SAMPLES
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING")
    assert count(server, az_endpoint="", az_connection_string=text) == SAMPLES
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "acct2")
    assert count(server, az_account_key=KEY) == SAMPLES
    assert azure.signers == [f"SharedKey {ACCOUNT}", "SharedKey acct2"]
    assert {request.path for request in azure.asked} == {f"/{ACCOUNT}/bkt1/a.tar"}
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT")
    refusal(server, shardfeed.UsageError, "give az_account", az_endpoint="", az_account_key=KEY)


def test_what_does_not_fit(server: StandIn) -> None:
    text = f"AccountName=other;AccountKey={KEY}"
    usage = shardfeed.UsageError
    refusal(server, usage, "more than one", az_account_key=KEY, az_sas=sas())
    refusal(server, usage, "more than one", az_account_key=KEY, az_anonymous=True)
    refusal(server, usage, "two accounts", az_connection_string=text, az_account=ACCOUNT)
    refusal(server, usage, "options are for other", WEB + "a.tar", az_connection_string=text)
    refusal(server, usage, "is not base64", az_account_key="hush!")
    refusal(server, usage, "is not base64", az_account_key=KEY.replace("=", ""))
    refusal(server, usage, "not a shared access", az_sas="hush")
    refusal(server, usage, "not Name=Value", az_connection_string="hush")
    refusal(server, usage, "has no credentials", az_connection_string="AccountName=a")
    refusal(server, usage, "not the name of a storage", az_account="Acct_1", az_account_key=KEY)
    for bad in ("ftp://h", "http://", "http://u:hush@h", "http://h?x"):
        refusal(server, usage, "endpoint of Azure Storage", az_endpoint=bad, az_account_key=KEY)
    assert not server.requests


def test_a_workload(
    azure: Azure, server: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("hush+assertion\n")
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", str(tmp_path / "token"))
    refusal(server, shardfeed.AuthError, "AZURE_CLIENT_ID and AZURE_TENANT_ID")
    monkeypatch.setenv("AZURE_CLIENT_ID", "my id")
    monkeypatch.setenv("AZURE_TENANT_ID", "my-tenant")
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", server.url(""))
    assert [count(server), count(server)] == [SAMPLES] * 2  # by one token
    assert azure.signers == ["hush-token1"]
    (asked,) = azure.others
    assert (asked.method, asked.path) == ("POST", "/my-tenant/oauth2/v2.0/token")
    assert dict(urllib.parse.parse_qsl(asked.body.decode(), strict_parsing=True)) == {
        "client_assertion": "hush+assertion",
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_id": "my id",
        "grant_type": "client_credentials",
        "scope": "https://storage.azure.com/.default",
    }
    (tmp_path / "token").unlink()
    refusal(server, shardfeed.AuthError, "there is no file")


def test_a_client_with_a_secret(
    azure: Azure, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLIENT_ID", "TENANT_ID", "CLIENT_SECRET"):
        monkeypatch.setenv(f"AZURE_{name}", f"hush.{name.partition('_')[0]}")
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", server.url(""))
    assert count(server) == SAMPLES
    assert b"client_secret=hush.CLIENT&" in azure.others[0].body
    body = b'{"error":"invalid_client","error_description":"AADSTS7: wrong\\r\\nTrace ID: 1"}'
    azure.broken = Answer(401, {}, body)
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "hush.2")
    refusal(server, shardfeed.AuthError, "401 invalid_client: AADSTS7: wrong;")
    azure.broken = Answer(401, {}, b'{"error":"it is hush.2"}')
    refusal(server, shardfeed.AuthError, r"answers 401 it is \*\*\*;")
    azure.broken = Answer(200, {}, b"<html>log in, hush</html>")
    refusal(server, shardfeed.AuthError, "no token in the answer of Entra ID")
    azure.broken = Answer(503)
    refusal(server, shardfeed.NetTransientError, "gives no token")
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", "http://example.com")
    refusal(server, shardfeed.UsageError, "AZURE_AUTHORITY_HOST is not https")


def test_an_app(azure: Azure, server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDENTITY_ENDPOINT", server.url("msi/token"))
    monkeypatch.setenv("IDENTITY_HEADER", "hush-identity")
    monkeypatch.setenv("AZURE_CLIENT_ID", "my id")
    assert count(server) == SAMPLES
    query = "api-version=2019-08-01&resource=https%3A%2F%2Fstorage.azure.com%2F&client_id=my%20id"
    assert azure.others[0].path == "/msi/token?" + query
    monkeypatch.setenv("IDENTITY_HEADER", "hush-other")
    refusal(server, shardfeed.AuthError, "identity of the app gives no token")
    monkeypatch.setenv("IDENTITY_ENDPOINT", "http://8.8.8.8/msi/token")
    refusal(server, shardfeed.UsageError, "IDENTITY_ENDPOINT is not https")


def test_the_machine(azure: Azure, server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    of_machine(server, monkeypatch)
    assert count(server) == SAMPLES
    assert azure.signers == ["hush-token1"]
    query = "api-version=2018-02-01&resource=https%3A%2F%2Fstorage.azure.com%2F"
    assert azure.others[0].path == "/metadata/identity/oauth2/token?" + query
    azure.broken = Answer(400, {}, b'{"error":"invalid_request","error_description":"no identity"}')
    monkeypatch.setenv("AZURE_CLIENT_ID", "other")
    refusal(server, shardfeed.AuthError, "400 invalid_request: no identity.*role")
    assert azure.others[-1].path.endswith("&client_id=other")


def test_nobody_and_public(azure: Azure, server: StandIn) -> None:
    refusal(server, shardfeed.AuthError, "no credentials for Azure Storage")
    assert not azure.asked
    azure.public = True
    refusal(server, shardfeed.AuthError, "no credentials for Azure Storage")
    assert not azure.asked
    assert count(server, az_anonymous=True) == SAMPLES
    azure.public = False
    said = refusal(server, shardfeed.NetPermanentError, "ResourceNotFound", az_anonymous=True)
    assert "not public" in said


def test_tokens_are_not_sent_in_clear(
    azure: Azure, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_machine(server, monkeypatch)
    refusal(server, shardfeed.UsageError, "without TLS", az_endpoint="http://example.com/a")
    assert not azure.asked


# ---- URLs of the web ----------------------------------------------------------------------------


def test_what_is_public_on_the_web(azure: Azure, server: StandIn) -> None:
    azure.public = True
    assert count(server, WEB + "a.tar") == SAMPLES
    assert azure.signers == [""]
    assert not azure.others


def test_the_web_with_credentials(
    azure: Azure, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert count(server, WEB + "a.tar", az_sas=sas()) == SAMPLES
    assert azure.signers == ["sas"]
    # What is for an account without a name is not for those that URLs name.
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", sas())
    refusal(server, shardfeed.NetPermanentError, "ResourceNotFound", WEB + "b.tar")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", ACCOUNT)
    assert count(server, WEB + "c.tar") == SAMPLES
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "other")
    refusal(server, shardfeed.NetPermanentError, "ResourceNotFound", WEB + "d.tar")


def test_the_web_by_the_identity_of_the_machine(
    azure: Azure, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_machine(server, monkeypatch)
    assert count(server, WEB + "a.tar") == SAMPLES
    assert count(server, WEB + "b.tar") == SAMPLES
    assert azure.signers == ["", "hush-token1"]  # asked without it once
    azure.blobs = lambda _: fault(404, "BlobNotFound")
    refusal(server, shardfeed.NetPermanentError, "BlobNotFound", WEB + "c.tar")


def test_signed_urls_of_the_web_stay_as_they_are(server: StandIn) -> None:
    """They are plain HTTPS: nothing listens where the proxy is said to be."""
    proxy = f"http://127.0.0.1:{free_port()}"
    for url, more in ((WEB + "a.tar?sig=hush", {}), (WEB + "a.tar", {"token": "hush"})):
        refusal(server, shardfeed.NetTransientError, "onnect", url, proxy=proxy, **more)
    assert not server.requests


# ---- What expires -------------------------------------------------------------------------------


def test_tokens_that_the_server_refuses_are_renewed_once(
    azure: Azure, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_machine(server, monkeypatch)
    assert count(server) == SAMPLES
    azure.good.clear()
    assert count(server) == SAMPLES
    assert azure.signers == ["hush-token1", "hush-token2"]
    azure.blobs = lambda r: fault(401, "InvalidAuthenticationInfo", r.headers["authorization"])
    refusal(server, shardfeed.AuthError, "InvalidAuthenticationInfo: Bearer \\*\\*\\*")
    assert azure.given <= 6


def test_tokens_are_renewed_before_they_expire(
    azure: Azure, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_machine(server, monkeypatch)
    azure.lasts = 200
    assert [count(server), count(server), count(server)] == [SAMPLES] * 3
    assert azure.signers == ["hush-token1", "hush-token2"]
    assert azure.given == 2  # the next attempt is half a minute later


def test_tokens_near_their_end_are_used_on_when_nobody_renews_them(
    azure: Azure, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_machine(server, monkeypatch)
    azure.lasts = 200
    assert count(server) == SAMPLES
    azure.broken = Answer(500)
    assert count(server) == SAMPLES
    assert azure.signers == ["hush-token1"]


def test_signatures_of_keys_that_expire_are_not_tried_again(azure: Azure, server: StandIn) -> None:
    secret = sas()
    signature = urllib.parse.parse_qs(secret)["sig"][0]
    text = f"Signature not valid in the specified time frame {signature}"
    detail = f"<AuthenticationErrorDetail>{text}</AuthenticationErrorDetail>"
    body = f"<Error><Code>AuthenticationFailed</Code><Message>no</Message>{detail}</Error>"
    azure.blobs = lambda _: Answer(403, {}, body.encode())
    said = refusal(server, shardfeed.AuthError, "AuthenticationFailed: no: Sig", az_sas=secret)
    assert signature not in said
    assert len(azure.asked) == 1


# ---- Clocks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [-86400, 3600])
def test_a_wrong_clock_is_repaired_once(
    azure: Azure, server: StandIn, data: bytes, ahead: int
) -> None:
    good = ranged(data)

    def blobs(request: Request) -> Answer:
        now = time.time() + ahead
        sent = time.strptime(request.headers["x-ms-date"], "%a, %d %b %Y %H:%M:%S GMT")
        if abs(time.mktime(sent) - time.timezone - now) < 900:
            return good(request)
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(now))
        return fault(403, "AuthenticationFailed", Date=date)

    azure.blobs = blobs
    assert count(server, az_account_key=KEY) == SAMPLES
    asked = len(azure.asked)
    assert count(server, az_account_key=KEY) == SAMPLES
    assert len(azure.asked) == 2 * asked - 1  # the second time it was right at once
