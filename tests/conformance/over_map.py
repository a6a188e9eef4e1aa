"""Runs the cases with the option map: python over_map.py COMMAND ...

In COMMAND {folder} and {suite} stand for what served_suite.py says. The results are those of the
suite, to which nothing else is done.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import served_suite

# Kinds of cases whose options are those of a stream, an archive or a dataset.
MAPPED = ("stream", "resume", "batches", "resume_batches", "archive", "dataset", "members")


def main() -> int:
    """Runs the command."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        served_suite.make_archives(folder / "archives")
        cases = [case for case in served_suite.read_suite()["cases"] if case["kind"] in MAPPED]
        for case in cases:
            case["options"]["map"] = "true"
        served_suite.write_suite(folder, cases)
        return served_suite.run(sys.argv[1:], str(folder / "archives"), folder)


if __name__ == "__main__":
    sys.exit(main())
