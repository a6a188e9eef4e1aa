"""~/ is the folder of the user, wherever an archive is opened or written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import write_tar
from shardfeed._native import ffi, lib

OPENERS = [shardfeed.Archive, shardfeed.Members, shardfeed.Dataset, shardfeed.Stream]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a name that looks like patterns, and another one to work in."""
    folder = tmp_path / "a user {1,2}* %d"
    folder.mkdir()
    (tmp_path / "work/~").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(tmp_path / "work")
    return folder


@pytest.mark.parametrize("opener", OPENERS)
def test_what_is_opened(home: Path, opener: Any) -> None:
    path = write_tar(home / "a.tar", [("a.txt", b"of the user")])
    write_tar(Path("~/a.tar"), [("a.txt", b"of a folder")])
    for url, data in (("~/a.tar", b"of the user"), ("./~/a.tar", b"of a folder")):
        with opener(url) as opened:
            first = next(iter(opened))
            assert bytes(first["txt"] if hasattr(first, "key") else first.read()) == data
    path.write_bytes(path.read_bytes()[:700])
    with pytest.raises(shardfeed.TruncatedError) as caught, opener("~/a.tar") as opened:
        list(opened)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("pattern", ["~/out-%03d.tar", lambda number: f"~/out-{number:03d}.tar"])
def test_what_is_written(home: Path, pattern: Any) -> None:
    with shardfeed.Writer(pattern) as writer:
        writer.write({"__key__": "a", "txt": b"text"})
    assert [path.name for path in home.iterdir()] == ["out-000.tar"]
    assert not list(Path("~").iterdir())
    with shardfeed.Stream("~/out-{000..000}.tar") as stream:
        assert [bytes(sample["txt"]) for sample in stream] == [b"text"]


@pytest.mark.parametrize("opener", [*OPENERS, shardfeed.Writer])
def test_there_is_no_such_folder(opener: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    with pytest.raises(shardfeed.UsageError, match=r"HOME is not set.*~/a\.tar.*the whole path"):
        opener("~/a.tar").close()


def test_indexes(home: Path) -> None:
    write_tar(home / "a.tar", [("a.txt", b"of the user")])
    options = ffi.gc(lib.shf_options_new(), lib.shf_options_free)
    error = ffi.new("shf_error *")
    assert lib.shf_options_set(options, b"index_dir", b"~/indexes", error) == 0
    assert lib.shf_index_build(b"~/a.tar", options, error) == 0
    (made,) = (home / "indexes").iterdir()
    made.unlink()
    dali, urls = lib.SHF_INDEX_DALI_1_2, [ffi.new("char[]", b"~/a.tar")]
    assert lib.shf_index_export(urls, 1, dali, b"~/a.idx", options, error) == 0
    assert lib.shf_index_import(urls[0], dali, b"~/a.idx", options, error) == 0
    with shardfeed.Dataset("~/a.tar", index="require", index_dir="~/indexes") as dataset:
        assert len(dataset) == 1
    assert sorted(path.name for path in home.iterdir()) == ["a.idx", "a.tar", "indexes"]
    assert not list(Path("~").iterdir())
