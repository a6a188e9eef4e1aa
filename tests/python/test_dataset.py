"""Datasets: samples of many shards by number."""

from __future__ import annotations

import logging
import os
import pickle
import threading
import time
from pathlib import Path

import pytest
import shardfeed
from archives import write_zip
from closing import errors_of_closing
from conftest import numbered, write_tar


def number_of(sample: shardfeed.Sample) -> int:
    return int(bytes(sample["txt"]).rstrip(b"."))


def test_is_a_sequence_of_samples(shards):
    with shardfeed.Dataset(shards(3, 10)) as data:
        assert len(data) == 30
        assert [number_of(data[n]) for n in range(30)] == list(range(30))
        assert [number_of(sample) for sample in data] == list(range(30))
        assert number_of(data[-1]) == 29
        assert [number_of(sample) for sample in data[5:25:7]] == [5, 12, 19]
        assert [number_of(sample) for sample in data[::-1]] == list(range(29, -1, -1))
        for wrong in (30, -31):
            with pytest.raises(IndexError, match="30 samples"):
                data[wrong]
        with pytest.raises(TypeError):
            data["000001"]
        assert "30 samples" in repr(data)


def test_gives_what_a_stream_gives(shards, tmp_path):
    write_tar(tmp_path / "s-001.tar", numbered(10, 10))
    write_zip(tmp_path / "s-002.zip", numbered(20, 10))
    shards(1, 10)
    urls = [tmp_path / name for name in ("s-000.tar", "s-001.tar", "s-002.zip")]
    data = shardfeed.Dataset(urls)
    streamed = list(shardfeed.Stream(urls))
    assert len(data) == len(streamed) == 30
    for sample, other in zip(data, streamed):
        assert dict(sample) == dict(other)
        assert list(sample) == list(other)
        assert (sample.key, sample.shard) == (other.key, other.shard)


def test_many_at_once_in_the_order_asked_for(shards):
    data = shardfeed.Dataset(shards(4, 100))
    order = [399, 0, 7, 7, 250, -1]
    assert [number_of(sample) for sample in data.get_many(order)] == [399, 0, 7, 7, 250, 399]
    assert data.get_many([]) == []
    with pytest.raises(IndexError):
        data.get_many([0, 400])


def test_finds_keys(shards, tmp_path):
    data = shardfeed.Dataset(shards(2, 10))
    assert data.find("000013") == 13
    assert "000013" in data
    assert "13" not in data
    assert 13 not in data
    with pytest.raises(KeyError, match="no sample with this key") as caught:
        data.find("13")
    assert isinstance(caught.value, shardfeed.NoMemberError)
    assert data.shard(13) == (1, 3)
    write_tar(tmp_path / "a.tar", numbered(0, 2))
    twice = shardfeed.Dataset([tmp_path / "a.tar"] * 2)
    with pytest.raises(shardfeed.AmbiguousError, match="samples 1 and 3"):
        twice.find("000001")
    assert "000001" in twice


def test_names_and_fields_of_all_kinds(tmp_path):
    fields = [(f"a.{n:03d}", bytes([n]) * n) for n in range(100)]
    write_tar(
        tmp_path / "t.tar",
        [*fields, ("b\udcff.X\udcfe.y", b"odd"), ("c.empty", b""), ("d.a", b""), ("d.b", b"x")],
    )
    data = shardfeed.Dataset(tmp_path / "t.tar")
    assert {name: bytes(view) for name, view in data[0].items()} == {
        f"{n:03d}": bytes([n]) * n for n in range(100)
    }
    assert (data[1].key, list(data[1])) == ("b\udcff", ["x\udcfe.y"])
    assert bytes(data[2]["empty"]) == b""
    assert (bytes(data[3]["a"]), bytes(data[3]["b"])) == (b"", b"x")
    assert data.find("b\udcff") == 1


def test_samples_outlive_the_dataset(shards):
    data = shardfeed.Dataset(shards(1, 10, size=100_000))
    view = data[3]["txt"]
    assert view.readonly
    sample = data[4]
    data.close()
    assert bytes(view).startswith(b"3.")
    assert number_of(sample) == 4
    assert pickle.loads(pickle.dumps(sample)) == sample
    with pytest.raises(shardfeed.UsageError, match="closed"):
        data[0]


def test_a_pickled_copy_is_opened_again(shards, tmp_path):
    data = shardfeed.Dataset(shards(1, 10), index_dir=str(tmp_path / "indexes"))
    data[0]
    copy = pickle.loads(pickle.dumps(data))
    assert copy.options == {"index_dir": str(tmp_path / "indexes")}
    assert number_of(copy[9]) == 9
    data.close()
    assert pickle.loads(pickle.dumps(data)).closed


