"""The types that users see. Needs mypy; skipped without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import shardfeed

pytest.importorskip("mypy")
pytestmark = pytest.mark.slow

FOLDER = Path(shardfeed.__file__).parent.parent
# mypy finds an installed package by itself and refuses to be told where; one in a folder of its
# own it does not find.
INSTALLED = FOLDER.name == "site-packages"
ENVIRONMENT = dict(os.environ) if INSTALLED else {**os.environ, "MYPYPATH": str(FOLDER)}

GOOD = """
import shardfeed
from pathlib import Path

def train(urls: list[Path]) -> int:
    with shardfeed.Stream(urls, shuffle=1000, on_error="skip_shard", timeout="30s") as stream:
        for sample in stream:
            view: memoryview = sample["jpg"]
            maybe: memoryview | None = sample.get("cls")
            names: list[str] = list(sample)
            copied: dict[str, bytes] = sample.to_dict()
    counters: dict[str, int] = stream.stats()
    return counters["samples"]
"""
BAD = {
    'shardfeed.Stream("x.tar", shufle=1)': "Unexpected keyword",
    'shardfeed.Stream("x.tar", on_error="ignore")': "incompatible type",
    "shardfeed.Stream(5)": "incompatible type",
    'next(iter(shardfeed.Stream("x.tar")))["jpg"] = b""': "Unsupported target",
}


def run(tmp_path: Path, *arguments: str) -> str:
    """What mypy says about a program that uses the package."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def test_package_and_good_program(tmp_path):
    (tmp_path / "good.py").write_text(GOOD)
    assert "Success" in run(tmp_path, "mypy", "--strict", "-p", "shardfeed")
    assert "Success" in run(tmp_path, "mypy", "--strict", "good.py")


@pytest.mark.parametrize("statement", BAD)
def test_bad_program(tmp_path, statement):
    (tmp_path / "bad.py").write_text(f"import shardfeed\n{statement}\n")
    assert BAD[statement] in run(tmp_path, "mypy", "--strict", "bad.py")


def test_stub_of_the_extension_module(tmp_path):
    assert "Success" in run(tmp_path, "mypy.stubtest", "shardfeed._native")
