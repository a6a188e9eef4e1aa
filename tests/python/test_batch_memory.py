"""How long the memory of a batch is valid, and whose it is."""

from __future__ import annotations

import gc
import os
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest
import shardfeed
from batches import digest, npy, ramps, rows_tar


@pytest.fixture
def stream(tmp_path):
    """300 arrays of 4,096 numbers; the first is the number of the sample."""
    return shardfeed.Stream(ramps(tmp_path / "t.tar", 300, 4096), memory="8MiB")


def test_views_outlive_batch_and_stream(stream):
    batches = stream.batches(10)
    batch = next(batches)
    array, labels, keys = batch["x.npy"], batch["cls"], batch["__key__"]
    part = array[3:5, 100:]
    gone = weakref.ref(batch)
    del batch, array
    for _ in batches:
        pass
    stream.close()
    del batches, stream
    gc.collect()
    assert gone() is None
    assert part.tolist() == [list(range(n + 100, n + 4096)) for n in (3, 4)]
    assert labels.tolist() == list(range(10))
    assert list(keys)[9] == "000009"


def test_recycled_memory_is_never_seen_through_an_old_view(stream):
    kept = []
    addresses = []
    for epoch in range(3):
        for number, batch in enumerate(stream.batches(10)):
            addresses.append(batch["x.npy"].ctypes.data)
            if number % 7 == 3:
                kept.append((number, batch["x.npy"][2:4]))
            del batch
        for number, view in kept:
            assert view[:, 0].tolist() == [10 * number + 2, 10 * number + 3], epoch
            assert view[:, -1].tolist() == [10 * number + 4097, 10 * number + 4098]
    assert len(set(addresses)) < len(addresses)  # and memory is used again


def test_memory_of_a_batch_that_nobody_uses_is_used_again(tmp_path):
    # The same without views that are kept: about as many places as are in flight.
    path = ramps(tmp_path / "t.tar", 2000, 4096)
    addresses = set()
    for batch in shardfeed.Stream(path, memory="8MiB", decode_threads=1).batches(10):
        addresses.add(batch["x.npy"].ctypes.data)
    assert len(addresses) < 100


def test_arrays_are_writable_and_private(stream):
    first, second = (list(stream.batches(30)) for _ in range(2))
    for batch in first:
        array = batch["x.npy"]
        assert array.flags.writeable
        array[:] = -1
        batch["cls"][:] = -2
    for number, batch in enumerate(second):
        assert batch["x.npy"][:, 0].tolist() == list(range(30 * number, 30 * number + 30))
        assert batch["cls"].tolist() == list(range(30 * number, 30 * number + 30))
    assert (first[0]["x.npy"] == -1).all()  # the same memory each time
    assert (first[0].column("cls").numpy() == -2).all()


def test_batches_of_many_threads(stream):
    seen = []

    def use(batch: shardfeed.Batch) -> None:
        seen.append(int(batch["x.npy"][:, 0].sum()))

    threads = [threading.Thread(target=use, args=(batch,)) for batch in stream.batches(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(seen) == sum(range(300))


def test_everything_may_be_kept(stream):
    batches = list(stream.batches(10))  # 9.8 MB of arrays, with memory=8MiB
    assert [batch["x.npy"][0, 0] for batch in batches] == list(range(0, 300, 10))
    assert stream.stats()["memory_peak"] <= 8 << 20


# ---- Copies ----


@pytest.fixture
def batch(tmp_path):
    rows = [
        {
            "x.npy": npy(np.arange(n, n + 3, dtype="f4")),
            "r.npy": npy(np.ones((n, 2), ">i2")),
            "c.npy": npy(np.full(2, n, "c16")),
            "txt": b"t%d" % n,
            "json": b"[%d]" % n,
            "bin": b"b" * n,
        }
        for n in range(4)
    ]
    path = rows_tar(tmp_path / "t.tar", rows)
    (batch,) = shardfeed.Stream(path).batches(9, ragged="offsets", hooks={"bin": len})
    return batch


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_is_a_copy(batch, protocol):
    batch["x.npy"].values[0] = 55
    copy = pickle.loads(pickle.dumps(batch, protocol))
    batch["x.npy"].values[0] = 66
    assert len(copy) == 4
    assert copy.keys() == batch.keys()
    assert copy["x.npy"][0].tolist() == [55, 1, 2]
    assert copy["x.npy"].values.flags.writeable
    assert [row.shape for row in copy["r.npy"]] == [(n, 2) for n in range(4)]
    assert copy["r.npy"].values.dtype == "i2"
    assert copy["c.npy"][3].tolist() == [3, 3]
    assert copy["txt"].tolist() == ["t0", "t1", "t2", "t3"]
    assert list(copy["json"]) == [[0], [1], [2], [3]]
    assert copy["bin"] == [0, 1, 2, 3]  # what the hook made
    assert (copy.sample_keys, copy.urls) == (batch.sample_keys, batch.urls)
    again = pickle.loads(pickle.dumps(copy, protocol))
    assert again["bin"] == [0, 1, 2, 3]
    assert again["x.npy"].values.tobytes() == copy["x.npy"].values.tobytes()


def test_pickle_with_buffers_beside_it(stream):
    batch = next(stream.batches(10))
    beside = []
    small = pickle.dumps(batch, 5, buffer_callback=beside.append)
    assert len(small) < 2000
    copy = pickle.loads(small, buffers=[bytes(buffer.raw()) for buffer in beside])
    assert digest(copy) == digest(batch)
    assert copy["x.npy"].flags.writeable


def test_batches_come_back_from_other_processes(tmp_path):
    import multiprocessing

    stream = shardfeed.Stream(ramps(tmp_path / "t.tar", 40), batch=10)
    wanted = [digest(batch) for batch in stream.batches()]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.map(all_batches, [stream])[0]
    assert [digest(batch) for batch in found] == wanted


def all_batches(stream: shardfeed.Stream) -> list[shardfeed.Batch]:
    stream = shardfeed.Stream(stream.urls, **stream.options)
    return list(stream.batches())


@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_batch_stays_readable_in_a_forked_child(stream):
    batches = stream.batches(10)
    batch = next(batches)
    array = batch["x.npy"]
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            del batch
            try:
                next(batches)
            except shardfeed.ForkedError:
                os.write(write, b"%d" % array[9, 0])
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b"9"
    assert next(batches)["x.npy"][0, 0] == 10
    os.close(read)
    os.close(write)


def test_numpy_is_needed_for_arrays_alone(stream, monkeypatch):
    batch = next(stream.batches(10))
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert batch.sample_keys[0] == "000000"
    with pytest.raises(ModuleNotFoundError, match="pip install numpy"):
        batch["x.npy"]
