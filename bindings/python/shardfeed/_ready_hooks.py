"""Hooks with a name: functions that make objects of fields that other packages read."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from ._errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

# What ends a stream of Arrow's IPC format: the mark of a message, and the length 0.
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


class UnreadableFieldError(Exception):
    """A ready-made hook cannot read a field: why, and help. The batch says which field it is."""


def unpickled(data: bytes) -> Any:
    """What was pickled. It can run any program that the shard brings."""
    import pickle

    return pickle.loads(data)


def weights(data: bytes | None) -> Any:
    """What torch.save() wrote: tensors, numbers, texts, lists and dicts of them, on the CPU.

    Nothing else is unpickled. Needs PyTorch 2.6: before, some files got around that
    (CVE-2025-32434).
    """
    if data is None:  # a sample without the field, under missing=empty
        return None
    torch = _imported("torch", "PyTorch", "torch")
    version = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if version is None or tuple(map(int, version.groups())) < (2, 6):
        raise UnsupportedError(
            f'the hook "weights" needs PyTorch 2.6, and this is {torch.__version__}, in which a '
            "file can run programs; help: pip install -U torch"
        )
    return _read(
        lambda: torch.load(io.BytesIO(data), map_location="cpu", weights_only=True),
        "no weights that can be loaded without running what is in them",
        "save tensors, or a state_dict(), with torch.save()",
    )


def parquet(data: bytes | None) -> Any:
    """The pyarrow.Table of a Parquet file."""
    if data is None:
        return None
    pyarrow = _imported("pyarrow", "pyarrow", "pyarrow")
    _imported("pyarrow.parquet", "pyarrow with Parquet", "pyarrow")

    def read() -> Any:
        with pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data)) as file:
            return file.read(use_threads=False)

    return _checked(read, "no Parquet", "write the field again")


def arrow(data: bytes | None) -> Any:
    """The pyarrow.Table of a file or stream in Arrow's IPC format; Feather is such a file."""
    if data is None:
        return None
    pyarrow = _imported("pyarrow", "pyarrow", "pyarrow")

    def read() -> Any:
        if data.startswith(b"ARROW1"):
            return pyarrow.ipc.open_file(pyarrow.BufferReader(data)).read_all()
        _check_end_of_stream(pyarrow, data)
        return pyarrow.ipc.open_stream(pyarrow.BufferReader(data)).read_all()

    return _checked(read, "no Arrow", "write the field again, and close its writer")


def _check_end_of_stream(pyarrow: Any, data: bytes) -> None:
    # Without the end mark a stream that was cut behind a message is a shorter one.
    source = pyarrow.BufferReader(data)
    messages = pyarrow.ipc.MessageReader.open_stream(source)
    end = 0
    while True:
        try:
            messages.read_next_message()
        except StopIteration:
            break
        end = source.tell()
    if data[end:] != _END_OF_STREAM:
        raise ValueError(f"the stream has no end mark at byte {end}")


def _checked(read: Callable[[], Any], cause: str, help_text: str) -> Any:
    def checked() -> Any:
        table = read()
        table.validate(full=True)  # lengths and places within columns are numbers of the file
        return table

    return _read(checked, cause, help_text)


def _read(read: Callable[[], Any], cause: str, help_text: str) -> Any:
    try:
        return read()
    except MemoryError:
        raise
    except Exception as error:  # these packages have many kinds of it
        said = (str(error) or type(error).__name__).partition("\n")[0].strip()
        raise UnreadableFieldError(f"{cause}: {said}; help: {help_text}") from error


def _imported(module: str, name: str, package: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name != module:
            raise
        raise ModuleNotFoundError(
            f"this hook needs {name}; help: pip install {package}", name=module
        ) from None


READY: dict[str, Callable[[bytes], Any]] = {
    "weights": weights,
    "parquet": parquet,
    "arrow": arrow,
    "pickle": unpickled,
}
