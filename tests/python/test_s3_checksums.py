"""Checksums that S3 keeps of objects: asked for, compared, and never in the way."""

from __future__ import annotations

import base64
import hashlib
import re
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from aws_servers import Aws, ask, endpoint, fault, put, signed, versitygw
from conftest import numbered, write_tar
from http_servers import Answer, Certificates, Decide, Request, StandIn, ranged, stand_in

crc32c = pytest.importorskip("crc32c")
MIB = 1 << 20
GZIP = str(shardfeed.features()["gzip"])
HAS_ISAL = "isa" in GZIP.lower()  # it computes CRC-32C
# And CRC-64/NVME, since 2.31.
FOUND = re.search(r"(\d+)\.(\d+)", GZIP)
HAS_CRC64 = HAS_ISAL and FOUND is not None and (int(FOUND[1]), int(FOUND[2])) >= (2, 31)


def digest(kind: str, data: bytes) -> str:
    if kind == "crc32":
        made = zlib.crc32(data).to_bytes(4, "big")
    elif kind == "crc32c":
        made = crc32c.crc32c(data).to_bytes(4, "big")
    else:
        made = hashlib.new(kind, data).digest()
    return base64.b64encode(made).decode()


KINDS = ["crc32", "sha256", "sha1", *(["crc32c"] if HAS_ISAL else [])]


def make_tar(path: Path, samples: int, size: int = 12_000) -> bytes:
    return write_tar(path, numbered(0, samples, size)).read_bytes()


@pytest.fixture(scope="module")
def tar(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return make_tar(tmp_path_factory.mktemp("shard") / "t.tar", 100)


# ---- A real server ------------------------------------------------------------------------------


def upload(url: str, data: bytes, kind: str, type_: str) -> None:
    """In parts of 5 MiB."""
    start = {"x_amz_checksum_algorithm": kind.upper(), "x_amz_checksum_type": type_}
    found = re.search(rb"<UploadId>(.*)</UploadId>", ask("POST", f"{url}?uploads=", **start))
    assert found
    number, parts = found[1].decode(), ""
    for at in range(0, len(data), 5 * MIB):
        part = data[at : at + 5 * MIB]
        name, made = at // (5 * MIB) + 1, digest(kind, part)
        place = f"{url}?partNumber={name}&uploadId={number}"
        put(place, part, **{f"x_amz_checksum_{kind}": made})
        tag = hashlib.md5(part).hexdigest()
        parts += f"<Part><PartNumber>{name}</PartNumber><ETag>{tag}</ETag>"
        parts += f"<Checksum{kind.upper()}>{made}</Checksum{kind.upper()}></Part>"
    body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
    ask("POST", f"{url}?uploadId={number}", body, x_amz_checksum_type=type_)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, tar: bytes) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("s3")
    small = make_tar(folder / "small.tar", 2)
    large = make_tar(folder / "large.tar", 700)
    with versitygw(folder) as url:
        put(f"{url}/bkt1")
        for kind in KINDS:
            for name, data in (("whole", tar), ("small", small)):
                more = {f"x_amz_checksum_{kind}": digest(kind, data)}
                put(f"{url}/bkt1/{name}-{kind}.tar", data, **more)
            upload(f"{url}/bkt1/composite-{kind}.tar", large, kind, "COMPOSITE")
        upload(f"{url}/bkt1/full-crc32.tar", large, "crc32", "FULL_OBJECT")
        yield url


def options(server: str | StandIn, **more: Any) -> dict[str, Any]:
    keys = {"s3_access_key": "testkey", "s3_secret_key": "testsecret", "retries": 0}
    if isinstance(server, StandIn):
        keys |= {"s3_access_key": "KEY", "s3_secret_key": "hush-KEY"}
        return {"s3_endpoint": endpoint(server), **keys, **more}
    return {"s3_endpoint": server, **keys, **more}


def read(url: str, server: str | StandIn, samples: int = 100, **more: Any) -> dict[str, int]:
    """Its counters."""
    stream = shardfeed.Stream(url, **options(server, **more))
    assert len(list(stream)) == samples
    return stream.stats()


