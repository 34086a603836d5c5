"""The size of a fleet from the command line: a fixed one, or bounds with a size at first."""

from __future__ import annotations

import pytest

from rtlang.console.serving import FleetChoice
from rtlang.console.source import CommandError


@pytest.mark.parametrize(
    ("choice", "bounds"),
    [
        (FleetChoice(replicas=3), (3, 3)),
        (FleetChoice(ray="local"), (1, 1)),
        (FleetChoice(min_replicas=2), (2, 2)),
        (FleetChoice(max_replicas=4), (1, 4)),
        (FleetChoice(min_replicas=2, max_replicas=5), (2, 5)),
        (FleetChoice(replicas=3, max_replicas=5), (3, 5)),
        (FleetChoice(replicas=3, min_replicas=2), (2, 3)),
        (FleetChoice(replicas=3, min_replicas=2, max_replicas=5), (2, 5)),
    ],
)
def test_bounds_follow_from_what_is_given(choice: FleetChoice, bounds: tuple[int, int]) -> None:
    assert choice.is_fleet
    assert choice.bounds == bounds


@pytest.mark.parametrize(
    "choice", [FleetChoice(replicas=1, min_replicas=2), FleetChoice(replicas=6, max_replicas=5, min_replicas=2)]
)
def test_a_size_outside_of_the_bounds_is_refused(choice: FleetChoice) -> None:
    with pytest.raises(CommandError, match=r"--replicas [16]: expected 2 "):
        _ = choice.bounds


@pytest.mark.parametrize(
    "choice",
    [
        FleetChoice(replicas=2, prefill_replicas=2),
        FleetChoice(prefill_replicas=1),
        FleetChoice(replicas=3, ray="local", prefill_replicas=1),
    ],
)
def test_some_replica_must_continue_the_prompts_of_others(choice: FleetChoice) -> None:
    assert FleetChoice(replicas=2, prefill_replicas=1).bounds == (2, 2)
    with pytest.raises(CommandError, match=r"--prefill-replicas [12]: expected fewer than all replicas"):
        _ = choice.bounds


def test_nothing_said_is_no_fleet() -> None:
    assert not FleetChoice().is_fleet


def test_spares_make_a_fleet_and_do_not_count_in_its_bounds() -> None:
    assert FleetChoice(spare_replicas=1).is_fleet
    assert FleetChoice(replicas=2, spare_replicas=1).bounds == (2, 2)
    with pytest.raises(CommandError, match="--spare-replicas"):
        _ = FleetChoice(replicas=3, prefill_replicas=1, spare_replicas=1).bounds
