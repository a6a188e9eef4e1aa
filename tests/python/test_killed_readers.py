"""A few of the kills of tests/faults/kill_cache.sh."""

from __future__ import annotations

from pathlib import Path

import pytest
from http_servers import Nginx
from killed_readers import campaign, write_shards


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_kill_leaves_a_cache_that_works(tmp_path: Path) -> None:
    server = Nginx(tmp_path)
    try:
        write_shards(server.root)
        campaign(server, tmp_path, 2, seed=1)
    finally:
        server.stop()
