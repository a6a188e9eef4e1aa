"""HTTP servers on loopback for the tests: a real nginx, and one that misbehaves as a test says."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


@dataclass(frozen=True)
class Certificates:
    """PEM files: a CA of the tests, and what it signed for localhost and 127.0.0.1."""

    ca: Path
    server: Path
    key: Path

    @classmethod
    def make(cls, folder: Path) -> Certificates:
        """Made by openssl."""
        if shutil.which("openssl") is None:
            raise FileNotFoundError(
                "openssl is not installed; scripts/install_dependencies.sh test installs it"
            )

        def openssl(*arguments: str) -> None:
            subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

        subject = ["-subj", "/CN=shardfeed test CA", "-keyout", "ca.key", "-out", "ca.pem"]
        openssl("req", "-x509", *NEW_KEY, "-days", "30", *subject)
        names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
        subject = ["-subj", "/CN=localhost", "-addext", names]
        openssl("req", *NEW_KEY, *subject, "-keyout", "server.key", "-out", "server.csr")
        signer = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30"]
        signed = ["-copy_extensions", "copy", "-out", "server.pem"]
        openssl("x509", "-req", "-in", "server.csr", *signer, *signed)
        return cls(folder / "ca.pem", folder / "server.pem", folder / "server.key")


def free_port() -> int:
    """A port that nothing listened on a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


# ---- nginx --------------------------------------------------------------------------------------

CONFIGURATION = """
{user} daemon off; worker_processes 1; pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 256; }}
http {{
  log_format ranges '$status $body_bytes_sent "$http_range" $request_uri $server_protocol';
  access_log {folder}/access.log ranges;
  default_type application/octet-stream; gzip off; absolute_redirect off; root {root};
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{http};
    location /norange/ {{ alias {root}/; max_ranges 0; }}
    location /gz/ {{ alias {root}/; gzip on; gzip_types *; gzip_min_length 0; }}
    location /auth/ {{ alias {root}/; auth_basic shards; auth_basic_user_file {folder}/users; }}
    location /r302/ {{ rewrite ^/r302(/.*)$ $1 redirect; }}
    location /r301/ {{ rewrite ^/r301(/.*)$ /r302$1 permanent; }}
  }}
  server {{
    listen 127.0.0.1:{https} ssl http2; listen 127.0.0.2:{https} ssl http2;
    ssl_certificate {server}; ssl_certificate_key {key};
    location /down/ {{ rewrite ^/down(/.*)$ http://127.0.0.1:{http}$1 redirect; }}
  }}
  server {{
    listen 127.0.0.1:{brief} ssl http2; keepalive_requests 3;
    ssl_certificate {server}; ssl_certificate_key {key};
  }}
}}
"""


@dataclass(frozen=True)
class Logged:
    """One line of nginx's access log."""

    status: int
    sent: int
    asked: str  # the header Range; "-": none
    path: str
    protocol: str  # "HTTP/1.1"


