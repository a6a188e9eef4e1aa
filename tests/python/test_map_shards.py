"""map_shards: one task for each shard, in processes and in job arrays."""

from __future__ import annotations

import io
import json
import multiprocessing
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
from conftest import write_tar
from http_servers import Answer, ranged, stand_in
from shardfeed.__main__ import main
from shardfeed.cluster import (
    ChannelStatistics,
    Histogram,
    MapError,
    Reducer,
    TokenCounts,
    merged_result,
)
from shardfeed.cluster._executors import array_share
from shardfeed.cluster._tasks import is_published


def keys(url: Any, **options: Any) -> list[str]:
    with shardfeed.Stream(url, **options) as stream:
        return [sample.key for sample in stream]


def number(sample: Any) -> int:
    return int(sample.key)


def output(tmp_path: Path) -> str:
    return f"{tmp_path}/out/"


# ---- What a function makes ----------------------------------------------------------------------


def test_each_shard_becomes_a_shard(tmp_path: Path, shards: Any) -> None:
    def doubled(sample: Any) -> Any:
        return {"cls": 2 * int(bytes(sample["cls"])), "txt": sample["txt"]}

    urls = shards(3, 20)
    report = shardfeed.map_shards(urls, output(tmp_path), doubled, workers=2)
    assert report.counts == {"made": 3}
    assert report.outputs == [f"{tmp_path}/out/s-{n:03}.tar" for n in range(3)]
    with shardfeed.Stream(report.outputs, shuffle_shards=False) as stream:
        found = [(s.key, int(bytes(s["cls"])), bytes(s["txt"])) for s in stream]
    assert found == [(f"{n:06}", n % 10 * 2, f"{n}".encode().ljust(10, b".")) for n in range(60)]
    assert [(task.samples, task.written) for task in report] == [(20, 20)] * 3
    assert all(task.digest and task.bytes == os.path.getsize(task.task.output) for task in report)
    assert str(report).splitlines()[1].endswith("out/s-001.tar: made, 20 samples, 20 out")


def test_samples_are_left_out_and_become_several(tmp_path: Path, shards: Any) -> None:
    def changed(sample: Any) -> Any:
        if number(sample) % 4 == 0:
            return None
        if number(sample) % 4 == 1:
            return sample
        if number(sample) % 4 == 2:
            return [{"a": b"1"}, {"a": b"2"}]
        return ({"__key__": f"{sample.key}x{n}", "a": b"3"} for n in range(number(sample) % 3))

    report = shardfeed.map_shards(shards(1, 8), f"{tmp_path}/o-%02d.tar", changed, workers=1)
    assert keys(f"{tmp_path}/o-00.tar") == [
        *("000001", "000002-0", "000002-1", "000005", "000006-0", "000006-1", "000007x0")
    ]
    assert (report[0].samples, report[0].written) == (8, 7)


def test_without_a_function_the_same_bytes(tmp_path: Path, shards: Any) -> None:
    shardfeed.map_shards(shards(1, 50), f"{tmp_path}/a-%d.tar", workers=0)
    with shardfeed.Writer(f"{tmp_path}/b-%d.tar") as writer:
        writer.write_all(shardfeed.Stream(shards(1, 50)))
    assert (tmp_path / "a-0.tar").read_bytes() == (tmp_path / "b-0.tar").read_bytes()


def test_a_function_gets_decoded_fields(tmp_path: Path, shards: Any) -> None:
    def changed(fields: Any) -> Any:
        return {"cls": fields["cls"] + 1, "key.txt": fields["__key__"]}

    urls = shards(1, 5)
    shardfeed.map_shards(urls, output(tmp_path), changed, decode="cls:int", workers=0)
    with shardfeed.Stream(f"{tmp_path}/out/s-000.tar") as stream:
        assert [(bytes(s["cls"]), bytes(s["key.txt"])) for s in stream] == [
            (b"%d" % (n + 1), f"{n:06}".encode()) for n in range(5)
        ]


