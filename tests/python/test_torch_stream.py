"""shardfeed.torch.Stream in PyTorch's own DataLoader. Skipped without PyTorch."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import subprocess
import sys
import textwrap

import pytest
import shardfeed
from batches import ramps

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*suggested max number of worker"),
]

LAUNCHERS = ["RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No launcher of processes is seen, whoever started the tests."""
    for name in os.environ:
        if name in LAUNCHERS or name.startswith("SLURM_"):
            monkeypatch.delenv(name)


def number(sample: shardfeed.Sample) -> int:
    return int(bytes(sample["txt"]).rstrip(b"."))


def classes(sample: shardfeed.Sample) -> int:
    return int(bytes(sample["cls"]))


def rows(batch: shardfeed.Batch) -> list[int]:
    return batch["cls"].tolist()


def itself(item: object) -> object:
    return item


def epoch_of(url: str, epoch: int, **options: object) -> list[int]:
    """The numbers of one epoch, read by the stream underneath."""
    return [number(sample) for sample in shardfeed.Stream(url, epoch=epoch, **options)]


def shuffled(datasets, url: str, **options: object):
    return datasets.Stream(url, transform=number, shuffle_shards=True, seed=5, **options)


# ---- Items and epochs ---------------------------------------------------------------------------


def test_items(torch, datasets, shards):
    url = shards(3, 4)
    stream = datasets.Stream(url)
    assert isinstance(stream, torch.utils.data.IterableDataset)
    first = next(iter(stream))
    assert first == {"__key__": "000000", "txt": b"0.........", "cls": b"0"}
    assert list(datasets.Stream(url, transform=number)) == list(range(12))
    batches = list(datasets.Stream(url, batch=5))
    assert [batch["cls"].tolist() for batch in batches] == [
        [0, 1, 2, 3, 4],
        [5, 6, 7, 8, 9],
        [0, 1],
    ]
    assert all(isinstance(batch["cls"], torch.Tensor) for batch in batches)
    assert isinstance(next(iter(datasets.Stream(url, batch=5, transform=itself))), shardfeed.Batch)
    hooked = datasets.Stream(url, batch=12, decode="txt:bytes, cls", hooks={"txt": len})
    assert next(iter(hooked))["txt"] == [10] * 12
    assert "s-{000..002}.tar" in repr(stream)
    with pytest.raises(TypeError, match="shuffle"):
        datasets.Stream(url, shufle=3)
    with pytest.raises(shardfeed.UsageError, match="on_error"):
        datasets.Stream(url, on_error="ignore")


def test_every_iter_is_the_next_epoch(datasets, shards):
    url = shards(6, 5)
    stream = shuffled(datasets, url)
    wanted = [epoch_of(url, epoch, shuffle_shards=True, seed=5) for epoch in range(5)]
    assert len(set(map(tuple, wanted))) == 5
    assert list(stream) == wanted[0]
    iter(stream)  # which does not begin an epoch
    assert list(stream) == wanted[1]
    iterator = iter(stream)
    assert next(iterator) == wanted[2][0]
    assert list(stream) == wanted[3]
    with pytest.raises(shardfeed.UsageError, match="again"):
        list(iterator)
    stream.set_epoch(1)
    assert list(stream) == wanted[1]
    assert list(stream) == wanted[2]
    assert list(pickle.loads(pickle.dumps(stream))) == wanted[3]
    assert list(stream) == wanted[3]
    with pytest.raises(shardfeed.UsageError, match="epoch"):
        stream.set_epoch(-1)


def test_epoch_samples_go_on(datasets, shards):
    stream = datasets.Stream(shards(2, 10), transform=number, epoch_samples=8)
    assert len(stream) == 8
    seen = [list(stream) for _ in range(5)]
    assert seen[0] == list(range(8))
    assert list(itertools.chain(*seen)) == list(range(20)) * 2
    stream.set_epoch(5)  # the one that is next anyway
    assert list(stream) == list(range(8))
    stream.set_epoch(0)
    assert list(stream) == list(range(8))
    stream.close()
    assert len(list(stream)) == 8


