"""Events of a running program, for plain code and for coroutines."""

from __future__ import annotations

import asyncio
import datetime
import signal
import threading
from dataclasses import dataclass
from typing import Any

import pytest

import rtlang as rt
from rtlang.lang.sessions.interruptible_condition import InterruptibleCondition
from tests.support.programs.fake_target import Call, FakeTarget, answer, by_name, default_script
from tests.support.waiting import wait_until


@rt.program
def two(s: Any) -> Any:
    s += "a" + rt.gen("first") + rt.gen("second", n=2)
    return s["first"]


@rt.program
def breaking(s: Any) -> Any:
    s += "a" + rt.gen("first")
    s += str(s["first"]) + rt.gen("second")
    return s["second"]


@rt.program
async def awaiting(s: Any) -> Any:
    s += "a" + rt.gen("first")
    s += str(await s["first"]) + rt.gen("second")
    return s["second"]


PROGRAMS = [two, breaking, awaiting]


def collect(program: rt.Program, *, is_async: bool, **options: Any) -> list[Any]:
    async def listen() -> list[Any]:
        return [event async for event in program.stream(**options)]

    return asyncio.run(listen()) if is_async else list(program.stream(**options))


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_pieces_of_each_variable_make_its_text(program: rt.Program, is_async: bool, target: FakeTarget) -> None:
    events = collect(program, is_async=is_async)
    end = events[-1]
    assert isinstance(end, rt.EndEvent)
    assert end.result.error is None
    values = [event for event in events if isinstance(event, rt.ValueEvent)]
    assert {event.name for event in values} == {"first", "second"}
    for value in values:
        pieces = [
            event
            for event in events[: events.index(value)]
            if isinstance(event, rt.TextEvent) and (event.node_id, event.choice) == (value.node_id, value.choice)
        ]
        assert len(pieces) > 1
        assert "".join(piece.text for piece in pieces) == value.text == value.value
        assert {piece.name for piece in pieces} == {value.name}
    assert end.result.value == program.run().value


def test_values_are_parsed_and_have_meta(target: FakeTarget) -> None:
    target.script = by_name({"age": "42", "colour": "red"})

    @rt.program
    def typed(s: Any) -> None:
        s += rt.gen("age", type=int) + rt.select("colour", ["red", "blue"])

    age, colour = (event for event in typed.stream() if isinstance(event, rt.ValueEvent))
    assert (age.value, age.text, age.meta.finish_reason) == (42, "42", rt.FinishReason.STOP)
    assert set(colour.meta.probabilities or {}) == {"red", "blue"}


def test_text_reaches_the_reader_before_the_program_is_done(target: FakeTarget) -> None:
    target.hold("second")
    stream = breaking.stream()
    seen = ""
    for event in stream:
        if isinstance(event, rt.ValueEvent):
            break
        assert isinstance(event, rt.TextEvent)
        seen += event.text
    assert seen == answer("a", "first")
    target.release("second")
    assert stream.result()["first"] == seen


def test_the_text_of_one_variable_can_be_read_alone(target: FakeTarget) -> None:
    first = answer("a", "first")
    assert "".join(breaking.stream().text("second")) == answer(f"a{first}{first}", "second")

    async def listen() -> str:
        return "".join([piece async for piece in awaiting.stream().atext("first")])

    assert asyncio.run(listen()) == first


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_failed_node_is_an_event_and_then_ends_the_iteration(
    program: rt.Program, is_async: bool, target: FakeTarget
) -> None:
    target.script = by_name({"first": rt.ConstraintError("bad", "/x")})
    with pytest.raises(rt.ConstraintError):
        collect(program, is_async=is_async)
    events = collect(program, is_async=is_async, on_error="result")
    errors = [event for event in events if isinstance(event, rt.ErrorEvent)]
    assert {event.name for event in errors} >= {"first"}
    assert all(isinstance(event.error, rt.ConstraintError) for event in errors)
    assert isinstance(events[-1], rt.EndEvent)
    assert isinstance(events[-1].result.error, rt.ConstraintError)


