"""Servers at addresses of the internet and of private networks, in a network of their own.

python addressed_servers.py CHECK runs one check of those below. It needs a process that has a
network, mounts and a user of its own: unshare -rnm.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import shardfeed
from conftest import numbered, write_tar
from http_servers import Answer, Request, StandIn, ranged

PUBLIC, OTHER = "8.8.8.8", "9.9.9.9"
# A metadata service, a private network, a provider's network, a unique local address.
PRIVATE = [
    "127.0.0.1",
    "169.254.169.254",
    "10.1.2.3",
    "192.168.1.1",
    "100.64.0.1",
    "::1",
    "fd00::1",
]
HOSTS = f"""
127.0.0.1 inside.test
{PUBLIC} outside.test
::1 both.test
127.0.0.1 both.test
"""
SAMPLES = 20


def set_up(folder: Path) -> bytes:
    """The addresses and names. Returns a shard."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in (PUBLIC, OTHER, *PRIVATE):
        if address not in ("127.0.0.1", "::1"):
            length = 128 if ":" in address else 32
            words = ["ip", "address", "add", f"{address}/{length}", "dev", "lo"]
            # Without the look whether another machine has the address.
            subprocess.run([*words, *(["nodad"] if length == 128 else [])], check=True)
    hosts = folder / "hosts"
    hosts.write_text(HOSTS)
    subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)
    return write_tar(folder / "t.tar", numbered(0, SAMPLES, 3000)).read_bytes()


def read(url: str, **options: Any) -> int | str:
    """The number of samples, or the class of the error and its cause."""
    try:
        return sum(1 for _ in shardfeed.Stream(url, **{"retries": 1, "timeout": 20, **options}))
    except shardfeed.Error as error:
        return f"{error.code_name}: {error}"


def redirects(tar: bytes) -> dict[str, Any]:
    """From a public server to one at each address: what is read, with the number of requests."""
    found: dict[str, Any] = {}
    for place in (OTHER, *PRIVATE):
        target = StandIn(ranged(tar), place=(place, 0))
        start = StandIn(lambda _, to=target: Answer(302, {"Location": to.url()}), place=(PUBLIC, 0))
        refused = read(start.url()), len(target.requests)
        found[place] = {"refused": refused, "allowed": read(start.url(), allow_private=True)}
        # What begins in a private network may lead there.
        start = StandIn(lambda _, to=target: Answer(302, {"Location": to.url()}))
        found[place]["from inside"] = read(start.url())
        # Over a second public server.
        last = StandIn(lambda _, to=target: Answer(302, {"Location": to.url()}), place=(OTHER, 0))
        start = StandIn(lambda _, to=last: Answer(302, {"Location": to.url()}), place=(PUBLIC, 0))
        before = len(target.requests)
        found[place]["twice"] = read(start.url()), len(target.requests) - before
    # A name whose address is inside.
    target = StandIn(ranged(tar))
    to = {"Location": f"http://inside.test:{target.port}/t.tar"}
    start = StandIn(lambda _: Answer(302, to), place=(PUBLIC, 0))
    found["name"] = {"refused": (read(start.url()), len(target.requests))}
    # Where the object is now is remembered for the next requests: that is looked at each time.
    moved = StandIn(ranged(tar), place=(OTHER, 0))

    def later(request: Request) -> Answer:
        return Answer(302, {"Location": target.url() if request.number else moved.url()})

    start = StandIn(later, place=(PUBLIC, 0))
    # More than comes with the first answer; then the place is said to have expired.
    big = write_tar(Path(tempfile.mkdtemp(), "big.tar"), numbered(0, 100, 30000)).read_bytes()
    moved.decide = lambda request: Answer(403) if request.number else ranged(big)(request)
    found["later"] = {"refused": (read(start.url()), len(target.requests))}
    return found


def families(tar: bytes) -> dict[str, Any]:
    """A name with an address of each family, of which one is dead."""
    found: dict[str, Any] = {}
    url = "http://both.test:{}/t.tar"
    server = StandIn(ranged(tar))  # nobody listens at ::1
    found["refused"] = read(url.format(server.port))
    server = StandIn(ranged(tar), place=("::1", 0))
    found["refused, the other one"] = read(url.format(server.port))
    server = StandIn(ranged(tar))
    # Nobody answers there: all places of those who wait are taken.
    silent = socket.create_server(("::1", server.port), family=socket.AF_INET6, backlog=0)
    fillers = [socket.socket(socket.AF_INET6) for _ in range(3)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(("::1", server.port))
    begun = time.monotonic()
    found["silent"] = read(url.format(server.port))
    found["silent, seconds"] = time.monotonic() - begun
    silent.close()
    return found


def names(_: bytes) -> dict[str, Any]:
    """A name that nobody knows, without any server of names to ask."""
    begun = time.monotonic()
    said = read("http://nobody.test/t.tar")
    return {"said": said, "seconds": time.monotonic() - begun}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        tar = set_up(Path(folder))
        check = {"redirects": redirects, "families": families, "names": names}[sys.argv[1]]
        print(json.dumps(check(tar)))
        subprocess.run(["umount", "/etc/hosts"], check=True)


if __name__ == "__main__":
    main()
