"""One running program: what is submitted when, and that every end wakes whoever waits."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from rtlang.contract.errors import AbortedError, DeadlineError, EngineDeadError, OverloadError, ParameterError
from rtlang.contract.events import GraphFinished, TextDelta
from rtlang.contract.params import SamplingParams, Usage
from rtlang.contract.request_graph import Generate, Marks, RequestGraph, Text
from rtlang.contract.service.target import GraphRun, Listener
from rtlang.lang.output_types.types import TEXT
from rtlang.lang.sessions.program_options import ProgramOptions
from rtlang.lang.sessions.session import Session
from tests.support.programs.fake_target import FakeRun, FakeTarget, answer

PARAMS = SamplingParams()


def add_gen(session: Session, parent: int | None, name: str = "x") -> int:
    return session.recording.add_generate(parent, name, PARAMS, TEXT)


def test_nothing_is_submitted_before_a_wait_or_the_end(target: FakeTarget) -> None:
    session = Session(target)
    text = session.recording.add_text(None, ("a",))
    node = add_gen(session, text)
    assert target.runs == []
    session.wait((node,))
    assert target.runs[0].is_open
    assert session.recording.text_of(node, 0) == answer("a", "x")
    session.finish()
    session.wait_final()
    assert isinstance(session.final, GraphFinished)
    assert not target.runs[0].is_open


def test_text_behind_the_last_generation_waits_for_the_next_one(target: FakeTarget) -> None:
    session = Session(target, ProgramOptions(passes="fold"))
    first = add_gen(session, None)
    behind = session.recording.add_text(first, ("b",))
    session.wait((first,))
    assert [node.node_id for node in target.runs[0].nodes.values()] == [first]
    more = session.recording.add_text(behind, ("c",))
    second = add_gen(session, more, "y")
    session.recording.add_text(second, ("never needed",))
    session.finish()
    session.wait_final()
    text = Text(more, first, ("bc",), Marks(is_constant=True))
    assert target.runs[0].extensions == [(text, Generate(second, more, "y", PARAMS))]
    assert [node.node_id for node in session.submitted] == [first, more, second]


def test_events_go_on_to_whoever_listens(target: FakeTarget) -> None:
    events: list[Any] = []
    ends: list[int] = []
    session = Session(target, on_event=events.append, on_end=lambda: ends.append(1))
    add_gen(session, None)
    session.finish()
    session.wait_final()
    assert events == target.runs[0].events
    assert isinstance(events[0], TextDelta)
    assert ends == [1]
    assert session.usage == events[-1].usage


def test_the_body_is_said_to_wait_only_when_it_does(target: FakeTarget) -> None:
    waits: list[int] = []
    session = Session(target, on_wait=lambda: waits.append(1))
    target.hold("x")
    node = add_gen(session, None)
    thread = threading.Thread(target=session.wait, args=((node,),))
    thread.start()
    while not waits:
        assert thread.is_alive()
    target.release("x")
    thread.join(60)
    session.wait((node,))
    assert len(waits) == 1


@pytest.mark.parametrize("ending", ["cancel", "die", "expire"])
@pytest.mark.parametrize("is_async", [False, True])
def test_every_end_wakes_whoever_waits(ending: str, is_async: bool, target: FakeTarget) -> None:
    target.hold("x")
    session = Session(target, ProgramOptions.of({"deadline_s": 3600}), is_async=is_async)
    node = add_gen(session, None)

    def wait() -> None:
        if is_async:
            asyncio.run(session.wait_async((node,)))
        else:
            session.wait((node,))

    thread = threading.Thread(target=wait)
    thread.start()
    while not target.runs:
        assert thread.is_alive()
    {"cancel": session.cancel, "die": target.die, "expire": target.expire}[ending]()
    thread.join(60)
    assert not thread.is_alive()
    expected = {"cancel": AbortedError, "die": EngineDeadError, "expire": DeadlineError}[ending]
    assert isinstance(session.final, expected)
    with pytest.raises(expected):
        session.recording.text_of(node, 0)


def test_an_exception_cancels_and_goes_on(target: FakeTarget) -> None:
    target.hold("x")
    session = Session(target)
    add_gen(session, None)
    session.finish()
    with pytest.raises(KeyError), session.ended_by_errors():
        raise KeyError
    assert isinstance(session.final, AbortedError)
    assert target.runs[0].ended.wait(60)
    session.cancel()  # again, to no effect
    assert target.runs[0].was_cancelled


def test_events_after_the_end_are_not_heard(target: FakeTarget) -> None:
    target.hold("x")
    session = Session(target)
    node = add_gen(session, None)
    session.finish()
    session.cancel()
    target.release("x")
    assert target.runs[0].ended.wait(60)
    assert isinstance(session.outcome(node), AbortedError)


def test_a_session_that_was_cancelled_submits_nothing(target: FakeTarget) -> None:
    session = Session(target)
    add_gen(session, None)
    session.cancel()
    session.finish()
    assert target.runs == []


def test_a_full_queue_is_tried_again_as_long_as_it_is_said_to(target: FakeTarget) -> None:
    target.refuse(OverloadError("full", 0.001), OverloadError("full", 0.001))
    patient = Session(target, on_overload=lambda error: True)
    add_gen(patient, None)
    patient.finish()
    patient.wait_final()
    assert isinstance(patient.final, GraphFinished)
    target.refuse(OverloadError("full", 0.001), OverloadError("full", 0.001))
    asked: list[OverloadError] = []
    impatient = Session(target, on_overload=lambda error: not asked.append(error) and len(asked) < 2)  # type: ignore[func-returns-value]
    add_gen(impatient, None)
    impatient.finish()
    assert isinstance(impatient.final, OverloadError)
    assert len(asked) == 2


def test_a_runtime_that_ends_without_all_nodes_leaves_no_one_waiting() -> None:
    class Forgetful:
        graph_id = 1

        def submit(self, graph: RequestGraph, listener: Listener, **options: Any) -> GraphRun:
            listener(GraphFinished(1, {}, Usage()))  # from inside submit, and without the node
            return self

        def extend(self, nodes: Any) -> None: ...

        def close(self) -> None: ...

        def cancel(self) -> None: ...

    session = Session(Forgetful())
    node = add_gen(session, None)
    session.finish()
    session.wait_final()
    with pytest.raises(Exception, match="without a result for node 0"):
        session.recording.text_of(node, 0)


def test_a_closed_event_loop_does_not_stop_the_events(target: FakeTarget) -> None:
    target.hold("x")
    session = Session(target, is_async=True)
    node = add_gen(session, None)

    async def gives_up() -> None:
        task = asyncio.ensure_future(session.wait_async((node,)))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(gives_up())
    target.release("x")
    session.finish()
    session.wait_final()
    assert isinstance(session.final, GraphFinished)


@pytest.mark.parametrize("wrong", [0, -1.0, True, float("nan")])
def test_a_deadline_is_positive(wrong: float, target: FakeTarget) -> None:
    with pytest.raises(ParameterError, match="deadline_s"):
        Session(target, ProgramOptions.of({"deadline_s": wrong}))


def test_a_session_cancelled_while_it_submits_cancels_what_it_submitted() -> None:
    class Slow(FakeTarget):
        def submit(self, *args: Any, **kwargs: Any) -> FakeRun:
            run = super().submit(*args, **kwargs)
            session.cancel()
            return run

    with Slow() as target:
        target.hold("x")
        session = Session(target)
        add_gen(session, None)
        session.finish()
        assert target.runs[0].ended.wait(60)
        assert target.runs[0].was_cancelled