class Nginx:
    """A real nginx that gives the files of `root` with ranges and strong tags.

    Locations with a meaning: /norange/ (ranges ignored), /gz/ (compressed for those who ask, weak
    tags), /auth/ (user "reader", password "pass%word"), /r302/ and /r301/ (one and two redirects);
    of the TLS server /down/ (redirect to http). A third server, brief(), ends connections
    after three requests, those of HTTP/2 by GOAWAY.
    """

    def __init__(self, folder: Path) -> None:
        program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if program is None:
            raise FileNotFoundError(
                "nginx is not installed; scripts/install_dependencies.sh test installs it"
            )
        self.certificates = Certificates.make(folder)
        self.root = folder / "www"
        self.root.mkdir()
        (folder / "users").write_text("reader:{PLAIN}pass%word\n")
        self._log = folder / "access.log"
        for _ in range(5):  # another process may take a port in between
            self.ports = free_port(), free_port(), free_port()
            (folder / "nginx.conf").write_text(
                CONFIGURATION.format(
                    user="user root;" if Path("/proc/self").stat().st_uid == 0 else "",
                    folder=folder,
                    root=self.root,
                    http=self.ports[0],
                    https=self.ports[1],
                    brief=self.ports[2],
                    server=self.certificates.server,
                    key=self.certificates.key,
                )
            )
            with open(folder / "nginx.out", "wb") as output:
                self._process = subprocess.Popen(
                    [
                        program,
                        "-p",
                        folder,
                        "-c",
                        folder / "nginx.conf",
                        "-e",
                        folder / "error.log",
                    ],
                    stdout=output,
                    stderr=output,
                )
            if self._answers():
                return
            self.stop()
        said = (folder / "nginx.out").read_text() + (folder / "error.log").read_text()
        raise RuntimeError(f"nginx does not start: {said}")

    def _answers(self) -> bool:
        """Whether it does within ten seconds; false at once when it ended."""
        limit = time.monotonic() + 10
        while time.monotonic() < limit and self._process.poll() is None:
            with contextlib.suppress(OSError):
                for port in self.ports:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                return True
            time.sleep(0.02)
        return False

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait(10)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.ports[0]}/{path}"

    def https(self, path: str, host: str = "127.0.0.1") -> str:
        return f"https://{host}:{self.ports[1]}/{path}"

    def brief(self, path: str) -> str:
        return f"https://127.0.0.1:{self.ports[2]}/{path}"

    def logged(self) -> list[Logged]:
        """The requests that are over, of all servers."""
        time.sleep(0.1)  # a line is written after the answer
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        found = [re.fullmatch(r'(\d+) (\d+) "(.*)" (\S+) (\S+)', line) for line in lines]
        assert all(found), lines
        return [Logged(int(m[1]), int(m[2]), m[3], m[4], m[5]) for m in found if m]


# ---- The stand-in -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """What a client asked for."""

    number: int  # of this server, from 0
    path: str
    headers: dict[str, str]  # names in lower case
    method: str = "GET"
    body: bytes = b""

    @property
    def first(self) -> int | None:
        """The first byte of the range; None without one."""
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range", ""))
        return int(found[1]) if found else None

    @property
    def last(self) -> int | None:
        """The last byte of the range; None without one, or when it goes to the end."""
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range", ""))
        return int(found[2]) if found else None