def test_tasks_of_some_samples(tmp_path: Path, shards: Any) -> None:
    urls = shards(2, 25)
    report = shardfeed.map_shards(urls, output(tmp_path), samples_per_task=10, workers=2)
    assert [Path(url).name for url in report.outputs] == [
        *("s-000-000000000.tar", "s-000-000000010.tar", "s-000-000000020.tar"),
        *("s-001-000000000.tar", "s-001-000000010.tar", "s-001-000000020.tar"),
    ]
    assert keys(report.outputs, shuffle_shards=False) == [f"{n:06}" for n in range(50)]
    assert [task.samples for task in report] == [10, 10, 5, 10, 10, 5]


# ---- What is there ------------------------------------------------------------------------------


def test_no_overwriting_as_a_text(tmp_path: Path, shards: Any) -> None:
    urls = shards(2, 3)
    for no in ("false", "no", "0"):
        report = shardfeed.map_shards(urls, f"{tmp_path}/out/", workers=0, writer={"overwrite": no})
    assert report.counts == {"there": 2}
    report = shardfeed.map_shards(urls, f"{tmp_path}/out/", workers=0, writer={"overwrite": "yes"})
    assert report.counts == {"made": 2}


def test_what_is_published_is_skipped(tmp_path: Path, shards: Any) -> None:
    urls = shards(4, 5)
    first = shardfeed.map_shards(urls, output(tmp_path), workers=0)
    kept = {url: os.stat(url).st_mtime_ns for url in first.outputs}
    os.remove(first.outputs[2])
    del kept[first.outputs[2]]
    second = shardfeed.map_shards(urls, output(tmp_path), workers=2)
    assert [task.status for task in second] == ["there", "there", "made", "there"]
    assert second.outputs == first.outputs
    assert {url: os.stat(url).st_mtime_ns for url in kept} == kept
    assert second[2].digest == first[2].digest


def test_an_input_of_which_nothing_is_left_is_done_too(tmp_path: Path, shards: Any) -> None:
    calls = tmp_path / "calls"

    def only_first(sample: Any) -> Any:
        with calls.open("a") as file:
            file.write("x")
        return sample if number(sample) < 5 else None

    urls = shards(2, 5)
    first = shardfeed.map_shards(urls, output(tmp_path), only_first, workers=1)
    assert [task.status for task in first] == ["made", "empty"]
    assert first.is_complete
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["s-000.tar", "s-001.tar.empty"]
    second = shardfeed.map_shards(urls, output(tmp_path), only_first, workers=1)
    assert [task.status for task in second] == ["there", "empty"]
    assert second.outputs == first.outputs == [f"{tmp_path}/out/s-000.tar"]
    assert len(calls.read_text()) == 10


def test_outputs_in_a_bucket(tmp_path: Path, shards: Any) -> None:
    def only_first(sample: Any) -> Any:
        return sample if number(sample) < 5 else None

    urls = shards(2, 5)
    with stand_in(Bucket()) as server:
        store: Any = {"s3_endpoint": endpoint(server), "s3_access_key": "KEY", "retries": 2}
        store["s3_secret_key"] = "hush-KEY"
        settings: Any = {"reader": store, "writer": store, "workers": 0}
        first = shardfeed.map_shards(urls, "s3://bkt1/out/", only_first, **settings)
        assert [task.status for task in first] == ["made", "empty"]
        assert keys(first.outputs, **store) == [f"{n:06}" for n in range(5)]
        second = shardfeed.map_shards(urls, "s3://bkt1/out/", only_first, **settings)
        assert [task.status for task in second] == ["there", "empty"]
        counted: Any = {**settings, "reduce": Histogram("cls")}
        report = shardfeed.map_shards(urls, "s3://bkt1/counts/", **counted)
        assert report.result == {str(n): 1 for n in range(10)}
        assert shardfeed.map_shards(urls, "s3://bkt1/counts/", **counted).counts == {"there": 2}


def test_whether_an_object_of_a_server_is_there(tmp_path: Path, shards: Any) -> None:
    path = Path(shards(1, 3).replace("{000..000}", "000"))
    there = ranged(path.read_bytes())
    missing = Answer(404)
    with stand_in(lambda asked: there(asked) if asked.path == "/s.tar" else missing) as server:
        assert is_published(server.url("s.tar"), {"retries": 1})
        assert not is_published(server.url("t.tar"), {"retries": 1})


