"""Shards that a Writer sends to Azure Blob Storage: whole, verified, never over one another."""

from __future__ import annotations

import base64
import hashlib
import urllib.parse
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import shardfeed
from azure_servers import ACCOUNT, AZURITE, KEY, Azure, Azurite, endpoint, fault, sas
from http_servers import Answer, Request, StandIn, stand_in

MIB = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    if not AZURITE.exists():
        pytest.skip("azurite is not there: scripts/install_test_servers.sh installs it")
    azurite = Azurite.start(tmp_path_factory.mktemp("azure"))
    try:
        azurite.make("bkt1")
        yield azurite
    finally:
        azurite.stop()


class Container:
    """The blob service, which stores what it is given after it has verified it."""

    def __init__(self) -> None:
        self.blobs: dict[str, tuple[bytes, dict[str, str]]] = {}
        self.blocks: dict[str, bytes] = {}
        self.before: Callable[[Request], Answer | None] = lambda _: None
        self.after: Callable[[Request], Answer | None] = lambda _: None

    def __call__(self, request: Request) -> Answer:
        return self.before(request) or self._done(request)

    def _done(self, request: Request) -> Answer:
        path, _, text = request.path.partition("?")
        query = dict(urllib.parse.parse_qsl(text))
        kept = {k: v for k, v in request.headers.items() if k.startswith("x-ms-meta-")}
        if request.method == "HEAD":
            if path not in self.blobs:
                return Answer(404)
            data, headers = self.blobs[path]
            return Answer(200, {**headers, "Content-Length": str(len(data))})
        if query.get("comp") != "blocklist":
            digest = base64.b64encode(hashlib.md5(request.body).digest()).decode()
            assert request.headers["content-md5"] == digest
        if query.get("comp") == "block":
            self.blocks[query["blockid"]] = request.body
            return Answer(201)
        if path in self.blobs and request.headers.get("if-none-match") == "*":
            return fault(409, "BlobAlreadyExists")
        body = request.body
        if query.get("comp") == "blocklist":
            body = b"".join(self.blocks[block.text or ""] for block in ET.fromstring(body))
        self.blobs[path] = body, kept
        return self.after(request) or Answer(201)


@pytest.fixture
def container() -> Container:
    return Container()


@pytest.fixture
def stand(container: Container) -> Iterator[StandIn]:
    with stand_in(Azure(container)) as server:
        yield server


def options(server: Azurite | StandIn, **more: Any) -> dict[str, Any]:
    place = endpoint(server) if isinstance(server, StandIn) else server.endpoint
    return {"az_endpoint": place, "retries": 1, "az_account_key": KEY, **more}


def write(pattern: str, sizes: list[int], **more: Any) -> list[shardfeed.Shard]:
    """One sample of each size. The published shards."""
    with shardfeed.Writer(pattern, **more) as writer:
        for number, size in enumerate(sizes):
            writer.write({"__key__": f"{number:04}", "bin": bytes([number % 251]) * size})
    return list(writer.shards)


def read(url: str, **more: Any) -> list[tuple[str, int]]:
    with shardfeed.Stream(url, expand=False, **more) as stream:
        return [(sample.key, len(sample["bin"])) for sample in stream]


# ---- A real server ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "folder",
    [
        "az://bkt1/az",
        f"abfss://bkt1@{ACCOUNT}.dfs.core.windows.net/lake",
        f"https://{ACCOUNT}.blob.core.windows.net/bkt1/web",
    ],
)
def test_blobs_of_one_request_and_of_blocks(server: Azurite, folder: str) -> None:
    name = "b%%20%02d.tar" if folder.startswith("https") else "b + é %02d.tar"
    shards = write(f"{folder}/{name}", [10, 9 * MIB, 9 * MIB], **options(server, max_bytes="10MiB"))
    sizes = [read(shard.url, **options(server)) for shard in shards]
    assert sizes == [[("0000", 10), ("0001", 9 * MIB)], [("0002", 9 * MIB)]]
    signed = {**options(server), "az_account_key": "", "az_sas": sas("rcw")}
    write(f"{folder}/sas.tar", [10, 9 * MIB], **signed)
    assert len(read(f"{folder}/sas.tar", **signed)) == 2


