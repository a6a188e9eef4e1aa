"""Runs a program with shards on a web server: python over_nginx.py PROGRAM ...

The program writes into the folder SHARDFEED_SERVED_FOLDER, which a real nginx on loopback has at
the URL SHARDFEED_SERVED_URL.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from http_servers import Nginx


def main() -> int:
    """Runs the program and gives its exit status."""
    with tempfile.TemporaryDirectory() as temporary:
        server = Nginx(Path(temporary))
        try:
            places = {
                "SHARDFEED_SERVED_FOLDER": str(server.root),
                "SHARDFEED_SERVED_URL": server.url("").rstrip("/"),
            }
            command = [*sys.argv[1:]]
            return subprocess.run(command, env={**os.environ, **places}, check=False).returncode
        finally:
            server.stop()


if __name__ == "__main__":
    sys.exit(main())