def _run(urls: str, target: str, barrier: Any, found: Any) -> None:
    def slow(sample: Any) -> Any:
        if number(sample) % 20 == 0:
            barrier.wait(30)  # the other run has begun this shard too
        return sample

    report = shardfeed.map_shards(urls, target, slow, workers=0)
    found.put([(task.status, task.written) for task in report])


def test_two_runs_at_once_do_no_harm(tmp_path: Path, shards: Any) -> None:
    urls = shards(1, 20)
    context = multiprocessing.get_context("fork")
    barrier, found = context.Barrier(2), context.Queue()
    runs = [
        context.Process(target=_run, args=(urls, output(tmp_path), barrier, found))
        for _ in range(2)
    ]
    for run in runs:
        run.start()
    reports = sorted(found.get(timeout=60) for _ in runs)
    for run in runs:
        run.join()
        assert run.exitcode == 0
    assert reports == [[("made", 20)], [("there", 0)]]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["s-000.tar"]
    assert keys(f"{tmp_path}/out/s-000.tar") == [f"{n:06}" for n in range(20)]


# ---- What fails ---------------------------------------------------------------------------------


def test_a_task_whose_process_is_killed_is_run_again(tmp_path: Path, shards: Any) -> None:
    died = tmp_path / "died"

    def deadly(sample: Any) -> Any:
        if number(sample) == 13 and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return sample

    report = shardfeed.map_shards(shards(4, 10), output(tmp_path), deadly, workers=2)
    assert died.exists()
    assert report.counts == {"made": 4}
    assert keys(report.outputs, shuffle_shards=False) == [f"{n:06}" for n in range(40)]


def test_a_task_that_always_dies_fails_alone(tmp_path: Path, shards: Any) -> None:
    def deadly(sample: Any) -> Any:
        if number(sample) == 13:
            os._exit(9)
        return sample

    with pytest.raises(MapError) as raised:
        shardfeed.map_shards(shards(4, 10), output(tmp_path), deadly, workers=2, retries=1)
    assert raised.value.report.counts == {"made": 3, "failed": 1}
    assert "the process ended with exit status 9, 2 times" in str(raised.value)
    assert raised.value.shard == f"{tmp_path}/s-001.tar"
    published = (tmp_path / "out").glob("s-*.tar")
    assert sorted(path.name for path in published) == ["s-000.tar", "s-002.tar", "s-003.tar"]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_exception_says_shard_and_key(tmp_path: Path, shards: Any, workers: int) -> None:
    def wrong(sample: Any) -> Any:
        return sample if number(sample) != 13 else 1 / 0

    with pytest.raises(MapError) as raised:
        shardfeed.map_shards(shards(3, 10), output(tmp_path), wrong, workers=workers)
    assert raised.value.shard == f"{tmp_path}/s-001.tar"
    assert raised.value.key == "000013"
    assert 's-001.tar: sample "000013": ZeroDivisionError: division by zero' in str(raised.value)
    assert "in wrong" in raised.value.traceback
    assert raised.value.report.counts == {"made": 2, "failed": 1}
    assert not (tmp_path / "out" / "s-001.tar").exists()


def test_samples_at_fault_are_skipped(tmp_path: Path, shards: Any) -> None:
    def wrong(sample: Any) -> Any:
        if number(sample) == 3:
            return "text"
        if number(sample) == 4:
            return {"json": object()}
        return sample if number(sample) != 5 else 1 / 0

    report = shardfeed.map_shards(shards(1, 8), output(tmp_path), wrong, on_error="skip", workers=1)
    assert keys(report.outputs) == ["000000", "000001", "000002", "000006", "000007"]
    assert (report[0].samples, report[0].written, report[0].skipped) == (8, 5, 3)
    assert "3 skipped" in str(report)


