"""kill -9 of servers of a feed and of their consumers at random moments, and bad links between.

python feed_faults.py KILLS [SEED] kills so often. A server is started again after a moment; a
consumer goes on from the last state that it has saved. In the end it has had the samples of a local
stream in their order; nobody hangs, memory is bounded, and servers keep no descriptor. Then each
kind of bad link is tried, five times.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import shardfeed
import shardfeed.__main__
from bad_links import INSTALLED, Link, Toxiproxy, toxiproxy
from conftest import numbered, write_tar
from feed_servers import Server
from http_servers import free_port
from killed_readers import start

FEED_TIMEOUT = 1.0
LONGEST = 10.0 + FEED_TIMEOUT  # seconds without progress: it hangs
GROWTH = 100 << 20  # bytes that a process may take above what it had when it was made
ORDER: dict[str, Any] = {
    "lanes": 4,
    "shuffle": 30,
    "shuffle_shards": True,
    "seed": 7,
    "epochs": 3,
    "memory": "2MiB",
}
DECODE = "txt:bytes"
SERVERS, SHARDS, SAMPLES, SIZE = 2, 6, 60, 8000


def write_shards(folder: Path) -> str:
    """Their URL."""
    for shard in range(SHARDS):
        # One of them is short.
        count = SAMPLES if shard else SAMPLES // 10
        write_tar(folder / f"s-{shard}.tar", numbered(shard * SAMPLES, count, SIZE))
    return str(folder / f"s-{{0..{SHARDS - 1}}}.tar")


def read(urls: Any, rows: bool, state: Any = None, **more: Any) -> Iterator[tuple[str, Any]]:
    """Keys with the length of a field, as lines; and the stream, to save it."""
    with shardfeed.Stream(urls, **ORDER, **more) as stream:
        if state is not None:
            stream.load_state_dict(state)
        if rows:
            for batch in stream.batches(8):
                texts = zip(batch["__key__"], batch["txt"], strict=True)
                yield "".join(f"{key} {len(text)}\n" for key, text in texts), stream
        else:
            for sample in stream:
                yield f"{sample.key} {len(sample['txt'])}\n", stream


def local(url: str, rows: bool) -> str:
    """What has to come."""
    return "".join(text for text, _ in read(url, rows, **({"decode": DECODE} if rows else {})))


# ---- Processes -----------------------------------------------------------------------------------


def resident(process: int | str, what: str = "VmRSS") -> int:
    """Memory of a process in bytes; VmHWM: the most that it had. 0: it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith(what):
                return int(line.split()[1]) << 10
    return 0


def descriptors(process: int | str) -> int:
    return len(os.listdir(f"/proc/{process}/fd"))


