"""Exceptions of listeners and of code that acts for one graph end that graph alone."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rtlang.contract.errors import AbortedError, GraphError, InternalError
from rtlang.contract.events import Event, GraphFailed
from rtlang.contract.params import SamplingParams
from rtlang.contract.process.current_work import CurrentWork
from rtlang.contract.runs.principal import Principal
from rtlang.contract.runs.run_options import RunOptions
from rtlang.engine.requests.request import RequestSpec
from rtlang.runtime.admission import Admission, Share
from rtlang.runtime.graph_run import GraphRun, LocalGraphRun, RuntimeServices, notify
from rtlang.runtime.process.turn_work import TurnWork


class FakeLoop:
    """A loop that runs timed commands on request."""

    def __init__(self) -> None:
        self.commands: list[Any] = []
        self.work = CurrentWork()
        self.turn = TurnWork()

    def clock(self) -> float:
        return 5.0

    def call_at(self, when: float, command: Any) -> SimpleNamespace:
        self.commands.append((when, command))
        return SimpleNamespace(cancel=lambda: self.commands.clear())


def make(listener: Any, deadline_s: float | None = None) -> tuple[GraphRun, FakeLoop, list[int]]:
    loop, ended = FakeLoop(), list[int]()
    runner, no_checker = SimpleNamespace(tokenizer=None, max_model_len=8, num_states=0), cast(Any, None)
    services = RuntimeServices(
        cast(Any, loop), cast(Any, runner), no_checker, is_broken=lambda: False, on_end=ended.append
    )
    run = GraphRun(
        7,
        listener,
        Share(Admission(4)),
        RunOptions(is_open=True, deadline_s=deadline_s, seed=0),
        services,
    )
    return run, loop, ended


def test_notify_reports_a_listener_that_raises(caplog: pytest.LogCaptureFixture) -> None:
    event, received = GraphFailed(7, AbortedError("no")), list[Event]()
    assert notify(received.append, event)
    assert received == [event]

    def leave(event: Event) -> None:
        raise SystemExit(3)

    assert not notify(leave, event)
    assert "graph 7" in caplog.text


def test_an_unexpected_exception_fails_its_graph_once() -> None:
    received: list[Event] = []
    run, _, ended = make(received.append)

    def fail() -> None:
        raise KeyError("x")

    run._guard(lambda: None)
    assert not received
    run._guard(fail)
    (event,) = received
    assert isinstance(event, GraphFailed)
    assert isinstance(event.error, InternalError)
    assert "KeyError" not in event.error.message
    assert isinstance(event.error.__cause__, KeyError)
    assert run.is_ended
    assert ended == [7]
    run._guard(fail)
    run.cancel()
    assert len(received) == 1


def test_a_raising_listener_cancels_its_graph_later() -> None:
    received: list[Event] = []

    def listener(event: Event) -> None:
        received.append(event)
        raise ValueError

    run, loop, ended = make(listener)
    run._on_event(GraphFailed(7, GraphError(None, "nodes", "wrong")))
    assert not run.is_ended
    ((when, command),) = loop.commands
    assert when == 5.0
    command()
    assert run.is_ended
    assert ended == [7]


def test_a_deadline_is_cancelled_with_the_graph() -> None:
    received: list[Event] = []
    run, loop, _ = make(received.append, deadline_s=2.0)
    ((when, _),) = loop.commands
    assert when == 7.0
    run.cancel()
    assert loop.commands == []
    (event,) = received
    assert isinstance(event, GraphFailed)
    assert isinstance(event.error, AbortedError)


def test_many_small_grants_are_one_command() -> None:
    commands: list[Callable[[Any], None]] = []
    granted: list[int] = []
    run = LocalGraphRun(1, cast(Any, None), cast(Any, None), lambda _, act: commands.append(act))
    for _ in range(1000):
        run.grant(1)
    (command,) = commands
    command(SimpleNamespace(grant=granted.append))
    run.grant(0)
    run.grant(7)
    commands[-1](SimpleNamespace(grant=granted.append))
    assert (granted, len(commands)) == ([1000, 7], 2)


@pytest.mark.parametrize(("own", "expected"), [(None, 2), (0, 0), (-4, -3), (9, 5)])
def test_a_generation_has_its_own_priority_within_the_limits_of_its_principal(own: int | None, expected: int) -> None:
    specs: list[RequestSpec] = []
    loop = FakeLoop()
    loop.engine = SimpleNamespace(add=lambda spec, now: specs.append(spec))  # type: ignore[attr-defined]
    runner = SimpleNamespace(tokenizer=None, max_model_len=8, num_states=0)
    services = RuntimeServices(
        cast(Any, loop), cast(Any, runner), cast(Any, None), is_broken=lambda: False, on_end=lambda graph_id: None
    )
    options = RunOptions(priority=2, principal=Principal("p", min_priority=-3, max_priority=5), seed=0)
    run = GraphRun(7, lambda event: None, Share(Admission(4)), options, services)
    run._submit(RequestSpec(prompt_ids=(1,), params=SamplingParams(priority=own), listener=lambda output: None))
    assert [spec.priority for spec in specs] == [expected]
