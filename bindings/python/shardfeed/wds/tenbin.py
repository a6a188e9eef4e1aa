"""Arrays as bytes in the format TenBin (`.ten`): chunks, for each array a header and its data.

A chunk is the magic `~TenBin~`, the length of its payload as int64, the payload, and zeros up to a
multiple of 64 bytes. The payload of a header is a row of int64: the name of the dtype and that of
the array as eight characters each, the number of dimensions, and each of them. Numbers are in the
byte order of the machine.
"""

from __future__ import annotations

import struct
import sys
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_UNITS = {"float": "f", "int": "i", "uint": "u"}
long_to_short: dict[str, str] = {
    f"{unit}{8 * size}": f"{short}{size}"
    for unit, short in _UNITS.items()
    for size in (1, 2, 4, 8)
    if (unit, size) != ("float", 1)
}
short_to_long: dict[str, str] = {short: name for name, short in long_to_short.items()}

_HELP_DAMAGED = "help: the file is damaged or was cut off; make it again"


def bytelen(a: Any) -> int:
    """How many bytes `a` has: an array, a view or bytes."""
    if hasattr(a, "nbytes"):
        return int(a.nbytes)
    if isinstance(a, (bytearray, bytes)):
        return len(a)
    raise ValueError(a, "cannot determine nbytes; help: give an array or bytes")


def bytedata(a: Any) -> Any:
    """The buffer of `a`: an array, a view or bytes."""
    if isinstance(a, (bytearray, bytes, memoryview)):
        return a
    if hasattr(a, "data"):
        return a.data
    raise ValueError(a, "cannot return bytedata; help: give an array or bytes")


def check_acceptable_input_type(data: Iterable[Any], allow64: bool) -> None:
    """Raises ValueError when an array has a dtype without a name here, or one of 64 bits that
    `allow64` does not allow.
    """
    for array in data:
        name = array.dtype.name
        if name not in long_to_short:
            raise ValueError(f"unsupported datatype {name}; help: one of {' '.join(long_to_short)}")
        if not allow64 and name in ("float64", "int64", "uint64"):
            raise ValueError(
                f"64 bit datatypes not allowed unless explicitly enabled: {name}; help: convert "
                "the array, or allow64=True"
            )


def str64(s: str) -> int:
    """A text of at most eight ASCII characters as the number with the same bytes."""
    data = s.encode("ascii")
    if len(data) > 8:
        raise ValueError(f"{s!r} has more than 8 characters; help: give a shorter name")
    return int(struct.unpack("@q", data.ljust(8, b"\0"))[0])


def unstr64(i: int) -> str:
    """The reverse of str64."""
    return struct.pack("@q", i).decode("ascii").strip("\0")


def check_infos(data: Any, infos: Any, required_infos: Any = None) -> Any:
    """`data`; with `required_infos` True `(data, infos)`; a list must be what infos is."""
    if required_infos is False or required_infos is None:
        return data
    if required_infos is True:
        return data, infos
    if not isinstance(required_infos, (tuple, list)):
        raise ValueError("required_infos must be tuple or list; help: infos=True returns them")
    if len(required_infos) != len(infos):
        raise ValueError(
            f"{len(infos)} arrays, but {len(required_infos)} infos are required: {required_infos}"
        )
    for required, actual in zip(required_infos, infos):
        if required != actual:
            raise ValueError(f"actual info {actual} doesn't match required info {required}")
    return data


def encode_header(a: Any, info: str = "") -> Any:
    """The payload of the header of an array, as a buffer."""
    import numpy as np

    if a.ndim >= 10:
        raise ValueError(f"too many dimensions: {a.ndim}; help: at most 9")
    if a.dtype.name not in long_to_short:
        raise ValueError(
            f"unsupported array type {a.dtype}; help: one of {' '.join(long_to_short)}"
        )
    header = [str64(long_to_short[a.dtype.name]), str64(info), a.ndim, *a.shape]
    return bytedata(np.array(header, dtype="i8"))


def decode_header(h: Any) -> tuple[tuple[int, ...], Any, str]:
    """Shape, dtype and name from the payload of a header."""
    import numpy as np

    if bytelen(h) < 24 or bytelen(h) % 8:
        raise ValueError(f"a header of {bytelen(h)} bytes; {_HELP_DAMAGED}")
    numbers = [int(number) for number in np.frombuffer(h, dtype="i8")]
    kind = unstr64(numbers[0])
    if kind not in short_to_long:
        raise ValueError(
            f"unsupported array type {kind!r}; help: known are {' '.join(short_to_long)}"
        )
    rank = numbers[2]
    shape = tuple(numbers[3 : 3 + rank])
    if not 0 <= rank < 10 or len(shape) != rank or min(shape, default=0) < 0:
        raise ValueError(f"a header with {rank} dimensions {shape}; {_HELP_DAMAGED}")
    return shape, np.dtype(short_to_long[kind]), unstr64(numbers[1])


def encode_list(l: Sequence[Any], infos: Sequence[str] | None = None) -> list[Any]:  # noqa: E741
    """The payloads of all headers and data, in turn."""
    import numpy as np

    if infos is None:
        infos = [""]
    elif len(l) != len(infos):
        raise ValueError(f"length of list {len(l)} must match length of infos {infos}")
    result = []
    for number, array in enumerate(l):
        header = encode_header(array, infos[number % len(infos)])
        native = array.dtype.newbyteorder("=")
        result += [header, np.asarray(array, dtype=native, order="C").data]
    return result


