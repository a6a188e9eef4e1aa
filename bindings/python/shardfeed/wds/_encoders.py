"""Values to bytes by the suffix of the field, as programs for WebDataset expect them."""

from __future__ import annotations

import gzip
import io
import json
import pickle
from importlib import import_module
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing_extensions import TypeAlias

Handlers: TypeAlias = "dict[str, Callable[[Any], Any]]"
EncoderSpec: TypeAlias = "bool | Handlers | Callable[[Any], Any] | None"


def imageencoder(image: Any, format: str = "PNG") -> bytes:
    """An image of Pillow or NumPy as a file. Floats are from 0 to 1, and are cut off to 8 bits."""
    import numpy as np
    import PIL.Image

    if not isinstance(image, (PIL.Image.Image, np.ndarray)):
        raise TypeError(f"{type(image)} is no image; help: give an array, a PIL image, or bytes")
    name = format.upper()
    if isinstance(image, np.ndarray):
        image = PIL.Image.fromarray(_pixels(image))
    if name in ("PBM", "PGM"):  # one writer makes all three, by the kind of the image
        image = image.convert("1" if name == "PBM" else "L")
    kind = {"JPG": "JPEG", "IMG": "PPM", "IMAGE": "PPM", "PBM": "PPM", "PGM": "PPM"}.get(name, name)
    # These three spellings, as programs know them: "jpeg" has Pillow's own quality.
    options = {"quality": 100} if name == "JPG" or format in ("JPEG", "tiff") else {}
    with io.BytesIO() as result:
        image.save(result, format=kind, **options)
        return result.getvalue()


def _pixels(array: Any) -> Any:
    import numpy as np

    if array.dtype in (np.dtype("f"), np.dtype("d")):
        low, high = np.amin(array), np.amax(array)
        if not (low > -0.001 and high < 1.001):  # also for what is no number
            raise ValueError(f"image values out of range {low} {high}; help: from 0 to 1")
        array = np.array(np.clip(array, 0.0, 1.0) * 255.0, "uint8")
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)):
        raise ValueError(f"an image of the shape {array.shape}; help: (H, W) or (H, W, 1, 3 or 4)")
    return array[:, :, 0] if array.ndim == 3 and array.shape[2] == 1 else array


def bytestr(data: Any) -> bytes:
    """Bytes as they are, and the text of anything else in ASCII."""
    return data if isinstance(data, bytes) else str(data).encode("ascii")


def torch_dumps(data: Any) -> bytes:
    """What torch.save writes."""
    import torch

    stream = io.BytesIO()
    torch.save(data, stream)
    return stream.getvalue()


def numpy_dumps(data: Any) -> bytes:
    """An array as `.npy`."""
    import numpy.lib.format

    stream = io.BytesIO()
    numpy.lib.format.write_array(stream, data)
    return stream.getvalue()


def numpy_npz_dumps(data: Mapping[str, Any]) -> bytes:
    """A dict from name to array as compressed `.npz`."""
    import numpy as np

    assert isinstance(data, dict), f"{type(data)}: a dict from name to array is needed"
    for name, array in data.items():
        assert isinstance(name, str), f"{name!r}: names are strings"
        assert isinstance(array, np.ndarray), f"{name}: {type(array)} is no array"
    stream = io.BytesIO()
    np.savez_compressed(stream, **data)
    return stream.getvalue()


def tenbin_dumps(x: Any) -> memoryview:
    """An array, or a list of them, as TenBin."""
    from . import tenbin

    return memoryview(tenbin.encode_buffer(x if isinstance(x, list) else [x]))


def cbor_dumps(x: Any) -> bytes:
    """CBOR, by the package cbor or cbor2."""
    try:
        module = import_module("cbor")
    except ImportError:
        module = import_module("cbor2")
    return bytes(module.dumps(x))


def mp_dumps(x: Any) -> bytes:
    """MessagePack."""
    import msgpack

    return bytes(msgpack.packb(x))


