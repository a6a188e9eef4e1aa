"""Objects whose server gives a checksum of them: bytes that changed on their way are found."""

from __future__ import annotations

import base64
import dataclasses
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from http_servers import Answer, Decide, Request, ranged, stand_in, whole

SAMPLES = 100

if "isa" not in str(shardfeed.features()["gzip"]).lower():
    pytest.skip("this build has no ISA-L, which computes CRC-32C", allow_module_level=True)


def crc32c(data: bytes) -> int:
    """By the definition (RFC 3720, 12.1), a byte at a time."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


@pytest.fixture(scope="module")
def tar(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("shard") / "t.tar"
    return write_tar(path, numbered(0, SAMPLES, 12_000)).read_bytes()


def with_sum(right: Decide, data: bytes) -> Decide:
    text = base64.b64encode(crc32c(data).to_bytes(4, "big")).decode()
    more = {"x-goog-hash": f"crc32c={text},md5=JfnnlDI7RTiF9RgfG2JNCw=="}

    def decide(request: Request) -> Answer:
        answer = right(request)
        return dataclasses.replace(answer, headers={**answer.headers, **more})

    return decide


def damaged(data: bytes) -> bytes:
    """One bit of a member in the middle, which nothing else in a tar knows of."""
    at = data.index(b"....", len(data) // 2)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def read(url: str, seen: list[str], **options: Any) -> None:
    seen.extend(sample.key for sample in shardfeed.Stream(url, **options))


@pytest.mark.parametrize("connections", [1, 8])
@pytest.mark.parametrize("form", [ranged, whole])
@pytest.mark.parametrize("size", [SAMPLES, 2])
def test_a_bit_that_changed_on_its_way(
    tmp_path: Path, form: Any, connections: int, size: int
) -> None:
    path = write_tar(tmp_path / "t.tar", numbered(0, size, 12_000))
    data = path.read_bytes()
    more: dict[str, Any] = {"connections": connections, "range_size": "256KiB", "retries": 0}
    seen: list[str] = []
    with stand_in(with_sum(form(data), data)) as server:
        read(server.url(), seen, **more)
        assert len(seen) == size
    wrong = damaged(data)
    with stand_in(with_sum(form(wrong), data)) as server:
        with pytest.raises(shardfeed.IntegrityError, match="CRC-32C") as caught:
            read(server.url(), seen, **more)
        assert server.url() in str(caught.value)
    # Without the checksum nobody could know.
    with stand_in(form(wrong)) as server:
        read(server.url(), seen, **more)


def test_the_cache_keeps_none_of_it(tar: bytes, tmp_path: Path) -> None:
    seen: list[str] = []
    with stand_in(with_sum(ranged(damaged(tar)), tar)) as server:
        with pytest.raises(shardfeed.IntegrityError):
            read(server.url(), seen, cache=tmp_path / "cache")
        server.decide = with_sum(ranged(tar), tar)
        for epoch in range(2):
            stream = shardfeed.Stream(server.url(), cache=tmp_path / "cache")
            data = b"".join(bytes(sample["txt"]) for sample in stream)
            assert data == b"".join(b"%d" % n + (12_000 - len(str(n))) * b"." for n in range(100))
            assert (stream.stats()["network_bytes"] > 1_000_000) == (epoch == 0)


def test_what_is_not_read_from_start_to_end_is_not_compared(tmp_path: Path) -> None:
    """By a stream that continues behind bytes that it does not read again."""
    tar = write_tar(tmp_path / "t.tar", numbered(0, 700, 12_000)).read_bytes()
    with stand_in(with_sum(ranged(damaged(tar)), tar)) as server:
        stream = shardfeed.Stream(server.url())
        first = [sample.key for _, sample in zip(range(600), stream)]
        restored = shardfeed.Stream(server.url())
        restored.load_state_dict(stream.state_dict())
        assert len({*first, *(sample.key for sample in restored)}) == 700
        assert restored.stats()["network_bytes"] < len(tar) / 2


@pytest.mark.parametrize("hash_", ["crc32c=", "crc32c=////", "md5=AAAA", "crc32c=????????"])
def test_a_checksum_that_is_none(tar: bytes, hash_: str) -> None:
    right = ranged(tar)

    def decide(request: Request) -> Answer:
        answer = right(request)
        return dataclasses.replace(answer, headers={**answer.headers, "x-goog-hash": hash_})

    seen: list[str] = []
    with stand_in(decide) as server:
        read(server.url(), seen)
    assert len(seen) == SAMPLES
