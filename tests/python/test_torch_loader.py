"""shardfeed.torch.loader: batches of tensors without workers. Skipped without PyTorch."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import shardfeed
from batches import npy, ramps, rows_tar

pytestmark = pytest.mark.slow


@pytest.fixture
def url(tmp_path) -> str:
    """Four shards of 10, 11, 12 and 13 arrays with their numbers."""
    paths = [ramps(tmp_path / f"{n}.tar", 10 + n) for n in range(4)]
    return "::".join(paths)


def classes(batches) -> list[list[int]]:
    return [batch["cls"].tolist() for batch in batches]


def test_tensors(torch, datasets, url):
    with datasets.loader(url, batch=8) as batches:
        items = list(batches)
    assert [len(item["cls"]) for item in items] == [8, 8, 8, 8, 8, 6]
    for item in items:
        assert list(item) == ["x.npy", "cls"]
        assert item["x.npy"].dtype is torch.int64
        assert torch.equal(item["x.npy"][:, 0], item["cls"])
    keyed = next(iter(datasets.loader(url, batch=3, keys=True, decode="cls:int")))
    assert list(keyed) == ["cls", "__key__"]
    assert keyed["__key__"] == ["000000", "000001", "000002"]
    assert "device=None" in repr(batches)


def test_tensors_on_a_device(torch, datasets, tmp_path):
    rows = [{"x.npy": npy(np.ones((n, 2), "f4")), "txt": b"t%d" % n} for n in range(4)]
    path = rows_tar(tmp_path / "t.tar", rows)
    # A device that is always there, and is not where tensors are anyway.
    (item,) = datasets.loader(path, batch=9, ragged="offsets", device="meta", pin_memory=True)
    ragged = item["x.npy"]
    assert isinstance(ragged, shardfeed.Ragged)
    for part in (ragged.values, ragged.offsets, ragged.shapes):
        assert part.device.type == "meta"
    assert tuple(ragged.values.shape) == (12,)
    assert list(item["txt"]) == ["t0", "t1", "t2", "t3"]
    (same,) = datasets.loader(path, batch=9, ragged="offsets", device="cpu")
    assert same["x.npy"].values.sum() == 12


def test_pinned_memory_is_for_cuda(torch, datasets, url):
    if torch.cuda.is_available():
        item = next(iter(datasets.loader(url, batch=4, pin_memory=True)))
        assert item["cls"].is_pinned()
        item = next(iter(datasets.loader(url, batch=4, device="cuda")))
        assert item["cls"].device.type == "cuda"
    else:
        item = next(iter(datasets.loader(url, batch=4, pin_memory=True)))
        assert not item["cls"].is_pinned()


def test_mask_of_an_epoch_that_is_padded(torch, datasets, url):
    shardfeed.Dataset(url).close()  # makes the index files
    options = {"batch": 8, "decode": "cls:int", "even": "pad", "world_size": 4}
    lengths, rows = [], 0
    for rank in range(4):
        items = list(datasets.loader(url, rank=rank, **options, device="cpu"))
        lengths.append(sum(len(item["cls"]) for item in items))
        assert [list(item) for item in items] == [["cls", "__valid__"]] * 2
        assert all(item["__valid__"].dtype is torch.bool for item in items)
        rows += sum(int(item["__valid__"].sum()) for item in items)
        plain = shardfeed.Stream(url, rank=rank, **options).batches()
        for item, batch in zip(items, plain):
            assert item["__valid__"].tolist() == batch.valid.tolist()
    assert lengths == [13] * 4
    assert rows == 10 + 11 + 12 + 13
    (moved, _) = datasets.loader(url, rank=0, **options, device="meta", pin_memory=True)
    assert moved["__valid__"].device.type == "meta"
    stream = datasets.Stream(url, rank=0, **options)
    loader = torch.utils.data.DataLoader(stream, batch_size=None, num_workers=1)
    assert [batch["__valid__"].sum().item() for batch in loader] == [8, 2]
    assert "__valid__" not in next(iter(datasets.loader(url, batch=8)))


def test_of_a_stream(datasets, url):
    plain = shardfeed.Stream(url, shuffle=7, seed=3, decode="cls:int")
    wanted = classes(plain.batches(5))
    assert classes(datasets.loader(plain, batch=5)) == wanted
    stream = datasets.Stream(url, shuffle=7, seed=3, decode="cls:int", batch=4)
    assert classes(datasets.loader(stream, batch=5)) == wanted
    assert len(classes(datasets.loader(stream))[0]) == 4
    hooked = datasets.loader(url, batch=3, decode="cls:bytes", hooks={"cls": int})
    assert next(iter(hooked))["cls"] == [0, 1, 2]


def test_epochs_and_length(datasets, url):
    batches = datasets.loader(url, batch=8, shuffle_shards=True, seed=2)
    stream = shardfeed.Stream(url, batch=8, shuffle_shards=True, seed=2)
    wanted = [classes(stream.batches()) for _ in range(3)]
    assert classes(batches) == wanted[0]
    assert classes(batches) == wanted[1]
    batches.set_epoch(0)
    assert classes(batches) == wanted[0]
    with pytest.raises(TypeError):
        len(batches)
    known = datasets.loader(url, batch=8, epoch_samples=30)
    assert len(known) == len(list(known)) == 4


def test_what_frameworks_look_for(torch, datasets, url):
    data = torch.utils.data
    batches = datasets.loader(url, batch=8)
    assert batches.batch_size == 8
    assert isinstance(batches.sampler, data.SequentialSampler)
    assert isinstance(batches.dataset, data.IterableDataset)
    assert [sample["cls"] for sample in batches.dataset] == [
        b"%d" % n for count in (10, 11, 12, 13) for n in range(count)
    ]
    for length in (batches, batches.dataset):
        with pytest.raises(TypeError, match="length"):
            len(length)
    known = datasets.loader(url, batch=8, epoch_samples=30)
    assert (len(known), len(known.dataset)) == (4, 30)
    shardfeed.Dataset(url).close()  # makes the index files
    for last, count in (("keep", 6), ("drop", 5)):
        indexed = datasets.loader(url, batch=8, last=last, shuffle_shards=True)
        assert (len(indexed), len(indexed.dataset)) == (count, 46)
        assert [len(list(indexed)) for _ in range(2)] == [count] * 2
    shares = [datasets.loader(url, batch=8, rank=rank, world_size=2) for rank in range(2)]
    assert [len(share) for share in shares] == [len(list(share)) for share in shares] == [3, 3]
    for more in ({}, {"batch_size": None}, {"shuffle": True}):
        with pytest.raises(shardfeed.UsageError, match=r"used as it is, and not in a DataLoader"):
            list(data.DataLoader(known, **more))


def test_counters_and_number_of_the_epoch(datasets, url):
    batches = datasets.loader(url, batch=8, decode="cls:int")
    assert (batches.epoch, batches.stats()["samples"]) == (0, 0)
    passes = 0
    while batches.epoch < 3:
        for _ in batches:
            assert batches.epoch == passes
        passes += 1
        assert batches.stats()["samples"] == 46
    assert passes == 3


@pytest.mark.parametrize("more", [{}, {"epoch_samples": 48}], ids=str)
def test_a_loop_that_was_saved_anywhere(datasets, url, more):
    whole = datasets.loader(url, **OPTIONS, **more)
    wanted = [classes(whole) for _ in range(3)]
    count = len(wanted[0])
    assert count == 10
    for stop in (0, 1, count - 1, count):  # the last one: nobody asked for the end of the epoch
        for epoch in range(3):
            batches = datasets.loader(url, **OPTIONS, **more)
            taken = [batch for _ in range(epoch) for batch in classes(batches)]
            iterator = iter(batches)
            taken += classes(next(iterator) for _ in range(stop))
            resumed = datasets.loader(url, **OPTIONS, **more)
            resumed.load_state_dict(json.loads(json.dumps(batches.state_dict())))
            while resumed.epoch < 3:
                taken += classes(resumed)
            assert taken == [batch for batches in wanted for batch in batches], (stop, epoch)


def test_misuse(torch, datasets, url):
    with pytest.raises(shardfeed.UsageError, match="batch=256"):
        datasets.loader(url)
    with pytest.raises(shardfeed.UsageError, match="transform"):
        datasets.loader(datasets.Stream(url, transform=len), batch=3)
    with pytest.raises(TypeError, match="shuffle"):
        datasets.loader(url, batch=3, shufle=1)
    with pytest.raises(
        shardfeed.UsageError, match=r"num_workers=4.*; threads=4 reads with threads"
    ):
        next(iter(datasets.loader(url, batch=3, num_workers=4)))
    with pytest.raises(shardfeed.UsageError, match="batch_size=None"):
        list(
            torch.utils.data.DataLoader(
                InLoader(datasets.loader(url, batch=3)), batch_size=None, num_workers=1
            )
        )


class InLoader:
    """What makes a loader look like a data set of one item."""

    def __init__(self, batches) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> object:
        return next(iter(self.batches))


# ---- State --------------------------------------------------------------------------------------

OPTIONS = {"batch": 5, "shuffle": 9, "shuffle_shards": True, "seed": 11}


@pytest.mark.parametrize("more", [{}, {"epoch_samples": 30}, {"epochs": 2}], ids=str)
def test_state_at_any_batch(datasets, url, more):
    """Lightning's protocol: state_dict() of the loader when a checkpoint is written, and
    load_state_dict() before the first iter() of the process that resumes.
    """
    whole = datasets.loader(url, **OPTIONS, **more)
    epochs = [classes(whole) for _ in range(3)]
    count = len(epochs[0])
    for stop in range(count + 1):
        batches = datasets.loader(url, **OPTIONS, **more)
        first = classes(batches)
        iterator = iter(batches)
        taken = classes(next(iterator) for _ in range(stop))
        state = json.loads(json.dumps(batches.state_dict()))
        assert state == json.loads(json.dumps(batches.state_dict()))
        assert state["shardfeed"] == 1
        resumed = datasets.loader(url, **OPTIONS, **more)
        resumed.load_state_dict(state)
        assert resumed.state_dict() == state
        assert [first, taken] == [epochs[0], epochs[1][:stop]]
        # Where it is known that nothing is left of that epoch, the next one comes at once.
        if stop < count or "epoch_samples" not in more:
            assert classes(resumed) == epochs[1][stop:]
        assert classes(resumed) == epochs[2]
        assert classes(iterator) == epochs[1][stop:]  # saving changed nothing


@pytest.mark.parametrize("more", [{}, {"epoch_samples": 30}], ids=str)
def test_state_between_epochs(datasets, url, more):
    whole = datasets.loader(url, **OPTIONS, **more)
    fresh = whole.state_dict()
    epochs = [classes(whole)]
    ended = whole.state_dict()
    epochs += [classes(whole), classes(whole)]
    for state, following in ((fresh, epochs), (ended, epochs[1:])):
        resumed = datasets.loader(url, **OPTIONS, **more)
        resumed.load_state_dict(state)
        assert [classes(resumed) for _ in following] == following


def test_state_of_samples(datasets, url):
    def key(sample):
        return sample.key

    stream = datasets.Stream(url, transform=key, shuffle=9, seed=1)
    whole = list(stream)
    for stop in (0, 1, 17, len(whole)):
        stream = datasets.Stream(url, transform=key, shuffle=9, seed=1)
        iterator = iter(stream)
        taken = [next(iterator) for _ in range(stop)]
        resumed = datasets.Stream(url, transform=key, shuffle=9, seed=1)
        resumed.load_state_dict(stream.state_dict())
        assert taken + list(resumed) == whole


def test_epoch_that_is_set_after_a_state_was_loaded(datasets, url):
    whole = datasets.loader(url, **OPTIONS)
    epochs = [classes(whole) for _ in range(3)]
    batches = datasets.loader(url, **OPTIONS)
    classes(batches)
    iterator = iter(batches)
    next(iterator)
    state = batches.state_dict()
    assert (state["at"], state["ended"]) == (1, False)
    for epoch, wanted in ((1, epochs[1][1:]), (2, epochs[2]), (0, epochs[0])):
        resumed = datasets.loader(url, **OPTIONS)
        resumed.load_state_dict(state)
        resumed.set_epoch(epoch)
        assert classes(resumed) == wanted


def test_state_in_a_new_process(datasets, url):
    batches = datasets.loader(url, **OPTIONS)
    iterator = iter(batches)
    taken = classes(next(iterator) for _ in range(3))
    program = (
        "import json, sys, shardfeed.torch\n"
        "url, options, state = map(json.loads, sys.argv[1:])\n"
        "batches = shardfeed.torch.loader(url, **options)\n"
        "batches.load_state_dict(state)\n"
        "print(json.dumps([batch['cls'].tolist() for batch in batches]))"
    )
    arguments = [json.dumps(value) for value in (url, OPTIONS, batches.state_dict())]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True)
    assert done.returncode == 0, done.stderr
    assert taken + json.loads(done.stdout) == classes(datasets.loader(url, **OPTIONS))


@pytest.mark.parametrize("state", [{}, {"epoch": 3}, {"shardfeed": 2, "epoch": 0, "state": None}])
def test_what_is_no_state(datasets, url, state):
    with pytest.raises(shardfeed.UsageError, match="no state of a stream"):
        datasets.loader(url, batch=2).load_state_dict(state)
