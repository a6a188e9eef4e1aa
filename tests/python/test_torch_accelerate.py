"""Accelerate, Trainer and Hugging Face datasets deal out samples too: two processes, each with the
real packages.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
from collections import Counter

import pytest
from batches import rows_tar

pytest.importorskip("accelerate")
pytest.importorskip("datasets")
pytest.importorskip("transformers")

pytestmark = pytest.mark.slow

SAMPLES = 64  # in four shards, and in equal parts for all that share them
ALL = Counter(range(SAMPLES))

PROCESS = """
import json, sys, warnings
warnings.filterwarnings("ignore")
import torch
from torch.utils.data import DataLoader
import shardfeed, shardfeed.torch

def number(sample):
    return int(bytes(sample["cls"]))

def inputs(sample):
    return {"x": torch.tensor([float(int(bytes(sample["cls"])))])}

def flat(batches):
    return [n for batch in batches for n in batch.tolist()]

def refused(batches):
    try:
        list(batches)
    except shardfeed.UsageError as error:
        return str(error)
    return "not refused"

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.seen = []

    def forward(self, x):
        if self.training:
            self.seen += x.flatten().int().tolist()
        loss = self.layer(x / 100).square().mean()
        return {"loss": loss, "logits": x}

def accelerator(**options):
    return Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**options))

def trainer(model, data, kind=None, **options):
    from transformers import Trainer, TrainingArguments
    arguments = TrainingArguments(
        output_dir=folder, use_cpu=True, per_device_train_batch_size=4, report_to=[],
        save_strategy="no", logging_strategy="no", disable_tqdm=True,
        remove_unused_columns=False, dataloader_pin_memory=False, **options,
    )
    return (kind or Trainer)(model=model, args=arguments, train_dataset=data)
"""

# Threads of gloo may end the interpreter by abort() when it is finalized.
MAIN = """
if __name__ == "__main__":
    import os
    from accelerate import Accelerator, DataLoaderConfiguration
    url, folder, chosen = sys.argv[1:3] + [json.loads(sys.argv[3])]
    print("result", json.dumps({case: globals()[case]() for case in chosen}), flush=True)
    os._exit(0)
