"""Shards in a bucket of a real versitygw: what is read is what a local file would give."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from http_servers import free_port

CACHED = Path.home() / ".cache/shardfeed/tests/versitygw"
SPECIAL = "k=1+ b%&'(!)*~é.tar"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """With s3://bkt1/a.tar and one of a special name, of 50 samples each; files on its disk."""
    program = str(CACHED) if CACHED.exists() else shutil.which("versitygw")
    if program is None:
        pytest.skip("versitygw is not there: scripts/install_versitygw.sh builds it")
    folder = tmp_path_factory.mktemp("s3")
    for name in ("root", "iam", "root/bkt1"):
        (folder / name).mkdir()
    for name in ("a.tar", SPECIAL):
        write_tar(folder / "root/bkt1" / name, numbered(0, 50, 3000))
    url = f"http://127.0.0.1:{free_port()}"
    environment = {**os.environ, "ROOT_ACCESS_KEY": "testkey", "ROOT_SECRET_KEY": "testsecret"}
    words = [program, "--port", url[7:], "--region", "us-east-1", "--keep-alive", "--quiet"]
    words += ["--health", "/healthz", "--iam-dir", str(folder / "iam")]
    process = subprocess.Popen([*words, "posix", str(folder / "root")], env=environment)
    for _ in range(100):
        try:
            urllib.request.urlopen(url + "/healthz", timeout=1).close()
            break
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    yield url
    process.terminate()
    process.wait()


def options(server: str, **more: Any) -> dict[str, Any]:
    keys = {"s3_access_key": "testkey", "s3_secret_key": "testsecret"}
    return {"s3_endpoint": server, "retries": 0, **keys, **more}


@pytest.mark.parametrize("key", ["a.tar", SPECIAL])
def test_stream(server: str, key: str) -> None:
    stream = shardfeed.Stream(f"s3://bkt1/{key}", expand=False, **options(server))
    assert len(list(stream)) == 50


def test_list(server: str) -> None:
    assert len(list(shardfeed.Stream("s3://bkt1/", **options(server)))) == 100


def test_wrong_region_is_corrected(server: str) -> None:
    stream = shardfeed.Stream("s3://bkt1/a.tar", **options(server, s3_region="eu-west-1"))
    assert len(list(stream)) == 50


@pytest.mark.parametrize(
    ("url", "more", "code"),
    [
        ("s3://bkt1/a.tar", {"s3_secret_key": "hush"}, "SignatureDoesNotMatch"),
        ("s3://bkt1/a.tar", {"s3_access_key": "nobody"}, "InvalidAccessKeyId"),
        ("s3://bkt1/z.tar", {}, "NoSuchKey"),
        ("s3://bkt2/a.tar", {}, "NoSuchBucket"),
    ],
)
def test_refusals(server: str, url: str, more: dict[str, Any], code: str) -> None:
    with pytest.raises(shardfeed.Error, match=code) as caught:
        list(shardfeed.Stream(url, **options(server, **more)))
    assert "hush" not in str(caught.value)
    assert "testsecret" not in str(caught.value)


def test_keys_are_not_shown() -> None:
    assert "testsecret" not in repr(shardfeed.Stream("s3://bkt1/a.tar", **options("http://h")))
