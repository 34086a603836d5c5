"""The slots of one request: which one a row writes, and the way back."""

from __future__ import annotations

import pytest

from rtlang.engine.requests.held_states import HeldStates


def test_one_slot_is_written_in_place() -> None:
    held = HeldStates((3,), None, 0)
    assert held.target == 3
    held.source = 3
    assert held.target == 3


def test_two_slots_are_written_in_turn_and_a_checkpoint_never() -> None:
    held = HeldStates((3, 4), 7, 12)
    written = []
    for _ in range(4):
        held.source = held.target
        written.append(held.source)
    assert written == [3, 4, 3, 4]


def test_the_row_launched_last_can_be_undone_once() -> None:
    held = HeldStates((3, 4), 4, 13, before=3, num_before=12, has_before=True)
    held.undo()
    assert (held.source, held.num_kv_tokens, held.target) == (3, 12, 4)
    with pytest.raises(AssertionError):
        held.undo()
