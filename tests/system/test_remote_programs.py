"""Programs at the far end of a socket: whatever way they are run, it is as if the runtime were here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.errors import ConstraintError
from rtlang.serve.server import running_server
from tests.support.programs.fake_target import FakeTarget, by_name


@pytest.fixture
def runtimes() -> Iterator[tuple[rt.Target, rt.Target]]:
    """The same scripted runtime, here and through a socket."""
    script = by_name({"number": "12", "broken": ConstraintError("cannot be met", "/type")})
    with FakeTarget(script) as here, running_server(here) as url, rt.connect(url) as there:
        yield here, there


@rt.program
def story(s: rt.State, name: str) -> Any:
    s += rt.system("You tell stories.")
    s += rt.user("Of ", name, ".")
    s += rt.assistant(rt.gen("plot", max_tokens=9))
    tips = s.fork(3)
    for number, tip in enumerate(tips):
        tip += rt.text("Tip ", number, ": ") + rt.gen("tip", max_tokens=5)
    tips.join()
    s += rt.text(*s["tip"], " How many? ") + rt.gen("number", type=int)
    for _ in range(int(s["number"]) // 4):  # graph breaks
        s += rt.select(None, ["go on", "stop"])
    s += rt.select("mood", ["glad", "sad"])
    return s["mood"]


@rt.program
async def agent(s: rt.State, name: str) -> Any:
    s += rt.text("Dear ", name) + rt.gen("first")
    if len(str(await s["first"])) > 2:
        s += rt.gen("second")
    return await s["second"]


@rt.program
def fails(s: rt.State) -> None:
    left, right = s.fork(2)
    left += rt.gen("broken") + rt.gen("after")
    right += "another " + rt.gen("fine")


def facts(result: rt.Result) -> tuple[Any, ...]:
    return result.error, result.value, result.text("plot"), result["tip"], result["number"], result.usage


def test_a_program_with_forks_and_breaks_gives_the_same(runtimes: tuple[rt.Target, rt.Target]) -> None:
    here, there = (story.run(name="Ada", runtime=runtime) for runtime in runtimes)
    assert facts(there) == facts(here)
    assert there["number"] == 12


def test_a_batch_gives_the_same_results_in_order(runtimes: tuple[rt.Target, rt.Target]) -> None:
    inputs = [{"name": str(number)} for number in range(40)]
    here, there = (story.run_batch(inputs, runtime=runtime) for runtime in runtimes)
    assert [facts(result) for result in there] == [facts(result) for result in here]
    assert len({result.text("plot") for result in there}) == 40


def test_async_programs_share_one_socket(runtimes: tuple[rt.Target, rt.Target]) -> None:
    async def body(runtime: rt.Target) -> list[Any]:
        results = await asyncio.gather(*(agent.arun(name=str(number), runtime=runtime) for number in range(30)))
        return [(result.error, result.value, result.text("first")) for result in results]

    here, there = (asyncio.run(body(runtime)) for runtime in runtimes)
    assert there == here


def test_a_stream_gives_the_same_events(runtimes: tuple[rt.Target, rt.Target]) -> None:
    here, there = (list(story.stream(name="Ada", runtime=runtime)) for runtime in runtimes)
    for kind in (rt.TextEvent, rt.ValueEvent):
        found = [[repr(event) for event in events if isinstance(event, kind)] for events in (here, there)]
        assert sorted(found[0]) == sorted(found[1])
        assert found[0]


def test_a_failure_and_what_depends_on_it_arrive_as_the_same_errors(runtimes: tuple[rt.Target, rt.Target]) -> None:
    for runtime in runtimes:
        result = fails.run(runtime=runtime, on_error="result")
        for name in ("broken", "after"):
            with pytest.raises(ConstraintError, match="cannot be met") as caught:
                result[name]
            assert caught.value.location == "/type"
        assert result.text("fine")


def test_errors_say_the_same_place_here_and_there(runtimes: tuple[rt.Target, rt.Target]) -> None:
    errors = [fails.run(runtime=runtime, on_error="result").error for runtime in runtimes]
    for error in errors:
        assert isinstance(error, ConstraintError)
        assert error.generation == "broken"
        assert error.recorded_at == f"{__file__}:{fails.__wrapped__.__code__.co_firstlineno + 3}"  # type: ignore[attr-defined]
        assert error.recorded_at in str(error)
    assert str(errors[0]) == str(errors[1])
