"""Shards in a bucket of a real versitygw: what is read is what a local file would give."""

from __future__ import annotations

import json
import time
import urllib.parse
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from aws_servers import presigned, put, versitygw
from conftest import numbered, write_tar

# Keys of shards of two samples each.
SPECIAL = [
    "k=1+ b%&?#:~'()!*.tar",
    "k%20%2E%2F.tar",
    "k é日本.tar",
    "k\n\ttwo lines.tar",
    'k"<&>".tar',
]
ALLOWED = [("s3:GetObject", "pub/*"), ("s3:ListBucket", "pub")]
PUBLIC = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": "*",
            "Action": [action],
            "Resource": [f"arn:aws:s3:::{what}"],
        }
        for action, what in ALLOWED
    ],
}


def fill(folder: Path, url: str) -> None:
    """bkt1: shards and an archive; pub: for everybody; many: 2,500 keys."""
    tar = write_tar(folder / "a.tar", numbered(0, 50, 3000)).read_bytes()
    with zipfile.ZipFile(folder / "i.zip", "w") as file:
        for name, data in numbered(0, 200, 500):
            file.writestr(name, data)
    for bucket in ("bkt1", "pub", "many"):
        put(f"{url}/{bucket}")
    put(f"{url}/pub?policy=", json.dumps(PUBLIC).encode())
    put(f"{url}/pub/a.tar", tar)
    put(f"{url}/bkt1/a.tar", tar)
    put(f"{url}/bkt1/i.zip", (folder / "i.zip").read_bytes())
    small = write_tar(folder / "s.tar", numbered(0, 2)).read_bytes()
    for key in SPECIAL:
        put(f"{url}/bkt1/special/{urllib.parse.quote(key, safe='~')}", small)
    for number in range(2499):
        (folder / f"root/many/x{number:04}").touch()
    put(f"{url}/many/x-last.tar", small)
    put(f"{url}/many/xlast.tar", small)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("s3")
    with versitygw(folder) as url:
        fill(folder, url)
        yield url


def options(server: str, **more: Any) -> dict[str, Any]:
    keys = {"s3_access_key": "testkey", "s3_secret_key": "testsecret"}
    return {"s3_endpoint": server, "retries": 0, **keys, **more}


def test_stream(server: str) -> None:
    samples = list(shardfeed.Stream("s3://bkt1/a.tar", **options(server)))
    assert [bytes(sample["txt"]).rstrip(b".") for sample in samples] == [
        str(number).encode() for number in range(50)
    ]


@pytest.mark.parametrize("key", SPECIAL)
def test_special_keys(server: str, key: str) -> None:
    url = f"s3://bkt1/special/{key}"
    assert len(list(shardfeed.Stream([url], expand=False, **options(server)))) == 2


def test_list_of_special_keys(server: str) -> None:
    stream = shardfeed.Stream("s3://bkt1/special/", **options(server))
    assert len(list(stream)) == 2 * len(SPECIAL)
    assert len(list(shardfeed.Stream("s3://bkt1/special/k%*.tar", **options(server)))) == 2


def test_list_of_many_keys(server: str) -> None:
    assert len(list(shardfeed.Stream("s3://many/x*last.tar", **options(server)))) == 4


def test_anonymous(server: str) -> None:
    anonymous = {"s3_endpoint": server, "s3_anonymous": True, "retries": 0}
    assert len(list(shardfeed.Stream("s3://pub/a.tar", **anonymous))) == 50
    assert len(list(shardfeed.Stream("s3://pub/*.tar", **anonymous))) == 50
    with pytest.raises(shardfeed.AuthError, match="leave s3_anonymous out"):
        list(shardfeed.Stream("s3://bkt1/a.tar", **anonymous))


def test_bucket_in_front_of_the_host(server: str) -> None:
    host = server.replace("127.0.0.1", "s3.localhost")
    more = {"s3_addressing": "virtual", "allow_private": True}
    assert len(list(shardfeed.Stream("s3://bkt1/a.tar", **options(host, **more)))) == 50
    assert len(list(shardfeed.Stream("s3://bkt1/a*.tar", **options(host, **more)))) == 50


def test_archive(server: str) -> None:
    archive = shardfeed.Archive("s3://bkt1/i.zip", **options(server))
    expected = dict(numbered(0, 200, 500))
    wanted = ["000007.txt", "000199.cls", "000000.txt"]
    assert [bytes(data) for data in archive.read_many(wanted)] == [expected[n] for n in wanted]


def test_dataset(server: str) -> None:
    data = shardfeed.Dataset(["s3://bkt1/a.tar"], index="memory", **options(server))
    assert len(data) == 50
    assert bytes(data[49]["txt"]).rstrip(b".") == b"49"


