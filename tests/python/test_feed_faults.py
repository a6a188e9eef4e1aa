"""A few of the kills of tests/faults/kill_feeds.sh, and each of its bad links once."""

from __future__ import annotations

import pytest
import shardfeed

if shardfeed.features()["feed"] is None:
    pytest.skip("this build has no feed", allow_module_level=True)

from feed_faults import LINKS, kill_campaign, link_campaign


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_kills_change_nothing() -> None:
    killed = kill_campaign(10, seed=3)
    assert killed["servers"] + killed["consumers"] == 10
    assert killed["servers"] > 2
    assert killed["consumers"] > 1


def test_bad_links_change_nothing() -> None:
    assert link_campaign(1, seed=3) == len(LINKS)