@dataclass(frozen=True)
class Answer:
    """What to send: after `cut` bytes of the body the connection ends as `end` says."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    length: bool = True  # Content-Length is added unless it is among the headers
    cut: int | None = None  # None: nothing is cut, and the connection stays
    end: str = "fin"  # or "rst", or "stall": until StandIn.go_on()
    head: int | None = None  # so many bytes before the body are sent, and nothing more
    wait: Callable[[], None] | None = None  # called before the answer is sent

    def without(self, *names: str) -> dict[str, str]:
        """The headers without these."""
        return {name: value for name, value in self.headers.items() if name not in names}


Decide = Callable[[Request], Answer]


class StandIn:
    """A server that sends what `decide` says, and knows what it was asked.

    With `certificates` it talks TLS, and with `ask_for_certificate` wants one of its clients.
    `place` is its address, and its port, 0 for any.
    """

    def __init__(
        self,
        decide: Decide,
        certificates: Certificates | None = None,
        ask_for_certificate: bool = False,
        place: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        self.decide = decide
        self.requests: list[Request] = []
        self.errors: list[BaseException] = []  # of decide()
        self._lock = threading.Lock()
        self._go_on = threading.Event()
        self._stalled = threading.Event()
        self._closed = False
        self._context: ssl.SSLContext | None = None
        if certificates:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(certificates.server, certificates.key)
            if ask_for_certificate:
                self._context.load_verify_locations(certificates.ca)
                self._context.verify_mode = ssl.CERT_REQUIRED
        family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        self._listener = socket.create_server(place, family=family, backlog=128)
        self.host = f"[{place[0]}]" if ":" in place[0] else place[0]
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, path: str = "t.tar", user: str = "") -> str:
        scheme = "https" if self._context else "http"
        return f"{scheme}://{user}{self.host}:{self.port}/{path}"

    @property
    def firsts(self) -> list[int | None]:
        """The first byte that each request asked for; None: without a range."""
        return [request.first for request in self.requests]

    def wait_for_stall(self) -> None:
        """Until an answer has stalled."""
        assert self._stalled.wait(10), "no answer has stalled"

    def go_on(self) -> None:
        """The rest of the answers that stalled, and of all later ones, is sent."""
        self._go_on.set()

    def close(self) -> None:
        self._closed = True
        self._go_on.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        connection = plain
        try:
            plain.settimeout(30)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context:
                connection = self._context.wrap_socket(plain, server_side=True)
            received = b""
            while not self._closed:
                while b"\r\n\r\n" not in received:
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    received += piece
                head, _, received = received.partition(b"\r\n\r\n")
                size = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
                while len(received) < (length := int(size[1]) if size else 0):
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    received += piece
                body, received = received[:length], received[length:]
                if not self._answer(connection, head.decode("latin-1"), body):
                    return
        except OSError:
            pass  # the client went away
        finally:
            with contextlib.suppress(OSError):
                connection.close()

    def _answer(self, connection: socket.socket, head: str, body: bytes) -> bool:
        """Whether the connection stays."""
        line, *fields = head.split("\r\n")
        headers = {}
        for text in fields:
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()
        with self._lock:
            method, path, _ = line.split(" ")
            request = Request(len(self.requests), path, headers, method, body)
            self.requests.append(request)
            try:
                answer = self.decide(request)
            except BaseException as error:
                self.errors.append(error)
                return False
        if answer.wait:
            answer.wait()
        sent = dict(answer.headers)
        if answer.length:
            sent.setdefault("Content-Length", str(len(answer.body)))
        lines = [f"HTTP/1.1 {answer.status} Whatever"]
        lines += [f"{name}: {value}" for name, value in sent.items()]
        connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1")[: answer.head])
        if answer.head is not None:
            return False
        if method == "HEAD":
            return True
        connection.sendall(answer.body if answer.cut is None else answer.body[: answer.cut])
        if answer.cut is None:
            return answer.length
        if answer.end == "stall":
            self._stalled.set()
            self._go_on.wait(60)
            if self._closed:
                return False
            connection.sendall(answer.body[answer.cut :])
            return True
        if answer.end == "rst":
            time.sleep(0.01)  # so that the bytes before it arrive
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False


def ranged(data: bytes, tag: str | None = '"v1"') -> Decide:
    """A server that does all right: ranges, a tag, If-Match."""

    def decide(request: Request) -> Answer:
        headers = {"Accept-Ranges": "bytes", **({"ETag": tag} if tag else {})}
        wanted = request.headers.get("if-match")
        if wanted is not None and (wanted != tag or not wanted.startswith('"')):
            return Answer(412, headers)
        if request.first is None:
            return Answer(200, headers, data)
        if request.first >= len(data):
            return Answer(416, {**headers, "Content-Range": f"bytes */{len(data)}"})
        last = len(data) - 1 if request.last is None else min(request.last, len(data) - 1)
        headers["Content-Range"] = f"bytes {request.first}-{last}/{len(data)}"
        return Answer(206, headers, data[request.first : last + 1])

    return decide


def whole(data: bytes, tag: str | None = None) -> Decide:
    """A server without ranges: every answer is all of it."""
    return lambda _: Answer(200, {"ETag": tag} if tag else {}, data)


@contextlib.contextmanager
def stand_in(
    decide: Decide, certificates: Certificates | None = None, ask_for_certificate: bool = False
) -> Iterator[StandIn]:
    """A StandIn for the body of a with statement."""
    server = StandIn(decide, certificates, ask_for_certificate)
    try:
        yield server
    finally:
        server.close()
    assert not server.errors
