"""Actions become ready when the last slot that they wait for is there."""

from __future__ import annotations

from rtlang.runtime.nodes.waiting import WaitingActions


def test_an_action_is_ready_once_all_its_slots_are_there() -> None:
    actions, done = WaitingActions(), list[str]()
    actions.add([], lambda: done.append("at once"))
    actions.add([(1, None), (2, 0)], lambda: done.append("both"))
    actions.add([(2, 0)], lambda: done.append("one"))
    assert len(actions.ready) == 1
    actions.release((2, 0))
    actions.release((2, 0))
    assert len(actions.ready) == 2
    actions.release((1, 0))
    assert len(actions.ready) == 2, "a value is there, but its node has not ended"
    actions.release((1, None))
    for waiting in actions.ready:
        waiting.run()
    assert done == ["at once", "one", "both"]
