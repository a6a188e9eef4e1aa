"""Shards to samples: the engine where its result is the same, else members one after another.

The engine groups members by the same rules, but for a few names: hidden files in folders, which it
counts, and suffixes that are no ASCII or those of metadata, which are seen in its tables. A shard
with one of them, or with a field twice, is read again from its start as members, and the samples
that were delivered are passed over.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote, urlparse
from urllib.parse import unquote as url2pathname

from .._errors import AmbiguousError, Error
from .._options import option_texts
from .._receivers import Receivers, log_to_logging
from .._urls import redacted
from . import _engine, _faults, _torch, utils
from ._members_of import members_of
from ._rows import Part, SampleBlocks, Supply, UnlikeNamesError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Handler = Callable[[Exception], bool]
    Renaming = Callable[[str], str]
    Selecting = Callable[[str], bool]
    Form = Literal["samples", "rows", "parts"]

# A stream of the engine has threads, which a few samples are not worth. Tests change it.
small_shard = 32 * 1024
# Shards that one stream of the engine reads, one after another.
_MOST_SHARDS = 64


class Shard(NamedTuple):
    """A shard, and how it is read."""

    url: str
    target: str | None  # for the engine; None: only `stream` is there
    local_path: str | None
    stream: Any = None
    once: bool = False  # it cannot be read twice

    def is_exact(self, small: int) -> bool:
        """Whether it is read as members, as it is smaller, or nothing else is possible."""
        if self.target is None or self.once:
            return True
        try:
            return self.target[:1] == "/" and os.path.getsize(self.target) < small
        except OSError:
            return False


def by_path(source: dict[str, Any]) -> Shard:
    """As WebDataset opens: local files by their path, all else as gopen does."""
    url = source["url"]
    parsed = urlparse(url)
    if parsed.scheme in ("", "file"):
        whole = url if parsed.scheme == "" else url2pathname(parsed.path)
        path = whole if os.path.exists(whole) else parsed.path
        return Shard(url, _target(path), path)
    return by_gopen(source)


def _target(path: str) -> str:
    return os.path.abspath(path) if path else path


def by_gopen(source: dict[str, Any]) -> Shard:
    """As gopen opens: rules of GOPEN_REWRITE, secure mode, and the handlers of the schemes."""
    from . import _schemes

    url = source["url"]
    target, once = _schemes.engine_url(url)
    if target is not None:
        return Shard(url, target, None, once=once)
    return Shard(url, None, None, _schemes.opened(url), once=True)


def of_stream(source: dict[str, Any]) -> Shard:
    """A shard that a stage before has opened, in `stream`."""
    stream, url = source["stream"], source["url"]
    path = _path_of(stream)
    local_path = source.get("local_path")
    return Shard(url, path, local_path, None if path else stream, once=path is None)


def _path_of(stream: Any) -> str | None:
    """The path of a local file that stands at its start."""
    if type(stream) is not io.BufferedReader or not isinstance(stream.name, str):
        return None
    try:
        if stream.tell() == 0 and os.path.samestat(os.fstat(stream.fileno()), os.stat(stream.name)):
            return os.path.abspath(stream.name)
    except (OSError, ValueError):
        pass
    return None


def _chooser(
    handler: Handler, select_files: Selecting | None, rename_files: Renaming | None
) -> Callable[[str], str | None]:
    """The name of a member, or None for what is not wanted. _EndOfShardError ends the shard."""
    if select_files is None and not rename_files:
        return utils.identity

    def choose(name: str) -> str | None:
        try:
            if rename_files:
                name = rename_files(name)
            return name if select_files is None or select_files(name) else None
        except Exception as exn:
            if handler(exn):
                return None
            raise _EndOfShardError from None

    return choose


class _EndOfShardError(Exception):
    """A handler has ended a shard."""


def _members(
    shard: Shard, choose: Callable[[str], str | None], options: dict[str, Any]
) -> Iterator[tuple[str, bytes]]:
    if shard.target is not None:
        yield from members_of(shard.target, None, choose, options)
        return
    stream = shard.stream
    try:
        yield from members_of(f"opened://{quote(shard.url)}", lambda _: stream, choose, options)
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            close()


def members_of_stream(
    stream: Any,
    url: str,
    handler: Handler,
    select_files: Selecting | None,
    rename_files: Renaming | None,
) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of the members of an open stream that are wanted."""
    shard = of_stream({"url": url, "stream": stream})
    try:
        choose = _chooser(handler, select_files, rename_files)
        yield from _members(shard, choose, _engine.settings().members())
    except _EndOfShardError:
        pass
    except Error as error:
        fault = _faults.for_handler(error, url)
        fault.args = fault.args[:1]
        raise fault from None


