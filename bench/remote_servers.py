"""The servers that remote.py reads from, on loopback: nginx, versitygw, and toxiproxy in front."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from building import note

INSTALLED = Path.home() / ".cache/shardfeed/tests"  # by scripts/install_test_servers.sh
VERSITYGW, TOXIPROXY = INSTALLED / "versitygw", INSTALLED / "toxiproxy-server"
REGION, KEY, SECRET = "us-east-1", "testkey", "testsecret"
BUCKET = "bench"
CURL_SIGNS = [
    *("--aws-sigv4", f"aws:amz:{REGION}:s3", "--user", f"{KEY}:{SECRET}"),
    *("--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD"),
]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def running(
    command: list[str], port: int, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A server, from when it answers."""
    with tempfile.TemporaryFile() as said:
        variables = os.environ | dict(environment or {})
        process = subprocess.Popen(command, stdout=said, stderr=said, env=variables)
        try:
            for _ in range(500):
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                if process.poll() is not None:
                    break
                time.sleep(0.02)
            else:
                process.kill()
            if process.poll() is not None:
                said.seek(0)
                text = said.read().decode(errors="replace").strip()
                raise SystemExit(f"{command[0]} does not answer on port {port}: {text[-500:]}")
            yield
        finally:
            process.terminate()
            try:
                process.wait(3)
            except subprocess.TimeoutExpired:  # versitygw takes its time
                process.kill()
                process.wait()


# ---- HTTP ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def nginx(root: Path, log: Path | None = None) -> Iterator[int]:
    """The port at which the files of `root` are served. A line of `log` is the bytes that one
    answer sent, headers and all; it is complete when nginx has ended.
    """
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        raise SystemExit("nginx is not installed")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        paths = " ".join(
            f"{name}_temp_path {folder}/{name};"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        user = "user root;" if os.geteuid() == 0 else ""
        logged = "access_log off;"
        if log is not None:
            logged = f"log_format sent '$bytes_sent'; access_log {log} sent;"
        configuration = Path(folder, "nginx.conf")
        configuration.write_text(
            f"{user} daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error;\n"
            "events { worker_connections 256; }\n"
            f"http {{ {logged} sendfile on; root {root}; {paths}\n"
            f"server {{ listen 127.0.0.1:{port}; }} }}\n"
        )
        with running([program, "-p", folder, "-c", str(configuration)], port):
            yield port


# ---- S3 ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class S3:
    """A bucket of versitygw."""

    port: int
    log: Path

    def environment(self, port: int | None = None) -> dict[str, str]:
        """What every client of S3 takes: keys and the endpoint, at a proxy's port if one is given.

        Signatures are of the host and the port that the client asks.
        """
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port or self.port}",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        }

    def url(self, key: str) -> str:
        """For curl; that of the bucket itself for no key."""
        return f"http://127.0.0.1:{self.port}/{BUCKET}" + (f"/{key}" if key else "")

    def put(self, key: str, file: Path | None = None) -> None:
        """Makes an object of a file; the bucket, where there is no file."""
        what = ["--upload-file", str(file)] if file is not None else ["--request", "PUT"]
        # Without it curl waits a second for a "100 Continue".
        command = ["curl", "-sS", "-f", *CURL_SIGNS, "--header", "Expect:", *what, self.url(key)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def requests(self) -> int:
        """Those that were answered so far; a request is logged after its answer."""
        return self.log.read_bytes().count(b"\n") if self.log.exists() else 0

    def settled_requests(self) -> int:
        """The same, once nothing is added any more."""
        seen = -1
        while (now := self.requests()) != seen:
            seen = now
            time.sleep(0.1)
        return now


@contextlib.contextmanager
def versitygw(folder: Path) -> Iterator[S3 | None]:
    """An empty bucket, kept in `folder`, whose file system has to have extended attributes; None
    without versitygw.
    """
    program = str(VERSITYGW) if VERSITYGW.exists() else shutil.which("versitygw")
    if program is None:
        note("versitygw is not there (scripts/install_test_servers.sh); S3 is left out")
        yield None
        return
    with tempfile.TemporaryDirectory(dir=folder) as place:
        root, users, log = (Path(place, name) for name in ("root", "users", "log"))
        root.mkdir()
        users.mkdir()
        port = free_port()
        command = [program, "--port", f"127.0.0.1:{port}", "--region", REGION, "--keep-alive"]
        command += ["--quiet", "--access-log", str(log), "--iam-dir", str(users)]
        command += ["posix", str(root)]
        keys = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
        with running(command, port, keys):
            server = S3(port, log)
            server.put("")
            yield server


# ---- Slow links ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Proxies:
    """toxiproxy."""

    control: int

    def _post(self, path: str, what: dict[str, object]) -> None:
        url = f"http://127.0.0.1:{self.control}{path}"
        request = urllib.request.Request(url, json.dumps(what).encode(), method="POST")
        try:
            urllib.request.urlopen(request).close()
        except urllib.error.HTTPError as error:
            raise SystemExit(f"toxiproxy: {error.read().decode(errors='replace')}") from None

    def link(self, upstream: int, latency: int, rate: int = 0) -> int:
        """The port of a link to `upstream`: answers come `latency` ms later, and by at most `rate`
        kB/s on each connection; 0: any.
        """
        port = free_port()
        name = f"link{port}"
        ends = {"listen": f"127.0.0.1:{port}", "upstream": f"127.0.0.1:{upstream}"}
        self._post("/proxies", {"name": name, "enabled": True, **ends})
        toxics = [("latency", {"latency": latency})]
        if rate:
            toxics.append(("bandwidth", {"rate": rate}))
        for kind, attributes in toxics:
            self._post(f"/proxies/{name}/toxics", {"type": kind, "attributes": attributes})
        return port


@contextlib.contextmanager
def toxiproxy() -> Iterator[Proxies | None]:
    program = shutil.which("toxiproxy-server") or (TOXIPROXY.exists() and str(TOXIPROXY))
    if not program:
        note("toxiproxy is not there (scripts/install_test_servers.sh); slow links are left out")
        yield None
        return
    control = free_port()
    with running([program, "-host", "127.0.0.1", "-port", str(control)], control):
        yield Proxies(control)
