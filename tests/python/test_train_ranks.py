"""The program that trains on several ranks, as torchrun and srun start it; with other numbers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import shardfeed
from http_servers import free_port

pytest.importorskip("torch")
EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = str(EXAMPLES / "python/train_ranks.py")
SECONDS = 200


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("PIL")
    folder, files = tmp_path_factory.mktemp("digits"), tmp_path_factory.mktemp("files")
    subprocess.run([sys.executable, EXAMPLES / "make_digits.py", files], check=True)
    with shardfeed.Writer(str(folder / "digits-%03d.tar"), max_samples=256, index=True) as writer:
        for image in sorted(files.glob("*.png")):
            label = image.with_suffix(".cls")
            writer.write(
                {"__key__": image.stem, "png": image.read_bytes(), "cls": label.read_bytes()}
            )
    return str(folder / f"digits-{{000..{len(writer.shards) - 1:03}}}.tar")


def environment(**more: object) -> dict[str, str]:
    left_out = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    own = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**own, "OMP_NUM_THREADS": "1", **{name: str(value) for name, value in more.items()}}


def torchrun(folder: Path, ranks: int, url: str, epochs: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}"]
    command += [f"--master-port={free_port()}", PROGRAM, url]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment(EPOCHS=epochs),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def ended(process: subprocess.Popen[bytes]) -> tuple[int, int, float]:
    """Ranks, the steps of each, and the share of labels that were right."""
    said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said.decode()
    found = re.search(rb"(\d+) ranks, (\d+) steps each, (\d\.\d+) right", said)
    assert found, said.decode()
    return int(found[1]), int(found[2]), float(found[3])


@pytest.mark.slow
def test_ranks_change_between_runs(tmp_path: Path, digits: str) -> None:
    ranks, steps, _ = ended(torchrun(tmp_path, 2, digits, 2))
    assert ranks == 2
    assert steps % 2 == 0
    in_epoch = steps // 2 * 2  # batches of both ranks
    ranks, steps, right = ended(torchrun(tmp_path, 1, digits, 3))
    assert ranks == 1
    assert in_epoch <= steps <= in_epoch + 1  # the last epoch alone
    assert right > 0.8


@pytest.mark.slow
def test_a_run_that_was_killed_continues(tmp_path: Path, digits: str) -> None:
    import torch

    first = torchrun(tmp_path, 2, digits, 100_000)
    limit = time.monotonic() + SECONDS
    while not (tmp_path / "last.pt").exists():
        assert first.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.05)
    first.terminate()
    first.communicate(timeout=SECONDS)
    epoch = torch.load(tmp_path / "last.pt", weights_only=True)["data"]["epoch"]
    ranks, steps, _ = ended(torchrun(tmp_path, 1, digits, epoch + 1))
    assert ranks == 1
    assert 0 < steps < 100


@pytest.mark.slow
def test_as_srun_starts_it(tmp_path: Path, digits: str) -> None:
    port = free_port()
    names = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "SLURM_NTASKS": 2, "EPOCHS": 1}
    ranks = [
        subprocess.Popen(
            [sys.executable, PROGRAM, digits],
            cwd=tmp_path,
            env=environment(**names, SLURM_PROCID=rank, SLURM_LOCALID=rank),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for rank in range(2)
    ]
    first = ended(ranks[0])
    second, _ = ranks[1].communicate(timeout=SECONDS)
    assert ranks[1].returncode == 0, second.decode()
    assert first[0] == 2
    assert first[1] > 0
