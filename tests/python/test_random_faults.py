"""A sample of the runs of tests/faults/run.sh: each kind of fault ten times, by one seed."""

from __future__ import annotations

from random_faults import KINDS, campaign


def test_complete_or_the_right_error() -> None:
    outcomes = campaign(10 * len(KINDS), seed=1)
    assert sum(outcomes.values()) == 10 * len(KINDS)
    names = {name for _, name in outcomes}
    assert {"complete", "AUTH", "CHANGED", "NET_PERMANENT", "NET_TRANSIENT", "THROTTLED"} <= names
