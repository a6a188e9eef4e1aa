"""Samples as messages: one map of MessagePack each, as `tarp cat` and tarproc send them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import FormatError, Sample, UsageError
from .._encoders import encoded_sample
from ._sockets import MessageSocket

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from typing_extensions import Self

_KEY = "__key__"
_END = "__EOF__"


class SampleSender:
    """Sends samples to zpush://host:port and the like. finish() says that these are all.

    `with` finishes when its block ends without an exception; with one it drops what no receiver
    has. `options` are those of MessageSocket: queue, timeout, linger.
    """

    def __init__(self, urls: str | Sequence[str], **options: Any) -> None:
        self._socket = MessageSocket(urls, **options)
        if not self._socket.sends:
            self._socket.close()
            raise UsageError("samples are sent to zpush, zpub, zrpush or zrpub; help: give one")
        self.sent = 0

    def send(self, sample: Sample | Mapping[str, Any]) -> None:
        """Sends a sample of a stream, or a mapping with __key__ and fields as Writer takes them."""
        self._socket.send([_packed(_fields_of(sample))])
        self.sent += 1

    def send_all(self, samples: Iterable[Sample | Mapping[str, Any]]) -> None:
        """Sends each of them."""
        for sample in samples:
            self.send(sample)

    def finish(self) -> None:
        """Sends the end mark and closes. A PUSH socket gives it to one receiver."""
        self._socket.send([_packed({_END: b"true"})])
        self.close()

    def close(self, *, wait: bool = True) -> None:
        """Closes without an end mark: receivers wait for another sender.

        Waits until what was sent has arrived, at most `linger` seconds; not without `wait`.
        """
        self._socket.close(wait=wait)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Finishes, or only closes after an exception."""
        if kind is None:
            self.finish()
        else:
            self.close(wait=False)


class SampleReceiver:
    """Iterates over samples that come in at zpull://host:port and the like, as dicts of bytes.

    senders: how many end marks end it, one of each sender; 0: none does. `options` are those of
    MessageSocket: queue, timeout, max_message.
    """

    def __init__(self, urls: str | Sequence[str], *, senders: int = 1, **options: Any) -> None:
        if senders < 0:
            raise UsageError(f"senders={senders}; help: a number from 0")
        self._socket = MessageSocket(urls, **options)
        if self._socket.sends:
            self._socket.close()
            raise UsageError("samples come from zpull, zsub, zrpull or zrsub; help: give one")
        self._senders = senders
        self._ends = 0
        self.received = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Itself: a second loop continues behind the first."""
        return self

    def __next__(self) -> dict[str, Any]:
        """The next sample: bytes by field, and __key__ as text."""
        while not self._senders or self._ends < self._senders:
            fields = _unpacked(self._socket.receive())
            if _END not in fields:
                self.received += 1
                return fields
            self._ends += 1
        raise StopIteration

    def close(self) -> None:
        """Messages that wait are dropped."""
        self._socket.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Closes."""
        self.close()


def _fields_of(sample: Sample | Mapping[str, Any]) -> dict[str, bytes]:
    if isinstance(sample, Sample):
        key, fields = sample.key, list(sample.items())
    else:
        key, fields = encoded_sample(sample, True)
    made = {_KEY: key.encode("utf-8", "surrogateescape")}
    made.update((name, bytes(data)) for name, data in fields)
    return made


def _packed(fields: dict[str, bytes]) -> bytes:
    packed: bytes = _msgpack().packb(fields, use_bin_type=True)
    return packed


def _unpacked(frames: list[memoryview]) -> dict[str, Any]:
    help_ = "help: samples are sent by SampleSender, tarp or tarproc"
    if len(frames) != 1:
        raise FormatError(f"a message of {len(frames)} frames, where a sample has one; {help_}")
    try:
        fields = _msgpack().unpackb(frames[0], raw=False, strict_map_key=True)
    except Exception as error:
        raise FormatError(
            f"a message of {len(frames[0])} bytes is no MessagePack: "
            f"{error or type(error).__name__}; {help_}"
        ) from error
    if not isinstance(fields, dict) or not all(isinstance(name, str) for name in fields):
        raise FormatError(f"a message is no map of fields; {help_}")
    if _END in fields:
        return fields
    key = fields.get(_KEY)
    if not isinstance(key, (str, bytes)):
        raise FormatError(f"a sample without __key__, but with {sorted(fields)[:12]}; {help_}")
    fields[_KEY] = key if isinstance(key, str) else key.decode("utf-8", "surrogateescape")
    for name, value in fields.items():
        if name != _KEY and not isinstance(value, bytes):
            raise FormatError(
                f"field {name!r} of the sample {fields[_KEY]!r} is no bytes but "
                f"{type(value).__name__}; {help_}"
            )
    return fields


def _msgpack() -> Any:
    try:
        import msgpack
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "samples as messages need the package msgpack; help: pip install "
            "'shardfeed[tensorcom]'",
            name="msgpack",
        ) from missing
    return msgpack
