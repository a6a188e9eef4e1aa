"""The cache, over a real server: what is asked again, who shares it, and the command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from archives import images, write_archive
from conftest import numbered, write_tar
from http_servers import Answer, Logged, Nginx, Request, ranged, stand_in

SHARDS, SAMPLES, SIZE = 3, 40, 100_000


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    server = Nginx(tmp_path_factory.mktemp("nginx"))
    for shard in range(SHARDS):
        write_tar(server.root / f"s-{shard}.tar", numbered(shard * SAMPLES, SAMPLES, SIZE))
    write_archive(server.root / "i", images(40), "zip")
    yield server
    server.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def content(samples: Any) -> list[tuple[str, dict[str, bytes]]]:
    return [(s.key, {name: bytes(data) for name, data in s.items()}) for s in samples]


def since(nginx: Nginx, seen: list[Logged]) -> list[Logged]:
    new = nginx.logged()[len(seen) :]
    seen += new
    return new


def blocks(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*/shards/*/*/*") if path.name.isdigit())


def test_a_second_epoch_asks_for_the_version_alone(nginx: Nginx, folder: Path) -> None:
    urls = nginx.url(f"s-{{0..{SHARDS - 1}}}.tar")
    expected = content(shardfeed.Stream(f"{nginx.root}/s-{{0..{SHARDS - 1}}}.tar"))
    seen = nginx.logged()
    stream = shardfeed.Stream(urls, cache=str(folder))
    assert content(stream) == expected
    total = sum((nginx.root / f"s-{shard}.tar").stat().st_size for shard in range(SHARDS))
    first = since(nginx, seen)
    assert total <= sum(line.sent for line in first) <= total * 1.02
    assert content(stream) == expected
    second = since(nginx, seen)
    assert [line.asked for line in second] == ["bytes=0-0"] * SHARDS
    # Another process, and resuming.
    with shardfeed.Stream(urls, cache=str(folder)) as other:
        iterator = iter(other)
        head = content(next(iterator) for _ in range(50))
        state = other.state_dict()
    with shardfeed.Stream(urls, cache=str(folder)) as other:
        other.load_state_dict(state)
        assert head + content(other) == expected
    assert {line.asked for line in since(nginx, seen)} == {"bytes=0-0"}


def test_a_changed_shard_is_read_again(nginx: Nginx, folder: Path) -> None:
    path = nginx.root / "changing.tar"
    for size in (1000, 2000):  # of the same size and second nginx has one tag
        write_tar(path, numbered(0, SAMPLES, size))
        for _ in range(2):
            samples = content(shardfeed.Stream(nginx.url("changing.tar"), cache=str(folder)))
            assert samples == content(shardfeed.Stream(path))
    assert len(blocks(folder)) == 2


def test_random_access_and_indexes(nginx: Nginx, folder: Path) -> None:
    seen = nginx.logged()
    expected = {m.name: m.read() for m in shardfeed.Archive(nginx.root / "i.zip") if m.is_file}
    local = content(shardfeed.Dataset([nginx.root / "s-1.tar"], index="memory"))
    for again in (False, True):
        with shardfeed.Archive(nginx.url("i.zip"), cache=str(folder)) as archive:
            assert {m.name: m.read() for m in archive if m.is_file} == expected
        data = shardfeed.Dataset([nginx.url("s-1.tar")], cache=str(folder))
        assert content(data[i] for i in range(len(data))) == local
        asked = since(nginx, seen)
        if again:
            assert {line.asked for line in asked} == {"bytes=0-0"}
    assert len(list(folder.glob("*/index/*.sfidx"))) == 1


def test_workers_share_it(nginx: Nginx, folder: Path) -> None:
    torch = pytest.importorskip("torch.utils.data")
    from shardfeed.torch import Stream

    urls = nginx.url(f"s-{{0..{SHARDS - 1}}}.tar")
    keys = {s.key for s in shardfeed.Stream(f"{nginx.root}/s-{{0..{SHARDS - 1}}}.tar")}
    seen = nginx.logged()
    for epoch in range(2):
        stream = Stream(urls, cache=str(folder))
        loader = torch.DataLoader(stream, batch_size=None, num_workers=SHARDS)
        assert {sample["__key__"] for sample in loader} == keys
        sent = sum(line.sent for line in since(nginx, seen))
        whole = SHARDS * SAMPLES * (SIZE + 1024)
        assert sent < (1.02 * whole if epoch == 0 else 300_000)


def test_processes_fetch_each_byte_once(nginx: Nginx, folder: Path) -> None:
    program = (
        "import sys, shardfeed\n"
        "print(sum(len(bytes(v)) for s in shardfeed.Stream(sys.argv[1], cache=sys.argv[2])"
        " for v in s.values()))"
    )
    seen = nginx.logged()
    words = [sys.executable, "-c", program, nginx.url("s-2.tar"), str(folder)]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = {process.communicate(timeout=60)[0] for process in running}
    local = shardfeed.Stream(nginx.root / "s-2.tar")
    assert said == {f"{sum(len(bytes(v)) for s in local for v in s.values())}\n"}
    lines = since(nginx, seen)
    sent = sum(line.sent for line in lines if line.asked != "bytes=0-65535")
    assert sent <= 1.02 * (nginx.root / "s-2.tar").stat().st_size


def test_without_the_server(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "nginx").mkdir()
    server = Nginx(tmp_path / "nginx")
    try:
        write_tar(server.root / "t.tar", numbered(0, 10, 1000))
        url = server.url("t.tar")
        expected = content(shardfeed.Stream(url, cache=str(folder)))
    finally:
        server.stop()
    options: dict[str, Any] = {"cache": str(folder), "retries": 0}
    with pytest.raises(shardfeed.NetTransientError):
        list(shardfeed.Stream(url, **options))
    said: list[str] = []
    stream = shardfeed.Stream(
        url, **options, stale_ok=True, log=lambda _level, text: said.append(text)
    )
    assert content(stream) == expected
    assert "its version in the cache is read" in " ".join(said)


def test_a_damaged_block_is_fetched_again(nginx: Nginx, folder: Path) -> None:
    url = nginx.url("s-0.tar")
    expected = content(shardfeed.Stream(url, cache=str(folder)))
    damage(blocks(folder)[0])
    said: list[str] = []
    stream = shardfeed.Stream(url, cache=str(folder), log=lambda _level, text: said.append(text))
    assert content(stream) == expected
    assert "is damaged; it is dropped and fetched again" in " ".join(said)


def test_what_cannot_be_cached_is_said_once(tmp_path: Path, folder: Path) -> None:
    path = write_tar(tmp_path / "t.tar", numbered(0, 10, 1000))
    good = ranged(path.read_bytes())

    def without_tag(request: Request) -> Answer:
        answer = good(request)
        answer.headers.pop("ETag", None)
        return answer

    said: list[str] = []
    with stand_in(without_tag) as server:
        stream = shardfeed.Stream(
            [server.url()] * 2, cache=str(folder), log=lambda _level, text: said.append(text)
        )
        assert len(list(stream)) == 20
    assert len([text for text in said if "not cached" in text]) == 1
    assert not blocks(folder)


def test_a_folder_that_cannot_be_used(nginx: Nginx, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said: list[str] = []
    stream = shardfeed.Stream(
        nginx.url("s-0.tar"),
        cache=str(tmp_path / "file"),
        log=lambda _level, text: said.append(text),
    )
    assert len(list(stream)) == SAMPLES
    assert len(said) == 1
    assert "shards are read without the cache" in said[0]


def test_a_size_below_one_shard(nginx: Nginx, folder: Path) -> None:
    with pytest.raises(shardfeed.LimitError, match="help: raise cache_size"):
        list(shardfeed.Stream(nginx.url("s-0.tar"), cache=str(folder), cache_size="1MB"))


# ---- The command --------------------------------------------------------------------------------


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1000] ^= 1
    path.write_bytes(data)


def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "shardfeed", "cache", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**{k: v for k, v in os.environ.items() if k != "SHARDFEED_CACHE"}, **environment},
    )


def test_the_command(nginx: Nginx, folder: Path) -> None:
    for shard in range(SHARDS):
        list(shardfeed.Stream(nginx.url(f"s-{shard}.tar"), cache=str(folder)))
    done = run("ls", "--dir", folder)
    assert (done.returncode, done.stderr) == (0, "")
    *lines, total = done.stdout.splitlines()
    assert [line.split()[-1] for line in lines] == [
        nginx.url(f"s-{shard}.tar") for shard in range(SHARDS)
    ]
    assert all(" 100% " in line for line in lines)
    assert total.startswith(f"{SHARDS} versions of shards, ")
    again = run("ls", SHARDFEED_CACHE=str(folder)).stdout.splitlines()
    assert [line.split()[-1] for line in again] == [
        line.split()[-1] for line in done.stdout.splitlines()
    ]
    assert "\n" in run("ls", "--dir", folder, "--older-than", "1h").stdout
    assert run("ls", "--dir", folder, "--older-than", "1h").stdout.startswith("0 versions")
    assert run("ls", "--dir", folder, nginx.url("")).stdout.startswith(lines[0][:9])

    assert run("verify", "--dir", folder).returncode == 0
    before = len(blocks(folder))
    damage(blocks(folder)[1])
    done = run("verify", "--dir", folder)
    assert done.returncode == 1
    assert "1 damaged, removed" in done.stdout
    assert "help: " in done.stderr
    assert len(blocks(folder)) == before - 1
    assert run("verify", "--dir", folder).returncode == 0

    done = run("clear", "--dir", folder, nginx.url("s-1.tar"))
    assert done.stdout.splitlines()[-1].startswith("1 version of shards, ")
    left = run("ls", "--dir", folder).stdout
    assert nginx.url("s-0.tar") in left
    assert nginx.url("s-1.tar") not in left
    run("clear", "--dir", folder, "--older-than", "1d")
    assert blocks(folder)
    assert run("clear", "--dir", folder).returncode == 0
    assert not blocks(folder)
    assert run("ls", "--dir", folder).stdout == "0 versions of shards, 0 B in the cache\n"


def test_wrong_commands(tmp_path: Path) -> None:
    done = run("ls")
    assert (done.returncode, done.stdout) == (2, "")
    assert "SHARDFEED_CACHE" in done.stderr
    done = run("ls", "--dir", tmp_path)
    assert done.returncode == 1
    assert "there is no cache in" in done.stderr
    assert run("ls", "--dir", tmp_path, "--older-than=").returncode == 2
    for age in ("5", "d", "-1d", "1y", "1" * 20 + "d"):
        assert "is no age" in run("ls", "--dir", tmp_path, f"--older-than={age}").stderr
    assert run("shrink").returncode == 2
