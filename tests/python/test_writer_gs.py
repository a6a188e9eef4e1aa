"""Shards that a Writer sends to Google Cloud Storage: whole, verified, never over one another."""

from __future__ import annotations

import base64
import email
import hashlib
import json
import re
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import shardfeed
from gs_servers import Google, fake_gcs_server, json_fault, make_bucket
from http_servers import Answer, Request, StandIn, stand_in

MIB = 1 << 20
WRITE = "https://www.googleapis.com/auth/devstorage.read_write"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        with fake_gcs_server(tmp_path_factory.mktemp("gs")) as server:
            make_bucket(server, "bkt1")
            yield server
    except FileNotFoundError as error:
        pytest.skip(str(error))


class Storage:
    """The bucket bkt, which stores what it is given after it has verified it."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, str]] = {}  # and the number of the upload
        self.session: tuple[str, str, bytes] | None = None
        self.takes = 1 << 40  # bytes of the next part
        self.damages = False
        self.steps = 1  # of a copy
        self.asked: list[str] = []  # tokens of these
        self.before: Callable[[Request], Answer | None] = lambda _: None
        self.after: Callable[[Request], Answer | None] = lambda _: None

    def __call__(self, request: Request) -> Answer:
        answer = self.before(request)
        if answer is None:
            done = self._done(request)
            answer = self.after(request) or done
        return answer

    def _done(self, request: Request) -> Answer:
        path, _, text = request.path.partition("?")
        query = dict(urllib.parse.parse_qsl(text))
        if request.method == "HEAD":
            key = urllib.parse.unquote(path.removeprefix("/bkt/"))
            if key not in self.objects:
                return Answer(404)
            data, number = self.objects[key]
            meta = {"x-goog-meta-shardfeed-upload": number, "x-goog-generation": "7"}
            return Answer(200, {**meta, "Content-Length": str(len(data))})
        if path == "/session":
            return self._part(request)
        if request.method == "DELETE":
            key = urllib.parse.unquote(path.removeprefix("/bkt/"))
            assert query == ({} if key.startswith(".") else {"generation": "7"})
            return Answer(204 if self.objects.pop(key, None) else 404)
        if "/rewriteTo/" in path:
            return self._copy(path, query)
        assert (request.method, path) == ("POST", "/upload/storage/v1/b/bkt/o")
        assert query["ifGenerationMatch"] == "0"
        if query["uploadType"] == "resumable":
            about = json.loads(request.body)
            self.session = about["name"], about["metadata"]["shardfeed-upload"], b""
            return Answer(headers={"Location": "https://elsewhere/session?upload_id=hush"})
        kind = request.headers["content-type"].encode()
        parts = email.message_from_bytes(b"Content-Type: " + kind + b"\r\n\r\n" + request.body)
        head, body = (part.get_payload(decode=True) for part in parts.get_payload())
        about = json.loads(head)
        return self._make(about["name"], about["metadata"]["shardfeed-upload"], body)

    def _copy(self, path: str, query: dict[str, str]) -> Answer:
        source, target = path.removeprefix("/storage/v1/b/bkt/o/").split("/rewriteTo/b/bkt/o/")
        source, target = urllib.parse.unquote(source), urllib.parse.unquote(target)
        assert query.get("ifGenerationMatch") == "0"
        if source not in self.objects:
            return json_fault(404, "notFound")
        self.asked.append(query.get("rewriteToken", ""))
        if len(self.asked) < self.steps:
            body = {"done": False, "rewriteToken": f"step {len(self.asked)}/"}
            return Answer(body=json.dumps(body).encode())
        if target in self.objects:
            return json_fault(412, "conditionNotMet")
        self.objects[target] = self.objects[source]
        return Answer(body=b'{"done":true}')

    def _part(self, request: Request) -> Answer:
        if request.method == "DELETE":
            self.session = None
            return Answer(499)
        assert self.session
        key, number, data = self.session
        if not number:  # it is over
            return Answer(body=self._about(key))
        found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", request.headers["content-range"])
        if found:
            assert int(found[1]) == len(data)
            assert int(found[2]) + 1 - int(found[1]) == len(request.body)
            data += request.body[: self.takes]
            self.session = key, number, data
            if found[3] == str(len(data)):
                self.session = key, "", b""
                digest = base64.b64encode(hashlib.md5(data).digest()).decode()
                assert request.headers["x-goog-hash"] == f"md5={digest}"
                return self._make(key, number, data)
            self.takes = 1 << 40
        else:
            assert request.headers["content-range"] == "bytes */*"
        return Answer(308, {"Range": f"bytes=0-{len(data) - 1}"} if data else {})

    def _make(self, key: str, number: str, data: bytes) -> Answer:
        if key in self.objects:
            return json_fault(412, "conditionNotMet")
        self.objects[key] = data, number
        return Answer(body=self._about(key))

    def _about(self, key: str) -> bytes:
        digest = base64.b64encode(hashlib.md5(self.objects[key][0]).digest()).decode()
        digest = "AAAA" if self.damages else digest
        return json.dumps({"generation": "7", "md5Hash": digest}).encode()


@pytest.fixture
def storage() -> Storage:
    return Storage()


@pytest.fixture
def google(storage: Storage) -> Google:
    return Google(storage, taken={"hush-mine"})


@pytest.fixture
def stand(google: Google) -> Iterator[StandIn]:
    with stand_in(google) as server:
        yield server
        assert not server.errors


def options(stand: StandIn, **more: Any) -> dict[str, Any]:
    place = stand.url("").rstrip("/")
    return {"gs_endpoint": place, "gs_token": "hush-mine", "retries": 2, **more}


def write(pattern: str, sizes: list[int], **more: Any) -> list[shardfeed.Shard]:
    """One sample of each size. The published shards."""
    with shardfeed.Writer(pattern, **more) as writer:
        for number, size in enumerate(sizes):
            writer.write({"__key__": f"{number:04}", "bin": bytes([number % 251]) * size})
    return list(writer.shards)


# ---- A real server ------------------------------------------------------------------------------


def test_objects_of_one_request_and_of_parts(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server)
    sizes = [10, 9 * MIB, 9 * MIB]
    shards = write("gs://bkt1/a b/%02d+é.tar", sizes, max_bytes="10MiB", retries=0)
    found = []
    for shard in shards:
        with shardfeed.Stream(shard.url, retries=0) as stream:
            found += [(sample.key, len(sample["bin"])) for sample in stream]
    assert found == [(f"{number:04}", size) for number, size in enumerate(sizes)]
    with pytest.raises(shardfeed.ReadError, match="nothing is overwritten"):
        write("gs://bkt1/a b/%02d+é.tar", sizes, retries=0)
    write("gs://bkt1/a b/00+é.tar", sizes, retries=0, overwrite=True)
    with shardfeed.Stream("gs://bkt1/a b/00+é.tar") as stream:
        assert len(list(stream)) == 3


# ---- Faults -------------------------------------------------------------------------------------

LOST = Answer(200, {"Content-Length": "10"}, b"", cut=0)
SIZES = [9 * MIB] * 2


def once(at: str, answer: Answer, method: str = "PUT") -> Callable[[Request], Answer | None]:
    """Gives this answer to the second request like that, or to the only one."""
    left = [answer, None] if at == "session" else [answer]
    return lambda request: (
        left.pop() if left and request.method == method and at in request.path else None
    )


@pytest.mark.parametrize("answer", [LOST, json_fault(503, "backendError")], ids=["lost", "503"])
@pytest.mark.parametrize("done", [False, True], ids=["undone", "done"])
def test_a_part_goes_on_where_the_server_is(
    storage: Storage, stand: StandIn, answer: Answer, done: bool
) -> None:
    if done:
        storage.after = once("session", answer)
    else:
        storage.before = once("session", answer)
    storage.takes = 5 << 18  # of the first part
    (shard,) = write("gs://bkt/a.tar", SIZES, **options(stand))
    assert len(storage.objects["a.tar"][0]) == shard.bytes


@pytest.mark.parametrize("sizes", [[10], [9 * MIB]])
def test_the_answer_to_the_last_request_is_lost(
    storage: Storage, stand: StandIn, sizes: list[int]
) -> None:
    storage.after = once(
        "session" if sizes[0] > MIB else "multipart", LOST, "PUT" if sizes[0] > MIB else "POST"
    )
    (shard,) = write("gs://bkt/a é.tar", sizes, **options(stand))
    assert len(storage.objects["a é.tar"][0]) == shard.bytes


@pytest.mark.parametrize("sizes", [[10], [9 * MIB]])
def test_an_object_that_appears_meanwhile_stays(
    storage: Storage, stand: StandIn, sizes: list[int]
) -> None:
    writer = shardfeed.Writer("gs://bkt/a.tar", **options(stand))
    writer.write({"__key__": "a", "bin": bytes(sizes[0])})
    storage.objects["a.tar"] = b"theirs", "x"
    with pytest.raises(shardfeed.ReadError, match="nothing is overwritten"):
        writer.finish()
    writer.close()
    assert storage.objects["a.tar"] == (b"theirs", "x")


def test_an_object_that_is_damaged_is_removed(storage: Storage, stand: StandIn) -> None:
    storage.damages = True
    with pytest.raises(shardfeed.IntegrityError, match="another MD5; it was removed"):
        write("gs://bkt/a.tar", [9 * MIB], **options(stand))
    assert not storage.objects


def test_a_writer_that_is_dropped_leaves_nothing(storage: Storage, stand: StandIn) -> None:
    writer = shardfeed.Writer("gs://bkt/a.tar", **options(stand))
    writer.write({"__key__": "a", "bin": bytes(20 * MIB)})
    assert storage.session
    writer.close()
    assert storage.session is None
    assert not storage.objects


def test_refusals(storage: Storage, stand: StandIn) -> None:
    def refused(kind: type[Exception], said: str, url: str = "gs://bkt/a.tar", **more: Any) -> None:
        with pytest.raises(kind, match=said) as caught:
            write(url, [10], **options(stand, **more))
        assert "hush" not in str(caught.value)

    refused(shardfeed.AuthError, "401.*help: ", gs_token="hush-other")
    storage.before = lambda request: json_fault(403, "forbidden")
    refused(shardfeed.AuthError, "403 forbidden.*Storage Object User")
    storage.before = lambda request: json_fault(404, "notFound")
    refused(shardfeed.NetPermanentError, "404 notFound.*spelling of the bucket")
    keys = {"gs_token": "", "gs_access_key": "KEY", "gs_secret_key": "hush-KEY"}
    refused(shardfeed.UsageError, "HMAC keys cannot write", **keys)
    refused(shardfeed.UsageError, "no object", "gs://bkt/")


def test_the_token_is_one_for_writing(
    google: Google, stand: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def machine(request: Request) -> Answer:
        asked.append(request.path)
        return google._token(**{"Metadata-Flavor": google.flavor})

    monkeypatch.setattr(google, "_machine", machine)
    monkeypatch.setenv("GCE_METADATA_HOST", f"127.0.0.1:{stand.port}")
    monkeypatch.setenv("HOME", "/nonexistent")
    write("gs://bkt/a.tar", [10], **options(stand, gs_token=""))
    assert [urllib.parse.parse_qs(path.partition("?")[2])["scopes"] for path in asked] == [[WRITE]]


# ---- Shards that wait ---------------------------------------------------------------------------


def waiting(storage: Storage) -> list[str]:
    """The names of objects that have not appeared, without their numbers."""
    return [re.sub("[0-9a-f]{32}", "NUMBER", key) for key in storage.objects if key[0] == "."]


def test_a_shard_waits_under_another_name(stand: StandIn, storage: Storage) -> None:
    storage.steps = 3
    (shard,) = write("gs://bkt/a.tar", [9 * MIB], **options(stand, prepare=True))
    assert waiting(storage) == [".a.tar.NUMBER.partial"]
    assert len(storage.objects) == 1
    assert "hush" not in (shard.token or "")
    for _ in range(2):
        shardfeed.publish_prepared([shard], **options(stand))
        assert list(storage.objects) == ["a.tar"]
        assert storage.asked == ["", "step 1/", "step 2/"]


def test_a_lost_answer_to_a_copy(stand: StandIn, storage: Storage) -> None:
    (shard,) = write("gs://bkt/a.tar", [10], **options(stand, prepare=True))
    lost = []

    def lose(request: Request) -> Answer | None:
        if "/rewriteTo/" in request.path and not lost:
            lost.append(request)
            return Answer(503)
        return None

    storage.after = lose
    shardfeed.publish_prepared([shard], **options(stand))
    assert lost
    assert list(storage.objects) == ["a.tar"]


def test_a_copy_overwrites_nothing(stand: StandIn, storage: Storage) -> None:
    (shard,) = write("gs://bkt/a.tar", [10], **options(stand, prepare=True))
    write("gs://bkt/a.tar", [77], **options(stand))
    kept = storage.objects["a.tar"]
    with pytest.raises(shardfeed.PublishError, match=r"1 of 1 .*nothing is overwritten") as caught:
        shardfeed.publish_prepared([shard], **options(stand))
    assert storage.objects["a.tar"] == kept
    assert waiting(storage) == [".a.tar.NUMBER.partial"]
    shardfeed.discard_prepared(caught.value.prepared, **options(stand))
    assert list(storage.objects) == ["a.tar"]


def test_a_copy_that_does_not_continue(stand: StandIn, storage: Storage) -> None:
    (shard,) = write("gs://bkt/a.tar", [10], **options(stand, prepare=True))
    storage.before = lambda request: (
        Answer(body=b'{"done":false,"rewriteToken":"same"}')
        if "/rewriteTo/" in request.path
        else None
    )
    with pytest.raises(shardfeed.PublishError, match="does not say how to continue"):
        shardfeed.publish_prepared([shard], **options(stand))
