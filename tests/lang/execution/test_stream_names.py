"""What a stream is asked for, by name, path or place, and which paths its events have."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

import rtlang as rt
from rtlang.contract.errors import TraceError
from rtlang.testing import ScriptedRuntime


class Fact(BaseModel):
    name: str


@pytest.fixture
def scripted() -> Iterator[ScriptedRuntime]:
    with ScriptedRuntime(default=lambda prompt: f"<{prompt[-3:]}>") as found:
        yield found


@rt.program
def forked(s: Any) -> None:
    s += "go " + rt.gen("plan")
    for index, fork in enumerate(s.fork(3)):
        fork += f"f{index}" + rt.gen("tip") + rt.gen("fact", schema=Fact)
        with fork.scope("more"):
            fork += rt.gen("tip")
    s += rt.gen("end", n=2)


@rt.program
def looped(s: Any) -> None:
    for _ in range(3):
        s += "x" + rt.gen("step")
    rt.repeat(lambda state: state.__iadd__("y" + rt.gen("turn")) and None, at_most=3, state=s)


def test_every_event_has_the_path_of_its_node(scripted: ScriptedRuntime) -> None:
    result, texts = None, dict[str, str]()
    for event in forked.stream(runtime=scripted):
        match event:
            case rt.TextEvent(path=path, text=text):
                texts[path] = texts.get(path, "") + text
            case rt.PartialEvent(path=path):
                assert path.endswith("/fact")
            case rt.ValueEvent(path=path, text=text, meta=meta):
                assert texts[path] == text
                assert meta.path == path
            case rt.EndEvent(result=found):
                result = found
    assert result is not None
    assert set(texts) == {*result.paths, "end[0]", "end[1]"} - {"end"}
    assert all(result.at(path).text == text for path, text in texts.items())


def test_events_of_loops_have_their_turns(scripted: ScriptedRuntime) -> None:
    events = [event for event in looped.stream(runtime=scripted) if isinstance(event, rt.ValueEvent)]
    assert [event.path for event in events] == [
        *("step", "step#2", "step#3"),
        *(f"repeat[{turn}]/turn" for turn in range(3)),
    ]


@pytest.mark.parametrize(
    ("program", "asked", "paths"),
    [
        (forked, "plan", ["plan"]),
        (forked, "fork[1]/tip", ["fork[1]/tip"]),
        (forked, "fork[2]", ["fork[2]/tip", "fork[2]/fact", "fork[2]/more/tip"]),
        (forked, "fork[2]/more", ["fork[2]/more/tip"]),
        (forked, "end[1]", ["end[1]"]),
        (looped, "step", ["step", "step#2", "step#3"]),
        (looped, "step#2", ["step#2"]),
        (looped, "turn", [f"repeat[{turn}]/turn" for turn in range(3)]),
        (looped, "repeat[1]", ["repeat[1]/turn"]),
    ],
)
def test_names_paths_and_places_are_read(
    scripted: ScriptedRuntime, program: rt.Program, asked: str, paths: list[str]
) -> None:
    async def iterate() -> str:
        return "".join([piece async for piece in program.stream(runtime=scripted).atext(asked)])

    result = program.run(runtime=scripted)
    expected = "".join(result.at(path).text for path in paths)
    assert "".join(program.stream(runtime=scripted).text(asked)) == expected
    assert asyncio.run(iterate()) == expected


@pytest.mark.parametrize(
    ("asked", "listed"),
    [("tip", r"fork\[0\]/tip, fork\[1\]/tip, fork\[2\]/tip"), ("end", r"end\[0\], end\[1\]")],
)
def test_texts_that_would_mix_are_refused_with_their_paths(scripted: ScriptedRuntime, asked: str, listed: str) -> None:
    with pytest.raises(TraceError, match=f"{asked!r} grows in several places at once: {listed}; name one"):
        list(forked.stream(runtime=scripted).text(asked))


def test_a_place_that_is_recorded_late_is_refused_too(scripted: ScriptedRuntime) -> None:
    @rt.program
    def late(s: Any) -> None:
        first, second = s.fork(2)
        first += "a" + rt.gen("x")
        if str(first["x"]):
            second += "b" + rt.gen("x")

    pieces = []
    with pytest.raises(TraceError, match=r"'x' grows in several places at once: fork"):
        pieces.extend(late.stream(runtime=scripted).text("x"))
    assert "".join(late.stream(runtime=scripted).text("fork[1]/x")) == "<b>"


def test_partial_values_are_read_by_path(scripted: ScriptedRuntime) -> None:
    everywhere = list(forked.stream(runtime=scripted).partial("fact"))
    assert {event.path for event in everywhere} == {f"fork[{index}]/fact" for index in range(3)}
    events = list(forked.stream(runtime=scripted).partial("fork[1]/fact"))
    assert {event.path for event in events} == {"fork[1]/fact"}
    assert events[-1].value == Fact(name="")


@pytest.mark.parametrize("asked", ["tips", "fork[3]/tip", "fork[1]/nothing", "plan[0]x"])
def test_what_does_not_exist_is_refused(scripted: ScriptedRuntime, asked: str) -> None:
    with pytest.raises(TraceError, match="generates nothing named"):
        list(forked.stream(runtime=scripted).text(asked))


def test_errors_name_the_path_where_it_tells_more() -> None:
    with ScriptedRuntime({"tip": ["a", rt.ConstraintError("no"), "b"] * 2}, default="x") as scripted:
        events = list(forked.stream(runtime=scripted, on_error="result"))
    (error,) = [event for event in events if isinstance(event, rt.ErrorEvent) and "no" in str(event.error)][:1]
    assert error.error.node_path == error.path
    assert f"(generation {error.name!r}, {error.path}, at " in str(error.error)
    assert error.error.generation in ("tip", "more.tip")


def test_a_checked_generation_is_read_by_its_path() -> None:
    def good(value: str) -> None:
        if "good" not in value:
            raise ValueError("say good")

    def checked(s: Any) -> None:
        for index, fork in enumerate(s.fork(2)):
            fork += f"go {index}" + rt.gen("a", check=good, repair=1)

    with ScriptedRuntime({"a": lambda prompt: "good" if "say good" in prompt else "bad"}) as scripted:
        pieces = list(rt.program(checked).stream(runtime=scripted).text("fork[1]/a"))
    assert pieces == ["good"]
