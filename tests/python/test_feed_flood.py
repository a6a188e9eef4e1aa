"""Clients of a feed that flood its server: it stays small, and goes on for its other streams."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import shardfeed
from feed_messages import (
    BYE,
    CLOSE,
    CREDIT,
    HELLO,
    OPEN,
    PING,
    REFUSED,
    WELCOME,
    entries,
    frame,
    start_of,
)
from feed_servers import Server

if shardfeed.features()["feed"] is None:
    pytest.skip("this build has no feed", allow_module_level=True)

from feed_faults import LONGEST, descriptors, local, read, resident, write_shards

zmq = pytest.importorskip("zmq")

GROWTH = 100 << 20


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_shards(tmp_path_factory.mktemp("shards"))


class Flooder:
    """A client that says what it likes, and reads what it wants to."""

    def __init__(self, server: Server, context: Any) -> None:
        self.socket = context.socket(zmq.DEALER)
        for option, value in ((zmq.LINGER, 0), (zmq.RCVHWM, 1), (zmq.RCVBUF, 4096)):
            self.socket.setsockopt(option, value)
        self.socket.setsockopt(zmq.SNDHWM, 1000)
        self.socket.setsockopt(zmq.SNDTIMEO, 10_000)
        self.socket.connect("tcp" + server.url[len("feed") :])

    def say(self, *frames: bytes) -> None:
        self.socket.send_multipart(frames)

    def answer(self) -> tuple[int, bytes]:
        """The next message, which must come: its type and all of it."""
        assert self.socket.poll(10_000), "no answer"
        first = self.socket.recv_multipart()[0]
        return entries(first)["type"], first

    def greet(self, **options: object) -> None:
        lines = "".join(f"{name}={value}\n" for name, value in options.items())
        self.say(frame(HELLO, token=b"", options=lines.encode()))
        assert self.answer()[0] == WELCOME


@pytest.fixture
def flooders() -> Iterator[Callable[[Server], Flooder]]:
    context = zmq.Context()
    made: list[Flooder] = []

    def make(server: Server) -> Flooder:
        made.append(Flooder(server, context))
        return made[-1]

    yield make
    for flooder in made:
        flooder.socket.close()
    context.term()


def garbage(flooder: Flooder) -> None:
    chance = random.Random(1)
    for number in range(3000):
        flooder.say(chance.randbytes(chance.randrange(200)))
        flooder.say(frame(PING), b"a second part")
        if number % 300 == 0:
            flooder.say(chance.randbytes(15 << 20))
    # Too large: it ends the connection, and only that.
    flooder.say(bytes(17 << 20))


def greetings(flooder: Flooder) -> None:
    for number in range(5000):
        flooder.say(frame(HELLO, token=b"", options=f"lanes={number % 9 + 1}\n".encode()))


def pings(flooder: Flooder) -> None:
    flooder.greet()
    for _ in range(50_000):
        flooder.say(frame(PING))


def opening(number: int, state: bytes, **more: int) -> bytes:
    asked = {"opening": number, "block_bytes": 1 << 20, "credit": 1 << 60, "epochs": 0, **more}
    return frame(OPEN, **asked, **{"from": state})


def one_lane_again(flooder: Flooder) -> None:
    flooder.greet(lanes=1)
    state = start_of(0)
    for number in range(3000):
        flooder.say(opening(number, state))


def lanes_that_it_closes(flooder: Flooder) -> None:
    flooder.greet(lanes=4)
    states = [start_of(lane) for lane in range(4)]
    for number in range(2000):
        flooder.say(opening(number, states[number % 4]))
        flooder.say(frame(CLOSE, opening=number))


def samples_that_it_does_not_read(flooder: Flooder) -> None:
    """Lanes without end, and credit without end."""
    flooder.greet(lanes=4, resample="true", epoch_samples=1 << 40)
    for lane in range(4):
        flooder.say(opening(lane, start_of(lane)))
    for _ in range(5000):
        for lane in range(4):
            flooder.say(frame(CREDIT, opening=lane, blocks=1 << 62))


FLOODS = (
    garbage,
    greetings,
    pings,
    one_lane_again,
    lanes_that_it_closes,
    samples_that_it_does_not_read,
)


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.__name__)
def test_a_flood(
    url: str, flood: Callable[..., None], flooders: Callable[[Server], Flooder]
) -> None:
    server = Server(url, "--feed-timeout=1s", "--memory=2MiB")
    try:
        at_first, idle = resident(server.process.pid), descriptors(server.process.pid)
        flooder = flooders(server)
        # One that reads all the while.
        samples = read(server.url, False)
        texts = [next(samples)[0]]
        with contextlib.suppress(zmq.Again):  # the server takes no more from it
            flood(flooder)
        texts += [text for text, _ in samples]
        assert "".join(texts) == local(url, False)
        grown = resident(server.process.pid, "VmHWM") - at_first
        assert grown < GROWTH, f"{grown >> 20} MiB more than at first"
        flooder.socket.close()
        until = time.monotonic() + LONGEST
        while descriptors(server.process.pid) > idle:
            assert time.monotonic() < until, "the server keeps descriptors"
            time.sleep(0.05)
    finally:
        server.kill()


def test_lanes_have_a_limit(url: str, flooders: Callable[[Server], Flooder]) -> None:
    """Those of one that opens what it has no right to, too."""
    server = Server(url, "--feed-timeout=60s")
    try:
        flooder = flooders(server)
        flooder.greet(lanes=1)
        for lane in range(4097):
            flooder.say(opening(lane, start_of(lane)))
        refused = 0
        while refused == 0:
            kind, message = flooder.answer()
            refused += kind == REFUSED
        assert b"4096 lanes" in message
        with pytest.raises(shardfeed.LimitError, match="4096 lanes"):
            next(read(server.url, False))
        flooder.say(frame(BYE))
        assert "".join(text for text, _ in read(server.url, False)) == local(url, False)
    finally:
        server.kill()
