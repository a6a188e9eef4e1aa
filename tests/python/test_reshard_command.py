"""reshard in a bucket, and as a verb of the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from aws_servers import Bucket, endpoint
from conftest import numbered, write_tar
from http_servers import stand_in
from resharding import keys, shuffled
from shardfeed.__main__ import main


@pytest.mark.parametrize("two_phases", [False, True])
def test_in_a_bucket(tmp_path: Path, shards: Any, two_phases: bool) -> None:
    urls = shards(3, 20)
    common: Any = {"samples": 25, "shuffle": True, "workers": 0}
    one = shardfeed.reshard(urls, f"{tmp_path}/one/", **common)
    with stand_in(Bucket()) as server:
        store: Any = {"s3_endpoint": endpoint(server), "s3_access_key": "KEY", "retries": 2}
        store["s3_secret_key"] = "hush-KEY"
        settings: Any = {**common, "reader": store, "writer": store}
        if two_phases:
            settings["scratch"] = "s3://bkt1/tmp/"
        with shardfeed.Writer(
            "s3://bkt1/in-%03d.tar", max_samples=20, write_index=True, **store
        ) as writer:
            writer.write_all(shardfeed.Stream(urls, shuffle_shards=False))
        source = "s3://bkt1/in-{000..002}.tar"
        report = shardfeed.reshard(source, "s3://bkt1/out/", **settings)
        assert [task.digest for task in report] == [task.digest for task in one]
        assert keys(report.outputs, **store) == shuffled(0, 60)
        again = shardfeed.reshard(source, "s3://bkt1/out/", **settings)
        assert again.counts == {"there": 3}
        with pytest.raises(shardfeed.UsageError, match="another order"):
            shardfeed.reshard(source, "s3://bkt1/out/", **{**settings, "seed": 1})
        with shardfeed.Writer("s3://bkt1/v2/in-%03d.tar", max_samples=20, **store) as writer:
            writer.write_all(shardfeed.Stream(urls, shuffle_shards=False))
        with pytest.raises(shardfeed.UsageError, match="inputs is"):
            shardfeed.reshard("s3://bkt1/v2/in-{000..002}.tar", "s3://bkt1/out/", **settings)
        with pytest.raises(shardfeed.UsageError, match="is the input s3://bkt1/in-000"):
            shardfeed.reshard(source, "s3://bkt1/in-%03d.tar", **settings)


def test_the_command(tmp_path: Path, shards: Any, capfd: Any) -> None:
    urls = shards(3, 20)
    words = ["reshard", "--shuffle", "--seed", "1", "--samples", "25", "-p", "2"]
    assert main([*words, "--write-index", urls, f"{tmp_path}/out/"]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count(": made, ") == 3
    made = [f"{tmp_path}/out/{n:06}.tar" for n in range(3)]
    assert keys(made) == shuffled(1, 60)
    assert os.path.exists(f"{made[0]}.sfidx")
    assert main([*words, "--json", "-q", urls, f"{tmp_path}/out/"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    tasks = json.loads(out)["tasks"]
    assert [task["status"] for task in tasks] == ["there"] * 3
    assert [(task["start"], task["stop"]) for task in tasks] == [(0, 25), (25, 50), (50, 60)]
    sort = ["--sort", "--scratch", f"{tmp_path}/tmp/", "-q"]
    assert main(["reshard", "-n", "25", *sort, *made, f"{tmp_path}/sorted/"]) == 0
    assert keys(f"{tmp_path}/sorted/*.tar") == [f"{n:06}" for n in range(60)]
    assert main(["reshard", "-n", "30", "--rekey", "#", urls, f"{tmp_path}/cut-%d.tar"]) == 0
    assert keys([f"{tmp_path}/cut-{n}.tar" for n in range(2)]) == [f"{n:09}" for n in range(60)]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["-n", "5", "a.tar"], 2, ""),
        (["s.tar", "out/"], 2, "samples"),
        (["-n", "0", "s.tar", "out/"], 2, "samples"),
        (["-n", "5", "s.tar", "out.tar"], 2, "no number of the shard"),
        (["-n", "5", "-", "out/"], 2, "a pipe cannot be read"),
        (["-n", "5", "nothing.tar", "out/"], 1, "nothing.tar"),
        (["-n", "5", "--executor", "cloud", "s.tar", "out/"], 2, "executor"),
        (["-n", "5", "--nonsense", "s.tar", "out/"], 2, "nonsense"),
    ],
)
def test_the_command_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any, words: Any, status: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tar(tmp_path / "s.tar", numbered(0, 5))
    assert main(["reshard", *words]) == status
    out, err = capfd.readouterr()
    assert out == ""
    assert said in err
    assert "Traceback" not in err
    assert not list(tmp_path.glob("out/*.tar"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_is_interrupted(tmp_path: Path, shards: Any, number: int) -> None:
    urls = shards(6, 200, 20_000)
    words = ["reshard", "--shuffle", "-n", "5", "-p", "2", urls, f"{tmp_path}/out/"]
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(shardfeed.__file__))}
    with subprocess.Popen(
        [sys.executable, "-m", "shardfeed", *words],
        env=environment,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as run:
        # Of both processes: Python loses what a handler raises while it forks.
        while len(list(tmp_path.glob("out/*.tar"))) < 8:
            assert run.poll() is None
            time.sleep(0.001)
        run.send_signal(number)
        run.communicate(timeout=60)
        assert run.returncode not in (0, None)
        assert _processes_of(run.pid) == []
    made = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert 1 < len(made) < 241  # with the mark, and nothing that is not whole
    assert all(name.endswith((".tar", ".tar.plan")) for name in made)


def _processes_of(session: int) -> list[str]:
    """The processes of a session, without those that only their parent has not seen end."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(path.parent.name)
    return found
