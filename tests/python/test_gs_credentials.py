"""Credentials for Google Cloud Storage: from where its own libraries find them, renewed, and shown
nowhere; and what its servers refuse."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from aws_servers import endpoint
from conftest import numbered, write_tar
from gs_servers import ACT, READ, Google, fault, generations, json_fault
from http_servers import Answer, Request, StandIn, free_port, stand_in

URL = "gs://bkt/a.tar"
SAMPLES = 20
KEYS = {"gs_access_key": "GOOG1", "gs_secret_key": "hush-GOOG1"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("tar") / "a.tar"
    return write_tar(path, numbered(0, SAMPLES, 5000)).read_bytes()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the private and the public key of a service account."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("keys")
    private, public = str(folder / "private"), str(folder / "public")
    words = ["openssl", "genpkey", "-algorithm", "RSA", "-out", private]
    subprocess.run(words, check=True, capture_output=True)
    words = ["openssl", "pkey", "-in", private, "-pubout", "-out", public]
    subprocess.run(words, check=True, capture_output=True)
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a login of gcloud; no machine of Google."""
    for name in os.environ:
        if name.startswith(("GOOGLE_", "CLOUDSDK_", "GCE_", "STORAGE_EMULATOR")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    return tmp_path


@pytest.fixture
def google(data: bytes) -> Google:
    return Google(generations(data))


@pytest.fixture
def server(google: Google, home: Path) -> Iterator[StandIn]:
    assert home.exists()
    with stand_in(google) as server:
        yield server


def count(server: StandIn, url: str = URL, **options: Any) -> int:
    return len(list(shardfeed.Stream(url, **{"gs_endpoint": endpoint(server), **options})))


def refusal(server: StandIn, kind: str, match: str, url: str = URL, **options: Any) -> str:
    """The message, in which nothing is secret."""
    with pytest.raises(getattr(shardfeed, kind), match=match) as caught:
        count(server, url, **{"retries": 0, **options})
    said = str(caught.value) + repr(caught.value)
    assert "hush" not in said
    return said


def user(server: StandIn, **more: str) -> dict[str, str]:
    login = {"type": "authorized_user", "client_id": "id", "token_uri": server.url("token")}
    return {**login, "client_secret": "hush-s", "refresh_token": "hush-r", **more}


def write(path: Path, account: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(account))
    return path


# ---- Where they come from -----------------------------------------------------------------------


@pytest.mark.parametrize("by_option", [True, False])
def test_service_account(
    google: Google,
    server: StandIn,
    home: Path,
    keys: Path,
    monkeypatch: pytest.MonkeyPatch,
    by_option: bool,
) -> None:
    google.public_key = keys / "public"
    account = {"type": "service_account", "client_email": "me@p", "private_key_id": "key-7"}
    account |= {"token_uri": server.url("token"), "private_key": (keys / "private").read_text()}
    path = write(home / "key.json", account)
    options = {"gs_credentials": path} if by_option else {}
    if not by_option:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    assert count(server, **options) == SAMPLES
    assert count(server, **options) == SAMPLES  # by the same token
    assert google.tokens == ["hush-token1"]
    wanted = {"iss": "me@p", "scope": READ, "aud": server.url("token")}
    assert {name: google.claims[name] for name in wanted} == wanted
    assert google.claims["exp"] - google.claims["iat"] == 3600
    assert abs(google.claims["iat"] - time.time()) < 60
    write(path, {**account, "private_key": "hush"})  # it is read again when it changes
    refusal(server, "AuthError", "key.json.* cannot be used: the private key", **options)
    google.public_key = write(home / "other", {})  # that verifies nothing
    write(path, {**account, "client_email": "you@p"})
    refusal(server, "AuthError", "gives no token.* 400 invalid_grant.*\n?.*clock", **options)


def test_login_of_gcloud(
    google: Google, server: StandIn, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "application_default_credentials.json"
    path = write(home / ".config/gcloud" / name, user(server))
    assert count(server) == SAMPLES
    write(home / "other" / name, user(server, refresh_token="hush-old"))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(home / "other"))
    refusal(server, "AuthError", "400 invalid_grant: no: .*gcloud auth")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    assert count(server) == SAMPLES
    assert google.tokens == ["hush-token1", "hush-token2"]
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(home / "none"))
    refusal(server, "AuthError", "there is no file .*none")


