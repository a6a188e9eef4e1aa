"""Faults of servers and networks at random places: all is read, or there is an error of the right
class.

python random_faults.py COUNT [SEED] does that many runs, of all kinds in turn, or with COUNT as
200x so many of each kind, and prints what came of them. Faults of the network are those of a real
toxiproxy in front of a real nginx; without it they are left out, and said to be.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import gzip
import io
import random
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import shardfeed
from bad_links import INSTALLED, Link, Toxiproxy, toxiproxy
from conftest import numbered, write_tar
from http_servers import Answer, Decide, Nginx, Request, ranged, stand_in

SECRET = "hush-token"
PASSES = ("NET_TRANSIENT", "THROTTLED", "TIMEOUT")  # faults that may pass, when they do not
LONGEST = 20.0  # seconds, of one run

Change = Callable[[Answer, random.Random, Request], Answer]


def headers(answer: Answer, **changed: str | None) -> Answer:
    """With these in place of those of the answer; None: without."""
    kept = {k: v for k, v in answer.headers.items() if k.lower().replace("-", "_") not in changed}
    kept |= {k.replace("_", "-"): v for k, v in changed.items() if v is not None}
    return dataclasses.replace(answer, headers=kept)


def cut(end: str) -> Change:
    return lambda answer, chance, _: dataclasses.replace(
        answer, cut=chance.randrange(len(answer.body) + 1), end=end
    )


def cut_in_headers(answer: Answer, chance: random.Random, _: Request) -> Answer:
    return dataclasses.replace(answer, head=chance.randrange(1, 60))


def status(number: int, **more: str) -> Change:
    return lambda *_: Answer(number, {name.replace("_", "-"): text for name, text in more.items()})


def longer(answer: Answer, chance: random.Random, _: Request) -> Answer:
    return dataclasses.replace(answer, body=answer.body + bytes(chance.randrange(1, 5000)))


def shorter(answer: Answer, chance: random.Random, _: Request) -> Answer:
    """A whole body with its length, which is less than the range that it names."""
    return dataclasses.replace(answer, body=answer.body[: chance.randrange(len(answer.body) + 1)])


def without_length(answer: Answer, chance: random.Random, _: Request) -> Answer:
    return dataclasses.replace(
        answer, length=False, cut=chance.randrange(len(answer.body) + 1), end="fin"
    )


def other_range(answer: Answer, chance: random.Random, request: Request) -> Answer:
    first = (request.first or 0) + chance.choice([-1, 1, 512, 4096])
    last = first + max(len(answer.body), 1) - 1
    return headers(answer, content_range=f"bytes {max(first, 0)}-{last}/{last + 10**6}")


def other_bytes(answer: Answer, chance: random.Random, _: Request) -> Answer:
    """Another version, which says so."""
    body = bytes(byte ^ 255 for byte in answer.body)
    return dataclasses.replace(headers(answer, etag='"v2"'), body=body)


def html(*_: Any) -> Answer:
    page = b"<!DOCTYPE html><html>please log in</html>"
    return Answer(200, {"Content-Type": "text/html", "ETag": '"v1"'}, page)


CHANGED = ("CHANGED", "NET_PERMANENT")
KINDS: dict[str, tuple[Change, tuple[str, ...]]] = {
    "connection closed in the body": (cut("fin"), PASSES),
    "connection reset in the body": (cut("rst"), PASSES),
    "connection closed in the headers": (cut_in_headers, PASSES),
    # Of an answer without any length nothing says where it ends; the archive does.
    "body without length, cut": (without_length, (*PASSES, *CHANGED, "TRUNCATED")),
    "body shorter than its range": (shorter, PASSES + CHANGED),
    "body longer than its range": (longer, PASSES + CHANGED),
    "another range": (other_range, CHANGED),
    "206 without Content-Range": (lambda a, *_: headers(a, content_range=None), CHANGED),
    "200 with an empty body": (status(200, ETag='"v1"'), (*CHANGED, "TRUNCATED", "FORMAT")),
    "another version": (other_bytes, (*CHANGED, "FORMAT", "INTEGRITY", "TRUNCATED")),
    "412": (status(412), CHANGED),
    "416": (status(416), CHANGED),
    "401": (status(401), ("AUTH",)),
    "403": (status(403), ("AUTH",)),
    "404": (status(404), ("NET_PERMANENT",)),
    "429": (status(429, Retry_After="0"), PASSES),
    "500": (status(500), PASSES),
    "503": (status(503, Retry_After="0"), PASSES),
    "several ranges": (
        lambda a, *_: headers(a, content_type="multipart/byteranges; boundary=x"),
        CHANGED,
    ),
    "redirect in a circle": (status(302, Location="/circle"), ("NET_PERMANENT",)),
    "redirect to a file": (status(302, Location="file:///etc/passwd"), ("NET_PERMANENT",)),
    "login page": (html, (*CHANGED, "FORMAT", "TRUNCATED")),
}


Trouble = Callable[[Link, random.Random], None]


def place(chance: random.Random) -> int:
    """Where a connection is cut: before its body, or where it is some way on, since each cut is a
    wait, and a body of which there are ten bytes at a time takes thousands of them.
    """
    return chance.choice([chance.randrange(1, 200), chance.randrange(60_000, 400_000)])


# By toxiproxy: what makes the link bad, and whether it is so from the start.
LINKS: dict[str, tuple[Trouble, bool]] = {
    "latency and jitter": (
        lambda link, chance: link.add("latency", latency=10, jitter=chance.randrange(10)),
        True,
    ),
    "bandwidth": (
        lambda link, chance: link.add("bandwidth", rate=chance.randrange(1000, 10_000)),
        True,
    ),
    "sliced answers": (
        lambda link, chance: link.add(
            "slicer", average_size=chance.choice([500, 5000]), size_variation=400, delay=10
        ),
        True,
    ),
    "sliced requests": (
        lambda link, chance: link.add(
            "slicer", stream="upstream", average_size=chance.randrange(1, 50), delay=10
        ),
        True,
    ),
    "slow close": (
        lambda link, chance: link.add("slow_close", delay=chance.randrange(1, 50)),
        True,
    ),
    "every connection is cut": (
        lambda link, chance: link.cut_after(place(chance), False),
        True,
    ),
    "every connection is reset": (
        lambda link, chance: link.cut_after(place(chance), True),
        True,
    ),
    "some connections are reset at once": (
        lambda link, chance: link.add("reset_peer", toxicity=0.3, timeout=chance.randrange(5)),
        True,
    ),
    "some connections are silent, and end": (
        lambda link, chance: link.add("timeout", toxicity=0.3, timeout=chance.randrange(1, 50)),
        True,
    ),
    "the link is gone for a while": (lambda link, chance: link.enable(False), False),
}


@dataclasses.dataclass(frozen=True)
class Shard:
    """What is read, and what must come of it."""

    name: str
    data: bytes
    expected: list[tuple[str, bytes]]


def shards(folder: Path) -> list[Shard]:
    members = numbered(0, 120, 3000)
    tar = write_tar(folder / "a.tar", members).read_bytes()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members:
            file.writestr(name, data)
    every = [("a.tar", tar), ("a.tar.gz", gzip.compress(tar, 1)), ("a.zip", packed.getvalue())]
    result = []
    for name, data in every:
        (folder / name).write_bytes(data)
        result.append(Shard(name, data, read(str(folder / name), {})))
    return result


def read(
    url: str, options: dict[str, Any], seen: list[tuple[str, bytes]] | None = None
) -> list[tuple[str, bytes]]:
    seen = [] if seen is None else seen
    for sample in shardfeed.Stream(url, **options):
        seen.append((sample.key, b"|".join(bytes(data) for data in sample.values())))
    return seen


def faulty(right: Decide, change: Change, chance: random.Random, passes: bool) -> Decide:
    """A server that does `change` to one answer, or to all from one on."""
    at = chance.randrange(4)

    def decide(request: Request) -> Answer:
        if request.path == "/circle":
            return Answer(302, {"Location": "/circle"})
        answer = right(request)
        if request.number == at or (not passes and request.number > at):
            return change(answer, chance, request)
        return answer

    return decide


def attempt(shard: Shard, kind: str, chance: random.Random) -> str:
    """One run. Returns "complete", or the class of the error, and fails for all else."""
    change, allowed = KINDS[kind]
    options: dict[str, Any] = {
        "retries": 2,
        "timeout": LONGEST,
        "token": SECRET,
        "connections": chance.choice([1, 2, 8]),
        "range_size": "256KiB",
        "memory": "1MiB",
        "threads": chance.choice([1, 2]),
    }
    seen: list[tuple[str, bytes]] = []
    began = time.monotonic()
    tag = chance.choice(['"v1"', '"v1"', 'W/"v1"', None])
    decide = faulty(ranged(shard.data, tag), change, chance, chance.random() < 0.5)
    with stand_in(decide) as server:
        try:
            read(server.url(shard.name), options, seen)
            outcome = "complete"
        except shardfeed.Error as error:
            outcome = error.code_name
            assert SECRET not in str(error), error
            assert server.url(shard.name) in str(error), error
            # A ZIP file without ranges is none that can be read.
            without_ranges = outcome == "UNSUPPORTED" and shard.name.endswith(".zip")
            assert outcome in allowed or without_ranges, (outcome, str(error))
    assert time.monotonic() - began < LONGEST, "it hangs"
    if outcome == "complete":
        assert seen == shard.expected, (len(seen), len(shard.expected))
    else:
        assert seen == shard.expected[: len(seen)]
    return outcome


@dataclasses.dataclass(frozen=True)
class Network:
    """A real server, and a proxy that makes links to it."""

    server: Nginx
    proxies: Toxiproxy

    def attempt(self, shard: Shard, kind: str, chance: random.Random) -> str:
        """One run over a bad link, as attempt()."""
        trouble, at_once = LINKS[kind]
        options: dict[str, Any] = {
            "retries": chance.choice([0, 3]),  # of waits of 0.1 s, which double
            "timeout": LONGEST,
            "token": SECRET,
            "connections": chance.choice([1, 2, 8]),
            "range_size": "256KiB",
            "memory": "1MiB",
        }
        seen: list[tuple[str, bytes]] = []
        began = time.monotonic()
        with self.proxies.link(self.server.ports[0]) as link:
            url = f"http://127.0.0.1:{link.port}/{shard.name}"
            if at_once:
                trouble(link, chance)
                back = None
            else:
                # Before the first sample, or in the middle of what the bandwidth makes slow.
                link.add("bandwidth", rate=3000)
                timers = [
                    threading.Timer(chance.random() * 0.1, trouble, (link, chance)),
                    threading.Timer(0.1 + chance.random() * 0.2, link.enable),
                ]
                for timer in timers:
                    timer.start()
                back = timers
            try:
                read(url, options, seen)
                outcome = "complete"
            except shardfeed.Error as error:
                outcome = error.code_name
                assert SECRET not in str(error), error
                assert url in str(error), error
                assert outcome in PASSES, (outcome, str(error))
            for timer in back or ():
                timer.join()
        assert time.monotonic() - began < LONGEST, "it hangs"
        assert seen == shard.expected[: len(seen)]
        assert outcome != "complete" or len(seen) == len(shard.expected)
        return outcome


@contextlib.contextmanager
def network(folder: Path) -> Iterator[Network | None]:
    """With the shards of this folder; None: there is no toxiproxy."""
    if not INSTALLED:
        yield None
        return
    place = folder / "network"
    place.mkdir()
    server = Nginx(place)
    try:
        for file in folder.glob("a.*"):
            (server.root / file.name).write_bytes(file.read_bytes())
        with toxiproxy(place) as proxies:
            yield Network(server, proxies)
    finally:
        server.stop()


def campaign(count: int, seed: int) -> collections.Counter[tuple[str, str]]:
    """So many runs. Fails with what repeats the one that fails."""
    outcomes: collections.Counter[tuple[str, str]] = collections.Counter()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        every = shards(folder)
        links = stack.enter_context(network(folder))
        kinds = [*KINDS, *(LINKS if links else ())]
        for number in range(count):
            kind = kinds[number % len(kinds)]
            chance = random.Random(f"{seed} {number}")
            shard = chance.choice(every)
            run = links.attempt if links and kind in LINKS else attempt
            try:
                outcomes[kind, run(shard, kind, chance)] += 1
            except BaseException as error:
                raise AssertionError(
                    f"run {number} of seed {seed}: {kind}, {shard.name}"
                ) from error
    return outcomes


def main() -> None:
    count = int(sys.argv[1].rstrip("x"))
    if sys.argv[1].endswith("x"):
        count *= len(KINDS) + (len(LINKS) if INSTALLED else 0)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32)
    print(f"{count} runs, seed {seed}", flush=True)
    began = time.monotonic()
    outcomes = campaign(count, seed)
    for kind in (*KINDS, *LINKS):
        found = {name: number for (of, name), number in outcomes.items() if of == kind}
        said = ", ".join(f"{name} {number}" for name, number in sorted(found.items()))
        print(f"{kind:36}", said or "left out: scripts/install_test_servers.sh installs toxiproxy")
    print(f"{count} runs: complete, or the right error ({time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main()
