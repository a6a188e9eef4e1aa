"""Shards that a Writer sends to S3: whole, verified, never over one another, never half."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from aws_servers import Bucket, endpoint, fault, put, versitygw
from http_servers import Answer, Request, StandIn, stand_in

MIB = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with versitygw(tmp_path_factory.mktemp("s3")) as url:
        put(f"{url}/bkt1")
        yield url


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


@pytest.fixture
def stand(bucket: Bucket) -> Iterator[StandIn]:
    with stand_in(bucket) as server:
        yield server


def options(server: str | StandIn, **more: Any) -> dict[str, Any]:
    if isinstance(server, StandIn):
        keys = {"s3_access_key": "KEY", "s3_secret_key": "hush-KEY"}
        return {"s3_endpoint": endpoint(server), "retries": 2, **keys, **more}
    keys = {"s3_access_key": "testkey", "s3_secret_key": "testsecret"}
    return {"s3_endpoint": server, "retries": 0, **keys, **more}


def write(pattern: str, sizes: list[int], **more: Any) -> list[shardfeed.Shard]:
    """One sample of each size. The published shards."""
    with shardfeed.Writer(pattern, **more) as writer:
        for number, size in enumerate(sizes):
            writer.write({"__key__": f"{number:04}", "bin": bytes([number % 251]) * size})
    return list(writer.shards)


def read(url: str, **more: Any) -> list[tuple[str, int]]:
    with shardfeed.Stream(url, **more) as stream:
        return [(sample.key, len(sample["bin"])) for sample in stream]


# ---- A real server ------------------------------------------------------------------------------


def test_shards_of_one_request_and_of_parts(server: str, tmp_path: Path) -> None:
    sizes = [3000] * 4 + [9 * MIB, 9 * MIB, 7] + [10]
    more = {"max_samples": 4}
    shards = write("s3://bkt1/a b/%02d+é.tar", sizes, **options(server, **more))
    local = write(f"{tmp_path}/%02d.tar", sizes, **more)
    assert [s.url for s in shards] == ["s3://bkt1/a b/00+é.tar", "s3://bkt1/a b/01+é.tar"]
    assert [(s.samples, s.bytes, s.digest) for s in shards] == [
        (s.samples, s.bytes, s.digest) for s in local
    ]
    expected = [(f"{number:04}", size) for number, size in enumerate(sizes)]
    assert read("s3://bkt1/a b/*.tar", **options(server)) == expected


def test_formats(server: str) -> None:
    for name in ("f.zip", "f.tar.gz", "f.tar.zst"):
        write(f"s3://bkt1/{name}", [1000, 2000], **options(server))
        assert len(read(f"s3://bkt1/{name}", **options(server))) == 2


def test_an_object_that_is_there_stays(server: str) -> None:
    write("s3://bkt1/there.tar", [10], **options(server))
    with pytest.raises(shardfeed.ReadError, match=r"s3://bkt1/there.tar.*help: .*overwrite=true"):
        write("s3://bkt1/there.tar", [20], **options(server))
    assert read("s3://bkt1/there.tar", **options(server)) == [("0000", 10)]
    write("s3://bkt1/there.tar", [20], **options(server, overwrite=True))
    assert read("s3://bkt1/there.tar", **options(server)) == [("0000", 20)]


@pytest.mark.parametrize("sizes", [[10], [9 * MIB, 9 * MIB]])
def test_an_object_that_appears_meanwhile_stays(server: str, sizes: list[int]) -> None:
    name = f"s3://bkt1/meanwhile{len(sizes)}.tar"
    writer = shardfeed.Writer(name, **options(server))
    for number, size in enumerate(sizes):
        writer.write({"__key__": str(number), "bin": bytes(size)})
    write(name, [5], **options(server))
    with pytest.raises(shardfeed.ReadError, match="nothing is overwritten"):
        writer.finish()
    writer.close()
    assert read(name, **options(server)) == [("0000", 5)]


def test_the_index_is_beside_the_shard(server: str, tmp_path: Path) -> None:
    url = "s3://bkt1/in dex.tar"
    (shard,) = write(url, [100] * 30, **options(server), index=True)
    assert shard.index == url + ".sfidx"
    assert not list(tmp_path.iterdir())
    # Data sets fetch it, and keep it where they look first.
    more = {"index": "require", "index_dir": str(tmp_path)}
    for _ in range(2):
        with shardfeed.Dataset([url], **options(server, **more)) as data:
            assert len(data) == 30
            assert data[7].key == "0007"
    (kept,) = tmp_path.iterdir()
    kept.unlink()
    # One of another version of the shard is none.
    write(url, [100] * 5, **options(server, overwrite=True))
    with pytest.raises(shardfeed.ChangedError, match="index is of another version"):
        shardfeed.Dataset([url], **options(server, **more))
    write("s3://bkt1/in-%d.tar", [10], **options(server, index_dir=str(tmp_path)), index=True)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("url", "more", "kind", "said"),
    [
        (
            "s3://none1/a.tar",
            {},
            shardfeed.NetPermanentError,
            "404 NoSuchBucket.*spelling of the b",
        ),
        (
            "s3://bkt1/a.tar",
            {"s3_secret_key": "hush-wrong"},
            shardfeed.AuthError,
            "403 SignatureDoesNotMatch.*secret key",
        ),
        ("s3://bkt1/a.tar", {"s3_access_key": "who"}, shardfeed.AuthError, "key id"),
        ("s3://bkt1/", {}, shardfeed.UsageError, "no object"),
        ("hf://datasets/a/b/c.tar", {}, shardfeed.UsageError, "cannot be written to hf: URLs"),
    ],
)
def test_refusals(
    server: str, url: str, more: dict[str, Any], kind: type[Exception], said: str
) -> None:
    for size in (10, 9 * MIB):
        with pytest.raises(kind, match=said) as caught:
            write(url, [size], **options(server, **more))
        assert "hush" not in str(caught.value)
        assert url in str(caught.value)


def test_no_credentials_at_all(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    writer = shardfeed.Writer("s3://bkt1/a.tar", s3_endpoint=server)
    with pytest.raises(shardfeed.AuthError, match="no credentials for S3"):
        writer.write({"__key__": "a", "bin": b"x"})  # and not when the shard is whole
    writer.close()


# ---- Faults -------------------------------------------------------------------------------------


def once(*, method: str, at: str, answer: Answer) -> Any:
    """Gives this answer to the first request like that."""
    left = [answer]

    def decide(request: Request) -> Answer | None:
        return left.pop() if left and request.method == method and at in request.path else None

    return decide


LOST = Answer(200, {"Content-Length": "10"}, b"", cut=0)
PART = {"method": "PUT", "at": "partNumber=2"}
DONE = {"method": "POST", "at": "?uploadId="}


@pytest.mark.parametrize(
    "answer",
    [LOST, fault(503, "SlowDown"), fault(400, "BadDigest")],
    ids=["lost", "503", "damaged"],
)
def test_a_part_is_sent_again(bucket: Bucket, stand: StandIn, answer: Answer) -> None:
    bucket.before = once(**PART, answer=answer)
    (shard,) = write("s3://bkt/a.tar", [9 * MIB] * 2, **options(stand))
    assert len(bucket.objects["/bkt/a.tar"]) == shard.bytes
    assert not bucket.uploads
    assert read("s3://bkt/a.tar", **options(stand)) == [(f"{i:04}", 9 * MIB) for i in range(2)]


@pytest.mark.parametrize(
    "what", [{"method": "PUT", "at": "/bkt/a.tar"}, DONE], ids=["put", "parts"]
)
def test_the_answer_to_the_last_request_is_lost(
    bucket: Bucket, stand: StandIn, what: dict[str, str]
) -> None:
    bucket.after = once(**what, answer=LOST)
    sizes = [10] if what["method"] == "PUT" else [9 * MIB] * 2
    (shard,) = write("s3://bkt/a.tar", sizes, **options(stand))
    assert len(bucket.objects["/bkt/a.tar"]) == shard.bytes


def test_a_refusal_behind_the_status_of_a_success(bucket: Bucket, stand: StandIn) -> None:
    refusal = Answer(200, {}, fault(200, "InternalError").body)
    bucket.before = once(**DONE, answer=refusal)
    write("s3://bkt/a.tar", [9 * MIB] * 2, **options(stand))
    assert list(bucket.objects) == ["/bkt/a.tar"]
    bucket.before = lambda request: refusal if "?uploadId=" in request.path else None
    with pytest.raises(shardfeed.NetTransientError, match="join the parts: InternalError"):
        write("s3://bkt/b.tar", [9 * MIB] * 2, **options(stand, retries=0))
    assert list(bucket.objects) == ["/bkt/a.tar"]


def test_a_part_that_fails_ends_the_writer(bucket: Bucket, stand: StandIn) -> None:
    bucket.before = lambda request: (
        fault(403, "AccessDenied", "<RequestId>R7</RequestId>")
        if "partNumber" in request.path
        else None
    )
    with pytest.raises(shardfeed.AuthError, match=r"403 AccessDenied: .*R7.*s3:PutObject"):
        write("s3://bkt/a.tar", [5 * MIB] * 6, **options(stand))
    assert not bucket.objects
    assert not bucket.uploads


def test_a_writer_that_is_dropped_leaves_nothing(bucket: Bucket, stand: StandIn) -> None:
    writer = shardfeed.Writer("s3://bkt/a.tar", **options(stand))
    writer.write({"__key__": "a", "bin": bytes(20 * MIB)})
    assert bucket.uploads
    writer.close()
    assert not bucket.uploads
    assert not bucket.objects
    assert not stand.errors


def test_a_cancel_ends_an_upload_and_aborts_it(bucket: Bucket, stand: StandIn) -> None:
    gate = threading.Event()

    def held(request: Request) -> Answer | None:
        return (
            Answer(200, {"ETag": '"x"'}, wait=gate.wait) if "partNumber" in request.path else None
        )

    bucket.before = held
    writer = shardfeed.Writer("s3://bkt/a.tar", **options(stand, connections=1))
    threading.Timer(0.3, writer.cancel).start()
    begun = time.monotonic()
    with pytest.raises(shardfeed.CancelledError):
        writer.write({"__key__": "a", "bin": bytes(40 * MIB)})
    assert time.monotonic() - begun < 2
    writer.close()
    gate.set()
    assert not bucket.uploads


def test_an_object_that_is_being_replaced(bucket: Bucket, stand: StandIn) -> None:
    looks = 0

    def hide(request: Request) -> Answer | None:
        nonlocal looks
        if request.method == "HEAD" and bucket.objects:
            looks += 1
            return Answer(404) if looks < 4 else None
        return None

    bucket.before = hide
    (shard,) = write("s3://bkt/a.tar", [10], **options(stand))
    assert looks == 4
    assert len(bucket.objects["/bkt/a.tar"]) == shard.bytes


def test_another_size_than_was_written(bucket: Bucket, stand: StandIn) -> None:
    def cut(request: Request) -> Answer | None:
        if request.method == "HEAD" and bucket.objects:
            return Answer(200, {"Content-Length": "7"})
        return None

    bucket.before = cut
    with pytest.raises(shardfeed.IntegrityError, match="it has 7 bytes, and 10240 bytes were writ"):
        write("s3://bkt/a.tar", [10], **options(stand))


def test_parts_go_over_several_connections_within_memory(bucket: Bucket, stand: StandIn) -> None:
    now, most, wanted = 0, 0, 3
    changed = threading.Condition()

    def wait() -> None:
        nonlocal now, most
        with changed:
            now += 1
            most = max(most, now)
            changed.notify_all()
            changed.wait_for(lambda: most >= wanted, timeout=30)
        time.sleep(0.15)  # in which one more could come
        with changed:
            now -= 1

    def slow(request: Request) -> Answer | None:
        if "partNumber" not in request.path:
            return None
        done = bucket._done(request)
        return Answer(done.status, done.headers, done.body, wait=wait)

    bucket.before = slow
    write("s3://bkt/a.tar", [33 * MIB], **options(stand, connections=3))
    assert most == 3
    most, wanted = 0, 2
    write("s3://bkt/b.tar", [33 * MIB], **options(stand, memory="72MiB"))
    assert most == 2
