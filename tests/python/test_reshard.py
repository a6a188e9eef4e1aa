"""reshard: the samples of many shards into others, in their order or in a random one."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import numbered, write_tar
from resharding import contents, keys, shuffled
from shardfeed.__main__ import main
from shardfeed._integration import HeldSamples
from shardfeed.cluster import MapError
from shardfeed.cluster._executors import EXECUTORS
from shardfeed.cluster._gather import Gather
from shardfeed.cluster._ordered import OrderedReader
from shardfeed.cluster._permutation import Permutation
from shardfeed.cluster._run import run_task


@pytest.fixture(autouse=True)
def no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("SLURM_") or name in ("SHARDFEED_TASK_INDEX", "JOB_COMPLETION_INDEX"):
            monkeypatch.delenv(name)


# ---- What comes out -----------------------------------------------------------------------------


def test_one_random_order_of_all_samples(tmp_path: Path, shards: Any) -> None:
    urls = shards(7, 33)
    report = shardfeed.reshard(
        urls, f"{tmp_path}/out/", samples=50, shuffle=True, seed=9, workers=2
    )
    assert report.counts == {"made": 5}
    assert report.outputs == [f"{tmp_path}/out/{n:06}.tar" for n in range(5)]
    assert [task.samples for task in report] == [50, 50, 50, 50, 31]
    assert keys(report.outputs) == shuffled(9, 231)
    with shardfeed.Stream(report.outputs, shuffle_shards=False) as stream:
        for sample in stream:
            number = int(sample.key)
            assert bytes(sample["txt"]) == f"{number}".encode().ljust(10, b".")
            assert bytes(sample["cls"]) == b"%d" % (number % 10)
    assert all(task.bytes == os.path.getsize(task.task.output) for task in report)
    assert str(report).splitlines()[0] == (
        f"samples[0:50] -> {tmp_path}/out/000000.tar: made, 50 samples, 50 out"
    )


def test_shards_of_equal_size_in_the_same_order(tmp_path: Path, shards: Any) -> None:
    urls = shards(3, 40)
    report = shardfeed.reshard(urls, f"{tmp_path}/o-%d.tar", samples=25, workers=0)
    assert [task.samples for task in report] == [25, 25, 25, 25, 20]
    assert keys(report.outputs) == [f"{n:06}" for n in range(120)]
    with shardfeed.Writer(f"{tmp_path}/same-%d.tar", max_samples=25) as writer:
        writer.write_all(shardfeed.Stream(urls, shuffle_shards=False))
    for number in range(5):
        made, same = (tmp_path / f"{name}-{number}.tar" for name in ("o", "same"))
        assert made.read_bytes() == same.read_bytes()


@pytest.mark.parametrize("scratch", [None, "tmp/"])
def test_other_formats_in_and_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scratch: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tar(tmp_path / "a.tar", numbered(0, 30))
    with shardfeed.Writer(f"{tmp_path}/b.tar.gz") as writer:
        writer.write_all(shardfeed.Stream(write_tar(tmp_path / "b.tar", numbered(30, 30))))
    with shardfeed.Writer(f"{tmp_path}/c.zip") as writer:
        writer.write_all(shardfeed.Stream(write_tar(tmp_path / "c.tar", numbered(60, 30))))
    inputs = [f"{tmp_path}/{name}" for name in ("a.tar", "b.tar.gz", "c.zip")]
    report = shardfeed.reshard(
        inputs,
        f"{tmp_path}/out-%02d.tar.zst",
        samples=40,
        shuffle=True,
        workers=2,
        scratch=scratch,
        writer={"write_index": True},
        reader={"fields": "cls"},
    )
    assert keys(report.outputs) == shuffled(0, 90)
    with shardfeed.Dataset(report.outputs, index="require") as data:
        assert [list(sample) for sample in data] == [["cls"]] * 90


def test_indexes_are_made_beforehand_or_required(tmp_path: Path, shards: Any) -> None:
    urls = shards(2, 10)
    with pytest.raises(shardfeed.Error, match=r"help: .*index"):
        shardfeed.reshard(urls, f"{tmp_path}/out/", samples=5, reader={"index": "require"})
    assert not (tmp_path / "out").exists()
    shardfeed.reshard(urls, f"{tmp_path}/out/", samples=5, workers=0)
    assert {path.name for path in tmp_path.glob("*.sfidx")} == {
        "s-000.tar.sfidx",
        "s-001.tar.sfidx",
    }


def test_a_key_that_comes_twice_needs_new_keys(tmp_path: Path) -> None:
    for name in "ab":
        write_tar(tmp_path / f"{name}.tar", numbered(0, 5))
    urls = f"{tmp_path}/{{a,b}}.tar"
    with pytest.raises(MapError, match=r"key 00000\d is .*rekey") as raised:
        shardfeed.reshard(urls, f"{tmp_path}/out/", samples=10, shuffle=True, workers=0)
    assert raised.value.shard == f"{tmp_path}/out/000000.tar"
    assert not (tmp_path / "out" / "000000.tar").exists()
    order = Permutation(0, 10)
    for rekey, key in (("#", "{:09}"), ("x/%03d", "x/{:03}")):
        folder = f"{tmp_path}/{len(key)}/"
        report = shardfeed.reshard(urls, folder, samples=4, shuffle=True, rekey=rekey, workers=2)
        assert keys(report.outputs) == [key.format(place) for place in range(10)]
        with shardfeed.Stream(report.outputs, shuffle_shards=False) as stream:
            found = [int(bytes(sample["cls"])) for sample in stream]
        assert found == [order(place) % 5 for place in range(10)]


def mixed(folder: Path) -> str:
    """Four shards whose keys are in no order."""
    order = Permutation(8, 1500)
    for shard in range(4):
        members = [
            (f"{order(place)}.txt", b"%d" % place)
            for place in range(375 * shard, 375 * (shard + 1))
        ]
        write_tar(folder / f"m-{shard}.tar", members)
    return f"{folder}/m-{{0..3}}.tar"


@pytest.mark.parametrize("settings", [{"workers": 0}, {"workers": 3, "memory": "1MiB"}])
def test_the_order_of_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.setattr("shardfeed.cluster._key_order._AT_ONCE", 50)
    urls = mixed(tmp_path)
    report = shardfeed.reshard(
        urls, f"{tmp_path}/out/", samples=400, sort=True, scratch=f"{tmp_path}/tmp/", **settings
    )
    assert [task.samples for task in report] == [400, 400, 400, 300]
    assert keys(report.outputs) == sorted(map(str, range(1500)))
    assert list((tmp_path / "tmp").iterdir()) == []
    assert main(["sort", urls, "-o", f"{tmp_path}/s-%06d.tar", "--max-samples", "400"]) == 0
    for made in report.outputs:
        same = tmp_path / f"s-{Path(made).name}"
        assert Path(made).read_bytes() == same.read_bytes()


def test_payload_is_read_twice(
    tmp_path: Path, shards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the copies, and for the outputs; keys are read without it."""
    urls = shards(3, 20)
    read: list[int] = []
    whole = HeldSamples.read

    def counting(self: HeldSamples, data: Any, numbers: Any, *given: Any) -> int:
        count = whole(self, data, numbers, *given)
        read.extend(numbers[:count])
        return count

    monkeypatch.setattr(HeldSamples, "read", counting)
    common: Any = {"samples": 25, "sort": True, "workers": 0}
    report = shardfeed.reshard(urls, f"{tmp_path}/out/", scratch=f"{tmp_path}/tmp/", **common)
    assert keys(report.outputs) == [f"{n:06}" for n in range(60)]
    assert len(read) == 2 * 60


