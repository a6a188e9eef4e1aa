"""The index files of shardfeed.wids and its command, beside those of wids."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import numbered, write_tar
from shardfeed.wids import wids_dl, wids_index, wids_specs
from test_wids import make_index

pytestmark = pytest.mark.filterwarnings("ignore:String specifications")


@pytest.fixture(scope="module")
def theirs():
    pytest.importorskip("torch")
    return pytest.importorskip("wids.wids")


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.delenv("WIDS_CACHE", raising=False)
    monkeypatch.chdir(tmp_path)


# ---- Index files --------------------------------------------------------------------------------


def test_urls_are_merged_as_there(theirs):
    specs = importlib.import_module("wids.wids_specs")
    bases = ["", "/a/b", "http://h/p", "http://h/p/", "s3://bucket", "rel/dir", "file:/x/y"]
    urls = ["x.tar", "../x.tar", "/abs.tar", "http://o/x.tar?q#f", "./d/./x.tar", "s3://b/x", "x?q"]
    for base in bases:
        assert wids_specs.urldir(base) == specs.urldir(base)
        for url in urls:
            assert wids_specs.urlmerge(base, url) == specs.urlmerge(base, url), (base, url)
    assert wids_specs.urlmerge("/a", "pipe:cat x") == "pipe:cat x"


def test_parts_of_an_index(theirs, tmp_path):
    specs = importlib.import_module("wids.wids_specs")
    (tmp_path / "d").mkdir()
    other = make_index(tmp_path / "d", (2,), name="other", base="/elsewhere")
    shard = {"url": "i.tar", "nsamples": 1}
    whole = {
        "wids_version": 1,
        "name": "whole",
        "weight": 2,
        "shardlist": [{"url": "t.tar", "nsamples": 4, "weight": 9}],
        "datasets": [
            {"source_url": str(other), "weight": 3},
            {"name": "inline", "base": "http://h/d", "shardlist": [shard]},
            {"shardlist": [dict(shard)]},
        ],
    }
    path = tmp_path / "w.json"
    path.write_text(json.dumps(whole))
    for options in (None, {"name": "changed", "keep": True}):
        got = [
            module.load_dsdesc_and_resolve(str(path), options=options, base="/base")
            for module in (wids_specs, specs)
        ]
        assert got[0] == got[1]
    assert got[0]["shardlist"][0]["url"] == "/base/t.tar"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ({"shardlist": []}, "No wids_version in dataset description"),
        ({"wids_version": 2}, "Unknown wids_version"),
        ({"wids_version": 1}, "No shards found"),
        ({"wids_version": 1, "shardlist": [{"url": "a"}]}, "nsamples"),
        ({"wids_version": 1, "datasets": [{"name": "x"}]}, "no shardlist in dataset description"),
    ],
)
def test_bad_indexes_are_the_same_errors(theirs, text, message):
    specs = importlib.import_module("wids.wids_specs")
    with pytest.raises(AssertionError, match=message):
        wids_specs.resolve_dsdesc(text)
    with pytest.raises(AssertionError):
        specs.resolve_dsdesc(text)
    with pytest.raises(ValueError, match=r"is no index: .*help:"):
        wids_specs.load_remote_dsdesc_raw(io.StringIO("{"))


def test_downloading_with_commands(tmp_path, monkeypatch):
    source = write_tar(tmp_path / "a.tar", numbered(0, 2))
    local = str(tmp_path / "l")
    with wids_dl.download_and_open(f"pipe:cp {source} {{local}}", local) as stream:
        assert stream.read() == source.read_bytes()
    with pytest.raises(AssertionError, match="exit 3"):
        wids_dl.download_and_open("pipe:echo part >{local}; exit 3", local + "2")
    assert not any(name.startswith("l2") for name in os.listdir(tmp_path))
    handlers = {"mine": f"cp {source} '{{local}}'", "f": lambda url, path: Path(path).touch()}
    wids_dl.download_file("mine://x", local + "3", handlers=handlers)
    assert Path(local + "3").read_bytes() == source.read_bytes()
    wids_dl.download_file("f://x", local + "4", handlers=handlers, verbose=True)
    assert [entry[0] for entry in list(wids_dl.recent_downloads)[-2:]] == ["mine://x", "f://x"]
    with pytest.raises(ValueError, match="Unknown schema: other; help:"):
        wids_dl.download_file("other://x", local)
    with pytest.raises(FileNotFoundError):
        wids_dl.download_file(str(tmp_path / "none"), local)
    wids_dl.copy_file(str(source), str(source))
    assert source.stat().st_size


# ---- The command --------------------------------------------------------------------------------


class Output(io.StringIO):
    """Standard output, with the binary one below it."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer = io.BytesIO()


def run(module: str, *arguments: str, cwd: Path | None = None, given: str = "") -> str:
    """What a command prints. In this process, since PyTorch takes seconds to import."""
    program = importlib.import_module(module)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(Output()) as output:
        patch.setattr(sys, "argv", [module, *arguments])
        patch.setattr(sys, "stdin", io.StringIO(given))
        if cwd is not None:
            patch.chdir(cwd)
        program.main()
    return output.getvalue() + output.buffer.getvalue().decode()


