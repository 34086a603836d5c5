"""Values in branches and loops: fields of every kind of type, typed values that come back, and errors that nothing waits for."""

from __future__ import annotations

import datetime
import enum
import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

import rtlang as rt
from rtlang.contract.errors import ApplyError, CallError, InvalidValueError, ValueParseError
from rtlang.serve.server import running_server
from rtlang.testing import ScriptedRuntime


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Person(BaseModel):
    name: str
    nick: str | None = None
    unit: str = "m"
    age: int | None
    tags: list[str] = []


@dataclass
class Point:
    x: int
    y: int = 7


class Place(TypedDict):
    city: str
    code: NotRequired[int]


SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "size": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["city"],
}
READS: list[tuple[str, Any, dict[str, Any], Any]] = [
    ("name", Person, {"name": "Ada", "age": 3}, lambda v: v.name.upper()),
    ("default", Person, {"name": "Ada", "age": 3}, lambda v: v.unit),
    ("given default", Person, {"name": "Ada", "age": 3, "unit": "km"}, lambda v: v.unit),
    ("optional", Person, {"name": "Ada", "age": 3, "nick": "A"}, lambda v: v.nick.lower()),
    ("arithmetic", Person, {"name": "Ada", "age": 3}, lambda v: v.age + 1),
    ("compared", Person, {"name": "Ada", "age": None}, lambda v: v.age == None),  # noqa: E711
    ("compared value", Person, {"name": "Ada", "age": 3}, lambda v: v.age == 3),
    ("list", Person, {"name": "Ada", "age": 3, "tags": ["a", "b"]}, lambda v: v.tags[1]),
    ("dataclass", Point, {"x": 1}, lambda v: v.x + v.y),
    ("typed dict", Place, {"city": "Rome", "code": 5}, lambda v: v["code"]),
    ("schema", SCHEMA, {"city": "Rome"}, lambda v: v["city"][1:]),
    ("schema number", SCHEMA, {"city": "Rome", "size": 3}, lambda v: v["size"] * 2),
    ("schema float", SCHEMA, {"city": "Rome", "size": 3.0}, lambda v: v["size"]),
    ("schema list", SCHEMA, {"city": "Rome", "tags": ["x"]}, lambda v: v["tags"][0]),
]
FAILS: list[tuple[str, Any, dict[str, Any], Any, str]] = [
    ("none", Person, {"name": "Ada", "age": 3}, lambda v: v.nick, "None"),
    ("method of none", Person, {"name": "Ada", "age": 3}, lambda v: v.nick.upper(), "None"),
    ("missing", Place, {"city": "Rome"}, lambda v: v["code"], "'code'"),
    ("missing property", SCHEMA, {"city": "Rome"}, lambda v: v["size"], "'size'"),
]


@pytest.fixture
def inside() -> Iterator[Any]:
    """Runs a read of a value in a branch; returns the text that the branch appends."""
    open_ones: list[ScriptedRuntime] = []

    def run(given: Any, value: Any, read: Any) -> Any:
        @rt.program
        def reads(s: rt.State) -> Any:
            s += rt.gen("value", 200, schema=given)
            s += "|"

            def branch(b: rt.State) -> None:
                b += rt.text(read(s["value"])) + rt.gen("end", 9)

            rt.switch("a", {"a": branch})

        runtime = ScriptedRuntime({"value": json.dumps(value), "end": "."}, checks=False)
        open_ones.append(runtime)
        return reads.run(runtime=runtime, on_error="result")

    yield run
    for each in open_ones:
        each.close()


@pytest.mark.parametrize(("given", "value", "read"), [case[1:] for case in READS], ids=[case[0] for case in READS])
def test_fields_in_branches_are_what_python_reads(inside: Any, given: Any, value: Any, read: Any) -> None:
    result = inside(given, value, read)
    assert result.error is None
    assert result.text() == f"{json.dumps(value)}|{read(result['value'])}."


@pytest.mark.parametrize(
    ("given", "value", "read", "named"), [case[1:] for case in FAILS], ids=[case[0] for case in FAILS]
)
def test_fields_that_are_not_there_are_typed_errors(inside: Any, given: Any, value: Any, read: Any, named: str) -> None:
    error = inside(given, value, read).error
    assert isinstance(error, ApplyError)
    assert named in str(error)