def test_threads_share_one(shards):
    data = shardfeed.Dataset(shards(2, 200))
    wrong = []

    def work(first: int) -> None:
        for n in range(first, 400, 7):
            if number_of(data[n]) != n or data.find(f"{n:06d}") != n:
                wrong.append(n)
        for n, sample in enumerate(data.get_many(range(400))):
            if number_of(sample) != n:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n % 7,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


class Messages:
    """A log function that pickles, and gives other threads time to come in the way."""

    count = 0

    def __call__(self, level: int, message: str) -> None:
        type(self).count += 1
        time.sleep(0.2)


def test_threads_open_a_copy_once(shards):
    # It was opened by each of them, and the first ones' was closed while they were using it.
    data = shardfeed.Dataset(shards(2, 20), index="memory", log=Messages())
    said, Messages.count = Messages.count, 0
    assert said > 0
    copy = pickle.loads(pickle.dumps(data))
    seen: list[int] = []
    start = threading.Barrier(8)

    def work(first: int) -> None:
        start.wait()
        seen.extend(number_of(copy[n]) for n in range(first, 40, 8))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(40))
    assert Messages.count == said


def test_close_while_other_threads_read(shards):
    url = shards(2, 50)
    for _ in range(20):
        data = shardfeed.Dataset(url, decode="cls:int")

        def use(data: shardfeed.Dataset = data) -> None:
            for n in range(0, 100, 9):
                assert number_of(data[n]) == n
                assert data.find(f"{n:06d}") == n
                assert data.shard(n) == (n // 50, n % 50)
                assert data.batch([n])["cls"].tolist() == [n % 10]

        assert errors_of_closing(data, use) == []


def test_options_and_urls_are_checked(shards, tmp_path):
    url = shards(1, 3)
    with pytest.raises(TypeError, match="shuffle"):
        shardfeed.Dataset(url, shuffle=10)
    with pytest.raises(TypeError, match='did you mean "index"'):
        shardfeed.Dataset(url, indx="auto")
    with pytest.raises(shardfeed.UsageError, match="stream"):
        shardfeed.Dataset("pipe:true")
    with pytest.raises(OSError, match="absent"):
        shardfeed.Dataset(tmp_path / "absent.tar")


# ---- Indexes ------------------------------------------------------------------------------------


def test_index_is_made_once_and_logged(shards, tmp_path):
    url = shards(1, 10)
    said: list[tuple[int, str]] = []
    log = lambda level, message: said.append((level, message))  # noqa: E731
    shardfeed.Dataset(url, log=log)
    assert [level for level, _ in said] == [logging.INFO, logging.INFO]
    assert "making its index" in said[0][1]
    assert (tmp_path / "s-000.tar.sfidx").exists()
    said.clear()
    assert len(shardfeed.Dataset(url, log=log, index="require")) == 10
    assert said == []


def test_stale_index_is_not_believed(shards, tmp_path, caplog):
    url = shards(1, 10)
    shardfeed.Dataset(url)
    write_tar(tmp_path / "s-000.tar", numbered(5, 20))
    with pytest.raises(shardfeed.ChangedError, match="another version"):
        shardfeed.Dataset(url, index="require")
    caplog.clear()
    data = shardfeed.Dataset(url)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert [number_of(sample) for sample in data] == list(range(5, 25))


def test_index_can_be_left_alone_or_elsewhere(shards, tmp_path):
    url = shards(1, 3)
    assert len(shardfeed.Dataset(url, index="memory")) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["s-000.tar"]
    with pytest.raises(shardfeed.NoMemberError, match="no index"):
        shardfeed.Dataset(url, index="require")
    assert len(shardfeed.Dataset(url, index_dir=os.fspath(tmp_path / "new/folder"))) == 3
    (index,) = (tmp_path / "new/folder").iterdir()
    assert index.name.startswith("s-000.tar.")
    assert len(shardfeed.Dataset(url, index="require", index_dir=str(index.parent))) == 3


def test_log_that_raises_ends_the_opening(shards):
    def log(level: int, message: str) -> None:
        raise RuntimeError("from the log")

    with pytest.raises(RuntimeError, match="from the log"):
        shardfeed.Dataset(shards(1, 3), log=log)


def test_stream_leaves_an_index_behind(shards, tmp_path):
    url = shards(2, 10)
    list(shardfeed.Stream(url, write_index=True))
    assert len(shardfeed.Dataset(url, index="require")) == 20


def test_rewritten_shard_under_an_open_dataset(shards, tmp_path):
    data = shardfeed.Dataset(shards(1, 10))
    path = tmp_path / "s-000.tar"
    contents = path.read_bytes()
    path.write_bytes(contents[:2048])
    with pytest.raises((shardfeed.TruncatedError, shardfeed.ChangedError), match=r"s-000\.tar"):
        data[9]
    write_tar(path, numbered(50, 10))
    with pytest.raises(shardfeed.ChangedError):
        data[9]
    Path(path).unlink()