@pytest.mark.parametrize("source", ["file", "url"])
@pytest.mark.parametrize("acts", [True, False])
def test_external_account(
    google: Google, server: StandIn, home: Path, source: str, acts: bool
) -> None:
    (home / "subject").write_text("hush-subject\n")
    account: dict[str, Any] = {"type": "external_account", "audience": "//iam/p"}
    account |= {"subject_token_type": "urn:ietf:params:oauth:token-type:jwt"}
    account |= {"token_url": server.url("sts")}
    form = {"type": "json", "subject_token_field_name": "v"}
    account["credential_source"] = (
        {"file": str(home / "subject")}
        if source == "file"
        else {"url": server.url("subject"), "headers": {"X-Mine": "yes"}, "format": form}
    )
    if acts:
        account["service_account_impersonation_url"] = server.url("act")
    path = write(home / "external.json", account)
    assert count(server, gs_credentials=path) == SAMPLES
    assert google.form["scope"] == (ACT if acts else READ)
    assert google.tokens == ["hush-token2" if acts else "hush-token1"]
    account["credential_source"] = {"environment_id": "aws1", "url": server.url("subject")}
    write(path, account)
    refusal(server, "UnsupportedError", "neither file nor url", gs_credentials=path)


def test_impersonated_account(google: Google, server: StandIn, home: Path) -> None:
    account = {"type": "impersonated_service_account", "delegates": ["d"]}
    account["service_account_impersonation_url"] = server.url("act")
    path = write(home / "acts.json", {**account, "source_credentials": user(server)})
    assert count(server, gs_credentials=path) == SAMPLES
    assert google.tokens == ["hush-token2"]
    assert json.loads(google.others[-1].body)["delegates"] == ["d"]


