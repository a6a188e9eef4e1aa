"""Shards that a function names, and indexes of other tools that appear with shards."""

from __future__ import annotations

import json
import time

import pytest
import shardfeed


def write(pattern, count, **options):
    with shardfeed.Writer(pattern, **options) as writer:
        writer.write_all({"__key__": f"{i:06d}", "txt": f"{i}"} for i in range(count))
    return writer.shards


def keys(*paths):
    return [sample.key for sample in shardfeed.Stream([str(path) for path in paths])]


def test_a_function_is_called_once_for_each_shard(tmp_path):
    asked = []

    def name(number):
        asked.append(number)
        return tmp_path / f"part-{'abcdef'[number]}.tar"  # a Path is a name too

    shards = write(name, 5, max_samples=2, first_shard=3)
    assert asked == [3, 4, 5]
    assert [shard.url for shard in shards] == [str(tmp_path / f"part-{x}.tar") for x in "def"]
    assert len(keys(*(shard.url for shard in shards))) == 5


def test_a_name_that_comes_again_is_an_error_and_nothing_is_lost(tmp_path):
    with pytest.raises(shardfeed.UsageError, match="a name twice") as caught:
        write(lambda _number: tmp_path / "a.tar", 3, max_samples=2, overwrite=True)
    assert "help: " in str(caught.value)
    writer = shardfeed.Writer(lambda _number: tmp_path / "b.tar", max_samples=1)
    writer.write({"__key__": "a", "txt": "kept"})
    with pytest.raises(shardfeed.UsageError):
        writer.write({"__key__": "b", "txt": "x"})
    with pytest.raises(shardfeed.UsageError):
        writer.finish()
    assert keys(tmp_path / "b.tar") == ["a"]


def test_an_exception_of_the_function_costs_the_sample_alone(tmp_path):
    class NotYetError(Exception):
        pass

    allowed = False

    def name(number):
        if number and not allowed:
            raise NotYetError(number)
        return str(tmp_path / f"{number}.tar")

    with shardfeed.Writer(name, max_samples=1) as writer:
        writer.write({"__key__": "a", "txt": "x"})
        with pytest.raises(NotYetError):
            writer.write({"__key__": "b", "txt": "x"})
        allowed = True
        writer.write({"__key__": "b", "txt": "x"})
    assert keys(tmp_path / "0.tar", tmp_path / "1.tar") == ["a", "b"]
    allowed = False
    with pytest.raises(NotYetError):
        shardfeed.Writer(name, first_shard=1)


@pytest.mark.parametrize("bad", ["", None, 5, "a\0b.tar"])
def test_what_is_no_name_is_refused(tmp_path, bad):
    with pytest.raises((shardfeed.UsageError, TypeError)):
        shardfeed.Writer(lambda _number: bad)


def test_published_shards_are_reported_also_when_a_later_one_fails(tmp_path):
    (tmp_path / "3.tar").write_bytes(b"precious")
    reported = []

    def write_all():
        with shardfeed.Writer(
            tmp_path / "%d.tar", max_samples=1, on_shard=reported.append, durable=False
        ) as writer:
            for i in range(5):
                writer.write({"__key__": str(i), "txt": "x"})
                writer.flush(durable=True)
                while len(writer.shards) < i:  # the one that this sample ended is being published
                    time.sleep(0.001)

    with pytest.raises(shardfeed.Error, match="overwrite=true"):
        write_all()
    # Shard 2 ends in the call that fails.
    assert [shard.url for shard in reported[:2]] == [str(tmp_path / f"{i}.tar") for i in (0, 1)]
    assert len(reported) <= 3
    assert (tmp_path / "3.tar").read_bytes() == b"precious"


def test_wids_reads_the_index_that_is_written_with_the_shards(tmp_path):
    pytest.importorskip("torch")
    wids = pytest.importorskip("wids")
    write(tmp_path / "t-%d.tar", 10, max_samples=4, wids_index=tmp_path / "t.json")
    data = wids.ShardListDataset(
        str(tmp_path / "t.json"), cache_dir=str(tmp_path / "cache"), transformations=[]
    )
    assert [data[i]["__key__"] for i in range(len(data))] == [f"{i:06d}" for i in range(10)]
    listed = json.loads((tmp_path / "t.json").read_text())["shardlist"]
    assert [(entry["url"], entry["nsamples"]) for entry in listed] == [
        ("t-0.tar", 4),
        ("t-1.tar", 4),
        ("t-2.tar", 2),
    ]
    for entry in listed:
        assert wids.wids.compute_num_samples(str(tmp_path / entry["url"])) == entry["nsamples"]


def test_indexes_say_where_the_bytes_are(tmp_path):
    write(tmp_path / "t.tar", 5, index_for="dali,energon")
    shard = (tmp_path / "t.tar").read_bytes()
    head, *lines = (tmp_path / "t.idx").read_text().splitlines()
    assert head == "v1.2 5"
    for number, line in enumerate(lines):
        extension, offset, size, name = line.split(" ")
        assert (extension, name) == ("txt", f"{number:06d}.txt")
        assert shard[int(offset) :][: int(size)] == b"%d" % number
    numbers = memoryview((tmp_path / "t.tar.idx").read_bytes()).cast("Q").tolist()
    assert len(numbers) == 6
    for number, start in enumerate(numbers[:-1]):
        assert shard[start : start + 10] == b"%06d.txt" % number
    assert shard[numbers[-1] :].strip(b"\0") == b""
