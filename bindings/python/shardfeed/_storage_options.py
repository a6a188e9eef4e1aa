"""storage_options, as users of fsspec and pandas write them, as options of the library."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ._errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    Found = dict[str, object]

# How fsspec reads and lists, which is not how this library does.
_NO_MATTER = frozenset(
    [
        "asynchronous",
        "block_size",
        "cache_regions",
        "cache_type",
        "default_block_size",
        "default_cache_type",
        "default_fill_cache",
        "skip_instance_cache",
        "use_listings_cache",
    ]
)

# Options by the names of s3fs, and of the settings of aws that others take.
_S3 = {
    "key": "s3_access_key",
    "secret": "s3_secret_key",
    "token": "s3_session_token",
    "anon": "s3_anonymous",
    "profile": "s3_profile",
    "requester_pays": "s3_requester_pays",
    "endpoint_url": "s3_endpoint",
    "region": "s3_region",
    "region_name": "s3_region",
    "aws_access_key_id": "s3_access_key",
    "aws_secret_access_key": "s3_secret_key",
    "aws_session_token": "s3_session_token",
    "aws_region": "s3_region",
    "aws_endpoint_url": "s3_endpoint",
}
_AZURE = {
    "account_name": "az_account",
    "account_key": "az_account_key",
    "sas_token": "az_sas",
    "connection_string": "az_connection_string",
    "anon": "az_anonymous",
}
_NAMES = {
    "s3": _S3,
    "gs": {"endpoint_url": "gs_endpoint"},
    "az": _AZURE,
    "hf": {"token": "hf_token", "endpoint": "hf_endpoint"},
    "ais": {"endpoint": "ais_endpoint", "token": "ais_token", "provider": "ais_provider"},
    "http": {"headers": "headers"},
}
_SAME_AS = {"https": "http", "abfs": "az", "abfss": "az"}


def from_storage_options(given: object, urls: Iterable[str]) -> Found:
    """The options that `given` means for these URLs.

    UsageError for what no option means, or for URLs of several stores; then `given` has a mapping
    for each scheme: {"s3": {...}, "gs": {...}}.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"storage_options: a mapping expected, not {type(given).__name__}")
    if given and all(
        isinstance(value, Mapping) and _store(scheme) in _NAMES for scheme, value in given.items()
    ):
        return {
            name: value
            for scheme, options in given.items()
            for name, value in _of_store(_store(scheme), options).items()
        }
    stores = {_store(url.partition("://")[0]) for url in urls if "://" in url}
    known = stores & _NAMES.keys()
    if len(known) != 1 or stores != known:
        raise UsageError(
            "storage_options are for the URLs of one store; help: give a mapping for each scheme, "
            'such as {"s3": {"anon": True}}, or an opener with its own'
        )
    return _of_store(known.pop(), given)


def _store(scheme: str) -> str:
    scheme = scheme.lower()
    return _SAME_AS.get(scheme, scheme)


def _of_store(store: str, given: Mapping[str, Any]) -> Found:
    found: Found = {}
    for name, value in given.items():
        if name in _NO_MATTER or value is None:
            continue
        if name in _NAMES[store]:
            found[_NAMES[store][name]] = value
        elif (store, name) in _OTHERS:
            found.update(_OTHERS[store, name](value))
        else:
            raise UsageError(
                f'storage_options: nothing here means "{name}" of {store}://; help: '
                f"{', '.join(sorted(_all_names(store)))} are known, and shardfeed.options() lists "
                "the options themselves"
            )
    return found


def _all_names(store: str) -> set[str]:
    return {*_NAMES[store], *(name for of, name in _OTHERS if of == store)}


def _nested(store: str) -> Callable[[Any], Found]:
    """Settings within settings, such as client_kwargs of s3fs."""
    return lambda value: _of_store(store, value)


def _addressing(value: Mapping[str, Any]) -> Found:
    style = value.get("s3", {}).get("addressing_style")
    return {"s3_addressing": style} if style else {}


def _token_of_google(value: object) -> Found:
    """Gcsfs takes many kinds of things as a token."""
    if value == "google_default":
        return {}
    if value == "anon":
        return {"gs_anonymous": True}
    if isinstance(value, (str, os.PathLike)) and os.fspath(value).endswith(".json"):
        return {"gs_credentials": value}
    raise UsageError(
        'storage_options: token of gs:// is "anon", "google_default" or the path of a .json file; '
        "help: give an access token as gs_token"
    )


def _payer_of_google(value: object) -> Found:
    if isinstance(value, bool):
        if not value:
            return {}
        raise UsageError(
            "storage_options: requester_pays of gs:// is a project; help: name the one that pays"
        )
    return {"gs_user_project": value}


_OTHERS: dict[tuple[str, str], Callable[[Any], Found]] = {
    ("s3", "client_kwargs"): _nested("s3"),
    ("s3", "config_kwargs"): _addressing,
    ("gs", "token"): _token_of_google,
    ("gs", "requester_pays"): _payer_of_google,
    ("gs", "project"): lambda _: {},  # of new buckets
    ("http", "client_kwargs"): _nested("http"),
}
