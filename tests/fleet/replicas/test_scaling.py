"""The size of a fleet follows the tokens that wait in it, within bounds, and rests under a steady load."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtlang.contract.errors import ConfigError
from rtlang.fleet.replicas.scaling import Scaling, ScalingState, wanted_replicas

SCALING = Scaling(2, 8, queue_tokens=1000.0, up_after_s=3.0, down_after_s=60.0)
RESTS = ScalingState()


@pytest.mark.parametrize(
    ("ready", "starting", "waiting", "since_s", "wanted"),
    [
        (0, 0, 0.0, 0.0, 2),  # never below the minimum
        (1, 0, 0.0, 0.0, 2),
        (9, 0, 9e9, 0.0, 8),  # nor above the maximum, at once
        (4, 0, 4001.0, 2.9, 4),  # a reason to grow that has not lasted
        (4, 0, 4001.0, 3.0, 5),
        (4, 0, 6500.0, 3.0, 7),  # as many as the queue needs
        (3, 0, 1e6, 3.0, 6),  # at most twice as many at once
        (8, 0, 1e6, 9.0, 8),
        (2, 2, 4000.0, 9.0, 4),  # those that start count
        (4, 0, 4000.0, 99.0, 4),  # between the bounds
        (4, 0, 1501.0, 99.0, 4),
        (4, 0, 1500.0, 59.9, 4),
        (4, 0, 1500.0, 60.0, 3),
        (8, 0, 0.0, 60.0, 7),  # one at a time
        (3, 1, 0.0, 99.0, 3),  # one that starts may be needless by now
        (2, 0, 0.0, 99.0, 2),
    ],
)
def test_table_of_decisions(ready: int, starting: int, waiting: float, since_s: float, wanted: int) -> None:
    facts = {"num_ready": ready, "num_starting": starting, "waiting": waiting}
    first, state = wanted_replicas(SCALING, RESTS, now=100.0, **facts)
    if since_s:
        first, state = wanted_replicas(SCALING, state, now=100.0 + since_s, **facts)
    assert first == wanted


def test_a_short_pause_of_the_reason_begins_anew() -> None:
    state = RESTS
    sizes = []
    for now, waiting in enumerate([5000.0, 5000.0, 3000.0, 5000.0, 5000.0, 5000.0, 5000.0]):
        size, state = wanted_replicas(SCALING, state, now=now, num_ready=4, num_starting=0, waiting=waiting)
        sizes.append(size)
    assert sizes == [4, 4, 4, 4, 4, 4, 5]


@given(waiting=st.floats(0, 20_000), first=st.integers(1, 12))
def test_a_steady_load_changes_the_size_in_one_direction_and_then_rests(waiting: float, first: int) -> None:
    state, size, sizes = RESTS, first, []
    for step in range(100):
        size, state = wanted_replicas(SCALING, state, now=10.0 * step, num_ready=size, num_starting=0, waiting=waiting)
        sizes.append(size)
    assert sizes in (sorted(sizes), sorted(sizes, reverse=True))
    assert len(set(sizes[-20:])) == 1
    assert size >= min(8, math.ceil(waiting / 1000.0))


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("min_replicas", {"min_replicas": 0}),
        ("max_replicas", {"min_replicas": 3, "max_replicas": 2}),
        ("queue_tokens", {"queue_tokens": 0.0}),
        ("down_after_s", {"down_after_s": math.nan}),
    ],
)
def test_wrong_bounds_are_refused(field: str, fields: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=field):
        Scaling(**fields)  # type: ignore[arg-type]