def test_resumption(server: str) -> None:
    stream = shardfeed.Stream("s3://bkt1/a.tar", **options(server))
    reader = iter(stream)
    first = [next(reader).key for _ in range(20)]
    state = stream.state_dict()
    assert "testsecret" not in str(state)
    again = shardfeed.Stream("s3://bkt1/a.tar", **options(server))
    again.load_state_dict(state)
    assert len(set(first + [sample.key for sample in again])) == 50


def test_cache(server: str, tmp_path: Path) -> None:
    for network in (True, False):
        stream = shardfeed.Stream("s3://bkt1/a.tar", **options(server, cache=tmp_path / "c"))
        assert len(list(stream)) == 50
        assert (stream.stats()["network_bytes"] > 200_000) == network
    assert all("testsecret" not in str(path) for path in tmp_path.rglob("*"))


def test_wrong_region_is_corrected(server: str) -> None:
    stream = shardfeed.Stream("s3://bkt1/a.tar", **options(server, s3_region="eu-west-1"))
    assert len(list(stream)) == 50


@pytest.mark.parametrize(
    ("url", "more", "kind", "code"),
    [
        ("s3://bkt1/a.tar", {"s3_secret_key": "hush"}, "AuthError", "SignatureDoesNotMatch"),
        ("s3://bkt1/a.tar", {"s3_access_key": "nobody"}, "AuthError", "InvalidAccessKeyId"),
        ("s3://bkt1/a.tar", {"s3_session_token": "hush"}, "AuthError", "InvalidToken"),
        ("s3://bkt1/z.tar", {}, "NetPermanentError", "NoSuchKey"),
        ("s3://bkt2/a.tar", {}, "NetPermanentError", "NoSuchBucket"),
        ("s3://bkt2/", {}, "NetPermanentError", "NoSuchBucket"),
        ("s3://bkt1", {}, "UsageError", "bucket and no object"),
    ],
)
def test_refusals(server: str, url: str, more: dict[str, Any], kind: str, code: str) -> None:
    with pytest.raises(getattr(shardfeed, kind), match=code) as caught:
        list(shardfeed.Stream(url, **options(server, **more)))
    assert "hush" not in str(caught.value)
    assert "testsecret" not in str(caught.value)


def test_keys_are_not_shown() -> None:
    assert "testsecret" not in repr(shardfeed.Stream("s3://bkt1/a.tar", **options("http://h")))


def test_a_signed_url_expires(server: str, tmp_path: Path) -> None:
    """While an archive is open: it is not asked again, and nobody sees the signature."""
    url = presigned(f"{server}/bkt1/i.zip", 2)
    expires = time.monotonic() + 2
    archive = shardfeed.Archive(url, retries=5, cache=tmp_path)
    names = [member.name for member in archive]
    assert len(names) == 400
    assert bytes(archive[names[0]].read()).startswith(b"0.")
    assert len(list(shardfeed.Stream(url, cache=tmp_path))) == 200  # from blocks and the server
    direct = shardfeed.Archive(url, retries=5)
    while time.monotonic() < expires + 1.1:  # the server counts whole seconds
        time.sleep(0.05)
    begun = time.monotonic()
    for kind in (lambda: direct.read_many(names), lambda: list(shardfeed.Stream(url, retries=5))):
        with pytest.raises(shardfeed.AuthError, match="403") as caught:
            kind()
        said = str(caught.value)
        assert f"{server}/bkt1/i.zip" in said
        assert "X-Amz" not in said
        assert url[-30:] not in said
    assert time.monotonic() - begun < 2
    # Signed again it is the same object for the cache, whose names have no part of it.
    again = presigned(f"{server}/bkt1/i.zip", 100)
    stream = shardfeed.Stream(again, cache=tmp_path)
    assert len(list(stream)) == 200
    assert stream.stats()["network_bytes"] < 10_000
    assert stream.stats()["cache_bytes"] > 100_000
    assert all("Amz" not in str(path) for path in tmp_path.rglob("*"))
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"X-Amz" not in stored


def _number(sample: shardfeed.Sample) -> int:
    return int(bytes(sample["txt"]).strip(b"."))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize(("method", "workers"), [("fork", 2), ("forkserver", 1), ("spawn", 1)])
def test_data_loader_workers(
    server: str, torch: Any, datasets: Any, method: str, workers: int
) -> None:
    """Which have the options, and with fork what the process has read before."""
    from torch.utils.data import DataLoader

    more: Any = {"num_workers": workers, "multiprocessing_context": method, "timeout": 60}
    url = ["s3://bkt1/a.tar", "s3://pub/a.tar"]
    stream = datasets.Stream(url, transform=_number, rank=0, world_size=1, **options(server))
    wanted = sorted(2 * list(range(50)))
    assert sorted(DataLoader(stream, batch_size=None, **more)) == wanted
    if method == "fork":
        data = datasets.Dataset(url, _number, index="memory", **options(server))
        assert data[3] == 3
        assert sorted(DataLoader(data, batch_size=None, **more)) == wanted
