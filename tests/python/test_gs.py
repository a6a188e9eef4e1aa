"""Shards in a bucket of a real fake-gcs-server: what is read is what a local file would give."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from gs_servers import fake_gcs_server, make_bucket, put

# Keys of shards of two samples each.
SPECIAL = [
    "k=1+ b%&?#:~'()!*.tar",
    "k%20%2E%2F.tar",
    "k é日本.tar",
    "k\ttab.tar",
    'k"<&>".tar',
    "k//a.tar",
]


def fill(folder: Path, server: str) -> None:
    """bkt1: shards and an archive; many: 2,200 keys."""
    tar = write_tar(folder / "a.tar", numbered(0, 50, 3000)).read_bytes()
    with zipfile.ZipFile(folder / "i.zip", "w") as file:
        for name, data in numbered(0, 200, 500):
            file.writestr(name, data)
    make_bucket(server, "bkt1")
    put(server, "bkt1", "a.tar", tar)
    large = write_tar(folder / "l.tar", numbered(0, 50, 30_000)).read_bytes()
    put(server, "bkt1", "large.tar", large)
    put(server, "bkt1", "b.tar", gzip.compress(tar), encoding="gzip")
    put(server, "bkt1", "i.zip", (folder / "i.zip").read_bytes())
    small = write_tar(folder / "s.tar", numbered(0, 2)).read_bytes()
    for key in SPECIAL:
        put(server, "bkt1", f"special/{key}", small)
    put(server, "many", "x/z-last.tar", small)
    put(server, "many", "xlast.tar", small)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("gs")
    (folder / "data/many/x").mkdir(parents=True)
    for number in range(2199):
        (folder / f"data/many/x/{number:04}").touch()
    try:
        with fake_gcs_server(folder) as server:
            fill(folder, server)
            yield server
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def emulator(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment says where it is, as for the libraries of Google."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server)


def stream(url: str, **options: Any) -> shardfeed.Stream:
    return shardfeed.Stream(url, **{"retries": 0, **options})


def test_stream(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [str(number).encode() for number in range(50)]
    for host in (server, server.removeprefix("http://")):
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", host)
        samples = list(stream("gs://bkt1/a.tar"))
        assert [bytes(sample["txt"]).rstrip(b".") for sample in samples] == expected
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    assert len(list(stream("gs://bkt1/a.tar", gs_endpoint=server, gs_anonymous=True))) == 50


def test_ranges() -> None:
    reader = stream("gs://bkt1/large.tar", range_size="256KiB", connections=4)
    assert len(list(reader)) == 50
    assert reader.stats()["requests"] >= 3


@pytest.mark.parametrize("key", SPECIAL)
def test_special_keys(key: str) -> None:
    assert len(list(shardfeed.Stream([f"gs://bkt1/special/{key}"], expand=False))) == 2


def test_lists() -> None:
    assert len(list(stream("gs://bkt1/special/"))) == 2 * len(SPECIAL)
    assert len(list(stream("gs://bkt1/special/k%*.tar"))) == 2
    assert len(list(stream("gs://many/x*last.tar"))) == 2
    assert len(list(stream("gs://many/"))) == 4  # of three pages
    with pytest.raises(shardfeed.LimitError, match="max_shards"):
        list(stream("gs://many/", max_shards=2000))


def test_objects_that_are_stored_compressed_come_as_they_are() -> None:
    reader = stream("gs://bkt1/b.tar")
    assert len(list(reader)) == 50
    assert reader.stats()["network_bytes"] < 100_000


def test_archive() -> None:
    archive = shardfeed.Archive("gs://bkt1/i.zip")
    expected = dict(numbered(0, 200, 500))
    wanted = ["000007.txt", "000199.cls", "000000.txt"]
    assert [bytes(data) for data in archive.read_many(wanted)] == [expected[n] for n in wanted]


def test_dataset() -> None:
    data = shardfeed.Dataset(["gs://bkt1/a.tar"], index="memory")
    assert len(data) == 50
    assert bytes(data[49]["txt"]).rstrip(b".") == b"49"


def test_resumption_and_cache(tmp_path: Path) -> None:
    begun = stream("gs://bkt1/a.tar", cache=tmp_path)
    reader = iter(begun)
    first = [next(reader).key for _ in range(20)]
    again = stream("gs://bkt1/a.tar")
    again.load_state_dict(begun.state_dict())
    assert len(set(first + [sample.key for sample in again])) == 50
    assert len(list(stream("gs://bkt1/a.tar", cache=tmp_path))) == 50
    cached = stream("gs://bkt1/a.tar", cache=tmp_path)
    assert len(list(cached)) == 50
    assert cached.stats()["network_bytes"] < 70_000


def test_an_object_that_is_replaced_with_the_same_bytes(server: str, tmp_path: Path) -> None:
    """The tag stays, the generation does not: in the middle, and before a saved state goes on."""
    with zipfile.ZipFile(tmp_path / "r.zip", "w") as file:
        for name, data in numbered(0, 100, 10_000):
            file.writestr(name, data)
    put(server, "bkt1", "r.zip", (tmp_path / "r.zip").read_bytes())
    archive = shardfeed.Archive("gs://bkt1/r.zip")
    assert archive["000099.cls"].read() == b"9"
    put(server, "bkt1", "r.zip", (tmp_path / "r.zip").read_bytes())
    with pytest.raises(shardfeed.ChangedError, match="another version"):
        archive["000050.txt"].read()
    tar = write_tar(tmp_path / "r.tar", numbered(0, 50, 300_000)).read_bytes()
    put(server, "bkt1", "r.tar", tar)
    begun = stream("gs://bkt1/r.tar")
    reader = iter(begun)
    for _ in range(5):
        next(reader)
    put(server, "bkt1", "r.tar", tar)
    again = stream("gs://bkt1/r.tar")
    again.load_state_dict(begun.state_dict())
    with pytest.raises(shardfeed.ChangedError):
        list(again)


@pytest.mark.parametrize(
    ("url", "kind", "said"),
    [
        ("gs://bkt1/z.tar", "NetPermanentError", "404"),
        ("gs://bkt2/a.tar", "NetPermanentError", "404"),
        ("gs://bkt2/", "NetPermanentError", "404"),
        ("gs://bkt1", "UsageError", "bucket and no object"),
        ("gs://a@b/c.tar", "UsageError", "not a bucket name"),
    ],
)
def test_refusals(url: str, kind: str, said: str) -> None:
    with pytest.raises(getattr(shardfeed, kind), match=said):
        list(stream(url))
