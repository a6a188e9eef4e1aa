"""Shards that wait (prepare=True) until they are published or discarded: in stores and on disks."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from aws_servers import names_in as keys_in
from aws_servers import pending, put, versitygw
from azure_servers import AZURITE, KEY, Azurite
from gs_servers import fake_gcs_server, make_bucket, names_in
from shardfeed.cluster._prepared import PreparedShards
from shardfeed.cluster._publish import shards_together

MIB = 1 << 20
PLACES = ["s3", "gs", "az", "folder"]


@dataclass(frozen=True)
class Place:
    """Where shards go.

    `names` gives what is there now, hidden or not, and `waits` what of it, or of uploads, has not
    appeared.
    """

    start: str
    options: dict[str, Any]
    names: Callable[[], list[str]]
    waits: Callable[[], list[str]]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Servers, which are started when they are wanted."""
    started: dict[str, Any] = {}
    managers: list[Any] = []

    def s3() -> str:
        manager = versitygw(tmp_path_factory.mktemp("s3"))
        managers.append(manager)
        return str(manager.__enter__())

    def gs() -> str:
        manager = fake_gcs_server(tmp_path_factory.mktemp("gs"))
        managers.append(manager)
        try:
            return str(manager.__enter__())
        except FileNotFoundError as error:
            managers.pop()
            pytest.skip(str(error))

    def az() -> Azurite:
        if not AZURITE.exists():
            pytest.skip("azurite is not there: scripts/install_test_servers.sh installs it")
        return Azurite.start(tmp_path_factory.mktemp("az"))

    makers = {"s3": s3, "gs": gs, "az": az}

    class Servers(dict):  # type: ignore[type-arg]
        def __missing__(self, name: str) -> Any:
            started[name] = self[name] = makers[name]()
            return self[name]

    yield Servers()
    for manager in managers:
        manager.__exit__(None, None, None)
    if "az" in started:
        started["az"].stop()


def place_in(kind: str, stores: dict[str, Any], folder: Path) -> Place:
    """An empty one."""
    name = f"b{os.urandom(4).hex()}"
    if kind == "folder":
        return Place(
            f"{folder}/",
            {},
            lambda: sorted(path.name for path in folder.iterdir()),
            lambda: sorted(path.name for path in folder.iterdir() if path.name[0] == "."),
        )
    server = stores[kind]
    if kind == "s3":
        put(f"{server}/{name}")
        keys = {"s3_access_key": "testkey", "s3_secret_key": "testsecret"}
        options = {"s3_endpoint": server, "retries": 0, **keys}
        bucket = f"{server}/{name}"
        return Place(f"s3://{name}/", options, lambda: keys_in(bucket), lambda: pending(bucket))
    if kind == "gs":
        make_bucket(server, name)
        options = {"gs_endpoint": server, "gs_token": "any", "retries": 0}
        return Place(
            f"gs://{name}/",
            options,
            lambda: names_in(server, name),
            lambda: [key for key in names_in(server, name) if key.split("/")[-1][0] == "."],
        )
    server.make(name)
    options = {"az_endpoint": server.endpoint, "retries": 0, "az_account_key": KEY}
    return Place(f"az://{name}/", options, lambda: server.names(name), list)


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, stores: dict[str, Any], tmp_path: Path) -> Place:
    return place_in(request.param, stores, tmp_path)


def write(pattern: str, sizes: list[int], **more: Any) -> list[shardfeed.Shard]:
    """One sample of each size."""
    with shardfeed.Writer(pattern, **more) as writer:
        for number, size in enumerate(sizes):
            writer.write({"__key__": f"{number:04}", "bin": bytes([number % 251]) * size})
    return list(writer.shards)


def read(url: str, options: dict[str, Any]) -> list[tuple[str, int]]:
    with shardfeed.Stream(url, **options) as stream:
        return [(sample.key, len(sample["bin"])) for sample in stream]


