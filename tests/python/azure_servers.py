"""Azure on loopback for the tests: a real azurite, and a stand-in of all services."""

from __future__ import annotations

import base64
import contextlib
import hmac
import json
import os
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

from http_servers import Answer, Decide, Request, StandIn, free_port, ranged

AZURITE = Path.home() / ".cache/shardfeed/tests/azurite/azurite-blob"
ACCOUNT = "acct1"
KEY = base64.b64encode(b"hush-key-of-the-account").decode()


def at(seconds: float) -> str:
    """So many seconds from now, as Azure writes times."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def sas(rights: str = "racwdl", ends: float = 3600, starts: float | None = None) -> str:
    """A shared access signature of the account, by its key."""
    start, end = at(starts) if starts is not None else "", at(ends)
    fields = [ACCOUNT, rights, "b", "sco", start, end, "", "", "2021-12-02", "", ""]
    digest = hmac.digest(base64.b64decode(KEY), "\n".join(fields).encode(), "sha256")
    query = {"sv": "2021-12-02", "ss": "b", "srt": "sco", "sp": rights, "se": end}
    query |= {"st": start} if start else {}
    return urllib.parse.urlencode({**query, "sig": base64.b64encode(digest).decode()})


@dataclass(frozen=True)
class Azurite:
    """A server that runs. `endpoint` is that of the account."""

    endpoint: str
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, folder: Path) -> Azurite:
        port = free_port()
        words = [str(AZURITE), "--blobHost", "127.0.0.1", "--blobPort", str(port)]
        words += ["--inMemoryPersistence", "--silent", "--disableTelemetry"]
        environment = {**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(
                words, env=environment, cwd=folder, stdout=log, stderr=log, start_new_session=True
            )
        server = cls(f"http://127.0.0.1:{port}/{ACCOUNT}", process)
        for _ in range(600):
            assert process.poll() is None, (folder / "log").read_text()
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1).close()
            except urllib.error.HTTPError as answer:
                answer.close()  # it has no page there
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        return server

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def put(self, name: str, body: bytes, query: str = "", **more: str) -> None:
        """Writes a blob, CONTAINER/BLOB, as it is; `more` are headers, with _ for -."""
        headers = {"x-ms-version": "2021-12-02"}
        headers |= {} if query else {"x-ms-blob-type": "BlockBlob"}
        headers |= {name.replace("_", "-"): value for name, value in more.items()}
        self._put(f"{urllib.parse.quote(name, safe='/~')}?{query}{sas()}", body, headers)

    def make(self, container: str, public: bool = False) -> None:
        headers = {"x-ms-blob-public-access": "container"} if public else {}
        self._put(f"{container}?restype=container&{sas()}", b"", headers)

    def names(self, container: str) -> list[str]:
        """Those of all blobs."""
        url = f"{self.endpoint}/{container}?restype=container&comp=list&{sas()}"
        with contextlib.closing(urllib.request.urlopen(url, timeout=10)) as answer:
            return sorted(name.text or "" for name in ET.fromstring(answer.read()).iter("Name"))

    def _put(self, path: str, body: bytes, headers: dict[str, str]) -> None:
        url = f"{self.endpoint}/{path}"
        request = urllib.request.Request(url, body, headers, method="PUT")
        with contextlib.closing(urllib.request.urlopen(request, timeout=10)):
            pass


# ---- The stand-in -------------------------------------------------------------------------------


def fault(status: int, code: str, message: str = "as the test says", **headers: str) -> Answer:
    """A refusal of the blob service."""
    text = f"<Error><Code>{code}</Code><Message>{message}\nRequestId:R1\nTime:now</Message></Error>"
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    names |= {"x-ms-error-code": code, "x-ms-request-id": "R1"}
    return Answer(status, names, b'\xef\xbb\xbf<?xml version="1.0"?>' + text.encode())


@dataclass
class Azure:
    """The blob service and all that give tokens. Of token number N the text is hush-tokenN."""

    blobs: Decide
    lasts: float = 3600  # seconds, of tokens
    broken: Answer | None = None  # nobody gives tokens any more
    given: int = 0
    good: set[str] = field(default_factory=set)  # tokens that the blob service takes
    public: bool = False
    asked: list[Request] = field(default_factory=list)  # of blobs
    others: list[Request] = field(default_factory=list)

    @classmethod
    def of(cls, data: bytes) -> Azure:
        """With this blob under every name."""
        return cls(ranged(data))

    def __call__(self, request: Request) -> Answer:
        """What the stand-in decides."""
        path = request.path.partition("?")[0]
        if path.endswith("/oauth2/v2.0/token"):
            return self._other(request, {"expires_in": int(self.lasts), "ext_expires_in": 1})
        if path == "/metadata/identity/oauth2/token":
            if request.headers.get("metadata") != "true":
                return Answer(400)
            return self._other(request, {"expires_on": str(int(time.time() + self.lasts))})
        if path == "/msi/token":
            if request.headers.get("x-identity-header") != "hush-identity":
                return Answer(401)
            return self._other(request, {"expires_on": str(int(time.time() + self.lasts))})
        self.asked.append(request)
        assert request.headers["x-ms-version"] == "2021-12-02"
        by = request.headers.get("authorization", "")
        if by.startswith("Bearer ") and by[7:] not in self.good:
            return fault(401, "InvalidAuthenticationInfo")
        if not by and "sig=" not in request.path and not self.public:
            return fault(404, "ResourceNotFound")
        return self.blobs(request)

    @property
    def signers(self) -> list[str]:
        """What authorized the requests for blobs, without repetitions in a row."""
        found: list[str] = []
        for request in self.asked:
            by = request.headers.get("authorization", "").removeprefix("Bearer ")
            if by.startswith("SharedKey "):
                by = by.partition(":")[0]
            if not by and "sig=" in request.path:
                by = "sas"
            if not found or found[-1] != by:
                found.append(by)
        return found

    def _other(self, request: Request, more: dict[str, object]) -> Answer:
        self.others.append(request)
        if self.broken:
            return self.broken
        self.given += 1
        token = f"hush-token{self.given}"
        self.good.add(token)
        return Answer(body=json.dumps({"access_token": token, **more}).encode())


def endpoint(server: StandIn) -> str:
    """Where the account of the tests is on a stand-in."""
    return server.url(ACCOUNT)
