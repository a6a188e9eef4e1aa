from __future__ import annotations

import gzip
import itertools
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import shardfeed
from conftest import numbered, tar_of, write_tar


def keys(stream) -> list[str]:
    return [sample.key for sample in stream]


def expected_keys(count: int) -> list[str]:
    return [f"{number:06d}" for number in range(count)]


def test_delivers_every_sample_in_order(shards):
    with shardfeed.Stream(shards(4, 300)) as stream:
        seen = [(s.key, bytes(s["txt"]), int(bytes(s["cls"]))) for s in stream]
    assert seen == [(f"{n:06d}", f"{n}".encode().ljust(10, b"."), n % 10) for n in range(1200)]


def test_fields_as_tarfile_sees_them(tmp_path):
    members = [
        ("a/b.c/1.seg.PNG", b"x" * 700),
        ("a/b.c/1.json", b""),
        ("a/b.c/2.json", b"{}"),
        ("z" * 300 + ".txt", b"long"),
    ]
    path = write_tar(tmp_path / "t.tar", members)
    seen = [(s.key, s.to_dict()) for s in shardfeed.Stream(path)]
    assert seen == [
        ("a/b.c/1", {"seg.png": b"x" * 700, "json": b""}),
        ("a/b.c/2", {"json": b"{}"}),
        ("z" * 300, {"txt": b"long"}),
    ]


def test_names_that_are_not_utf8(tmp_path):
    path = write_tar(
        tmp_path / "t.tar", [("k\udcff.t\udcfet", b"1"), ("ключ.имя", b"2"), ("a.", b"3")]
    )
    samples = list(shardfeed.Stream(path))
    assert [s.key for s in samples] == ["k\udcff", "ключ", "a"]
    assert [list(s) for s in samples] == [["t\udcfet"], ["имя"], [""]]
    assert bytes(samples[0]["t\udcfet"]) == b"1"
    assert bytes(samples[2][""]) == b"3"


def test_many_schemas_and_large_members(tmp_path):
    members = []
    for number in range(400):
        for field in range(number % 5 + 1):
            size = 300_000 if number % 50 == 0 else number
            members.append((f"{number}.f{field}", bytes([field + number % 200]) * size))
    path = write_tar(tmp_path / "t.tar", members)
    expected: dict[str, dict[str, bytes]] = {}
    for name, data in members:
        key, field_name = name.split(".")
        expected.setdefault(key, {})[field_name] = data
    samples = list(shardfeed.Stream(path))
    assert {s.key: s.to_dict() for s in samples} == expected
    assert {s.key: {name: bytes(s[name]) for name in s} for s in samples} == expected


def test_urls(tmp_path, shards, monkeypatch):
    url = shards(2, 5)
    paths = [tmp_path / "s-000.tar", tmp_path / "s-001.tar"]
    listed = tmp_path / "list.txt"
    listed.write_text("# shards\n" + "\n".join(map(str, paths)) + "\n")
    monkeypatch.setenv("WDS_SHARDS", str(tmp_path))
    for urls in (
        url,
        paths,
        [str(path) for path in paths],
        (path for path in paths),
        f"{paths[0]}::{paths[1]}",
        f"file://{paths[0]}::{paths[1]}",
        f"@{listed}",
        "${SHARDS}/s-{000..001}.tar",
    ):
        assert keys(shardfeed.Stream(urls)) == expected_keys(10)
    assert keys(shardfeed.Stream(paths[1])) == expected_keys(10)[5:]
    assert keys(shardfeed.Stream([f"pipe:cat {paths[0]}"])) == expected_keys(5)
    assert shardfeed.expand_urls(url) == [str(path) for path in paths]
    assert shardfeed.expand_urls(url, expand=False) == [url]
    assert shardfeed.expand_urls([]) == []


def test_urls_that_are_not_utf8(tmp_path):
    path = tmp_path / os.fsdecode(b"\xff{1}.tar")
    tar_of(3, path)
    stream = shardfeed.Stream(path, expand=False)
    assert keys(stream) == expected_keys(3)
    assert shardfeed.expand_urls(path, expand=False) == [str(path)]
    with pytest.raises(shardfeed.UsageError, match="NUL"):
        shardfeed.Stream("a\0b.tar")


