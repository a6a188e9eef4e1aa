"""What the original loses in silence is an error here, given to the handler."""

from __future__ import annotations

import gzip
import pickle
import tarfile
from pathlib import Path
from typing import Any

import pytest
import shardfeed
import shardfeed.wds as wds
from conftest import numbered, write_tar
from shardfeed.wds import _reading


@pytest.fixture(params=[0, 1 << 40], ids=["engine", "members"])
def reading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reading, "small_shard", request.param)


def dataset(urls: list[str], handler: Any) -> Any:
    return wds.WebDataset(urls, shardshuffle=False, handler=handler, empty_check=False)


def keys(urls: list[str], handler: Any = wds.reraise_exception) -> list[str]:
    return [s["__key__"] for s in dataset(urls, handler)]


@pytest.mark.usefixtures("reading")
@pytest.mark.parametrize("cut", [3 * 512, 5 * 512 + 100, 4 * 512, 6 * 512 + 4])
def test_truncated_shard(tmp_path: Path, cut: int) -> None:
    whole = write_tar(tmp_path / "whole.tar", numbered(7, 2))
    damaged = tmp_path / "cut.tar"
    damaged.write_bytes(write_tar(tmp_path / "x.tar", numbered(0, 5)).read_bytes()[:cut])
    urls = [str(damaged), str(whole)]
    with pytest.raises(tarfile.ReadError) as raised:
        keys(urls)
    assert isinstance(raised.value, shardfeed.TruncatedError)
    assert str(damaged) in str(raised.value)
    seen: list[Exception] = []
    found = keys(urls, lambda exn: seen.append(exn) or True)
    assert found[-2:] == ["000007", "000008"]
    assert len(seen) == 1
    assert pickle.loads(pickle.dumps(seen[0])).args == seen[0].args
    # Only whole samples, and none of the other shard.
    assert found[:-2] == [f"{i:06d}" for i in range(len(found) - 2)]
    assert keys(urls, lambda exn: False) == found[:-2]


@pytest.mark.usefixtures("reading")
def test_concatenated_gzip_is_read_whole(tmp_path: Path) -> None:
    data = write_tar(tmp_path / "x.tar", numbered(0, 9)).read_bytes()
    path = tmp_path / "two.tar.gz"
    path.write_bytes(gzip.compress(data[:5000]) + gzip.compress(data[5000:]))
    assert len(keys([str(path)])) == 9


@pytest.mark.usefixtures("reading")
def test_concatenated_tars_are_an_error(tmp_path: Path) -> None:
    data = write_tar(tmp_path / "x.tar", numbered(0, 2)).read_bytes()
    (tmp_path / "two.tar").write_bytes(data + data)
    dataset = wds.WebDataset(str(tmp_path / "two.tar"), shardshuffle=False)
    with pytest.raises(tarfile.ReadError, match="concat"):
        list(dataset)
    assert len(list(dataset.engine(concat=True))) == 4


def test_failed_pipe_is_an_error(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "x.tar", numbered(0, 3))
    assert len(keys([f"pipe:cat {path}"])) == 3
    with pytest.raises(OSError, match="7"):
        keys([f"pipe:cat {path}; exit 7"])


def test_secure_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_tar(tmp_path / "x.tar", [("a.pyd", pickle.dumps(1)), ("a.cls", b"1")])
    monkeypatch.setattr(wds.utils, "enforce_security", True)
    with pytest.raises(ValueError, match="cannot open pipe"):
        keys([f"pipe:cat {path}"])
    with pytest.raises(ValueError, match="cannot open local"):
        list(wds.tarfile_samples(iter([{"url": str(path)}])))
    with pytest.raises(wds.DecodingError) as raised:
        list(wds.WebDataset(str(path), shardshuffle=False).decode())
    assert "Unpickling is not allowed" in str(raised.value)


def test_schemes_of_the_program_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_tar(tmp_path / "x.tar", numbered(0, 4))
    monkeypatch.setitem(wds.gopen_schemes, "mine", lambda url, mode, bufsize, **kw: path.open(mode))
    assert len(keys(["mine://anything"])) == 4
    monkeypatch.setenv("GOPEN_REWRITE", f"other://=file:{tmp_path}/")
    samples = list(wds.tarfile_samples(iter([{"url": "other://x.tar"}])))
    assert [s["__url__"] for s in samples] == ["other://x.tar"] * 4


def test_decoding_error_says_which_field(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "x.tar", [("k.cls", b"seven")])
    with pytest.raises(wds.DecodingError) as raised:
        list(wds.WebDataset(str(path), shardshuffle=False).decode())
    error = raised.value
    assert (error.key, error.k, error.url) == ("k", "cls", str(path))
    assert "seven" in str(error)
    assert pickle.loads(pickle.dumps(error)).k == "cls"
