"""Streams of a feed: servers are the command itself, and they die, stop, are drained and join."""

from __future__ import annotations

import contextlib
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shardfeed
from conftest import write_tar
from feed_servers import PATIENT, Server

ORDER: dict[str, Any] = {"lanes": 4, "shuffle": 30, "shuffle_shards": True, "seed": 7}

if shardfeed.features()["feed"] is None:
    pytest.skip("this build has no feed", allow_module_level=True)


Serve = Callable[..., Server]


@pytest.fixture
def shards(tmp_path: Path) -> str:
    """Shards of unequal size with numbers, arrays and texts."""
    for shard, samples in enumerate((90, 31, 64, 7, 120, 55)):
        members = {}
        for number in range(samples):
            key = f"{shard}-{number:03}"
            members[f"{key}.cls"] = b"%d" % (1000 * shard + number)
            members[f"{key}.npy"] = npy(np.full((number % 5 + 1, 3), number, np.float32))
            members[f"{key}.txt"] = f"text of {key} ".encode() * 150
        write_tar(tmp_path / f"{shard}.tar", list(members.items()))
    return str(tmp_path / "{0..5}.tar")


def npy(array: np.ndarray[Any, Any]) -> bytes:
    import io

    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def keys(stream: shardfeed.Stream) -> list[str]:
    return [sample.key for sample in stream]


def local(shards: str, **more: Any) -> list[str]:
    with shardfeed.Stream(shards, **ORDER, **more) as stream:
        return keys(stream)


DECODE = "cls:int, npy, txt:text"


def rows(urls: Any, **more: Any) -> Iterator[tuple[list[str], list[int], list[bytes], list[str]]]:
    with shardfeed.Stream(urls, **ORDER, **more) as stream:
        for batch in stream.batches(32, ragged="offsets"):
            arrays = [np.asarray(row).tobytes() for row in batch["npy"]]
            yield list(batch["__key__"]), batch["cls"].tolist(), arrays, list(batch["txt"])


def test_rows_are_those_of_a_local_stream(shards: str, serve: Serve) -> None:
    servers = [serve(shards, "--decode", DECODE) for _ in range(2)]
    fed = list(rows([server.url for server in servers], epochs=2))
    assert fed == list(rows(shards, epochs=2, decode=DECODE))


def test_a_list_of_servers_is_expanded(shards: str, serve: Serve) -> None:
    one, two = serve(shards), serve(shards)
    ports = ",".join(server.url.rpartition(":")[2] for server in (one, two))
    with shardfeed.Stream("feed://127.0.0.1:{" + ports + "}", **ORDER) as stream:
        assert keys(stream) == local(shards)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_servers_that_end_are_replaced(shards: str, serve: Serve, how: signal.Signals) -> None:
    """They die, are drained or hang, one after another; a new one takes the place of each."""
    servers = [serve(shards) for _ in range(3)]
    urls = [server.url for server in servers]
    chance = random.Random(int(how))
    seen = []
    with shardfeed.Stream(urls, **ORDER, epochs=3, feed_timeout="1s", memory="1MiB") as stream:
        for number, sample in enumerate(stream):
            seen.append(sample.key)
            if number % 200 == 150:
                victim = chance.randrange(3)
                old = servers[victim]
                old.process.send_signal(how)
                if how == signal.SIGSTOP:
                    continue
                old.process.communicate(timeout=PATIENT)
                servers[victim] = serve(shards, address=old.address)
            if how == signal.SIGSTOP and number % 200 == 170:
                for server in servers:
                    server.process.send_signal(signal.SIGCONT)
    assert seen == local(shards, epochs=3)


def test_the_only_server_is_waited_for(shards: str, serve: Serve) -> None:
    server = serve(shards)
    with shardfeed.Stream(server.url, **ORDER, feed_timeout="1s", memory="1MiB") as stream:
        samples = iter(stream)
        seen = [next(samples).key for _ in range(100)]
        server.kill()
        time.sleep(0.3)
        serve(shards, address=server.address)
        seen += [sample.key for sample in samples]
    assert seen == local(shards)


def test_without_a_server_the_stream_fails(shards: str, serve: Serve) -> None:
    server = serve(shards)
    options: dict[str, Any] = {"feed_timeout": "1s", "feed_wait": "1s", "memory": "1MiB"}
    with shardfeed.Stream(server.url, **ORDER, epochs=0, **options) as stream:
        samples = iter(stream)
        next(samples)
        server.kill()
        with pytest.raises(shardfeed.NetTransientError, match=server.url):
            for _ in samples:
                pass


def test_states_move_between_feeds_and_shards(shards: str, serve: Serve) -> None:
    server = serve(shards, "--decode", DECODE)
    expected = list(rows(shards, decode=DECODE))
    for where, there in ((server.url, {}), (shards, {"decode": DECODE})):
        with shardfeed.Stream(server.url, **ORDER) as stream:
            batches = iter(stream.batches(32, ragged="offsets"))
            for _ in range(5):
                next(batches)
            state = stream.state_dict()
        with shardfeed.Stream(where, **ORDER, **there) as stream:
            stream.load_state_dict(state)
            rest = [list(batch["__key__"]) for batch in stream.batches(32, ragged="offsets")]
        assert rest == [keys for keys, *_ in expected[5:]]


