"""Servers that become silent, and that drip: after half a minute that is a fault, as rule H11 says.

All of them are waited for together.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from bad_links import INSTALLED, toxiproxy
from conftest import numbered, write_tar
from http_servers import Answer, Nginx, Request, ranged, stand_in

SAMPLES = 40


def read(url: str, **options: Any) -> int:
    return sum(1 for _ in shardfeed.Stream(url, **options))


def until(error: type[BaseException], read_it: Callable[[], Any]) -> tuple[float, str]:
    """Seconds to that error, and what it says."""
    begun = time.monotonic()
    with pytest.raises(error) as caught:
        read_it()
    return time.monotonic() - begun, str(caught.value)


def silent(data: bytes, cut: int, number: int) -> Callable[[Request], Answer]:
    """Request `number` is answered with `cut` bytes of its body, and then nothing comes."""
    right = ranged(data)

    def decide(request: Request) -> Answer:
        answer = right(request)
        if request.number != number:
            return answer
        return Answer(answer.status, answer.headers, answer.body, cut=cut, end="stall")

    return decide


@pytest.mark.slow
def test_silence_and_drips_are_faults(tmp_path: Path) -> None:
    data = write_tar(tmp_path / "t.tar", numbered(0, SAMPLES, 5000)).read_bytes()
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(8))
        # It goes on where it was, over another connection.
        body = stack.enter_context(stand_in(silent(data, 50_000, 1)))
        continued = pool.submit(read, body.url(), retries=1)
        start = stack.enter_context(stand_in(silent(data, 10, 0)))
        begun_again = pool.submit(read, start.url(), retries=1)
        stays = stack.enter_context(stand_in(silent(data, 50_000, 1)))
        given_up = pool.submit(
            until, shardfeed.NetTransientError, lambda: read(stays.url(), retries=0)
        )
        # A server that takes connections and says nothing, and one that takes none.
        mute = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        mute_url = f"http://127.0.0.1:{mute.getsockname()[1]}/t.tar"
        no_answer = pool.submit(
            until, shardfeed.NetTransientError, lambda: read(mute_url, retries=0)
        )
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        full_url = f"http://127.0.0.1:{full.getsockname()[1]}/t.tar"
        no_connection = pool.submit(
            until, shardfeed.NetTransientError, lambda: read(full_url, retries=0)
        )
        dripping = []
        if INSTALLED:  # 500 bytes a second, in pieces of 100
            server = Nginx(tmp_path)
            stack.callback(server.stop)
            (server.root / "t.tar").write_bytes(data)
            proxies = stack.enter_context(toxiproxy(tmp_path))
            link = stack.enter_context(proxies.link(server.ports[0]))
            link.add("slicer", average_size=100, delay=200_000)
            drip = f"http://127.0.0.1:{link.port}/t.tar"
            dripping = [
                pool.submit(until, shardfeed.NetTransientError, lambda: read(drip, retries=0))
            ]
        assert continued.result(100) == SAMPLES
        assert body.firsts[2] == (body.firsts[1] or 0) + 50_000
        assert begun_again.result(100) == SAMPLES
        for future in (given_up, no_answer, no_connection, *dripping):
            seconds, said = future.result(100)
            least = 9 if future is no_connection else 25
            assert least < seconds < least + 30, said
            assert "127.0.0.1" in said
