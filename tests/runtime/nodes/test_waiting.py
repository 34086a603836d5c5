"""Actions become ready when the last slot that they wait for is there."""

from __future__ import annotations

from rtlang.contract.graph import Generate, Text
from rtlang.contract.params import SamplingParams
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


def test_generations_may_come_after_everything_else_that_is_ready() -> None:
    actions, done = WaitingActions(generations_last=True), list[int]()
    for number in range(4):
        node = Generate(number, None, None, SamplingParams(n=3)) if number % 2 == 0 else Text(number, None, ("a",))
        actions.add([], lambda number=number: done.append(number), node)  # type: ignore[misc]
    assert actions.num_ready_requests == 6
    while actions.is_ready:
        actions.take()()
    assert done == [1, 3, 0, 2]
    assert actions.num_ready_requests == 0
