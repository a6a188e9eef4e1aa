"""What a server of a feed tells monitors over HTTP: /metrics and /healthz, whatever others send."""

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
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import shardfeed
from conftest import write_tar
from feed_servers import PATIENT, RefusedError, Server, command, running

SAMPLES = 400
ORDER: dict[str, Any] = {"lanes": 4, "shuffle": 30, "shuffle_shards": True, "seed": 7}

if shardfeed.features()["feed"] is None:
    pytest.skip("this build has no feed", allow_module_level=True)


class MonitoredServer(Server):
    """shardfeed feed --http."""

    def __init__(self, *words: object, http: str = ":0") -> None:
        try:
            super().__init__(*words, "--http", http)
        except RefusedError as error:
            text = str(error)
            if "no HTTP for feeds" in text or "libmicrohttpd cannot be loaded" in text:
                pytest.skip("no libmicrohttpd")
            raise
        assert self.process.stdout is not None
        self.http = self.process.stdout.readline().strip()

    @property
    def place(self) -> tuple[str, int]:
        host, _, port = self.http.removeprefix("http://").rpartition(":")
        return host.strip("[]"), int(port)

    def get(self, path: str, method: str = "GET") -> tuple[int, dict[str, str], str]:
        """The status, the headers and the body of an answer, whatever the status is."""
        request = urllib.request.Request(self.http + path, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENT) as answer:
                return answer.status, dict(answer.headers), answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, dict(error.headers), error.read().decode()

    def health(self, expected: int) -> None:
        """Waits until it is that: the address is printed before the server serves."""
        deadline = time.monotonic() + PATIENT
        while (status := self.get("/healthz")[0]) != expected:
            assert time.monotonic() < deadline, status

    def metrics(self) -> dict[str, float]:
        status, headers, text = self.get("/metrics")
        assert status == 200
        assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return parsed(text)

    def metric(self, name: str, reached: Callable[[float], bool]) -> float:
        """A metric as soon as it is what it should be; it counts a little later than the stream."""
        deadline = time.monotonic() + PATIENT
        while not reached(value := self.metrics()[name]):
            assert time.monotonic() < deadline, (name, value)
            time.sleep(0.02)
        return value


def parsed(text: str) -> dict[str, float]:
    """The values of the text format 0.0.4, which is checked."""
    values: dict[str, float] = {}
    lines = text.splitlines()
    assert text.endswith("\n")
    assert len(lines) % 3 == 0
    for about, kind, sample in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        match = re.fullmatch(r"([a-z][a-z0-9_]*) (\d+(?:\.\d+)?)", sample)
        assert match, sample
        name = match[1]
        assert name not in values
        assert re.fullmatch(rf"# HELP {name} \S.*", about), about
        expected = "counter" if name.endswith("_total") else "gauge"
        assert kind == f"# TYPE {name} {expected}"
        values[name] = float(match[2])
    return values


