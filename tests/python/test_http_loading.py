"""libcurl is loaded when the first URL of the network is opened, and by nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from archives import write_archive
from http_servers import ranged, stand_in

PROGRAM = """
import sys
import shardfeed

def loaded():
    with open("/proc/self/maps") as maps:
        return "libcurl" in maps.read()

try:
    for url in sys.argv[1:]:
        with shardfeed.Archive(url) as archive:
            print(len(archive), loaded())
except shardfeed.Error as error:
    print(error.code_name, error)
"""


def run(*urls: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *urls],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_files_are_read_without_it(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "t", [("a.txt", b"a")], "zip")
    with stand_in(ranged(Path(path).read_bytes())) as server:
        assert run(str(path), server.url()) == ["1 False", "1 True"]


def test_one_that_cannot_be_used(tmp_path: Path) -> None:
    library = tmp_path / "libcurl.so.4"
    subprocess.run(
        ["cc", "-shared", "-x", "c", "/dev/null", "-o", library],
        check=True,
    )
    folders = os.pathsep.join([str(tmp_path), os.environ.get("LD_LIBRARY_PATH", "")])
    (line,) = run("http://127.0.0.1/t.zip", LD_LIBRARY_PATH=folders)
    assert line.startswith("UNSUPPORTED ")
    assert "libcurl cannot be loaded: it has no function curl_easy_cleanup" in line
    assert "help: install libcurl4" in line
