"""Google on loopback for the tests: a stand-in for storage and all that gives tokens, and the real
fake-gcs-server, which knows no credentials and no preconditions.

Token number N is hush-tokenN; storage takes the tokens that were given, and HMAC signatures.
"""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aws_servers import signed
from http_servers import Answer, Decide, Request, free_port, ranged

CACHED = Path.home() / ".cache/shardfeed/tests/fake-gcs-server"
READ = "https://www.googleapis.com/auth/devstorage.read_only"
ACT = "https://www.googleapis.com/auth/cloud-platform"


@contextlib.contextmanager
def fake_gcs_server(folder: Path) -> Iterator[str]:
    """Its URL; folder/data has what it begins with. FileNotFoundError when it is not there."""
    program = str(CACHED) if CACHED.exists() else shutil.which("fake-gcs-server")
    if program is None:
        raise FileNotFoundError(
            "fake-gcs-server is not there: scripts/install_test_servers.sh builds it"
        )
    port = free_port()
    words = [program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    words += ["-public-host", f"127.0.0.1:{port}", "-backend", "memory", "-log-level", "warn"]
    if (folder / "data").exists():
        words += ["-data", str(folder / "data")]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(200):
            assert process.poll() is None, (folder / "log").read_text()
            with contextlib.suppress(OSError):  # not yet
                urllib.request.urlopen(url + "/_internal/healthcheck", timeout=1).close()
                break
            time.sleep(0.05)
        yield url
    finally:
        process.kill()
        process.wait()


def make_bucket(server: str, name: str) -> None:
    """On fake-gcs-server."""
    url = f"{server}/storage/v1/b?project=test"
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps({"name": name}).encode(), headers)
    urllib.request.urlopen(request, timeout=10).close()


def put(server: str, bucket: str, key: str, body: bytes, encoding: str = "") -> None:
    """Makes an object, or a new generation of it."""
    query = {"uploadType": "media", "name": key}
    if encoding:
        query["contentEncoding"] = encoding
    url = f"{server}/upload/storage/v1/b/{bucket}/o?{urllib.parse.urlencode(query)}"
    request = urllib.request.Request(url, body, {"Content-Type": "application/x-tar"})
    urllib.request.urlopen(request, timeout=10).close()


def names_in(server: str, bucket: str) -> list[str]:
    """The keys of all objects."""
    with urllib.request.urlopen(f"{server}/storage/v1/b/{bucket}/o", timeout=10) as answer:
        return sorted(item["name"] for item in json.load(answer).get("items", []))


# ---- The stand-in -------------------------------------------------------------------------------


def fault(status: int, code: str, message: str = "as the test says", **headers: str) -> Answer:
    """A refusal of the XML API."""
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
    sent = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer(status, {"X-GUploader-UploadID": "U1", **sent}, body.encode())


def json_fault(status: int, reason: str) -> Answer:
    """A refusal of the JSON API."""
    error = {"code": status, "message": "as the test says", "errors": [{"reason": reason}]}
    return Answer(status, {}, json.dumps({"error": error}).encode())


def generations(data: bytes, number: int = 7) -> Decide:
    """An object under every key, whose only validator is its generation."""
    good = ranged(data, tag=None)

    def decide(request: Request) -> Answer:
        path, _, query = request.path.partition("?")
        wanted = urllib.parse.parse_qs(query).get("generation", [str(number)])[0]
        if wanted != str(number):
            return fault(404, "NoSuchKey")
        answer = good(Request(request.number, path, request.headers))
        headers = {**answer.headers, "x-goog-generation": str(number)}
        return Answer(answer.status, headers, answer.body)

    return decide