def test_standard_input(tmp_path):
    path = tar_of(7, tmp_path / "t.tar")
    program = "import shardfeed; print(sum(1 for _ in shardfeed.Stream('-')))"
    with path.open("rb") as file:
        out = subprocess.run(
            [sys.executable, "-c", program], stdin=file, capture_output=True, check=True
        )
    assert out.stdout == b"7\n"


def test_compressed_whatever_the_suffix(tmp_path):
    path = tar_of(50, tmp_path / "t.tar")
    (tmp_path / "z.tar").write_bytes(gzip.compress(path.read_bytes()))
    assert keys(shardfeed.Stream(tmp_path / "z.tar")) == expected_keys(50)
    for mode in ("w:gz", "w:bz2", "w:xz"):
        write_tar(tmp_path / "t.bin", numbered(0, 50), mode=mode)
        assert keys(shardfeed.Stream(tmp_path / "t.bin")) == expected_keys(50)


def test_shard_names_the_source_without_secrets(tmp_path, shards):
    url = shards(2, 3)
    assert [s.shard for s in shardfeed.Stream(url)] == [
        str(tmp_path / f"s-00{n // 3}.tar") for n in range(6)
    ]


# ---- Order --------------------------------------------------------------------------------------


def test_shuffle_depends_on_seed_and_epoch_only(shards):
    url = shards(8, 50)
    one = shardfeed.Stream(url, shuffle=100, shuffle_shards=True, seed=1)
    first, second = keys(one), keys(one)
    assert sorted(first) == sorted(second) == expected_keys(400)
    assert len({tuple(first), tuple(second), tuple(expected_keys(400))}) == 3
    for threads in (1, 2, 8):
        again = shardfeed.Stream(url, shuffle=100, shuffle_shards=True, seed=1, threads=threads)
        assert keys(again) == first
        assert keys(again) == second
    other = shardfeed.Stream(url, shuffle=100, shuffle_shards=True, seed=2)
    assert keys(other) != first
    late = shardfeed.Stream(url, shuffle=100, shuffle_shards=True, seed=1, epoch=1)
    assert keys(late) == second


def test_ranks_and_workers_share_the_samples(shards):
    url = shards(12, 10)
    options = {"lanes": 12, "seed": 3, "shuffle_shards": True, "shuffle": 10}
    whole = keys(shardfeed.Stream(url, **options))
    assert sorted(whole) == expected_keys(120)
    for world_size, num_workers in ((2, 1), (2, 3), (4, 3), (1, 6)):
        parts = [
            keys(
                shardfeed.Stream(
                    url,
                    rank=rank,
                    world_size=world_size,
                    worker=worker,
                    num_workers=num_workers,
                    **options,
                )
            )
            for rank in range(world_size)
            for worker in range(num_workers)
        ]
        assert sorted(itertools.chain(*parts)) == expected_keys(120)
        for consumer, part in enumerate(parts):
            assert part == whole[consumer :: len(parts)]


def test_fewer_shards_than_consumers_is_refused_at_once(shards):
    with pytest.raises(shardfeed.UsageError, match="help: "):
        shardfeed.Stream(shards(2, 3), world_size=3, rank=0)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"num_workers": 4}, "num_workers=4, .*; help: threads=4 reads all samples .* worker"),
        ({"num_workers": 4, "rank": 0, "world_size": 1}, "num_workers=4, "),
        ({"world_size": 4}, "world_size=4, .*; help: give rank "),
        ({"world_size": 4, "num_workers": 2, "worker": 1}, "world_size=4, "),
    ],
)
def test_a_part_that_nobody_asked_for_is_refused(shards, given, sentence):
    urls = shards(8, 3)
    with pytest.raises(shardfeed.UsageError, match=sentence):
        shardfeed.Stream(urls, **given)
    alone = {**dict.fromkeys(given, 1), "rank": 0, "worker": 0}
    assert len(keys(shardfeed.Stream(urls, **alone))) == 24
    named = {"rank": 0, "worker": 0, **given}
    assert 0 < len(keys(shardfeed.Stream(urls, **named))) < 24
    assert len(shardfeed.plan(urls, **given).consumers) > 1


