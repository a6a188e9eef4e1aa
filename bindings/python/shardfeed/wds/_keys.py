"""Stages that choose, rename and combine the fields of samples."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from functools import lru_cache
from io import BytesIO
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from .handlers import reraise_exception

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# What a stage does with a sample follows from the names of its fields: worked out once for each
# set of names, of which so many are remembered.
_worked_out = lru_cache(maxsize=1024)


def getfirst(
    a: dict[str, Any], keys: Any, default: Any = None, missing_is_error: bool = True
) -> Any:
    """The value of the first of these keys that is there; keys: a list, or "a;b"."""
    if isinstance(keys, str):
        keys = keys.split(";")
    for key in keys:
        if key in a:
            return a[key]
    if missing_is_error:
        raise ValueError(f"didn't find {keys} in {list(a.keys())}")
    return default


def parse_field_spec(fields: Any) -> list[list[str]]:
    """The alternatives of each field of "jpg;png cls" or ["jpg;png", "cls"]."""
    if isinstance(fields, str):
        fields = fields.split()
    return [field.split(";") for field in fields]


def _rename(
    data: Iterable[dict[str, Any]],
    handler: Callable[[Exception], bool] = reraise_exception,
    keep: bool = True,
    **kw: str,
) -> Iterator[dict[str, Any]]:
    """Fields under new names: rename(image="jpg;png"). keep: all others stay."""
    specs = {new: old.split(";") for new, old in kw.items()}
    gone = {name for old in specs.values() for name in old}

    @_worked_out
    def sources(names: tuple[str, ...]) -> list[tuple[str, str]]:
        """The new fields, and the old ones that they are."""
        sample = {name: name for name in names}
        renamed = {}
        for new, old in specs.items():
            _check_blanks(kw[new])
            renamed[new] = getfirst(sample, old)
        rest = {name: name for name in names if name not in gone} if keep else {}
        return list({**rest, **renamed}.items())

    for sample in data:
        try:
            renamed = {new: sample[old] for new, old in sources(tuple(sample))}
        except Exception as exn:
            if handler(exn):
                continue
            break
        yield renamed


def _check_blanks(field: Any) -> None:
    assert not isinstance(field, str) or " " not in field, f"{field!r}: a blank in a field name"


def _associate(
    data: Iterable[dict[str, Any]], associator: Any, **kw: Any
) -> Iterator[dict[str, Any]]:
    """Fields of a dict, or of a function, by the key of the sample."""
    find = associator if callable(associator) else lambda key: associator.get(key, {})
    for sample in data:
        sample.update(find(sample["__key__"]))
        yield sample


def _map_dict(
    data: Iterable[dict[str, Any]],
    handler: Callable[[Exception], bool] = reraise_exception,
    **kw: Callable[[Any], Any],
) -> Iterator[dict[str, Any]]:
    """Functions of single fields: map_dict(jpg=augment)."""
    assert kw, "map_dict needs a function; help: map_dict(FIELD=function)"
    functions = list(kw.items())
    for sample in data:
        assert isinstance(sample, dict), f"map_dict of {type(sample)}; help: samples are dicts"
        try:
            for name, function in functions:
                sample[name] = function(sample[name])
        except Exception as exn:
            if handler(exn):
                continue
            break
        yield sample


def _to_tuple(
    data: Iterable[dict[str, Any]],
    *args: Any,
    handler: Callable[[Exception], bool] = reraise_exception,
    missing_is_error: bool = True,
    none_is_error: bool | None = None,
) -> Iterator[tuple[Any, ...]]:
    """Tuples of fields: to_tuple("jpg;png", "cls") or to_tuple("jpg;png cls")."""
    if none_is_error is None:
        none_is_error = missing_is_error
    if len(args) == 1 and isinstance(args[0], str) and " " in args[0]:
        args = tuple(args[0].split())
    fields = [arg.split(";") if isinstance(arg, str) else arg for arg in args]
    getter = _worked_out(lambda names: _getter(names, fields))
    if any(isinstance(arg, str) and " " in arg for arg in args):
        getter = _worked_out(lambda _: None)  # an error of each sample
    for sample in data:
        try:
            get = getter(tuple(sample))
            result = None if get is None else get(sample)
            if result is None or (none_is_error and _has_none(result)):
                result = _tuple_of(sample, fields, args, missing_is_error, none_is_error)
        except Exception as exn:
            if handler(exn):
                continue
            break
        yield result


def _getter(names: tuple[str, ...], fields: list[Any]) -> Callable[[Any], tuple[Any, ...]] | None:
    """What takes the first of the alternatives of each field; None where a field has none."""
    chosen = [next((name for name in field if name in names), None) for field in fields]
    if None in chosen or not chosen:
        return None
    if len(chosen) == 1:
        return lambda sample: (sample[chosen[0]],)
    return itemgetter(*chosen)


def _tuple_of(
    sample: dict[str, Any],
    fields: list[list[str]],
    args: tuple[Any, ...],
    missing_is_error: bool,
    none_is_error: bool,
) -> tuple[Any, ...]:
    values = []
    for arg, field in zip(args, fields):
        _check_blanks(arg)
        values.append(getfirst(sample, field, missing_is_error=missing_is_error))
    result = tuple(values)
    if none_is_error and _has_none(result):
        raise ValueError(f"to_tuple {args} got {sample.keys()}")
    return result


def _has_none(values: Iterable[Any]) -> bool:
    for value in values:  # noqa: SIM110  it is called for each sample
        if value is None:
            return True
    return False


def transform_with(sample: Any, transformers: Any) -> Any:
    """Values with a function each; None is the identity, and so are functions that lack."""
    if not transformers:
        return sample
    assert len(transformers) <= len(sample), (
        f"{len(transformers)} functions for {len(sample)} values; help: one for each, or fewer"
    )
    result = list(sample)
    for i, function in enumerate(transformers):
        if function is not None:
            result[i] = function(result[i])
    return result


def _map_tuple(
    data: Iterable[Any],
    *args: Callable[[Any], Any] | None,
    handler: Callable[[Exception], bool] = reraise_exception,
) -> Iterator[tuple[Any, ...]]:
    """Functions of the positions of tuples: map_tuple(augment, None)."""
    functions = [(i, f) for i, f in enumerate(args) if f is not None]
    for sample in data:
        assert isinstance(sample, (list, tuple)), (
            f"map_tuple of {type(sample)}; help: to_tuple() makes tuples"
        )
        try:
            values = list(sample)
            width = len(values)
            for i, function in functions:
                if i < width:
                    values[i] = function(values[i])
            result = tuple(values)
        except Exception as exn:
            if handler(exn):
                continue
            break
        yield result


def _extract_keys(
    source: Iterable[dict[str, Any]],
    *patterns: Any,
    duplicate_is_error: bool = True,
    ignore_missing: bool = False,
) -> Iterator[tuple[Any, ...]]:
    """Tuples of the fields that match shell patterns."""

    @_worked_out
    def chosen(names: tuple[str, ...]) -> list[str]:
        keys = dict.fromkeys(names).keys()
        result = []
        for pattern in patterns:
            alternatives = pattern.split(";") if isinstance(pattern, str) else pattern
            matches = [
                name
                for name in names
                if any(fnmatch("." + name, p) or fnmatch(name, p) for p in alternatives)
            ]
            if not matches:
                if ignore_missing:
                    continue
                raise ValueError(f"Cannot find {alternatives} in sample keys {keys}.")
            if len(matches) > 1 and duplicate_is_error:
                raise ValueError(f"Multiple sample keys {keys} match {alternatives}.")
            result.append(matches[0])
        return result

    for sample in source:
        yield tuple([sample[name] for name in chosen(tuple(sample))])


def _rename_keys(
    source: Iterable[dict[str, Any]],
    *args: tuple[str, str],
    keep_unselected: bool = False,
    must_match: bool = True,
    duplicate_is_error: bool = True,
    **kw: str,
) -> Iterator[dict[str, Any]]:
    """Fields that match shell patterns under new names; later rules win."""
    rules = [(pattern, new) for new, pattern in [*args, *kw.items()]]

    @_worked_out
    def sources(names: tuple[str, ...]) -> list[tuple[str, str]]:
        """The new fields, and the old ones that they are."""
        keys = dict.fromkeys(names).keys()
        renamed: dict[str, str] = {}
        matched = {pattern: False for pattern, _ in rules}
        for path in names:
            name = os.path.basename(path).lower()
            new_name = None
            for pattern, output in rules[::-1]:
                if fnmatch(name, pattern):
                    matched[pattern] = True
                    new_name = output
                    break
            if new_name is None:
                if keep_unselected:
                    renamed[path] = path
                continue
            if new_name in renamed:
                if duplicate_is_error:
                    raise ValueError(f"Duplicate value in sample {keys} after rename.")
                continue
            renamed[new_name] = path
        if must_match and not all(matched.values()):
            raise ValueError(f"Not all patterns ({matched}) matched sample keys ({keys}).")
        return list(renamed.items())

    for sample in source:
        yield {new: sample[path] for new, path in sources(tuple(sample))}


def decode_bin(stream: Any) -> bytes:
    """The bytes of a field."""
    data: bytes = stream.read()
    return data


def decode_text(stream: Any) -> str:
    """The text of a field."""
    text: str = stream.read().decode("utf-8")
    return text


def decode_pickle(stream: Any) -> Any:
    """What was pickled into a field; refused in secure mode."""
    from .autodecode import unpickle_loads

    return unpickle_loads(stream.read())


default_decoders = [
    ("*.bin", decode_bin),
    ("*.txt", decode_text),
    ("*.pyd", decode_pickle),
]


def find_decoder(decoders: list[tuple[str, Any]], path: str) -> Any:
    """The decoder of a field: that of the last pattern that matches; None where there is none."""
    name = os.path.basename(path).lower()
    if name.startswith("__"):
        return lambda data: data
    for pattern, function in decoders[::-1]:
        if fnmatch(name, pattern) or fnmatch("." + name, pattern):
            return function
    return None


def _xdecode(
    source: Iterable[dict[str, Any]],
    *args: tuple[str, Any],
    must_decode: bool = True,
    defaults: list[tuple[str, Any]] = default_decoders,
    **kw: Any,
) -> Iterator[dict[str, Any]]:
    """Fields decoded by shell patterns: xdecode(("*.jpg", read), png=read)."""
    decoders = [*defaults, *args, *(("*." + name, function) for name, function in kw.items())]

    @_worked_out
    def functions(names: tuple[str, ...]) -> list[tuple[str, Any]]:
        """The decoder of each field: False keeps it, None says that there is none."""
        return [
            (path, False if path.startswith("__") else find_decoder(decoders, path))
            for path in names
        ]

    for sample in source:
        result: dict[str, Any] = {}
        for path, decoder in functions(tuple(sample)):
            data = sample[path]
            if decoder is False:
                result[path] = data
            elif decoder is not None:
                result[path] = decoder(BytesIO(data) if isinstance(data, bytes) else data)
            elif must_decode:
                raise ValueError(f"No decoder found for {path}.")
            else:
                result[path] = data
        yield result
