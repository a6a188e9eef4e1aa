"""AWS on loopback for the tests: S3, and the services that give keys, on one stand-in.

Of any key id K the secret key is hush-K; every signature is verified by it.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from http_servers import Answer, Decide, Request, StandIn, free_port, ranged

CACHED = Path.home() / ".cache/shardfeed/tests/versitygw"
CREDENTIAL = (
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, "
    r"SignedHeaders=([^,]+), Signature=([0-9a-f]{64})"
)


@dataclass(frozen=True)
class Signed:
    """What a signature is of."""

    key: str
    token: str
    region: str
    service: str
    names: list[str]


def signature(secret: str, canonical: str, date: str, scope: str) -> str:
    """Of a canonical request, by AWS Signature Version 4."""
    digest = hashlib.sha256(canonical.encode("latin-1")).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope, digest])
    key = b"AWS4" + secret.encode()
    for part in [*scope.split("/"), text]:
        key = hmac.digest(key, part.encode(), "sha256")
    return key.hex()


def signed(request: Request) -> Signed | None:
    """Who signed a request, and how; None: nobody. Fails for a wrong signature."""
    if "authorization" not in request.headers:
        return None
    found = re.fullmatch(CREDENTIAL, request.headers["authorization"])
    assert found, request.headers
    key, day, region, service, names, wanted = found.groups()
    path, _, query = request.path.partition("?")
    lines = "".join(f"{name}:{request.headers[name]}\n" for name in names.split(";"))
    payload = hashlib.sha256(request.body).hexdigest()
    canonical = "\n".join([request.method, path, query, lines, names, payload])
    scope = f"{day}/{region}/{service}/aws4_request"
    made = signature(f"hush-{key}", canonical, request.headers["x-amz-date"], scope)
    assert made == wanted, canonical
    for name in request.headers:
        assert not name.startswith("x-amz-") or name in names.split(";"), name
    token = request.headers.get("x-amz-security-token", "")
    return Signed(key, token, region, service, names.split(";"))


@contextlib.contextmanager
def versitygw(folder: Path) -> Iterator[str]:
    """A real server of S3 without buckets, of the key testkey; folder/root has its files."""
    program = str(CACHED) if CACHED.exists() else shutil.which("versitygw")
    if program is None:
        pytest.skip("versitygw is not there: scripts/install_test_servers.sh builds it")
    for name in ("root", "iam"):
        (folder / name).mkdir()
    url = f"http://127.0.0.1:{free_port()}"
    environment = {**os.environ, "ROOT_ACCESS_KEY": "testkey", "ROOT_SECRET_KEY": "testsecret"}
    words = [program, "--port", url[7:], "--region", "us-east-1", "--keep-alive", "--quiet"]
    words += ["--health", "/healthz", "--iam-dir", str(folder / "iam")]
    words += ["--virtual-domain", "s3.localhost", "posix", str(folder / "root")]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
    try:
        for _ in range(200):
            assert process.poll() is None, (folder / "log").read_text()
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(url + "/healthz", timeout=1).close()
                break
            time.sleep(0.05)
        yield url
    finally:
        process.kill()  # it takes its time when it is asked to end
        process.wait()


def ask(
    method: str,
    url: str,
    body: bytes | None = None,
    key: str = "testkey",
    secret: str = "testsecret",
    **more: str,
) -> bytes:
    """Asks a server of S3; `more` are headers, with _ for -. The body of the answer.

    The URL is encoded, once, and its query sorted.
    """
    parts = urllib.parse.urlsplit(url)
    date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    scope = f"{date[:8]}/us-east-1/s3/aws4_request"
    payload = hashlib.sha256(body or b"").hexdigest()
    headers = {name.replace("_", "-"): value for name, value in more.items()}
    headers |= {"host": parts.netloc, "x-amz-content-sha256": payload, "x-amz-date": date}
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    canonical = "\n".join([method, parts.path, parts.query, lines, names, payload])
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, "
        f"Signature={signature(secret, canonical, date, scope)}"
    )
    request = urllib.request.Request(url, body, headers, method=method)
    with contextlib.closing(urllib.request.urlopen(request, timeout=10)) as answer:
        return bytes(answer.read())


def put(url: str, body: bytes = b"", **more: str) -> None:
    """Makes a bucket, an object or a policy on a server of S3; see ask()."""
    ask("PUT", url, body, **more)


def pending(url: str) -> list[str]:
    """The keys of uploads in parts that were begun in a bucket and have not ended."""
    body = ask("GET", f"{url}?uploads=")
    return sorted(
        upload.findtext("{*}Key") or "" for upload in ET.fromstring(body).findall("{*}Upload")
    )


def names_in(url: str) -> list[str]:
    """The keys of all objects in a bucket."""
    found = ET.fromstring(ask("GET", f"{url}?list-type=2")).findall("{*}Contents")
    return sorted(item.findtext("{*}Key") or "" for item in found)


def presigned(url: str, seconds: int, key: str = "testkey", secret: str = "testsecret") -> str:
    """The URL of an object, encoded once, with a signature that lasts so long."""
    parts = urllib.parse.urlsplit(url)
    date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    scope = f"{date[:8]}/us-east-1/s3/aws4_request"
    query = urllib.parse.urlencode(
        {
            "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
            "X-Amz-Credential": f"{key}/{scope}",
            "X-Amz-Date": date,
            "X-Amz-Expires": seconds,
            "X-Amz-SignedHeaders": "host",
        }
    )
    lines = [parts.path, query, f"host:{parts.netloc}", "", "host", "UNSIGNED-PAYLOAD"]
    made = signature(secret, "\n".join(["GET", *lines]), date, scope)
    return f"{url}?{query}&X-Amz-Signature={made}"


def fault(status: int, code: str, inside: str = "", **headers: str) -> Answer:
    """A refusal of S3."""
    body = f"<Error><Code>{code}</Code><Message>as the test says</Message>{inside}</Error>"
    return Answer(
        status, {name.replace("_", "-"): text for name, text in headers.items()}, body.encode()
    )


def at(seconds: float) -> str:
    """So many seconds from now, as AWS writes times."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