def test_a_field_that_may_be_none_is_waited_for_outside_of_branches() -> None:
    @rt.program
    def reads(s: rt.State) -> bool:
        s += rt.gen("value", 200, schema=Person)
        return s["value"].nick is None

    with ScriptedRuntime({"value": '{"name":"Ada","age":3}'}, checks=False) as runtime:
        result = reads.run(runtime=runtime)
    assert result.value is True
    assert len(result.breaks) == 1


def test_fields_with_defaults_and_of_schemas_are_lazy_outside_too() -> None:
    @rt.program
    def reads(s: rt.State) -> None:
        s += rt.gen("person", 200, schema=Person) + rt.gen("place", 200, schema=SCHEMA)
        s += rt.text(s["person"].unit, s["place"]["city"]) + rt.gen("end", 9)

    answers: dict[str | None, Any] = {"person": '{"name":"Ada","age":3}', "place": '{"city":"Rome"}', "end": "."}
    with ScriptedRuntime(answers, checks=False) as runtime:
        result = reads.run(runtime=runtime)
    assert result.text().endswith("mRome.")
    assert result.breaks == ()


@pytest.mark.parametrize(
    ("options", "text", "value"),
    [
        ({"schema": Person}, '{"name":"Ada","age":3}', Person(name="Ada", age=3)),
        ({"type": Point}, '{"x":3}', Point(3)),
        ({"type": datetime.date}, "2024-02-29", datetime.date(2024, 2, 29)),
        ({"choices": Color}, "blue", Color.BLUE),
        ({"type": int}, "12", 12),
        ({"schema": SCHEMA}, '{"city":"Rome"}', {"city": "Rome"}),
    ],
)
def test_values_of_branches_and_loops_have_their_types(options: Any, text: str, value: Any) -> None:
    @rt.program
    def branches(s: rt.State) -> Any:
        s += rt.gen("which", choices=["a", "b"])

        def branch(b: rt.State) -> Any:
            b += rt.gen("value", 200, **options)
            return b["value"]

        def other(b: rt.State) -> Any:
            b += rt.gen("other", 200, **options)
            return b["other"]

        def again(b: rt.State) -> Any:
            b += rt.gen("again", 200, **options)
            return b["again"]

        return rt.switch(s["which"], {"a": branch}, default=other), rt.repeat(again, at_most=2)

    answers: dict[str | None, Any] = {"which": "b", "value": "!", "other": text, "again": text}
    with ScriptedRuntime(answers, checks=False) as runtime:
        result = branches.run(runtime=runtime)
    assert result.value == (value, value)
    assert [type(each) for each in result.value] == [type(value)] * 2


def test_values_of_branches_of_different_types_are_plain() -> None:
    @rt.program
    def branches(s: rt.State) -> Any:
        def person(b: rt.State) -> Any:
            b += rt.gen("person", 200, schema=Person)
            return b["person"]

        def point(b: rt.State) -> Any:
            b += rt.gen("point", 200, schema=Point)
            return b["point"]

        return rt.switch("a", {"a": person, "b": point})

    with ScriptedRuntime({"person": '{"name":"Ada","age":3}'}, checks=False) as runtime:
        assert branches.run(runtime=runtime).value == {"name": "Ada", "age": 3}


def test_functions_in_loops_get_typed_values() -> None:
    seen: list[Any] = []

    def note(person: Any, color: Any) -> str:
        seen.append((person, color))
        return "ok"

    @rt.program
    def loops(s: rt.State) -> Any:
        def body(b: rt.State) -> Any:
            b += rt.gen("person", 200, schema=Person) + rt.gen("color", choices=Color)
            return rt.call(note, b["person"], b["color"])

        return rt.repeat(body, at_most=2)

    answers: dict[str | None, Any] = {
        "person": ['{"name":"A","age":3}', '{"name":"B","age":4}'],
        "color": ["red", "blue"],
    }
    with ScriptedRuntime(answers, checks=False) as runtime:
        loops.run(runtime=runtime)
    assert seen == [(Person(name="A", age=3), Color.RED), (Person(name="B", age=4), Color.BLUE)]


def failing(kind: str) -> Any:
    def fail() -> None:
        raise ValueError("it cannot")

    def body(b: rt.State) -> Any:
        side = b.copy()
        if kind == "generation":
            side += rt.gen("side", 9, regex="[0-9]+")
        elif kind == "value":
            side += rt.gen("side", 9, type=datetime.date)
        else:
            rt.call(fail)
        b += rt.gen("main", 9)
        return b["main"]

    @rt.program
    def fails(s: rt.State) -> Any:
        return rt.repeat(body, at_most=2)

    @rt.program
    def branch(s: rt.State) -> Any:
        return rt.switch("a", {"a": body})

    return fails, branch


