"""The index file of a data set: JSON that lists its shards."""

from __future__ import annotations

import io
import json
import os
import tempfile
from typing import Any
from urllib.parse import urlparse, urlunparse

from .wids_dl import download_and_open, local_path


def urldir(url: str) -> str:
    """A URL without the last part of its path."""
    parsed = urlparse(url)
    return parsed._replace(path=os.path.dirname(parsed.path)).geturl()


def urlmerge(base: str, url: str) -> str:
    """A URL as seen from `base`: what it lacks of scheme, host and folder comes from there."""
    if url.startswith("pipe:"):
        return url
    above, parsed = urlparse(base), urlparse(url)
    path = parsed.path
    if not path.startswith("/"):
        path = os.path.normpath(os.path.join(above.path, path))
    return urlunparse(
        parsed._replace(
            scheme=parsed.scheme or above.scheme, netloc=parsed.netloc or above.netloc, path=path
        )
    )


def check_shards(l: Any) -> list[dict[str, Any]]:  # noqa: E741  # the name that programs know
    """The list, when it is one of dicts with url and nsamples."""
    assert isinstance(l, list), f"shardlist is {type(l)}; help: a list of dicts"
    for shard in l:
        assert isinstance(shard, dict), f"{shard!r} in shardlist; help: a dict"
        for name in ("url", "nsamples"):
            assert name in shard, f"{shard!r} in shardlist has no {name!r}"
    return l


def set_all(l: list[dict[str, Any]], k: str, v: Any) -> None:  # noqa: E741
    """Sets a key in all dicts that do not have it, unless the value is None."""
    if v is not None:
        for shard in l:
            shard.setdefault(k, v)


def load_remote_dsdesc_raw(source: Any) -> dict[str, Any]:
    """The JSON of an index file: of a path, URL or open file."""
    if isinstance(source, (str, os.PathLike)):
        url = os.fspath(source)
        if urlparse(url).scheme in ("", "file"):
            with open(local_path(url), encoding="utf-8") as stream:
                return _loads(stream.read(), url)
        with tempfile.TemporaryDirectory() as folder:
            file = download_and_open(url, os.path.join(folder, "dataset.json"))
            with file:
                return _loads(file.read(), url)
    if not isinstance(source, io.IOBase) and not hasattr(source, "read"):
        raise TypeError(f"{type(source)} is no index; help: give a path, URL or open file")
    return _loads(source.read(), str(source))


def _loads(text: str | bytes, name: str) -> dict[str, Any]:
    try:
        loaded: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise ValueError(
            f"{name} is no index: {error}; help: make one with python -m shardfeed.wids create"
        ) from error
    return loaded


def rebase_shardlist(shardlist: list[dict[str, Any]], base: str | None) -> list[dict[str, Any]]:
    """The shards, whose URLs are then as seen from `base`."""
    if base is not None:
        for shard in shardlist:
            shard["url"] = urlmerge(base, shard["url"])
    return shardlist


def resolve_dsdesc(
    dsdesc: dict[str, Any], *, options: dict[str, Any] | None = None, base: str | None = None
) -> dict[str, Any]:
    """An index with the shards of all its parts in its own list."""
    assert isinstance(dsdesc, dict), f"an index is a JSON object, not {type(dsdesc)}"
    dsdesc = {**dsdesc, **(options or {})}
    shardlist = rebase_shardlist(check_shards(dsdesc.get("shardlist", [])), base)
    set_all(shardlist, "weight", dsdesc.get("weight"))
    set_all(shardlist, "name", dsdesc.get("name"))
    assert "wids_version" in dsdesc, (
        "No wids_version in dataset description; help: make the index with python -m "
        "shardfeed.wids create"
    )
    assert dsdesc["wids_version"] == 1, (
        f"Unknown wids_version {dsdesc['wids_version']!r}; help: 1 is known"
    )
    for component in dsdesc.get("datasets", []):
        weight, source_url = component.get("weight"), component.get("source_url")
        if source_url is not None:
            component = load_remote_dsdesc_raw(source_url)
        assert "source_url" not in component, (
            f"double indirection in dataset description: {source_url} names another index; help: "
            "name that one here"
        )
        assert "shardlist" in component, f"no shardlist in dataset description {source_url or ''}"
        below = component.get("base", urldir(source_url) if source_url else None)
        shards = rebase_shardlist(check_shards(component["shardlist"]), below)
        set_all(shards, "weight", weight)
        set_all(shards, "source_url", source_url)
        set_all(shards, "dataset", component.get("name"))
        shardlist.extend(shards)
    assert len(shardlist) > 0, "No shards found; help: the index has neither shardlist nor datasets"
    dsdesc["shardlist"] = shardlist
    return dsdesc


def load_dsdesc_and_resolve(
    source: Any, *, options: dict[str, Any] | None = None, base: str | None = None
) -> dict[str, Any]:
    """The index of a path, URL or open file, with the shards of all its parts."""
    return resolve_dsdesc(load_remote_dsdesc_raw(source), base=base, options=options)