def test_machine(google: Google, server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCE_METADATA_HOST", f"127.0.0.1:{server.port}")
    refusal(server, "AuthError", "no credentials for Google Cloud Storage were found")
    assert not google.others
    monkeypatch.delenv("NO_GCE_CHECK")
    google.flavor = "Else"
    refusal(server, "AuthError", "no credentials for Google Cloud Storage were found")
    assert len(google.others) == 1
    google.flavor = "Google"
    assert count(server) == SAMPLES
    assert google.tokens == ["hush-token1"]
    monkeypatch.setenv("GCE_METADATA_HOST", f"127.0.0.1:{free_port()}")
    refusal(server, "AuthError", "no credentials for Google Cloud Storage were found")


@pytest.mark.usefixtures("home")
def test_a_machine_that_says_nothing(server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_GCE_CHECK")
    with stand_in(lambda _: Answer(body=b"x", cut=0, end="stall")) as silent:
        monkeypatch.setenv("GCE_METADATA_HOST", f"127.0.0.1:{silent.port}")
        start = time.monotonic()
        for _ in range(3):  # remembered
            refusal(server, "AuthError", "no credentials for Google Cloud Storage were found")
        assert time.monotonic() - start < 2


def test_options(google: Google, server: StandIn, home: Path) -> None:
    write(home / ".config/gcloud/application_default_credentials.json", user(server))
    google.taken.add("hush-mine")
    assert count(server, gs_token="hush-mine") == SAMPLES
    assert count(server, gs_anonymous=True) == SAMPLES
    assert google.tokens == ["hush-mine", ""]
    assert not google.others
    refusal(server, "AuthError", "401", gs_token="hush-other")
    refusal(server, "UsageError", "end of line", gs_token="hush\r\nX: y")
    refusal(server, "UsageError", "do not fit", gs_token="hush", gs_anonymous=True)
    refusal(server, "UsageError", "gs_secret_key is missing", gs_access_key="GOOG1")
    for bad in ("ftp://h", "http://u:hush@h"):
        refusal(server, "UsageError", "endpoint of Google Cloud Storage", gs_endpoint=bad)
    assert "hush" not in repr(shardfeed.Stream(URL, gs_token="hush", gs_endpoint="http://h"))


def test_nothing_is_read_without_credentials_unless_that_was_asked_for(
    google: Google, server: StandIn, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal(server, "AuthError", "gs_anonymous=true")
    assert not google.asked
    # To an emulator the credentials of Google are not sent.
    write(home / ".config/gcloud/application_default_credentials.json", user(server))
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    assert count(server, gs_endpoint="") == SAMPLES
    assert google.tokens == [""]


def test_hmac_keys(google: Google, server: StandIn, data: bytes) -> None:
    good = generations(data)
    names = "".join(f"<Contents><Key>x/{key}.tar</Key></Contents>" for key in "ab")
    page = f"<ListBucketResult><IsTruncated>false</IsTruncated>{names}</ListBucketResult>"
    google.storage = lambda r: Answer(body=page.encode()) if "list-type=2" in r.path else good(r)
    assert count(server, "gs://bkt/x/*.tar", gs_user_project="p 1", **KEYS) == 2 * SAMPLES
    assert (
        len(
            list(
                shardfeed.Stream(
                    ["gs://bkt/a b/é~%.tar"], expand=False, gs_endpoint=endpoint(server), **KEYS
                )
            )
        )
        == SAMPLES
    )
    assert all("userProject=p%201" in r.path for r in google.asked if "/x/" in r.path)
    assert any("generation=7" in r.path for r in google.asked)
    google.storage = lambda _: fault(403, "SignatureDoesNotMatch")
    refusal(server, "AuthError", "403 SignatureDoesNotMatch.*\n?.*gs_secret_key", **KEYS)


# ---- Tokens that expire -------------------------------------------------------------------------


@pytest.fixture
def login(server: StandIn, home: Path) -> None:
    write(home / ".config/gcloud/application_default_credentials.json", user(server))


@pytest.mark.usefixtures("login")
def test_a_token_that_is_refused_is_renewed(google: Google, server: StandIn) -> None:
    assert count(server) == SAMPLES
    google.taken.clear()
    assert count(server) == SAMPLES
    assert google.tokens == ["hush-token1", "hush-token2"]
    google.storage = lambda _: fault(401, "AuthenticationRequired")
    refusal(server, "AuthError", "401 AuthenticationRequired")
    assert google.given <= 5


@pytest.mark.usefixtures("login")
def test_tokens_are_renewed_before_they_expire(google: Google, server: StandIn) -> None:
    google.lasts = 200
    assert [count(server), count(server), count(server)] == [SAMPLES] * 3
    assert google.given == 2  # the next attempt is half a minute later


@pytest.mark.usefixtures("login")
def test_a_token_near_its_end_is_used_on_when_nobody_renews_it(
    google: Google, server: StandIn
) -> None:
    google.lasts = 200
    assert count(server) == SAMPLES
    google.broken = True
    assert count(server, retries=0) == SAMPLES
    assert google.tokens == ["hush-token1", "hush-token2"]
    assert google.given == 2


@pytest.mark.usefixtures("login")
def test_a_login_page_in_place_of_a_token(server: StandIn, home: Path) -> None:
    with stand_in(lambda _: Answer(body=b"<html>hush: who are you?</html>")) as portal:
        path = write(home / "portal.json", user(portal))
        refusal(server, "AuthError", "has no access token", gs_credentials=path)


# ---- Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (fault(404, "NoSuchKey"), "NetPermanentError", "404 NoSuchKey: as the test says .*U1"),
        (fault(404, "NoSuchBucket"), "NetPermanentError", "404 NoSuchBucket.*\n?.*bucket"),
        (fault(403, "AccessDenied"), "AuthError", "AccessDenied.*\n?.*storage.objects.get"),
        (fault(400, "UserProjectMissing"), "AuthError", "\n?.*gs_user_project"),
        (json_fault(403, "forbidden"), "AuthError", "403 forbidden: as the test"),
        (fault(429, "TooManyRequests"), "ThrottledError", "429 TooManyRequests"),
        (fault(503, "SlowDown"), "ThrottledError", "503 SlowDown"),
        (json_fault(503, "backendError"), "ThrottledError", "503 backendError"),
        (fault(500, "InternalError"), "NetTransientError", "500 InternalError"),
        (Answer(302, {"Location": "http://127.0.0.1:1/"}), "NetPermanentError", "302"),
    ],
)
def test_refusals(google: Google, server: StandIn, answer: Answer, kind: str, said: str) -> None:
    google.storage = lambda _: answer
    google.taken.add("hush-t")
    refusal(server, kind, said, gs_token="hush-t")
    assert len(google.asked) == 1


def test_what_a_refusal_repeats_of_the_request_is_not_shown(
    google: Google, server: StandIn
) -> None:
    google.taken.add("hush-t")
    google.storage = lambda r: fault(403, "AccessDenied", r.headers["authorization"])
    assert "***" in refusal(server, "AuthError", "AccessDenied", gs_token="hush-t")


def test_a_private_bucket_without_credentials(google: Google, server: StandIn) -> None:
    google.storage = lambda _: fault(401, "AccessDenied")
    refusal(server, "AuthError", "leave gs_anonymous out", gs_anonymous=True)


def test_a_busy_server_is_asked_again(google: Google, server: StandIn, data: bytes) -> None:
    good = generations(data)
    google.storage = lambda r: good(r) if r.number > 1 else fault(503, "SlowDown")
    assert count(server, gs_anonymous=True, retries=3) == SAMPLES


def test_the_project_that_pays(google: Google, server: StandIn) -> None:
    assert count(server, gs_anonymous=True, gs_user_project="p/1") == SAMPLES
    assert all("userProject=p%2F1" in request.path for request in google.asked)
    asked = len(google.asked)
    assert count(server, gs_anonymous=True) == SAMPLES
    assert all("userProject" not in request.path for request in google.asked[asked:])


@pytest.mark.parametrize("how", ["gone", "precondition", "another"])
def test_a_generation_that_is_replaced(
    google: Google, server: StandIn, data: bytes, how: str
) -> None:
    good, other = generations(data), generations(data, 8)

    def storage(request: Request) -> Answer:
        if not request.first:
            return good(request)
        assert "generation=7" in request.path
        if how == "precondition":
            return fault(412, "PreconditionFailed")
        if how == "gone":
            return other(request)
        return other(Request(request.number, "/bkt/a.tar", request.headers))

    google.storage = storage
    refusal(server, "ChangedError", "another version", gs_anonymous=True)


def test_the_token_of_http_is_not_sent_and_objects_come_as_they_are_stored(
    google: Google, server: StandIn
) -> None:
    assert count(server, gs_anonymous=True, token="hush") == SAMPLES
    assert all("hush" not in str(request) for request in google.asked)
    assert all(r.headers["accept-encoding"] == "gzip" for r in google.asked)


# ---- Lists --------------------------------------------------------------------------------------


def page(keys: list[str], following: str | None = None) -> bytes:
    text: dict[str, Any] = {"kind": "storage#objects", "items": [{"name": key} for key in keys]}
    if following is not None:
        text["nextPageToken"] = following
    if not keys:
        del text["items"]
    return json.dumps(text).encode()


def lists(pages: list[bytes], data: bytes) -> Any:
    """Page after page, by tokens "=&0", "=&1" ...; all else is the shard."""
    good = generations(data)

    def storage(request: Request) -> Answer:
        path, _, query = request.path.partition("?")
        if path != "/storage/v1/b/bkt/o":
            return good(request)
        fields = dict(urllib.parse.parse_qsl(query, strict_parsing=True))
        assert fields["prefix"] == "x/"
        assert "accept-encoding" not in request.headers
        return Answer(body=pages[int(fields.get("pageToken", "=&0")[2:])])

    return storage


def test_a_list_with_an_empty_page(google: Google, server: StandIn, data: bytes) -> None:
    pages = [page(["x/b.tar", "x/c"], "=&1"), page([], "=&2"), page(["x/a.tar"])]
    google.storage = lists(pages, data)
    assert count(server, "gs://bkt/x/*.tar", gs_anonymous=True, threads=1) == 2 * SAMPLES
    paths = [request.path for request in google.asked if "maxResults" not in request.path]
    assert paths[0] == "/bkt/x/a.tar"


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (page(["x/a.tar"])[:-3], "not whole"),
        (b"<html>a proxy</html>", "no JSON"),
        (json_fault(500, "x").body, "something else"),
        (page(["x/a.tar"], ""), "where the next page is"),
        (page(["x/a.tar"], "=&0"), "no end|a key twice"),
        (page(["x/a.tar", "x/a.tar"]), "a key twice"),
        (page(["y/a.tar"]), "not asked for"),
        (page([], "=&0"), "no end"),
    ],
)
def test_lists_that_are_not_whole(
    google: Google, server: StandIn, data: bytes, first: bytes, said: str
) -> None:
    google.storage = lists([first], data)
    refusal(server, "NetPermanentError", said, "gs://bkt/x/", gs_anonymous=True)