def read_samples(
    sources: Iterable[dict[str, Any]],
    opening: Callable[[dict[str, Any]], Shard],
    handler: Handler,
    *,
    select_files: Selecting | None = None,
    rename_files: Renaming | None = None,
    look_ahead: bool = False,
    form: Form = "samples",
    supply: Supply | None = None,
) -> Iterator[Any]:
    """The samples of shards. look_ahead: later shards may be asked for before they are read.

    form: how samples that the engine has read are given: as dicts ("samples"); each as a _rows.Row,
    whose bytes stay in the engine ("rows"); or many together as a _rows.Part ("parts"). Samples
    that are read as members are always dicts. supply: is kept up to date with rows.
    """
    reader = _Reader(opening, handler, select_files, rename_files, form, supply)
    groups = _groups(iter(sources), reader, look_ahead and not (select_files or rename_files))
    return reader.read(groups)


def _groups(
    sources: Iterator[dict[str, Any]], reader: _Reader, look_ahead: bool
) -> Iterator[list[Shard]]:
    """Shards that are read together: with others of another name, one more each time."""
    size = 1
    group: dict[str, Shard] = {}
    for source in sources:
        shard = reader.opened(source)
        if isinstance(shard, Exception):
            if group:  # its samples come before the handler sees the fault
                yield list(group.values())
                group = {}
            reader.fault(shard)
            if reader.stopped:
                break
            continue
        name = redacted(shard.target) if shard.target else ""
        alone = reader.reads_members(shard) or not look_ahead
        if group and (alone or name in group):
            yield list(group.values())
            group = {}
        if alone:
            yield [shard]
            continue
        group[name] = shard
        if len(group) >= size:
            yield list(group.values())
            group = {}
            size = min(2 * size, _MOST_SHARDS)
    if group:
        yield list(group.values())


