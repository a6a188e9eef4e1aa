"""Shards that writers with prepare=True have made, and that have not appeared."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ._errors import Error, UsageError, error_from
from ._native import ffi, lib
from ._options import native_options, option_texts
from ._urls import redacted
from ._writer import Shard

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

    from ._native import WriterOptions

_AT_ONCE = 16  # shards
_NAMED = 5  # URLs in a message


class PublishError(Error, RuntimeError):
    """Some of several prepared shards could not be published.

    published: those that have appeared. prepared: those that have not, which can be given to
    publish_prepared() again, or to discard_prepared(). __cause__: the first error.
    """

    def __init__(
        self,
        message: str = "",
        *,
        offset: int | None = None,
        os_error: int = 0,
        published: Iterable[Shard] = (),
        prepared: Iterable[Shard] = (),
    ) -> None:
        super().__init__(message, offset=offset, os_error=os_error)
        self.published = list(published)
        self.prepared = list(prepared)

    code = lib.SHF_E_IO

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_publish_error, (
            self.message,
            self.os_error,
            self.published,
            self.prepared,
        )


def _rebuild_publish_error(
    message: str, os_error: int, published: list[Shard], prepared: list[Shard]
) -> PublishError:
    return PublishError(message, os_error=os_error, published=published, prepared=prepared)


def publish_prepared(shards: Iterable[Shard], **options: Unpack[WriterOptions]) -> None:
    """Makes shards appear that writers with prepare=True have made, on any machine.

        with shardfeed.Writer(f"s3://bucket/{task:04d}-%04d.tar", prepare=True) as writer: ...
        return writer.shards                      # in each task
        shardfeed.publish_prepared(all_of_them)   # when all tasks are done

    options: those that the writers had: how to reach the store, overwrite, durable. Several are
    published at once. A shard that has appeared already stays as it is, so that this can be called
    again with the same shards. PublishError says which of them have appeared, and which not: what
    was published is not taken back.
    """
    given = _with_tokens(shards)
    failures = _each(lib.shf_publish_prepared, given, options)
    if not failures:
        return
    prepared = [shard for shard, failed in zip(given, failures) if failed is not None]
    first = next(failed for failed in failures if failed is not None)
    names = ", ".join(redacted(shard.url) for shard in prepared[:_NAMED])
    more = len(prepared) - _NAMED
    raise PublishError(
        f"{len(prepared)} of {len(given)} shards are not published: {names}"
        + (f" and {more} more" if more > 0 else "")
        + f"; the first error: {first}",
        os_error=getattr(first, "os_error", 0),
        published=[shard for shard, failed in zip(given, failures) if failed is None],
        prepared=prepared,
    ) from first


def discard_prepared(shards: Iterable[Shard], **options: Unpack[WriterOptions]) -> None:
    """Removes shards that writers with prepare=True have made, where they have not appeared.

    Those that were published stay. options: as for publish_prepared.
    """
    for failed in _each(lib.shf_discard_prepared, _with_tokens(shards), options):
        if failed is not None:
            raise failed


def discard_left(pattern: str | os.PathLike[str], **options: Unpack[WriterOptions]) -> None:
    """Removes what writers with prepare=True have left in a store that died: all that was written
    under names of this pattern, in which %d and %06d stand for numbers, and has not appeared.

    Also that of writers which are at work now. The blocks of an az:// URL stay, until Azure removes
    them after a week. Of paths nothing is removed.
    """
    error = ffi.new("shf_error *")
    native = native_options(option_texts(dict(options)), "writer")
    if lib.shf_discard_left(os.fsencode(pattern), native, error):
        raise error_from(error)


def _with_tokens(shards: Iterable[Shard]) -> list[Shard]:
    given = list(shards)
    for shard in given:
        if shard.token is None:
            raise UsageError(
                f"{redacted(shard.url)}: it was published by its writer; help: prepare=True makes "
                "shards that wait"
            )
    return given


def _each(call: Callable[..., int], shards: list[Shard], options: Any) -> list[Exception | None]:
    """Calls it with each token. What each one raised; an empty list where none did."""
    texts = option_texts(dict(options))
    native_options(texts, "writer")  # a bad option is an error of the call

    def one(shard: Shard) -> Exception | None:
        try:
            error = ffi.new("shf_error *")
            token = (shard.token or "").encode("ascii", "replace")
            if call(token, native_options(texts, "writer"), error):
                return error_from(error)
        except Exception as raised:
            return raised
        return None

    if len(shards) < 2:
        results = [one(shard) for shard in shards]
    else:
        pool = ThreadPoolExecutor(min(_AT_ONCE, len(shards)), "shardfeed-publish")
        try:
            results = list(pool.map(one, shards))
        finally:
            pool.shutdown(cancel_futures=True)
    return results if any(results) else []