def test_a_value_that_does_not_parse_is_an_error_event(target: FakeTarget) -> None:
    target.script = by_name({"age": "old"})

    @rt.program
    def typed(s: Any) -> None:
        s += rt.gen("age", type=int)

    *_, error, end = typed.stream(on_error="result")
    assert isinstance(error, rt.ErrorEvent)
    assert isinstance(error.error, rt.ValueParseError)
    assert isinstance(end, rt.EndEvent)
    assert isinstance(end.result.error, rt.ValueParseError)


@pytest.mark.parametrize("is_async", [False, True])
def test_an_exception_of_the_body_ends_the_iteration(is_async: bool, target: FakeTarget) -> None:
    @rt.program
    def plain(s: Any) -> None:
        s += rt.gen("x")
        str(s["x"])
        raise ZeroDivisionError

    @rt.program
    async def coroutine(s: Any) -> None:
        s += rt.gen("x")
        await s["x"]
        raise ZeroDivisionError

    for program in (plain, coroutine):
        with pytest.raises(ZeroDivisionError):
            collect(program, is_async=is_async)
        assert isinstance(collect(program, is_async=is_async, on_error="result")[-1].result.error, ZeroDivisionError)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("is_async", [False, True])
def test_closing_cancels_what_still_runs(program: rt.Program, is_async: bool, target: FakeTarget) -> None:
    target.hold("second")

    def plain() -> None:
        with program.stream() as stream:
            next(iter(stream))

    async def coroutine() -> None:
        async with program.stream() as stream:
            await stream.__anext__()

    if is_async:
        asyncio.run(coroutine())
    else:
        plain()
    assert target.runs[0].ended.wait(60)
    assert target.runs[0].was_cancelled


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_runtime_that_dies_ends_the_iteration(program: rt.Program, is_async: bool, target: FakeTarget) -> None:
    def dies(call: Call) -> str:
        target.die()
        return default_script(call)

    target.script = dies
    target.hold("second")
    with pytest.raises(rt.EngineDeadError):
        collect(program, is_async=is_async)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_silent_runtime_is_left_at_the_deadline(program: rt.Program, is_async: bool, target: FakeTarget) -> None:
    target.hold("first")
    with pytest.raises(rt.DeadlineError):
        collect(program, is_async=is_async, deadline_s=0.02)


def test_the_result_can_be_had_without_the_events(target: FakeTarget) -> None:
    assert two.stream().result().value == answer("a", "first")

    async def listen() -> Any:
        return (await awaiting.stream().aresult())["first"]

    assert asyncio.run(listen()) == answer("a", "first")


def test_a_straight_program_holds_no_thread_while_it_streams(target: FakeTarget) -> None:
    target.hold("first")
    streams = [two.stream() for _ in range(10)]
    for thread in threading.enumerate():
        if thread.name == "rtlang-stream":
            thread.join(60)
    assert not [thread for thread in threading.enumerate() if thread.name == "rtlang-stream"]
    target.release("first")
    assert {stream.result().value for stream in streams} == {answer("a", "first")}


def test_iterating_again_after_the_end_gives_nothing(target: FakeTarget) -> None:
    stream = two.stream()
    assert isinstance(list(stream)[-1], rt.EndEvent)
    assert list(stream) == []
    assert stream.result().error is None


def test_forks_with_one_name_differ_in_their_node(target: FakeTarget) -> None:
    @rt.program
    def forked(s: Any) -> None:
        forks = s.fork(3)
        forks += lambda index: rt.text(index) + rt.gen("x")

    values = [event for event in forked.stream() if isinstance(event, rt.ValueEvent)]
    assert {event.value for event in values} == {answer(str(index), "x") for index in range(3)}
    assert len({event.node_id for event in values}) == 3


def test_a_program_without_generations_only_ends(target: FakeTarget) -> None:
    @rt.program
    def silent(s: Any) -> int:
        s += "text"
        return 7

    (end,) = silent.stream()
    assert isinstance(end, rt.EndEvent)
    assert end.result.value == 7