def decode_list(l: Sequence[Any], infos: Any = False) -> Any:  # noqa: E741
    """Arrays from the payloads of headers and data, in turn. They are views of what was given."""
    import numpy as np

    if len(l) % 2:
        raise ValueError(f"the last array has no data; {_HELP_DAMAGED}")
    result, names = [], []
    for number, (header, data) in enumerate(zip(l[::2], l[1::2])):
        shape, dtype, name = decode_header(header)
        count = 1
        for size in shape:
            count *= size
        if count * dtype.itemsize > bytelen(data):
            raise ValueError(
                f"array {number}: {shape} of {dtype} needs {count * dtype.itemsize} bytes, and "
                f"there are {bytelen(data)}; {_HELP_DAMAGED}"
            )
        flat = np.frombuffer(data, dtype=dtype, count=count) if count else np.empty(0, dtype)
        result.append(flat.reshape(shape))
        names.append(name)
    return check_infos(result, names, infos)


magic_str: str = "~TenBin~"
magic: int = str64(magic_str)
magic_bytes: bytes = magic_str.encode("ascii")


def roundup(n: int, k: int = 64) -> int:
    """The next multiple of `k`."""
    return k * ((n + k - 1) // k)


def encode_chunks(l: Sequence[Any]) -> bytearray:  # noqa: E741
    """Payloads as chunks."""
    result = bytearray()
    for payload in l:
        size = bytelen(payload)
        result += magic_bytes + struct.pack("@q", size)
        result += memoryview(payload).cast("B") if size else b""
        result += bytes(roundup(size) - size)
    return result


def decode_chunks(buf: Any) -> list[Any]:
    """The payloads of chunks, as slices of `buf`."""
    result = []
    offset, total = 0, bytelen(buf)
    while offset < total:
        if buf[offset : offset + 8] != magic_bytes:
            raise ValueError(
                f"magic bytes mismatch at byte {offset}; help: this is no TenBin, or is damaged"
            )
        head = buf[offset + 8 : offset + 16]
        size = struct.unpack("@q", head)[0] if len(head) == 8 else -1
        offset += 16
        if not 0 <= size <= total - offset:
            raise ValueError(
                f"a chunk at byte {offset - 16} says {size} bytes, and {max(total - offset, 0)} "
                f"are left; {_HELP_DAMAGED}"
            )
        result.append(buf[offset : offset + size])
        offset += roundup(size)
    return result


def encode_buffer(l: list[Any], infos: Sequence[str] | None = None) -> bytearray:  # noqa: E741
    """A list of arrays as bytes."""
    if not isinstance(l, list):
        raise ValueError(f"requires list, not {type(l).__name__}; help: encode_buffer([array])")
    return encode_chunks(encode_list(l, infos=infos))


def decode_buffer(buf: Any, infos: Any = False) -> Any:
    """The list of arrays in bytes: read-only views of them. With infos=True their names too."""
    return decode_list(decode_chunks(memoryview(buf) if type(buf) is bytes else buf), infos=infos)


def write_chunk(stream: BinaryIO, buf: Any) -> None:
    """Writes a payload as a chunk."""
    stream.write(encode_chunks([buf]))


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    while len(data) < size:  # a stream without a buffer gives what it has
        more = stream.read(size - len(data))
        if not more:
            raise ValueError(
                f"premature EOF: {size} bytes expected, got {len(data)}; help: the "
                "file was cut off; make it again"
            )
        data += more
    return data


def read_chunk(stream: BinaryIO) -> bytes | None:
    """The payload of the next chunk; None at the end."""
    first = stream.read(1)
    if first == b"":
        return None
    if first + _read_exactly(stream, 7) != magic_bytes:
        raise ValueError("magic number does not match; help: this is no TenBin, or is damaged")
    size = struct.unpack("@q", _read_exactly(stream, 8))[0]
    if size < 0:
        raise ValueError(f"negative nbytes: {size}; {_HELP_DAMAGED}")
    data = _read_exactly(stream, size)
    _read_exactly(stream, roundup(size) - size)
    return data


def write(stream: BinaryIO, l: Sequence[Any], infos: Sequence[str] | None = None) -> None:  # noqa: E741
    """Writes arrays to a stream."""
    for payload in encode_list(l, infos=infos):
        write_chunk(stream, payload)


def read(stream: BinaryIO, n: int = sys.maxsize, infos: Any = False) -> Any:
    """The next `n` arrays of a stream; all without it."""
    payloads: list[Any] = []
    while len(payloads) < 2 * n:
        header = read_chunk(stream)
        if header is None:
            break
        data = read_chunk(stream)
        if data is None:
            raise ValueError(f"premature EOF: the last array has no data; {_HELP_DAMAGED}")
        payloads += [header, data]
    return decode_list(payloads, infos=infos)


def _check_name(fname: str, nocheck: bool) -> None:
    if not nocheck and not fname.endswith(".ten"):
        raise ValueError(f"file name should end in .ten: {fname}; help: rename it, or nocheck=True")


def save(fname: str, *args: Any, infos: Sequence[str] | None = None, nocheck: bool = False) -> None:
    """Writes arrays to a file."""
    _check_name(fname, nocheck)
    with open(fname, "wb") as stream:
        write(stream, args, infos=infos)


def load(fname: str, infos: Any = False, nocheck: bool = False) -> Any:
    """The arrays of a file."""
    _check_name(fname, nocheck)
    with open(fname, "rb") as stream:
        return read(stream, infos=infos)
