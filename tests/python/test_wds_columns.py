"""Stages of shardfeed.wds that run on the columns of a block: the same results."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import shardfeed.wds as wds
from conftest import write_tar
from shardfeed.wds import _columns, _compile, _reading

np = pytest.importorskip("numpy")


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def shard(path: Path, arrays: list[Any], labels: list[bytes] | None = None) -> str:
    labels = labels or [b"%d" % i for i in range(len(arrays))]
    members = [
        member
        for i, (array, label) in enumerate(zip(arrays, labels))
        for member in ((f"{i:04d}.npy", npy(array)), (f"{i:04d}.cls", label))
    ]
    return str(write_tar(path, members))


def data(url: Any) -> Any:
    return wds.WebDataset(url, shardshuffle=False)


@pytest.fixture
def stacked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of batches that are made of .npy files by one copy."""
    sizes: list[int] = []
    stack = _columns._stacked

    def counted(files: list[bytes], layout: Any) -> Any:
        sizes.append(len(files))
        return stack(files, layout)

    monkeypatch.setattr(_columns, "_stacked", counted)
    return sizes


def test_explain_says_what_runs_on_columns(tmp_path: Path) -> None:
    source = data(shard(tmp_path / "a.tar", [np.zeros(3)] * 4)).shuffle(5, seed=1)
    text = source.decode().rename(x="npy").to_tuple("x", "cls").batched(2).explain()
    assert [line.split()[0] for line in text.splitlines() if "columns" in line] == [
        "decode",
        "rename(x='npy')",
        "to_tuple('x',",
        "batched(2,",
    ]
    text = source.select(bool).select(len).decode().select(bool).to_tuple("npy").explain()
    assert [line.split()[0] for line in text.splitlines() if "columns" in line] == [
        "select(bool)",
        "select(len)",
        "decode",
    ]
    for other in (
        source.decode("pil"),
        source.decode(len).batched(2),
        source.select(bool).to_tuple("npy").batched(2),
        source.select(bool).rename(x="npy").decode(),
        source.compose(wds.select(bool, 1)).decode(),
        source.rename(x="npy"),
        source.compose(wds.threads(2)).decode().batched(2),
        source.batched(2, collation_fn=None),
        wds.WebDataset("a.tar", select_files=bool, shardshuffle=False).decode().batched(2),
    ):
        assert "columns" not in other.explain()


@pytest.mark.parametrize(
    "made",
    [
        lambda i: np.full((3, 5), i, "f4"),
        lambda i: np.asfortranarray(np.arange(24, dtype="i2").reshape(2, 3, 4) + i),
        lambda i: np.array(i, "f8"),
        lambda i: np.array([f"{i:03d}", "b"], "U3"),
        lambda i: np.array([b"%03d" % i], "S3"),
        lambda i: np.full((40, 50), i, "c8"),
        lambda i: np.array([i % 2 == 0]),
    ],
)
@pytest.mark.parametrize("shuffle", [0, 50])
def test_arrays_of_one_layout_are_stacked_by_one_copy(
    tmp_path: Path, stacked: list[int], made: Any, shuffle: int
) -> None:
    arrays = [made(i) for i in range(90)]
    source = data(shard(tmp_path / "a.tar", arrays))
    if shuffle:
        source = source.shuffle(shuffle, seed=1)
    found = list(source.decode().to_tuple("npy", "cls").batched(40))
    assert [len(labels) for _, labels in found] == [40, 40, 10]
    assert stacked  # single samples of a shuffle, while its buffer grows, go one by one
    assert shuffle or stacked == [40, 40, 10]
    for batch, labels in found:
        expected = np.array([arrays[label] for label in labels])
        assert batch.dtype == expected.dtype
        assert np.array_equal(batch, expected)
        assert batch.flags.writeable
        assert batch.flags.c_contiguous
        assert batch.flags.owndata