@pytest.mark.parametrize(
    ("kind", "error"), [("generation", InvalidValueError), ("value", ValueParseError), ("call", CallError)]
)
def test_what_fails_in_a_branch_is_an_error_of_the_run_also_if_nothing_needs_it(kind: str, error: type) -> None:
    for program in failing(kind):
        answers: dict[str | None, Any] = {"main": "fine", "side": "no number" if kind == "generation" else "2024-99-99"}
        with ScriptedRuntime(answers, checks=kind == "generation") as runtime:
            result = program.run(runtime=runtime, on_error="result")
        assert result.value == "fine"
        assert isinstance(result.error, error)
        assert f"{__file__}:" in str(result.error)


class Report(BaseModel):
    city: str
    degrees: int


def report(city: str, *, degrees: int = 21) -> Report:
    return Report(city=city, degrees=degrees)


def test_a_call_takes_keywords() -> None:
    with ScriptedRuntime({"n": "7"}) as scripted:

        @rt.program
        def body(s: Any) -> Any:
            s += rt.gen("n", type=int)
            found = rt.call(report, "Rome", degrees=s["n"])
            s += rt.tool(found)
            return found

        result = body.run(runtime=scripted)
        assert result.value == Report(city="Rome", degrees=7)
        assert result.breaks == ()
        assert result.text() == '7{"city": "Rome", "degrees": 7}'


def test_names_of_keywords_tell_recorded_calls_apart(tmp_path: Path) -> None:
    def shown(**given: int) -> str:
        return repr(given)

    @rt.program
    def body(s: Any) -> Any:
        return [rt.call(shown, a=1, pure=True), rt.call(shown, b=1, pure=True)]

    with rt.Runtime() as runtime, rt.record(tmp_path / "calls", runtime) as recorder:
        assert body.run(runtime=recorder).value == ["{'a': 1}", "{'b': 1}"]
    with rt.replay(tmp_path / "calls") as replay:
        assert body.run(runtime=replay).value == ["{'a': 1}", "{'b': 1}"]


def test_a_call_gives_the_declared_type_everywhere(tmp_path: Path) -> None:
    def warmer(given: Report) -> Report:
        assert isinstance(given, Report)
        return Report(city=given.city, degrees=given.degrees + 1)

    @rt.program
    def body(s: Any) -> Any:
        first = rt.call(report, "Rome")

        def step(b: Any) -> Any:
            b += "x"
            return rt.call(warmer, rt.call(warmer, first))

        last = rt.repeat(step, at_most=1)
        assert isinstance(rt.value(first), Report)
        return first, last

    expected = (Report(city="Rome", degrees=21), Report(city="Rome", degrees=23))
    with rt.Runtime() as runtime:
        with running_server(runtime) as url, rt.connect(url) as remote:
            assert body.run(runtime=remote).value == expected
        with rt.record(tmp_path / "calls", runtime) as recorder:
            assert body.run(runtime=recorder).value == expected
    with rt.replay(tmp_path / "calls") as replay:
        assert body.run(runtime=replay).value == expected


def test_a_loop_knows_its_turn(tmp_path: Path) -> None:
    @rt.program
    def body(s: Any) -> Any:
        def step(b: Any, turn: Any) -> Any:
            b += rt.text("[", turn, "]")

            def inner(c: Any, turn_of_inner: Any) -> Any:
                c += rt.text(turn, ".", turn_of_inner, " ") + rt.gen("word")
                return rt.call(lambda *given: list(given), turn, turn_of_inner)

            rt.repeat(inner, at_most=2)
            rt.switch(turn, {0: "first ", 1: "second "}, default=rt.text("later ", turn * 10, " "))
            return rt.call(lambda number: number + 100, turn)

        last = rt.repeat(step, until=lambda b, turn: turn == 2, at_most=5)
        s += "end"
        return last, s.text()

    expected = "[0]0.0 a0.1 bfirst [1]1.0 c1.1 dsecond [2]2.0 e2.1 flater 20 end"
    with ScriptedRuntime({"word": list("abcdef")}) as scripted:
        result = body.run(runtime=scripted)
        assert result.value == (102, expected)
        assert result.text() == expected
        path = tmp_path / "graph.json"
        body.graph().save(path)
        assert rt.RequestGraph.load(path) == body.graph()


