"""Servers of feeds for the tests: the command itself, each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENT = 60.0


def command() -> list[str]:
    """The words that start the command: SHARDFEED_COMMAND, else that of the Python package."""
    own = os.environ.get("SHARDFEED_COMMAND")
    return [own] if own else [sys.executable, "-m", "shardfeed"]


class RefusedError(Exception):
    """A server that does not start; its text is what the server said."""


class Server:
    """shardfeed feed. `inside`: words before the command, which start it elsewhere."""

    def __init__(
        self,
        *words: object,
        address: str = "tcp://127.0.0.1:0",
        folder: Path | None = None,
        inside: Sequence[str] = (),
    ) -> None:
        self.process = subprocess.Popen(
            [*inside, *command(), "feed", *map(str, words), "--bind", address],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            text=True,
            errors="surrogateescape",
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        if not self.url.startswith("feed://"):
            raise RefusedError(self.process.communicate()[1])

    @property
    def address(self) -> str:
        """For another server in the place of this one."""
        return "tcp" + self.url[len("feed") :]

    def kill(self) -> None:
        """With SIGKILL."""
        self.process.kill()
        self.process.communicate(timeout=PATIENT)

    def end(self) -> int:
        """With SIGTERM. Gives the exit status."""
        self.process.terminate()
        self.process.communicate(timeout=PATIENT)
        return self.process.returncode


@contextmanager
def running(kind: type[Server] = Server) -> Iterator[Callable[..., Any]]:
    """What starts servers, all of which are ended behind it, stopped ones too."""
    servers: list[Server] = []

    def start(*words: object, **more: Any) -> Server:
        servers.append(kind(*words, **more))
        return servers[-1]

    try:
        yield start
    finally:
        for server in servers:
            if server.process.poll() is None:
                server.process.send_signal(signal.SIGCONT)
                server.process.kill()
            server.process.communicate(timeout=PATIENT)
