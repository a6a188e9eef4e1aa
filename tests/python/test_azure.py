"""Shards in containers of a real azurite: what is read is what a local file would give."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from azure_servers import ACCOUNT, AZURITE, KEY, Azurite, sas
from conftest import numbered, write_tar

# Names of shards of two samples each.
SPECIAL = [
    "k=1+ b%&?#:~'()!*.tar",
    "k%20%2E%2F.tar",
    "k é日本.tar",
    'k"<&>".tar',
    "k,;@$[x].tar",
]
WEB = f"https://{ACCOUNT}.blob.core.windows.net"
LAKE = f"{ACCOUNT}.dfs.core.windows.net"


def fill(folder: Path, server: Azurite) -> None:
    """bkt1: shards and an archive; pub: for everybody."""
    tar = write_tar(folder / "a.tar", numbered(0, 50, 3000)).read_bytes()
    with zipfile.ZipFile(folder / "i.zip", "w") as file:
        for name, data in numbered(0, 200, 500):
            file.writestr(name, data)
    server.make("bkt1")
    server.make("pub", public=True)
    server.put("pub/a.tar", tar)
    server.put("bkt1/a.tar", tar)
    server.put("bkt1/i.zip", (folder / "i.zip").read_bytes())
    server.put("bkt1/empty.tar", b"")
    small = write_tar(folder / "s.tar", numbered(0, 2)).read_bytes()
    for name in SPECIAL:
        server.put(f"bkt1/special/{name}", small)
    server.put("bkt1/special/other.txt", small)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    if not AZURITE.exists():
        pytest.skip("azurite is not there: scripts/install_test_servers.sh installs it")
    folder = tmp_path_factory.mktemp("azure")
    azurite = Azurite.start(folder)
    try:
        fill(folder, azurite)
        yield azurite
    finally:
        azurite.stop()


def options(server: Azurite, **more: Any) -> dict[str, Any]:
    return {"az_endpoint": server.endpoint, "retries": 0, "az_account_key": KEY, **more}


def signed(server: Azurite, signature: str, **more: Any) -> dict[str, Any]:
    return {"az_endpoint": server.endpoint, "retries": 0, "az_sas": signature, **more}


@pytest.mark.parametrize(
    "url", ["az://bkt1/a.tar", f"abfss://bkt1@{LAKE}/a.tar", f"{WEB}/bkt1/a.tar"]
)
def test_stream(server: Azurite, url: str) -> None:
    for given in (options(server), signed(server, "?" + sas("r"))):
        samples = list(shardfeed.Stream(url, **given))
        assert [bytes(sample["txt"]).rstrip(b".") for sample in samples] == [
            str(number).encode() for number in range(50)
        ]


def test_connection_strings(server: Azurite) -> None:
    for secret in (f"AccountKey={KEY}", f"SharedAccessSignature={sas('r')}"):
        text = f"AccountName={ACCOUNT};{secret};BlobEndpoint={server.endpoint}/;QueueEndpoint=q"
        stream = shardfeed.Stream("az://bkt1/a.tar", az_connection_string=text, retries=0)
        assert len(list(stream)) == 50


@pytest.mark.parametrize("name", SPECIAL)
def test_special_names(server: Azurite, name: str) -> None:
    for given in (options(server), signed(server, sas("r"))):
        stream = shardfeed.Stream([f"az://bkt1/special/{name}"], expand=False, **given)
        assert len(list(stream)) == 2


@pytest.mark.parametrize("start", ["az://bkt1/", f"abfs://bkt1@{LAKE}/", f"{WEB}/bkt1/"])
def test_lists(server: Azurite, start: str) -> None:
    for given in (options(server), signed(server, sas("rl"))):
        assert len(list(shardfeed.Stream(start + "special/", **given))) == 2 * len(SPECIAL)
        percent = "%25" if start.startswith("https:") else "%"
        stream = shardfeed.Stream(f"{start}special/k{percent}*.tar", **given)
        assert len(list(stream)) == 2
        assert len(list(shardfeed.Stream(start + "{a,special/k=}*.tar", **given))) == 52


def test_anonymous(server: Azurite) -> None:
    anonymous = {"az_endpoint": server.endpoint, "az_anonymous": True, "retries": 0}
    assert len(list(shardfeed.Stream("az://pub/a.tar", **anonymous))) == 50
    assert len(list(shardfeed.Stream("az://pub/*.tar", **anonymous))) == 50
    with pytest.raises(shardfeed.AuthError, match="leave az_anonymous out"):
        list(shardfeed.Stream("az://bkt1/a.tar", **anonymous))


def test_empty_blob(server: Azurite) -> None:
    with pytest.raises(shardfeed.TruncatedError, match="no bytes at all"):
        list(shardfeed.Stream("az://bkt1/empty.tar", **options(server)))


def test_archive(server: Azurite) -> None:
    archive = shardfeed.Archive("az://bkt1/i.zip", **options(server))
    expected = dict(numbered(0, 200, 500))
    wanted = ["000007.txt", "000199.cls", "000000.txt"]
    assert [bytes(data) for data in archive.read_many(wanted)] == [expected[n] for n in wanted]


def test_dataset(server: Azurite) -> None:
    data = shardfeed.Dataset(["az://bkt1/a.tar"], index="memory", **options(server))
    assert len(data) == 50
    assert bytes(data[49]["txt"]).rstrip(b".") == b"49"


def test_resumption(server: Azurite) -> None:
    given = signed(server, sas("rl"))
    stream = shardfeed.Stream("az://bkt1/a*.tar", **given)
    reader = iter(stream)
    first = [next(reader).key for _ in range(20)]
    state = stream.state_dict()
    assert "sig" not in str(state)
    again = shardfeed.Stream("az://bkt1/a*.tar", **given)
    again.load_state_dict(state)
    assert len(set(first + [sample.key for sample in again])) == 50


def test_another_version_in_the_middle(server: Azurite, tmp_path: Path) -> None:
    old = write_tar(tmp_path / "o.tar", numbered(0, 200, 100_000)).read_bytes()
    new = write_tar(tmp_path / "n.tar", numbered(200, 200, 100_000)).read_bytes()
    server.put("bkt1/changing/x.tar", old)
    more = {"range_size": "256KiB", "connections": 2, "memory": "1MiB", "threads": 1}
    reader = iter(shardfeed.Stream("az://bkt1/changing/x.tar", **options(server, **more)))
    next(reader)
    server.put("bkt1/changing/x.tar", new)
    with pytest.raises(shardfeed.ChangedError):
        list(reader)


def test_cache(server: Azurite, tmp_path: Path) -> None:
    secret = sas("r")
    for url in ("az://bkt1/a.tar", f"abfss://bkt1@{LAKE}/a.tar"):
        for network in (True, False):
            stream = shardfeed.Stream(url, **signed(server, secret, cache=tmp_path / "c"))
            assert len(list(stream)) == 50
            assert (stream.stats()["network_bytes"] > 200_000) == network
    for path in tmp_path.rglob("*"):
        assert "sig" not in str(path)
        assert path.is_dir() or b"sig=" not in path.read_bytes()


@pytest.mark.parametrize(
    ("url", "more", "kind", "code"),
    [
        ("az://bkt1/a.tar", {"az_account_key": "aHVzaA=="}, "AuthError", "AuthorizationFailure"),
        ("az://bkt1/a.tar", {"az_sas": ("r", -60)}, "AuthError", "AuthorizationFailure"),
        ("az://bkt1/a.tar", {"az_sas": ("r", 3600, 1800)}, "AuthError", "AuthorizationFailure"),
        ("az://bkt1/", {"az_sas": ("r",)}, "AuthError", "AuthorizationPermissionMismatch"),
        ("az://bkt1/a.tar", {"az_sas": ("l",)}, "AuthError", "AuthorizationPermissionMismatch"),
        ("az://bkt1/z.tar", {}, "NetPermanentError", "BlobNotFound"),
        ("az://bkt2/a.tar", {}, "NetPermanentError", "ContainerNotFound"),
        ("az://bkt2/", {}, "NetPermanentError", "ContainerNotFound"),
        ("az://bkt1", {}, "UsageError", "container and no blob"),
        ("az://bkt*/a.tar", {}, "UsageError", "no pattern"),
        (f"{WEB}/bkt1/special/k%*.tar", {}, "UsageError", "%25"),
        ("az://Bkt1/a.tar", {}, "UsageError", "name of a container"),
    ],
)
def test_refusals(server: Azurite, url: str, more: dict[str, Any], kind: str, code: str) -> None:
    # A signature is of the time of its test, which may be minutes after the collection.
    if "az_sas" in more:
        more = {"az_sas": sas(*more["az_sas"])}
    given = {"az_endpoint": server.endpoint, "retries": 0, **(more or {"az_account_key": KEY})}
    with pytest.raises(getattr(shardfeed, kind), match=code) as caught:
        list(shardfeed.Stream(url, **given))
    said = str(caught.value)
    for secret in (KEY, "aHVzaA==", "sig=", *[text[-20:] for text in more.values()]):
        assert secret not in said


def test_secrets_are_not_shown() -> None:
    secret = sas()
    for given in ({"az_account_key": KEY}, {"az_sas": secret}, {"az_connection_string": secret}):
        shown = repr(shardfeed.Stream("az://bkt1/a.tar", **given))
        assert KEY not in shown
        assert secret not in shown


def test_md5_of_blobs(server: Azurite, tmp_path: Path) -> None:
    """The service keeps that of every blob of one request, or what its writer says it is."""
    tar = write_tar(tmp_path / "a.tar", numbered(0, 100, 12_000)).read_bytes()
    server.put("bkt1/md5.tar", tar)
    stream = shardfeed.Stream("az://bkt1/md5.tar", **options(server))
    assert (len(list(stream)), stream.stats()["verified_shards"]) == (100, 1)
    stream = shardfeed.Stream("az://bkt1/md5.tar", **options(server, checksums="fast"))
    assert (len(list(stream)), stream.stats()["verified_shards"]) == (100, 0)


def put_blocks(server: Azurite, name: str, data: bytes, **more: str) -> None:
    server.put(name, data, "comp=block&blockid=AAAA&")
    body = b"<BlockList><Latest>AAAA</Latest></BlockList>"
    server.put(name, body, "comp=blocklist&", **more)


def test_md5_that_is_not_that_of_the_bytes(server: Azurite, tmp_path: Path) -> None:
    tar = write_tar(tmp_path / "a.tar", numbered(0, 100, 12_000)).read_bytes()
    wrong = hashlib.md5(tar[:-1])
    text = base64.b64encode(wrong.digest()).decode()
    put_blocks(server, "bkt1/wrong.tar", tar, x_ms_blob_content_md5=text)
    with pytest.raises(shardfeed.IntegrityError, match="whose MD5 the") as caught:
        list(shardfeed.Stream("az://bkt1/wrong.tar", **options(server)))
    for text in ("az://bkt1/wrong.tar", hashlib.md5(tar).hexdigest(), wrong.hexdigest()):
        assert text in str(caught.value)


def test_blobs_without_md5(server: Azurite, tmp_path: Path) -> None:
    tar = write_tar(tmp_path / "a.tar", numbered(0, 100, 12_000)).read_bytes()
    put_blocks(server, "bkt1/blocks.tar", tar)
    stream = shardfeed.Stream("az://bkt1/blocks.tar", **options(server))
    assert (len(list(stream)), stream.stats()["verified_shards"]) == (100, 0)
