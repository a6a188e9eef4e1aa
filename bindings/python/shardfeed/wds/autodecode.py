"""Decoding: what becomes of the bytes of a field, by its name."""

from __future__ import annotations

import functools
import gzip
import os
import re
import tempfile
from typing import TYPE_CHECKING, Any

from ._images import IMAGE_EXTENSIONS, ImageHandler, imagehandler, imagespecs
from ._loads import (
    cbor_loads,
    decoders,
    msgpack_loads,
    npy_loads,
    npz_loads,
    tenbin_loads,
    torch_loads,
    unpickle_loads,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Handler = Callable[[str, bytes], Any]

__all__ = [
    "IMAGE_EXTENSIONS",
    "Continue",
    "Decoder",
    "DecodingError",
    "ImageHandler",
    "basichandlers",
    "call_extension_handler",
    "cbor_loads",
    "decoders",
    "default_decoder",
    "default_post_handlers",
    "default_pre_handlers",
    "gzfilter",
    "handle_extension",
    "imagehandler",
    "imagespecs",
    "msgpack_loads",
    "npy_loads",
    "npz_loads",
    "tenbin_loads",
    "torch_audio",
    "torch_loads",
    "torch_video",
    "unpickle_loads",
]

# True: .pth fields may hold tensors and plain containers alone.
pytorch_weights_only: bool = os.environ.get("WDS_PYTORCH_WEIGHTS_ONLY") == "1"


def basichandlers(key: str, data: bytes) -> Any:
    """Numbers, texts, JSON, arrays and other objects, by the last part of the name."""
    function = decoders.get(key[key.rfind(".") + 1 :])
    return None if function is None else function(data)


def call_extension_handler(
    key: str, data: bytes, f: Callable[[bytes], Any], extensions: Iterable[str]
) -> Any:
    """What f makes of the data, if the last parts of the name are one of these extensions."""
    return f(data) if _has_extension(key, extensions) else None


def _has_extension(key: str, extensions: Iterable[str]) -> bool:
    parts = key.lower().split(".")
    for extension in extensions:
        target = extension.split(".")
        if len(target) <= len(parts) and parts[-len(target) :] == target:
            return True
    return False


def handle_extension(extensions: str, f: Callable[[bytes], Any]) -> Handler:
    """A handler for decode() that calls f with the fields of these extensions: "jpg seg.png"."""
    return functools.partial(call_extension_handler, f=f, extensions=extensions.lower().split())


def _of_file(extensions: str, key: str, data: bytes, load: Callable[[str], Any]) -> Any:
    """What a function makes of a field that it can only read as a file of that name."""
    extension = re.sub(r".*[.]", "", key, count=1)
    if extension not in extensions.split():
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"file.{extension}")
        with open(path, "wb") as stream:
            stream.write(data)
        return load(path)


def torch_video(key: str, data: bytes) -> Any:
    """A handler for decode(): videos, read by torchvision."""

    def load(path: str) -> Any:
        import torchvision.io

        return torchvision.io.read_video(path, pts_unit="sec")

    return _of_file("mp4 ogv mjpeg avi mov h264 mpg webm wmv", key, data, load)


def torch_audio(key: str, data: bytes) -> Any:
    """A handler for decode(): sounds, read by torchaudio."""

    def load(path: str) -> Any:
        import torchaudio

        return torchaudio.load(path)

    return _of_file("flac mp3 sox wav m4a ogg wma", key, data, load)


class Continue:
    """What a handler gives to have later ones decode other bytes under another name."""

    def __init__(self, key: str, data: bytes) -> None:
        self.key = key
        self.data = data


def gzfilter(key: str, data: bytes) -> Continue | None:
    """Unpacks fields whose name ends in .gz."""
    return Continue(key[:-3], gzip.decompress(data)) if key.endswith(".gz") else None


default_pre_handlers: list[Handler] = [gzfilter]
default_post_handlers: list[Handler] = [basichandlers]


class DecodingError(Exception):
    """A field that could not be decoded; the cause is chained.

    url, key, k: the shard, the key of the sample and the field. sample: the sample as it is.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        k: str | None = None,
        sample: Any = None,
    ) -> None:
        super().__init__(url, key, k, sample)
        self.url = url
        self.key = key
        self.k = k
        self.sample = sample

    def __str__(self) -> str:
        cause = "" if self.__cause__ is None else f": {self.__cause__!r}"
        return f"field {self.k!r} of sample {self.key!r} in {self.url}{cause}"

    def __repr__(self) -> str:
        return f"DecodingError({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return DecodingError, (self.url, self.key, self.k, self.sample)


class Decoder:
    """Decodes samples: each field by the first handler that makes something of it."""

    def __init__(
        self,
        handlers: list[Handler],
        pre: list[Handler] | None = None,
        post: list[Handler] | None = None,
        only: str | list[str] | None = None,
        partial: bool = False,
    ) -> None:
        if isinstance(only, str):
            only = only.split()
        self.only = only if only is None else set(only)
        pre = default_pre_handlers if pre is None else pre
        post = default_post_handlers if post is None else post
        assert all(callable(handler) for handler in handlers), f"one of {handlers} not callable"
        assert all(callable(handler) for handler in pre), f"one of {pre} not callable"
        assert all(callable(handler) for handler in post), f"one of {post} not callable"
        self.handlers = [*pre, *handlers, *post]
        self.partial = partial

    def decode1(self, key: str, data: bytes) -> Any:
        """What becomes of one field; key: its name, with a dot before it."""
        key = "." + key
        for handler in self.handlers:
            result = handler(key, data)
            if isinstance(result, Continue):
                key, data = result.key, result.data
                continue
            if result is not None:
                return result
        return data

    def decode(self, sample: dict[str, Any]) -> dict[str, Any]:
        """A decoded copy of a sample."""
        result: dict[str, Any] = {}
        assert isinstance(sample, dict), (len(sample), sample)
        for k, v in sample.items():
            if k[:2] == "__":
                result[k] = _metadata(k, v)
            elif self.only is not None and k not in self.only:
                result[k] = v
            else:
                try:
                    assert v is not None, f"{k} is None"
                    if isinstance(v, bytes):
                        result[k] = self.decode1(k, v)
                    else:
                        assert self.partial, f"k,v = {k}, {v}"
                        result[k] = v
                except Exception as exn:
                    url, key = sample.get("__url__"), sample.get("__key__")
                    raise DecodingError(url, key, k, sample) from exn
        return result

    def __call__(self, sample: dict[str, Any]) -> dict[str, Any]:
        return self.decode(sample)


def _metadata(k: str, v: Any) -> Any:
    if isinstance(v, bytes):
        try:
            return v.decode("utf-8")
        except UnicodeDecodeError:
            print(f"Can't decode v of k = {k} as utf-8: v = {v!r}")
    return v


default_decoder = Decoder(default_pre_handlers, None, default_post_handlers)
