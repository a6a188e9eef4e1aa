"""Messages of feeds, as docs/feed.md describes them."""

from __future__ import annotations

from typing import Any

import msgpack
import xxhash

HELLO, WELCOME, REFUSED, OPEN, CREDIT, CLOSE, BLOCK = range(1, 8)
PING, PONG, BYE = range(10, 13)


def sealed(magic: str, version: int, body: dict[str, Any]) -> bytes:
    packed = msgpack.packb(body)
    return bytes(msgpack.packb([magic, version, xxhash.xxh3_64_intdigest(packed), packed]))


def frame(kind: int, version: int = 1, **more: Any) -> bytes:
    return sealed("shardfeed-feed", version, {"type": kind, **more})


def entries(message: bytes) -> dict[str, Any]:
    found: dict[str, Any] = msgpack.unpackb(msgpack.unpackb(message, raw=False)[3], raw=False)
    return found


def start_of(lane: int) -> bytes:
    """The state of a lane alone, at its start: its number in seven bits each, and zeros."""
    number = bytes([lane & 127]) if lane < 128 else bytes([lane & 127 | 128, lane >> 7])
    nothing = dict.fromkeys(("shards", "shards_hash", "remaining", "mixed", "passed"), 0)
    empty = dict.fromkeys(("options", "columns", "parts"), b"")
    place = {"lanes": number + bytes(8), "of": b"\0", "skips_own": 0}
    counts = {"lanes_in_all": lane + 1, "consumers": 1}
    return sealed("shardfeed-state", 2, {**nothing, **empty, **counts, **place})