# ---- Epochs -------------------------------------------------------------------------------------


def test_iter_is_the_next_epoch(shards):
    url = shards(3, 20)
    options = {"shuffle": 50, "seed": 5}
    epochs = [keys(shardfeed.Stream(url, epoch=epoch, **options)) for epoch in range(4)]
    stream = shardfeed.Stream(url, **options)
    assert [keys(stream) for _ in range(4)] == epochs
    pairs = shardfeed.Stream(url, epochs=2, **options)
    assert keys(pairs) == epochs[0] + epochs[1]
    assert keys(pairs) == epochs[2] + epochs[3]
    broken_off = shardfeed.Stream(url, **options)
    for _ in broken_off:
        break
    assert keys(broken_off) == epochs[1]


def test_endless_iterator_continues_where_the_last_one_stopped(shards):
    url = shards(2, 10)
    stream = shardfeed.Stream(url, epochs=0)
    twice = expected_keys(20) * 3
    assert [s.key for s in itertools.islice(stream, 33)] == twice[:33]
    assert [s.key for s in itertools.islice(stream, 9)] == twice[33:42]


def test_epoch_samples_set_the_length_of_an_epoch(shards):
    url = shards(2, 10)
    endless = itertools.cycle(expected_keys(20))
    stream = shardfeed.Stream(url, epoch_samples=8)
    for _ in range(6):
        assert keys(stream) == list(itertools.islice(endless, 8))
    iterator = iter(stream)
    assert [next(iterator).key for _ in range(3)] == list(itertools.islice(endless, 3))
    assert keys(stream) == list(itertools.islice(endless, 8))  # and not the 5 that were left
    pairs = shardfeed.Stream(url, epoch_samples=8, epochs=2)
    assert [len(keys(pairs)) for _ in range(3)] == [16, 16, 16]


def test_epoch_samples_are_split_over_consumers(shards):
    url = shards(4, 30)
    lengths = [
        len(keys(shardfeed.Stream(url, epoch_samples=100, rank=rank, world_size=3, lanes=3)))
        for rank in range(3)
    ]
    assert sum(lengths) in (99, 100)
    assert max(lengths) - min(lengths) <= 1


def test_a_new_iterator_ends_the_last_one(shards):
    for options in ({}, {"epochs": 0}, {"epoch_samples": 30}):
        stream = shardfeed.Stream(shards(1, 40), **options)
        first = iter(stream)
        next(first)
        second = iter(stream)
        for _ in range(2):
            with pytest.raises(shardfeed.UsageError, match=r"iter\(stream\) was called again"):
                next(first)
        next(second)
    ended = iter(shardfeed.Stream(shards(1, 1)))
    assert len(list(ended)) == 1
    assert list(ended) == []


def test_iterator_outlives_the_stream_object(shards):
    iterator = iter(shardfeed.Stream(shards(2, 500)))
    assert keys(iterator) == expected_keys(1000)


# ---- Life ---------------------------------------------------------------------------------------


def test_close(shards):
    with shardfeed.Stream(shards(1, 300)) as stream:
        iterator = iter(stream)
        sample = next(iterator)
    assert bytes(sample["cls"]) == b"0"
    with pytest.raises(shardfeed.UsageError, match="closed"):
        next(iterator)
    with pytest.raises(shardfeed.UsageError, match="closed"):
        iter(stream)
    assert stream.stats()["samples"] >= 1
    stream.close()
    shardfeed.Stream(shards(1, 1)).close()


def test_no_thread_before_the_first_next_and_none_after_the_last(shards):
    def threads() -> int:
        return len(os.listdir("/proc/self/task"))

    before = threads()
    stream = shardfeed.Stream(shards(4, 200), threads=4, lanes=4)
    iterator = iter(stream)
    assert threads() == before
    assert len(list(iterator)) == 800
    assert threads() == before
    for _ in stream:
        break
    stream.close()
    assert threads() == before


