"""Runs the cases through feeds: python over_feed.py COMMAND ...

Each list of shards is fed by a server of its own on loopback, which the command `shardfeed feed`
is; SHARDFEED_COMMAND names another one than that of the Python package. In COMMAND {folder} stands
for the folder with the archives and {suite} for one whose cases.json has the cases with the
addresses of the servers in place of shards. Cases of batches come twice: decoded by the stream, and
by the server. Their results are those of the local suite.
"""

from __future__ import annotations

import collections
import contextlib
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from served_suite import make_archives, read_suite, run, write_suite

from feed_servers import RefusedError, Server  # isort: skip

KINDS = ("stream", "resume", "batches", "resume_batches", "merge", "mix")
# What a server has to know beside what its streams tell it: how shards are read, and limits.
READING = ("threads", "memory", "timeout", "pipe_timeout", "expand", "secure", "write_index")


def consumers_of(case: dict[str, Any]) -> list[int]:
    """Into how many parts the lanes of a case are divided."""
    options = case["options"]
    if "consumers" in case:
        return list(case["consumers"])
    return [int(options.get("world_size", 1)) * int(options.get("num_workers", 1))]


def left_out(case: dict[str, Any]) -> str | None:
    """Why a case cannot be fed; None when it can."""
    if case["kind"] not in KINDS:
        return "of no stream"
    lanes = int(case["options"].get("lanes", 0))
    if any(lanes % consumers for consumers in consumers_of(case)):
        return "consumers share lanes"
    return None


class Feeds:
    """The servers of a suite."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers: dict[tuple[Any, ...], Server] = {}

    def close(self) -> None:
        """Ends them."""
        for server in self._servers.values():
            server.kill()

    def address(self, urls: list[str], options: dict[str, str], rows: bool) -> str:
        """Of a server with these shards. Raises RefusedError."""
        told = {
            name: value.replace("$FOLDER", str(self._folder))
            for name, value in options.items()
            if name in READING or (name.startswith("max_") and name != "max_skips")
        }
        if rows:
            told["decode"] = options.get("decode", "auto")
        words = [f"--{name.replace('_', '-')}={value}" for name, value in told.items()]
        words += [
            url.replace("$FOLDER", str(self._folder))
            if "$FOLDER" in url
            else f"{self._folder}/{url}"
            for url in urls
        ]
        key = tuple(words)
        if key not in self._servers:
            self._servers[key] = Server(*words)
        return self._servers[key].url

    def fed(self, case: dict[str, Any], rows: bool) -> dict[str, Any]:
        """The case with servers in place of shards. Raises RefusedError."""
        fed = {**case, "name": f"{case['name']}_rows" if rows else case["name"]}
        if case["urls"]:
            fed["urls"] = [self.address(case["urls"], case["options"], rows)]
        if "parts" in case:
            fed["parts"] = [
                {**part, "urls": [self.address(part["urls"], part["options"], rows)]}
                for part in case["parts"]
            ]
        return fed

    def refused(self, case: dict[str, Any], rows: bool, said: str) -> None:
        """A server does not start: only where the case ends in that error, before any sample."""
        error = case["expect"].get("error", {}).get("message")
        if (
            case["expect"]["count"]
            or error is None
            or error not in said.replace(f"{self._folder}/", "")
        ):
            raise AssertionError(f"{case['name']}, rows: {rows}: no server: {said}")


def choose(
    feeds: Feeds, kinds: Collection[str] | None
) -> tuple[list[dict[str, Any]], collections.Counter[str]]:
    """The cases of these kinds, or of all, that are fed, and how many are not, by the reason."""
    cases = []
    others: collections.Counter[str] = collections.Counter()
    for case in read_suite()["cases"]:
        if kinds is not None and case["kind"] not in kinds:
            continue
        for rows in (False, True) if "batches" in case["kind"] else (False,):
            reason = left_out(case)
            if reason:
                others[reason] += 1
                continue
            try:
                cases.append(feeds.fed(case, rows))
            except RefusedError as error:
                feeds.refused(case, rows, str(error))
                others["the server says the same error when it starts"] += 1
    return cases, others


@contextlib.contextmanager
def started(folder: Path, kinds: Collection[str] | None = None) -> Iterator[Path]:
    """With servers for the cases of these kinds, or of all: the folder with the archives.

    Writes FOLDER/cases.json.
    """
    archives = folder / "archives"
    make_archives(archives)
    with contextlib.closing(Feeds(archives)) as feeds:
        cases, others = choose(feeds, kinds)
        write_suite(folder, cases)
        said = ", ".join(f"{count} {reason}" for reason, count in sorted(others.items()))
        print(f"{len(cases)} cases are fed; left out: {said}", flush=True)
        yield archives


def main() -> int:
    """Runs the command."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        with started(folder) as archives:
            return run(sys.argv[1:], str(archives), folder)


if __name__ == "__main__":
    sys.exit(main())
