"""Where requests may go, and which of several addresses answers: in a network of its own, so that
servers here have addresses of the internet."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from addressed_servers import OTHER, PRIVATE, SAMPLES

OWN = ["unshare", "-rnm"]


def check(name: str) -> dict[str, Any]:
    try:
        subprocess.run([*OWN, "ip", "link", "set", "lo", "up"], check=True, capture_output=True)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a process may not have a network of its own here: {error}")
    program = Path(__file__).with_name("addressed_servers.py")
    run = subprocess.run(
        [*OWN, sys.executable, program, name], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def refused(said: Any) -> bool:
    """And the server there was asked for nothing."""
    (result, requests) = said
    assert str(result).startswith("NET_PERMANENT: http://8.8.8.8:"), said
    assert "an address of this machine or a private network" in result
    assert "allow_private" in result
    return requests == 0


def test_redirects_from_public_to_private_addresses() -> None:
    found = check("redirects")
    for place in PRIVATE:
        assert refused(found[place]["refused"]), place
        assert refused(found[place]["twice"]), place
        assert found[place]["allowed"] == SAMPLES
        assert found[place]["from inside"] == SAMPLES
    assert refused(found["name"]["refused"])
    assert refused(found["later"]["refused"])
    assert found[OTHER]["refused"] == [SAMPLES, 2]
    assert found[OTHER]["twice"] == [SAMPLES, 2]


def test_one_family_of_addresses_is_dead() -> None:
    found = check("families")
    assert found["refused"] == found["refused, the other one"] == found["silent"] == SAMPLES
    assert found["silent, seconds"] < 5


def test_a_name_that_nobody_knows() -> None:
    found = check("names")
    assert found["said"].startswith("NET_TRANSIENT: http://nobody.test/t.tar: Could not resolve")
    assert "2 requests failed" in found["said"]
    assert found["seconds"] < 20
