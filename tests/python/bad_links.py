"""Bad networks on loopback for the tests: a real toxiproxy in front of other servers."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from http_servers import free_port

CACHED = Path.home() / ".cache/shardfeed/tests/toxiproxy-server"
INSTALLED = str(CACHED) if CACHED.exists() else shutil.which("toxiproxy-server")


@dataclass(frozen=True)
class Link:
    """A way to a server, at first without faults."""

    control: str
    name: str
    port: int

    def add(self, kind: str, toxicity: float = 1, stream: str = "downstream", **more: Any) -> None:
        """A fault, by its name in toxiproxy, of the connections that are there and of new ones."""
        toxic = {"name": f"{kind} {stream}", "type": kind, "stream": stream, "attributes": more}
        self._ask("POST", f"proxies/{self.name}/toxics", {**toxic, "toxicity": toxicity})

    def cut_after(self, count: int, reset: bool) -> None:
        """Each connection ends after so many bytes, headers included, by FIN or RST.

        toxiproxy resets what it closes on links with a reset_peer, also where that does nothing.
        """
        if reset:
            self.add("reset_peer", toxicity=0, timeout=0)
        self.add("limit_data", bytes=count)

    def remove(self, kind: str, stream: str = "downstream") -> None:
        self._ask("DELETE", f"proxies/{self.name}/toxics/{kind}%20{stream}")

    def enable(self, enabled: bool = True) -> None:
        """False: transfers are cut, and connections refused."""
        self._ask("POST", f"proxies/{self.name}", {"enabled": enabled})

    def _ask(self, method: str, path: str, what: object = None) -> None:
        ask(method, f"{self.control}/{path}", what)


def ask(method: str, url: str, what: object = None) -> None:
    body = None if what is None else json.dumps(what).encode()
    # It refuses browsers, by a part of their names.
    request = urllib.request.Request(url, body, {"User-Agent": "tests"}, method=method)
    try:
        urllib.request.urlopen(request, timeout=10).close()
    except urllib.error.HTTPError as error:
        raise AssertionError(f"toxiproxy: {error.read().decode(errors='replace')}") from None


class Toxiproxy:
    """A real toxiproxy."""

    def __init__(self, control: str) -> None:
        self.control = control
        self._links = 0

    @contextlib.contextmanager
    def link(self, upstream: int) -> Iterator[Link]:
        """A link to a port of this machine. All it had is closed at the end."""
        self._links += 1
        link = Link(self.control, f"link{self._links}", free_port())
        ends = {"listen": f"127.0.0.1:{link.port}", "upstream": f"127.0.0.1:{upstream}"}
        ask("POST", f"{self.control}/proxies", {"name": link.name, "enabled": True, **ends})
        try:
            yield link
        finally:
            ask("DELETE", f"{self.control}/proxies/{link.name}")


@contextlib.contextmanager
def toxiproxy(folder: Path) -> Iterator[Toxiproxy]:
    """One without links; `folder` gets its log."""
    if INSTALLED is None:
        pytest.skip("toxiproxy is not there: scripts/install_test_servers.sh builds it")
    port = free_port()
    control = f"http://127.0.0.1:{port}"
    with open(folder / "toxiproxy.log", "wb") as log:
        # What it draws at random is the same in every run.
        words = [INSTALLED, "-host", "127.0.0.1", "-port", str(port), "-seed", "1"]
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        for _ in range(200):
            assert process.poll() is None, (folder / "toxiproxy.log").read_text()
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                ask("GET", f"{control}/version")
                break
            time.sleep(0.05)
        yield Toxiproxy(control)
    finally:
        process.terminate()
        process.wait(10)