class _Reader:
    """What is the same for all shards of one iteration."""

    def __init__(
        self,
        opening: Callable[[dict[str, Any]], Shard],
        handler: Handler,
        select_files: Selecting | None,
        rename_files: Renaming | None,
        form: Form,
        supply: Supply | None,
    ) -> None:
        self.opening = opening
        self.handler = handler
        self.choose = _chooser(handler, select_files, rename_files)
        self.is_exact = select_files is not None or bool(rename_files)
        self.form = form
        self.supply = supply or Supply()
        items: dict[Form, Callable[[Part], Iterable[Any]]] = {
            "samples": Part.samples,
            "rows": self.supply.rows,
            "parts": lambda part: (part,),
        }
        self.items_of = items[form]
        self.stopped = False
        self.settings = _engine.settings()

    def reads_members(self, shard: Shard) -> bool:
        """Whether a shard is read as members from its start."""
        return self.is_exact or shard.is_exact(0 if self.form == "rows" else small_shard)

    def opened(self, source: dict[str, Any]) -> Shard | Exception:
        """The shard, or the fault for which it cannot be opened."""
        try:
            return self.opening(source)
        except Exception as exn:
            if isinstance(source, dict) and self.opening is by_gopen:
                exn.args = (*exn.args, source.get("url"))
            return exn

    def fault(self, exn: Exception) -> None:
        """Gives a fault to the handler, which may end everything."""
        if not self.handler(exn):
            self.stopped = True

    def read(self, groups: Iterator[list[Shard]]) -> Iterator[Any]:
        self.supply.is_over = False
        for group in groups:
            if len(group) > 1:
                yield from self.together(group)
            elif self.reads_members(group[0]):
                yield from self.exact(group[0], 0)
            else:
                yield from self.alone(group[0], 0)
            if self.stopped:
                break
        self.supply.is_over = True

    def stream(self, shards: list[Shard]) -> SampleBlocks:
        options = {
            "expand": False,
            "duplicate_keys": "accept",
            "allow_empty": True,
            "threads": 1 if in_worker() else 0,
            **self.settings.stream(),
        }
        texts = option_texts(options)
        receivers = Receivers(log_to_logging)
        return SampleBlocks([str(s.target) for s in shards], texts, 0, 0.0, receivers)

    def together(self, group: list[Shard]) -> Iterator[Any]:
        """Several shards by one stream; after any fault the rest of them alone."""
        names = [redacted(str(shard.target)) for shard in group]
        position, delivered = 0, 0

        def parts(stream: SampleBlocks) -> Iterator[Part]:
            nonlocal position, delivered
            while stream.fetch():
                block = stream.taken()
                if stream.ignored:
                    raise UnlikeNamesError
                for first, last, name in block.shards():
                    if names[position] != name:
                        position, delivered = names.index(name, position), 0
                    shard = group[position]
                    for part in block.parts(first, last, shard):
                        delivered += len(part)
                        yield part

        stream = None
        try:
            stream = self.stream(group)
            for part in self.supply.ahead(parts(stream)):
                yield from self.items_of(part)
            if not stream.ignored:
                return
        except (Error, UnlikeNamesError):
            pass  # which shard it is will be seen
        finally:
            if stream is not None:
                stream.close()
        for shard in group[position:]:
            yield from self.alone(shard, delivered)
            delivered = 0
            if self.stopped:
                return

    def alone(self, shard: Shard, skip: int) -> Iterator[Any]:
        """One shard by the engine, without the samples that were delivered."""
        number = 0

        def parts(stream: SampleBlocks) -> Iterator[Part]:
            nonlocal number
            while stream.fetch():
                block = stream.taken()
                if stream.ignored:
                    raise UnlikeNamesError
                for first, last, _ in block.shards():
                    for part in block.parts(first, last, shard):
                        known = min(max(skip - number, 0), len(part))
                        number += len(part)
                        if known < len(part):
                            yield part.without(known) if known else part

        stream = None
        try:
            stream = self.stream([shard])
            for part in self.supply.ahead(parts(stream)):
                yield from self.items_of(part)
            if not stream.ignored:
                return
            skip = max(skip, number)
        except (UnlikeNamesError, AmbiguousError):
            skip = max(skip, number)
        except Error as error:
            self.fault(_faults.for_handler(error, shard.url))
            return
        finally:
            if stream is not None:
                stream.close()
        yield from self.exact(shard, skip)

    def exact(self, shard: Shard, skip: int) -> Iterator[Any]:
        """One shard as members, grouped here."""
        from .tariterators import group_by_keys

        def grouping(exn: Exception) -> bool:
            self.fault(exn)
            return not self.stopped

        number = 0
        try:
            for sample in group_by_keys(self.members(shard), handler=grouping):
                number += 1
                if number > skip:
                    yield sample
        except Error as error:
            self.fault(_faults.for_handler(error, shard.url))
        except OSError as error:  # of a stream in Python
            self.fault(error)

    def members(self, shard: Shard) -> Iterator[dict[str, Any]]:
        url, local_path = shard.url, shard.local_path
        try:
            for name, data in _members(shard, self.choose, self.settings.members()):
                member = {"fname": name, "data": data, "__url__": url}
                if local_path is not None:
                    member["__local_path__"] = local_path
                yield member
        except _EndOfShardError:
            return


def in_worker() -> bool:
    """Whether this is a worker of a DataLoader, or says it is one of several."""
    return "NUM_WORKERS" in os.environ or (
        _torch.loaded() is not None and utils.pytorch_worker_info()[3] > 1
    )
