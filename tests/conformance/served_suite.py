"""Runs a runner with the suite as servers have it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))


def make_archives(folder: Path) -> None:
    """Writes the archives into the folder."""
    subprocess.run([sys.executable, HERE / "make_archives.py", folder], check=True)


def read_suite() -> dict[str, Any]:
    """What cases.json has."""
    whole: dict[str, Any] = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))
    return whole


def write_suite(folder: Path, cases: list[dict[str, Any]]) -> None:
    """Writes FOLDER/cases.json with these cases alone."""
    whole = {**read_suite(), "cases": cases}
    (folder / "cases.json").write_text(json.dumps(whole), encoding="utf-8")


def run(command: list[str], place: str, suite: Path) -> int:
    """Runs the command and gives its exit status.

    In its words {folder} stands for `place`, where the archives are, and {suite} for the folder
    with cases.json.
    """
    words = [word.replace("{folder}", place).replace("{suite}", str(suite)) for word in command]
    told = {"SHARDFEED_CONFORMANCE": str(suite), "SHARDFEED_CONFORMANCE_FOLDER": place}
    return subprocess.run(words, env={**os.environ, **told}, check=False).returncode
