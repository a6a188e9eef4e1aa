"""Which URLs the engine opens itself, and which the functions of `gopen_schemes` do."""

from __future__ import annotations

import os
import sys
from typing import Any
from urllib.parse import unquote as url2pathname
from urllib.parse import urlparse

from . import utils
from ._store_object import STORE_SCHEMES

# The engine opens them as long as the program has set no function of its own for the scheme.
_OF_ENGINE = {"pipe", "http", "https", "gs", "hf", *STORE_SCHEMES}


def _gopen() -> Any:
    # The name of the module is that of its function in the package.
    return sys.modules[f"{__package__}.gopen"]


def engine_url(url: str) -> tuple[str | None, bool]:
    """What the engine opens for a URL, or None; and whether it can be read only once.

    Raises what gopen() does in secure mode.
    """
    if not isinstance(url, str) or url == "-":
        return None, True
    module = _gopen()
    url = module.rewrite_url(url)
    scheme = urlparse(url).scheme
    if scheme in ("", "file"):
        if utils.enforce_security:
            module.gopen(url)  # refuses
        path = url if scheme == "" else url2pathname(urlparse(url).path)
        return os.path.abspath(path) if path else path, False
    function = module.gopen_schemes.get(scheme)
    own = function is not None and getattr(function, "__module__", "") != module.__name__
    if own or scheme not in _OF_ENGINE or _has_curl_options(scheme):
        return None, True
    if scheme == "pipe":
        if utils.enforce_security:
            module.gopen(url)  # refuses
        return url, True
    return url, False


def _has_curl_options(scheme: str) -> bool:
    """Whether a command would be used that has settings of its own, which the engine lacks."""
    return scheme in os.environ.get("USE_AIS_FOR", "").split(":")


def opened(url: str) -> Any:
    """The stream of a URL that the engine does not open."""
    return _gopen().gopen(url)
