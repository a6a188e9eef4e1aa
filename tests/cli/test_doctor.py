"""doctor: versions, limits, and credentials that are never shown."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import COMMAND, fails, numbered, output, run

STORES = ["s3", "gs", "az", "hf", "ais"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder HOME without credentials."""
    for name in os.environ:
        if name.startswith(("AWS_", "AZURE_", "HF_", "AIS_", "GOOGLE_", "CLOUDSDK_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def facts(*words: object) -> Any:
    return json.loads(output("doctor", "--json", *words))


def test_versions_features_and_limits() -> None:
    said = facts()
    assert output("--version").decode() == f"shardfeed {said['version']}\n"
    assert said["features"]["gzip"]
    assert set(said["features"]) >= {"zstd", "http", "libarchive", "pipe", "feed", "feed_http"}
    machine = said["machine"]
    assert machine["usable_cores"] == len(os.sched_getaffinity(0))
    assert machine["memory"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < machine["free_memory"] <= machine["memory"]
    assert machine["open_files"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_credentials_are_found_and_not_shown(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert facts()["credentials"] == {store: [] for store in STORES}
    assert "aws configure" in output("doctor").decode()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "not-to-be-shown")
    monkeypatch.setenv("HF_TOKEN", "not-to-be-shown")
    monkeypatch.setenv("https_proxy", "http://user:not-to-be-shown@host")
    monkeypatch.setenv("WDS_BUCKET", "not-to-be-shown")
    files = [".aws/credentials", ".config/gcloud/application_default_credentials.json"]
    files += [".cache/huggingface/token", ".config/ais/cli/auth.token"]
    for file in files:
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text("not-to-be-shown")
    said = facts()
    assert said["credentials"] == {
        "s3": ["AWS_ACCESS_KEY_ID", f"{home}/{files[0]}"],
        "gs": [f"{home}/{files[1]}"],
        "az": [],
        "hf": ["HF_TOKEN", f"{home}/{files[2]}"],
        "ais": [f"{home}/{files[3]}"],
    }
    assert said["environment"]["https_proxy"] is True
    assert said["environment"]["WDS_BUCKET"] is True
    for shown in (json.dumps(said), output("doctor").decode()):
        assert "not-to-be-shown" not in shown


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-1")
    assert facts()["environment"]["AWS_REGION"] == "eu-1"
    assert "  AWS_REGION              eu-1\n" in output("doctor").decode()


def test_few_open_files() -> None:
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 100; exec "$0" doctor', COMMAND], capture_output=True, check=True
    )
    assert b"may open 100 files; help: ulimit -n 100" in done.stderr


def test_shards_are_opened(shard: Callable[..., Path], tmp_path: Path) -> None:
    path = shard("a.tar", numbered(7, 3))
    opened = facts(path)["opened"]
    assert opened["seconds"] > 0
    del opened["seconds"]
    assert opened == {"shards": 1, "error": None, "key": "0007", "fields": 2, "bytes": 8}
    assert "the first sample is 0007" in output("doctor", path).decode()
    assert "nowhere.tar" in fails(1, "doctor", tmp_path / "nowhere.tar")
    done = run("doctor", "--json", tmp_path / "nowhere.tar")
    assert done.returncode == 1
    assert "nowhere.tar" in json.loads(done.stdout)["opened"]["error"]