def test_faults_do_not_end_an_epoch(datasets, shards, tmp_path):
    url = shards(1, 50)
    path = url.replace("{000..000}", "000")
    with open(path, "r+b") as file:
        file.truncate(20 * 2048 + 100)
    iterator = iter(datasets.Stream(url, transform=number))
    seen = []
    for _ in range(2):
        with pytest.raises(shardfeed.TruncatedError):
            seen += iter(iterator.__next__, None)
    with pytest.raises(FileNotFoundError):
        list(datasets.Stream(tmp_path / "none.tar"))


def test_lengths(datasets, shards, monkeypatch):
    url = shards(8, 10)
    with pytest.raises(TypeError, match="epoch_samples"):
        len(datasets.Stream(url))
    with pytest.raises(TypeError):
        len(datasets.Stream(url, epochs=0, epoch_samples=10))
    for rank, wanted in enumerate([4, 3, 3]):
        stream = datasets.Stream(url, epoch_samples=10, rank=rank, world_size=3)
        assert len(stream) == len(list(stream)) == wanted
        batches = datasets.Stream(url, epoch_samples=10, rank=rank, world_size=3, batch=2)
        assert len(batches) == len(list(batches)) == 2
    assert len(datasets.Stream(url, epoch_samples=80, num_workers=4, batch=7, last="drop")) == 8
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert len(datasets.Stream(url, epoch_samples=80, epochs=2)) == 40


def test_lengths_of_indexed_shards(torch, datasets, tmp_path):
    paths = [ramps(tmp_path / f"{n}.tar", 5 + 4 * n) for n in range(6)]
    shardfeed.Dataset(paths).close()  # makes the index files
    for options in ({}, {"epochs": 2}, {"limit": 30, "num_workers": 1}):
        stream = datasets.Stream(paths, shuffle_shards=True, seed=3, **options)
        for _ in range(2):
            promised = len(stream)
            iterator = iter(stream)
            next(iterator)
            assert len(stream) == promised == 1 + len(list(iterator))
    stream = datasets.Stream(paths, batch=4, num_workers=2, rank=1, world_size=2)
    loader = loader_of(torch, stream, 2, "fork")
    assert len(loader) == len(list(loader)) > 0
    plain = datasets.Stream(paths, rank=1, world_size=2, worker=0, num_workers=1)
    assert len(plain) == len(list(plain))
    # Nothing says how many workers there will be, and the number of items depends on that.
    for options in ({"batch": 4}, {"rank": 0, "world_size": 2}, {"limit": 30}):
        with pytest.raises(TypeError, match="help: give num_workers"):
            len(datasets.Stream(paths, **options))
    samples = datasets.Stream(paths, transform=classes)
    loader = torch.utils.data.DataLoader(samples, batch_size=None, num_workers=2)
    assert len(loader) == len(list(loader)) == 90
    # Samples are known, and not how many batches they become.
    for name, value in {"pack": 8, "batch_elements": 100, "bucket": "8,16"}.items():
        cut = datasets.Stream(
            paths, batch=4, num_workers=1, decode="x.npy", ragged="pad", **{name: value}
        )
        with pytest.raises(TypeError, match=f"how many batches {name} makes is not known"):
            len(cut)
        assert len(list(cut)) > 0


# ---- Workers ------------------------------------------------------------------------------------


def loader_of(torch, stream, workers, method, persistent=False, **more):
    return torch.utils.data.DataLoader(
        stream,
        batch_size=None,
        num_workers=workers,
        multiprocessing_context=method,
        persistent_workers=persistent,
        timeout=120 if workers else 0,
        **more,
    )


@pytest.mark.parametrize(
    ("method", "persistent"),
    [("fork", False), ("fork", True), ("spawn", False), ("forkserver", True)],
)
def test_workers_share_an_epoch_and_count_epochs(torch, datasets, shards, method, persistent):
    url = shards(6, 5)
    stream = shuffled(datasets, url)
    loader = loader_of(torch, stream, 2, method, persistent)

    def wanted(epoch: int) -> list[int]:
        parts = [
            epoch_of(url, epoch, shuffle_shards=True, seed=5, num_workers=2, worker=worker)
            for worker in range(2)
        ]
        return [n for pair in zip(*parts) for n in pair]

    assert list(loader) == wanted(0)
    assert sorted(wanted(0)) == list(range(30))
    if method != "spawn":  # which is slow
        assert list(loader) == wanted(1)
    stream.set_epoch(7)  # reaches workers that run
    assert list(loader) == wanted(7)
    if method == "spawn":
        return
    next(iter(loader))  # and is left
    assert list(loader) == wanted(9)


