"""What processes of tests do that are spawned: in a file that imports no more than they need."""

from __future__ import annotations

import contextlib
import io
import os
from typing import Any


def downloaded_size(arguments: tuple[str, str]) -> int:
    """The bytes of a shard in a cache."""
    from shardfeed.wds import cache

    folder, url = arguments
    return os.path.getsize(cache.FileCache(folder).get_file(url))


def last_key(arguments: tuple[str, str]) -> Any:
    """The key of the last of five samples of a shard that wids downloads."""
    import shardfeed.wids

    url, folder = arguments
    with contextlib.redirect_stderr(io.StringIO()):
        data = shardfeed.wids.ShardListDataset([(url, 5)], transformations=[], cache_dir=folder)
    return data[4]["__key__"]
