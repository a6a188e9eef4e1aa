from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import ItemsView, KeysView, Mapping, ValuesView

import pytest
import shardfeed
from conftest import numbered, write_tar


@pytest.fixture
def sample(tmp_path) -> shardfeed.Sample:
    members = [("a/1.jpg", b"\xff\xd8"), ("a/1.seg.png", b"png"), ("a/1.cls", b"")]
    return next(iter(shardfeed.Stream(write_tar(tmp_path / "t.tar", members))))


def test_is_a_mapping(sample):
    assert isinstance(sample, Mapping)
    assert list(sample) == ["jpg", "seg.png", "cls"]
    assert len(sample) == 3
    assert bytes(sample["jpg"]) == b"\xff\xd8"
    assert "jpg" in sample
    assert "JPG" not in sample
    assert 1 not in sample
    assert [bytes(view) for view in sample.values()] == [b"\xff\xd8", b"png", b""]
    assert [(name, bytes(view)) for name, view in sample.items()] == [
        ("jpg", b"\xff\xd8"),
        ("seg.png", b"png"),
        ("cls", b""),
    ]
    assert isinstance(sample.keys(), KeysView)
    assert isinstance(sample.values(), ValuesView)
    assert isinstance(sample.items(), ItemsView)
    assert sample.get("jpg") == b"\xff\xd8"
    assert sample.get("no") is None
    assert sample.get("no", 5) == 5
    assert sample == {"jpg": b"\xff\xd8", "seg.png": b"png", "cls": b""}
    assert dict(sample) == sample
    assert {**sample}.keys() == sample.keys()
    assert sample.to_dict() == {"jpg": b"\xff\xd8", "seg.png": b"png", "cls": b""}
    assert all(type(value) is bytes for value in sample.to_dict().values())


def test_missing_field_is_a_key_error_that_lists_the_fields(sample, tmp_path):
    other = write_tar(
        tmp_path / "d.tar", [("a/1.jpg", b""), ("a/1.seg.png", b""), ("a/1.cls", b"")]
    )
    for one in (sample, pickle.loads(pickle.dumps(sample)), shardfeed.Dataset(other)[0]):
        for use in (one.__getitem__, one.array):
            with pytest.raises(KeyError) as raised:
                use("jpeg")
            assert isinstance(raised.value, shardfeed.Error)
            assert str(raised.value) == (
                "the sample has no field 'jpeg'; help: its fields are 'jpg', 'seg.png', 'cls'"
            )


def test_key_shard_and_repr(sample, tmp_path):
    assert sample.key == "a/1"
    assert sample.shard == str(tmp_path / "t.tar")
    assert repr(sample) == "<shardfeed.Sample 'a/1' jpg: 2 bytes, seg.png: 3 bytes, cls: 0 bytes>"


def test_cannot_be_changed(sample):
    view = sample["jpg"]
    assert type(view) is memoryview
    assert view.readonly
    assert view.format == "B"
    assert view.contiguous
    with pytest.raises(TypeError):
        view[0] = 0
    for name in ("key", "shard", "other"):
        with pytest.raises(AttributeError):
            setattr(sample, name, 1)
    with pytest.raises(TypeError):
        sample["jpg"] = b""


def test_copies(sample):
    assert copy.copy(sample) is sample
    assert copy.deepcopy(sample) is sample
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        loaded = pickle.loads(pickle.dumps(sample, protocol))
        assert type(loaded) is shardfeed.Sample
        assert loaded == sample
        assert (loaded.key, loaded.shard, list(loaded)) == (
            sample.key,
            sample.shard,
            list(sample),
        )
        assert loaded["jpg"].readonly
        assert pickle.loads(pickle.dumps(loaded)) == sample


def test_views_outlive_everything(tmp_path):
    path = write_tar(tmp_path / "t.tar", numbered(0, 3000, size=100))
    stream = shardfeed.Stream(path, memory="1MiB")
    views = []
    halves = []
    samples = []
    for number, sample in enumerate(stream):
        if number % 100 == 0:
            views.append((number, sample["txt"]))
            halves.append((number, sample["txt"][:50]))
        if number % 250 == 0:
            samples.append((number, sample))
    stream.close()
    del stream, sample
    gc.collect()
    noise = [bytes(100_000) for _ in range(100)]
    for number, view in views:
        assert view == f"{number}".encode().ljust(100, b".")
    del views
    gc.collect()
    for number, view in halves:
        assert view == f"{number}".encode().ljust(50, b".")
    for number, sample in samples:
        assert sample.key == f"{number:06d}"
        assert sample.shard == str(path)
        assert sample.to_dict() == {
            "txt": f"{number}".encode().ljust(100, b"."),
            "cls": f"{number % 10}".encode(),
        }
    assert noise


def test_views_outlive_a_collected_cycle(tmp_path):
    path = write_tar(tmp_path / "t.tar", numbered(0, 500))

    class Holder:
        pass

    holder = Holder()
    holder.stream = shardfeed.Stream(path)
    holder.iterator = iter(holder.stream)
    holder.samples = [next(holder.iterator) for _ in range(300)]
    holder.self = holder
    view = holder.samples[250]["txt"]
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None
    assert bytes(view) == b"250......."


def test_numpy_takes_views_without_a_copy(sample):
    numpy = pytest.importorskip("numpy")
    array = numpy.frombuffer(sample["seg.png"], numpy.uint8)
    assert array.tolist() == list(b"png")
    assert not array.flags.writeable


def test_rebuilt_from_its_values(shards) -> None:
    (sample, *_) = shardfeed.Stream(shards(1, 2))
    for items in (sample, sample.items(), ((name, bytes(view)) for name, view in sample.items())):
        rebuilt = type(sample)(items)
        assert dict(rebuilt) == dict(sample)
        assert rebuilt["txt"] == b"0........."
        assert list(rebuilt) == ["txt", "cls"]
        assert rebuilt.to_dict() == sample.to_dict()
        assert dict(pickle.loads(pickle.dumps(rebuilt))) == dict(sample)
        assert "txt" in repr(rebuilt)
        for lost in (lambda: rebuilt.key, lambda: rebuilt.shard, rebuilt.decode):  # noqa: B023
            with pytest.raises(shardfeed.UsageError, match="has lost"):
                lost()
    lengths = shardfeed.Sample((name, len(view)) for name, view in sample.items())
    assert dict(lengths) == {"txt": 10, "cls": 1}
    assert pickle.loads(pickle.dumps(lengths))["txt"] == 10
    assert not shardfeed.Sample()
