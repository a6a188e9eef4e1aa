"""How samples, batches and plans look in a notebook: tables with small pictures."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from ._column import KEYS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

# A picture that is larger is shown smaller: a notebook keeps what its cells have shown.
_PIXELS = 128
_MAX_BYTES = 16384

_ROWS = 5  # of a batch
_COLUMNS = 24
_CHARACTERS = 80


class _Sample(Protocol):
    """What is asked of a sample. Samples and batches import this module, and not the reverse."""

    @property
    def key(self) -> str: ...
    @property
    def shard(self) -> str: ...
    def __len__(self) -> int: ...
    def items(self) -> Iterable[tuple[str, memoryview]]: ...
    def array(self, name: str, kind: str | None = None) -> Any: ...


class _Batch(Protocol):
    """What is asked of a batch."""

    @property
    def sample_keys(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: object) -> bool: ...
    def __getitem__(self, name: str) -> Any: ...
    def keys(self) -> Collection[str]: ...


def sample_html(sample: _Sample) -> str:
    """The fields of a sample: name, size and what they look like."""
    try:
        title = f"{sample.key!r} of {sample.shard!r}"
    except Exception:  # rebuilt by another package: it has lost both
        title = "rebuilt"
    rows = [
        (_text(name), _text(_size(value)), _picture_of_field(sample, name, value) or _start(value))
        for name, value in _first(sample.items())
    ]
    return _titled("Sample", title, len(sample), _table(("field", "size", ""), rows))


def batch_html(batch: _Batch) -> str:
    """The first rows of a batch."""
    names = _first(batch.keys())
    shown = range(min(len(batch), _ROWS))
    columns = [batch[name] for name in names]
    keys = batch.sample_keys[:_ROWS] if KEYS in batch else [str(row) for row in shown]
    rows = [[_text(keys[row]), *(_cell(column, row) for column in columns)] for row in shown]
    about = f"{len(batch)} rows" + (f", the first {_ROWS}" if len(batch) > _ROWS else "")
    return _titled("Batch", about, len(batch.keys()), _table(("key", *names), rows))


def text_html(text: str) -> str:
    """A text as it is."""
    return f"<pre>{escape(text)}</pre>"


def _first(items: Iterable[Any]) -> list[Any]:
    return list(items)[:_COLUMNS]


def _titled(noun: str, title: str, columns: int, table: str) -> str:
    left_out = f" (the first {_COLUMNS} of {columns} fields)" if columns > _COLUMNS else ""
    return f"<div><b>shardfeed.{noun}</b> {_text(title)}{left_out}{table}</div>"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; the cells of the rows are HTML already."""
    cells = "".join(f"<th>{_text(name)}</th>" for name in head)
    lines = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>"


def _text(text: str) -> str:
    """Any text of a shard, which is nobody's HTML."""
    if len(text) > _CHARACTERS:
        text = text[:_CHARACTERS] + "..."
    # What is not UTF-8 cannot be written into a notebook.
    return escape(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def _size(value: Any) -> str:
    return f"{len(value):,} bytes" if isinstance(value, (bytes, memoryview)) else ""


def _start(value: Any) -> str:
    """The first characters of text or numbers; nothing of what is neither."""
    if not isinstance(value, (bytes, memoryview)):
        return _text(str(value))
    start = bytes(value[: 4 * _CHARACTERS])
    text = start.decode("utf-8", "replace")
    readable = text.rstrip("\ufffd").replace("\n", " ").replace("\t", " ")
    return _text(readable) if readable.isprintable() else ""


def _cell(column: Any, row: int) -> str:
    """A row of a column of a batch."""
    try:
        value = column[row]
    except Exception as error:  # bytes that are no JSON are found when they are asked for
        return _text(str(error))
    return _picture_of_bytes(value) or _picture_of_pixels(value) or _described(value)


def _described(value: Any) -> str:
    shape = getattr(value, "shape", ())
    if shape:
        return _text(f"{value.dtype} {tuple(shape)}")
    return _start(value)


# ---- Pictures -----------------------------------------------------------------------------------


def _media_type(value: Any) -> str:
    """That of the bytes of an image, by their start; "" when they are none."""
    if not isinstance(value, (bytes, memoryview)):
        return ""
    start = bytes(value[:12])
    if start.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if start.startswith(b"RIFF") and start[8:] == b"WEBP":
        return "image/webp"
    return ""


def _picture_of_field(sample: _Sample, name: str, value: Any) -> str:
    if not _media_type(value):
        return ""
    if len(value) <= _MAX_BYTES:
        return _picture_of_bytes(value)
    try:
        pixels = sample.array(name, f"image/rgb8/resize=fit:{_PIXELS}x{_PIXELS}")
    except Exception:  # damaged, a copy that cannot be decoded, no NumPy: its size is shown
        return ""
    return _picture_of_pixels(pixels)


def _picture_of_bytes(value: Any) -> str:
    media_type = _media_type(value)
    if not media_type or len(value) > _MAX_BYTES:
        return ""
    return _image(media_type, bytes(value))


def _picture_of_pixels(pixels: Any) -> str:
    """An array of uint8 that can be an image: height x width, or x 1, 3 or 4, or those first."""
    if str(getattr(pixels, "dtype", "")) != "uint8" or pixels.ndim not in (2, 3):
        return ""
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    channels = (1, 3, 4)
    if pixels.shape[2] not in channels and pixels.shape[0] in channels:
        pixels = pixels.transpose(1, 2, 0)
    if pixels.shape[2] not in channels or 0 in pixels.shape:
        return ""
    step = -(-max(pixels.shape[:2]) // _PIXELS)
    return _image("image/png", _png(pixels[::step, ::step]))


def _png(pixels: Any) -> bytes:
    """A PNG file (W3C PNG, 5) of height x width x channels."""
    height, width, channels = pixels.shape
    color = {1: 0, 3: 2, 4: 6}[channels]
    lines = b"".join(b"\0" + pixels[line].tobytes() for line in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            chunk(b"IDAT", zlib.compress(lines)),
            chunk(b"IEND", b""),
        ]
    )


def _image(media_type: str, data: bytes) -> str:
    style = f"max-width:{_PIXELS}px;max-height:{_PIXELS}px"
    source = b64encode(data).decode("ascii")
    return f'<img style="{style}" src="data:{media_type};base64,{source}">'