def test_same_seed_of_the_loader_in_every_epoch(torch, datasets, shards):
    url = shards(6, 5)
    loader = loader_of(torch, shuffled(datasets, url), 2, "fork")
    seen = []
    for _ in range(3):
        torch.manual_seed(0)
        seen.append(tuple(loader))
        assert sorted(seen[-1]) == list(range(30))
    assert len(set(seen)) == 3


def test_loader_with_another_number_of_workers(torch, datasets, shards):
    stream = shuffled(datasets, shards(6, 5))
    epochs = [tuple(loader_of(torch, stream, n, "fork" if n else None)) for n in (2, 0, 3, 1)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(30))] * 4
    assert len(set(epochs)) == 4


@pytest.mark.parametrize("persistent", [False, True])
def test_epoch_samples_go_on_in_workers(torch, datasets, shards, persistent):
    stream = datasets.Stream(shards(4, 10), transform=number, epoch_samples=12)
    loader = loader_of(torch, stream, 2, "fork", persistent)
    seen = [list(loader) for _ in range(10)]
    assert [len(epoch) for epoch in seen] == [12] * 10
    assert sorted(itertools.chain(*seen)) == sorted(list(range(40)) * 3)


def test_number_of_the_epoch(torch, datasets, shards):
    url = shards(2, 10)
    for options in ({}, {"epoch_samples": 8}, {"epochs": 2}):
        step = options.get("epochs", 1)
        stream = datasets.Stream(url, transform=number, **options, epoch=3)
        numbers = []
        while stream.epoch < 3 + 3 * step:
            for _ in stream:
                numbers.append(stream.epoch)
                assert stream.state_dict()["epoch"] == stream.epoch
            assert stream.state_dict()["epoch"] == stream.epoch == numbers[-1] + step
        assert sorted(set(numbers)) == [3, 3 + step, 3 + 2 * step]
        for stop in (0, 1, 5):
            stream = datasets.Stream(url, transform=number, **options, epoch=3)
            list(stream)
            iterator = iter(stream)
            taken = [next(iterator) for _ in range(stop)]
            resumed = datasets.Stream(url, transform=number, **options, epoch=3)
            resumed.load_state_dict(json.loads(json.dumps(stream.state_dict())))
            assert resumed.epoch == 3 + step
            rest = []
            while resumed.epoch < 3 + 2 * step:
                rest += resumed
            assert taken + rest == taken + list(iterator)
    stream = datasets.Stream(url, transform=number)
    loader = loader_of(torch, stream, 2, "fork")
    passes = 0
    while stream.epoch < 3:
        passes += 1
        assert len(list(loader)) == 20
    assert passes == 3


def odd(sample: shardfeed.Sample) -> int | None:
    return number(sample) if number(sample) % 2 else None


def test_a_transform_drops_samples(torch, datasets, shards):
    url = shards(4, 10)
    options = {"transform": odd, "shuffle": 6, "seed": 1}
    stream = datasets.Stream(url, **options)
    assert stream.stats()["dropped_samples"] == stream.stats()["samples"] == 0
    whole = list(stream)
    assert sorted(whole) == list(range(1, 40, 2))
    for _ in range(2):
        assert (stream.stats()["dropped_samples"], stream.stats()["samples"]) == (20, 40)
        stream.close()
    for stop in (1, 7, 20):
        stream = datasets.Stream(url, **options)
        iterator = iter(stream)
        taken = [next(iterator) for _ in range(stop)]
        resumed = datasets.Stream(url, **options)
        resumed.load_state_dict(stream.state_dict())
        assert taken + list(resumed) == whole
    assert sorted(loader_of(torch, stream, 2, "fork")) == sorted(whole)
    with pytest.raises(shardfeed.UsageError, match="only they know its counters"):
        stream.stats()
    some = datasets.Stream(url, batch=6, transform=lambda b: None if b["cls"][0] == 0 else len(b))
    assert list(some) == [6, 6, 6, 6, 4]
    assert some.stats()["dropped_samples"] == 12


