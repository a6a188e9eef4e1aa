"""States of streams in torchdata's StatefulDataLoader and nodes. Skipped without torchdata."""

from __future__ import annotations

import itertools
import pickle
import time

import pytest
import shardfeed
from batches import ramps

torchdata = pytest.importorskip("torchdata.stateful_dataloader")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*suggested max number of worker"),
]


@pytest.fixture
def url(tmp_path) -> str:
    """Four shards of 7, 8, 9 and 10 numbered samples."""
    return "::".join(ramps(tmp_path / f"{n}.tar", 7 + n) for n in range(4))


def key(sample: shardfeed.Sample) -> str:
    return f"{sample.shard[-5]}/{sample.key}"


def keys(batch: shardfeed.Batch) -> list[str]:
    return [f"{url[-5]}/{key}" for url, key in zip(batch.urls, batch.sample_keys)]


KINDS = {
    "samples": {"transform": key},
    "batches": {"transform": keys, "batch": 4},
    "epoch_samples": {"transform": key, "epoch_samples": 20},
    "batches of epoch_samples": {"transform": keys, "epoch_samples": 20, "batch": 3},
}


def stateful(datasets, url: str, kind: str, workers: int, persistent: bool, **options: object):
    known = {"num_workers": workers} if workers else {}
    stream = datasets.Stream(url, shuffle=6, shuffle_shards=True, seed=8, **KINDS[kind], **known)
    return torchdata.StatefulDataLoader(
        stream,
        batch_size=None,
        num_workers=workers,
        persistent_workers=persistent,
        multiprocessing_context="fork" if workers else None,
        timeout=120 if workers else 0,
        **options,
    )


def carried(state: object) -> object:
    """The state as it comes out of a checkpoint."""
    return pickle.loads(pickle.dumps(state))


@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (2, False), (2, True)])
@pytest.mark.parametrize("kind", KINDS)
def test_resumed_anywhere(datasets, url, kind, workers, persistent):
    whole = stateful(datasets, url, kind, workers, persistent)
    epochs = [list(whole) for _ in range(3)]
    assert len(set(map(str, epochs))) == 3
    last = len(epochs[1])
    stops = {0, 1, last // 2, last - 1, last} if workers else range(last + 1)
    for stop in stops:
        first = stateful(datasets, url, kind, workers, persistent)
        assert list(first) == epochs[0]
        iterator = iter(first)
        taken = list(itertools.islice(iterator, stop))
        state = carried(first.state_dict())
        assert list(iterator) == epochs[1][stop:]
        second = stateful(datasets, url, kind, workers, persistent)
        second.load_state_dict(state)
        assert taken + list(second) == epochs[1]
        assert list(second) == epochs[2]


@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (2, False), (2, True)])
@pytest.mark.parametrize("kind", ["batches", "batches of epoch_samples"])
def test_resumed_between_epochs(datasets, url, kind, workers, persistent):
    whole = stateful(datasets, url, kind, workers, persistent)
    fresh = carried(whole.state_dict())
    epochs = [list(whole)]
    ended = carried(whole.state_dict())
    epochs += [list(whole), list(whole)]
    for state, wanted in ((fresh, epochs[:2]), (ended, epochs[1:])):
        resumed = stateful(datasets, url, kind, workers, persistent)
        resumed.load_state_dict(state)
        assert carried(resumed.state_dict()).keys() == state.keys()
        assert [list(resumed) for _ in wanted] == wanted


@pytest.mark.parametrize("sleepers", [{0}, {1}, {0, 1}])
@pytest.mark.parametrize("kind", ["batches", "epoch_samples", "batches of epoch_samples"])
def test_workers_that_see_nothing_resume_between_epochs(datasets, url, monkeypatch, kind, sleepers):
    """At the end of an epoch StatefulDataLoader makes workers, gives them its state, and ends them
    for those of the next epoch at once: workers that were asleep then have begun nothing.
    """
    from torch.utils.data import get_worker_info
    from torchdata.stateful_dataloader import worker

    whole = stateful(datasets, url, kind, 2, False)
    list(whole)
    ended = carried(whole.state_dict())
    wanted = [list(whole) for _ in range(3)]

    class Sleepy(worker.ManagerWatchdog):
        calls = 0

        def is_alive(self):
            self.calls += 1
            # Between the answer that it has started and its first task.
            if self.calls == 2 and get_worker_info().id in sleepers:
                time.sleep(0.5)
            return super().is_alive()

    monkeypatch.setattr(worker, "ManagerWatchdog", Sleepy)
    resumed = stateful(datasets, url, kind, 2, False)
    resumed.load_state_dict(ended)
    assert [list(resumed) for _ in wanted] == wanted


def test_samples_that_the_loader_collates(datasets, url):
    def loader():
        stream = datasets.Stream(url, transform=key, shuffle=6, seed=8)
        return torchdata.StatefulDataLoader(stream, batch_size=5, num_workers=2)

    whole = list(loader())
    first = loader()
    iterator = iter(first)
    taken = [next(iterator) for _ in range(3)]
    second = loader()
    second.load_state_dict(carried(first.state_dict()))
    assert taken + list(second) == whole


def test_another_number_of_workers_is_refused(datasets, url):
    first = stateful(datasets, url, "samples", 2, False)
    next(iter(first))
    second = stateful(datasets, url, "samples", 1, False)
    second.load_state_dict(first.state_dict())
    with pytest.raises(shardfeed.UsageError, match="2 lanes"):
        list(second)


# ---- Nodes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefetch", [0, 3])
@pytest.mark.parametrize("kind", ["batches", "epoch_samples"])
def test_node(datasets, url, kind, prefetch):
    nodes = pytest.importorskip("torchdata.nodes")

    def loader():
        stream = datasets.Stream(url, shuffle=6, shuffle_shards=True, seed=8, **KINDS[kind])
        root = datasets.node(stream)
        assert isinstance(root, nodes.BaseNode)
        return nodes.Loader(nodes.Prefetcher(root, prefetch) if prefetch else root)

    whole = loader()
    epochs = [list(whole) for _ in range(3)]
    assert len(set(map(str, epochs))) == 3
    for stop in range(len(epochs[1]) + 1):
        first = loader()
        assert list(first) == epochs[0]
        iterator = iter(first)
        taken = list(itertools.islice(iterator, stop))
        second = loader()
        second.load_state_dict(carried(first.state_dict()))
        wanted = epochs[1] if stop < len(epochs[1]) else epochs[1] + epochs[2]
        assert taken + list(second) == wanted


def test_node_of_a_loader(datasets, url):
    nodes = pytest.importorskip("torchdata.nodes")
    root = datasets.node(datasets.loader(url, batch=6, decode="cls:int", keys=True))
    (first, *_) = nodes.Loader(nodes.Mapper(root, dict))
    assert first["cls"].tolist() == list(range(6))
    with pytest.raises(shardfeed.UsageError, match="no stream"):
        datasets.node([1, 2])
