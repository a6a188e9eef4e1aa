"""An SFTP server for the tests: OpenSSH's, on loopback."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncssh
import pytest
from http_servers import free_port

CACHED = Path.home() / ".cache/shardfeed/tests/openssh/usr"

CONFIG = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/reader.pub
PidFile none
StrictModes no
UsePAM {pam}
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
Subsystem sftp internal-sftp
"""


@dataclass(frozen=True)
class SshServer:
    port: int
    user: str
    key: str  # of the reader, whom the server knows
    other_key: str  # of nobody
    known_hosts: str
    other_hosts: str  # with another key of this host


def find_sshd() -> str | None:
    for path in (shutil.which("sshd"), "/usr/sbin/sshd", str(CACHED / "sbin/sshd")):
        if path is not None and os.access(path, os.X_OK):
            return path
    return None


@contextmanager
def ssh_server(folder: Path) -> Iterator[SshServer]:
    """The files of this machine, as the user sees them who runs the tests."""
    sshd = find_sshd()
    if sshd is None:
        pytest.skip("sshd is not installed; scripts/install_test_servers.sh installs it")
    for name in ("host", "other-host", "reader", "stranger"):
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(folder / name)
        key.write_public_key(folder / f"{name}.pub")
        (folder / name).chmod(0o600)
    unpacked = sshd.startswith(str(CACHED))
    root = os.geteuid() == 0
    if root:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    port = free_port()
    config = CONFIG.format(port=port, folder=folder, pam="yes" if root else "no")
    for part in ("session", "auth"):  # programs of their own since OpenSSH 9.8 and 10
        if unpacked and (CACHED / f"lib/openssh/sshd-{part}").exists():
            config += f"Sshd{part.title()}Path {CACHED}/lib/openssh/sshd-{part}\n"
    (folder / "sshd_config").write_text(config)
    for name, host in (("known", "host"), ("other", "other-host")):
        line = f"[127.0.0.1]:{port} {(folder / f'{host}.pub').read_text()}"
        (folder / f"{name}_hosts").write_text(line)
    environment = os.environ.copy()
    if unpacked:
        libraries = (str(path) for path in CACHED.glob("lib/*-linux-*"))
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(libraries)
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [sshd, "-D", "-e", "-f", str(folder / "sshd_config")],
            stdin=subprocess.DEVNULL,
            stderr=log,
            env=environment,
        )
    try:
        deadline = time.monotonic() + 30
        while "Server listening" not in (said := (folder / "log").read_text(errors="replace")):
            if server.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"sshd does not start: {said}")
            time.sleep(0.01)
        yield SshServer(
            port,
            getpass.getuser(),
            str(folder / "reader"),
            str(folder / "stranger"),
            str(folder / "known_hosts"),
            str(folder / "other_hosts"),
        )
    finally:
        server.terminate()
        server.wait(10)