def test_a_damaged_shard_fails_alone(tmp_path: Path, shards: Any) -> None:
    urls = shards(3, 10)
    path = tmp_path / "s-001.tar"
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(MapError, match=r"s-001\.tar") as raised:
        shardfeed.map_shards(urls, output(tmp_path), workers=0)
    assert [task.status for task in raised.value.report] == ["made", "failed", "made"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"executor": "cloud"}, "give one of local, array"),
        ({"on_error": "ignore"}, 'give "raise" or "skip"'),
        ({"reader": {"shuffle": 10}}, "the option shuffle is not for tasks"),
        ({"writer": {"max_samples": 10}}, "samples_per_task"),
        ({"samples_per_task": 0}, "give 1 or more"),
        ({"output": None}, "there is no output"),
        ({"output": "out.tar"}, "no number of the task"),
        ({"output": "o-%s-%d.tar"}, "one with one number"),
        ({"output": lambda task: "same.tar"}, "would both make same.tar"),
        ({"workers": -1}, "give 0 or more"),
    ],
)
def test_wrong_arguments(tmp_path: Path, shards: Any, arguments: Any, said: str) -> None:
    urls = shards(2, 2)
    with pytest.raises(shardfeed.UsageError, match=said):
        shardfeed.map_shards(urls, **{"output": output(tmp_path), **arguments})


# ---- Job arrays ---------------------------------------------------------------------------------

_VARIABLES = (
    "SHARDFEED_TASK_INDEX",
    "SHARDFEED_TASK_COUNT",
    "JOB_COMPLETION_INDEX",
    "SLURM_PROCID",
)


