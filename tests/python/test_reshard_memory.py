"""Memory of reshard: what it counts, what it holds at most, and what its option allows."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from resharding import keys, shuffled
from shardfeed._integration import HeldSamples
from shardfeed.cluster._ordered import PLACE_BITS, OrderedReader
from shardfeed.cluster._permutation import Permutation

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20

# A run of its own, after a small one: how far the process has grown, in MiB.
GROWTH = """
import re, shardfeed, sys
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) >> 10
small, url, folder, samples, shuffle = sys.argv[1:]
shardfeed.reshard(small, f"{folder}/few/", samples=1, workers=0)
before = peak()
shardfeed.reshard(url, f"{folder}/out/", samples=int(samples), shuffle=shuffle == "yes", workers=0,
                  memory="16MiB")
print(peak() - before)
"""


def growth(folder: Path, url: str, samples: int, shuffle: bool) -> int:
    small = write_tar(folder / "small.tar", numbered(0, 3))
    package = os.path.dirname(os.path.dirname(shardfeed.__file__))
    given = [small, url, folder, samples, "yes" if shuffle else "no"]
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, *map(str, given)],
        env={**os.environ, "PYTHONPATH": package},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def shard(path: Path, count: int, fields: Callable[[int], dict[str, bytes]]) -> str:
    with shardfeed.Writer(str(path), durable=False) as writer:
        for number in range(count):
            writer.write_bytes(f"{number:06}", fields(number))
    return str(path)


def many_fields(number: int) -> dict[str, bytes]:
    return {f"f{field}": b"%010d" % number for field in range(10)}


def a_jump(number: int) -> dict[str, bytes]:
    return {"bin": b"." * (100 if number < 3000 else MIB)}


@pytest.mark.slow
def test_one_large_field(tmp_path: Path, shards: Any) -> None:
    """One output of 160 MB is made with 16 MiB."""
    assert growth(tmp_path, shards(4, 400, 100_000), 1600, shuffle=True) < 40
    assert keys(f"{tmp_path}/out/000000.tar") == shuffled(0, 1600)


@pytest.mark.slow
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(
    ("count", "fields"), [(20_000, many_fields), (3_400, a_jump)], ids=["many", "jump"]
)
def test_many_fields_and_a_jump(tmp_path: Path, count: int, fields: Any, shuffle: bool) -> None:
    """240 MB, most of them headers, and 400 MB, most of them in a few samples at the end."""
    url = shard(tmp_path / "a.tar", count, fields)
    assert growth(tmp_path, url, count, shuffle) < 50  # the places of the output are 2 of them


class Watch:
    """What a reader holds after each call, and how much it reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: list[int] = []
        self.read = 0
        whole = HeldSamples.read

        def counting(held: HeldSamples, *given: Any) -> int:
            count = whole(held, *given)
            self.held.append(held.bytes)
            self.read += count
            return count

        monkeypatch.setattr(HeldSamples, "read", counting)


def read_in_order(url: str, order: list[int], memory: int, mean: int | None) -> list[str]:
    reader = OrderedReader([(url, len(order))], memory, {}, mean)
    found = [sample.key for sample in reader.samples([0 << PLACE_BITS | n for n in order])]
    reader.close()
    return found


@pytest.mark.parametrize("kind", ["input", "random"])
def test_a_jump_within_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Small samples say nothing about the next ones: 16 of those are read unawares with 16 MiB."""
    url = shard(tmp_path / "a.tar", 3100, a_jump)
    permutation = Permutation(1, 3100)
    order = [permutation(place) if kind == "random" else place for place in range(3100)]
    watch = Watch(monkeypatch)
    found = read_in_order(url, order, 16 * MIB, None)
    assert found == [f"{number:06}" for number in order]
    assert max(watch.held) < (16 + 16 + 1) * MIB
    assert watch.read < 2 * 3100
    if kind == "input":
        assert watch.read == 3100  # nothing twice


def test_sizes_that_nobody_expects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of 100 bytes come first, and of a megabyte later."""
    sizes = [100] * 300 + [MIB] * 12 + [100] * 50
    url = shard(tmp_path / "a.tar", len(sizes), lambda n: {"bin": b"." * sizes[n]})
    watch = Watch(monkeypatch)
    permutation = Permutation(1, len(sizes))
    order = [permutation(place) for place in range(len(sizes))]
    found = read_in_order(url, order, 4 * MIB, 100)
    assert found == [f"{number:06}" for number in order]
    assert len(sizes) < watch.read < 4 * len(sizes)  # what was let go was read again
    assert max(watch.held) <= (4 + 8) * MIB


def test_files_say_little_about_samples_that_are_compressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = random.Random(1)
    url = shard(
        tmp_path / "a.tar.zst",
        1500,
        lambda _: {"bin": generator.randbytes(1000) + bytes(40_000)},
    )
    mean = os.path.getsize(url) // 1500
    assert mean < 2000
    watch = Watch(monkeypatch)
    found = read_in_order(url, list(range(1500)), 16 * MIB, mean)
    assert found == [f"{number:06}" for number in range(1500)]
    assert max(watch.held) < 18 * MIB
    assert watch.read == 1500


