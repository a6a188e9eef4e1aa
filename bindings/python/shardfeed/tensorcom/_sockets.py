"""Addresses such as zpush://host:7880, and sockets that are bound or connected to them."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import TimeoutError as TimedOut
from .. import UsageError
from ..wds._braces import braceexpand
from ._unread import UnreadBytes

if TYPE_CHECKING:
    from collections.abc import Sequence

# Scheme: kind of socket, and whether it is the side that binds.
_SCHEMES = {
    "zpush": ("PUSH", False),
    "zpull": ("PULL", True),
    "zpub": ("PUB", True),
    "zsub": ("SUB", False),
    "zrpush": ("PUSH", True),
    "zrpull": ("PULL", False),
    "zrpub": ("PUB", False),
    "zrsub": ("SUB", True),
}
_SENDERS = ("PUSH", "PUB")
_ADDRESS = re.compile(r"(z[a-z]+)(?:\+([a-z0-9]+))?://([^#]+)(?:#(.*))?\Z", re.DOTALL)


@dataclass(frozen=True)
class Address:
    """Where a socket is, and which kind it has.

    kind: PUSH, PULL, PUB or SUB.
    binds: this side waits for the others.
    location: as ZeroMQ writes it: tcp://host:port.
    topic: with SUB, the bytes with which messages begin that are wanted.
    """

    kind: str
    binds: bool
    location: str
    topic: str

    @classmethod
    def parse(cls, url: str) -> Address:
        """Reads SCHEME[+TRANSPORT]://HOST:PORT[#TOPIC]."""
        found = _ADDRESS.match(url)
        if found is None or found[1] not in _SCHEMES:
            raise UsageError(
                f"no address of ZeroMQ: {url!r}; help: SCHEME://HOST:PORT, or "
                f"SCHEME+ipc:///PATH, with one of {' '.join(_SCHEMES)}"
            )
        kind, binds = _SCHEMES[found[1]]
        return cls(kind, binds, f"{found[2] or 'tcp'}://{found[3]}", found[4] or "")

    @property
    def sends(self) -> bool:
        """Whether messages go out here."""
        return self.kind in _SENDERS


class MessageSocket:
    """One socket, bound or connected to all of some addresses of one scheme.

    A receiver takes from all of them in turn; a PUSH socket deals its messages out, a PUB socket
    sends each to all.

    queue: messages that wait on each side of a connection. A sender waits while it is full; a PUB
        socket drops messages then.
    timeout: seconds that one message may take before TimeoutError; None is forever.
    linger: seconds that close() waits until a receiver has what was sent; the rest is dropped
        then. None is for as long as it takes.
    max_message: bytes of one message; a peer that sends more is disconnected.
    """

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        expand: bool = True,
        queue: int = 16,
        timeout: float | None = None,
        linger: float | None = None,
        max_message: int = 1 << 31,
    ) -> None:
        given = [urls] if isinstance(urls, str) else list(urls)
        all_urls = [one for url in given for one in (braceexpand(url) if expand else [url])]
        self.addresses = [Address.parse(url) for url in all_urls]
        if not self.addresses:
            raise UsageError("no address; help: give zpull://0.0.0.0:7880 or the like")
        kinds = {address.kind for address in self.addresses}
        if len(kinds) > 1:
            raise UsageError(
                f"sockets of {' and '.join(sorted(kinds))} in one list; help: give addresses of "
                "one scheme"
            )
        self.kind = kinds.pop()
        self.sends = self.kind in _SENDERS
        self._timeout = timeout
        self._linger = linger
        zmq = _zmq()
        # A context of its own: those that are shared do not survive a fork.
        self._context: Any = zmq.Context()
        self._socket: Any = None
        self._unread: UnreadBytes | None = None
        self._sent = False
        try:
            self._socket = self._context.socket(getattr(zmq, self.kind))
            self._socket.set_hwm(queue)
            self._socket.setsockopt(zmq.MAXMSGSIZE, max_message)
            self._socket.setsockopt(zmq.LINGER, 0)
            ipc = [address for address in self.addresses if address.location.startswith("ipc:")]
            if self.kind == "PUSH" and ipc:
                # The side that binds sends nothing before others are connected.
                connects = sum(not address.binds for address in ipc)
                self._unread = UnreadBytes(zmq, self._socket, connects)
            for address in self.addresses:
                self._open(zmq, address)
        except BaseException:
            self.close(wait=False)
            raise

    def _open(self, zmq: Any, address: Address) -> None:
        try:
            if address.binds:
                self._socket.bind(address.location)
            else:
                self._socket.connect(address.location)
        except zmq.ZMQError as error:
            raise UsageError(
                f"{address.location} cannot be {'bound' if address.binds else 'connected'}: "
                f"{error}; help: look at host and port, or at what listens there already"
            ) from error
        if self.kind == "SUB":
            self._socket.setsockopt(zmq.SUBSCRIBE, address.topic.encode())

    def send(self, frames: Sequence[Any]) -> None:
        """Sends one message. Its buffers may be changed when this returns."""
        zmq = _zmq()
        self._check(sends=True)
        try:
            self._wait(zmq.POLLOUT)
            self._socket.send_multipart(frames, copy=True)
            self._sent = True
        except zmq.ZMQError as error:
            raise UsageError(f"a message cannot be sent: {error}; help: open it again") from error

    def receive(self) -> list[memoryview]:
        """The frames of the next message. Nobody else writes to their memory."""
        zmq = _zmq()
        self._check(sends=False)
        self._wait(zmq.POLLIN)
        return [frame.buffer for frame in self._socket.recv_multipart(copy=False)]

    def _check(self, *, sends: bool) -> None:
        if self._socket is None:
            raise UsageError("the connection is closed; help: make another one")
        if sends != self.sends:
            fitting = [name for name, (kind, _) in _SCHEMES.items() if (kind in _SENDERS) == sends]
            raise UsageError(
                f"a {self.kind} socket does not {'send' if sends else 'receive'}; help: one of "
                f"{' '.join(fitting)}"
            )

    def _wait(self, event: int) -> None:
        # Also without a timeout: a poll is what Ctrl-C interrupts.
        wanted = None if self._timeout is None else round(self._timeout * 1000)
        if not self._socket.poll(wanted, event):
            places = ", ".join(address.location for address in self.addresses)
            raise TimedOut(
                f"no {'receiver' if self.sends else 'message'} at {places} within "
                f"{self._timeout:g} s; help: see whether the other side runs, or raise timeout"
            )

    def close(self, *, wait: bool = True) -> None:
        """Waits until what was sent has arrived, at most `linger` seconds; not without `wait`."""
        # A receiver has nothing to send. With a linger, libzmq 4.3 can hang here after a sender was
        # killed in the middle of a message.
        linger = self._linger if wait and self.sends else 0
        deadline = None if linger is None else time.monotonic() + linger
        unread, self._unread = self._unread, None
        if unread is not None:
            unread.keep(deadline if self._sent else 0)
        if self._socket is not None:
            left = -1 if deadline is None else max(deadline - time.monotonic(), 0) * 1000
            self._socket.close(linger=round(left))
            self._socket = None
        if self._context is not None:
            self._context.term()
            self._context = None
        if unread is not None:
            unread.wait(deadline)


def _zmq() -> Any:
    try:
        import zmq
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "messages of ZeroMQ need the package pyzmq; help: pip install 'shardfeed[tensorcom]'",
            name="zmq",
        ) from missing
    return zmq