@dataclass
class Aws:
    """All services. `s3` answers what is not asked of the others; it may be replaced."""

    s3: Decide
    lasts: float = 3600  # seconds, of temporary keys
    broken: bool = False  # nobody gives keys any more
    given: int = (
        0  # temporary keys, so far: of number N the key id is KEYN and the token hush-tokenN
    )
    asked: list[Request] = field(default_factory=list)  # of S3
    others: list[Request] = field(default_factory=list)
    form: dict[str, str] = field(default_factory=dict)  # what STS was asked last

    @classmethod
    def of(cls, data: bytes) -> Aws:
        """S3 with this object under every key."""
        return cls(ranged(data))

    def __call__(self, request: Request) -> Answer:
        """What the stand-in decides."""
        path = request.path.partition("?")[0]
        if path == "/" and request.method == "POST":
            return self._other(request, self._sts)
        if path == "/federation/credentials":
            return self._other(request, self._sign_on)
        if path == "/container":
            return self._other(request, self._container)
        if path.startswith("/latest/"):
            return self._other(request, self._machine)
        assert request.method in ("GET", "HEAD")
        signed(request)
        self.asked.append(request)
        return self.s3(request)

    @property
    def signers(self) -> list[tuple[str, str]]:
        """Key id and session token of the requests of S3, without repetitions in a row."""
        found: list[tuple[str, str]] = []
        for request in self.asked:
            by = signed(request)
            now = (by.key, by.token) if by else ("", "")
            if not found or found[-1] != now:
                found.append(now)
        return found

    def _other(self, request: Request, service: Any) -> Answer:
        self.others.append(request)
        return Answer(500) if self.broken else service(request)

    def _new(self) -> tuple[str, str, str]:
        self.given += 1
        key = f"KEY{self.given}"
        return key, "hush-" + key, f"hush-token{self.given}"

    def _json(self) -> Answer:
        key, secret, token = self._new()
        keys = {"AccessKeyId": key, "SecretAccessKey": secret, "Token": token}
        return Answer(body=json.dumps({**keys, "Expiration": at(self.lasts)}).encode())

    def _sts(self, request: Request) -> Answer:
        self.form = dict(urllib.parse.parse_qsl(request.body.decode(), strict_parsing=True))
        by = signed(request)
        assert (by is None) == (self.form["Action"] == "AssumeRoleWithWebIdentity")
        if self.form["RoleArn"] == "arn:refused":
            body = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error>"
            return Answer(403, {}, (body + "<RequestId>r7</RequestId></ErrorResponse>").encode())
        assert by is None or by.service == "sts"
        key, secret, token = self._new()
        action = self.form["Action"]
        inside = f"<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>"
        inside += f"<SessionToken>{token}</SessionToken><Expiration>{at(self.lasts)}</Expiration>"
        inside = f"<{action}Result><Credentials>{inside}</Credentials></{action}Result>"
        space = 'xmlns="https://sts.amazonaws.com/doc/2011-06-15/"'
        return Answer(body=f"<{action}Response {space}>{inside}</{action}Response>".encode())

    def _sign_on(self, request: Request) -> Answer:
        query = urllib.parse.parse_qs(request.path.partition("?")[2])
        if (query["account_id"], query["role_name"]) != (["12"], ["my role"]):
            return Answer(404)
        if request.headers.get("x-amz-sso_bearer_token") != "hush-bearer":
            return Answer(401, {}, b'{"message":"hush"}')
        key, secret, token = self._new()
        keys = {"accessKeyId": key, "secretAccessKey": secret, "sessionToken": token}
        keys["expiration"] = int((time.time() + self.lasts) * 1000)  # type: ignore[assignment]
        return Answer(body=json.dumps({"roleCredentials": keys}).encode())

    def _container(self, request: Request) -> Answer:
        if request.headers.get("authorization") != "hush-container":
            return Answer(403)
        return self._json()

    def _machine(self, request: Request) -> Answer:
        if request.path == "/latest/api/token":
            right = request.method == "PUT"
            right = right and "x-aws-ec2-metadata-token-ttl-seconds" in request.headers
            return Answer(body=b"hush-imds") if right else Answer(400)
        if request.headers.get("x-aws-ec2-metadata-token") != "hush-imds":
            return Answer(401)
        place = "/latest/meta-data/iam/security-credentials/"
        if request.path == place:
            return Answer(body=b"my-role")
        return self._json() if request.path == place + "my-role" else Answer(404)


