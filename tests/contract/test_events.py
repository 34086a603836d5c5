"""Events: plain data that cannot be changed on its way, and that compares by what it says."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any, get_args

import pytest

from rtlang.contract.errors import ConstraintError
from rtlang.contract.events import (
    CallRequested,
    Completion,
    CreditSpent,
    Event,
    GraphFailed,
    GraphFinished,
    NodeFailed,
    NodeFinished,
    NodeStarted,
    PromptComputed,
    TextDelta,
    Timing,
    TokenLogprob,
    ValueKnown,
)
from rtlang.contract.params import FinishReason, Usage

COMPLETION = Completion("text", (1, 2), FinishReason.STOP, "\n", (TokenLogprob(1, -0.5, ((1, -0.5), (3, -1.5))),))
ERROR = ConstraintError("bad")
EVENTS: list[Any] = [
    TextDelta(1, 2, 0, "te", (1,)),
    NodeFinished(1, 2, "name", (COMPLETION,), Usage(3, 2, 1), Timing(0.1, 0.2, 0.3), (-1.0,), (1.0,)),
    CallRequested(1, 2, "search", ("a", 3)),
    NodeFailed(1, 2, None, ERROR),
    GraphFinished(1, {"name": "text", "many": ["a", "b"]}, Usage(3, 2, 1), (2,)),
    GraphFailed(1, ERROR),
    NodeStarted(1, 2, "name"),
    PromptComputed(1, 2, 12, 8),
    ValueKnown(1, 2, ["a", 3]),
    CreditSpent(1, 2),
]


def test_there_is_a_sample_of_every_event() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(Event))


@pytest.mark.parametrize("event", [*EVENTS, COMPLETION, Timing()], ids=lambda event: type(event).__name__)
def test_events_are_frozen_and_compare_by_value(event: Any) -> None:
    first = dataclasses.fields(event)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(event, first, None)
    assert copy.copy(event) == event
    assert dataclasses.replace(event) == event
    assert dataclasses.replace(event, **{first: None}) != event
    with pytest.raises((AttributeError, TypeError)):
        event.extra = 1


@pytest.mark.parametrize("event", EVENTS[:3] + EVENTS[4:5], ids=lambda event: type(event).__name__)
def test_events_without_errors_can_be_handed_to_another_process(event: Any) -> None:
    assert pickle.loads(pickle.dumps(event)) == event