def add_handlers(d: Handlers, keys: str | Iterable[str], value: Callable[[Any], Any]) -> None:
    """Sets the function for several suffixes."""
    for key in keys.split() if isinstance(keys, str) else keys:
        d[key] = value


def _number(x: Any) -> bytes:
    # A tensor would say "tensor(3)".
    item = getattr(x, "item", None)
    return str(item() if item is not None and getattr(x, "ndim", None) == 0 else x).encode("ascii")


def _text(x: Any) -> bytes:
    return bytes(x.encode("utf-8"))


def _json(x: Any) -> bytes:
    return json.dumps(x).encode("utf-8")


def _image(format: str) -> Callable[[Any], bytes]:
    def encode(data: Any) -> bytes:
        return imageencoder(data, format)

    return encode


def make_handlers() -> Handlers:
    """The functions for all suffixes that are known."""
    handlers: Handlers = {}
    add_handlers(handlers, "cls cls2 class count index inx id", _number)
    add_handlers(handlers, "txt text transcript html htm", _text)
    add_handlers(handlers, "pyd pickle", pickle.dumps)
    add_handlers(handlers, "pth", torch_dumps)
    add_handlers(handlers, "npy", numpy_dumps)
    add_handlers(handlers, "npz", numpy_npz_dumps)
    add_handlers(handlers, "ten tenbin tb", tenbin_dumps)
    add_handlers(handlers, "json jsn", _json)
    add_handlers(handlers, "mp msgpack msg", mp_dumps)
    add_handlers(handlers, "cbor", cbor_dumps)
    add_handlers(handlers, "jpg jpeg img image", _image("jpg"))
    for suffix in ("png", "pbm", "pgm", "ppm"):
        add_handlers(handlers, suffix, _image(suffix))
    add_handlers(handlers, "tiff tif", _image("tiff"))
    return handlers


default_handlers: Handlers = make_handlers()


def encode_based_on_extension1(data: Any, tname: str, handlers: Handlers) -> Any:
    """The bytes of the value of a field, by the last part of its name."""
    if tname[:1] == "_":
        if not isinstance(data, str):
            raise ValueError(
                f"the values of metadata must be of string type: {tname} is {type(data)}; help: "
                f"str(value), or a name without '_' in front"
            )
        return data
    if not tname:
        raise ValueError('a field has the name ""; help: give it a suffix, such as "jpg"')
    packed = tname.endswith(".gz")
    if not isinstance(data, bytes):
        if isinstance(data, str):
            data = data.encode("utf-8")
        else:
            name = tname[:-3] if packed else tname
            extension = name.rpartition(".")[2].lower()
            handler = handlers.get(extension)
            if handler is None:
                raise ValueError(
                    f"no handler found for {extension}: field {tname!r} is {type(data)}; help: "
                    f"give bytes, or encoder={{{extension!r}: function}}"
                )
            data = handler(data)
    return gzip.compress(data, mtime=0) if packed else data


def encode_based_on_extension(sample: Mapping[str, Any], handlers: Handlers) -> dict[str, Any]:
    """A sample with encoded values."""
    return {
        name: value
        if type(value) is bytes and name and not name.endswith(".gz") and name[0] != "_"
        else encode_based_on_extension1(value, name, handlers)
        for name, value in list(sample.items())
    }


def _unchanged(sample: Any) -> Any:
    return sample


def make_encoder(spec: EncoderSpec) -> Callable[[Any], Any]:
    """What encodes a sample: by the default functions (True), by a table of functions for suffixes,
    by a function of the whole sample, or not at all (False or None).
    """
    if spec is False or spec is None:
        return _unchanged
    if callable(spec):
        return spec
    if spec is not True and not isinstance(spec, dict):
        raise ValueError(
            f"{spec}: unknown decoder spec; help: True, False, a dict from suffix to function, or "
            "a function of the sample"
        )
    handlers = default_handlers if spec is True else spec

    def encoder(sample: Any) -> dict[str, Any]:
        return encode_based_on_extension(sample, handlers)

    return encoder