def endpoint(server: StandIn) -> str:
    """Its URL without the path."""
    return server.url("").rstrip("/")


# ---- What takes objects -------------------------------------------------------------------------


@dataclass
class Bucket:
    """S3 that stores what it is given, after it has verified all of it.

    `before` may answer in its place, and `after` replace the answer to what was done.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    headers: dict[str, dict[str, str]] = field(default_factory=dict)  # of objects
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    of_upload: dict[str, dict[str, str]] = field(default_factory=dict)
    before: Callable[[Request], Answer | None] = lambda _: None
    after: Callable[[Request], Answer | None] = lambda _: None

    def __call__(self, request: Request) -> Answer:
        signed(request)
        answer = self.before(request)
        if answer is None:
            done = self._done(request)
            answer = self.after(request) or done
        return answer

    def _done(self, request: Request) -> Answer:
        path, _, text = request.path.partition("?")
        query = dict(urllib.parse.parse_qsl(text, keep_blank_values=True))
        if request.method == "PUT":
            crc = base64.b64encode(zlib.crc32(request.body).to_bytes(4, "big")).decode()
            if request.headers["x-amz-checksum-crc32"] != crc:
                return fault(400, "BadDigest")
        if request.method in ("GET", "HEAD"):
            return self._read(request, path)
        if request.method == "PUT" and not query:
            return self._make(request, path, request.body, request.headers)
        if request.method == "POST" and query == {"uploads": ""}:
            number = f"up+{len(self.of_upload)}/="
            self.uploads[number] = {}
            self.of_upload[number] = request.headers
            return Answer(
                body=b"<InitiateMultipartUploadResult><UploadId>"
                + number.encode()
                + b"</UploadId></InitiateMultipartUploadResult>"
            )
        if query["uploadId"] not in self.uploads:
            return fault(404, "NoSuchUpload")
        if request.method == "DELETE":
            del self.uploads[query["uploadId"]]
            return Answer(204)
        parts = self.uploads[query["uploadId"]]
        if request.method == "PUT":
            parts[int(query["partNumber"])] = request.body
            return Answer(headers={"ETag": f'"tag{query["partNumber"]}"'})
        said = [
            (int(part.findtext("{*}PartNumber") or 0), part.findtext("{*}ETag"))
            for part in ET.fromstring(request.body)
        ]
        assert said == [(number, f'"tag{number}"') for number in sorted(parts)]
        body = b"".join(parts[number] for number in sorted(parts))
        answer = self._make(request, path, body, self.of_upload[query["uploadId"]])
        if answer.status == 200:
            del self.uploads[query["uploadId"]]
        return answer

    def _read(self, request: Request, path: str) -> Answer:
        if path not in self.objects:
            return Answer(404) if request.method == "HEAD" else fault(404, "NoSuchKey")
        data, headers = self.objects[path], self.headers[path]
        if request.method == "HEAD":
            return Answer(200, {**headers, "Content-Length": str(len(data))})
        answer = ranged(data, f'"{len(data)}"')(request)
        return Answer(answer.status, {**headers, **answer.headers}, answer.body)

    def _make(self, request: Request, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        if path in self.objects and request.headers.get("if-none-match") == "*":
            return fault(412, "PreconditionFailed")
        self.objects[path] = body
        self.headers[path] = {
            name: value for name, value in headers.items() if name.startswith("x-amz-meta-")
        }
        self.headers[path]["Last-Modified"] = "Tue, 24 Nov 2026 08:00:00 GMT"
        return Answer(headers={"ETag": '"e"'})