def test_ctrl_c_while_waiting_for_an_event_cancels_the_graph(
    target: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, is_waiting, wait = threading.main_thread().ident, threading.Event(), InterruptibleCondition.wait
    assert main is not None

    def noted_wait(self: InterruptibleCondition, *args: Any) -> bool:
        is_waiting.set()
        try:
            return wait(self, *args)
        finally:
            is_waiting.clear()

    def interrupts() -> None:
        wait_until(lambda: bool(target.runs) and is_waiting.is_set())
        signal.pthread_kill(main, signal.SIGINT)

    monkeypatch.setattr(InterruptibleCondition, "wait", noted_wait)
    target.hold("first")
    threading.Thread(target=interrupts, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        list(breaking.stream())
    assert target.runs[0].ended.wait(60)
    assert target.runs[0].was_cancelled


def test_text_of_an_unknown_name_is_refused(target: FakeTarget) -> None:
    @rt.program
    def body(s: Any) -> None:
        s += rt.gen("first") + rt.gen("second") + rt.gen()

    with pytest.raises(rt.TraceError, match=r"'frist'; its generations: first, second") as caught:
        list(body.stream().text("frist"))
    assert caught.value.location.startswith(__file__)
    assert "".join(body.stream().text("second")) == body.run()["second"]

    async def read() -> list[str]:
        return [each async for each in body.stream().atext("frist")]

    with pytest.raises(rt.TraceError, match="'frist'"):
        asyncio.run(read())


def test_text_of_a_name_behind_a_break_is_waited_for(target: FakeTarget) -> None:
    @rt.program
    def body(s: Any) -> None:
        s += rt.gen("first")
        if s["first"]:
            s += rt.gen("second")

    assert "".join(body.stream().text("second")) == body.run()["second"]


@rt.program
def visiting(s: Any) -> None:
    s += "a" + rt.gen("visits", schema=list[Visit], n=2) + rt.gen("other")


@dataclass
class Visit:
    city: str
    day: datetime.date


VISITS = '[{"city": "Rome", "day": "2020-01-02"}, {"city": "Oslo", "day": "2021-03-04"}]'


@pytest.mark.parametrize("is_async", [False, True])
def test_partial_events_tell_what_is_final_with_its_type(is_async: bool, target: FakeTarget) -> None:
    target.script = by_name({"visits": [VISITS, "[]"]})
    events = collect(visiting, is_async=is_async)
    (values,) = [[e for e in events if isinstance(e, rt.ValueEvent) and e.name == "visits"]]
    for choice in range(2):
        partials = [e for e in events if isinstance(e, rt.PartialEvent) and e.choice == choice]
        assert all(event.name == "visits" and event.node_id == values[choice].node_id for event in partials)
        final = {path: value for event in partials for path, value in event.final.items()}
        assert final[()] == values[choice].value
        assert partials[-1].value == values[choice].value
        assert [path for event in partials for path in event.final_paths] == list(final)
        if choice == 0:
            assert final[1, "day"] == datetime.date(2021, 3, 4)
            grown = "".join(event.added for event in partials if event.growing == (0, "city"))
            assert "Rome".startswith(grown)
        position = events.index(partials[-1])
        assert position < events.index(values[choice])


def test_partial_iterates_over_one_variable_and_refuses_unknown_ones(target: FakeTarget) -> None:
    target.script = by_name({"visits": [VISITS, "[]"]})
    with visiting.stream() as events:
        assert {event.name for event in events.partial("visits")} == {"visits"}

    async def iterate() -> list[rt.PartialEvent]:
        return [event async for event in visiting.stream().apartial("visits")]

    assert asyncio.run(iterate())
    with pytest.raises(rt.TraceError, match="nothing named 'visit'"):
        list(visiting.stream().partial("visit"))
    assert list(visiting.stream().partial("other")) == []


@pytest.mark.parametrize("is_async", [False, True])
def test_a_failed_run_ends_with_its_end_event_and_then_raises_once(is_async: bool, target: FakeTarget) -> None:
    target.script = by_name({"first": rt.ConstraintError("bad", "/x")})
    seen: list[Any] = []

    async def listen() -> None:
        async for event in breaking.stream():
            seen.append(event)

    if is_async:
        with pytest.raises(rt.ConstraintError):
            asyncio.run(listen())
    else:
        stream = breaking.stream()
        with pytest.raises(rt.ConstraintError):
            seen.extend(stream)
        assert list(stream) == []
        with pytest.raises(rt.ConstraintError):
            stream.result()
    assert isinstance(seen[-1], rt.EndEvent)
    assert isinstance(seen[-1].result.error, rt.ConstraintError)
    assert [event for event in seen[:-1] if isinstance(event, rt.EndEvent)] == []
