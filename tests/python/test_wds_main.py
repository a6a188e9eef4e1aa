"""python -m shardfeed.wds PROGRAM: what a program imports as webdataset is shardfeed.wds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, os, sys
import webdataset as wds
from webdataset.tariterators import url_opener
here = sys.modules["__main__"].__dict__ is globals()
print(json.dumps([wds.__name__, url_opener.__module__, __name__, here, sys.argv[1:], sys.path[0]]))
print(os.path.basename(sys.argv[0]), file=sys.stderr)
sys.exit(int(sys.argv[-1]))
"""
EXPECTED = ["shardfeed.wds", "shardfeed.wds.tariterators", "__main__", True]


def started(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shardfeed.wds", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    package = tmp_path / "trainer"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "main.py").write_text(PROGRAM)
    (package / "__main__.py").write_text(PROGRAM)
    (package / "broken.py").write_text("import trainer.part_that_is_not_there")
    return tmp_path


@pytest.mark.parametrize("module", ["trainer.main", "trainer"])
def test_a_module_runs_as_the_program(programs: Path, module: str) -> None:
    done = started(programs, module, "--workers", "2", "0")
    assert done.returncode == 0, done.stderr
    words = ["--workers", "2", "0"]
    assert json.loads(done.stdout) == [*EXPECTED, words, str(programs.resolve())]
    assert done.stderr.strip() == ("main.py" if module == "trainer.main" else "__main__.py")
    assert started(programs, module, "3").returncode == 3


def test_a_file_runs_as_the_program(programs: Path) -> None:
    done = started(programs, "trainer/main.py", "-h", "4")
    assert done.returncode == 4
    folder = str((programs / "trainer").resolve())
    assert json.loads(done.stdout) == [*EXPECTED, ["-h", "4"], folder]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="python -P is of Python 3.11")
def test_no_folder_of_the_program_where_python_is_told_so(programs: Path) -> None:
    command = [sys.executable, "-P", "-m", "shardfeed.wds", str(programs / "trainer/main.py"), "0"]
    done = subprocess.run(command, cwd=programs, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *found, first = json.loads(done.stdout)
    assert found == [*EXPECTED, ["0"]]
    assert str(programs.resolve()) not in first
    assert first.endswith(".zip")  # the first one of Python's own


@pytest.mark.parametrize("program", ["tool", "tool.py"])
def test_processes_that_it_spawns(tmp_path: Path, program: str) -> None:
    (tmp_path / "tool.py").write_text("""
import multiprocessing
import webdataset
def name(number):
    return webdataset.__name__
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(name, [1]))
""")
    done = started(tmp_path, program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['shardfeed.wds']"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no program was given"),
        (["--workers", "2"], "unknown option --workers; help: options of the program come after"),
        (["nothing_of_this_name"], "there is no module nothing_of_this_name; help: a file has"),
        (["trainer.nothing"], "there is no module trainer.nothing"),
        (["trainer/nothing.py"], "there is no file trainer/nothing.py"),
    ],
)
def test_what_is_no_program(programs: Path, words: list[str], said: str) -> None:
    done = started(programs, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.splitlines()[-1].startswith("usage: python -m shardfeed.wds ")
    assert "Traceback" not in done.stderr


def test_what_a_program_misses_is_said_as_without_it(programs: Path) -> None:
    done = started(programs, "trainer.broken")
    assert done.returncode == 1
    assert "No module named 'trainer.part_that_is_not_there'" in done.stderr


def test_help(programs: Path) -> None:
    done = started(programs, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: python -m shardfeed.wds MODULE_OR_FILE.py")
