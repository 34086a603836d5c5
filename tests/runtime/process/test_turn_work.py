"""The work of a turn is bounded by its price."""

from __future__ import annotations

from rtlang.runtime.process.turn_work import TURN_WORK_US, TurnWork


def test_the_first_work_of_a_turn_always_has_room_and_more_only_within_the_limit() -> None:
    work = TurnWork()
    assert work.has_room(10 * TURN_WORK_US)
    work.spend(TURN_WORK_US - 10)
    assert work.has_room(10)
    assert not work.has_room(11)
    work.spend(10)
    assert not work.has_room(1)
    work.begin()
    assert work.has_room(TURN_WORK_US)
