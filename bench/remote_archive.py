"""Random access to a ZIP file in a bucket: opening it, and reading many members or one by one."""

from __future__ import annotations

import json
import random
import zipfile
import zlib
from pathlib import Path

import corpora
from measuring import Result, RunError, run
from remote_rows import CONNECTIONS, MANY_CONNECTIONS, Tools, at_least, at_most
from remote_servers import BUCKET, S3
from targets import Verdict

LATENCY_MS = 20
MEMBERS = 200_000
WANTED = 256
WANTED_BYTES, TINY_BYTES = 10_000, 100
# Between wanted members: more than what one request for two of them would read for nothing.
GAP_BYTES = 300_000
OPEN_REQUESTS, OPEN_SECONDS = 3, 0.3
READ_MANY = 20


def name_of(number: int) -> str:
    return f"wanted_{number:06d}.bin"


def shuffled_names(count: int) -> list[str]:
    names = [name_of(number) for number in range(count)]
    random.Random("remote archive").shuffle(names)
    return names


def content(name: str) -> bytes:
    return random.Random(name).randbytes(WANTED_BYTES)


def checksum(count: int) -> int:
    """That of the wanted members in the order of `shuffled_names`."""
    sums = [zlib.crc32(content(name)) for name in shuffled_names(count)]
    return zlib.crc32(json.dumps(sums).encode())


def archive(members: int, wanted: int) -> Path:
    """A file of stored members, made on first use."""
    path = corpora.DATA / f"remote-{members}-{wanted}.zip"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    gap = random.Random("gap").randbytes(GAP_BYTES)
    tiny = random.Random("tiny").randbytes(TINY_BYTES)
    with zipfile.ZipFile(unfinished, "w") as file:
        for number in range(wanted):
            file.writestr(name_of(number), content(name_of(number)))
            file.writestr(f"gap_{number:06d}.bin", gap)
        for number in range(members - 2 * wanted):
            file.writestr(f"tiny_{number:06d}.bin", tiny)
    unfinished.rename(path)
    return path


def run_archive(
    tools: Tools, server: S3, port: int, work: tuple[str, int], count: tuple[int, int]
) -> Result:
    """One process, by what it does and its connections; what it says, and its requests."""
    (what, connections), (members, wanted) = work, count
    words = [f"{name}={value}" for name, value in server.environment(port).items()]
    url = f"s3://{BUCKET}/archive.zip"
    numbers = (str(wanted), str(connections))
    reader = tools.reader("archive_readers.py", what, url, *numbers)
    before = server.settled_requests()
    result = run(["env", *words, *reader])
    result["requests"] = server.settled_requests() - before
    if result["members"] != members:
        raise RunError(f"{result['members']} members, not {members}")
    if what != "open" and result["checksum"] != checksum(wanted):
        raise RunError("other bytes than were written")
    return result


def measure_archive(
    tools: Tools, server: S3, link: tuple[int, int], scale: float, repeat: int
) -> tuple[dict[str, Result], list[Verdict]]:
    """`link`: a port in front of the server, and its latency in ms."""
    port, latency = link
    members, wanted = max(1000, round(MEMBERS * scale)), max(16, round(WANTED * scale))
    path = archive(members, wanted)
    server.put("archive.zip", path)
    best: dict[str, Result] = {}
    works = {name: (name, CONNECTIONS) for name in ("open", "many", "single")}
    works[f"many-{MANY_CONNECTIONS}"] = ("many", MANY_CONNECTIONS)
    for _ in range(repeat):
        for name, work in works.items():
            result = run_archive(tools, server, port, work, (members, wanted))
            time = "open_seconds" if name == "open" else "seconds"
            if name not in best or result[time] < best[name][time]:
                best[name] = result
    opened, single = best["open"], best["single"]
    print(
        f"\n## Archive over S3, {latency} ms: {members:,} members,"
        f" {path.stat().st_size / 1e6:,.0f} MB\n"
        f"{'':48}{'ms':>8}{'requests':>10}{'/ single':>10}\n"
        f"{'open':48}{opened['open_seconds'] * 1000:8.0f}{opened['requests']:10.0f}"
    )
    for name, (what, connections) in works.items():
        if name != "open":
            how = f"{what}, {connections} conn.: {wanted} members of 10 kB"
            result = best[name]
            print(
                f"{how:48}{result['seconds'] * 1000:8.0f}"
                f"{result['requests'] - opened['requests']:10.0f}"
                f"{single['seconds'] / result['seconds']:10.1f}"
            )
    ratio = single["seconds"] / best["many"]["seconds"]
    title = f"Archive over S3 at {latency} ms"
    return best, [
        at_most(f"{title}, requests of the open", opened["requests"], OPEN_REQUESTS),
        at_most(f"{title}, open", opened["open_seconds"], OPEN_SECONDS, " s"),
        at_least(f"{title}, read_many / one by one", ratio, READ_MANY),
    ]
