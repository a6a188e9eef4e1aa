"""reshard without the Python package; tests/python/test_reshard.py has what it does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import COMMAND, SECONDS_OF_COMMAND, fails


@pytest.mark.parametrize(
    ("name", "help"),
    [("python", "pip install shardfeed"), ("nothing", "name a Python in SHARDFEED_PYTHON")],
)
def test_what_is_missing_is_named(tmp_path: Path, name: str, help: str) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nexec python3 -I -S "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        [COMMAND, "reshard", "-n", "5", tmp_path / "a.tar", f"{tmp_path}/out/"],
        env={**os.environ, "SHARDFEED_PYTHON": str(tmp_path / name)},
        capture_output=True,
        timeout=SECONDS_OF_COMMAND,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert f"help: {help}" in done.stderr.decode()


def test_wrong_command_lines() -> None:
    fails(2, "reshard", "a.tar", "out/")
    fails(2, "reshard", "-n", "5", "out/")
    fails(2, "reshard", "-n", "-5", "a.tar", "out/")
    fails(2, "reshard", "-n", "5", "--executor", "cloud", "a.tar", "out/")
    fails(2, "reshard", "-n", "5", "--shuffle=maybe", "a.tar", "out/")