def test_worker_after_the_main_process(torch, datasets, shards):
    stream = datasets.Stream(shards(2, 10), transform=number, epoch_samples=8)
    assert list(stream) == list(range(8))
    stream.set_epoch(5)
    assert list(loader_of(torch, stream, 1, "fork")) == list(range(8))
    assert list(loader_of(torch, stream, 1, "fork")) == list(range(8, 16))


def test_epoch_that_could_not_begin(datasets, shards, tmp_path):
    listed = tmp_path / "list"
    stream = shuffled(datasets, f"@{listed}")
    for _ in range(3):
        with pytest.raises(FileNotFoundError):
            next(iter(stream))
    url = shards(6, 5)
    listed.write_text(url)
    assert list(stream) == epoch_of(url, 0, shuffle_shards=True, seed=5)


def test_batches_and_collation_in_workers(torch, datasets, shards, tmp_path):
    stream = datasets.Stream(shards(2, 20), batch=7, transform=rows)
    batches = list(loader_of(torch, stream, 2, "spawn"))
    assert [len(batch) for batch in batches] == [7, 7, 7, 7, 6, 6]
    plain = datasets.Stream(ramps(tmp_path / "r.tar", 20), batch=10)
    found = list(loader_of(torch, plain, 1, "fork"))
    assert torch.cat([batch["cls"] for batch in found]).tolist() == list(range(20))
    samples = datasets.Stream(shards(2, 20), transform=number)
    loader = torch.utils.data.DataLoader(samples, batch_size=8, num_workers=2)
    assert sorted(torch.cat(list(loader)).tolist()) == list(range(40))
    copied = next(iter(loader_of(torch, datasets.Stream(shards(2, 20)), 1, "fork")))
    assert copied["txt"] == b"0........."


def test_batches_of_batches_are_refused(torch, datasets, shards):
    url = shards(2, 20)
    for options in ({}, {"transform": itself}):
        stream = datasets.Stream(url, batch=8, **options)
        for workers in (0, 1):
            loader = torch.utils.data.DataLoader(stream, batch_size=8, num_workers=workers)
            with pytest.raises(shardfeed.UsageError, match=r"batches already.*batch_size=None"):
                next(iter(loader))
    loader = torch.utils.data.DataLoader(datasets.Stream(url, batch=8), batch_size=None)
    assert [type(batch["cls"]) for batch in loader] == [torch.Tensor] * 5


def test_a_stream_that_is_no_data_set_of_pytorch(torch, shards):
    for options in ({}, {"epoch_samples": 10}):
        for more in ({}, {"batch_size": None}, {"shuffle": True}):
            with pytest.raises(shardfeed.UsageError, match=r"give it shardfeed.torch.Stream\("):
                list(torch.utils.data.DataLoader(shardfeed.Stream(shards(2, 5), **options), **more))


def test_given_workers_are_not_those_of_the_loader(torch, datasets, shards):
    stream = datasets.Stream(shards(4, 5), transform=number, worker=0, num_workers=1)
    assert sorted(loader_of(torch, stream, 2, "fork")) == sorted(list(range(20)) * 2)


def test_number_of_workers_said_before(torch, datasets, shards):
    stream = datasets.Stream(shards(4, 5), batch=3, epoch_samples=20, num_workers=2)
    loader = loader_of(torch, stream, 2, "fork")
    assert len(loader) == len(list(loader)) == 8
    with pytest.raises(shardfeed.UsageError, match="num_workers=2, but this is no worker"):
        list(stream)
    with pytest.raises(shardfeed.UsageError, match="num_workers=2, but there are 1 of the Data"):
        list(loader_of(torch, stream, 1, "fork"))


def test_more_workers_than_shards(torch, datasets, shards):
    loader = loader_of(torch, datasets.Stream(shards(2, 5)), 3, "fork")
    with pytest.raises(shardfeed.UsageError, match="2 shards for 3 consumers"):
        list(loader)


def test_state_is_with_the_workers(torch, datasets, shards):
    stream = datasets.Stream(shards(2, 5), transform=number)
    next(iter(loader_of(torch, stream, 2, "fork")))
    with pytest.raises(shardfeed.UsageError, match="StatefulDataLoader"):
        stream.state_dict()


# ---- Ranks --------------------------------------------------------------------------------------


