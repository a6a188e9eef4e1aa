"""loader(device=): batches that are on their way while the program has the one before."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

import shardfeed.torch  # noqa: E402
from batches import DTYPES, npy, ramps, rows_tar  # noqa: E402
from devices import LateDevice  # noqa: E402
from shardfeed.torch import _device  # noqa: E402

pytestmark = pytest.mark.slow

OPTIONS: dict[str, Any] = {"batch": 5, "shuffle": 9, "shuffle_shards": True, "seed": 11}


@pytest.fixture
def url(tmp_path) -> str:
    return "::".join(ramps(tmp_path / f"{n}.tar", 10 + n) for n in range(4))


@pytest.fixture(params=["", "at once", "random"], ids=["late", "at once", "random"])
def device(request, monkeypatch) -> LateDevice:
    """What stands in for the devices "meta" and "meta:1", which loader() is given."""
    made = LateDevice(request.param)
    monkeypatch.setitem(_device.TRANSFERS, "meta", lambda place: made)
    return made


def loader(url: str, **options: Any) -> shardfeed.torch.Loader:
    return shardfeed.torch.loader(url, device="meta", **options)


def classes(batches: Any) -> list[list[int]]:
    return [batch["cls"].tolist() for batch in batches]


def tensors_in(value: Any) -> list[Any]:
    found: list[Any] = []
    _device.map_tensors(value, lambda tensor: found.append(tensor) or tensor)
    return found


def equal(one: Any, other: Any) -> bool:
    assert type(one) is type(other)
    ours, others = tensors_in(one), tensors_in(other)
    assert len(ours) == len(others) > 0
    return all(
        a.dtype is b.dtype and a.shape == b.shape and torch.equal(a, b)
        for a, b in zip(ours, others)
    )


# ---- What comes ---------------------------------------------------------------------------------


def test_the_same_tensors_of_every_type(device, tmp_path):
    types = [name for name in DTYPES if name not in ("u2", "u4", "u8")]  # before PyTorch 2.3
    rows = [
        {
            **{f"{name}.npy": npy(np.full((2, 3), n % 2, name)) for name in types},
            "r.npy": npy(np.full((n % 4, 2), n, "f4")),
            "txt": b"t%d" % n,
        }
        for n in range(40)
    ]
    url = rows_tar(tmp_path / "t.tar", rows)
    wanted = list(shardfeed.torch.loader(url, batch=7, ragged="offsets", keys=True))
    batches = loader(url, batch=7, ragged="offsets", keys=True)
    for _ in range(2):
        found = list(batches)  # kept, all of them
        assert len(found) == len(wanted) == 6
        for item, plain in zip(found, wanted):
            assert list(item) == list(plain)
            assert equal(item, plain)
            assert item["__key__"] == plain["__key__"]
            assert list(item["txt"]) == list(plain["txt"])
            assert isinstance(item["r.npy"], shardfeed.Ragged)
            # Of each, the allocator of the device was told who uses it.
            handed = {tensor.data_ptr() for tensor in tensors_in(item) if tensor.numel()}
            assert handed <= device.handed_over


class Pair(NamedTuple):
    image: Any
    label: Any


def nested(batch: dict[str, Any]) -> Any:
    images = batch["x.npy"].reshape(-1, 1, 4, 4).float()
    return (
        images.contiguous(memory_format=torch.channels_last),
        [Pair(images.transpose(2, 3), {"label": batch["cls"], "none": None})],
        images[:, :, ::2],
        torch.zeros(0, 3),
        "text",
    )


def test_what_a_batch_transform_gives(device, url):
    plain = shardfeed.torch.loader(url, **OPTIONS, batch_transform=nested)
    wanted = list(plain)
    found = list(loader(url, **OPTIONS, batch_transform=nested))
    for item, other in zip(found, wanted):
        first, (pair,), part, empty, text = item
        assert isinstance(item, tuple)
        assert isinstance(pair, Pair)
        assert pair.label["none"] is None
        assert text == "text"
        kept = first, pair.image, pair.label["label"], part
        others = other[0], other[1][0].image, other[1][0].label["label"], other[2]
        assert equal(kept, others)
        # Colours stay last; what had gaps, or another order, has not.
        assert first.stride() == other[0].stride()
        assert pair.image.is_contiguous()
        assert part.is_contiguous()
        assert empty.device.type == "meta"  # nothing to copy: PyTorch itself moves it
    assert len(found) == len(wanted) == 10


class Marked(torch.Tensor):
    pass


def test_what_is_more_than_numbers_is_for_pytorch_to_move(device, url):
    def make(batch: dict[str, Any]) -> Any:
        numbers = batch["cls"].double()
        weight = torch.ones(2, requires_grad=True)
        return {
            "marked": numbers.as_subclass(Marked),
            "grows": weight * 2,
            "there": numbers.to("meta"),
            "cls": batch["cls"],
        }

    for item in loader(url, batch=20, batch_transform=make):
        assert isinstance(item["marked"], Marked)
        for name in ("marked", "grows", "there"):
            assert item[name].device.type == "meta"
        assert item["cls"].device.type == "cpu"  # the one that the device has copied


def test_tensors_that_are_made_in_inference_mode_can_be_trained_on(device, url):
    batches = iter(loader(url, batch=20))
    with torch.inference_mode():
        next(batches)
    weight = torch.ones(1, requires_grad=True)
    (weight * next(batches)["cls"].float()).sum().backward()
    assert weight.grad is not None


# ---- When it is copied, and where it lies -------------------------------------------------------


def test_the_next_batch_is_on_its_way_before_this_one_is_given(device, url):
    batches = iter(loader(url, batch=5, decode="cls:int"))
    for number in range(1, 10):
        next(batches)
        begun = [count for what, count in device.log if what == "begin"]
        handed = [count for what, count in device.log if what == "hand over"]
        assert (begun[-1], handed[-1]) == (number + 1, number)
        assert device.log.index(("begin", number + 1)) < device.log.index(("hand over", number))
    assert len(list(batches)) == 1
    assert device.log[-1] == ("hand over", 10)


def test_without_looking_ahead(device, url):
    batches = iter(loader(url, batch=5, decode="cls:int", move_ahead=False))
    for number in range(1, 4):
        next(batches)
        order = [entry for entry in device.log if entry[0] in ("begin", "hand over")]
        assert order[-2:] == [("begin", number), ("hand over", number)]
    plain = list(loader(url, batch=5, move_ahead=False))
    assert classes(plain) == classes(shardfeed.torch.loader(url, batch=5))


def test_pinned_memory_is_used_again(device, url):
    batches = loader(url, batch=5)
    for _ in range(3):
        for _ in batches:
            pass
    assert len(device.pieces) == 2  # of 30 batches
    waits = [mark for what, mark in device.log if what == "wait"]
    assert len(waits) == 30 - 2
    # A piece is waited for with the mark of the last copies from it, two batches ago.
    assert waits == [2 * number for number in range(1, 29)]
    size = device.pieces[0].numel()
    larger = loader(url, batch=40)
    assert classes(larger) == classes(shardfeed.torch.loader(url, batch=40))
    assert max(piece.numel() for piece in device.pieces) > 4 * size


def test_pinned_memory_grows_with_the_batches(device, tmp_path):
    rows = [{"x.npy": npy(np.full(1 + 97 * n, n, "i8"))} for n in range(30)]
    url = rows_tar(tmp_path / "t.tar", rows)
    found = list(loader(url, batch=3, ragged="offsets"))
    for number, item in enumerate(found):
        assert [int(row[0]) for row in item["x.npy"]] == [*range(3 * number, 3 * number + 3)]
        assert all((row == row[0]).all() for row in item["x.npy"])


def test_not_without_pinned_memory(device, url):
    (item, *_) = loader(url, batch=5, pin_memory=False)
    assert item["cls"].device.type == "meta"
    assert device.log == []


def test_each_device_has_its_own(monkeypatch, url):
    made = {}

    def new(place: Any) -> LateDevice:
        return made.setdefault(place, LateDevice())

    monkeypatch.setitem(_device.TRANSFERS, "meta", new)
    batches = shardfeed.torch.loader(url, batch=5, device="meta:1")
    assert pickle.loads(pickle.dumps(batches))._mover is None
    assert len(classes(batches)) == 10
    assert list(made) == [torch.device("meta", 1)]
    assert batches._mover is not None
    copy = pickle.loads(pickle.dumps(batches.stream.samples.recipe))
    assert classes(loader(copy, batch=5)) == classes(shardfeed.torch.loader(url, batch=5))


# ---- Positions ----------------------------------------------------------------------------------

KINDS: list[dict[str, Any]] = [
    {},
    {"epoch_samples": 30},
    {"epochs": 2},
    {"bucket": "16", "decode": "x.npy, cls:int"},
    {"transform": dict},
    {"transform": dict, "transform_threads": 2},
]


@pytest.mark.parametrize("more", KINDS, ids=lambda more: ",".join(more))
def test_states_are_those_without_a_device(device, url, more):
    plain = shardfeed.torch.loader(url, **OPTIONS, **more)
    batches = loader(url, **OPTIONS, **more)

    def same_state() -> bool:
        states = [each.state_dict() for each in (batches, plain)]
        for state in states if "bucket" in more else []:
            state.pop("state")  # has more than one form of a position
        return states[0] == states[1]

    assert same_state()
    for epoch in range(2):
        iterators = iter(plain), iter(batches)
        while (item := next(iterators[0], None)) is not None:
            assert next(iterators[1])["cls"].tolist() == item["cls"].tolist()
            assert same_state()
            assert batches.epoch == plain.epoch
        assert next(iterators[1], None) is None
        assert same_state()
        assert batches.epoch == plain.epoch == (epoch + 1) * more.get("epochs", 1)
        assert batches.stats()["samples"] == plain.stats()["samples"]


@pytest.mark.parametrize("more", KINDS, ids=lambda more: ",".join(more))
def test_a_run_that_is_resumed_anywhere(device, url, more):
    whole = shardfeed.torch.loader(url, **OPTIONS, **more)
    epochs = [classes(whole) for _ in range(2)]
    count = len(epochs[0])
    for stop in (0, 1, 2, count - 1, count):
        batches = loader(url, **OPTIONS, **more)
        iterator = iter(batches)
        taken = classes(next(iterator) for _ in range(stop))
        resumed = loader(url, **OPTIONS, **more)
        resumed.load_state_dict(json.loads(json.dumps(batches.state_dict())))
        while resumed.epoch < 2 * more.get("epochs", 1):
            taken += classes(resumed)
        assert taken == epochs[0] + epochs[1]
        assert classes(iterator) == epochs[0][stop:]  # saving changed nothing


def test_an_epoch_that_is_left(device, url):
    for more in ({}, {"epoch_samples": 30}):
        plain = shardfeed.torch.loader(url, **OPTIONS, **more)
        batches = loader(url, **OPTIONS, **more)
        for stop in (3, 0, 1, 6):
            one, other = iter(plain), iter(batches)
            wanted = classes(next(one) for _ in range(stop))
            assert classes(next(other) for _ in range(stop)) == wanted
            assert batches.epoch == plain.epoch
        assert classes(batches) == classes(plain)


def test_an_interrupt_while_the_next_batch_is_moved_loses_nothing(device, url):
    whole = classes(shardfeed.torch.loader(url, batch=5, decode="cls:int"))
    for copy in (1, 2, 5, 10):
        batches = loader(url, batch=5, decode="cls:int")
        iterator = iter(batches)
        device.stop_at = device.mark() + copy
        taken = classes(next(iterator) for _ in range(max(copy - 2, 0)))
        with pytest.raises(KeyboardInterrupt):
            next(iterator)
        resumed = loader(url, batch=5, decode="cls:int")
        resumed.load_state_dict(batches.state_dict())
        assert taken + classes(resumed) == whole
        assert taken + classes(iterator) == whole


# ---- What goes wrong comes in its turn ----------------------------------------------------------


def test_an_error_comes_after_the_batches_before_it(device, tmp_path):
    rows = [{"cls": b"%d" % n if n != 17 else b"?"} for n in range(30)]
    url = rows_tar(tmp_path / "t.tar", rows)
    batches = loader(url, batch=5, decode="cls:int")
    iterator = iter(batches)
    assert classes(next(iterator) for _ in range(3)) == [[*range(n, n + 5)] for n in (0, 5, 10)]
    for _ in range(3):
        with pytest.raises(shardfeed.FormatError, match="000017"):
            next(iterator)
    resumed = loader(url, batch=5, decode="cls:int", on_error="skip_sample", log=None)
    resumed.load_state_dict(batches.state_dict())
    assert classes(resumed)[0] == [15, 16, 18, 19, 20]


def test_what_functions_raise_comes_once_and_in_its_turn(device, tmp_path):
    def hook(data: bytes) -> int:
        if bytes(data) == b"6":
            raise ZeroDivisionError
        return int(data)

    def skip(_: Any) -> None:
        raise PermissionError

    url = ramps(tmp_path / "t.tar", 15)
    batches = iter(loader(url, batch=5, decode="cls:bytes, x.npy", hooks={"cls": hook}))
    assert next(batches)["cls"] == [*range(5)]
    with pytest.raises(ZeroDivisionError):
        next(batches)
    assert [batch["cls"] for batch in batches] == [[*range(10, 15)]]

    rows = [{"cls": b"%d" % n if n != 7 else b"?"} for n in range(15)]
    bad = rows_tar(tmp_path / "bad.tar", rows)
    batches = iter(loader(bad, batch=5, on_error="skip_sample", on_skip=skip, log=None))
    assert next(batches)["cls"].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(PermissionError):
        next(batches)
    assert classes(batches) == [[5, 6, 8, 9, 10], [11, 12, 13, 14]]


def test_a_batch_does_not_wait_for_one_that_does_not_come(device, tmp_path):
    path = tmp_path / "fifo"
    whole = Path(ramps(tmp_path / "t.tar", 30, 4096)).read_bytes()
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR)
    os.set_blocking(descriptor, False)
    written = os.write(descriptor, whole[:60_000])  # one sample, and a part of the next
    try:
        batches = iter(loader(str(path), batch=1, timeout=0.3, decode="cls:int"))
        first = next(batches)
        assert first["cls"].tolist() == [0]
        with pytest.raises(shardfeed.TimeoutError):
            next(batches)
    finally:
        assert written == 60_000
        os.close(descriptor)


def test_after_close(device, url):
    batches = loader(url, batch=5)
    iterator = iter(batches)
    kept = next(iterator)
    batches.close()
    with pytest.raises(shardfeed.UsageError, match="closed"):
        next(iterator)
    assert kept["cls"].tolist() == [*range(5)]
    assert len(classes(batches)) == 10


# ---- Real devices -------------------------------------------------------------------------------


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a device of CUDA")
def test_on_cuda(url):
    wanted = classes(shardfeed.torch.loader(url, **OPTIONS))
    for more in ({}, {"move_ahead": False}, {"pin_memory": False}):
        batches = shardfeed.torch.loader(url, **OPTIONS, **more, device="cuda")
        for _ in range(2):
            batches.set_epoch(0)
            busy = torch.ones(2000, 2000, device="cuda")
            found = []
            for batch in batches:  # the program's stream is behind all the time
                for _ in range(20):
                    busy = busy @ busy * 1e-4
                found.append(batch["cls"] * 2 // 2)
                del batch
            assert [each.tolist() for each in found] == wanted


def test_what_is_asked_of_cuda(monkeypatch):
    """The calls, in their order, where there is no device that could show what they do."""
    calls: list[Any] = []

    class Stream:
        def __init__(self, device: Any) -> None:
            self.device = device

        def record_event(self) -> Any:
            calls.append("record_event")
            return Event()

        def wait_event(self, event: Any) -> None:
            assert isinstance(event, Event)
            calls.append(("wait_event", self.device))

    class Event:
        def synchronize(self) -> None:
            calls.append("synchronize")

    class Within:
        def __init__(self, stream: Any) -> None:
            self.stream = stream

        def __enter__(self) -> None:
            calls.append("in the stream for copies")

        def __exit__(self, *_: object) -> None:
            calls.append("out of it")

    def to(tensor: Any, device: Any, *, non_blocking: bool) -> Any:
        assert non_blocking
        calls.append("to")
        return tensor.clone()

    empty = torch.empty
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", Within)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream("current"))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.Tensor, "to", to)
    monkeypatch.setattr(
        torch.Tensor,
        "record_stream",
        lambda _, stream: calls.append(("record_stream", stream.device)),
    )
    monkeypatch.setattr(torch, "empty", lambda *a, pin_memory=False, **o: empty(*a, **o))
    device = _device.numbered(torch.device("cuda"))
    assert device == torch.device("cuda:1")
    mover = _device.Mover(device)
    copies = ["in the stream for copies", "to", "out of it"]
    moved = mover.begin({"x": torch.arange(3), "y": (torch.ones(2),)})
    assert calls == [*copies, *copies, "record_event"]
    calls.clear()
    value = moved.hand_over()
    assert value["x"].tolist() == [0, 1, 2]
    current = ("record_stream", "current")
    assert calls == [("wait_event", "current"), current, current]
    calls.clear()
    mover.begin(torch.ones(2))
    assert "synchronize" not in calls
    mover.begin(torch.ones(2))
    assert calls.count("synchronize") == 1