Serve = Callable[..., MonitoredServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with running(MonitoredServer) as start:
        yield start


@pytest.fixture
def shards(tmp_path: Path) -> str:
    """400 samples of 5 kB, and three members that belong to none."""
    for shard in range(4):
        members = [("__a__", b""), ("__b__", b"")][: shard % 3]
        members += [(f"{shard}-{n:03}.txt", b"%05d" % n * 1000) for n in range(SAMPLES // 4)]
        write_tar(tmp_path / f"{shard}.tar", members)
    return str(tmp_path / "{0..3}.tar")


def keys(url: str, **more: Any) -> list[str]:
    with shardfeed.Stream(url, **ORDER, **more) as stream:
        return [sample.key for sample in stream]


def test_metrics_count_what_is_done(shards: str, serve: Serve) -> None:
    server = serve(shards, "--feed-token", "secret")
    before = server.metrics()
    assert before["shardfeed_feed_rows_total"] == before["shardfeed_feed_consumers"] == 0
    assert not any(before.values())

    with shardfeed.Stream(server.url, feed_token="secret", memory="1MiB", **ORDER) as stream:
        samples = iter(stream)
        next(samples)
        assert server.metric("shardfeed_feed_consumers", lambda value: value == 1)
        assert server.metric("shardfeed_feed_lanes", lambda value: value == 4)
        # The consumer takes nothing: the lanes wait, and say so while they do.
        waited = server.metric("shardfeed_feed_credit_wait_seconds_total", lambda value: value > 1)
        more = server.metric(
            "shardfeed_feed_credit_wait_seconds_total", lambda value: value > waited + 1
        )
        assert more < waited + 4 * PATIENT
        assert server.metrics()["shardfeed_feed_credit_messages"] == 0
        assert server.metrics()["shardfeed_memory_bytes"] > 0
        assert sum(1 for _ in samples) == SAMPLES - 1
    assert server.metric("shardfeed_feed_lanes", lambda value: value == 0) == 0
    after = server.metrics()
    assert after["shardfeed_feed_rows_total"] == SAMPLES
    assert after["shardfeed_feed_sent_bytes_total"] > SAMPLES * 5000
    # What lanes counted stays when they are gone; what they held does not.
    assert after["shardfeed_shards_total"] == 4
    assert after["shardfeed_ignored_members_total"] == 3
    assert after["shardfeed_memory_bytes"] == after["shardfeed_feed_credit_messages"] == 0
    assert after["shardfeed_feed_refused_total"] == 0

    with pytest.raises(shardfeed.AuthError):
        keys(server.url, feed_token="guess")
    assert server.metrics()["shardfeed_feed_refused_total"] > 0
    # Seconds in place of nanoseconds, bytes by name.
    assert "shardfeed_reader_wait_seconds_total" in after
    assert "shardfeed_network_bytes_total" in after
    assert "shardfeed_skips_truncated_total" in after
    keys(server.url, feed_token="secret", feed_compression="zstd")
    packed = server.metrics()
    assert packed["shardfeed_feed_rows_total"] == 2 * SAMPLES
    sent = packed["shardfeed_feed_sent_bytes_total"] - after["shardfeed_feed_sent_bytes_total"]
    assert sent < SAMPLES * 1000


def test_the_library_behind_it_is_named(shards: str, serve: Serve) -> None:
    serve(shards)  # skips where it is missing
    assert re.fullmatch(r"libmicrohttpd \d+\.\d+\.\d+", shardfeed.features()["feed_http"] or "")


def test_the_parser_of_prometheus_reads_them(shards: str, serve: Serve) -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    server = serve(shards)
    keys(server.url)
    text = server.get("/metrics")[2]
    families = list(parser.text_string_to_metric_families(text))
    values = {
        sample.name: sample.value
        for family in families
        for sample in family.samples
        if family.type in ("counter", "gauge") and family.documentation
    }
    assert values == parsed(text)


def test_skips_are_counted(shards: str, serve: Serve, tmp_path: Path) -> None:
    whole = (tmp_path / "1.tar").read_bytes()
    (tmp_path / "1.tar").write_bytes(whole[: len(whole) // 2])
    server = serve(shards)
    assert len(keys(server.url, on_error="skip_shard")) < SAMPLES
    metrics = server.metrics()
    assert metrics["shardfeed_skipped_shards_total"] == 1
    assert metrics["shardfeed_skips_truncated_total"] == 1


CONSUMER = """
import sys, time, shardfeed
stream = shardfeed.Stream(sys.argv[1], memory="1MiB", lanes=4)
next(iter(stream))
print("takes", flush=True)
time.sleep(600)
"""


def test_health_ends_when_it_drains(shards: str, serve: Serve) -> None:
    server = serve(shards)
    server.health(200)
    assert server.get("/healthz")[0::2] == (200, "ok\n")
    words = [sys.executable, "-c", CONSUMER, server.url]
    consumer = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert consumer.stdout is not None
        assert consumer.stdout.readline() == "takes\n"
        # It keeps its lanes, and the server waits for it.
        consumer.send_signal(signal.SIGSTOP)
        deadline = time.monotonic() + PATIENT
        while ") T " not in Path(f"/proc/{consumer.pid}/stat").read_text():
            assert time.monotonic() < deadline
        server.process.terminate()
        server.health(503)
        assert server.metrics()["shardfeed_feed_lanes"] == 4
    finally:
        consumer.kill()
        consumer.communicate(timeout=PATIENT)
    assert server.process.wait(timeout=PATIENT) == -signal.SIGTERM


def test_only_two_paths_are_there(shards: str, serve: Serve) -> None:
    server = serve(shards)
    assert server.get("/")[0] == server.get("/metrics/")[0] == server.get("/%2e%2e/etc")[0] == 404
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        status, headers, _ = server.get("/metrics", method)
        assert (status, headers["Allow"]) == (405, "GET, HEAD")
    status, headers, text = server.get("/metrics", "HEAD")
    assert (status, text) == (200, "")
    assert int(headers["Content-Length"]) > 1000
    server.health(200)
    assert server.get("/healthz?full=1")[0] == 200


def test_addresses(shards: str, serve: Serve) -> None:
    assert serve(shards, http=":0").place[0] == "127.0.0.1"
    serve(shards, http="localhost:0").health(200)
    assert serve(shards, http="*:0").place[0] == "0.0.0.0"
    if socket.has_ipv6:
        with contextlib.suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
            server = serve(shards, http="[::1]:0")
            assert server.http.startswith("http://[::1]:")
            server.health(200)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for http, status, text in (
            (f"127.0.0.1:{port}", 1, "in use"),
            ("9100", 2, "it has no port"),
            ("127.0.0.1:x", 2, "is no number from 0 to 65535"),
            (":65536", 2, "is no number from 0 to 65535"),
            ("::1:0", 2, "brackets"),
            ("no such host:1", 2, "is no address to answer HTTP at"),
        ):
            words = [*command(), "feed", shards, "--bind", "tcp://127.0.0.1:0", "--http", http]
            done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENT)
            assert (done.returncode, text in done.stderr) == (status, True), done.stderr


class Flood:
    """Clients that send nonsense, much, slowly, or nothing, as long as the block lasts."""

    def __init__(self, place: tuple[str, int]) -> None:
        self.place = place
        self.over = threading.Event()
        self.refused = 0
        kinds = (self.nonsense, self.too_much, self.requests, self.slow, self.silent)
        self.threads = [threading.Thread(target=self.run, args=(kind,)) for kind in kinds * 2]

    def __enter__(self) -> None:
        for thread in self.threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join()

    def run(self, kind: Callable[[socket.socket], None]) -> None:
        while not self.over.is_set():
            try:
                with socket.create_connection(self.place, timeout=1) as client:
                    kind(client)
            except OSError:
                self.refused += 1

    def nonsense(self, client: socket.socket) -> None:
        client.sendall(random.Random(self.refused).randbytes(3000) + b"\r\n\r\n")
        client.recv(100)

    def too_much(self, client: socket.socket) -> None:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
        for _ in range(1000):
            client.sendall(b"x-more: " + b"y" * 1000 + b"\r\n")

    def requests(self, client: socket.socket) -> None:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        while client.recv(1 << 16):
            pass

    def slow(self, client: socket.socket) -> None:
        for byte in b"POST /metrics HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n":
            if self.over.wait(0.05):
                return
            client.sendall(bytes([byte]))

    def silent(self, client: socket.socket) -> None:
        others = [socket.create_connection(self.place, timeout=1) for _ in range(100)]
        self.over.wait(1)
        for other in others:
            other.close()


def test_a_flood_disturbs_no_stream(shards: str, serve: Serve) -> None:
    server = serve(shards, "--decode", "txt:text")
    expected = keys(shards, epochs=3)
    flood = Flood(server.place)
    with flood:
        for _ in range(5):
            with shardfeed.Stream(server.url, **ORDER, epochs=3) as stream:
                taken = [key for batch in stream.batches(32) for key in batch["__key__"]]
            assert taken == expected
            assert server.process.poll() is None
    assert flood.refused > 0
    deadline = time.monotonic() + PATIENT
    while True:
        with contextlib.suppress(OSError):
            assert server.metrics()["shardfeed_feed_rows_total"] == 15 * SAMPLES
            break
        assert time.monotonic() < deadline
        time.sleep(0.1)
    descriptors = Path(f"/proc/{server.process.pid}/fd")
    while len(list(descriptors.iterdir())) > 60:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_connection_does_not_live_for_ever(shards: str, serve: Serve) -> None:
    """One that sends a byte now and then is ended, too, and then others have its place."""
    server = serve(shards)
    clients = [socket.create_connection(server.place) for _ in range(40)]
    start = time.monotonic()

    def is_open(client: socket.socket) -> bool:
        try:
            client.sendall(b"x")
            return client.recv(1, socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    while [client for client in clients if is_open(client)]:
        assert time.monotonic() - start < PATIENT
        time.sleep(0.5)
    assert 5 < time.monotonic() - start < 30
    assert server.get("/healthz")[0] == 200


def test_a_server_ends_while_clients_are_connected(shards: str, serve: Serve) -> None:
    server = serve(shards)
    clients = [socket.create_connection(server.place) for _ in range(3)]
    clients[0].sendall(b"GET /metr")
    server.process.terminate()
    assert server.process.wait(timeout=5) == -signal.SIGTERM
    for client in clients:
        client.close()
