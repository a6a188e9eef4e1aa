"""The conformance suite, which the other languages run too: tests/conformance/README.md."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import shardfeed

SUITE = Path(__file__).resolve().parent.parent / "conformance"
runner = runpy.run_path(str(SUITE / "run_conformance.py"))
HTTP = runpy.run_path(str(SUITE / "over_http.py"))
FEED = runpy.run_path(str(SUITE / "over_feed.py"))
CASES = runner["read_cases"](SUITE / "cases.json")


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    folder = tmp_path_factory.mktemp("conformance")
    subprocess.run([sys.executable, SUITE / "make_archives.py", folder], check=True)
    return folder


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case, archives):
    assert runner["difference"](case, archives) is None


@pytest.fixture(scope="module")
def over_http(tmp_path_factory):
    server, url = HTTP["start"](tmp_path_factory.mktemp("http"))
    yield url, {case["name"] for case in runner["read_cases"](server.root.parent / "cases.json")}
    server.stop()


@pytest.mark.parametrize("kind", sorted({case["kind"] for case in CASES}))
def test_cases_over_http(kind, over_http):
    url, names = over_http
    assert len(names) > 350
    cases = [case for case in CASES if case["kind"] == kind and case["name"] in names]
    assert [text for case in cases if (text := runner["difference"](case, url))] == []


@pytest.mark.skipif(shardfeed.features()["feed"] is None, reason="this build has no feed")
@pytest.mark.parametrize("kind", FEED["KINDS"])
def test_cases_through_feeds(kind, tmp_path):
    with FEED["started"](tmp_path, [kind]) as archives:
        cases = runner["read_cases"](tmp_path / "cases.json")
        assert [text for case in cases if (text := runner["difference"](case, archives))] == []
        assert len(cases) > 3


def test_unknown_kind(archives):
    """A case of a kind that this runner does not know must not pass."""
    with pytest.raises(KeyError):
        runner["difference"]({**CASES[0], "kind": "no such kind"}, archives)


def test_difference_is_found(archives):
    expect = {**CASES[0]["expect"], "digest": "0" * 16}
    assert "0000000000000000" in runner["difference"]({**CASES[0], "expect": expect}, archives)