@pytest.mark.parametrize("kind", KINDS)
def test_objects_of_one_upload_are_verified(server: str, kind: str) -> None:
    assert read(f"s3://bkt1/whole-{kind}.tar", server)["verified_shards"] == 1
    fast = read(f"s3://bkt1/whole-{kind}.tar", server, checksums="fast")
    assert fast["verified_shards"] == kind.startswith("crc")
    none = read(f"s3://bkt1/whole-{kind}.tar", server, checksums="none")
    assert none["verified_shards"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_comes_in_one_request_is_verified_by_that(server: str, kind: str) -> None:
    stats = read(f"s3://bkt1/small-{kind}.tar", server, samples=2)
    assert (stats["verified_shards"], stats["requests"]) == (1, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_uploads_in_parts(server: str, kind: str) -> None:
    """Only what is a checksum of all of it."""
    assert read(f"s3://bkt1/composite-{kind}.tar", server, samples=700)["verified_shards"] == 0
    if kind == "crc32":
        assert read("s3://bkt1/full-crc32.tar", server, samples=700)["verified_shards"] == 1


@pytest.mark.parametrize("kind", ["md5", "sha512"])
def test_rare_checksums(server: str, tar: bytes, kind: str) -> None:
    """From the second shard of a stream on: nobody computes them in case they are there."""
    put(f"{server}/bkt1/rare.tar", tar, **{f"x_amz_checksum_{kind}": digest(kind, tar)})
    stream = shardfeed.Stream(["s3://bkt1/rare.tar"] * 3, **options(server, threads=1, lanes=1))
    assert len(list(stream)) == 300
    assert stream.stats()["verified_shards"] == 2


def test_what_the_server_computes_by_itself(server: str, tar: bytes) -> None:
    """CRC-64/NVME, as AWS does, also of uploads in parts."""
    put(f"{server}/bkt1/own.tar", tar)
    assert read("s3://bkt1/own.tar", server)["verified_shards"] == HAS_CRC64


@pytest.mark.parametrize("name", ["SHA-256", *(["CRC-64/NVME"] if HAS_CRC64 else [])])
def test_wrong_bytes_under_the_right_tag(
    server: str, tmp_path: Path, tar: bytes, name: str
) -> None:
    """Whoever writes into the files of this server changes neither its tags nor its checksums."""
    more = {"x_amz_checksum_sha256": digest("sha256", tar)} if name == "SHA-256" else {}
    put(f"{server}/bkt1/wrong.tar", tar, **more)
    (stored,) = (path for path in tmp_path.parent.rglob("root/bkt1/wrong.tar"))
    at = tar.index(b"....", len(tar) // 2)
    with stored.open("r+b") as file:
        file.seek(at)
        file.write(b"!")
    with pytest.raises(shardfeed.IntegrityError, match=f"whose {name} the") as caught:
        read("s3://bkt1/wrong.tar", server)
    assert "s3://bkt1/wrong.tar" in str(caught.value)
    with pytest.raises(shardfeed.IntegrityError):
        read("s3://bkt1/wrong.tar", server, cache=tmp_path / "cache")
    with stored.open("r+b") as file:
        file.seek(at)
        file.write(b".")
    assert read("s3://bkt1/wrong.tar", server, cache=tmp_path / "cache")["verified_shards"] == 1


def test_what_a_writer_wrote_is_verified(server: str) -> None:
    """Of one request; the checksum of an upload in parts is one of its parts' checksums."""
    more = options(server)
    for name, size, verified in (("small", 1000, 1), ("large", 300_000, 1), ("parts", 10**6, 0)):
        with shardfeed.Writer(f"s3://bkt1/ours-{name}.tar", **more) as writer:
            for number in range(10):
                writer.write({"__key__": f"{number:04}", "bin": bytes([number]) * size})
        stats = read(f"s3://bkt1/ours-{name}.tar", server, samples=10)
        assert stats["verified_shards"] == verified


# ---- A stand-in ---------------------------------------------------------------------------------


def with_checksum(data: bytes, more: dict[str, str], head: Decide | None = None) -> Aws:
    """As S3 gives it: never with a part of the object."""
    right = ranged(data)

    def decide(request: Request) -> Answer:
        if request.method == "HEAD" and head:
            return head(request)
        answer = right(request)
        asked = request.headers.get("x-amz-checksum-mode") == "ENABLED"
        if not asked or answer.status != 200:
            return answer
        return Answer(200, {**answer.headers, **more}, answer.body)

    return Aws(decide)


def full(kind: str, data: bytes) -> dict[str, str]:
    return {f"x-amz-checksum-{kind}": digest(kind, data), "x-amz-checksum-type": "FULL_OBJECT"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("connections", [1, 8])
def test_a_byte_that_changed_on_its_way(tar: bytes, kind: str, connections: int) -> None:
    at = tar.index(b"....", len(tar) // 2)
    wrong = tar[:at] + b"!" + tar[at + 1 :]
    more: dict[str, Any] = {"connections": connections, "range_size": "256KiB"}
    aws = with_checksum(wrong, full(kind, tar))
    with stand_in(aws) as server:
        with pytest.raises(shardfeed.IntegrityError, match=r"whose (CRC|SHA)-\d+C? the"):
            read("s3://bkt1/t.tar", server, **more)
        seen = len(aws.asked)
        assert read("s3://bkt1/t.tar", server, checksums="none", **more)["verified_shards"] == 0
        for request in aws.asked[seen:]:
            assert request.method == "GET"
            assert "x-amz-checksum-mode" not in request.headers


def test_one_question_for_a_shard_and_only_for_the_version_that_is_read(tar: bytes) -> None:
    aws = with_checksum(tar, full("crc32", tar))
    with stand_in(aws) as server:
        read("s3://bkt1/t.tar", server, connections=8, range_size="256KiB")
    heads = [request for request in aws.asked if request.method == "HEAD"]
    assert len(heads) == 1
    assert heads[0].headers["if-match"] == '"v1"'
    by = signed(heads[0])
    assert by
    assert "x-amz-checksum-mode" in by.names
    # Requests for what comes later have no use for it.
    ranges = [request for request in aws.asked if request.method == "GET"]
    assert [("x-amz-checksum-mode" in request.headers) for request in ranges] == [True] + [
        False
    ] * (len(ranges) - 1)


HEADS: dict[str, Decide] = {
    "refused": lambda _: Answer(403),
    "not there": lambda _: Answer(404),
    "not known": lambda _: Answer(501),
    "broken": lambda _: Answer(500),
    "busy": lambda _: Answer(503, {"Retry-After": "50"}),
    "gone": lambda _: Answer(head=3),
    "another version": lambda _: Answer(
        200, {"ETag": '"v2"', "Content-Length": "7", **full("crc32", b"another")}
    ),
    "no checksum": lambda _: Answer(200, {"ETag": '"v1"'}),
    "of parts": lambda _: Answer(
        200,
        {"ETag": '"v1"', "x-amz-checksum-crc32": "AAAAAA==", "x-amz-checksum-type": "COMPOSITE"},
    ),
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_what_goes_wrong_with_the_question_is_no_error(tar: bytes, head: Decide) -> None:
    def sized(request: Request) -> Answer:
        answer = head(request)
        return Answer(
            answer.status, {"Content-Length": str(len(tar)), **answer.headers}, head=answer.head
        )

    with stand_in(with_checksum(tar, {}, sized)) as server:
        stats = read("s3://bkt1/t.tar", server, retries=3, timeout=10)
        assert (stats["verified_shards"], stats["retries"]) == (0, 0)


REFUSALS = [
    fault(501, "NotImplemented"),
    Answer(
        400,
        {},
        b"<Error><Code>InvalidArgument</Code><Message>Unsupported header 'X-Amz-Checksum-Mode'"
        b"</Message></Error>",
    ),
]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_servers_that_refuse_the_header_are_read_without_it(tar: bytes, refusal: Answer) -> None:
    right = ranged(tar)

    def decide(request: Request) -> Answer:
        return refusal if "x-amz-checksum-mode" in request.headers else right(request)

    aws = Aws(decide)
    with stand_in(aws) as server:
        stream = shardfeed.Stream([f"s3://bkt1/{n}.tar" for n in "abc"], **options(server))
        assert len(list(stream)) == 300
        assert stream.stats()["verified_shards"] == 0
        # Once for the process, but for what was on its way.
        asked = ["x-amz-checksum-mode" in request.headers for request in aws.asked]
        assert 1 <= sum(asked) <= 3
        assert not any(asked[-3:])
        assert all(request.method == "GET" for request in aws.asked)


def test_the_first_sample_does_not_wait_for_the_answer(tar: bytes) -> None:
    go_on = threading.Event()

    def wait() -> None:
        go_on.wait(20)

    def head(_: Request) -> Answer:
        more = {"ETag": '"v1"', "Content-Length": str(len(tar)), **full("sha256", tar)}
        return Answer(200, more, wait=wait)

    with stand_in(with_checksum(tar, {}, head)) as server:
        stream = shardfeed.Stream("s3://bkt1/t.tar", **options(server, timeout=10))
        samples = iter(stream)
        keys = [next(samples).key for _ in range(90)]
        go_on.set()
        keys += [sample.key for sample in samples]
        assert len(keys) == 100
        assert stream.stats()["verified_shards"] == 1


def test_over_tls(tar: bytes, tmp_path: Path) -> None:
    """Where the question needs a connection of its own, which takes several steps."""
    certificates = Certificates.make(tmp_path)
    with stand_in(with_checksum(tar, full("sha256", tar)), certificates) as server:
        stats = read("s3://bkt1/t.tar", server, ca_file=certificates.ca)
        assert stats["verified_shards"] == 1


def test_an_answer_that_does_not_come_ends_nothing(tar: bytes) -> None:
    never = threading.Event()

    def wait() -> None:
        never.wait(20)

    def head(_: Request) -> Answer:
        return Answer(200, wait=wait)

    aws = with_checksum(tar, {}, head)
    with stand_in(aws) as server:
        assert in_a_row(server, 8, timeout=10) == 0
        never.set()
        assert heads_of(aws) == 4


def in_a_row(server: StandIn, shards: int, **more: Any) -> int:
    """How many are verified."""
    urls = [f"s3://bkt1/{number}.tar" for number in range(shards)]
    stream = shardfeed.Stream(urls, **options(server, threads=1, lanes=1, **more))
    assert len(list(stream)) == 100 * shards
    return stream.stats()["verified_shards"]


def heads_of(aws: Aws) -> int:
    return sum(request.method == "HEAD" for request in aws.asked)


@pytest.mark.parametrize("delay", [0, 0.1, 0.3])
@pytest.mark.parametrize("status", [200, 403, 501])
def test_questions_that_bring_nothing_end_after_a_few(
    tar: bytes, status: int, delay: float
) -> None:
    """Each is sent once: no refusal is repaired."""

    def head(_: Request) -> Answer:
        more = {"ETag": '"v1"', "Content-Length": str(len(tar))}
        return Answer(status, more, wait=lambda: time.sleep(delay))

    aws = with_checksum(tar, {}, head)
    with stand_in(aws) as server:
        assert in_a_row(server, 12) == 0
        assert heads_of(aws) == 4


REPAIRABLE = [
    fault(501, "NotImplemented"),
    Answer(400, {"x-amz-bucket-region": "eu-west-1"}),
    Answer(307, {"Location": "/other"}),
]


@pytest.mark.parametrize("refusal", REPAIRABLE)
def test_a_refusal_is_not_repaired(tar: bytes, refusal: Answer) -> None:
    """Even one that names another region, or says that the header is not known."""
    aws = with_checksum(tar, {}, lambda _: refusal)
    with stand_in(aws) as server:
        assert in_a_row(server, 1) == 0
        assert heads_of(aws) == 1


def test_a_stream_that_verified_a_shard_keeps_asking(tar: bytes) -> None:
    asked: list[str] = []

    def head(request: Request) -> Answer:
        asked.append(request.path)
        more = full("crc32", tar) if len(asked) in (3, 12) else {}
        return Answer(200, {"ETag": '"v1"', "Content-Length": str(len(tar)), **more})

    with stand_in(with_checksum(tar, {}, head)) as server:
        assert in_a_row(server, 12) == 2
        assert len(asked) == 12


def test_shards_with_other_checksums_than_those_before(tar: bytes) -> None:
    """CRCs are always found; the first hash after shards that had none comes too late."""
    kinds = ["crc32", "sha256", "sha256", "crc32"]

    def decide(request: Request) -> Answer:
        kind = kinds[int(request.path.rpartition("/")[2][0])]
        return with_checksum(tar, full(kind, tar)).s3(request)

    with stand_in(Aws(decide)) as server:
        urls = [f"s3://bkt1/{number}.tar" for number in range(4)]
        stream = shardfeed.Stream(urls, **options(server, threads=1, lanes=1))
        assert len(list(stream)) == 400
        assert stream.stats()["verified_shards"] == 3
