"""Training across hosts that are network namespaces: three feeders, two trainers, limited links."""

from __future__ import annotations

import contextlib
import io
import json
import os
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
from feed_servers import PATIENT, Server, running
from network_namespaces import Host, NoNamespacesError, network

if shardfeed.features()["feed"] is None:
    pytest.skip("this build has no feed", allow_module_level=True)

pytest.importorskip("torch")

pytestmark = pytest.mark.slow

FEEDERS, RANKS = 3, 2
LANES = 12
LINK = 60  # Mbit/s that a feeder may send; 18 MB of rows come over three links
DECODE = "npy, cls:int"
PORT, HTTP_PORT = 7880, 9100
ORDER: dict[str, Any] = {
    "lanes": LANES,
    "shuffle": 20,
    "shuffle_shards": True,
    "seed": 7,
    "epochs": 2,
    "even": "drop",
}
# Of a stream of a feed, which then has seen a small part of the rows at the first pause.
FEED: dict[str, Any] = {"feed_timeout": "1s", "feed_wait": "30s", "memory": "2MiB"}
PAUSE = 6
TRAINER = Path(__file__).with_name("feed_trainer.py")
GET = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=10).read().decode())"

Hosts = dict[str, Host]


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    names = [f"cpu-{n}" for n in range(FEEDERS)] + [f"trainer-{n}" for n in range(RANKS)]
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(network(names))
        except NoNamespacesError as error:
            pytest.skip(f"no network namespaces here: {error}")
        for number in range(FEEDERS):
            made[f"cpu-{number}"].limit(LINK)
        yield made


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Shards of unequal size, with indexes; 300 rows of 30 kB in each epoch."""
    folder = tmp_path_factory.mktemp("shards")
    chance = np.random.default_rng(3)
    for shard in range(LANES):
        members = []
        for number in range(25 + shard % 4):
            out = io.BytesIO()
            np.save(out, chance.integers(0, 256, (3, 100, 100), np.uint8))
            members.append((f"{shard}-{number:03}.npy", out.getvalue()))
            members.append((f"{shard}-{number:03}.cls", b"%d" % (number % 10)))
        write_tar(folder / f"{shard}.tar", members)
    url = str(folder / f"{{0..{LANES - 1}}}.tar")
    shardfeed.Dataset(url)  # makes the indexes
    return url


class Trainers:
    """Both ranks, each on its host."""

    def __init__(self, hosts: Hosts, options: dict[str, Any], urls: list[str], pause: int) -> None:
        self._lines: list[list[str]] = [[] for _ in range(RANKS)]
        self._processes = []
        for rank in range(RANKS):
            environment = {
                "RANK": str(rank),
                "WORLD_SIZE": str(RANKS),
                "PAUSE": str(pause),
                "MASTER_ADDR": hosts["trainer-0"].address,
                "MASTER_PORT": "29500",
                "GLOO_SOCKET_IFNAME": "eth0",
                "OMP_NUM_THREADS": "1",
            }
            words = [sys.executable, str(TRAINER), json.dumps(options), *urls]
            process = subprocess.Popen(
                [*hosts[f"trainer-{rank}"].inside, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, **environment},
            )
            self._processes.append(process)
        self._watch = threading.Timer(2 * PATIENT, self.kill)  # those that hang
        self._watch.start()

    def kill(self) -> None:
        for process in self._processes:
            process.kill()

    def close(self) -> None:
        self._watch.cancel()
        self.kill()
        for process in self._processes:
            process.communicate()

    def read(self, last: str) -> None:
        """Until each rank has printed a line that begins so."""
        for process, lines in zip(self._processes, self._lines, strict=True):
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(last):
                    break
                lines.append(line)
            else:
                raise AssertionError(f"a trainer ends after {len(lines)} batches")
            if last != "pause":
                lines.append(line)

    def go_on(self) -> None:
        """Behind a pause."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()

    def finish(self) -> list[list[str]]:
        """What each rank has printed but for pauses."""
        self.read("weights")
        assert [process.wait(PATIENT) for process in self._processes] == [0] * RANKS
        return self._lines


