"""The conformance suite, which the other languages run too: tests/conformance/README.md."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).resolve().parent.parent / "conformance"
runner = runpy.run_path(str(SUITE / "run_conformance.py"))
CASES = runner["read_cases"](SUITE / "cases.json")


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    folder = tmp_path_factory.mktemp("conformance")
    subprocess.run([sys.executable, SUITE / "make_archives.py", folder], check=True)
    return folder


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case, archives):
    assert runner["difference"](case, archives) is None


def test_unknown_kind(archives):
    """A case of a kind that this runner does not know must not pass."""
    with pytest.raises(KeyError):
        runner["difference"]({**CASES[0], "kind": "no such kind"}, archives)


def test_difference_is_found(archives):
    expect = {**CASES[0]["expect"], "digest": "0" * 16}
    assert "0000000000000000" in runner["difference"]({**CASES[0], "expect": expect}, archives)
