"""Values to bytes by the suffix of the field, for writers. The reverse of what is decoded."""

from __future__ import annotations

import gzip
import io
import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._errors import UsageError

if TYPE_CHECKING:
    from typing_extensions import TypeAlias

Encoder: TypeAlias = "Callable[[Any], bytes | bytearray | memoryview]"
Encoders: TypeAlias = (
    "bool | Mapping[str, Encoder] | Callable[[Mapping[str, Any]], Mapping[str, Any]]"
)


def _number(value: Any) -> bytes:
    """A whole number, also that of NumPy or torch."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        item = getattr(value, "item", None)
        value = item() if item else value
    return str(value.__index__()).encode("ascii")


def _text(value: Any) -> bytes:
    raise TypeError("str or bytes expected")


def _json(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8")


def _msgpack(value: Any) -> bytes:
    import msgpack  # an extra: not everybody writes these

    return bytes(msgpack.packb(value))


def _cbor(value: Any) -> bytes:
    return bytes(import_module("cbor2").dumps(value))


def _npy(value: Any) -> bytes:
    import numpy as np

    stream = io.BytesIO()
    np.save(stream, np.asarray(value), allow_pickle=False)
    return stream.getvalue()


def _npz(value: Any) -> bytes:
    import numpy as np

    if not isinstance(value, Mapping):
        raise TypeError("a mapping from name to array expected")
    arrays: dict[str, Any] = {name: np.asarray(array) for name, array in value.items()}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"the array {name!r} has Python objects")
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def _pickle(value: Any) -> bytes:
    return pickle.dumps(value)


def _torch(value: Any) -> bytes:
    import torch

    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


# A file of arrays of tensorcom, "TenBin": for each array a chunk with its header and one with its
# data; a chunk is the magic, its length, the bytes, and zeros up to a multiple of 64.
_TENBIN_TYPES = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


def _tenbin(value: Any) -> bytes:
    import numpy as np

    arrays = value if isinstance(value, (list, tuple)) else [value]
    out = bytearray()
    for array in map(np.asarray, arrays):
        kind = array.dtype.str[1:]
        if kind not in _TENBIN_TYPES or array.ndim >= 10:
            raise TypeError(f"TenBin has no arrays of {array.dtype} with {array.ndim} dimensions")
        numbers = np.array([array.ndim, *array.shape], dtype="<i8")
        header = kind.encode("ascii").ljust(8, b"\0") + b"\0" * 8 + numbers.tobytes()
        data = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
        for chunk in (header, data):
            out += (
                b"~TenBin~" + len(chunk).to_bytes(8, "little") + chunk + b"\0" * (-len(chunk) % 64)
            )
    return bytes(out)


def _image(kind: str, **options: Any) -> Encoder:
    def encode(value: Any) -> bytes:
        from PIL import Image

        image = value if isinstance(value, Image.Image) else Image.fromarray(_pixels(value))
        if kind == "JPEG" and image.mode not in ("L", "RGB", "CMYK"):
            image = image.convert("RGB")
        stream = io.BytesIO()
        image.save(stream, format=kind, **options)
        return stream.getvalue()

    return encode


def _pixels(value: Any) -> Any:
    """Pixels of 8 bits: numbers with a fraction are parts of 1, and are rounded."""
    import numpy as np

    array = np.asarray(value)
    if array.dtype.kind == "f":
        if array.size and not (array.min() >= -0.001 and array.max() <= 1.001):
            raise ValueError("an image of floats has values from 0 to 1")
        array = np.rint(np.clip(array, 0, 1) * 255).astype(np.uint8)
    if array.dtype != np.uint8:
        raise TypeError(f"an image has uint8 or floats, not {array.dtype}")
    return array[:, :, 0] if array.ndim == 3 and array.shape[2] == 1 else array


def _table(names: str, encoder: Encoder) -> dict[str, Encoder]:
    return dict.fromkeys(names.split(), encoder)


ENCODERS: dict[str, Encoder] = {
    **_table("cls cls2 class count index inx id", _number),
    **_table("txt text transcript html htm", _text),
    **_table("json jsn", _json),
    **_table("mp msgpack msg", _msgpack),
    **_table("cbor", _cbor),
    **_table("npy", _npy),
    **_table("npz", _npz),
    **_table("pyd pickle pkl", _pickle),
    **_table("pth", _torch),
    **_table("ten tenbin tb", _tenbin),
    **_table("jpg jpeg img image", _image("JPEG", quality=100)),
    **_table("png", _image("PNG")),
    **_table("ppm pgm pbm", _image("PPM")),
    **_table("tif tiff", _image("TIFF")),
    **_table("webp", _image("WEBP", lossless=True)),
}


def _missing(field: str, suffix: str, value: object, table: Mapping[str, Encoder]) -> UsageError:
    known = " ".join(sorted(table))
    return UsageError(
        f"field {field!r}: nothing encodes {type(value).__name__} for the suffix {suffix!r}; "
        f"help: give bytes, or encoder={{{suffix!r}: function}}; suffixes that are known: {known}"
    )


def encoded(field: str, value: Any, table: Mapping[str, Encoder] | None) -> Any:
    """What is written of a value: bytes-like. `table` None: only what is bytes already."""
    packed = table is not None and field.lower().endswith(".gz")
    if isinstance(value, (bytes, bytearray, memoryview)):
        # What is compressed already stays: samples that were read are written as they were.
        is_plain = packed and bytes(value[:2]) != b"\x1f\x8b"
        return gzip.compress(value, mtime=0) if is_plain else value
    if isinstance(value, str):
        data: Any = value.encode("utf-8")
        return gzip.compress(data, mtime=0) if packed else data
    if table is None:
        raise UsageError(
            f"field {field!r}: {type(value).__name__} is not bytes; help: encode it, or leave "
            "encoder as it is"
        )
    parts = field.lower().split(".")
    suffix = parts[-2] if packed else parts[-1]
    encode = table.get(suffix)
    if encode is None:
        raise _missing(field, suffix, value, table)
    try:
        data = encode(value)
    except ImportError as error:
        raise UsageError(
            f"field {field!r}: the package {error.name} encodes it; help: pip install {error.name}"
        ) from error
    except Exception as error:
        raise UsageError(f"field {field!r}: {error}; help: give bytes, or another value") from error
    return gzip.compress(data, mtime=0) if packed else data


def encoded_sample(
    sample: Mapping[str, Any], encoders: Encoders
) -> tuple[str, list[tuple[str, Any]]]:
    """The key and the encoded fields of a mapping, in order; other names with _ are left out."""
    if callable(encoders) and not isinstance(encoders, Mapping):
        sample, table = encoders(sample), None
    elif isinstance(encoders, Mapping):
        table = {**ENCODERS, **encoders}
    else:
        table = ENCODERS if encoders else None
    key = sample.get("__key__")
    if not isinstance(key, str):
        raise UsageError('a sample has no "__key__"; help: {"__key__": "0001", "jpg": ...}')
    fields = [
        (name, encoded(name, value, table))
        for name, value in sample.items()
        if not name.startswith("_")
    ]
    return key, fields


__all__: Sequence[str] = ["ENCODERS", "Encoder", "Encoders", "encoded_sample"]
