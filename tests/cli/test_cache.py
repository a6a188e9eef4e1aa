"""cache on folders; tests/python/test_cache.py fills one from a server."""

import os
from pathlib import Path

import pytest
from conftest import fails, run


def test_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHARDFEED_CACHE", raising=False)
    assert "SHARDFEED_CACHE" in fails(2, "cache", "ls")


def test_a_folder_without_a_cache(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o700)
    done = run("cache", "ls", "--dir", tmp_path)
    assert done.returncode == 1
    assert f"there is no cache in {tmp_path}".encode() in done.stderr


@pytest.mark.parametrize("age", ["5", "d", "-1d", "1y", "1.5h", "1" * 20 + "d"])
def test_ages(tmp_path: Path, age: str) -> None:
    assert "is no age" in fails(2, "cache", "ls", "--dir", tmp_path, f"--older-than={age}")


def test_other_actions(tmp_path: Path) -> None:
    assert "shrink" in fails(2, "cache", "shrink", "--dir", tmp_path)
