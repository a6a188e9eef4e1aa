"""Transformations of samples: the fields of common suffixes, and images."""

from __future__ import annotations

import gzip
import io
import json
import warnings
from typing import Any, Callable, Union

from ..wds import utils

Sample = dict[str, Any]
Format = Union[bool, str, None]

_IMAGES = ("jpg", "png", "ppm", "pgm", "pbm", "pnm")


def check_keys(sample: Sample) -> None:
    """Raises AssertionError when a field has no dot in front."""
    for name in sample:
        assert name.startswith(("__", ".")), (
            f"Key {name} must start with a dot; help: sample['.{name}'] = ..."
        )


def _suffixes(name: str) -> list[str]:
    """The parts of the name of a field, in lower case; none of what is about the sample."""
    return [] if name.startswith("__") else name.lower().split(".")[1:]


def _file(value: Any) -> Any:
    return io.BytesIO(value) if isinstance(value, bytes) else value


def decode_all_gz(sample: Sample, format: Format = True, update_key: bool = True) -> Sample:
    """Decompresses fields that end in .gz, which lose that end with `update_key`."""
    check_keys(sample)
    for name, value in list(sample.items()):
        suffixes = _suffixes(name)
        if suffixes == ["gz"]:
            warnings.warn("Plain .gz extension in sample; not decompressed.", stacklevel=2)
        elif suffixes[-1:] == ["gz"]:
            data = io.BytesIO(gzip.decompress(_file(value).read()))
            if update_key:
                del sample[name]
                name = name[:-3]
            sample[name] = data
    return sample


def _refuse_pickles(what: str) -> None:
    if utils.enforce_security:
        raise ValueError(
            f"{what} is not allowed for security reasons when enforce_security is set; help: unset "
            "WDS_SECURE if the shard is to be trusted"
        )


def _number(stream: Any) -> int:
    return int(stream.read().decode("utf-8"))


def _text(stream: Any) -> str:
    return str(stream.read().decode("utf-8"))


def _json(stream: Any) -> Any:
    return json.loads(stream.read())


def _npy(stream: Any) -> Any:
    import numpy as np

    return np.load(stream)


def _msgpack(stream: Any) -> Any:
    import msgpack

    return msgpack.unpackb(stream.read(), raw=False)


def _torch(stream: Any) -> Any:
    _refuse_pickles("torch.load")
    import torch

    return torch.load(stream)


def _pickle(stream: Any) -> Any:
    _refuse_pickles("Unpickling")
    import pickle

    return pickle.load(stream)


def _safetensors(stream: Any) -> Any:
    from importlib import import_module

    return import_module("safetensors.torch").load(stream.read())


_BASIC: dict[str, Callable[[Any], Any]] = {
    "txt": _text,
    "text": _text,
    "cls": _number,
    "cls2": _number,
    "json": _json,
    "npy": _npy,
    "mp": _msgpack,
    "pt": _torch,
    "pth": _torch,
    "pkl": _pickle,
    "pickle": _pickle,
    "safetensors": _safetensors,
}


def decode_basic(sample: Sample, format: Format = True) -> Sample:
    """Decodes numbers, text, JSON, arrays, MessagePack, pickles, tensors. What ends in .gz is taken
    for decompressed.
    """
    check_keys(sample)
    for name, value in sample.items():
        suffixes = _suffixes(name)
        if len(suffixes) > 1 and suffixes[-1] == "gz":
            suffixes.pop()
        decode = _BASIC.get(suffixes[-1]) if suffixes else None
        if decode is not None:
            try:
                sample[name] = decode(_file(value))
            except Exception as error:
                raise _decoding(error, sample, name) from error
    return sample


def _decoding(error: Exception, sample: Sample, name: str) -> Exception:
    """An exception of the same class, where it has one, that also says which sample it is about."""
    where = f"field {name!r} of the sample {sample.get('__key__')!r}"
    if "__shard__" in sample:
        where += f" in {sample['__shard__']}"
    try:
        made = type(error)(f"{where}: {error}")
    except Exception:
        return ValueError(f"{where}: {type(error).__name__}: {error}")
    return made


def _decode_images(sample: Sample, convert: Callable[[Any], Any]) -> Sample:
    import PIL.Image

    check_keys(sample)
    for name, value in sample.items():
        if _suffixes(name)[-1:] and _suffixes(name)[-1] in _IMAGES:
            try:
                sample[name] = convert(PIL.Image.open(_file(value)))
            except Exception as error:
                raise _decoding(error, sample, name) from error
    return sample


def decode_images_to_pil(sample: Sample, format: Format = True) -> Sample:
    """Opens images with Pillow, which decodes them when they are used."""
    return _decode_images(sample, lambda image: image)


def decode_images_to_numpy(sample: Sample, format: Format = True) -> Sample:
    """Decodes images to arrays."""
    import numpy as np

    return _decode_images(sample, np.asarray)


def default_decoder(sample: Sample, format: Format = True, gz_update_key: bool = False) -> Sample:
    """A decoded copy of a sample. format: what images become, "PIL" or "numpy"."""
    kinds = {"pil": decode_images_to_pil, "numpy": decode_images_to_numpy}
    decode_images = kinds.get(str(format).lower())
    if decode_images is None:
        raise ValueError(f'Unknown format: {format}; help: "PIL" or "numpy"')
    result = decode_all_gz(dict(sample), update_key=gz_update_key)
    return decode_images(decode_basic(result))