@pytest.fixture(autouse=True)
def no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*_VARIABLES, *(name for name in os.environ if name.startswith("SLURM_"))]:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def reports_of_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What each of some jobs of an array of two reports, one after another."""

    def run(indexes: str, urls: Any, **arguments: Any) -> list[Any]:
        reports = []
        monkeypatch.setenv("SHARDFEED_TASK_COUNT", "2")
        for index in indexes:
            monkeypatch.setenv("SHARDFEED_TASK_INDEX", index)
            reports.append(
                shardfeed.map_shards(
                    urls, output(tmp_path), executor="array", workers=0, **arguments
                )
            )
        return reports

    return run


def test_each_job_of_an_array_makes_its_share(shards: Any, reports_of_jobs: Any) -> None:
    reports = reports_of_jobs("101", shards(5, 4))
    report = reports[-1]
    assert [" ".join(task.status for task in one) for one in reports] == [
        "elsewhere made elsewhere made elsewhere",
        "made there made there made",
        "there there there there there",
    ]
    assert keys(report.outputs, shuffle_shards=False) == [f"{n:06}" for n in range(20)]


@pytest.mark.parametrize(
    ("environment", "share"),
    [
        ({"SHARDFEED_TASK_INDEX": "3", "SHARDFEED_TASK_COUNT": "8"}, (3, 8)),
        ({"JOB_COMPLETION_INDEX": "0", "SHARDFEED_TASK_COUNT": "4"}, (0, 4)),
        (
            {
                "SLURM_ARRAY_TASK_ID": "7",
                "SLURM_ARRAY_TASK_MIN": "1",
                "SLURM_ARRAY_TASK_MAX": "9",
                "SLURM_ARRAY_TASK_STEP": "2",
                "SLURM_PROCID": "0",
                "SLURM_NTASKS": "1",
            },
            (3, 5),
        ),
        ({"SLURM_PROCID": "2", "SLURM_NTASKS": "3"}, (2, 3)),
    ],
)
def test_which_job_this_is(environment: dict[str, str], share: tuple[int, int]) -> None:
    assert array_share(environment) == share


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "SHARDFEED_TASK_INDEX is not set"),
        ({"JOB_COMPLETION_INDEX": "1"}, "SHARDFEED_TASK_COUNT is not set"),
        ({"SHARDFEED_TASK_INDEX": "2", "SHARDFEED_TASK_COUNT": "2"}, "indexes are from 0"),
        ({"SHARDFEED_TASK_INDEX": "x", "SHARDFEED_TASK_COUNT": "2"}, "it is a number"),
    ],
)
def test_no_job(environment: dict[str, str], said: str) -> None:
    with pytest.raises(shardfeed.UsageError, match=said):
        array_share(environment)


# ---- Reductions ---------------------------------------------------------------------------------


class Longest(Reducer):
    def empty(self) -> Any:
        return 0

    def add(self, partial: Any, sample: Any) -> Any:
        return max(partial, len(bytes(sample["txt"]).rstrip(b".")))

    def merge(self, first: Any, second: Any) -> Any:
        return max(first, second)


def test_reductions_publish_partial_results(tmp_path: Path, shards: Any) -> None:
    urls = shards(3, 50)
    both = {"longest": Longest(), "classes": Histogram("cls")}
    first = shardfeed.map_shards(urls, output(tmp_path), reduce=both, workers=2)
    assert first.result == {"longest": 3, "classes": {str(n): 15 for n in range(10)}}
    assert [task.samples for task in first] == [50] * 3
    os.remove(first.outputs[1])
    second = shardfeed.map_shards(urls, output(tmp_path), reduce=both, workers=2)
    assert [task.status for task in second] == ["there", "made", "there"]
    assert second.result == merged_result(both, second.outputs) == first.result
    kept = shardfeed.map_shards(urls, None, reduce=both, workers=2)
    assert kept.result == first.result
    with pytest.raises(shardfeed.UsageError, match="a folder of its own"):
        shardfeed.map_shards(urls, output(tmp_path), reduce=Histogram("cls"), workers=0)


def test_a_job_array_reduces_when_all_is_there(shards: Any, reports_of_jobs: Any) -> None:
    reports = reports_of_jobs("01", shards(3, 10), reduce=Longest())
    assert [report.result for report in reports] == [None, 2]


def test_a_reduction_of_what_a_function_returns(tmp_path: Path, shards: Any) -> None:
    def size(sample: Any) -> Any:
        return {"size": number(sample)} if number(sample) % 2 else None

    report = shardfeed.map_shards(
        shards(2, 10), None, size, reduce=Histogram("size", edges=[5, 10, 15]), workers=2
    )
    assert report.result == {"below": 2, "counts": [3, 2], "above": 3, "edges": [5, 10, 15]}


def test_statistics_of_channels(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    image = pytest.importorskip("PIL.Image")
    generator = np.random.default_rng(1)
    images, urls = [], []
    for shard in range(2):
        members = []
        for sample in range(4):
            pixels = generator.integers(0, 256, (5 + sample, 7, 3), np.uint8)
            images.append(pixels.reshape(-1, 3))
            file = io.BytesIO()
            image.fromarray(pixels).save(file, "png")
            members.append((f"{shard}{sample}.png", file.getvalue()))
        urls.append(str(write_tar(tmp_path / f"{shard}.tar", members)))
    report = shardfeed.map_shards(urls, None, reduce=ChannelStatistics("png"), workers=2)
    everything = np.concatenate(images) / 255
    assert report.result["images"] == 8
    assert report.result["pixels"] == len(everything)
    np.testing.assert_allclose(report.result["mean"], everything.mean(0), rtol=1e-12)
    np.testing.assert_allclose(report.result["std"], everything.std(0), rtol=1e-12)


def test_counts_of_tokens(tmp_path: Path) -> None:
    texts = ["a b a", "", "c"]
    members = [(f"{n}.txt", text.encode()) for n, text in enumerate(texts)]
    url = write_tar(tmp_path / "t.tar", members)
    words = {
        "words": TokenCounts("txt", vocabulary=True),
        "letters": TokenCounts("txt", "builtins:list"),
    }
    report = shardfeed.map_shards(url, None, reduce=words, workers=0)
    assert report.result["words"] == {
        "samples": 3,
        "tokens": 4,
        "fewest": 0,
        "most": 3,
        "vocabulary": {"a": 2, "b": 1, "c": 1},
        "mean": 4 / 3,
    }
    assert report.result["letters"]["tokens"] == 6


# ---- The command --------------------------------------------------------------------------------

_MODULE = """
from shardfeed.cluster import Histogram
def kept(sample):
    return {**sample, "key.txt": sample["__key__"].encode()} if sample["cls"] != b"3" else None
def wrong(sample):
    raise ValueError("no")
classes = Histogram("cls")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "functions_of_map.py").write_text(_MODULE)
    monkeypatch.syspath_prepend(tmp_path)