def test_the_number_of_a_turn_stays_inside_the_loop() -> None:
    seen: list[Any] = []

    @rt.program
    def outside(s: Any) -> None:
        def step(b: Any, turn: Any) -> None:
            seen.append(turn)
            b += "x"

        rt.repeat(step, at_most=2)
        s += rt.text(seen[-1]) + rt.gen("x")

    @rt.program
    def tested(s: Any) -> None:
        def step(b: Any, turn: Any) -> None:
            if turn == 1:
                b += "x"

        rt.repeat(step, at_most=2)

    with ScriptedRuntime() as scripted:
        with pytest.raises(rt.TraceError, match="inside a branch or loop"):
            outside.run(runtime=scripted)
        with pytest.raises(rt.TraceError, match="cannot wait for a value"):
            tested.run(runtime=scripted)


def test_a_second_parameter_with_a_default_keeps_it() -> None:
    @rt.program
    def body(s: Any) -> Any:
        def step(b: Any, style: str = "plain") -> None:
            b += style

        rt.repeat(step, at_most=2)
        return s.text()

    with ScriptedRuntime() as scripted:
        assert body.run(runtime=scripted).value == "plainplain"


def _with_name_inside(kind: str, use: Callable[[rt.State], Any]) -> rt.Program[[], Any]:
    @rt.program
    def program(s: rt.State) -> Any:
        s += "x"
        s += rt.gen("kind", max_tokens=2)

        def body(b: rt.State) -> None:
            b += rt.gen("inside", max_tokens=2)

        match kind:
            case "branch that runs":
                rt.switch(s["kind"], {"a": body}, default="")
            case "branch that does not run":
                rt.switch(s["kind"], {"b": body}, default="")
            case "two branches":
                rt.switch(s["kind"], {"a": body, "b": body})
            case "loop":
                rt.repeat(body, until=lambda b: b["inside"] == "2", at_most=3)
        return use(s)

    return program


@pytest.mark.parametrize("kind", ["branch that runs", "branch that does not run", "two branches", "loop"])
@pytest.mark.parametrize(
    "use",
    [
        lambda s: s["inside"],
        lambda s: {"a": [s["inside"]]},
        lambda s: s.text("inside"),
        lambda s: s.meta("inside"),
        lambda s: s.all("inside"),
        lambda s: s.last,
    ],
)
def test_a_value_from_inside_is_no_value_of_the_program(kind: str, use: Callable[[rt.State], Any]) -> None:
    with ScriptedRuntime({"kind": "a", "inside": ["1", "2"]}) as runtime:
        found = _with_name_inside(kind, use).run(runtime=runtime, on_error="result")
        assert "return it from the branch" in str(found.error)
        with pytest.raises(rt.TraceError):
            found.value  # noqa: B018
        if kind != "branch that does not run":
            assert found["inside"] == (["1", "2"] if kind == "loop" else "1")


def test_names_may_repeat_before_within_and_after_blocks() -> None:
    @rt.program
    def called(s: rt.State) -> None:
        s += "c"
        s += rt.gen("own", max_tokens=2)

    @rt.program
    def program(s: rt.State) -> str:
        s += "x"
        called(s)
        s += rt.gen("name", max_tokens=2)

        def body(b: rt.State) -> None:
            b += rt.gen("name", max_tokens=2)
            called(b)
            b += rt.gen("name", max_tokens=2)

        rt.repeat(body, until=lambda b: b["name"] == "5", at_most=3)
        rt.switch(s.text(), {"no": rt.gen("name", max_tokens=3)}, default=rt.gen("name", max_tokens=2))
        s += rt.gen("name", max_tokens=2)
        return s["name"]

    with ScriptedRuntime({"name": list("1234567"), "own": list("abc")}) as runtime:
        result = program.run(runtime=runtime)
        runtime.assert_all_used()
    copies = [result, pickle.loads(pickle.dumps(result))]
    for each in copies:
        assert each.value == "7"
        assert each.text() == "xca12cb34cc567"
        assert each.all("name") == list("1234567")
        assert each["name"] == ["7", "3", "5", "6"]  # the last one of each place
        assert each.all("called.own") == ["a", "b", "c"]