@pytest.mark.parametrize("sizes", [[10], [9 * MIB, 9 * MIB]])
def test_a_blob_that_is_there_stays(server: Azurite, sizes: list[int]) -> None:
    name = f"az://bkt1/there{len(sizes)}.tar"
    writer = shardfeed.Writer(name, **options(server))
    for number, size in enumerate(sizes):
        writer.write({"__key__": str(number), "bin": bytes(size)})
    # To azurite blocks without a blob are one, when others write it.
    write(name, [5], **options(server, overwrite=True))
    with pytest.raises(
        shardfeed.ReadError, match=r"nothing is overwritten; help: .*overwrite=true"
    ):
        writer.finish()
    writer.close()
    with pytest.raises(shardfeed.ReadError, match="nothing is overwritten"):
        write(name, sizes, **options(server))
    assert read(name, **options(server)) == [("0000", 5)]
    write(name, sizes, **options(server, overwrite=True))
    assert len(read(name, **options(server))) == len(sizes)


@pytest.mark.parametrize(
    ("url", "more", "kind", "said"),
    [
        ("az://none1/a.tar", {}, shardfeed.NetPermanentError, "404 ContainerNotFound"),
        ("az://bkt1/a.tar", {"az_account_key": "aHVzaA=="}, shardfeed.AuthError, "403 .*help: "),
        (
            "az://bkt1/a.tar",
            {"az_account_key": "", "az_sas": sas("r")},
            shardfeed.AuthError,
            "Storage Blob Data Contributor",
        ),
        ("az://bkt1/", {}, shardfeed.UsageError, "no blob"),
    ],
)
def test_refusals(
    server: Azurite, url: str, more: dict[str, Any], kind: type[Exception], said: str
) -> None:
    for size in (10, 9 * MIB):
        with pytest.raises(kind, match=said):
            write(url, [size], **options(server, **more))


# ---- Faults -------------------------------------------------------------------------------------

LOST = Answer(201, {"Content-Length": "10"}, b"", cut=0)


def once(at: str, answer: Answer) -> Callable[[Request], Answer | None]:
    """Gives this answer to the first PUT like that."""
    left = [answer]
    return lambda request: (
        left.pop() if left and request.method == "PUT" and at in request.path else None
    )


@pytest.mark.parametrize(
    "answer",
    [LOST, fault(503, "ServerBusy"), fault(400, "Md5Mismatch")],
    ids=["lost", "503", "damaged"],
)
def test_a_block_is_sent_again(container: Container, stand: StandIn, answer: Answer) -> None:
    container.before = once("comp=block", answer)
    (shard,) = write("az://bkt/a.tar", [9 * MIB] * 2, **options(stand))
    (blob,) = container.blobs.values()
    assert len(blob[0]) == shard.bytes


@pytest.mark.parametrize(("at", "sizes"), [("a.tar", [10]), ("comp=blocklist", [9 * MIB] * 2)])
def test_the_answer_to_the_last_request_is_lost(
    container: Container, stand: StandIn, at: str, sizes: list[int]
) -> None:
    container.after = once(at, LOST)
    (shard,) = write("az://bkt/a.tar", sizes, **options(stand))
    (blob,) = container.blobs.values()
    assert len(blob[0]) == shard.bytes


def test_a_writer_that_is_dropped_leaves_no_blob(container: Container, stand: StandIn) -> None:
    writer = shardfeed.Writer("az://bkt/a.tar", **options(stand))
    writer.write({"__key__": "a", "bin": bytes(20 * MIB)})
    writer.close()
    assert not container.blobs
    assert not stand.errors