def test_shards_appear_when_they_are_published(place: Place, tmp_path: Path) -> None:
    sizes = [3000, 10, 9 * MIB, 9 * MIB, 7]  # one part, and three
    more = {"max_samples": 2, "write_index": True, **place.options}
    shards = write(place.start + "a b+é-%02d.tar", sizes, prepare=True, **more)
    assert [shard.url for shard in shards] == [f"{place.start}a b+é-{n:02}.tar" for n in range(3)]
    assert set(place.names()) == {name for name in place.waits() if name[0] == "."}
    if place.start.startswith("s3"):
        assert len(place.waits()) == 6  # with their indexes
    local = tmp_path / "local"
    local.mkdir()
    same = write(f"{local}/%02d.tar", sizes, max_samples=2)
    assert [(s.samples, s.bytes, s.payload, s.digest) for s in shards] == [
        (s.samples, s.bytes, s.payload, s.digest) for s in same
    ]
    for shard in shards:
        assert shard.index == shard.url + ".sfidx"
        assert shard.token is not None
        assert "testsecret" not in shard.token
        assert KEY not in shard.token
        assert repr(shard.token) not in repr(shard)
    shardfeed.publish_prepared(shards, **place.options)
    assert place.waits() == []
    expected = [(f"{number:04}", size) for number, size in enumerate(sizes)]
    found = [pair for shard in shards for pair in read(shard.url, place.options)]
    assert found == expected
    kept = tmp_path / "kept"
    options = {**place.options, "index": "require"}
    if not place.start.startswith("/"):
        options["index_dir"] = str(kept)
    for _ in range(2):  # the second time by the index that was kept
        with shardfeed.Dataset([shard.url for shard in shards], **options) as data:
            assert len(data) == 5
            assert data[3].key == "0003"
            assert len(data[3]["bin"]) == 9 * MIB


def test_another_process_publishes(place: Place) -> None:
    shards = write(place.start + "%d.tar", [10, 20], max_samples=1, prepare=True, **place.options)
    program = (
        "import json, sys, shardfeed\n"
        "given = json.load(sys.stdin)\n"
        "shards = [shardfeed.Shard('', 0, 0, 0, '', None, token) for token in given['tokens']]\n"
        "shardfeed.publish_prepared(shards, **given['options'])\n"
    )
    given = {"tokens": [shard.token for shard in shards], "options": place.options}
    subprocess.run([sys.executable, "-c", program], input=json.dumps(given).encode(), check=True)
    assert place.names() == ["0.tar", "1.tar"]
    assert read(place.start + "1.tar", place.options) == [("0001", 20)]


def test_publishing_again_changes_nothing(place: Place) -> None:
    more = {"max_samples": 1, "write_index": True, **place.options}
    shards = write(place.start + "%d.tar", [10, 9 * MIB], prepare=True, **more)
    shardfeed.publish_prepared(shards[:1], **place.options)  # and the driver dies
    for _ in range(3):
        shardfeed.publish_prepared(shards, **place.options)
    shardfeed.publish_prepared(shards, overwrite=True, **place.options)
    assert place.names() == ["0.tar", "0.tar.sfidx", "1.tar", "1.tar.sfidx"]
    assert place.waits() == []
    assert read(place.start + "1.tar", place.options) == [("0001", 9 * MIB)]
    shardfeed.discard_prepared(shards, **place.options)  # too late
    assert place.names() == ["0.tar", "0.tar.sfidx", "1.tar", "1.tar.sfidx"]


def appeared(place: Place) -> int:
    return sum(name[0] != "." for name in place.names())