def test_ranks_share_servers(shards: str, serve: Serve) -> None:
    servers = [serve(shards) for _ in range(2)]
    urls = [server.url for server in servers]
    parts = []
    for rank in range(2):
        with shardfeed.Stream(urls, **ORDER, rank=rank, world_size=2) as stream:
            parts.append(keys(stream))
        with shardfeed.Stream(shards, **ORDER, rank=rank, world_size=2) as stream:
            assert parts[-1] == keys(stream)
    assert sorted(parts[0] + parts[1]) == sorted(local(shards))


def test_a_feed_in_a_mix(shards: str, serve: Serve) -> None:
    server = serve(shards)

    def mixed(first: str) -> list[str]:
        parts = [
            shardfeed.Stream(first, **ORDER),
            shardfeed.Stream(shards, lanes=2),
        ]
        with shardfeed.mix(parts, weights=[3, 1], seed=5) as stream:
            return keys(stream)

    assert mixed(server.url) == mixed(shards)


def test_secrets(shards: str, serve: Serve, tmp_path: Path) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "shardfeed", "feed", "--make-keys", tmp_path / "key"],
        capture_output=True,
        text=True,
        check=True,
    )
    public = made.stdout.strip()
    assert len(public) == 40
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    (tmp_path / "token").write_text("open sesame\n")
    server = serve(shards, "--key-file", tmp_path / "key", "--token-file", tmp_path / "token")
    options: dict[str, Any] = {"feed_wait": "2s", "feed_timeout": "1s"}
    with shardfeed.Stream(
        server.url, feed_server_key=public, feed_token="open sesame", **ORDER
    ) as stream:
        assert keys(stream) == local(shards)
    with pytest.raises(shardfeed.AuthError, match="feed_token") as refused:
        list(shardfeed.Stream(server.url, feed_server_key=public, feed_token="guess", **options))
    assert "sesame" not in str(refused.value)
    # Without the key nothing is heard of the server.
    with pytest.raises(shardfeed.NetTransientError):
        list(shardfeed.Stream(server.url, feed_token="open sesame", **options))


def test_a_drained_server_ends_by_its_signal(shards: str, serve: Serve) -> None:
    server = serve(shards)
    assert server.end() == -signal.SIGTERM


def test_bad_commands() -> None:
    for words, status, text in (
        ([], 2, "at least one URL"),
        (["x.tar", "--bind", "nonsense"], 1, "bind"),
        (["x.tar", "--decode", "jpg:nonsense"], 2, "nonsense"),
        (["feed://127.0.0.1:1"], 2, "a feed of a feed"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "shardfeed", "feed", *words],
            capture_output=True,
            text=True,
            timeout=PATIENT,
        )
        assert (done.returncode, text in done.stderr) == (status, True), done.stderr


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_samples_are_the_same(shards: str, serve: Serve, compression: str) -> None:
    def contents(url: str, **more: Any) -> list[tuple[str, dict[str, bytes]]]:
        with shardfeed.Stream(url, **ORDER, **more) as stream:
            return [(s.key, {name: bytes(field) for name, field in s.items()}) for s in stream]

    raw, decoded = serve(shards), serve(shards, "--decode", DECODE)
    assert contents(raw.url, feed_compression=compression) == contents(shards)
    fed = list(rows(decoded.url, feed_compression=compression))
    assert fed == list(rows(shards, decode=DECODE))


class Damage(threading.Thread):
    """A network that changes a byte of every packet from a server, but for the first ones."""

    def __init__(self, server: str) -> None:
        super().__init__(daemon=True)
        host, _, port = server.removeprefix("feed://").rpartition(":")
        self.server = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"feed://127.0.0.1:{self.listener.getsockname()[1]}"
        self.start()

    def run(self) -> None:
        while True:
            try:
                consumer = self.listener.accept()[0]
                server = socket.create_connection(self.server)
            except OSError:
                return
            for words in ((consumer, server, False), (server, consumer, True)):
                threading.Thread(target=self.pump, args=words, daemon=True).start()

    @staticmethod
    def pump(source: socket.socket, target: socket.socket, damages: bool) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while data := bytearray(source.recv(4096)):
                if damages and passed > 3000 and len(data) > 500:
                    data[len(data) // 2] ^= 0x10
                passed += len(data)
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_damage_on_the_way_is_an_error(shards: str, serve: Serve, compression: str) -> None:
    network = Damage(serve(shards).url)
    options: dict[str, Any] = {"feed_compression": compression, "memory": "1MiB"}
    seen: list[str] = []

    def take() -> None:
        with shardfeed.Stream(network.url, **ORDER, **options, epochs=0) as stream:
            for sample in stream:
                seen.append(sample.key)

    # INTEGRITY where a checksum covers the byte; the others in the few bytes before it, which say
    # what a message is.
    classes = (shardfeed.IntegrityError, shardfeed.FormatError, shardfeed.UnsupportedError)
    with pytest.raises(classes, match=re.escape(network.url)) as damaged:
        take()
    network.listener.close()
    assert "help: " in str(damaged.value)
    assert seen == [*local(shards, epochs=20)][: len(seen)]