def test_equal_keys_keep_the_order_of_the_inputs(tmp_path: Path) -> None:
    for number in range(3):
        members = [(f"{key}.txt", b"%d" % number) for key in "dbca"]
        write_tar(tmp_path / f"{number}.tar", members)
    report = shardfeed.reshard(
        f"{tmp_path}/{{0..2}}.tar",
        f"{tmp_path}/out/",
        samples=5,
        sort=True,
        scratch=f"{tmp_path}/tmp/",
        rekey="k%02d",
        workers=0,
    )
    with shardfeed.Stream(report.outputs, shuffle_shards=False) as stream:
        found = [(sample.key, bytes(sample["txt"])) for sample in stream]
    assert found == [(f"k{place:02}", b"%d" % (place % 3)) for place in range(12)]


def test_jobs_of_an_array_sort_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = mixed(tmp_path)
    common: Any = {"samples": 400, "sort": True, "scratch": f"{tmp_path}/tmp/", "workers": 0}
    one = shardfeed.reshard(urls, f"{tmp_path}/one/", **common)
    monkeypatch.setenv("SHARDFEED_TASK_COUNT", "2")
    found = []
    for index in "100110":
        monkeypatch.setenv("SHARDFEED_TASK_INDEX", index)
        report = shardfeed.reshard(urls, f"{tmp_path}/out/", executor="array", **common)
        found.append(" ".join(task.status for task in report))
    elsewhere = "elsewhere elsewhere elsewhere elsewhere"
    assert found == [
        elsewhere,  # job 1 sorts its inputs,
        "made elsewhere made elsewhere",  # job 0 its own, merges, and makes its outputs,
        "there elsewhere there elsewhere",
        "there made there made",
        "there there there there",
        "there there there there",
    ]
    assert contents(report) == contents(one)
    assert list((tmp_path / "tmp").iterdir()) == []


