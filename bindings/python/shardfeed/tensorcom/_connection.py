"""Lists of arrays as messages, which the package tensorcom sends and receives too."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from .. import FormatError, UsageError
from ..wds import tenbin
from ._converters import converters_of
from ._sockets import MessageSocket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from typing_extensions import Self

_HELP_SENDER = "help: arrays are sent by Connection.send, or by the package tensorcom"


class Rates:
    """Messages and bytes since the first message.

    count: messages. bytes: of their arrays.
    """

    def __init__(self) -> None:
        self.count = 0
        self.bytes = 0
        self._start: float | None = None

    def add(self, size: int) -> None:
        """One message of `size` bytes."""
        self._start = time.monotonic() if self._start is None else self._start
        self.count += 1
        self.bytes += size

    def summary(self) -> str:
        """A line for people."""
        seconds = time.monotonic() - self._start if self._start is not None else 0.0
        if not seconds:
            return f"{self.count} messages, {self.bytes / 1e6:.1f} MB"
        return (
            f"{self.count} messages, {self.bytes / 1e6:.1f} MB; "
            f"{self.count / seconds:.1f} messages/s, {self.bytes / seconds / 1e6:.1f} MB/s"
        )


class Connection:
    """Sends or receives lists of NumPy arrays, one list a message.

    url: an address or several, with braces: "zsub://node-{0..3}:7880". A receiver takes from all of
        them in turn; None: connect() does it.
    epoch: what len() gives, for frameworks that ask.
    total: a loop ends when it had so many rows (lists, with batch_count=False); -1: never.
    multipart: an array takes two frames of a message; False: the message is what a .ten file is.
        Both sides must have the same.
    infos: names of at most eight characters of the arrays; a receiver compares them.
    allow64: send arrays of 64-bit numbers too, which most training wants in 32.
    batch_transforms: a function of arrays, or several that are taken in turn: with two, the first
        gets the arrays 0, 2, ...; None leaves an array as it is.
    converters: likewise, afterwards; "torch", "torch_cuda" and "numpy" convert arrays, and images
        between NHWC and NCHW.
    report: print the rates every so many messages of a loop.
    noexpand: braces are characters.
    device, raw, stats_horizon: taken and not used, as by the package tensorcom.
    options: queue, timeout, linger, max_message, as MessageSocket explains them.

    Throws UsageError, TimeoutError, and FormatError for messages that are no arrays.
    """

    def __init__(
        self,
        url: str | Sequence[str] | None = None,
        epoch: int = 100_000,
        total: int = -1,
        multipart: bool = True,
        infos: Sequence[str] | None = None,
        allow64: bool = False,
        batch_transforms: Any = None,
        batch_count: bool = True,
        converters: Any = None,
        report: int = -1,
        noexpand: bool = False,
        device: Any = None,
        raw: bool = False,
        stats_horizon: int = 1000,
        **options: Any,
    ) -> None:
        self.epoch = epoch
        self.total = total
        self.multipart = multipart
        self.infos = None if infos is None else list(infos)
        self.allow64 = allow64
        self.stats = Rates()
        self.count = 0
        self._transforms = _listed(batch_transforms)
        self._converters = _listed(converters_of(converters))
        self._batch_count = batch_count
        self._report = report
        self._noexpand = noexpand
        self._options = options
        self._socket: MessageSocket | None = None
        if url is not None:
            self.connect(url)

    def connect(self, url: str | Sequence[str], topic: str = "") -> None:
        """Opens the socket; once. `topic` is what messages for a SUB socket begin with."""
        if self._socket is not None:
            raise UsageError("connected already; help: give all addresses in one list")
        urls = [url] if isinstance(url, str) else list(url)
        if topic:
            urls = [f"{one}#{topic}" for one in urls]
        self._socket = MessageSocket(urls, expand=not self._noexpand, **self._options)

    def send(self, data: Sequence[Any], allow64: bool = False) -> None:
        """Sends arrays of NumPy as one message. Waits while the queue is full."""
        arrays = list(data)
        if not arrays:
            raise UsageError("a message without arrays; help: send at least one")
        tenbin.check_acceptable_input_type(arrays, allow64 or self.allow64)
        frames = tenbin.encode_list(arrays, infos=self.infos)
        if not self.multipart:
            frames = [tenbin.encode_chunks(frames)]
        self._opened().send(frames)
        self.stats.add(sum(array.nbytes for array in arrays))

    def recv(self) -> list[Any]:
        """The arrays of the next message, converted. They are views of the message."""
        frames = self._opened().receive()
        try:
            if not self.multipart:
                if len(frames) != 1:
                    raise ValueError(
                        f"a message of {len(frames)} frames; help: the sender has multipart=True"
                    )
                frames = tenbin.decode_chunks(frames[0])
            arrays = tenbin.decode_list(frames, infos=self.infos or False)
        except ValueError as error:
            words = error.args[0] if error.args else error
            raise FormatError(
                f"a message of {sum(map(len, frames))} bytes is no list of arrays: {words}"
                + ("" if "; help:" in str(words) else f"; {_HELP_SENDER}")
            ) from error
        self.stats.add(sum(array.nbytes for array in arrays))
        return _transformed(_transformed(arrays, self._transforms), self._converters)

    def _opened(self) -> MessageSocket:
        if self._socket is None:
            raise UsageError("not connected, or closed; help: connect(url)")
        return self._socket

    def serve(self, source: Iterable[Sequence[Any]], report: int = -1) -> None:
        """Sends all lists of `source`."""
        for arrays in source:
            self.send(arrays)
            self._note(arrays, report)

    def items(self, report: int = -1) -> Iterator[list[Any]]:
        """What comes in, up to `total` rows."""
        while self.total < 0 or self.count < self.total:
            arrays = self.recv()
            self._note(arrays, report)
            yield arrays

    def _note(self, arrays: Sequence[Any], report: int) -> None:
        every = report if report > 0 else self._report
        if every > 0 and self.stats.count % every == 0:
            print(self.stats.summary(), file=sys.stderr)
        self.count += len(arrays[0]) if self._batch_count else 1

    def __iter__(self) -> Iterator[list[Any]]:
        """items()."""
        return self.items()

    def write(self, data: Sequence[Any]) -> None:
        """As send()."""
        self.send(data)

    def __len__(self) -> int:
        """`epoch`."""
        return self.epoch

    def __bool__(self) -> bool:
        """True, whatever len() is."""
        return True

    def close(self, *, wait: bool = True) -> None:
        """Closes; again is no error.

        Waits until what was sent has arrived, at most `linger` seconds; not without `wait`.
        """
        if self._socket is not None:
            self._socket.close(wait=wait)
            self._socket = None

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Closes; after an exception without waiting."""
        self.close(wait=kind is None)


def _listed(given: Any) -> list[Callable[[Any], Any] | None]:
    if given is None:
        return []
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _transformed(arrays: list[Any], how: list[Callable[[Any], Any] | None]) -> list[Any]:
    if not how:
        return arrays
    chosen = (how[i % len(how)] for i in range(len(arrays)))
    return [array if one is None else one(array) for one, array in zip(chosen, arrays)]
