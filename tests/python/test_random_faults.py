"""A sample of the runs of tests/faults/run.sh: each kind of fault ten times, by one seed."""

from __future__ import annotations

from bad_links import INSTALLED
from random_faults import KINDS, LINKS, campaign


def test_complete_or_the_right_error() -> None:
    kinds = {*KINDS, *(LINKS if INSTALLED else ())}
    outcomes = campaign(10 * len(kinds), seed=1)
    assert sum(outcomes.values()) == 10 * len(kinds)
    assert {kind for kind, _ in outcomes} == kinds
    names = {name for _, name in outcomes}
    assert {"complete", "AUTH", "CHANGED", "NET_PERMANENT", "NET_TRANSIENT", "THROTTLED"} <= names
