"""What a receiver on this machine has not read yet of what a closing sender wrote to it.

libzmq gives up what it has not read from a socket of a machine (ipc) when the other side closes and
its queue is full at that time: of 60 small messages 7 arrived. With tcp it reads on. So a sender
keeps a duplicate of such a socket open until all is read.
"""

from __future__ import annotations

import fcntl
import os
import struct
import termios
import time
from typing import Any


class UnreadBytes:
    """The connections of a PUSH socket over ipc. Used by one thread.

    expected: connections that are made sooner or later; messages may wait in the sender for them.
    """

    def __init__(self, zmq: Any, socket: Any, expected: int) -> None:
        self._zmq = zmq
        self._socket = socket
        self._expected = expected
        self._monitor = socket.get_monitor_socket(
            zmq.EVENT_CONNECTED | zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED
        )
        self._made = 0
        self._open: set[int] = set()
        self._kept: list[int] = []

    def keep(self, deadline: float | None) -> None:
        """Duplicates the sockets, once receivers are there. Before the socket is closed."""
        from zmq.utils.monitor import parse_monitor_message

        while True:
            patience: float | None = 0  # milliseconds
            if self._made < self._expected:
                left = None if deadline is None else deadline - time.monotonic()
                patience = None if left is None else max(left, 0) * 1000
            if not self._monitor.poll(patience):
                break
            event = parse_monitor_message(self._monitor.recv_multipart())
            if event["event"] in (self._zmq.EVENT_CONNECTED, self._zmq.EVENT_ACCEPTED):
                self._made += 1
                self._open.add(event["value"])
            else:
                self._open.discard(event["value"])
        for descriptor in self._open:
            self._kept.append(os.dup(descriptor))
        self._socket.disable_monitor()
        self._monitor.close(linger=0)

    def wait(self, deadline: float | None) -> None:
        """Waits until all is read, and closes the duplicates. After the socket is closed."""
        try:
            while any(map(_unread, self._kept)):
                if deadline is not None and time.monotonic() >= deadline:
                    break
                time.sleep(0.002)
        finally:
            for descriptor in self._kept:
                os.close(descriptor)
            self._kept.clear()


def _unread(descriptor: int) -> int:
    """Bytes that the other side has not read (unix(7), SIOCOUTQ); 0 when it is gone."""
    try:
        size = fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4))
    except OSError:
        return 0
    return int(struct.unpack("@i", size)[0])
