"""Shards to members, and members to samples."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

from . import _reading, filters
from ._braces import braceexpand
from .gopen import gopen
from .handlers import reraise_exception

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Handler = Callable[[Exception], bool]

trace = False
meta_prefix = "__"
meta_suffix = "__"


def base_plus_ext(path: str) -> tuple[str | None, str | None]:
    """Key and suffix of a name: before and after the first dot of its last part."""
    slash = path.rfind("/") + 1
    dot = path.find(".", slash)
    if dot < 0:
        return None, None
    if dot > slash:
        return path[:dot], path[dot + 1 :]
    # A hidden file belongs to a sample that is called as its folder, with the slash.
    if slash == 0 or "." in path[path.rfind("/", 0, slash - 1) + 1 : slash]:
        return None, None
    return path[:slash], path[slash + 1 :]


def valid_sample(sample: Any) -> bool:
    """Whether there is a sample, and nothing has marked it as bad."""
    return (
        sample is not None
        and isinstance(sample, dict)
        and len(sample) > 0
        and not sample.get("__bad__", False)
    )


def shardlist(urls: Any, *, shuffle: bool = False) -> Iterator[dict[str, str]]:
    """The shards of a text with braces, or of a list."""
    listed = list(braceexpand(urls)) if isinstance(urls, str) else list(urls)
    if shuffle:
        random.shuffle(listed)
    for url in listed:
        yield {"url": url}


def url_opener(
    data: Iterable[dict[str, Any]], handler: Handler = reraise_exception, **kw: Any
) -> Iterator[dict[str, Any]]:
    """Opens shards: each gets its stream."""
    for sample in data:
        assert isinstance(sample, dict), sample
        assert "url" in sample
        url = sample["url"]
        try:
            sample.update(stream=gopen(url, **kw))
        except Exception as exn:
            exn.args = (*exn.args, url)
            if handler(exn):
                continue
            break
        yield sample


def tar_file_iterator(
    fileobj: Any,
    skip_meta: str | None = r"__[^/]*__($|/)",
    handler: Handler = reraise_exception,
    select_files: Callable[[str], bool] | None = None,
    rename_files: Callable[[str], str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Name and bytes of each regular file that is wanted, of a stream or a tarfile.TarFile."""
    if not hasattr(fileobj, "extractfile"):
        url = getattr(fileobj, "name", None) or type(fileobj).__name__
        members = _reading.members_of_stream(fileobj, str(url), handler, select_files, rename_files)
        for name, content in members:
            yield {"fname": name, "data": content}
        return
    for tarinfo in fileobj:
        name = tarinfo.name
        try:
            if not tarinfo.isreg():
                continue
            if "/" not in name and name.startswith(meta_prefix) and name.endswith(meta_suffix):
                continue
            if skip_meta is not None and re.match(skip_meta, name):
                continue
            if rename_files:
                name = rename_files(name)
            if select_files is not None and not select_files(name):
                continue
            stream = fileobj.extractfile(tarinfo)
            assert stream is not None
            result = {"fname": name, "data": stream.read()}
        except Exception as exn:
            if exn.args:
                exn.args = (f"{exn.args[0]} @ {fileobj}", *exn.args[1:])
            if handler(exn):
                continue
            break
        yield result
        fileobj.members = []


class _EndOfShard(dict[str, Any]):
    """An empty dict, which the end marker is. As a member it has a name that belongs to no sample.

    Programs that group members themselves in the way of webdataset 0.2.86 and older (open_clip and
    what is made after it) know of no marker, ask for name and bytes, and pass over such a name.
    """

    def __missing__(self, key: str) -> Any:
        if key == "fname":
            return ""
        if key == "data":
            return b""
        raise KeyError(key)


_END_OF_SHARD = _EndOfShard()


def tar_file_expander(
    data: Iterable[dict[str, Any]],
    handler: Handler = reraise_exception,
    select_files: Callable[[str], bool] | None = None,
    rename_files: Callable[[str], str] | None = None,
    eof_value: Any = _END_OF_SHARD,
) -> Iterator[dict[str, Any]]:
    """Members of shards; after each shard that was read to its end the end marker."""
    for source in data:
        url = source["url"]
        local_path = source.get("local_path")
        try:
            assert isinstance(source, dict)
            assert "stream" in source
            members = _reading.members_of_stream(
                source["stream"], url, handler, select_files, rename_files
            )
            for name, content in members:
                member = {"fname": name, "data": content, "__url__": url}
                if local_path is not None:
                    member["__local_path__"] = local_path
                yield member
            if eof_value is not None:
                yield eof_value
        except Exception as exn:
            exn.args = (*exn.args, source.get("stream"), url)
            if handler(exn):
                continue
            break


def group_by_keys(
    data: Iterable[dict[str, Any]],
    keys: Callable[[str], tuple[Any, Any]] = base_plus_ext,
    lcase: bool = True,
    suffixes: set[str] | None = None,
    handler: Handler = reraise_exception,
) -> Iterator[dict[str, Any]]:
    """Samples of members that follow one another and have the same key."""
    current: dict[str, Any] | None = None
    for member in data:
        try:
            assert isinstance(member, dict)
            if member == {}:
                if valid_sample(current):
                    yield current  # type: ignore[misc]
                current = None
                continue
            name, content = member["fname"], member["data"]
            prefix, suffix = keys(name)
            if trace:
                print(prefix, suffix, current.keys() if isinstance(current, dict) else None)
            if prefix is None:
                continue
            if lcase:
                suffix = suffix.lower()
            if current is None or prefix != current["__key__"]:
                if valid_sample(current):
                    yield current  # type: ignore[misc]
                current = {"__key__": prefix, "__url__": member["__url__"]}
            if suffix in current:
                raise ValueError(
                    f"{name}: duplicate file name in tar file {suffix} {current.keys()}"
                )
            if suffixes is None or suffix in suffixes:
                current[suffix] = content
            local_path = member.get("__local_path__")
            if local_path is not None:
                current["__local_path__"] = local_path
        except Exception as exn:
            exn.args = (*exn.args, member.get("stream"), member.get("url"))
            if handler(exn):
                continue
            break
    if valid_sample(current):
        yield current  # type: ignore[misc]


def tarfile_samples(
    src: Iterable[dict[str, Any]],
    handler: Handler = reraise_exception,
    select_files: Callable[[str], bool] | None = None,
    rename_files: Callable[[str], str] | None = None,
) -> Iterable[dict[str, Any]]:
    """Samples of shards: what opening, reading and grouping make together."""
    return _reading.read_samples(
        src, _reading.by_gopen, handler, select_files=select_files, rename_files=rename_files
    )


tarfile_to_samples = filters.pipelinefilter(tarfile_samples)
