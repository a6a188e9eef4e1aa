"""Tensors from the workers of a DataLoader: their values, how long they stay, what is left over."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from batches import npy, rows_tar

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import shardfeed.torch  # noqa: E402
from shardfeed.torch import _shared  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

pytestmark = pytest.mark.slow
ROWS, SIDE, BATCH = 24, 64, 4  # an array of a batch is larger than what goes through the pipe


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Two shards whose arrays consist of the number in cls."""
    paths = []
    for shard in range(2):
        numbers = range(shard * ROWS, (shard + 1) * ROWS)
        rows = ({"npy": npy(np.full((SIDE, SIDE), n, "i4")), "cls": b"%d" % n} for n in numbers)
        paths.append(rows_tar(tmp_path / f"{shard}.tar", rows))
    return "::".join(paths)


def loader(url: str, **options: Any) -> Any:
    transform = options.pop("transform", None)
    stream = shardfeed.torch.Stream(url, batch=BATCH, decode="npy,cls", transform=transform)
    return DataLoader(stream, batch_size=None, **{"num_workers": 2, **options})


def check(batch: dict[str, Any]) -> list[int]:
    numbers = batch["cls"].tolist()
    assert batch["npy"].shape == (BATCH, SIDE, SIDE)
    wanted = torch.tensor(numbers, dtype=torch.int32).reshape(-1, 1, 1)
    assert bool((batch["npy"] == wanted).all())
    return numbers


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_batches_of_workers(url, start):
    numbers = [n for batch in loader(url, multiprocessing_context=start) for n in check(batch)]
    assert sorted(numbers) == list(range(2 * ROWS))


def test_batches_that_are_kept_do_not_change(url):
    kept = [batch for _ in range(3) for batch in loader(url)]
    assert len({batch["npy"].data_ptr() for batch in kept}) == len(kept)
    assert sorted(n for batch in kept for n in check(batch)) == sorted([*range(2 * ROWS)] * 3)


def test_what_was_made_of_a_tensor_keeps_its_memory(url):
    rows, arrays = [], []
    for batch in loader(url):
        rows.append((batch["cls"][1].item(), batch["npy"][1]))
        arrays.append((batch["cls"][2].item(), batch["npy"].numpy()[2]))
        del batch
        gc.collect()
    assert all(bool((row == number).all()) for number, row in rows)
    assert all((array == number).all() for number, array in arrays)


def test_memory_is_used_again(url):
    """Few places for many batches, when the batches are dropped."""
    places = set()
    batches = loader(url, num_workers=1, persistent_workers=True)
    for _ in range(10):
        for batch in batches:
            check(batch)
            places.add(batch["npy"].data_ptr())
    assert len(places) <= 8  # of 120


def test_batches_outlive_their_worker(url):
    iterator = iter(loader(url, num_workers=1))
    batch = next(iterator)
    (worker,) = multiprocessing.active_children()
    # PyTorch has a handler for the end of its workers, which may raise while this waits.
    with contextlib.suppress(RuntimeError):
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
    numbers = check(batch)
    del iterator
    gc.collect()
    assert check(batch) == numbers


def test_nothing_is_left_over(url):
    def epochs(count: int) -> int:
        for _ in range(count):
            for batch in loader(url):
                check(batch)
        del batch
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    before = epochs(2)
    assert epochs(6) <= before + 8  # the buffers of the last workers; 36 or more came before
    shared = [
        line
        for line in Path("/proc/self/maps").read_text().splitlines()
        if "memfd:shardfeed" in line
    ]
    assert len(shared) <= 24  # those of the last workers


@pytest.mark.parametrize("keeps", ["parent", "child"])
def test_a_fork_does_not_give_memory_back(url, keeps):
    batches = iter(loader(url, num_workers=1))
    batch = next(batches)
    numbers = check(batch)
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        if keeps == "parent":
            del batch
            gc.collect()
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        os._exit(0 if keeps == "parent" or check(batch) == numbers else 1)
    os.read(ready[0], 1)
    if keeps == "child":
        del batch
        gc.collect()
    rest = list(batches)
    os.write(go[1], b"x")
    assert os.waitpid(child, 0)[1] == 0
    assert keeps == "child" or check(batch) == numbers
    for other in rest:
        check(other)


def both(batch: shardfeed.Batch) -> tuple[Any, list[Any]]:
    return batch["npy"].transpose(0, 2, 1), [torch.from_numpy(batch["npy"]).float() / 2, "text"]


def test_what_transforms_make_is_sent_too(url):
    for array, (halves, text) in loader(url, transform=both):
        assert text == "text"
        assert halves.dtype == torch.float32
        assert bool((halves * 2 == array.transpose(1, 2)).all())


# PyTorch 1.13 does not send them, with or without buffers.
SENDS_OTHER_LAYOUTS = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 1)


def kinds() -> list[Any]:
    big = torch.arange(6000.0).reshape(2, 3, 1000)
    others = [big.to_sparse(), torch.nested.nested_tensor([big[0], big[1]])]
    return [
        *(big.to(kind) for kind in (torch.float16, torch.bfloat16, torch.int64, torch.uint8)),
        big > 3, torch.complex(big, big), torch.complex(big, big).conj(),
        torch.complex(big, big).conj().imag, big.transpose(0, 2), big[:, 1:],
        big.clone().requires_grad_(), *(others if SENDS_OTHER_LAYOUTS else []),
        big.reshape(2, 3, 10, 100).contiguous(memory_format=torch.channels_last),
        torch.empty(0, 5), torch.tensor(7), torch.tensor([1, 2]), big.expand(2, 2, 3, 1000),
        torch.nn.Parameter(big), big.clone().share_memory_(),
    ]  # fmt: skip


class Kinds(torch.utils.data.IterableDataset):  # type: ignore[type-arg]
    """Tensors of all kinds, from a worker that sends as those of shardfeed.torch.Stream."""

    def __iter__(self) -> Any:
        _shared.send_tensors_in_buffers()
        for _ in range(5):
            yield kinds()


def test_tensors_of_all_kinds():
    for found in DataLoader(Kinds(), batch_size=None, num_workers=1):
        for there, here in zip(found, kinds(), strict=True):
            assert (there.dtype, there.layout) == (here.dtype, here.layout)
            assert here.is_nested or there.shape == here.shape
            assert there.requires_grad == here.requires_grad
            assert type(there) is type(here)
            if here.is_nested:
                assert torch.equal(there.to_padded_tensor(0), here.to_padded_tensor(0))
            elif here.layout is torch.strided:
                same = there.stride() == here.stride()
                assert same or here.numel() == 0 or here.is_neg()
                assert torch.equal(there, here)
            else:
                assert torch.equal(there.to_dense(), here.to_dense())


def grown(batch: shardfeed.Batch) -> Any:
    """Tensors of another size in each batch."""
    return torch.full((2000 + 700 * int(batch["cls"][0]),), int(batch["cls"][0]))


def test_batches_of_other_sizes(url):
    for _ in range(2):
        for made in loader(url, transform=grown, num_workers=1):
            assert len(made) == 2000 + 700 * int(made[0])
            assert bool((made == made[0]).all())


def test_a_tensor_in_a_process_that_has_not_its_memory():
    sender = _shared._Sender()
    tensor = torch.arange(5000)
    function, arguments = sender.send(tensor)
    assert bool((function(*arguments) == tensor).all())
    _, arguments = sender.send(tensor)
    _shared._memories.clear()
    with pytest.raises(RuntimeError, match=r"another process than the ones before it; help: "):
        function(*arguments)
