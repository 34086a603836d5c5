"""A control node runs its first iteration from where its parent ended."""

from __future__ import annotations

from rtlang.runtime.nodes.controls import RunningControl


def test_a_control_begins_with_its_first_iteration() -> None:
    control = RunningControl(2.5, 7)
    assert (control.started, control.entry, control.iteration) == (2.5, 7, 0)
