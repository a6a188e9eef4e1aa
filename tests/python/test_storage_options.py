"""storage_options: what users of fsspec and pandas write means options of the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from http_servers import ranged, stand_in


def meant(url: str | list[str], given: Any, **options: Any) -> dict[str, str]:
    recipe = shardfeed.StreamRecipe(url, storage_options=given, **options)
    return dict(recipe.options)


@pytest.mark.parametrize(
    ("url", "given", "options"),
    [
        (
            "s3://b/a.tar",
            {"key": "K", "secret": "S", "token": "T", "endpoint_url": "http://h:1"},
            {
                "s3_access_key": "K",
                "s3_secret_key": "S",
                "s3_session_token": "T",
                "s3_endpoint": "http://h:1",
            },
        ),
        ("s3://b/a.tar", {"anon": True, "default_block_size": 5}, {"s3_anonymous": "true"}),
        (
            "s3://b/a.tar",
            {
                "client_kwargs": {"region_name": "eu-1", "endpoint_url": "http://h"},
                "config_kwargs": {"s3": {"addressing_style": "virtual"}},
            },
            {"s3_region": "eu-1", "s3_endpoint": "http://h", "s3_addressing": "virtual"},
        ),
        ("gs://b/a.tar", {"token": "anon"}, {"gs_anonymous": "true"}),
        (
            "gs://b/a.tar",
            {"token": Path("/k/a.json"), "requester_pays": "p", "project": "q"},
            {"gs_credentials": "/k/a.json", "gs_user_project": "p"},
        ),
        ("gs://b/a.tar", {"token": "google_default", "requester_pays": False}, {}),
        (
            "abfss://c@acc.dfs.core.windows.net/a.tar",
            {"account_name": "acc", "sas_token": "sig=x"},
            {"az_account": "acc", "az_sas": "sig=x"},
        ),
        ("hf://datasets/o/n/a.tar", {"token": "T"}, {"hf_token": "T"}),
        ("https://h/a.tar", {"headers": {"X-A": "1"}}, {"headers": "X-A: 1"}),
        (
            ["s3://b/a.tar", "gs://b/a.tar"],
            {"s3": {"anon": True}, "gs": {"token": "anon"}},
            {"s3_anonymous": "true", "gs_anonymous": "true"},
        ),
        ("a.tar", None, {}),
    ],
)
def test_what_they_mean(url: str | list[str], given: Any, options: dict[str, str]) -> None:
    assert meant(url, given) == options


def test_options_by_their_own_names_win() -> None:
    given = {"key": "K", "secret": "S"}
    assert meant("s3://b/a.tar", given, s3_access_key="L")["s3_access_key"] == "L"
    recipe = shardfeed.StreamRecipe("s3://b/a.tar").with_options(storage_options=given)
    assert recipe.options["s3_secret_key"] == "S"
    assert "secret_key=..." in repr(recipe)


@pytest.mark.parametrize(
    ("url", "given", "said"),
    [
        ("s3://b/a.tar", {"acl": "x"}, '"acl" of s3://.*endpoint_url'),
        ("s3://b/a.tar", {"client_kwargs": {"verify": False}}, '"verify" of s3://'),
        ("gs://b/a.tar", {"token": "cloud"}, "gs_token"),
        ("gs://b/a.tar", {"requester_pays": True}, "project"),
        ("a.tar", {"anon": True}, "of one store"),
        (["s3://b/a.tar", "gs://b/a.tar"], {"anon": True}, "of one store"),
        ("memory://a.tar", {"anon": True}, "an opener with its own"),
    ],
)
def test_what_nothing_means_is_refused(url: str | list[str], given: Any, said: str) -> None:
    with pytest.raises(shardfeed.UsageError, match=said):
        meant(url, given)
    with pytest.raises(TypeError, match="a mapping"):
        meant("s3://b/a.tar", "anon")


def test_everything_that_takes_urls_takes_them(tmp_path: Path) -> None:
    data = write_tar(tmp_path / "a.tar", numbered(0, 5)).read_bytes()
    with stand_in(ranged(data)) as server:
        url = "s3://bkt/a.tar"
        given: dict[str, Any] = {
            "storage_options": {
                "key": "K",
                "secret": "S",
                "client_kwargs": {"endpoint_url": server.url("").rstrip("/")},
            }
        }
        assert len(list(shardfeed.Stream(url, **given))) == 5
        assert len(shardfeed.Dataset(url, index="memory", **given)) == 5
        assert len(shardfeed.Archive(url, **given)) == 10
        assert len(list(shardfeed.Members(url, **given))) == 10
        assert shardfeed.expand_urls(url, **given) == [url]
        assert shardfeed.plan(url, **given).consumers
        assert all("Credential=K/" in r.headers["authorization"] for r in server.requests)