@contextlib.contextmanager
def training(
    hosts: Hosts, options: dict[str, Any], urls: list[str], pause: int = 0
) -> Iterator[Trainers]:
    with contextlib.closing(Trainers(hosts, options, urls, pause)) as trainers:
        yield trainers


@pytest.fixture(scope="module")
def expected(hosts: Hosts, shards: str) -> list[list[str]]:
    """Of trainers that read the shards themselves."""
    with training(hosts, {**ORDER, "decode": DECODE}, [shards]) as trainers:
        lines = trainers.finish()
    assert len(lines[0]) == len(lines[1]) > 3 * PAUSE
    assert lines[0][-1] == lines[1][-1]  # the weights
    return lines


class Feeder(Server):
    """On a host of its own."""

    def __init__(self, host: Host, shards: str) -> None:
        self.host = host
        http = f"{host.address}:{HTTP_PORT}"
        super().__init__(
            *(shards, "--decode", DECODE, "--memory=2MiB", "--feed-timeout=1s", "--http", http),
            address=f"tcp://{host.address}:{PORT}",
            inside=host.inside,
        )

    def metric(self, name: str) -> float:
        """Of what it tells monitors; asked on its host, whose link may be cut."""
        url = f"http://{self.host.address}:{HTTP_PORT}/metrics"
        words = [*self.host.inside, sys.executable, "-c", GET, url]
        text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        return next(float(x.split()[1]) for x in text.splitlines() if x.startswith(name + " "))

    def lanes(self) -> float:
        return self.metric("shardfeed_feed_lanes")


def lanes_are(feeders: list[Feeder], reached: Callable[[list[float]], bool]) -> None:
    """Waits until so many lanes are read by each of them."""
    deadline = time.monotonic() + PATIENT
    while not reached(lanes := [feeder.lanes() for feeder in feeders]):
        assert time.monotonic() < deadline, lanes


Serve = Callable[[], list[Feeder]]


@pytest.fixture
def serve(hosts: Hosts, shards: str) -> Iterator[Serve]:
    with running(Feeder) as start:
        yield lambda: [start(hosts[f"cpu-{n}"], shards) for n in range(FEEDERS)]


def test_ranks_get_what_they_would_read(
    hosts: Hosts, serve: Serve, expected: list[list[str]]
) -> None:
    feeders = serve()
    with training(hosts, {**ORDER, **FEED}, [feeder.url for feeder in feeders]) as trainers:
        assert trainers.finish() == expected
    # All of them have fed; each has less than everything, since lanes are dealt out.
    rows = [feeder.metric("shardfeed_feed_rows_total") for feeder in feeders]
    assert min(rows) > 0
    assert max(rows) < sum(rows) / 2


def test_a_feeder_is_killed_and_another_one_loses_its_link(
    hosts: Hosts, serve: Serve, expected: list[list[str]]
) -> None:
    feeders = serve()
    options = {**ORDER, **FEED}
    with training(hosts, options, [feeder.url for feeder in feeders], PAUSE) as trainers:
        trainers.read("pause")
        assert feeders[0].lanes() > 0
        feeders[0].kill()
        lanes_are(feeders[1:], lambda lanes: sum(lanes) == LANES)
        trainers.go_on()

        trainers.read("pause")
        assert feeders[1].lanes() > 0
        feeders[1].host.cut()
        lanes_are(feeders[2:], lambda lanes: sum(lanes) == LANES)
        # What it read for streams that it does not hear of is given up.
        lanes_are(feeders[1:2], lambda lanes: sum(lanes) == 0)
        trainers.go_on()

        trainers.read("pause")
        feeders[1].host.mend()
        # It joins again, and takes over its share.
        lanes_are(feeders[1:], lambda lanes: min(lanes) > 0 and sum(lanes) == LANES)
        for _ in range((len(expected[0]) - 1) // PAUSE - 3):
            trainers.go_on()
            trainers.read("pause")
        trainers.go_on()
        assert trainers.finish() == expected