# ---- The same bytes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"workers": 1},
        {"workers": 3},
        {"workers": 2, "memory": "1MiB"},
        {"workers": 2, "scratch": "{}/tmp/"},
        {"workers": 0, "scratch": "{}/tmp/", "memory": 1 << 20},
    ],
)
def test_the_same_bytes_in_every_way(tmp_path: Path, shards: Any, settings: Any) -> None:
    urls = shards(5, 60, 3000)
    common: Any = {"samples": 70, "shuffle": True, "seed": 4}
    one = shardfeed.reshard(urls, f"{tmp_path}/one/", workers=0, **common)
    if "scratch" in settings:
        settings = {**settings, "scratch": settings["scratch"].format(tmp_path)}
    other = shardfeed.reshard(urls, f"{tmp_path}/other/", **common, **settings)
    assert contents(other) == contents(one)
    assert [task.digest for task in other] == [task.digest for task in one]
    if "scratch" in settings:
        assert list((tmp_path / "tmp").iterdir()) == []


def _run_job(urls: str, target: str, index: int, scratch: str | None, reports: Any) -> None:
    os.environ["SHARDFEED_TASK_INDEX"] = str(index)
    os.environ["SHARDFEED_TASK_COUNT"] = "2"
    report = shardfeed.reshard(
        urls, target, samples=30, shuffle=True, executor="array", workers=1, scratch=scratch
    )
    reports.put([task.status for task in report])


@pytest.mark.parametrize("two_phases", [False, True])
def test_two_jobs_of_an_array_at_once(tmp_path: Path, shards: Any, two_phases: bool) -> None:
    urls = shards(4, 50)
    one = shardfeed.reshard(urls, f"{tmp_path}/one/", samples=30, shuffle=True, workers=0)
    context = multiprocessing.get_context("fork")
    scratch = f"{tmp_path}/tmp/" if two_phases else None
    for _ in range(2 if two_phases else 1):  # outputs need what all jobs have sorted
        reports = context.Queue()
        jobs = [
            context.Process(
                target=_run_job, args=(urls, f"{tmp_path}/out/", index, scratch, reports)
            )
            for index in range(2)
        ]
        for job in jobs:
            job.start()
        found = [reports.get(timeout=60) for _ in jobs]
        for job in jobs:
            job.join()
            assert job.exitcode == 0
    assert all(set(statuses) <= {"made", "there", "elsewhere"} for statuses in found)
    made = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.tar")}
    assert made == contents(one)


