"""Calls as values: what `gen(tools=...)` gives in each format, typed arguments, execution and its errors."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import enum
import inspect
import json
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator
from pydantic_core import to_jsonable_python

import rtlang as rt
from rtlang.serve.server import running_server
from rtlang.testing import ScriptedRuntime, tool_call
from tests.support.programs.fake_target import FakeTarget
from tests.support.schemas.tool_templates import FORMATS_OF_EACH_KIND, HAS_ONE_CALL, TEMPLATES, render

_Days = Annotated[list[int], Field(max_length=3)]


class Unit(enum.Enum):
    METRIC = "metric"
    IMPERIAL = "imperial"


class Place(BaseModel):
    city: str

    @field_validator("city")
    @classmethod
    def _is_known(cls, city: str) -> str:
        if city == "Atlantis":
            raise ValueError("there is no such city")
        return city


def forecast(place: Place, day: datetime.date, unit: Unit = Unit.METRIC) -> str:
    """The forecast of a place."""
    return f"{place.city} {day.isoformat()} {unit.name}"


async def count(words: list[str], low: int = 0, /) -> int:
    """Count words."""
    await asyncio.sleep(0)
    return max(len(words), low)


def fail(x: int) -> int:
    """Fail."""
    return _divide(x)


def _divide(x: int) -> int:
    return x // 0


ROME = ("forecast", {"place": {"city": "Rom"}, "day": "2024-02-29", "unit": "imperial"})
WORDS = ("count", {"words": ["a", "b"]})


def value_of(text: str, tools: list[Any], *, format: str = "hermes", **options: Any) -> Any:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.user("?") + rt.assistant(rt.gen("call", 60, tools=tools, **options))
        return s["call"]

    with FakeTarget(script=lambda call: text) as target:
        target.tool_format = format
        return ask.run(runtime=target).value


@pytest.mark.parametrize("format", TEMPLATES)
def test_a_call_in_the_format_of_the_model_is_a_typed_call(format: str) -> None:
    call = value_of(render(format, "", "", [ROME]), [forecast, count], format=format)
    args = {"place": Place(city="Rom"), "day": datetime.date(2024, 2, 29), "unit": Unit.IMPERIAL}
    assert (call.name, call.args, call.arguments) == ("forecast", args, ROME[1])
    assert call.run() == "Rom 2024-02-29 IMPERIAL"


@pytest.mark.parametrize("format", [name for name in TEMPLATES if name not in HAS_ONE_CALL])
def test_parallel_calls_are_a_list(format: str) -> None:
    calls = value_of(render(format, "", "", [ROME, WORDS]), [forecast, count], format=format, parallel=True)
    assert [call.name for call in calls] == ["forecast", "count"]
    assert [call.run() for call in calls] == ["Rom 2024-02-29 IMPERIAL", 2]


def test_a_choice_that_allows_content_gives_a_reply() -> None:
    reply = value_of(render("hermes", "Sunny.", "Hm", []), [forecast], tool_choice="auto")
    assert reply == rt.ToolReply("Sunny.", "Hm")
    (call,) = value_of(render("hermes", "Wait.", "", [ROME]), [forecast], tool_choice="auto").calls
    assert call.args["unit"] is Unit.IMPERIAL


def test_functions_run_in_programs_and_coroutines() -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.user("?") + rt.assistant(rt.gen("call", 60, tools=[count]))
        return s["call"].run()

    @rt.program
    async def aask(s: rt.State) -> Any:
        s += rt.user("?") + rt.assistant(rt.gen("call", 60, tools=[count, where]))
        call = await s["call"]
        return await call.arun()

    def where(x: int) -> str:
        return threading.current_thread().name

    with FakeTarget(script=lambda call: render("hermes", "", "", [WORDS])) as target:
        target.tool_format = "hermes"
        assert ask.run(runtime=target).value == 2
        assert aask.run(runtime=target).value == 2
        assert asyncio.run(aask.arun(runtime=target)).value == 2
    with FakeTarget(script=lambda call: render("hermes", "", "", [("where", {"x": 1})])) as target:
        target.tool_format = "hermes"
        assert aask.run(runtime=target).value != threading.current_thread().name


def test_large_integers_in_any_spelling_are_integers() -> None:
    def add(numbers: list[int], scale: float = 1.0) -> None:
        """Add."""

    text = '{"name": "add", "arguments": {"numbers": [5e300, 2.0, -1e20], "scale": 1e300}}'
    args = value_of(text, [add], format="json").args
    assert args == {"numbers": [int(5e300), 2, -(10**20)], "scale": 1e300}
    assert [type(each) for each in args["numbers"]] == [int, int, int]
    assert type(args["scale"]) is float


def test_a_call_behind_reasoning_has_no_reasoning_of_its_own() -> None:
    for reasoning, allows in ((False, True), (20, False), (True, False)):
        kind = rt.gen("x", tools=[fail], reasoning=reasoning).kind  # type: ignore[attr-defined]
        source = kind.for_format("hermes").constraint.source
        assert ('"</think>"' in json.dumps(json.loads(source))) == allows


def test_an_error_of_a_tool_names_the_tool_and_the_line() -> None:
    call = value_of(render("hermes", "", "", [("fail", {"x": 3})]), [fail])
    line = inspect.getsourcelines(_divide)[1] + 1
    for run in (call.run, lambda: asyncio.run(call.arun())):
        with pytest.raises(rt.ToolError, match=r"the tool 'fail' failed at .*: ZeroDivisionError: ") as caught:
            run()
        assert caught.value.tool == "fail"
        assert caught.value.location == f"{__file__}:{line}"
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_arguments_that_a_validator_refuses_name_the_generation_and_the_tool() -> None:
    text = render("hermes", "", "", [("forecast", {"place": {"city": "Atlantis"}, "day": "2024-01-01"})])
    with pytest.raises(rt.ValueParseError, match=r"(?s)'call'.*the tool 'forecast'.*no such city") as caught:
        value_of(text, [forecast])
    assert __file__ in str(caught.value)


def test_a_tool_without_a_function_cannot_run() -> None:
    call = value_of(
        render("hermes", "", "", [("f", {"x": "a"})]), [{"name": "f", "parameters": {"properties": {"x": {}}}}]
    )
    assert call.args == {"x": "a"}
    with pytest.raises(rt.TraceError, match="'f' was given as a schema"):
        call.run()


@pytest.fixture(scope="module")
def tiny() -> Iterator[rt.Runtime]:
    with rt.Runtime("rtlang:tiny") as runtime:
        yield runtime


def test_calls_are_the_same_through_a_socket(tiny: rt.Runtime) -> None:
    @rt.program
    def ask(s: rt.State, question: str) -> Any:
        s += rt.system("Help.", tools=[forecast, fail])
        s += rt.user(question)
        s += rt.assistant(rt.gen("call", 90, tools=[forecast, fail], tool_choice="forecast"))
        s += rt.tool(s["call"].run())
        s += rt.assistant(rt.gen("answer", 12))
        return s["call"], s["answer"], s.meta("answer").usage.prompt_tokens

    here = ask.run("Weather in Rome?", runtime=tiny)
    with running_server(tiny) as url, rt.connect(url) as remote:
        there = ask.run("Weather in Rome?", runtime=remote)
    assert here.value == there.value
    assert here.value[0].function is forecast
    assert here.graph.nodes[0] == there.graph.nodes[0]


@pytest.mark.parametrize("choice", [None, forecast, "forecast", {"name": "forecast"}, "auto"])
def test_a_model_calls_as_chosen(tiny: rt.Runtime, choice: Any) -> None:
    @rt.program
    def ask(s: rt.State) -> Any:
        s += rt.user("What is the weather in Rome?")
        s += rt.assistant(rt.gen("call", 90, tools=[forecast, fail], tool_choice=choice))
        return s["call"]

    found = ask.run(runtime=tiny).value
    if choice == "auto":
        assert isinstance(found, rt.ToolReply)
    else:
        assert found.name in ("forecast", "fail") if choice is None else found.name == "forecast"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"tools": []}, "tools"),
        ({"tools": "f"}, "tools"),
        ({"tools": [fail], "tool_choice": "other"}, "tool_choice"),
        ({"tools": [fail], "tool_choice": count}, "tool_choice"),
        ({"tools": [fail], "parallel": "yes"}, "parallel"),
        ({"tools": [fail], "type": int}, "type and tools"),
        ({"tools": [fail], "regex": "a"}, "type and regex"),
        ({"tool_choice": "auto"}, "tools"),
        ({"tools": [{"name": "a b"}]}, "name"),
        ({"tools": [{"name": "f", "parameters": {"type": "array"}}]}, "parameters"),
        ({"tools": [lambda *args: 1]}, "tools"),
    ],
)
def test_wrong_tools_are_refused_with_their_field_and_value(options: dict[str, Any], field: str) -> None:
    with pytest.raises(rt.ParameterError) as caught:
        rt.gen("x", **options)
    assert caught.value.field == field
    assert f"{field} = None" not in str(caught.value) or "tools" not in options


@pytest.mark.parametrize("format", ["json", "hermes", "qwen-coder", "llama-4"])
def test_a_tool_whose_parameters_have_no_values_is_refused_by_name_if_it_must_be_called(
    tiny: rt.Runtime, format: str
) -> None:
    bounds = {"fine": {"type": "integer"}, "bad": {"type": "integer", "minimum": 5, "maximum": 3}}
    tools = [{"name": name, "parameters": {"properties": {"x": bounds[name]}, "required": ["x"]}} for name in bounds]

    @rt.program
    def ask(s: rt.State, choice: str) -> None:
        s += rt.user("?") + rt.assistant(rt.gen("call", 60, type=rt.tools(tools, choice=choice, format=format)))

    with pytest.raises(rt.ConstraintError, match=r"tool bad: .*#/properties/x.*generation 'call'"):
        ask.run("bad", runtime=tiny)
    assert [call.name for call in ask.run("fine", runtime=tiny)["call"].calls] == ["fine"]
    with contextlib.suppress(rt.InvalidValueError):  # names the tool that it called
        assert {call.name for call in ask.run("auto", runtime=tiny)["call"].calls} <= {"fine"}


def test_the_type_of_the_same_tools_is_made_once() -> None:
    made = [rt.tools([forecast, fail], choice="required") for _ in range(2)]
    assert made[0] is made[1]
    assert made[0].for_format is not None
    assert made[0].for_format("hermes") is made[1].for_format("hermes")
    assert made[0] is not rt.tools([forecast, fail])
    assert made[0] is not rt.tools([fail, forecast], choice="required")
    assert rt.system("x", tools=[forecast]) == rt.system("x", tools=iter([forecast]))


@pytest.mark.parametrize("format", FORMATS_OF_EACH_KIND)
def test_random_calls_of_a_model_have_typed_arguments_in_every_format(tiny: rt.Runtime, format: str) -> None:
    def trip(place: Place, day: datetime.date, days: _Days, unit: Unit = Unit.METRIC) -> str:
        return f"{place.city}{day.year}{unit.value}{sum(days)}"

    def tag(text: Annotated[str, Field(max_length=10)], kind: Literal["x", "y"], /) -> str:
        return text + kind

    @rt.program
    def ask(s: rt.State, seed: int) -> rt.ToolReply:
        kind = rt.tools([trip, tag], choice="required", format=format, reasoning="forbidden")
        s += rt.user("Call.") + rt.assistant(rt.gen("calls", 200, type=kind, temperature=1.3, seed=seed))
        return s["calls"]

    for result in ask.run_batch([{"seed": seed} for seed in range(4)], runtime=tiny, on_error="raise"):
        for call in result.value.calls:
            assert isinstance(call.run(), str)
            if call.name == "trip":
                assert isinstance(call.args["place"], Place)
                assert isinstance(call.args["unit"], Unit)
                assert all(type(each) is int for each in call.args["days"])


def test_calls_are_written_as_what_the_model_wrote(tmp_path: Path) -> None:
    @rt.program
    def body(s: rt.State) -> Any:
        s += "x"
        s += rt.gen("reply", type=rt.tools([forecast], parallel=True))
        return {"first": rt.value(s["reply"]).calls[0]}

    arguments = {"place": {"city": "Rome"}, "day": "2024-05-01", "unit": "metric"}
    call = {"name": "forecast", "args": arguments, "arguments": arguments, "id": None}
    with ScriptedRuntime({"reply": [tool_call("forecast", **arguments)] * 2}) as runtime:
        result = body.run(runtime=runtime)
        assert to_jsonable_python(result["reply"], fallback=str)["calls"] == [call]
        body.run_to_jsonl([{}], tmp_path / "out.jsonl", runtime=runtime)
    line = json.loads((tmp_path / "out.jsonl").read_text())
    assert line["value"] == {"first": call}
    assert pickle.loads(pickle.dumps(result.value)) == result.value