def test_arrays_in_another_order_of_bytes_are_what_numpy_makes_of_them(
    tmp_path: Path, stacked: list[int]
) -> None:
    arrays = [np.full((3,), i, ">f4") for i in range(70)]
    found = list(data(shard(tmp_path / "a.tar", arrays)).decode().to_tuple("npy").batched(69))
    expected = [np.array(arrays[:69]), np.array(arrays[69:])]
    assert [batch.dtype for (batch,) in found] == [each.dtype for each in expected]
    assert all(np.array_equal(batch, each) for (batch,), each in zip(found, expected))
    assert not stacked


def test_unequal_shapes_end_at_their_batch(tmp_path: Path) -> None:
    arrays = [np.zeros(4 if i == 55 else 3) for i in range(90)]
    batches = iter(data(shard(tmp_path / "a.tar", arrays)).decode().to_tuple("npy").batched(20))
    assert [next(batches)[0].shape for _ in range(2)] == [(20, 3), (20, 3)]
    with pytest.raises(AssertionError, match="all shapes must be equal"):
        next(batches)


def test_an_array_taken_twice_is_one_object(tmp_path: Path) -> None:
    source = data(shard(tmp_path / "a.tar", [np.zeros(3)] * 70)).decode()
    assert all(a is b for a, b in source.to_tuple("npy", "npy"))
    assert all(s["x"] is s["y"] for s in source.rename(x="npy", y="npy"))


def events(package: Any, url: Any, build: Any, answer: bool) -> list[Any]:
    """What a program and its handler see, in the order of time."""
    seen: list[Any] = []

    def handler(exn: Exception) -> bool:
        seen.append(type(exn).__name__)
        return answer

    for item in build(package.WebDataset(url, shardshuffle=False), handler):
        seen.append(np.asarray(item[-1]).tolist())
    return seen


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize("size", [1, 7, 64])
def test_faults_reach_the_handler_where_they_did(tmp_path: Path, answer: bool, size: int) -> None:
    original = pytest.importorskip("webdataset")
    labels = [b"no number" if i in (77, 140, 141, 250) else b" %d\n" % i for i in range(300)]
    url = shard(tmp_path / "a.tar", [np.zeros((8, 8))] * 300, labels)

    def whole(source: Any, handler: Any) -> Any:
        return source.decode(handler=handler).to_tuple("npy", "cls").batched(size)

    def no_batches(source: Any, handler: Any) -> Any:
        return source.decode(handler=handler).to_tuple("npy", "cls")

    def missing(source: Any, handler: Any) -> Any:
        return source.to_tuple("npy", "x", handler=handler).batched(size)

    def blanks(source: Any, handler: Any) -> Any:
        return source.rename(x="a b", handler=handler).to_tuple("x", "npy").batched(size)

    for build in (whole, no_batches, missing, blanks):
        expected = events(original, url, build, answer)
        assert "DecodingError" in expected or build in (missing, blanks)
        assert events(wds, url, build, answer) == expected


@pytest.mark.parametrize("taken", [0, 1, 3, 11])
def test_a_resumed_pass_gives_the_same_batches(tmp_path: Path, taken: int) -> None:
    urls = [
        shard(tmp_path / f"{n}.tar", [np.full(9, n * 100 + i) for i in range(60)]) for n in (0, 1)
    ]

    def made() -> Any:
        source = wds.WebDataset(urls, shardshuffle=2, detshuffle=True, seed=1).shuffle(30, seed=2)
        return source.decode().to_tuple("npy", "cls").batched(8).with_epoch(20)

    expected = [labels.tolist() for _, labels in made()]
    resumed = made()
    resumed.load_state_dict({**resumed.state_dict(), "items": taken})
    assert [labels.tolist() for _, labels in resumed] == expected[taken:]


def test_columns_give_what_stages_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = shard(tmp_path / "a.tar", [np.full((2, i % 2 + 1), i) for i in range(200)])
    source = data(url).shuffle(30, seed=1).decode().rename(label="cls", keep=True)
    by_columns = list(source)
    monkeypatch.setattr(_compile, "_column_steps", lambda *_: [])
    one_by_one = list(source)
    assert [list(sample) for sample in by_columns] == [list(sample) for sample in one_by_one]
    for a, b in zip(by_columns, one_by_one):
        assert all(np.array_equal(a[name], b[name]) for name in b)