# ---- What dies ----------------------------------------------------------------------------------


def test_a_task_whose_process_is_killed_is_run_again(
    tmp_path: Path, shards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = shards(3, 40)
    one = shardfeed.reshard(urls, f"{tmp_path}/one/", samples=30, shuffle=True, workers=0)
    died = tmp_path / "died"
    whole = HeldSamples.read

    def deadly(self: HeldSamples, *given: Any) -> int:
        if self.bytes > 0 and not died.exists():  # in the middle of a task
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(self, *given)

    monkeypatch.setattr("shardfeed.cluster._ordered._MOST_AT_ONCE", 8)
    monkeypatch.setattr(HeldSamples, "read", deadly)  # of the forked processes too
    report = shardfeed.reshard(urls, f"{tmp_path}/out/", samples=30, shuffle=True, workers=2)
    assert died.exists()
    assert report.counts == {"made": 4}
    assert contents(report) == contents(one)


@pytest.mark.parametrize("scratch", [None, "tmp/"])
def test_a_run_that_is_killed_is_continued(
    tmp_path: Path, shards: Any, monkeypatch: pytest.MonkeyPatch, scratch: str | None
) -> None:
    urls = shards(6, 200, 20_000)
    monkeypatch.chdir(tmp_path)
    common: Any = {"samples": 60, "shuffle": True, "seed": 5, "workers": 2}
    one = shardfeed.reshard(urls, "one/", **common)
    settings = {**common, "scratch": scratch}
    program = f"import shardfeed\nshardfeed.reshard({urls!r}, 'out/', **{settings!r})"
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(shardfeed.__file__))}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, start_new_session=True
    ) as run:
        while not list(tmp_path.glob("tmp/*.tar" if scratch else "out/*.tar")):
            assert run.poll() is None
            time.sleep(0.001)
        os.killpg(run.pid, signal.SIGKILL)
    assert len(list(tmp_path.glob("out/*.tar"))) < 20
    second = shardfeed.reshard(urls, "out/", **settings)
    assert second.is_complete
    assert contents(second) == contents(one)


# ---- What is open ------------------------------------------------------------------------------


def test_more_indexes_than_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    urls = [str(write_tar(tmp_path / f"{n}.tar", numbered(10 * n, 10))) for n in range(8)]
    opened: list[int] = []
    whole = OrderedReader._opened

    def counting(self: OrderedReader, group: Any) -> Any:
        opened.append(len(group))
        return whole(self, group)

    monkeypatch.setattr(OrderedReader, "_opened", counting)
    common: Any = {"samples": 30, "shuffle": True, "workers": 0}
    report = shardfeed.reshard(urls, f"{tmp_path}/out/", **common)
    assert keys(report.outputs) == shuffled(0, 80)
    assert opened == [8]  # for all outputs
    opened.clear()
    monkeypatch.setattr("shardfeed.cluster._ordered._INDEX", 1 << 15)  # 1 MiB: 32 samples
    again = shardfeed.reshard(urls, f"{tmp_path}/again/", memory="1MiB", **common)
    assert contents(again) == contents(report)
    assert opened == [3, 3, 2] * 3
    opened.clear()
    cut = shardfeed.reshard(urls, f"{tmp_path}/cut/", samples=20, workers=0)
    assert keys(cut.outputs) == [f"{n:06}" for n in range(80)]
    assert opened == [2] * 4  # those that are needed


