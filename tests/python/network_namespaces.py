"""Hosts on one machine: network namespaces of Linux, whose links can be slow and can be cut.

    with network(["cpu-0", "trainer-0"]) as hosts:
        hosts["cpu-0"].limit(80)  # Mbit/s that it may send
        subprocess.run([*hosts["trainer-0"].inside, "ping", "-c1", hosts["cpu-0"].address])
        hosts["cpu-0"].cut()

Each host has an interface eth0, whose other end is in a bridge; the bridge is in a namespace of its
own, so that nothing of it is seen by the machine itself. Needs root, and `ip` and `tc` of iproute2.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence

NETWORK = "10.77.0"


class NoNamespacesError(Exception):
    """They cannot be made here; its text says why."""


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise NoNamespacesError(f"{' '.join(words)}: {done.stderr.strip()}")


class Host:
    """A namespace with one interface."""

    def __init__(self, switch: str, name: str, number: int) -> None:
        self._switch, self._namespace = switch, f"{switch}-{number}"
        self._port = f"port{number}"
        self.name = name
        self.address = f"{NETWORK}.{number + 1}"
        self.inside = ["ip", "netns", "exec", self._namespace]  # words before a command

    def make(self) -> None:
        """The namespace, its interface and the other end of that in the switch."""
        _run("ip", "netns", "add", self._namespace)
        ends = [self._port, "type", "veth", "peer", "name", "eth0", "netns", self._namespace]
        _run("ip", "-n", self._switch, "link", "add", *ends)
        _run("ip", "-n", self._switch, "link", "set", self._port, "master", "switch", "up")
        _run("ip", "-n", self._namespace, "addr", "add", f"{self.address}/24", "dev", "eth0")
        for interface in ("lo", "eth0"):
            _run("ip", "-n", self._namespace, "link", "set", interface, "up")

    def limit(self, megabits: float) -> bool:
        """It sends so many Mbit in a second at most. False: this kernel has no such limit."""
        bucket = ["tbf", "rate", f"{megabits}mbit", "burst", "64kb", "latency", "50ms"]
        words = ["tc", "-n", self._namespace, "qdisc", "replace", "dev", "eth0", "root", *bucket]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"links without limits: {done.stderr.strip()}")
        return done.returncode == 0

    def cut(self) -> None:
        """As if its cable were pulled out at the switch."""
        _run("ip", "-n", self._switch, "link", "set", self._port, "down")

    def mend(self) -> None:
        """The cable is back."""
        _run("ip", "-n", self._switch, "link", "set", self._port, "up")

    def remove(self) -> None:
        """Whatever of it is there; its processes must have ended."""
        subprocess.run(["ip", "netns", "del", self._namespace], capture_output=True)


@contextlib.contextmanager
def network(names: Sequence[str]) -> Iterator[dict[str, Host]]:
    """Hosts by name, in one network. Throws NoNamespacesError."""
    for program in ("ip", "tc"):
        if shutil.which(program) is None:
            raise NoNamespacesError(f"there is no {program} (the package iproute2)")
    switch = f"shardfeed-{os.getpid()}"
    hosts = {name: Host(switch, name, number) for number, name in enumerate(names)}
    try:
        _run("ip", "netns", "add", switch)
        _run("ip", "-n", switch, "link", "add", "switch", "type", "bridge")
        _run("ip", "-n", switch, "link", "set", "switch", "up")
        for host in hosts.values():
            host.make()
        yield hosts
    finally:
        for host in hosts.values():
            host.remove()
        subprocess.run(["ip", "netns", "del", switch], capture_output=True)