@pytest.fixture
def tars(tmp_path):
    make_index(tmp_path)
    (tmp_path / "index.json").unlink()
    return tmp_path


def test_create_makes_the_same_index(theirs, tars):
    for module in ("shardfeed.wids.wids_index", "wids.wids_index"):
        said = run(module, "create", "{2..0}.tar", "-o", f"{module}.json", "-n", "some", "-b", "B")
        assert said == "2.tar\n1.tar\n0.tar\n"
        names = run(module, "create", "-", "-o", f"{module}.2.json", given="1.tar\n0.tar\n")
        assert names == "setting name to \n1.tar\n0.tar\n"
        run(module, "create", "dir-a_1.tar", "-o", "x", cwd=copied(tars))
    for end in (".json", ".2.json"):
        left, right = (
            Path(f"{m}{end}").read_text() for m in ("shardfeed.wids.wids_index", "wids.wids_index")
        )
        assert left == right


def copied(folder: Path) -> Path:
    shutil.copy(folder / "0.tar", folder / "dir-a_1.tar")
    return folder


@pytest.mark.parametrize(
    "options",
    [
        ["-n", "new", "-i", "about", "-b", "/base"],
        ["-d", "http://h/d"],
        ["-D"],
        ["-B"],
        [],
    ],
)
def test_update_and_info(theirs, tars, options):
    run(
        "shardfeed.wids.wids_index",
        "create",
        str(tars / "0.tar"),
        str(tars / "1.tar"),
        "-o",
        "i.json",
    )
    made = []
    for module in ("shardfeed.wids.wids_index", "wids.wids_index"):
        (tars / module).mkdir()
        shutil.copy("i.json", tars / module / "i.json")
        run(module, "update", "i.json", *options, cwd=tars / module)
        changed = json.loads((tars / module / "i.json").read_text())
        assert (tars / module / "i.json.bak").read_text() == Path("i.json").read_text()
        # wids sets "keep" to false whenever it changes anything.
        assert changed.pop("keep", None) == (
            None if module == "shardfeed.wids.wids_index" else False
        )
        said = [run(module, "info", "i.json", *flag, cwd=tars / module) for flag in ([], ["-t"])]
        made.append((changed, said))
    assert made[0] == made[1]


def test_keep(tars):
    run("shardfeed.wids.wids_index", "create", "0.tar", "-o", "i.json")
    for flag, value in (("-k", True), ("-K", False)):
        run("shardfeed.wids.wids_index", "update", "i.json", flag)
        assert json.loads(Path("i.json").read_text())["keep"] is value


def test_sample(theirs, tars):
    run("shardfeed.wids.wids_index", "create", "{0..2}.tar", "-o", str(tars / "i.json"))
    for options in (["-r"], ["-c", ".txt"], ["-w", "40"], ["-r", "-w", "30"]):
        said = [
            run(module, "sample", str(tars / "i.json"), "7", *options)
            for module in ("shardfeed.wids.wids_index", "wids.wids_index")
        ]
        # NumPy prints the numbers of wids with their type.
        assert said[0] == said[1].replace("np.int64(2)", "2")
    made = subprocess.run(
        [sys.executable, "-m", "shardfeed.wids", "sample", "i.json", "99"], capture_output=True
    )
    assert made.returncode == 1
    assert b"widsindex sample: sample 99 of a data set with 12; help:" in made.stderr


def test_the_benchmark_program(tars):
    run("shardfeed.wids.wids_index", "create", "{0..2}.tar", "-o", str(tars / "i.json"))
    said = run("shardfeed.wids.wids_bench", "wids", str(tars / "i.json")).splitlines()
    assert said[0] == "12"
    assert said[1:] == [f"{n} {n:06d}" for n in range(12)]


def test_small_functions(theirs):
    index = importlib.import_module("wids.wids_index")
    for number in (0, 999, 1000, 1234567, 10**13):
        assert wids_index.format_with_suffix(number) == index.format_with_suffix(number)
    for name in ("a-b_1-22-b", "train-{000..099}", "/x/y.z"):
        assert wids_index.shorten_name(name) == index.shorten_name(name)
        assert wids_index.urldirbase(name) == index.urldirbase(name)
        assert wids_index.urlfile(name) == index.urlfile(name)


def test_the_newest_files_are_kept(tmp_path):
    cleanup = importlib.import_module("shardfeed.wids.wids_cleanup")
    their_cleanup = pytest.importorskip("wids.wids_cleanup")
    for keywords in ({"maxsize": 350}, {"maxfiles": 2}, {"maxsize": 300}, {"maxsize": 1}, {}):
        left = []
        for module in (cleanup, their_cleanup):
            folder = tmp_path / "f"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for number in range(6):
                (folder / f"{number}").write_bytes(bytes(100))
                os.utime(folder / f"{number}", (0, (number * 7) % 5 * 10 + number))
            module.keep_most_recent_files(str(folder / "*"), **keywords)
            left.append(sorted(os.listdir(folder)))
        assert left[0] == left[1], keywords
    lock, other = (cleanup.ExclusiveLock(str(tmp_path / "lock")) for _ in range(2))
    assert lock.try_lock()
    assert not other.try_lock()
    lock.release_lock()
    assert other.try_lock()
    other.release_lock()