def test_no_descriptor_or_child_is_left(tmp_path):
    path = tar_of(1000, tmp_path / "t.tar")

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    def children() -> str:
        return Path(f"/proc/self/task/{os.getpid()}/children").read_text()

    before = descriptors(), children()
    for url in (str(path), f"pipe:cat {path}; sleep 0", f"pipe:cat {path} {path}"):
        for _ in shardfeed.Stream([url]):
            break
    assert (descriptors(), children()) == before


def test_stats(shards):
    stream = shardfeed.Stream(shards(2, 10))
    assert set(stream.stats().values()) == {0}
    assert len(list(stream)) == 20
    stats = stream.stats()
    assert stats["samples"] == 20
    assert stats["shards"] == 2
    assert stats["bytes"] == 20 * 11
    assert stats["skipped_samples"] == stats["skips_truncated"] == 0
    assert len(list(stream)) == 20
    assert stream.stats()["samples"] == 20


def test_arguments_can_be_read_back(shards):
    url = shards(1, 1)
    stream = shardfeed.Stream(url, shuffle=10, resample=False, memory="64MiB")
    assert stream.urls == [url]
    assert stream.options == {"shuffle": "10", "resample": "false", "memory": "64MiB"}
    assert repr(stream) == f"<shardfeed.Stream {url!r} shuffle=10 resample=false memory=64MiB>"
    many = shardfeed.Stream([url] * 5)
    assert "5 URLs" in repr(many)


def test_repr_has_no_secrets():
    stream = shardfeed.Stream(["pipe:curl -H 'Token: abc' x"])
    assert "abc" not in repr(stream)


def test_two_threads_on_one_iterator(shards):
    """Every sample goes to one of them; the one that comes too early gets UsageError."""
    iterator = iter(shardfeed.Stream(shards(4, 5000)))
    seen: list[list[str]] = [[], []]

    def take(into: list[str]) -> None:
        while True:
            try:
                for sample in iterator:
                    into.append(sample.key)
                return
            except shardfeed.UsageError:
                continue

    threads = [threading.Thread(target=take, args=(into,)) for into in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen[0] + seen[1]) == expected_keys(20000)


# ---- Log ----------------------------------------------------------------------------------------


def damaged(tmp_path: Path) -> list[Path]:
    good = tar_of(20, tmp_path / "good.tar")
    bad = tmp_path / "bad.tar"
    bad.write_bytes(good.read_bytes()[:8000])
    return [bad, good]


def test_log_to_logging(tmp_path, caplog):
    urls = damaged(tmp_path)
    with caplog.at_level(logging.INFO, "shardfeed"):
        assert len(list(shardfeed.Stream(urls, on_error="skip_shard"))) >= 20
    assert {record.name for record in caplog.records} == {"shardfeed"}
    assert any("bad.tar" in record.getMessage() for record in caplog.records)
    assert any(record.levelno >= logging.WARNING for record in caplog.records)


def test_log_function(tmp_path, caplog):
    messages: list[tuple[int, str]] = []
    urls = damaged(tmp_path)
    stream = shardfeed.Stream(urls, on_error="skip_shard", log=lambda *m: messages.append(m))
    count = len(list(stream))
    assert stream.stats()["skipped_shards"] == 1
    assert any("bad.tar" in text for _, text in messages)
    assert len(list(shardfeed.Stream(urls, on_error="skip_shard", log=None))) == count
    assert caplog.records == []


def test_exception_of_the_log_function_loses_no_sample(tmp_path):
    urls = damaged(tmp_path)
    quiet = keys(shardfeed.Stream(urls, on_error="skip_shard", log=None))

    def fail(level: int, message: str) -> None:
        raise KeyError(message)

    iterator = iter(shardfeed.Stream(urls, on_error="skip_shard", log=fail))
    seen = []
    failures = 0
    while True:
        try:
            seen.append(next(iterator).key)
        except KeyError:
            failures += 1
        except StopIteration:
            break
    assert failures >= 1
    assert seen == quiet


def test_log_function_may_close_the_stream(tmp_path):
    stream = None

    def close(level: int, message: str) -> None:
        stream.close()

    stream = shardfeed.Stream(damaged(tmp_path), on_error="skip_shard", log=close)
    with pytest.raises(shardfeed.Error):
        list(stream)
