"""Shards on a real OpenSSH server, through an opener: keys of hosts and of users."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import numbered, write_tar

pytest.importorskip("sshfs")

from ssh_servers import SshServer, ssh_server

# In a process of its own: a file of sshfs that is still open when Python ends waits for ever.
PROGRAM = """
import functools, sys
import fsspec, shardfeed
from openers import numbers

url, known_hosts, key = sys.argv[1:]
opener = functools.partial(
    fsspec.open, mode="rb", known_hosts=known_hosts, client_keys=[key], config=None, agent_path=None
)
try:
    urls = url + "s-{000..003}.tar"
    stream = shardfeed.Stream(urls, opener=opener, shuffle=20, seed=1, threads=3)
    with stream:
        samples = iter(stream)
        first = [next(samples).key for _ in range(70)]
        state = stream.state_dict()
        rest = [sample.key for sample in samples]
    assert len({*first, *rest}) == 200
    with stream.recipe.open() as again:
        again.load_state_dict(state)
        assert [sample.key for sample in again] == rest
    with shardfeed.Archive(url + "s-002.tar", opener=opener) as archive:
        assert archive.read("000101.cls") == b"1"
        assert len(archive.read_many(range(100))) == 100
    with shardfeed.Dataset(urls, opener=opener, index="memory") as data:
        assert numbers(data.get_many([199, 0, 60])) == [199, 0, 60]
    shardfeed.Archive(url + "none.tar", opener=opener)
except shardfeed.Error as error:
    print(type(error).__name__, type(error.__cause__).__name__, str(error).replace(chr(10), " "))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with ssh_server(tmp_path_factory.mktemp("ssh")) as running:
        yield running


@pytest.fixture
def read(server: SshServer, tmp_path: Path) -> Any:
    """read(known_hosts, key): the error at the end."""
    for shard in range(4):
        write_tar(tmp_path / f"s-{shard:03}.tar", numbered(50 * shard, 50, 5000))
    url = f"sftp://{server.user}@127.0.0.1:{server.port}{tmp_path}/"

    def run(known_hosts: str, key: str) -> str:
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", PROGRAM, url, known_hosts, key],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=Path(__file__).parent,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_everything_reads_from_a_host_that_is_known(read: Any, server: SshServer) -> None:
    # All was read but what is not there.
    assert read(server.known_hosts, server.key).startswith("NotFoundError FileNotFoundError ")


def test_a_host_with_another_key_gets_no_connection(read: Any, server: SshServer) -> None:
    said = read(server.other_hosts, server.key)
    assert said.split()[1] == "HostKeyNotVerifiable"
    assert "Host key is not trusted for host 127.0.0.1" in said


def test_a_user_whose_key_is_not_known_there(read: Any, server: SshServer) -> None:
    said = read(server.known_hosts, server.other_key)
    assert said.startswith("AccessError PermissionError ")
    assert "Permission denied for user" in said
