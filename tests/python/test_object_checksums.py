"""Objects whose server gives a checksum of them: bytes that changed on their way are found."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from http_servers import Answer, Decide, Request, ranged, stand_in, whole

crc32c = pytest.importorskip("crc32c")
SAMPLES = 100
HAS_ISAL = "isa" in str(shardfeed.features()["gzip"]).lower()  # it computes CRC-32C


def text_of(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def crc32_text(data: bytes) -> str:
    return text_of(zlib.crc32(data).to_bytes(4, "big"))


def crc32c_text(data: bytes) -> str:
    return text_of(crc32c.crc32c(data).to_bytes(4, "big"))


def hash_text(name: str, data: bytes) -> str:
    return text_of(hashlib.new(name, data).digest())


Headers = Callable[[bytes], dict[str, str]]


def amz(name: str, text: Callable[[bytes], str]) -> Headers:
    return lambda data: {
        f"x-amz-checksum-{name}": text(data),
        "x-amz-checksum-type": "FULL_OBJECT",
    }


# What servers say of a whole object, and what it is called in errors. Those of PARTS stand in
# answers with ranges too.
PARTS: dict[str, Headers] = {
    "SHA-256": lambda data: {"Repr-Digest": f"sha-256=:{hash_text('sha256', data)}:"},
    "SHA-512": lambda data: {"Repr-Digest": f"sha-512=:{hash_text('sha512', data)}:"},
    "MD5": lambda data: {"x-ms-blob-content-md5": hash_text("md5", data)},
}
if HAS_ISAL:
    PARTS["CRC-32C"] = lambda data: {
        "x-goog-hash": f"crc32c={crc32c_text(data)},md5=JfnnlDI7RTiF9RgfG2JNCw=="
    }
WHOLE: list[tuple[str, Headers]] = [
    *PARTS.items(),
    ("MD5", lambda data: {"Content-MD5": hash_text("md5", data)}),
    ("CRC-32", amz("crc32", crc32_text)),
    ("SHA-256", amz("sha256", lambda data: hash_text("sha256", data))),
    ("SHA-1", amz("sha1", lambda data: hash_text("sha1", data))),
]
FORMS: list[tuple[Any, str, Headers]] = [
    *((ranged, name, headers) for name, headers in PARTS.items()),
    *((whole, name, headers) for name, headers in WHOLE),
]


@pytest.fixture(scope="module")
def tar(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("shard") / "t.tar"
    return write_tar(path, numbered(0, SAMPLES, 12_000)).read_bytes()


def with_headers(right: Decide, more: dict[str, str]) -> Decide:
    def decide(request: Request) -> Answer:
        answer = right(request)
        return dataclasses.replace(answer, headers={**answer.headers, **more})

    return decide


def damaged(data: bytes) -> bytes:
    """One bit of a member in the middle, which nothing else in a tar knows of."""
    at = data.index(b"....", len(data) // 2)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def read(url: str, seen: list[str], **options: Any) -> dict[str, int]:
    """Its counters."""
    stream = shardfeed.Stream(url, **options)
    seen.extend(sample.key for sample in stream)
    return stream.stats()


@pytest.mark.parametrize("connections", [1, 8])
@pytest.mark.parametrize(("form", "name", "headers"), FORMS)
@pytest.mark.parametrize("size", [SAMPLES, 2])
def test_a_bit_that_changed_on_its_way(
    tmp_path: Path, form: Any, name: str, headers: Headers, connections: int, size: int
) -> None:
    path = write_tar(tmp_path / "t.tar", numbered(0, size, 12_000))
    data = path.read_bytes()
    more: dict[str, Any] = {"connections": connections, "range_size": "256KiB", "retries": 0}
    seen: list[str] = []
    with stand_in(with_headers(form(data), headers(data))) as server:
        assert read(server.url(), seen, **more)["verified_shards"] == 1
        assert len(seen) == size
    wrong = damaged(data)
    with stand_in(with_headers(form(wrong), headers(data))) as server:
        with pytest.raises(shardfeed.IntegrityError, match=f"whose {name} the") as caught:
            read(server.url(), seen, **more)
        assert server.url() in str(caught.value)
        digest = next(iter(headers(data).values())).partition("=:")
        if digest[2]:  # both are said
            right = base64.b64decode(digest[2].rstrip(":")).hex()
            found = hashlib.new(name.lower().replace("-", ""), wrong).hexdigest()
            assert f"it is {found}, and should be {right}" in str(caught.value)
        assert read(server.url(), seen, checksums="none", **more)["verified_shards"] == 0
    # Without the checksum nobody could know.
    with stand_in(form(wrong)) as server:
        assert read(server.url(), seen, **more)["verified_shards"] == 0


def test_fast_checksums_alone(tar: bytes) -> None:
    wrong = damaged(tar)
    seen: list[str] = []
    for headers in (PARTS["SHA-256"](tar), PARTS["MD5"](tar)):
        with stand_in(with_headers(ranged(wrong), headers)) as server:
            assert read(server.url(), seen, checksums="fast")["verified_shards"] == 0
    more = amz("crc32", crc32_text)(tar)
    with (
        stand_in(with_headers(whole(wrong), more)) as server,
        pytest.raises(shardfeed.IntegrityError),
    ):
        read(server.url(), seen, checksums="fast")


def test_one_of_several_is_enough(tar: bytes) -> None:
    """The first that can be computed, CRCs before hashes; what is not known is left out."""
    more = {
        **PARTS["MD5"](b"something else"),
        "Repr-Digest": f"unixsum=17, sha-256=:{hash_text('sha256', tar)}:, sha=:AAAA:",
        "x-amz-checksum-crc64nvme": "AAAAAAAAAAA=",
    }
    seen: list[str] = []
    with stand_in(with_headers(ranged(tar), more)) as server:
        assert read(server.url(), seen)["verified_shards"] == 1


@pytest.mark.parametrize("headers", PARTS.values(), ids=PARTS)
def test_the_cache_keeps_none_of_it(tar: bytes, tmp_path: Path, headers: Headers) -> None:
    seen: list[str] = []
    with stand_in(with_headers(ranged(damaged(tar)), headers(tar))) as server:
        with pytest.raises(shardfeed.IntegrityError):
            read(server.url(), seen, cache=tmp_path / "cache")
        server.decide = with_headers(ranged(tar), headers(tar))
        for epoch in range(2):
            stream = shardfeed.Stream(server.url(), cache=tmp_path / "cache")
            data = b"".join(bytes(sample["txt"]) for sample in stream)
            assert data == b"".join(b"%d" % n + (12_000 - len(str(n))) * b"." for n in range(100))
            assert (stream.stats()["network_bytes"] > 1_000_000) == (epoch == 0)
            # What the cache gives was compared when it was fetched.
            assert stream.stats()["verified_shards"] == (epoch == 0)


def test_what_is_not_read_from_start_to_end_is_not_compared(tmp_path: Path) -> None:
    """By a stream that continues behind bytes that it does not read again."""
    tar = write_tar(tmp_path / "t.tar", numbered(0, 700, 12_000)).read_bytes()
    headers = PARTS["SHA-256"](tar)
    with stand_in(with_headers(ranged(damaged(tar)), headers)) as server:
        stream = shardfeed.Stream(server.url())
        first = [sample.key for _, sample in zip(range(600), stream)]
        restored = shardfeed.Stream(server.url())
        restored.load_state_dict(stream.state_dict())
        assert len({*first, *(sample.key for sample in restored)}) == 700
        assert restored.stats()["network_bytes"] < len(tar) / 2
        assert restored.stats()["verified_shards"] == 0


BAD = [
    *(("x-goog-hash", text) for text in ("crc32c=", "crc32c=////", "md5=AAAA", "crc32c=????????")),
    *(("Repr-Digest", text) for text in ("sha-256=:AAAA:", "sha-256", "sha-999=:AAAA:", "::,=;")),
    ("x-ms-blob-content-md5", "no base64, 24 characters"),
    ("Content-MD5", "JfnnlDI7RTiF9RgfG2JNCw=="),  # in an answer with a part: it may be of that
    ("x-amz-checksum-crc32", "AAAAAA=="),  # likewise
    ("Content-Digest", "sha-256=:FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=:"),
]


@pytest.mark.parametrize(("name", "text"), BAD)
def test_a_checksum_that_is_none(tar: bytes, name: str, text: str) -> None:
    seen: list[str] = []
    with stand_in(with_headers(ranged(tar), {name: text})) as server:
        assert read(server.url(), seen)["verified_shards"] == 0
    assert len(seen) == SAMPLES


FIPS = """
openssl_conf = all
[all]
alg_section = properties
[properties]
default_properties = fips=yes
"""
PROGRAM = """
import shardfeed, sys
stream = shardfeed.Stream(sys.argv[1])
print(len(list(stream)), stream.stats()["verified_shards"])
"""


def test_hashes_that_the_system_forbids(tar: bytes, tmp_path: Path) -> None:
    """Nothing is compared, as without a checksum; CRCs are no business of OpenSSL."""
    (tmp_path / "openssl.cnf").write_text(FIPS)
    environment = {**os.environ, "OPENSSL_CONF": str(tmp_path / "openssl.cnf")}
    crc = amz("crc32", crc32_text)(tar)
    for form, more, verified in [(ranged, PARTS["MD5"](tar), 0), (whole, crc, 1)]:
        with stand_in(with_headers(form(tar), more)) as server:
            words = [sys.executable, "-c", PROGRAM, server.url()]
            run = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
            assert run.stdout.split() == ["100", str(verified)]