def test_given_ranks(datasets, shards):
    url = shards(4, 5)
    wanted = [epoch_of(url, 0, rank=rank, world_size=2) for rank in range(2)]
    assert sorted(itertools.chain(*wanted)) == list(range(20))
    for rank in range(2):
        stream = datasets.Stream(url, transform=number, rank=rank, world_size=2)
        assert list(stream) == wanted[rank]
    for options in ({"rank": 1}, {"world_size": 2}):
        with pytest.raises(shardfeed.UsageError, match="help: give"):
            list(datasets.Stream(url, **options))


@pytest.mark.parametrize(
    "names", [("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")], ids=["torchrun", "slurm"]
)
def test_ranks_of_the_environment(torch, datasets, shards, monkeypatch, names):
    url = shards(4, 5)
    for name, value in zip(names, "12"):
        monkeypatch.setenv(name, value)
    stream = datasets.Stream(url, transform=number)
    assert list(stream) == epoch_of(url, 0, rank=1, world_size=2)
    # Worker w of rank r is consumer 2 r + w of four, and each has a shard.
    assert sorted(loader_of(torch, stream, 2, "fork")) == list(range(10, 20))
    every = datasets.Stream(url, transform=number, rank=0, world_size=1)
    assert list(every) == list(range(20))
    monkeypatch.setenv(names[0], "0")
    with pytest.raises(shardfeed.UsageError, match=r"was used as rank 1 of 2 before"):
        list(stream)


def test_torchrun_in_slurm(datasets, shards, monkeypatch):
    for name, value in [("RANK", 3), ("WORLD_SIZE", 4), ("SLURM_PROCID", 1), ("SLURM_NTASKS", 2)]:
        monkeypatch.setenv(name, str(value))
    url = shards(4, 5)
    assert list(datasets.Stream(url, transform=number)) == list(range(15, 20))


@pytest.mark.parametrize(
    ("environment", "wrong"),
    [
        ({"RANK": "0"}, "RANK=0 and WORLD_SIZE=None"),
        ({"WORLD_SIZE": "2"}, "RANK=None and WORLD_SIZE=2"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "name no rank"),
        ({"RANK": "x", "WORLD_SIZE": "2"}, "name no rank"),
        ({"OMPI_COMM_WORLD_SIZE": "4"}, "OMPI_COMM_WORLD_SIZE=4.*one of several"),
        ({"LOCAL_WORLD_SIZE": "2"}, "one of several"),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "1"}, "srun did not start"),
    ],
)
def test_environments_that_say_too_little(datasets, shards, monkeypatch, environment, wrong):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = datasets.Stream(shards(4, 5))
    with pytest.raises(shardfeed.UsageError, match=wrong + ".*help: .*rank=0, world_size=1"):
        iter(stream)
    everything = datasets.Stream(shards(4, 5), transform=number, rank=0, world_size=1)
    assert len(list(everything)) == 20