def test_the_command(module: None, tmp_path: Path, shards: Any, capfd: Any) -> None:
    words = ["map", "--executor", "local", shards(2, 10), output(tmp_path)]
    function = ["--python", "functions_of_map:kept", "-p", "2"]
    assert main([*words, *function, "--write-index"]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("made, 10 samples, 9 out") == 2
    with shardfeed.Stream(f"{tmp_path}/out/s-000.tar") as stream:
        assert [bytes(s["key.txt"]).decode() for s in stream] == [
            f"{n:06}" for n in range(10) if n != 3
        ]
    assert (tmp_path / "out" / "s-000.tar.sfidx").exists()
    assert main([*words, *function, "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert [task["status"] for task in report["tasks"]] == ["there", "there"]


def test_the_command_runs_commands(tmp_path: Path, shards: Any, capfd: Any) -> None:
    command = (
        "printf x >> sample.txt; rm sample.cls; printf 1 > sample.a; cat sample.__key__ > sample.b"
    )
    words = ["map", "--executor", "local", shards(1, 4), output(tmp_path), "-c"]
    assert main([*words, command]) == 0
    with shardfeed.Stream(f"{tmp_path}/out/s-000.tar") as stream:
        assert [(s.key, list(s), bytes(s["txt"])[-1:], bytes(s["b"])) for s in stream] == [
            (f"{n:06}", ["txt", "a", "b"], b"x", f"{n:06}".encode()) for n in range(4)
        ]
    whole = ["map", shards(1, 4), "-o", f"{tmp_path}/whole.tar", "-c", command]
    assert main(whole) == 0  # the other map makes the same of them
    assert (tmp_path / "whole.tar").read_bytes() == (tmp_path / "out/s-000.tar").read_bytes()
    capfd.readouterr()
    words[4] = f"{tmp_path}/other/"
    assert main([*words, "echo no; test $(cat sample.__key__) != 000002"]) == 1
    assert (
        'sample "000002": ChildError: the command failed with status 1: no'
        in capfd.readouterr().err
    )
    assert main([*words, "rm sample.[a-z]*"]) == 1
    assert "the command left no file sample.FIELD" in capfd.readouterr().err


def test_the_command_reduces(module: None, tmp_path: Path, shards: Any, capfd: Any) -> None:
    words = ["map", "--reduce", "functions_of_map:classes", shards(2, 10), output(tmp_path)]
    assert main(words) == 0
    assert json.loads(capfd.readouterr().out) == {str(n): 2 for n in range(10)}


def test_the_command_fails(module: None, tmp_path: Path, shards: Any, capfd: Any) -> None:
    words = ["map", "--executor=local", shards(2, 3), output(tmp_path)]
    assert main([*words, "--python", "functions_of_map:wrong"]) == 1
    assert 'sample "000000": ValueError: no' in capfd.readouterr().err
    assert main([*words, "--nonsense"]) == 2
    assert main([*words, "--shuffle", "9"]) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_is_interrupted(tmp_path: Path, shards: Any, number: int) -> None:
    program = "import pathlib, time\ndef slow(sample):\n    "
    program += "sample['cls'] == b'3' and (pathlib.Path('begun').touch(), time.sleep(60))\n"
    (tmp_path / "slow_functions_of_map.py").write_text(f"{program}    return sample\n")
    words = ["map", "--python", "slow_functions_of_map:slow", "--executor", "local", "-p", "2"]
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(shardfeed.__file__))}
    with subprocess.Popen(
        [sys.executable, "-m", "shardfeed", *words, shards(2, 10), output(tmp_path)],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as run:
        while not (tmp_path / "begun").exists():
            assert run.poll() is None
            time.sleep(0.01)
        run.send_signal(number)
        run.communicate(timeout=60)
        assert run.returncode != 0
        with pytest.raises(ProcessLookupError):  # no process of it is left
            os.killpg(run.pid, 0)
    assert list((tmp_path / "out").iterdir()) == []


def test_the_command_without_tasks_is_as_ever(tmp_path: Path, shards: Any) -> None:
    assert main(["map", shards(1, 3), "-o", f"{tmp_path}/a.tar", "-c", "true"]) == 0
    assert keys(f"{tmp_path}/a.tar") == ["000000", "000001", "000002"]
