"""`TarWriter` and `ShardWriter`: samples as dicts in, tar files out."""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
import warnings
from typing import TYPE_CHECKING, Any, Callable

from ._encoders import (
    EncoderSpec,
    Handlers,
    add_handlers,
    bytestr,
    cbor_dumps,
    default_handlers,
    encode_based_on_extension,
    encode_based_on_extension1,
    imageencoder,
    make_encoder,
    make_handlers,
    mp_dumps,
    numpy_dumps,
    numpy_npz_dumps,
    tenbin_dumps,
    torch_dumps,
)
from ._sample_names import SampleNames
from ._tar_stream import Owner, StoreTar, TarStream, is_store
from .gopen import gopen

if TYPE_CHECKING:
    from types import TracebackType
    from typing import BinaryIO

    from typing_extensions import Self


class TarWriter:
    """Writes samples to a tar file.

    fileobj: a path or URL, as gopen takes them, or a binary stream, which stays open. encoder: True
    encodes values by the suffix of their field, False takes bytes alone; or a dict from suffix to
    function, or a function of the sample. compress: "gz" (True), "bz2", "xz", or False; without it
    the end of the name says it. keep_meta also writes fields that begin with "_". mtime: the time
    of all members; without it that of writing, in whole seconds. format: of tarfile, by name or
    number, for members that a plain header does not describe; tarfile.PAX_FORMAT without it.

        with TarWriter("a.tar") as writer:
            writer.write({"__key__": "0001", "png": image, "cls": 3})

    An exception about one sample leaves the file as it was before it.
    """

    def __init__(
        self,
        fileobj: str | BinaryIO,
        user: str = "bigdata",
        group: str = "bigdata",
        mode: int = 0o0444,
        compress: bool | str | None = None,
        encoder: EncoderSpec = True,
        keep_meta: bool = False,
        mtime: float | None = None,
        format: Any = None,
    ) -> None:
        self.mtime = mtime
        self.own_fileobj: Any = None
        tarmode = self.tarmode(fileobj, compress)
        layout = getattr(tarfile, format) if isinstance(format, str) else format
        owner = Owner(user, group, mode, tarfile.PAX_FORMAT if layout is None else layout)
        self.encoder = make_encoder(encoder)
        self.keep_meta = keep_meta
        self.user = user
        self.group = group
        self.mode = mode
        self.compress = compress
        self._names = SampleNames()
        self.tarstream: TarStream | StoreTar
        self.stream: Any = None
        if isinstance(fileobj, str) and is_store(fileobj):
            self.tarstream = StoreTar(fileobj, tarmode)
            return
        if isinstance(fileobj, (str, os.PathLike)):
            self.stream = self.own_fileobj = gopen(os.fspath(fileobj), "wb")
        else:
            self.stream = fileobj
        self.tarstream = TarStream(self.stream, tarmode, owner)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Writes the end of the tar. A stream that was given stays open."""
        try:
            self.tarstream.close()
        finally:
            if self.own_fileobj is not None:
                stream, self.own_fileobj = self.own_fileobj, None
                stream.close()

    def __del__(self) -> None:
        tarstream: TarStream | StoreTar | None = getattr(self, "tarstream", None)
        if tarstream is None or tarstream.closed:
            return
        with contextlib.suppress(Exception):  # at the end of the interpreter
            warnings.warn(
                "a TarWriter was not closed: its tar is ended now, if it still can be; help: "
                "close(), or a with statement",
                RuntimeWarning,
                stacklevel=2,
            )
            if isinstance(tarstream, TarStream):  # a store has nothing of what was not finished
                self.close()

    def write(self, obj: dict[str, Any]) -> int:
        """Writes a sample, its fields in the order of their names; returns its size in bytes."""
        obj = self.encoder(obj)
        if "__key__" not in obj:
            raise ValueError(
                'object must contain a __key__; help: {"__key__": "0001", "jpg": ...}, not '
                f"{sorted(map(str, obj))}"
            )
        key = obj["__key__"]
        if not isinstance(key, str):
            raise ValueError(f"the __key__ is {type(key)}; help: it is a str")
        keep_meta = self.keep_meta
        members = []
        for name in sorted(obj):
            value = obj[name]
            kind = type(value)
            if name[:1] == "_":
                if not keep_meta or name == "__key__":
                    continue
                if kind is str:
                    value = value.encode("utf-8")
            if kind is not bytes and not isinstance(value, (bytes, bytearray, memoryview)):
                raise ValueError(
                    f"{name} doesn't map to a bytes after encoding ({kind}); help: give bytes, or "
                    "encoder=True"
                )
            members.append((name, value))
        self._names.check(key, members)
        total = self.tarstream.add(key, members, self.mtime)
        self._names.accept(key, members)
        return total

    def flush(self) -> None:
        """Hands over what was written so far."""
        self.tarstream.flush()

    @staticmethod
    def tarmode(fileobj: Any, compress: bool | str | None = None) -> str:
        """The compression of a target: "w|", "w|gz", "w|bz2" or "w|xz"."""
        if compress not in (None, False, True, "", "gz", "bz2", "xz"):
            raise ValueError(
                f"compress={compress!r} is not known; help: gz, bz2, xz or False; for others "
                "shardfeed.Writer"
            )
        name = os.fspath(fileobj) if isinstance(fileobj, (str, os.PathLike)) else ""
        if compress is False:
            return "w|"
        for word in ("gz", "bz2", "xz"):
            if compress == word or (compress is True and word == "gz") or name.endswith(word):
                return f"w|{word}"
        return "w|"


class ShardWriter:
    """Writes samples to a row of tar files, each with at most `maxcount` samples.

    pattern: the name of the tars, with a number (`%06d`), of which the first is `start_shard`. The
    next tar begins when this one has `maxcount` samples, or `maxsize` bytes of fields. post is
    called with the name of each tar that is whole; opener gives the stream for a name. verbose
    prints each name. Other keywords are those of TarWriter.
    """

    def __init__(
        self,
        pattern: str,
        maxcount: int = 100000,
        maxsize: float = 3e9,
        post: Callable[[str], Any] | None = None,
        start_shard: int = 0,
        verbose: int = 1,
        opener: Callable[[str], Any] | None = None,
        **kw: Any,
    ) -> None:
        self.verbose = verbose
        self.kw = kw
        self.maxcount = maxcount
        self.maxsize = maxsize
        self.post = post
        self.tarstream: TarWriter | None = None
        self.shard = start_shard
        self.pattern = pattern
        self.total = 0
        self.count = 0
        self.size = 0
        self.fname: str | None = None
        self.opener = opener
        self._closed = False
        self.next_stream()

    def next_stream(self) -> None:
        """Ends the tar that is being written, and begins the next one."""
        if self._closed:
            raise ValueError("the ShardWriter is closed; help: make another one")
        self.finish()
        try:
            self.fname = self.pattern % self.shard
        except TypeError as error:
            raise TypeError(
                f"{error}: the pattern {self.pattern!r} needs one number; help: data-%06d.tar"
            ) from error
        if self.verbose:
            size = f"{self.size / 1e9:.1f} GB"
            print("# writing", self.fname, self.count, size, self.total)
        self.shard += 1
        target = self.opener(self.fname) if self.opener else self.fname
        self.tarstream = TarWriter(target, **self.kw)
        self.count = 0
        self.size = 0

    def write(self, obj: dict[str, Any]) -> None:
        """Writes a sample."""
        if self.tarstream is None or self.count >= self.maxcount or self.size >= self.maxsize:
            self.next_stream()
        assert self.tarstream is not None
        self.size += self.tarstream.write(obj)
        self.count += 1
        self.total += 1

    def finish(self) -> None:
        """Ends the tar that is being written."""
        if self.tarstream is None:
            return
        writer, self.tarstream = self.tarstream, None
        writer.close()
        stream = writer.stream
        if self.opener is not None and hasattr(stream, "flush"):
            with contextlib.suppress(io.UnsupportedOperation):
                if not getattr(stream, "closed", False):
                    stream.flush()  # post() reads what is there
        del writer, stream
        assert self.fname is not None
        if callable(self.post):
            self.post(self.fname)

    def close(self) -> None:
        """Ends the last tar."""
        self.finish()
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object, **kw: object) -> None:
        self.close()


__all__ = [
    "EncoderSpec",
    "Handlers",
    "ShardWriter",
    "TarWriter",
    "add_handlers",
    "bytestr",
    "cbor_dumps",
    "default_handlers",
    "encode_based_on_extension",
    "encode_based_on_extension1",
    "imageencoder",
    "make_encoder",
    "make_handlers",
    "mp_dumps",
    "numpy_dumps",
    "numpy_npz_dumps",
    "tenbin_dumps",
    "torch_dumps",
]
