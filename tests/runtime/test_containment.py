"""Whatever is raised for one graph ends that graph alone."""

from __future__ import annotations

from typing import Any, cast

import pytest

from rtlang.contract.errors import AbortedError, RequestError
from rtlang.contract.events import Event, GraphFailed
from rtlang.runtime.containment import contained, tell
from rtlang.runtime.graph_state import GraphExecution


class State:
    graph_id = 7

    def __init__(self) -> None:
        self.errors: list[Any] = []

    def fail(self, error: Any) -> None:
        self.errors.append(error)


def test_a_listener_is_told_and_may_raise_whatever_it_likes(caplog: pytest.LogCaptureFixture) -> None:
    event, told = GraphFailed(7, AbortedError("no")), list[Event]()
    assert tell(told.append, event)
    assert told == [event]

    def leave(event: Event) -> None:
        raise SystemExit(3)

    assert not tell(leave, event)
    assert "graph 7" in caplog.text


def test_an_exception_fails_its_graph() -> None:
    state = State()
    contained(cast(GraphExecution, state), lambda: None)
    assert not state.errors

    def fail() -> None:
        raise KeyError("x")

    contained(cast(GraphExecution, state), fail)
    (error,) = state.errors
    assert isinstance(error, RequestError)
    assert "KeyError" in error.message