def test_one_process_of_a_launcher(datasets, shards, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert len(list(datasets.Stream(shards(4, 5)))) == 20


@pytest.mark.filterwarnings("ignore:.*sharding_filter")
def test_a_data_pipe_that_deals_out_a_share_again_is_refused(torch, datasets, shards):
    pipes = pytest.importorskip("torch.utils.data.datapipes.iter")
    url = shards(4, 5)

    def dealt_out(**given: int) -> list[int]:
        stream = datasets.Stream(url, transform=number, **given)
        pipe = pipes.IterableWrapper(stream, deepcopy=False).sharding_filter()
        return sorted(loader_of(torch, pipe, 2, "fork"))

    wrong = "ShardingFilterIterDataPipe keeps one of 2 parts.* read by nobody; help: .*worker=0"
    with pytest.raises(shardfeed.UsageError, match=wrong):
        dealt_out()
    assert dealt_out(rank=0, world_size=1, worker=0, num_workers=1) == list(range(20))


# ---- Processes that train together --------------------------------------------------------------

PROCESS = """
import json, sys
import torch, torch.distributed as dist
from torch.utils.data import DataLoader
import shardfeed, shardfeed.torch

def number(sample):
    return int(bytes(sample["txt"]).rstrip(b"."))

def join(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)

if __name__ == "__main__":
    case, url, folder, rank = sys.argv[1:4] + [int(sys.argv[4])]
    result = None
"""

CASES = {
    "split": """
        join(rank, folder)
        stream = shardfeed.torch.Stream(url, transform=number)
        result = [list(stream)]
        for method, workers in (("fork", 2), ("spawn", 1)):
            loader = DataLoader(
                stream, batch_size=None, num_workers=workers, multiprocessing_context=method
            )
            result.append(sorted(loader))
    """,
    "train": """
        join(rank, folder)
        torch.manual_seed(0)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        batches = shardfeed.torch.loader(
            url, batch=4, decode="cls:float", shuffle=10, shuffle_shards=True, epoch_samples=60
        )
        result = [len(batches), []]
        for epoch in range(3):
            batches.set_epoch(epoch)
            for batch in batches:
                optimizer.zero_grad()
                model(batch["cls"].float().reshape(-1, 1)).square().mean().backward()
                optimizer.step()
                result[1].append(len(batch["cls"]))
        result.append([parameter.tolist() for parameter in model.parameters()])
        dist.barrier()
    """,
    "late": """
        stream = shardfeed.torch.Stream(url, transform=number)
        iterator = iter(stream)
        next(iterator)
        join(rank, folder)
        result = []
        for again in (lambda: next(iterator), lambda: iter(stream)):
            try:
                again()
            except shardfeed.UsageError as error:
                result.append(str(error))
    """,
    "gather": """
        from pathlib import Path

        join(rank, folder)
        said = []

        def loader(**options):
            return shardfeed.torch.loader(
                url, batch=3, decode="cls:int, txt:bytes", shuffle=7, seed=2, keys=True,
                log=lambda level, text: said.append(text), **options
            )

        def keys(batches):
            return [batch["__key__"] for batch in batches]

        result = []
        cases = {"lanes": {"lanes": 4}, "none": {}, "known": {"epoch_samples": 36}}
        for name, options in cases.items():
            saved = Path(folder, name)
            batches = loader(**options)
            iterator = iter(batches)
            taken = keys(next(iterator) for _ in range(3))
            state = shardfeed.torch.gather_state(batches)
            if rank == 0:
                saved.write_text(json.dumps(state))
            dist.barrier()
            resumed = loader(**options)
            resumed.load_state_dict(json.loads(saved.read_text()))
            result.append([taken, keys(resumed), keys(iterator)])
        whole = loader(lanes=4)
        list(whole)
        ended = shardfeed.torch.gather_state(whole)
        warned = [text for text in said if "this state is good for" in text]
        result.append([len(warned), ended["epoch"], ended["ended"]])

        every = loader(rank=0, world_size=1)
        next(iter(every))
        assert shardfeed.torch.gather_state(every) == every.state_dict()
        odd = loader(lanes=4)
        if rank == 0:
            next(iter(odd))
        else:
            list(odd)
        read_by_workers = shardfeed.torch.Stream(url)
        if rank == 1:
            next(iter(DataLoader(read_by_workers, batch_size=None, num_workers=1)))
        wrong = [odd, loader(rank=0, world_size=2), read_by_workers]
        for source in wrong:
            try:
                shardfeed.torch.gather_state(source)
            except shardfeed.UsageError as error:
                result.append(str(error))
    """,
    "contradiction": """
        import os
        join(rank, folder)
        os.environ.update(RANK=str(rank), WORLD_SIZE="4")
        try:
            list(shardfeed.torch.Stream(url))
        except shardfeed.UsageError as error:
            result = str(error)
        every = shardfeed.torch.Stream(url, rank=0, world_size=1)
        result = [result, len(list(every))]
        del os.environ["RANK"]  # what is left says nothing
        os.environ.update(SLURM_PROCID="0", SLURM_NTASKS="8", SLURM_JOB_ID="1")
        result.append(len(list(shardfeed.torch.Stream(url))))
        os.environ["SLURM_STEP_ID"] = "0"  # but these are eight processes that run
        try:
            list(shardfeed.torch.Stream(url))
        except shardfeed.UsageError as error:
            result.append(str(error))
    """,
}


def together(tmp_path, case: str, url: str) -> list:
    """What two processes that run a case print."""
    program = tmp_path / "program.py"
    # Threads of gloo may end the interpreter by abort() when it exits, with the group and without.
    body = textwrap.dedent(CASES[case]) + "print(json.dumps(result), flush=True)\n"
    body += "if dist.is_initialized():\n    dist.destroy_process_group()\n"
    body += "import os\nos._exit(0)\n"
    program.write_text(PROCESS + textwrap.indent(body, "    "))
    running = [
        subprocess.Popen(
            [sys.executable, program, case, url, tmp_path, str(rank)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    done = [process.communicate(timeout=300) for process in running]
    assert [process.returncode for process in running] == [0, 0], done
    return [json.loads(output) for output, _ in done]


@pytest.fixture
def gloo(torch):
    if not torch.distributed.is_available():
        pytest.skip("PyTorch without torch.distributed")


def test_process_group_splits(gloo, shards, tmp_path):
    url = shards(4, 10)
    found = together(tmp_path, "split", url)
    for rank, part in enumerate(found):
        share = epoch_of(url, 0, rank=rank, world_size=2)
        # The two forked workers of a rank have a shard each, of four consumers.
        assert part == [share, list(range(20 * rank, 20 * rank + 20)), sorted(share)]


def test_uneven_ranks_end_together(gloo, tmp_path):
    paths = [ramps(tmp_path / f"{n}.tar", count) for n, count in enumerate([3, 40, 5, 11])]
    first, second = together(tmp_path, "train", "::".join(paths))
    assert first[:2] == second[:2] == [8, [4] * 24]
    assert first[2] == second[2]


def test_state_of_all_ranks(gloo, datasets, shards, tmp_path):
    url = shards(4, 10)
    first, second = together(tmp_path, "gather", url)
    everything = [f"{n:06d}" for n in range(40)]
    for one, other in zip(first[:2], second[:2]):
        for taken, resumed, went_on in (one, other):
            assert len(taken) == 3
            assert resumed == went_on
        seen = [key for part in (one, other) for batch in part[0] + part[1] for key in batch]
        assert sorted(seen) == everything
    for taken, resumed, went_on in (first[2], second[2]):
        assert resumed == went_on
        assert len(taken + resumed) == 6
    # Only one process warns, once, and not where lanes were given.
    assert (first[3], second[3]) == ([1, 1, True], [0, 1, True])
    # One process resumes where two stopped, and so do four.
    state = json.loads((tmp_path / "lanes").read_text())
    for size in (1, 4):
        seen = [key for part in (first, second) for batch in part[0][0] for key in batch]
        for rank in range(size):
            options = {"lanes": 4, "rank": rank, "world_size": size, "shuffle": 7, "seed": 2}
            alone = datasets.loader(url, batch=3, decode="cls:int", keys=True, **options)
            alone.load_state_dict(state)
            assert alone.epoch == state["epoch"] == 0
            seen += [key for batch in alone for key in batch["__key__"]]
        assert sorted(seen) == everything
    for messages in (first[4:], second[4:]):
        assert len(messages) == 3
        assert "different epochs: 0, 0 at its end; help" in messages[0]
        assert "as the ranks [0, 0] of 2" in messages[1]
        assert "rank 1 has no state to gather: workers of a DataLoader" in messages[2]
    assert first[4:] == second[4:]


def test_state_of_all_ranks_without_a_group(datasets, shards, monkeypatch):
    batches = datasets.loader(shards(2, 5), batch=2)
    next(iter(batches))
    assert datasets.gather_state(batches) == batches.state_dict()
    given = datasets.loader(shards(2, 5), batch=2, rank=1, world_size=2)
    with pytest.raises(shardfeed.UsageError, match=r"rank 1 of 2, but .*init_process_group"):
        datasets.gather_state(given)


def test_process_group_that_comes_late_is_refused(gloo, shards, tmp_path):
    for rank, messages in enumerate(together(tmp_path, "late", shards(2, 10))):
        assert len(messages) == 2
        for message in messages:
            assert f"the process group says rank {rank} of 2" in message
            assert "help: make the stream after the process group" in message


def test_environment_that_contradicts_the_process_group(gloo, shards, tmp_path):
    for rank, found in enumerate(together(tmp_path, "contradiction", shards(4, 10))):
        torchrun, everything, share, slurm = found
        for message, other in ((torchrun, f"rank {rank} of 4"), (slurm, "rank 0 of 8")):
            assert f"rank {rank} of 2, but" in message
            assert other in message
            assert "help:" in message
        assert (everything, share) == (40, 20)
