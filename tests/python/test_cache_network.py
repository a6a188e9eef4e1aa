"""A cache on a file system of the network: sshfs from OpenSSH's server, mounted twice, as on two
machines. Locks of one mount are not those of the other one, so that only checksums and rename keep
the readers apart.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from conftest import numbered, write_tar
from http_servers import Nginx

pytest.importorskip("asyncssh")

from ssh_servers import SshServer, ssh_server

SHARDS, SAMPLES, SIZE = 4, 30, 100_000

READER = """
import hashlib, sys
import shardfeed
total = hashlib.sha256()
for sample in shardfeed.Stream(sys.argv[1], **dict(word.split("=") for word in sys.argv[2:])):
    for name, data in sample.items():
        total.update(f"{sample.key}.{name}".encode() + bytes(data))
print(total.hexdigest())
"""


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[Nginx]:
    (tmp_path / "nginx").mkdir()
    server = Nginx(tmp_path / "nginx")
    for shard in range(SHARDS):
        write_tar(server.root / f"s-{shard}.tar", numbered(shard * SAMPLES, SAMPLES, SIZE))
    yield server
    server.stop()


def mount(server: SshServer, folder: Path, at: Path) -> None:
    program = shutil.which("sshfs")
    if program is None or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("sshfs or /dev/fuse is not there")
    at.mkdir()
    options = f"IdentityFile={server.key},UserKnownHostsFile={server.known_hosts}"
    source = f"{server.user}@127.0.0.1:{folder}"
    command = [program, source, str(at), "-p", str(server.port), "-F", "/dev/null", "-o", options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:  # a container may not mount
        pytest.skip(f"sshfs: {done.stderr}")


@pytest.fixture
def mounts(tmp_path: Path) -> Iterator[list[Path]]:
    """Two mounts of one folder."""
    (tmp_path / "ssh").mkdir()
    (tmp_path / "kept").mkdir()
    with ssh_server(tmp_path / "ssh") as server, ExitStack() as mounted:
        places = [tmp_path / "a", tmp_path / "b"]
        for place in places:
            mount(server, tmp_path / "kept", place)
            program = "fusermount3" if shutil.which("fusermount3") else "fusermount"
            # Lazily: what a reader left open must not keep the tests.
            mounted.callback(subprocess.run, [program, "-u", "-z", str(place)], timeout=60)
        yield places


def read_by(caches: list[Path], url: str, kill: int | None = None) -> list[str]:
    """What as many processes read at once; with `kill`, but for that one, which is killed."""
    words = [sys.executable, "-c", READER, url]
    readers = [
        subprocess.Popen(
            [*words, f"cache={cache}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for cache in caches
    ]
    if kill is not None:
        while not list(caches[kill].glob("*/shards/*/*/*")) and readers[kill].poll() is None:
            time.sleep(0.002)
        readers.pop(kill).send_signal(signal.SIGKILL)
    return [reader.communicate(timeout=120)[0] for reader in readers]


def test_processes_on_two_machines_share_a_cache(nginx: Nginx, mounts: list[Path]) -> None:
    url = nginx.url(f"s-{{0..{SHARDS - 1}}}.tar")
    words = [sys.executable, "-c", READER, f"{nginx.root}/s-{{0..{SHARDS - 1}}}.tar"]
    right = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    caches = [place / "cache" for place in mounts]
    assert read_by(caches * 2, url, kill=1) == [right] * 3
    seen = sum(line.sent for line in nginx.logged())
    # Of the blocks of the killed one another process has fetched what is missing.
    assert read_by(caches, url) == [right] * 2
    assert sum(line.sent for line in nginx.logged()) - seen < 1000
    for cache in caches:
        verify = [sys.executable, "-m", "shardfeed", "cache", "verify", "--dir", str(cache)]
        done = subprocess.run(verify, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