@dataclass
class Google:
    """All services. `storage` answers what is not asked of the others; it may be replaced."""

    storage: Decide
    lasts: int = 3600  # seconds, of tokens
    broken: bool = False  # nobody gives tokens any more
    flavor: str = "Google"  # of the metadata server
    public_key: Path | None = None  # of the service account
    taken: set[str] = field(default_factory=set)  # tokens that storage takes
    asked: list[Request] = field(default_factory=list)  # of storage
    others: list[Request] = field(default_factory=list)
    form: dict[str, str] = field(default_factory=dict)  # of the last request for a token
    claims: dict[str, Any] = field(default_factory=dict)  # of the last service account
    given: int = 0

    def __call__(self, request: Request) -> Answer:
        path = request.path.partition("?")[0]
        services = {
            "/token": self._oauth,
            "/sts": self._exchange,
            "/act": self._act,
            "/subject": lambda r: (
                Answer(body=b'{"v":"hush-subject"}')
                if r.headers.get("x-mine") == "yes"
                else Answer(403)
            ),
            "/": lambda _: Answer(
                headers={"Metadata-Flavor": self.flavor}, body=b"computeMetadata/"
            ),
            "/computeMetadata/v1/instance/service-accounts/default/token": self._machine,
        }
        if path in services:
            self.others.append(request)
            return Answer(500) if self.broken else services[path](request)
        self.asked.append(request)
        authorization = request.headers.get("authorization", "")
        if authorization.startswith("AWS4"):
            by = signed(request)
            assert by
            assert (by.region, by.service) == ("auto", "s3")
        elif authorization:
            token = authorization.removeprefix("Bearer ")
            if token not in self.taken:
                return fault(401, "AuthenticationRequired", f"Authentication required: {token}")
        return self.storage(request)

    @property
    def tokens(self) -> list[str]:
        """Of the requests of storage, without repetitions in a row; "": without."""
        found: list[str] = []
        for request in self.asked:
            now = request.headers.get("authorization", "").removeprefix("Bearer ")
            if not found or found[-1] != now:
                found.append(now)
        return found

    def _new(self) -> str:
        self.given += 1
        token = f"hush-token{self.given}"
        self.taken.add(token)
        return token

    def _token(self, **headers: str) -> Answer:
        answer = {"access_token": self._new(), "expires_in": self.lasts, "token_type": "Bearer"}
        return Answer(headers=headers, body=json.dumps(answer).encode())

    def _read_form(self, request: Request) -> None:
        assert request.method == "POST"
        assert request.headers["content-type"] == "application/x-www-form-urlencoded"
        self.form = dict(urllib.parse.parse_qsl(request.body.decode(), strict_parsing=True))

    def _oauth(self, request: Request) -> Answer:
        self._read_form(request)
        if self.form["grant_type"] == "refresh_token":
            wanted = {"client_id": "id", "client_secret": "hush-s", "refresh_token": "hush-r"}
            right = {name: self.form[name] for name in wanted} == wanted
        else:
            assert self.form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
            right = self._verified(self.form["assertion"])
        if right:
            return self._token()
        body = {"error": "invalid_grant", "error_description": f"no: {self.form}"}
        return Answer(400, {}, json.dumps(body).encode())

    def _verified(self, assertion: str) -> bool:
        """Whether openssl takes the signature for that of the account."""
        assert self.public_key
        header, claims, signature = assertion.split(".")

        def decoded(text: str) -> bytes:
            assert "=" not in text
            return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

        assert json.loads(decoded(header)) == {"alg": "RS256", "typ": "JWT", "kid": "key-7"}
        self.claims = json.loads(decoded(claims))
        place = self.public_key.parent / "signature"
        place.write_bytes(decoded(signature))
        words = ["openssl", "dgst", "-sha256", "-verify", str(self.public_key)]
        words += ["-signature", str(place)]
        text = f"{header}.{claims}".encode()
        return subprocess.run(words, input=text, capture_output=True, check=False).returncode == 0

    def _exchange(self, request: Request) -> Answer:
        self._read_form(request)
        grant = "urn:ietf:params:oauth:grant-type:token-exchange"
        assert self.form["grant_type"] == grant
        assert self.form["requested_token_type"] == "urn:ietf:params:oauth:token-type:access_token"
        assert self.form["audience"] == "//iam/p"
        assert self.form["subject_token_type"] == "urn:ietf:params:oauth:token-type:jwt"
        return self._token() if self.form["subject_token"] == "hush-subject" else Answer(400)

    def _act(self, request: Request) -> Answer:
        by = request.headers["authorization"].removeprefix("Bearer ")
        if by not in self.taken:
            return Answer(401)
        self.taken.remove(by)  # it is none for storage
        body = json.loads(request.body)
        assert body == {"scope": [READ], "lifetime": "3600s", "delegates": body["delegates"]}
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.lasts))
        return Answer(body=json.dumps({"accessToken": self._new(), "expireTime": end}).encode())

    def _machine(self, request: Request) -> Answer:
        if request.headers.get("metadata-flavor") != "Google":
            return Answer(403)
        assert urllib.parse.parse_qs(request.path.partition("?")[2]) == {"scopes": [READ]}
        return self._token(**{"Metadata-Flavor": self.flavor})
