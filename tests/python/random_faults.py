"""Faults of servers at random places: all is read, or there is an error of the right class.

python random_faults.py COUNT [SEED] does that many runs, of all kinds in turn, and prints what came
of them.
"""

from __future__ import annotations

import collections
import dataclasses
import gzip
import io
import random
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import shardfeed
from conftest import numbered, write_tar
from http_servers import Answer, Decide, Request, ranged, stand_in

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


def campaign(count: int, seed: int) -> collections.Counter[tuple[str, str]]:
    """So many runs. Fails with what repeats the one that fails."""
    outcomes: collections.Counter[tuple[str, str]] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        every = shards(Path(folder))
        kinds = list(KINDS)
        for number in range(count):
            kind = kinds[number % len(kinds)]
            chance = random.Random(f"{seed} {number}")
            shard = chance.choice(every)
            try:
                outcomes[kind, attempt(shard, kind, chance)] += 1
            except BaseException as error:
                raise AssertionError(
                    f"run {number} of seed {seed}: {kind}, {shard.name}"
                ) from error
    return outcomes


def main() -> None:
    count = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32)
    print(f"{count} runs, seed {seed}", flush=True)
    began = time.monotonic()
    outcomes = campaign(count, seed)
    for kind in KINDS:
        found = {name: number for (of, name), number in outcomes.items() if of == kind}
        print(f"{kind:32}", ", ".join(f"{name} {number}" for name, number in sorted(found.items())))
    print(f"{count} runs: complete, or the right error ({time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main()
