"""JPEG images decoded by the engine, by several threads, in the order of the samples.

Only where the result is the same as Pillow's: 8 bits, grey or three colours. Everything else, and
what the engine refuses, goes to the decoder of the pipeline.
"""

from __future__ import annotations

import os
import re
from collections import deque
from typing import TYPE_CHECKING, Any

from .._batch import Batch, new_holder
from .._column import checked_array
from .._native import ffi, lib
from .._options import native_options
from . import _fast, autodecode
from ._images import ImageHandler, arranged, imagespecs
from ._reading import in_worker
from ._rows import Row, Supply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .._native import _CData

_NAME = re.compile(r"[A-Za-z0-9_.\-]+\Z")
_JPEG = re.compile(r"(?i)(.*\.)?jpe?g\Z")
_MOST_THREADS = 4
# Samples that each thread has before it.
_AHEAD = 4
# Markers of a frame: baseline, extended and progressive with Huffman codes.
_FRAMES = (0xC0, 0xC1, 0xC2)


def spec_of(decoder: Any) -> str | None:
    """The image spec of a decoder, if the engine can do it."""
    if type(decoder) is not autodecode.Decoder or not isinstance(
        _fast.fast(decoder), _fast.FastDecoder
    ):
        return None
    for handler in decoder.handlers:
        kind: Any = handler
        if type(kind) is ImageHandler:
            container, _, mode = imagespecs[kind.imagespec]
            return kind.imagespec if container != "pil" and mode in ("rgb", "l") else None
    return None


def is_plain_jpeg(data: Any) -> bool:
    """Whether it is a JPEG of 8 bits, grey or in three colours, that is not lossless."""
    size = len(data)
    if size < 4 or data[0] != 0xFF or data[1] != 0xD8:
        return False
    at = 2
    while at + 10 < size and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _FRAMES:
            return data[at + 4] == 8 and data[at + 9] in (1, 3)
        if (
            (0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC))
            or marker == 0xDA
            or 0xD0 <= marker <= 0xD9
        ):
            return False
        at += 2 + (data[at + 2] << 8 | data[at + 3])
    return False


class _Images:
    """The image fields of samples with some names, and the options that decode them."""

    def __init__(self, names: tuple[str, ...], decoder: _fast.FastDecoder) -> None:
        self.names = [
            name
            for name in names
            if _NAME.match(name)
            and _JPEG.match(name)
            and isinstance(_handler_of(decoder, name), ImageHandler)
        ]
        self.texts = {
            "decode": ", ".join(f"{name}:image/rgb8" for name in self.names),
            "decode_threads": "1",
        }
        self.options: _CData | None = native_options(self.texts) if self.names else None


def _handler_of(decoder: _fast.FastDecoder, name: str) -> Any:
    if decoder.decoder.only is not None and name not in decoder.decoder.only:
        return None
    return getattr(_fast.first_step(decoder.decoder, name), "__self__", None)


class _ImageDecoder:
    """Decodes samples of the engine, in two steps: what threads do, and the rest."""

    def __init__(self, decoder: autodecode.Decoder) -> None:
        self.fast = _fast.FastDecoder(decoder)
        self._images: dict[tuple[str, ...], _Images] = {}
        handler = next(h for h in decoder.handlers if isinstance(h, ImageHandler))
        self.container, self.dtype, self.mode = imagespecs[handler.imagespec]

    def images(self, row: Row) -> _Images:
        names = row.names
        images = self._images.get(names)
        if images is None:
            if len(self._images) > 1024:
                self._images.clear()
            images = self._images[names] = _Images(names, self.fast)
        return images

    def pixels(self, row: Row, images: _Images) -> dict[str, Any] | None:
        """The images of a sample; None where the decoder of the pipeline has to say. Any thread."""
        if not all(is_plain_jpeg(row.field(name)) for name in images.names):
            return None
        samples = ffi.new("shf_sample *[]", [row.native])
        holder = new_holder()
        error = ffi.new("shf_error *")
        if lib.shf_batch_make(holder, samples, 1, images.options or ffi.NULL, error):
            return None
        batch = Batch.received(holder, images.texts)
        return {
            name: self._arranged(checked_array(batch.column(name)).numpy()[0])
            for name in images.names
        }

    def _arranged(self, pixels: Any) -> Any:
        if self.mode == "l":
            import numpy
            from PIL import Image

            pixels = numpy.asarray(Image.fromarray(pixels).convert("L"))
        else:
            pixels.flags.writeable = False  # as the array that NumPy makes of an image
        return arranged(pixels, self.container, self.dtype)

    def finished(self, row: Row, pixels: dict[str, Any] | None) -> Any:
        """The decoded sample."""
        if pixels is None:
            return self.fast(row.sample())
        sample = row.sample(pixels)
        functions = self.fast
        try:
            for name, value in sample.items():
                if type(value) is bytes and name not in pixels:
                    sample[name] = functions.field(name, value)
        except Exception:
            return self.fast.decoder.decode(row.sample())  # says what is wrong
        return sample


def decoded(
    source: Iterable[Any],
    decoder: autodecode.Decoder,
    spec: str,
    handler: Callable[[Exception], bool],
    threads: int,
    supply: Supply | None,
    most: int,
) -> Iterator[Any]:
    """The decoded samples of rows, or of samples that were read as members.

    supply: of the rows; None: samples are not taken before those before them are given. most: how
    many rows one sample takes.
    """
    if not threads:
        cores = len(os.sched_getaffinity(0))
        threads = 1 if in_worker() else min(cores, _MOST_THREADS)
    made = _ImageDecoder(decoder)
    if threads == 1 or supply is None:
        jobs = _in_line(source, made)
    else:
        jobs = _by_threads(source, made, threads, supply, most)
    for item, job in jobs:
        try:
            result = made.finished(item, job()) if job else made.fast(item)
        except Exception as exn:
            if handler(exn):
                continue
            break
        yield result


def _in_line(source: Iterable[Any], decoder: _ImageDecoder) -> Any:
    for item in source:
        if type(item) is not Row:
            yield item, None
            continue
        images = decoder.images(item)
        if not images.names:
            yield item.sample(), None
        else:
            yield item, lambda row=item, images=images: decoder.pixels(row, images)


def _by_threads(
    source: Iterable[Any], decoder: _ImageDecoder, threads: int, supply: Supply, most: int
) -> Any:
    from concurrent.futures import ThreadPoolExecutor

    count = threads * _AHEAD
    supply.wanted = count * most
    waiting: deque[tuple[Any, Any]] = deque()
    is_at_end = False
    with ThreadPoolExecutor(threads, thread_name_prefix="shardfeed-decode") as pool:
        items = iter(source)
        try:
            while True:
                while not is_at_end and (
                    not waiting or (len(waiting) < count and supply.left() >= most)
                ):
                    try:
                        item = next(items)
                    except StopIteration:
                        is_at_end = True
                    else:
                        waiting.append(_submitted(pool, item, decoder))
                if not waiting:
                    return
                yield waiting.popleft()
        finally:
            for _, job in waiting:
                if job is not None:
                    job.__self__.cancel()


def _submitted(pool: Any, item: Any, decoder: _ImageDecoder) -> tuple[Any, Any]:
    if type(item) is not Row:
        return item, None
    images = decoder.images(item)
    if not images.names:
        return item.sample(), None
    return item, pool.submit(decoder.pixels, item, images).result
