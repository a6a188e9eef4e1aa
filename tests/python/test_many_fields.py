"""A line in the log about samples that dots in names have made of many."""

from __future__ import annotations

import subprocess
import sys

import shardfeed
from conftest import write_tar

PROGRAM = """
import sys, shardfeed
heard = []
for path in sys.argv[1:]:
    stream = shardfeed.Stream(path, log=lambda level, message: heard.append(message))
    print(sum(len(sample) for sample in stream))
print(*heard, sep="\\n")
"""


def lines(*paths: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *paths], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_it_is_said_once(tmp_path):
    dotted = [(f"cam.{n:03}.jpg", b"x") for n in range(70)]
    path = str(write_tar(tmp_path / "dots.tar", [("a.txt", b"1"), *dotted, ("d.txt", b"1")]))
    counts, said = lines(path, path)[:2], lines(path, path)[2:]
    assert counts == ["72", "72"]
    (line,) = said
    assert line.startswith(f'{path}: the sample "cam" has 70 fields, "000.jpg" among them')
    assert "first dot" in line
    assert "help: " in line


def test_sixty_four_fields_are_no_mistake(tmp_path):
    fields = [(f"a.{n:03}", b"x") for n in range(64)]
    path = str(write_tar(tmp_path / "t.tar", fields))
    assert lines(path) == ["64", ""]
    assert len(next(iter(shardfeed.Stream(path)))) == 64