def select_events(package: Any, url: Any, change: Any, size: int, answer: Any) -> list[Any]:
    """What a function of select(), the handler and the program see, in the order of time."""
    seen: list[Any] = []

    def predicate(sample: Any) -> Any:
        seen.append(list(sample))
        return change(sample, seen)

    def second(sample: Any) -> bool:
        seen.append(("second", sample.get("seen"), sample["__key__"]))
        return True

    def handler(exn: Exception) -> Any:
        seen.append(type(exn).__name__)
        return answer

    source = package.WebDataset(url, shardshuffle=False).shuffle(9, seed=1)
    source = source.select(predicate).select(second).decode(handler=handler).to_tuple("npy", "cls")
    try:
        for arrays, labels in source.batched(size) if size else source:
            seen.append((np.asarray(arrays).tolist(), np.asarray(labels).tolist()))
    except LookupError as exn:
        seen.append(repr(exn))
    return seen


def all_but_some(sample: Any, seen: Any) -> Any:
    return sample["__key__"][-1] not in "37"


def few(sample: Any, seen: Any) -> Any:
    return sample["__key__"][-1] in "37"


def changing(sample: Any, seen: Any) -> Any:
    number = int(sample["__key__"])
    if number % 50 == 20:
        sample["cls"] = b"9%d" % number
    if number % 50 == 30:
        sample["seen"] = "added"
    if number % 50 == 40:
        sample["npy"] = sample.pop("npy")
    return number % 50 != 45


def failing(sample: Any, seen: Any) -> Any:
    if sample["__key__"] == "0133":
        raise LookupError("no answer")
    return True


def by_what_came(sample: Any, seen: Any) -> Any:
    return len(seen) % 11


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize("size", [0, 1, 7, 64])
@pytest.mark.parametrize("change", [all_but_some, few, changing, failing, by_what_came])
def test_functions_of_select_are_called_where_they_were(
    tmp_path: Path, change: Any, size: int, answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = pytest.importorskip("webdataset")
    monkeypatch.setattr(_reading, "small_shard", 0)
    labels = [b"no number" if i in (377, 378) else b"%d" % i for i in range(400)]
    url = shard(tmp_path / "a.tar", [np.full(3, i) for i in range(400)], labels)
    chosen = 0
    choose = _columns._Parts.chosen

    def counted(*args: Any) -> Any:
        nonlocal chosen
        chosen += 1
        return choose(*args)

    monkeypatch.setattr(_columns._Parts, "chosen", counted)
    expected = select_events(original, url, change, size, answer)
    assert select_events(wds, url, change, size, answer) == expected
    assert chosen > 0


def test_select_runs_one_by_one_where_it_gains_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[int] = []
    choose = _columns._Parts.chosen
    monkeypatch.setattr(
        _columns._Parts,
        "chosen",
        lambda self, columns: (parts.append(columns.count), choose(self, columns))[1],
    )
    arrays = shard(tmp_path / "a.tar", [np.full(3, i) for i in range(4000)])
    texts = str(write_tar(tmp_path / "b.tar", [(f"{i:04d}.cls", b"1") for i in range(4000)]))
    assert len(list(data(texts).select(bool).decode())) == 4000
    assert not parts
    assert len(list(data(arrays).select(bool).decode())) == 4000
    assert sum(parts) == 4000
    parts.clear()
    assert len(list(data(arrays).select(lambda s: s["__key__"][-1] == "0").decode())) == 400
    assert 0 < sum(parts) <= 256


def test_a_resumed_pass_selects_again(tmp_path: Path) -> None:
    url = shard(tmp_path / "a.tar", [np.full(3, i) for i in range(400)])

    def made() -> Any:
        source = data(url).shuffle(30, seed=2).select(lambda sample: "3" not in sample["__key__"])
        return source.decode().to_tuple("npy", "cls").batched(8)

    expected = [labels.tolist() for _, labels in made()]
    resumed = made()
    resumed.load_state_dict({**resumed.state_dict(), "items": 11})
    assert [labels.tolist() for _, labels in resumed] == expected[11:]