"""

# Functions of the program. Those that are refused give the message.
REFUSED = {
    "prepare": """
        made = accelerator()
        stream = shardfeed.torch.Stream(url, transform=number)
        return refused(made.prepare(DataLoader(stream, batch_size=4)))
    """,
    "prepare_where_each_process_reads": """
        made = accelerator(dispatch_batches=False)
        stream = shardfeed.torch.Stream(url, transform=number)
        return refused(made.prepare(DataLoader(stream, batch_size=4)))
    """,
    "prepare_batches": """
        made = accelerator()
        stream = shardfeed.torch.Stream(url, batch=4, decode="cls:int")
        return refused(made.prepare(DataLoader(stream, batch_size=None)))
    """,
    "prepare_with_workers": """
        seen = []
        for dispatches in (True, False):
            made = accelerator(dispatch_batches=dispatches)
            stream = shardfeed.torch.Stream(url, transform=number)
            batches = DataLoader(
                stream, batch_size=4, num_workers=1, multiprocessing_context="spawn"
            )
            seen.append(refused(made.prepare(batches)))
        return " and ".join(seen)
    """,
    # The first process reads for all. In the others only set_epoch() is called, and it must refuse.
    "prepare_with_forked_workers": """
        made = accelerator(dispatch_batches=True)
        stream = shardfeed.torch.Stream(url, transform=number)
        batches = DataLoader(stream, batch_size=4, num_workers=1, multiprocessing_context="fork")
        return refused(made.prepare(batches))
    """,
    "prepare_with_given_ranks": """
        made = accelerator()
        stream = shardfeed.torch.Stream(
            url, transform=number, rank=made.process_index, world_size=made.num_processes
        )
        return refused(made.prepare(DataLoader(stream, batch_size=4)))
    """,
    "trainer_of_transformers": """
        data = shardfeed.torch.Stream(url, transform=inputs)
        try:
            trainer(Model(), data, max_steps=8).train()
        except shardfeed.UsageError as error:
            return str(error)
        return "not refused"
    """,
    "split_by_node": """
        from datasets import IterableDataset
        from datasets.distributed import split_dataset_by_node

        def rows():
            for n in shardfeed.torch.Stream(url, transform=number):
                yield {"n": n}

        rank = torch.distributed.get_rank()
        data = split_dataset_by_node(IterableDataset.from_generator(rows), rank, 2)
        return refused(row["n"] for row in data)
    """,
    "shard_of_transformers": """
        from transformers.trainer_pt_utils import IterableDatasetShard

        made = accelerator()
        stream = shardfeed.torch.Stream(url, transform=number)
        return refused(
            IterableDatasetShard(
                stream, batch_size=4, num_processes=2, process_index=made.process_index
            )
        )
    """,
}

# These give what a process saw in each pass.
RIGHT = {
    "prepare_rank_0_of_1": """
        seen = []
        for dispatches in (True, False):
            for workers in (0, 1):
                made = accelerator(dispatch_batches=dispatches)
                stream = shardfeed.torch.Stream(
                    url, transform=number, shuffle=9, shuffle_shards=True, rank=0, world_size=1
                )
                batches = DataLoader(stream, batch_size=4, num_workers=workers)
                batches = made.prepare(batches)
                seen += [flat(batches), flat(batches)]
                assert seen[-1] != seen[-2]  # the next epoch
        return seen
    """,
    "prepare_batches_rank_0_of_1": """
        made = accelerator()
        stream = shardfeed.torch.Stream(url, batch=4, decode="cls:int", rank=0, world_size=1)
        batches = made.prepare(DataLoader(stream, batch_size=None))
        return [flat(batch["cls"] for batch in batches)]
    """,
    "prepare_loader_as_it_is": """
        made = accelerator()
        batches = shardfeed.torch.loader(url, batch=4, decode="cls:int")
        prepared, model = made.prepare(batches, torch.nn.Linear(1, 1))
        return [flat(batch["cls"] for batch in prepared), flat(b["cls"] for b in batches)]
    """,
    "model_only": """
        made = accelerator()
        model, other = made.prepare(
            torch.nn.Linear(1, 1), DataLoader(range(32), batch_size=4)
        )
        stream = shardfeed.torch.Stream(url, transform=number)
        plain = DataLoader(stream, batch_size=4)
        beside = [batch for _, batch in zip(other, plain)]  # while a prepared one runs
        workers = DataLoader(stream, batch_size=4, num_workers=2)
        return [flat(plain), flat(workers)]
    """,
    "shards_of_nodes": """
        # Two nodes of one process each, which something else deals out in: nothing is lost.
        from accelerate.data_loader import IterableDatasetShard

        made = accelerator()
        stream = shardfeed.torch.Stream(
            url, transform=number, rank=made.process_index, world_size=made.num_processes
        )
        return [list(IterableDatasetShard(stream, num_processes=1))]
    """,
    "split_by_node_rank_0_of_1": """
        from datasets import IterableDataset
        from datasets.distributed import split_dataset_by_node

        def rows():
            whole = {"rank": 0, "world_size": 1, "worker": 0, "num_workers": 1}
            for n in shardfeed.torch.Stream(url, transform=number, **whole):
                yield {"n": n}

        rank = torch.distributed.get_rank()
        data = split_dataset_by_node(IterableDataset.from_generator(rows), rank, 2)
        workers = DataLoader(data, batch_size=None, num_workers=2)
        return [[row["n"] for row in batches] for batches in (data, workers)]
    """,
    "trainer_rank_0_of_1": """
        data = shardfeed.torch.Stream(url, transform=inputs, rank=0, world_size=1)
        model = Model()
        trainer(model, data, max_steps=8).train()
        return [model.seen]
    """,
    "trainer_loader_as_it_is": """
        from transformers import Trainer

        batches = shardfeed.torch.loader(url, batch=4, decode="cls:float", epoch_samples=64)

        class Fed(Trainer):
            def get_train_dataloader(self):
                return batches

            def compute_loss(self, model, inputs, *args, **kwargs):
                return super().compute_loss(
                    model, {"x": inputs["cls"].float().reshape(-1, 1)}, *args, **kwargs
                )

        model = Model()
        trainer(model, None, Fed, num_train_epochs=2).train()
        half = len(model.seen) // 2
        return [model.seen[:half], model.seen[half:]]
    """,
}


def together(tmp_path, cases: dict[str, str], url: str) -> list[dict]:
    """What two processes of one group that run these cases say, case by case."""
    program = tmp_path / "program.py"
    functions = [f"def {name}():{body}" for name, body in cases.items()]
    program.write_text(PROCESS + "".join(map(textwrap.dedent, [*functions])) + MAIN)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    running = []
    for rank in range(2):
        group = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2}
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
        environment = {**group, **where, "HF_HUB_OFFLINE": 1}
        running.append(
            subprocess.Popen(
                [sys.executable, program, url, tmp_path, json.dumps(list(cases))],
                env={**os.environ, **{name: str(value) for name, value in environment.items()}},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        done = [process.communicate(timeout=300) for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [0, 0], done
    results = []
    for output, _ in done:
        (line,) = (line for line in output.splitlines() if line.startswith("result "))
        results.append(json.loads(line[len("result ") :]))
    return results


@pytest.fixture
def url(tmp_path) -> str:
    """Four shards of 16 samples each, numbered through."""
    count = SAMPLES // 4
    paths = []
    for shard in range(4):
        rows = ({"cls": b"%d" % (shard * count + n)} for n in range(count))
        paths.append(rows_tar(tmp_path / f"{shard}.tar", rows))
    return "::".join(paths)


def test_a_share_of_a_share_is_refused(tmp_path, url):
    for rank, found in enumerate(together(tmp_path, REFUSED, url)):
        assert list(found) == list(REFUSED)
        for case, message in found.items():
            assert "not refused" not in message, case
            assert f"rank {rank} of 2, so this stream reads one of 2 parts" in message, case
            assert "would be read by nobody" in message
            assert "rank=0, world_size=1" in message
            assert "shardfeed.torch.loader" in message


def test_every_sample_comes_once(tmp_path, url):
    first, second = together(tmp_path, RIGHT, url)
    assert list(first) == list(second) == list(RIGHT)
    for case, passes in first.items():
        assert len(passes) == len(second[case]) > 0, case
        for one, other in zip(passes, second[case]):
            assert len(one) == len(other) == SAMPLES // 2, case
            assert Counter(one + other) == ALL, case
