"""Runs the cases over HTTP: python over_http.py COMMAND ...

The archives are on a real nginx on loopback. In COMMAND {folder} stands for its URL, in place of
the FOLDER of the suite, and {suite} for a folder whose cases.json has the cases that do not depend
on files of this machine. Their results are those of the local suite.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from served_suite import make_archives, read_suite, run, write_suite

from http_servers import Nginx  # isort: skip


def is_local(case: dict[str, Any], root: Path) -> bool:
    """Whether a case is about files of this machine, programs or messages of the system."""
    urls = [*case["urls"], *(url for part in case.get("parts", []) for url in part["urls"])]
    texts = [*urls, *case["options"].values()]
    if any("$FOLDER" in text or text.startswith("pipe:") for text in texts):
        return True
    # Where index files lie, and which files match: web servers have no lists.
    if case["options"].get("index") == "require":
        return True
    if any(set("*?[") & set(url) for url in urls) and case["options"].get("expand") != "false":
        return True
    # What the system says of files that are not there, and of folders.
    return any(
        not (root / url).is_file()
        for group in urls
        for url in group.split("::")
        if not set("{}$*?[") & set(url)
    )


def start(folder: Path) -> tuple[Nginx, str]:
    """A server with the archives, which the caller stops; its URL. Writes FOLDER/cases.json."""
    server = Nginx(folder)
    make_archives(server.root)
    write_suite(folder, [case for case in read_suite()["cases"] if not is_local(case, server.root)])
    return server, server.url("").rstrip("/")


def main() -> int:
    """Runs the command."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        server, url = start(folder)
        try:
            return run(sys.argv[1:], url, folder)
        finally:
            server.stop()


if __name__ == "__main__":
    sys.exit(main())