class Process:
    """A child, which can be killed and begun again."""

    def __init__(self, body: Callable[[], bool]) -> None:
        self._body = body
        self.number = 0
        self.begin()

    def begin(self) -> None:
        self._status: int | None = None
        self.number = start(self._body)
        self._at_first = resident(self.number)

    def status(self) -> int | None:
        """None: it runs."""
        if self._status is None:
            number, status = os.waitpid(self.number, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if number else None
        return self._status

    def check_memory(self) -> None:
        grown = resident(self.number, "VmHWM") - self._at_first
        assert grown < GROWTH, f"{grown >> 20} MiB more than at first"

    def kill(self) -> bool:
        """False: it had ended."""
        self.check_memory()
        os.kill(self.number, signal.SIGKILL)
        self._status = os.waitstatus_to_exitcode(os.waitpid(self.number, 0)[1])
        return self._status == -signal.SIGKILL


def serve(url: str, port: int, rows: bool) -> bool:
    """The body of a server."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.close(silence)
    words = ["feed", url, "--bind", f"tcp://127.0.0.1:{port}"]
    words += ["--memory=2MiB", f"--feed-timeout={FEED_TIMEOUT}s"]
    return shardfeed.__main__.main([*words, *(["--decode", DECODE] if rows else [])]) == 0


def consume(urls: list[str], folder: Path, rows: bool, pause: float) -> bool:
    """The body of a consumer: lines go to the file `log`, states with its size to `saved`."""
    before = descriptors("self")
    saved, state, size = folder / "saved", None, 0
    if saved.exists():
        about = json.loads(saved.read_text())
        state, size = about["state"], about["size"]
    with open(folder / "log", "ab") as log:
        log.truncate(size)
        lines = read(urls, rows, state, feed_timeout=f"{FEED_TIMEOUT}s", feed_wait="20s")
        for number, (text, stream) in enumerate(lines):
            log.write(text.encode())
            if number % (4 if rows else 30) == 0:
                log.flush()
                about = {"state": stream.state_dict(), "size": log.tell()}
                (folder / "new").write_text(json.dumps(about))
                os.replace(folder / "new", saved)
                time.sleep(pause)
    return descriptors("self") == before


# ---- Kills ---------------------------------------------------------------------------------------


class Kills:
    """One pass of a consumer through a feed, with kills."""

    def __init__(self, url: str, folder: Path, rows: bool, chance: random.Random) -> None:
        self._chance, self._log = chance, folder / "log"
        ports = [free_port() for _ in range(SERVERS)]
        self.servers = [Process(lambda port=port: serve(url, port, rows)) for port in ports]
        urls = [f"feed://127.0.0.1:{port}" for port in ports]
        self._idle = self._idle_descriptors()
        self.consumer = Process(lambda: consume(urls, folder, rows, 0.02))
        self.killed: collections.Counter[str] = collections.Counter()

    def _idle_descriptors(self) -> int:
        """Of a server that nobody has asked for anything."""
        counts = [0]
        until = time.monotonic() + LONGEST
        while len(counts) < 5 or len(set(counts[-5:])) > 1 or counts[-1] < 10:
            assert time.monotonic() < until, f"no server: {counts[-1]} descriptors"
            time.sleep(0.05)
            counts.append(descriptors(self.servers[0].number))
        return counts[-1]

    def run(self, most: int) -> None:
        """Until the consumer has had all, with so many kills at most."""
        size, grown = 0, time.monotonic()
        due = self._next()
        back: dict[int, float] = {}  # servers that are gone, and until when
        while (status := self.consumer.status()) is None:
            now = time.monotonic()
            if self._log.exists() and (is_now := self._log.stat().st_size) > size:
                size, grown = is_now, now
            assert now - grown < LONGEST, f"it hangs after {self.killed}"
            for number in [number for number, until in back.items() if until < now]:
                del back[number]
                self.servers[number].begin()
            if now > due and self.killed.total() < most:
                due = self._next()
                victim = self._chance.randrange(-1, SERVERS)
                if victim < 0:
                    if self.consumer.kill():
                        self.killed["consumers"] += 1
                        self.consumer.begin()
                        grown = now
                elif victim not in back and self.servers[victim].kill():
                    self.killed["servers"] += 1
                    back[victim] = now + self._chance.choice([0, self._chance.random()])
            time.sleep(0.005)
        assert status == 0, f"status {status} after {self.killed}"
        for number in back:
            self.servers[number].begin()

    def _next(self) -> float:
        return time.monotonic() + self._chance.random() * 0.5

    def end(self) -> None:
        """Servers give back what they had for the consumers that were killed."""
        until = time.monotonic() + LONGEST
        while any(descriptors(server.number) > self._idle for server in self.servers):
            assert time.monotonic() < until, [descriptors(s.number) for s in self.servers]
            time.sleep(0.05)
        for server in self.servers:
            server.check_memory()

    def close(self) -> None:
        """Kills what is there."""
        for process in (*self.servers, self.consumer):
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(process.number, signal.SIGKILL)
                os.waitpid(process.number, 0)


def kill_campaign(count: int, seed: int) -> collections.Counter[str]:
    """So many kills of processes that had not ended. Returns how many of which."""
    killed: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        url = write_shards(Path(name))
        expected = [local(url, rows) for rows in (False, True)]
        passes = 0
        while killed.total() < count:
            folder = Path(name) / f"pass-{passes}"
            folder.mkdir()
            rows = passes % 2 == 1
            what = f"pass {passes} of seed {seed}, rows: {rows}"
            chance = random.Random(f"{seed} {passes}")
            try:
                with contextlib.closing(Kills(url, folder, rows, chance)) as kills:
                    kills.run(count - killed.total())
                    assert (folder / "log").read_text() == expected[rows]
                    kills.end()
            except BaseException as error:
                raise AssertionError(what) from error
            killed += kills.killed
            passes += 1
        killed["passes"] = passes
    return killed


# ---- Links ---------------------------------------------------------------------------------------

Trouble = Callable[[Link, random.Random], None]


def gone_for_a_while(link: Link, chance: random.Random) -> None:
    link.enable(False)
    threading.Timer(0.2 + chance.random() * 2, link.enable).start()


def silent_for_a_while(link: Link, chance: random.Random) -> None:
    link.add("timeout", timeout=0)
    threading.Timer(2 + chance.random(), link.remove, ["timeout"]).start()


LINKS: dict[str, Trouble] = {
    "cut": lambda link, chance: link.cut_after(chance.randrange(100_000), False),
    "reset": lambda link, chance: link.cut_after(chance.randrange(100_000), True),
    "reset at once": lambda link, chance: link.add("reset_peer", timeout=chance.randrange(50)),
    "gone": lambda link, _: link.enable(False),
    "gone for a while": gone_for_a_while,
    "answers are swallowed": lambda link, _: link.add("timeout", timeout=0),
    "requests are swallowed": lambda link, _: link.add("timeout", stream="upstream", timeout=0),
    "silent for a while": silent_for_a_while,
    "slow": lambda link, chance: link.add("bandwidth", rate=chance.randrange(100, 2000)),
    "latency and jitter": lambda link, chance: link.add(
        "latency", latency=chance.randrange(300), jitter=100
    ),
    "sliced": lambda link, chance: link.add("slicer", average_size=500, size_variation=400),
}


def link_run(
    url: str, servers: list[Server], proxies: Toxiproxy, kind: str, chance: random.Random
) -> str:
    """A stream over two links, of which one becomes bad after some samples. What came."""
    with contextlib.ExitStack() as stack:
        links = [
            stack.enter_context(proxies.link(int(server.url.rpartition(":")[2])))
            for server in servers
        ]
        urls = [f"feed://127.0.0.1:{link.port}" for link in links]
        at = chance.randrange(700)
        texts = []
        last = time.monotonic()
        for number, (text, _) in enumerate(read(urls, False, feed_timeout=f"{FEED_TIMEOUT}s")):
            texts.append(text)
            now = time.monotonic()
            assert now - last < LONGEST, f"{now - last:.1f} s without a sample"
            if number == at:
                LINKS[kind](links[0], chance)
                if "a while" in kind:
                    LINKS[kind](links[1], chance)
            last = time.monotonic()
        # Timers that give a link back.
        for timer in threading.enumerate():
            if isinstance(timer, threading.Timer):
                timer.join()
        return "".join(texts)


def link_campaign(times: int, seed: int) -> int:
    """Each kind of bad link so often. Returns the number of runs."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        proxies = stack.enter_context(toxiproxy(folder))
        url = write_shards(folder)
        expected = local(url, False)
        words = [url, f"--feed-timeout={FEED_TIMEOUT}s", "--memory=2MiB"]
        servers = []
        for _ in range(SERVERS):
            servers.append(Server(*words))
            stack.callback(servers[-1].kill)
        idle = [descriptors(server.process.pid) for server in servers]
        before = descriptors("self")
        for number in range(times):
            for kind in LINKS:
                chance = random.Random(f"{seed} {number} {kind}")
                try:
                    assert link_run(url, servers, proxies, kind, chance) == expected
                except BaseException as error:
                    raise AssertionError(f"run {number} of seed {seed}: {kind}") from error
        assert descriptors("self") == before
        until = time.monotonic() + LONGEST
        while [descriptors(server.process.pid) for server in servers] > idle:
            assert time.monotonic() < until, "a server keeps descriptors"
            time.sleep(0.05)
        return times * len(LINKS)


def main() -> None:
    count = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32)
    print(f"{count} kills, seed {seed}", flush=True)
    began = time.monotonic()
    killed = kill_campaign(count, seed)
    said = ", ".join(f"{number} {what}" for what, number in sorted(killed.items()))
    print(f"all right: {said} ({time.monotonic() - began:.0f} s)", flush=True)
    if INSTALLED is None:
        print("bad links: left out: scripts/install_test_servers.sh installs toxiproxy")
        return
    began = time.monotonic()
    runs = link_campaign(5, seed)
    print(f"all right: {runs} streams over bad links ({time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main()
