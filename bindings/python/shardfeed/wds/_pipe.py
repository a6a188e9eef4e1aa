"""A stream from or to a command, which says when the command fails."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from subprocess import PIPE, Popen, TimeoutExpired
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

info: dict[str, Any] = {}
"""What programs add to messages about commands, such as their rank."""

# Popen's code of a process that SIGPIPE has ended, which is what happens to a command whose output
# nobody wants any more.
_SIGPIPE = -13
# A command whose stream is dropped gets so many seconds to end by itself.
_GRACE = 10.0


class Pipe:
    """A binary stream from (mode "rb") or to ("wb") a command.

    All that the command has written is delivered first. Then, at its end, in a call that reads all,
    and at close(), the command must have ended with status 0 or one of `ignore_status`, within
    `timeout` seconds; else OSError is raised, unless `ignore_errors`. Other arguments are those of
    subprocess.Popen.
    """

    def __init__(
        self,
        *args: Any,
        mode: str | None = None,
        timeout: float = 7200.0,
        ignore_errors: bool = False,
        ignore_status: list[int] = [],  # noqa: B006  # the signature that programs know
        **kw: Any,
    ) -> None:
        self.ignore_errors = ignore_errors
        self.ignore_status = [0, *ignore_status]
        self.timeout = timeout
        self.args = (args, kw)
        self.status: int | None = None
        self.handler: Any = None
        self._at_end = False
        self._checked = False
        reading = (mode or "")[:1] == "r"
        if not reading and (mode or "")[:1] != "w":
            raise ValueError(f'{mode}: unknown mode; help: mode="rb" reads and mode="wb" writes')
        self._reading = reading
        start: Any = Popen
        try:
            self.proc: Popen[bytes] = start(*args, **{"stdout" if reading else "stdin": PIPE}, **kw)
        except FileNotFoundError as error:
            error.strerror = (
                f"{error.strerror}; help: install the command, or use pipe: with another one"
            )
            raise
        stream = self.proc.stdout if reading else self.proc.stdin
        if stream is None:
            raise ValueError(f"{args}: couldn't open")
        self.stream: IO[bytes] = stream

    def __str__(self) -> str:
        return f"<Pipe {self.args}>"

    # ---- The command ----

    def check_status(self) -> None:
        """Raises OSError when the command has ended badly, and nothing of it is left to read."""
        if self.proc.poll() is not None and (self._at_end or not self._reading):
            self.wait_for_child()

    def wait_for_child(self) -> None:
        """Waits for the end of the command, and raises OSError when it is a bad one."""
        try:
            self.status = self.proc.wait(self.timeout)
        except TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
            self._checked = True
            raise
        if self._checked:
            return
        self._checked = True
        if int(os.environ.get("GOPEN_VERBOSE", "0")):
            print(
                f"pipe exit [{self.status} {os.getpid()}:{self.proc.pid}] {self.args} {info}",
                file=sys.stderr,
            )
        dropped = self._reading and not self._at_end and self.status == _SIGPIPE
        if not dropped and self.status not in self.ignore_status and not self.ignore_errors:
            raise OSError(
                f"{self.args}: exit {self.status} ({'read' if self._reading else 'write'}) {info}; "
                "help: run the command in a shell to see what it prints"
            )

    def _ended(self) -> None:
        self._at_end = True
        self.wait_for_child()

    # ---- The stream ----

    def read(self, *args: Any, **kw: Any) -> bytes:
        """The next bytes. At their end the command must have ended well."""
        data = self.stream.read(*args, **kw)
        wanted = args[0] if args else kw.get("size", -1)
        if not data and wanted != 0:
            self._ended()
        elif wanted is None or wanted < 0:
            self._ended()  # a part is no answer to who asked for all
        return data

    def readinto(self, buffer: Any) -> int:
        """Reads into a buffer, and returns how many bytes; 0 at the end."""
        count = int(self.stream.readinto(buffer))  # type: ignore[attr-defined]
        if not count and len(buffer):
            self._ended()
        return count

    def readline(self, *args: Any, **kw: Any) -> bytes:
        """The next line."""
        line = self.stream.readline(*args, **kw)
        if not line:
            self._ended()
        return line

    readLine = readline  # noqa: N815  # the name that programs know

    def write(self, *args: Any, **kw: Any) -> int:
        """Hands bytes to the command."""
        try:
            count = self.stream.write(*args, **kw)
        except BrokenPipeError:
            self._refused()
            raise
        self.check_status()
        return count

    def flush(self) -> None:
        """Hands over what is in the buffer."""
        try:
            self.stream.flush()
        except BrokenPipeError:
            self._refused()
            raise

    def _refused(self) -> None:
        """The command reads no more: its status says more than a broken pipe does."""
        with contextlib.suppress(BrokenPipeError):
            self.stream.close()
        self.wait_for_child()

    def fileno(self) -> int:
        """The descriptor of the pipe."""
        return self.stream.fileno()

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self.stream.closed

    def readable(self) -> bool:
        """Whether the stream is one for reading."""
        return self._reading

    def writable(self) -> bool:
        """Whether the stream is one for writing."""
        return not self._reading

    def seekable(self) -> bool:
        """False."""
        return False

    def close(self) -> None:
        """Ends the stream, and waits for the end of the command, which must be a good one."""
        if self.stream.closed:
            return
        try:
            self.stream.close()
        except BrokenPipeError:
            self.wait_for_child()
            raise
        self.wait_for_child()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        etype: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if value is None:
            self.close()
            return
        with contextlib.suppress(OSError, TimeoutExpired):  # the first exception is the one to see
            self.close()

    def __del__(self) -> None:
        if getattr(self, "stream", None) is None or self.stream.closed:
            return
        try:
            if self._reading:
                self.timeout = min(self.timeout, _GRACE)
            self.close()
        except TimeoutExpired:
            pass  # a reader that was dropped: nobody waits for what the command still does
        except Exception as error:
            with contextlib.suppress(Exception):  # at the end of the interpreter
                warnings.warn(
                    f"a stream of a command was not closed, and the command has failed: {error}",
                    RuntimeWarning,
                    stacklevel=2,
                )


def set_options(
    obj: Any,
    timeout: float | None = None,
    ignore_errors: bool | None = None,
    ignore_status: list[int] | None = None,
    handler: Any = None,
) -> bool:
    """Changes options of a Pipe; False, and nothing, for other streams."""
    if not isinstance(obj, Pipe):
        return False
    if timeout is not None:
        obj.timeout = timeout
    if ignore_errors is not None:
        obj.ignore_errors = ignore_errors
    if ignore_status is not None:
        obj.ignore_status = [0, *ignore_status]
    if handler is not None:
        obj.handler = handler
    return True