def test_copies_of_a_job_share_what_is_open(
    tmp_path: Path, shards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under Ray and Dask, which make a copy of the job for each task."""
    urls = shards(4, 20)
    opened: list[int] = []
    whole = OrderedReader._opened

    def counting(self: OrderedReader, group: Any) -> Any:
        opened.append(len(group))
        return whole(self, group)

    def copying(job: Any, tasks: Any, workers: object) -> Any:
        for task in tasks:
            yield run_task(pickle.loads(pickle.dumps(job)), task)

    monkeypatch.setattr(OrderedReader, "_opened", counting)
    monkeypatch.setitem(EXECUTORS, "dask", copying)
    common: Any = {"samples": 8, "shuffle": True, "executor": "dask"}
    reports = [
        shardfeed.reshard(urls, f"{tmp_path}/{name}/", **common, **settings)
        for name, settings in (
            ("one", {}),
            ("two", {"scratch": f"{tmp_path}/tmp/"}),
            ("three", {}),  # of the same inputs, which may have changed
        )
    ]
    assert opened == [4, *(1, 1, 1, 1, 4), 4]  # once for each job; a sorting task needs one input
    for report in reports:
        assert keys(report.outputs) == shuffled(0, 80)


def test_threads_share_no_reader(
    tmp_path: Path, shards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under Dask when its workers have several threads."""
    urls = shards(2, 20)
    both = threading.Barrier(2, timeout=60)
    users: dict[int, set[int]] = {}  # of each reader
    whole = OrderedReader.stretches

    def together(self: OrderedReader, places: Any) -> Any:
        users.setdefault(id(self), set()).add(threading.get_ident())
        both.wait()
        return whole(self, places)

    def threaded(job: Any, tasks: Any, workers: object) -> Any:
        with ThreadPoolExecutor(2) as pool:
            yield from pool.map(lambda task: run_task(job, task), tasks)

    monkeypatch.setattr(OrderedReader, "stretches", together)
    monkeypatch.setitem(EXECUTORS, "dask", threaded)
    report = shardfeed.reshard(urls, f"{tmp_path}/o/", samples=10, shuffle=True, executor="dask")
    assert [len(threads) for threads in users.values()] == [1, 1]
    assert keys(report.outputs) == shuffled(0, 40)


def test_processes_have_the_name_of_the_command(
    tmp_path: Path, shards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Gather.attempt

    def telling(self: Gather, task: Any) -> Any:
        (tmp_path / "name").write_text(multiprocessing.current_process().name)
        return whole(self, task)

    monkeypatch.setattr(Gather, "attempt", telling)  # of the forked process too
    shardfeed.reshard(shards(1, 4), f"{tmp_path}/o/", samples=4, workers=1)
    assert (tmp_path / "name").read_text() == "shardfeed reshard"


@pytest.mark.parametrize(("shard", "samples"), [(0, 11), (0, 9), (1, 11), (1, 9)])
def test_an_input_that_changes_meanwhile(
    tmp_path: Path, shards: Any, monkeypatch: pytest.MonkeyPatch, shard: int, samples: int
) -> None:
    urls = shards(2, 10)
    whole = OrderedReader.stretches

    def changed(self: OrderedReader, places: Any) -> Any:
        write_tar(tmp_path / f"s-00{shard}.tar", numbered(10 * shard, samples))
        return whole(self, places)

    monkeypatch.setattr(OrderedReader, "stretches", changed)
    with pytest.raises(MapError, match=rf"s-00{shard}\.tar: it has no longer the 10 samples"):
        shardfeed.reshard(urls, f"{tmp_path}/out/", samples=20, shuffle=True, workers=0)
    assert list(tmp_path.glob("out/*.tar")) == []


# ---- What fails, and scratch --------------------------------------------------------------------


@pytest.mark.parametrize("way", [{"shuffle": True}, {"sort": True}])
def test_a_sort_that_fails_names_its_input(tmp_path: Path, shards: Any, way: Any) -> None:
    urls = shards(2, 20, 2000)

    def changed(_: Any) -> None:
        write_tar(tmp_path / "s-001.tar", numbered(20, 21))

    with pytest.raises(MapError, match=r"s-001\.tar") as raised:
        shardfeed.reshard(
            urls,
            f"{tmp_path}/out/",
            samples=40,
            scratch=f"{tmp_path}/tmp/",
            workers=0,
            on_task=changed,
            **way,
        )
    assert raised.value.report.counts == {"made": 1, "failed": 1}
    assert raised.value.shard == f"{tmp_path}/s-001.tar"


def test_a_key_like_that_of_the_table_of_a_copy(tmp_path: Path) -> None:
    members = [(f"{key}.txt", key.encode()) for key in ("a", "shardfeed-starts", "z")]
    url = str(write_tar(tmp_path / "a.tar", members))
    report = shardfeed.reshard(
        url, f"{tmp_path}/out/", samples=2, shuffle=True, scratch=f"{tmp_path}/tmp/", workers=0
    )
    assert sorted(keys(report.outputs)) == ["a", "shardfeed-starts", "z"]


@pytest.mark.parametrize("way", [{"shuffle": True}, {"sort": True}])
def test_scratch_as_a_file_url(tmp_path: Path, shards: Any, way: Any) -> None:
    """Its folder is made, and emptied at the end."""
    urls = shards(2, 20)
    folder = tmp_path / "a b" / "tmp"
    report = shardfeed.reshard(
        urls, f"{tmp_path}/out/", samples=15, scratch=f"{folder.as_uri()}/", workers=0, **way
    )
    assert report.counts == {"made": 3}
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("way", [{"shuffle": True}, {"sort": True}])
def test_indexes_of_copies_are_used(
    tmp_path: Path, shards: Any, caplog: pytest.LogCaptureFixture, way: Any
) -> None:
    """Also where outputs may have a key twice, whose indexes readers by default refuse."""
    urls = shards(2, 20)
    caplog.set_level("INFO", "shardfeed")
    report = shardfeed.reshard(
        urls,
        f"{tmp_path}/out/",
        samples=15,
        scratch=f"{tmp_path}/tmp/",
        workers=0,
        writer={"duplicate_keys": "accept"},
        **way,
    )
    assert report.counts == {"made": 3}
    assert "s-000.tar.sfidx" in caplog.text  # of an input, which had none
    assert "is not used" not in caplog.text


def test_a_damaged_input_fails_with_its_name(tmp_path: Path, shards: Any) -> None:
    urls = shards(2, 20, 2000)
    shardfeed.Dataset(urls).close()
    path = tmp_path / "s-001.tar"
    with path.open("r+b") as file:
        file.seek(2048)
        file.write(b"x" * 4096)
    with pytest.raises(shardfeed.Error, match=r"s-001\.tar"):
        shardfeed.reshard(urls, f"{tmp_path}/out/", samples=40, shuffle=True, workers=0)
    assert list(tmp_path.glob("out/*.tar")) == []


def test_scratch_of_something_else_is_found_out(
    tmp_path: Path, shards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = shards(4, 50)
    common: Any = {"samples": 30, "shuffle": True, "scratch": f"{tmp_path}/tmp/", "workers": 0}
    monkeypatch.setenv("SHARDFEED_TASK_COUNT", "2")
    monkeypatch.setenv("SHARDFEED_TASK_INDEX", "0")
    report = shardfeed.reshard(urls, f"{tmp_path}/out/", executor="array", **common)
    assert report.counts == {"elsewhere": 7}
    first, third = sorted((tmp_path / "tmp").glob("*.tar"))
    for a, b in ((first, third), (f"{first}.sfidx", f"{third}.sfidx")):
        os.rename(a, tmp_path / "kept")
        os.rename(b, a)
        os.rename(tmp_path / "kept", b)
    with pytest.raises(MapError, match="are not those of this order"):
        shardfeed.reshard(urls, f"{tmp_path}/out/", **common)