def test_what_is_let_go_is_not_kept_by_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small samples share memory: of a stretch that is too long, none is kept."""
    url = shard(tmp_path / "a.tar", 3000, lambda _: {"bin": b"." * 1500})
    kept: list[int] = []
    whole = HeldSamples.drop

    def counting(held: HeldSamples, place: int) -> None:
        whole(held, place)
        kept.append(held.bytes)

    monkeypatch.setattr(HeldSamples, "drop", counting)
    permutation = Permutation(3, 3000)
    order = [permutation(place) for place in range(3000)]
    assert read_in_order(url, order, MIB, 1) == [f"{number:06}" for number in order]
    assert kept
    assert set(kept) == {0}


@pytest.mark.parametrize("name", ["a.tar", "a.zip"])
def test_what_is_counted(tmp_path: Path, name: str) -> None:
    """At least what blocks have: headers and padding of a tar, and gaps that are read along."""
    url = shard(tmp_path / name, 64, many_fields)
    for step in (1, 2):
        numbers = array("Q", range(0, 64, step))
        held = HeldSamples(len(numbers))
        with shardfeed.Dataset(url) as data:
            held.read(data, numbers, array("Q", range(len(numbers))))
        least = 100 if name == "a.zip" else 10 * 1024 - 500
        assert held.bytes >= len(numbers) * least
        assert held.bytes <= len(numbers) * (least + 4096)
        held.drop(0)
        assert held.bytes == 0


def test_reading_stops_at_the_budget(tmp_path: Path) -> None:
    url = shard(tmp_path / "a.tar", 200, lambda _: {"bin": b"." * 100_000})
    numbers = array("Q", range(200))
    held = HeldSamples(200)
    with shardfeed.Dataset(url) as data:
        count = held.read(data, numbers, numbers, 2_000_000)
        assert 16 <= count < 24
        assert 2_000_000 <= held.bytes < 2_500_000
        assert 100_000 * count < held.bytes < 125_000 * count
        assert [held.has(place) for place in range(200)] == [place < count for place in range(200)]
        assert held.read(data, numbers[count:], numbers[count:], 2_000_000) == 0
        assert held.read(data, numbers[count:], numbers[count:]) == 200 - count


def test_a_place_that_is_read_into_twice(tmp_path: Path) -> None:
    url = shard(tmp_path / "a.tar", 3, lambda n: {"bin": b"." * 1000 * (n + 1)})
    with shardfeed.Dataset(url) as data:
        held = HeldSamples(1)
        held.read(data, array("Q", [1]), array("Q", [0]))
        once = held.bytes
        held.read(data, array("Q", [0, 2, 1]), array("Q", [0, 0, 0]))
        assert held.bytes == once  # the others are released
    assert held.take(0).key == "000001"
    assert held.bytes == 0


def test_samples_that_are_held(tmp_path: Path) -> None:
    url = str(write_tar(tmp_path / "a.tar", numbered(0, 6, 1000)))
    numbers = array("Q", [5, 0, 2])
    with shardfeed.Dataset(url) as data:
        held = HeldSamples(4)
        assert held.read(data, numbers, array("Q", [0, 1, 3])) == 3
        assert [held.has(place) for place in range(-1, 5)] == [
            *(False, True, True, False, True, False)
        ]
        assert 3 * 2048 < held.bytes < 3 * 4096
        for places in ([4, 1, 2], [2]):
            with pytest.raises(shardfeed.UsageError, match="not there"):
                held.read(data, numbers, array("Q", places))
        with pytest.raises(shardfeed.UsageError):
            held.read(data, array("Q", [6]), array("Q", [2]))  # the data set has six
    sample = held.take(1)
    assert (sample.key, bytes(sample["txt"])[:2]) == ("000000", b"0.")
    for place in (1, 2, 4):
        with pytest.raises(shardfeed.UsageError, match="no sample is held"):
            held.take(place)
    with shardfeed.Writer(f"{tmp_path}/b.tar") as writer:
        held.write(writer, 0, 1)
        with pytest.raises(shardfeed.UsageError):
            held.write(writer, 0, 1)  # it is written
        with pytest.raises(shardfeed.UsageError, match="not there"):
            held.write(writer, 3, 5)
        writer.write(sample)
    assert keys(f"{tmp_path}/b.tar") == ["000005", "000000"]
    held.drop(3)
    assert held.bytes == 0


@pytest.mark.slow
def test_a_sample_that_is_larger_than_the_usual_memory(tmp_path: Path) -> None:
    """`memory` is that of the library too, unless `reader` says another one."""
    url = shard(tmp_path / "a.tar", 2, lambda n: {"bin": bytes(300 * MIB if n else 10)})
    common: Any = {"samples": 2, "shuffle": True, "workers": 0}
    with pytest.raises(shardfeed.Error, match="help: raise memory"):
        shardfeed.reshard(url, f"{tmp_path}/no/", **common)
    reader = {"memory": "200MiB"}
    with pytest.raises(shardfeed.Error, match="help: raise memory"):
        shardfeed.reshard(url, f"{tmp_path}/no-2/", memory="1GiB", reader=reader, **common)
    report = shardfeed.reshard(url, f"{tmp_path}/out/", memory="400MiB", **common)
    assert report.counts == {"made": 1}
    assert os.path.getsize(report.outputs[0]) > 300 * MIB
