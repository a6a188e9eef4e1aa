"""Writing shards: samples in, whole shards out."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn

from ._encoders import encoded_sample
from ._errors import ForkedError, UsageError, error_from
from ._native import ffi, lib
from ._options import native_options, option_texts, shown_options
from ._reopenable import Closable
from ._sample import Sample, native_sample
from ._shard_names import ShardNames
from ._signals import Signals
from ._urls import redacted

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from typing_extensions import Unpack

    from ._dataset import HeldSamples
    from ._encoders import Encoders
    from ._native import WriterOptions, _CData
    from ._shard_names import ShardName


_AT_ONCE = 256  # samples that are written with one call


@dataclass(frozen=True)
class Shard:
    """A shard that was published."""

    url: str
    """Its name, by the pattern."""
    samples: int
    bytes: int
    """Of its file."""
    payload: int
    """Bytes of all fields, before compression."""
    digest: str
    """XXH3-128 of its file, in hexadecimal, as xxh128sum prints it."""
    index: str | None
    """The path of its index."""
    token: str | None = field(default=None, repr=False)
    """What publish_prepared() takes for a shard that is not published yet (prepare=True)."""


class Writer(Closable):
    """Makes shards of samples.

        with shardfeed.Writer("train-%06d.tar", max_samples=10_000, index=True) as writer:
            for i, (image, label) in enumerate(pairs):
                writer.write({"__key__": f"{i:06d}", "jpg": image, "cls": label})
        print(writer.shards)

    pattern: a path, a file://, s3://, gs:// or az:// URL, pipe:COMMAND or "-", with at most one
    number of the shard, %d or %06d; or a function that makes such a name of the number, which is
    called once for each shard: a name that comes again is an error. The end of the name says the
    format: .tar, .tar.gz, .tar.zst, .tar.xz, .tar.lz4, .tar.bz2, .zip.

    A shard appears when it is whole, and nothing is overwritten. The end of the with block
    publishes the last one; an exception in the block, and close() without finish(), discard what is
    not published.

    prepare=True: shards do not appear. They wait where they are to be, and publish_prepared(),
    of this process or another one, makes them appear.

    index: the same as write_index. encoder: True encodes values by the suffix of their field:
    numbers (cls), str, json, msgpack, cbor, npy, npz, ten, pickle, images (jpg, png, ... of Pillow
    or NumPy); a mapping from suffix to function comes before these; a function makes a mapping of
    bytes of the whole sample; False: everything is bytes already. encode_threads: so many threads
    encode at once; the order stays. Arrays and objects of a sample must then stay as they are until
    it is written, and an exception about it comes out of a later call. on_shard is called with each
    Shard that was published, inside of later calls of the writer.

    An exception about one sample leaves the writer as it was before it; after others all calls
    raise it again. One thread at a time. It belongs to the process that made it.
    """

    _none = ffi.new("shf_writer **")

    def __init__(
        self,
        pattern: str | os.PathLike[str] | ShardName,
        *,
        index: bool = False,
        encoder: Encoders = True,
        encode_threads: int = 0,
        on_shard: Callable[[Shard], object] | None = None,
        **options: Unpack[WriterOptions],
    ) -> None:
        self._names = ShardNames(pattern) if callable(pattern) else None
        self._pattern = pattern if callable(pattern) else os.fspath(pattern)
        self._options = option_texts({"write_index": True, **options} if index else options)
        self._encoder: Encoders = encoder
        self._on_shard = on_shard
        self._shards: list[Shard] = []
        self._closed = False
        self._lock = Lock()
        self._owner = os.getpid()
        self._reported = 0  # shards that on_shard had
        self._noting = Lock()
        self._pool = ThreadPoolExecutor(encode_threads) if encode_threads else None
        self._encoding: deque[Future[tuple[str, list[tuple[str, Any]]]]] = deque()
        self._most_encoding = 4 * encode_threads
        self._holder = self._none
        native = native_options(self._options, "writer")
        self._signals = Signals(native)
        self._error = ffi.new("shf_error *")
        holder = ffi.gc(ffi.new("shf_writer **"), lib.python_close_writer)
        text = ffi.NULL
        if self._names is not None:
            self._names.set(native)
        else:
            text = ffi.new("char[]", os.fsencode(self._pattern))  # type: ignore[arg-type]
        self._check(lib.shf_writer_open(holder, text, native, self._error))
        self._holder = holder

    def write(self, sample: Mapping[str, Any]) -> None:
        """Writes a sample: a mapping with "__key__", or a Sample as it is.

        The fields keep their order. Other names that begin with "_" are left out.
        """
        with self._alone():
            self._opened()
            if isinstance(sample, Sample):
                self._write_pending(0)
                self._write_native(sample)
            elif self._pool is None:
                self._write_fields(*encoded_sample(sample, self._encoder))
            else:
                kept = {name: _kept(value) for name, value in sample.items()}
                self._encoding.append(self._pool.submit(encoded_sample, kept, self._encoder))
                self._write_pending(self._most_encoding)
        self._report()

    def _write_held(self, held: HeldSamples, place: int, stop: int) -> None:
        """For HeldSamples.write()."""
        with self._alone():
            self._write_pending(0)
            if stop > held.count:
                raise UsageError("places of samples that are not there")
            next_place = ffi.new("size_t *", place)
            while next_place[0] < stop:
                # Between two calls Python runs its signal handlers.
                end = min(next_place[0] + _AT_ONCE, stop)
                holder = self._opened()
                self._check(
                    lib.python_write_samples(holder, held.native, next_place, end, self._error)
                )
        self._report()

    def write_bytes(self, key: str, fields: Mapping[str, bytes]) -> None:
        """Writes a sample whose fields are bytes already: all of them, with names as they are."""
        with self._alone():
            self._write_pending(0)
            self._write_fields(key, list(fields.items()))
        self._report()

    def write_files(self, key: str, files: Mapping[str, str | os.PathLike[str]]) -> None:
        """Writes a sample whose fields are the bytes of files: field name -> path, or URL."""
        with self._alone():
            self._write_pending(0)
            holder, error = self._opened(), self._error
            self._begin_sample(holder, key)
            for name, path in files.items():
                field, source = _bytes_of(name), os.fsencode(path)
                is_url = isinstance(path, str) and "://" in path
                add = lib.shf_writer_field_url if is_url else lib.shf_writer_field_file
                self._check(add(holder[0], field, len(field), source, error))
            self._check(lib.shf_writer_end(holder[0], error))
        self._report()

    def write_all(self, samples: Iterable[Mapping[str, Any]]) -> None:
        """Writes each of these samples."""
        for sample in samples:
            self.write(sample)

    def next_shard(self) -> None:
        """Ends the shard that is being written; the next sample begins another one."""
        with self._alone():
            self._write_pending(0)
            holder = self._opened()
            self._check(lib.shf_writer_next_shard(holder[0], self._error))
        self._report()

    def flush(self, durable: bool = False) -> None:
        """Hands what was written to the system; with `durable` to the disk."""
        with self._alone():
            self._write_pending(0)
            holder = self._opened()
            self._check(lib.shf_writer_flush(holder[0], int(durable), self._error))
        self._report()

    def finish(self) -> None:
        """Ends the last shard, and returns when all are published. The writer is then closed."""
        with self._alone():
            self._write_pending(0)
            holder = self._opened()
            self._check(lib.shf_writer_finish(holder[0], self._error))
        self._report()
        self.close()

    @property
    def shards(self) -> list[Shard]:
        """The shards that are published so far."""
        self._note_shards()
        return list(self._shards)

    @property
    def options(self) -> dict[str, str]:
        """The options that were given, as the library takes them."""
        return dict(self._options)

    def cancel(self) -> None:
        """Makes a call that waits, and later ones, raise CancelledError. Any thread."""
        holder = self._holder
        lib.shf_writer_cancel(holder[0])

    def close(self) -> None:
        """Discards what is not published."""
        if not self._closed:
            self._note_shards()
        self._closed = True
        self._encoding = deque()
        if self._pool is not None and os.getpid() == self._owner:
            self._pool.shutdown(wait=False, cancel_futures=True)
        holder, self._holder = self._holder, self._none
        lib.shf_writer_cancel(holder[0])  # a call in another thread still uses it

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if exception is None and not self._closed:
                self.finish()
        finally:
            self.close()
            self._report()  # those that were published before something failed

    def _write_fields(self, key: str, fields: list[tuple[str, Any]]) -> None:
        holder, error = self._opened(), self._error
        self._begin_sample(holder, key)
        writer, add = holder[0], lib.shf_writer_field_borrowed
        views = []  # what they are of stays until the sample is written
        for name, data in fields:
            field = _bytes_of(name)
            view = ffi.from_buffer("char[]", data)
            views.append(view)
            if add(writer, field, len(field), view, len(view), error):
                raise error_from(error)
        self._check(lib.shf_writer_end(writer, error))

    def _write_native(self, sample: Sample) -> None:
        holder = self._opened()
        self._check(lib.shf_writer_write(holder[0], native_sample(sample), self._error))

    def _write_pending(self, most: int) -> None:
        """Writes encoded samples until at most `most` are being encoded."""
        encoding = self._encoding
        while len(encoding) > most:
            try:
                key, fields = encoding[0].result()  # it stays when a signal handler raises here
            except Exception:
                encoding.popleft()  # of this sample, whose encoder has failed
                raise
            encoding.popleft()
            try:
                self._write_fields(key, fields)
            except Exception:
                raise
            except BaseException:
                # A sample that was accepted may be lost: nothing may be published without it.
                self.cancel()
                raise

    def _begin_sample(self, holder: _CData, key: str) -> None:
        name = _bytes_of(key)
        self._check(lib.shf_writer_begin(holder[0], name, len(name), self._error))

    def _opened(self) -> _CData:
        """The holder, which keeps the handle while another thread, or a handler, closes."""
        holder = self._holder
        if holder is self._none:
            raise UsageError("the writer is closed")
        return holder

    def _check(self, code: int) -> None:
        self._signals.raise_exception()
        if self._names is not None:
            self._names.raise_exception()
        if code < 0:
            raise error_from(self._error)

    def _alone(self) -> Lock:
        if os.getpid() != self._owner:  # the threads of a pool are not here
            raise ForkedError(
                "this writer was opened by the parent process; help: open a writer in the process "
                "that writes"
            )
        if self._lock.locked():
            raise UsageError(
                "the writer is in use: another thread, or a call that a signal handler has "
                "interrupted; help: write in one thread"
            )
        return self._lock

    def _note_shards(self) -> None:
        """Adds the shards that were published since the last call."""
        holder = self._holder  # keeps the handle while another thread closes
        with self._noting:
            for number in range(len(self._shards), lib.shf_writer_shards(holder[0])):
                self._shards.append(_shard_of(holder[0], number))

    def _report(self) -> None:
        if self._on_shard is None:
            return
        self._note_shards()
        while self._reported < len(self._shards):
            self._reported += 1  # once, also when the function raises
            self._on_shard(self._shards[self._reported - 1])

    def __reduce__(self) -> NoReturn:
        raise TypeError("a writer cannot be pickled or copied: it has open files")

    def __repr__(self) -> str:
        name = self._pattern if callable(self._pattern) else redacted(self._pattern)
        shown = [repr(name), *(["closed"] if self._closed else [])]
        shown += [shown_options(self._options)] if self._options else []
        return f"<shardfeed.Writer {' '.join(shown)}>"


def _kept(value: Any) -> Any:
    """A value that may be encoded later: a buffer is the caller's, who may fill it again."""
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value


def _bytes_of(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _shard_of(writer: _CData, number: int) -> Shard:
    def text(what: int) -> str | None:
        out = ffi.new("shf_bytes *")
        if lib.shf_writer_shard_text(writer, number, what, out):
            return None
        return bytes(ffi.buffer(out.data, out.size)).decode("utf-8", "surrogateescape")

    return Shard(
        url=text(lib.SHF_SHARD_URL) or "",
        samples=lib.shf_writer_shard_info(writer, number, lib.SHF_SHARD_SAMPLES),
        bytes=lib.shf_writer_shard_info(writer, number, lib.SHF_SHARD_BYTES),
        payload=lib.shf_writer_shard_info(writer, number, lib.SHF_SHARD_PAYLOAD),
        digest=text(lib.SHF_SHARD_DIGEST) or "",
        index=text(lib.SHF_SHARD_INDEX),
        token=text(lib.SHF_SHARD_TOKEN),
    )