@pytest.mark.parametrize("kind", ["s3", "folder"])
def test_a_driver_that_is_killed(kind: str, stores: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    folder.mkdir()
    place = place_in(kind, stores, folder)
    more = {"max_samples": 1, "write_index": True, "prepare": True, **place.options}
    shards = write(place.start + "%03d.tar", [10] * 120, **more)
    program = (
        "import os, pickle, sys, shardfeed\n"
        "shards, options = pickle.load(sys.stdin.buffer)\n"
        "print(flush=True)\n"
        "shardfeed.publish_prepared(shards, **options)\n"
    )
    for _ in range(3):
        driver = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert driver.stdin is not None
        assert driver.stdout is not None
        with driver, driver.stdin:
            before = appeared(place)
            driver.stdin.write(pickle.dumps((shards, place.options)))
            driver.stdin.close()
            driver.stdout.readline()
            while driver.poll() is None and appeared(place) <= before:
                time.sleep(0.001)
            driver.kill()
    shardfeed.publish_prepared(shards, **place.options)
    names = [f"{number:03}.tar" for number in range(120)]
    assert place.names() == sorted(names + [name + ".sfidx" for name in names])
    assert place.waits() == []
    urls = [shard.url for shard in shards]
    with shardfeed.Stream(urls, shuffle_shards=False, **place.options) as stream:
        assert [sample.key for sample in stream] == [f"{number:04}" for number in range(120)]


def test_what_is_discarded_is_gone(place: Place) -> None:
    more = {"max_samples": 1, "write_index": True, **place.options}
    shards = write(place.start + "%d.tar", [10, 9 * MIB], prepare=True, **more)
    for _ in range(2):
        shardfeed.discard_prepared(shards, **place.options)
        assert place.names() == []
        assert place.waits() == []
    if not place.start.startswith("az"):  # which keeps the blocks for a week
        with pytest.raises(shardfeed.PublishError, match="2 of 2 shards are not published") as seen:
            shardfeed.publish_prepared(shards, **place.options)
        assert [shard.url for shard in seen.value.prepared] == [shard.url for shard in shards]
        assert seen.value.published == []
        assert place.names() == []


def test_a_name_that_was_taken_meanwhile(place: Place) -> None:
    if place.start.startswith("gs"):
        pytest.skip("fake-gcs-server copies without conditions: see test_writer_gs.py")
    shards = write(place.start + "%d.tar", [10] * 3, max_samples=1, prepare=True, **place.options)
    # For azurite a blob is there when it has blocks.
    write(place.start + "1.tar", [77], overwrite=True, **place.options)
    with pytest.raises(
        shardfeed.PublishError, match=r"1 of 3 shards are not published: .*1\.tar.*overwrite=true"
    ) as caught:
        shardfeed.publish_prepared(shards, **place.options)
    assert caught.value.published == [shards[0], shards[2]]
    assert caught.value.prepared == [shards[1]]
    assert caught.value.os_error == 17
    assert isinstance(caught.value.__cause__, shardfeed.ReadError)
    assert read(place.start + "1.tar", place.options) == [("0000", 77)]
    if not place.start.startswith("az"):  # where who writes a blob removes all its blocks
        shardfeed.publish_prepared(caught.value.prepared, overwrite=True, **place.options)
        assert read(place.start + "1.tar", place.options) == [("0001", 10)]
    assert place.waits() == []
    assert place.names() == ["0.tar", "1.tar", "2.tar"]


def test_a_name_that_is_taken_already(place: Place) -> None:
    write(place.start + "a.tar", [77], **place.options)
    with pytest.raises(shardfeed.ReadError, match="it is there already"):
        write(place.start + "a.tar", [10], prepare=True, **place.options)
    assert place.names() == ["a.tar"]
    assert place.waits() == []


def test_a_writer_that_is_not_finished_leaves_nothing_that_waits(place: Place) -> None:
    writer = shardfeed.Writer(place.start + "%d.tar", prepare=True, **place.options)
    for number in range(3):
        writer.write({"__key__": str(number), "bin": bytes(9 * MIB)})
    writer.close()
    del writer
    assert place.names() == []
    assert place.waits() == []


@pytest.mark.parametrize("kind", ["s3", "gs", "az"])
def test_what_was_left_is_discarded_by_its_pattern(
    kind: str, stores: dict[str, Any], tmp_path: Path
) -> None:
    place = place_in(kind, stores, tmp_path)
    more = {"max_samples": 1, "write_index": True, "prepare": True, **place.options}
    write(place.start + "run/5%%-%03d-000.tar", [10, 9 * MIB], **more)
    others = write(place.start + "run/other-%d.tar", [10], **more)
    others += write(place.start + "run/5%%-%03d-000.tar.gz", [10], **more)
    shardfeed.discard_left(place.start + "run/5%%-%03d-%03d.tar", **place.options)
    if kind != "az":
        left = [name.split("/")[-1].lstrip(".").partition(".tar")[0] for name in place.waits()]
        assert set(left) == {"other-0", "5%-000-000"}
        assert len(left) == 4  # with their indexes
    shardfeed.publish_prepared(others, **place.options)
    assert place.waits() == []
    assert "run/other-0.tar" in place.names()


def test_tokens_that_are_none(place: Place) -> None:
    (shard,) = write(place.start + "a.tar", [10], prepare=True, **place.options)
    token = shard.token or ""
    wrong = ["", "a", token[:-1], token[:-5], token + "\n", token.replace("size", "sise")]
    wrong += [token.replace("prepared 1", "prepared 2"), "x" * (5 << 20)]
    for text in wrong:
        with pytest.raises(shardfeed.PublishError, match="no token of a prepared shard"):
            shardfeed.publish_prepared([replace(shard, token=text)], **place.options)
        with pytest.raises(shardfeed.UsageError, match="no token of a prepared shard"):
            shardfeed.discard_prepared([replace(shard, token=text)], **place.options)
    with pytest.raises(shardfeed.UsageError, match="prepare=True"):
        shardfeed.publish_prepared([replace(shard, token=None)])
    with pytest.raises(TypeError, match="shuffle"):
        shardfeed.publish_prepared([shard], shuffle=3)  # type: ignore[call-arg]
    assert [name for name in place.names() if name[0] != "."] == []
    shardfeed.discard_prepared([shard], **place.options)
    assert place.waits() == []


@pytest.mark.parametrize(
    ("pattern", "more", "said"),
    [
        ("-", {}, "cannot wait to appear"),
        ("pipe:cat >a.tar", {}, "cannot wait to appear"),
        ("a.tar", {"index_for": "dali"}, "leave out index_for"),
        ("a.tar", {"wids_index": "a.json"}, "leave out index_for"),
        ("a.tar", {"index_dir": "i"}, "index_dir"),
    ],
)
def test_what_cannot_be_prepared(
    pattern: str, more: dict[str, str], said: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(shardfeed.UsageError, match=said):
        shardfeed.Writer(pattern, prepare=True, **more)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_signed_url_is_no_part_of_a_token(stores: dict[str, Any], tmp_path: Path) -> None:
    place = place_in("az", stores, tmp_path)
    url = place.start + "a.tar"
    (shard,) = write(url, [10], prepare=True, **place.options)
    assert shard.token is not None
    assert f"url {url}\n" in shard.token


def fail(writer: shardfeed.Writer) -> None:
    """What a task does that fails when it has made shards."""
    with writer:
        writer.write_all({"__key__": str(number), "txt": "a"} for number in range(4))
        writer.next_shard()
        writer.flush(durable=True)
        raise ZeroDivisionError


# ---- Tasks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["s3", "gs", "az"])
def test_tasks_publish_together(kind: str, stores: dict[str, Any], tmp_path: Path) -> None:
    place = place_in(kind, stores, tmp_path)
    run = PreparedShards.of(place.start + "out/%03d.tar", 2, True, {"index": True, **place.options})
    run.make()
    made = []
    for task in range(3):
        dead = run.writer(task)  # its worker dies when it has made shards
        dead.write_all({"__key__": f"{task}{number}", "txt": "a"} for number in range(4))
        dead.next_shard()
        dead.flush(durable=True)
        with pytest.raises(ZeroDivisionError):
            fail(run.writer(task))
        with run.writer(task) as writer:
            writer.write_all({"__key__": f"{task}{number}", "txt": "a"} for number in range(3))
        made += writer.shards
    shards = run.publish(made)
    assert [shard.url for shard in shards] == [
        f"{place.start}out/{task:03}-{number:03}.tar" for task in range(3) for number in range(2)
    ]
    assert place.waits() == []
    assert len(place.names()) == 12
    with shardfeed.Stream([shard.url for shard in shards], **place.options) as stream:
        assert [sample.key for sample in stream] == [f"{t}{n}" for t in range(3) for n in range(3)]


@pytest.mark.parametrize("kind", ["s3", "gs"])
def test_a_run_that_fails_leaves_nothing(kind: str, stores: dict[str, Any], tmp_path: Path) -> None:
    place = place_in(kind, stores, tmp_path)
    run = PreparedShards.of(place.start + "%03d.tar", 2, True, place.options)
    for task in range(2):
        with run.writer(task) as writer:
            writer.write_all({"__key__": f"{task}{number}", "txt": "a"} for number in range(3))
    assert place.waits()
    run.remove()
    assert place.waits() == []
    assert place.names() == []


@pytest.mark.parametrize("kind", ["s3", "gs", "az"])
def test_a_task_that_ends_after_its_run(kind: str, stores: dict[str, Any], tmp_path: Path) -> None:
    place = place_in(kind, stores, tmp_path)
    run = PreparedShards.of(place.start + "%03d.tar", 2, True, place.options)
    late = run.writer(0)
    late.write({"__key__": "0", "txt": "a"})
    run.remove()
    with pytest.raises(shardfeed.UsageError, match="the run has ended"), late:
        late.write_all({"__key__": f"{number}", "txt": "a"} for number in range(1, 5))
    assert place.waits() == []
    assert place.names() == []


def test_a_run_that_was_published_in_part(stores: dict[str, Any], tmp_path: Path) -> None:
    place = place_in("s3", stores, tmp_path)
    run = PreparedShards.of(place.start + "%03d.tar", 2, True, place.options)
    with run.writer(0) as writer:
        writer.write_all({"__key__": f"{number}", "txt": "a"} for number in range(5))
    write(place.start + "000-001.tar", [77], **place.options)
    with pytest.raises(shardfeed.PublishError) as caught:
        run.publish(writer.shards)
    run.remove()
    assert len(caught.value.published) == 2
    assert place.waits() == ["000-001.tar"]  # the caller's
    shardfeed.discard_prepared(caught.value.prepared, **place.options)
    assert place.waits() == []
    # Of one that has no shard yet nothing is left.
    run = PreparedShards.of(place.start + "1%03d.tar", 2, True, place.options)
    with run.writer(0) as writer:
        writer.write({"__key__": "0", "txt": "a"})
    write(place.start + "1000-000.tar", [77], **place.options)
    with pytest.raises(shardfeed.ReadError, match="it is there already"):
        run.publish(writer.shards)
    assert place.waits() == []


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("hf://datasets/a/b/%d.tar", "cannot appear together there"),
        ("pipe:cat %d ://", "cannot appear together there"),
        ("https://a.blob.core.windows.net/c/%d.tar?sig=hush", "cannot appear together there"),
        ("s3://bucket/out.tar", "is no pattern"),
        ("s3://bucket/%d-%d.tar", "is no pattern"),
    ],
)
def test_outputs_that_are_refused(output: str, said: str) -> None:
    with pytest.raises(shardfeed.UsageError, match=said) as caught:
        PreparedShards.of(output, 2, True, {})
    assert "hush" not in str(caught.value)


def test_what_makes_shards_by_itself_takes_no_prepare(tmp_path: Path) -> None:
    write(f"{tmp_path}/a.tar", [10])
    with pytest.raises(shardfeed.UsageError, match="the option prepare"):
        shardfeed.map_shards(
            f"{tmp_path}/a.tar", f"{tmp_path}/out/", len, workers=0, writer={"prepare": True}
        )
    with pytest.raises(shardfeed.UsageError, match="the option prepare"):
        shards_together(f"{tmp_path}/%d.tar", 10, True, {"prepare": True})
