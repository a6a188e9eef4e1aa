"""Runs programs one after another, each in a fork of a process that has imported PyTorch, and what
DistributedDataParallel imports at its first use: for each program that would take longer than the
program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "wds"
SERVER = """
import contextlib, json, os, runpy, sys, traceback
with contextlib.suppress(ImportError):
    import {imports}
for line in sys.stdin:
    program, arguments, folder, output = json.loads(line)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for stream, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(f"{output}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
            os.chdir(folder)
            sys.argv = [program, *arguments]
            runpy.run_path(program, run_name="__main__")
            status = 0
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    print(os.waitpid(child, 0)[1], flush=True)
"""


class Programs:
    """Programs of examples/wds, and others by their whole path."""

    def __init__(self, output: Path, imports: str = "torch, torch._dynamo") -> None:
        self.output = output
        self.server = subprocess.Popen(
            [sys.executable, "-c", SERVER.replace("{imports}", imports)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def run(self, program: str, *arguments: object, folder: Path | str = ".") -> str:
        """What a program prints."""
        path, texts = str(FOLDER / program), [str(argument) for argument in arguments]
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        wanted = json.dumps([path, texts, str(Path(folder).absolute()), str(self.output)])
        self.server.stdin.write(wanted + "\n")
        self.server.stdin.flush()
        status = self.server.stdout.readline().strip()
        assert status == "0", Path(f"{self.output}.err").read_text()[-2000:]
        return Path(f"{self.output}.out").read_text()

    def run_both(self, program: str, *arguments: object) -> tuple[str, str]:
        """What a program prints with both packages."""
        theirs, ours = (
            self.run(program, *arguments, "--package", package)
            for package in ("webdataset", "shardfeed.wds")
        )
        return theirs, ours
