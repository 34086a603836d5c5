"""Every error that reaches a user names the generation and the line that recorded it."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.errors import rebuild
from rtlang.lang.recordings.error_places import at_generation
from tests.support.programs.fake_target import FakeTarget, by_name


def here(offset: int = 0) -> str:
    """`file:line` of the caller, `offset` lines further."""
    return f"{__file__}:{sys._getframe(1).f_lineno + offset}"


def assert_at(error: BaseException | None, name: str | None, place: str) -> None:
    assert isinstance(error, rt.RtlangError)
    assert (error.generation, error.recorded_at) == (name, place)
    assert place in str(error)
    if name is not None:
        assert repr(name) in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (again.generation, again.recorded_at, str(again)) == (name, place, str(error))


def test_options_of_a_call_that_is_never_recorded() -> None:
    with pytest.raises(rt.ParameterError) as caught:
        rt.gen("x", temperature=-1)
    assert_at(caught.value, "x", here(-1))
    assert (caught.value.field, caught.value.value) == ("temperature", "-1")
    with pytest.raises(rt.ParameterError) as caught:
        rt.gen(
            type=3,
        )
    assert_at(caught.value, None, here(-3))
    with pytest.raises(rt.ParameterError) as caught:
        rt.gen("t", tools=[3])
    assert_at(caught.value, "t", here(-1))
    with pytest.raises(rt.ParameterError) as caught:
        rt.select("y", [])
    assert_at(caught.value, "y", here(-1))
    with pytest.raises(rt.ParameterError) as caught:
        rt.select("y", ["a"], method="best")
    assert_at(caught.value, "y", here(-1))


def test_options_that_only_fail_with_those_of_the_run(target: FakeTarget) -> None:
    place = ""

    @rt.program
    def body(s: Any) -> None:
        nonlocal place
        place = here(1)
        s += rt.gen("x", min_tokens=5)

    with pytest.raises(rt.ParameterError) as caught:
        body.run(params=rt.Sampling(max_tokens=3))
    assert_at(caught.value, "x", place)


@pytest.mark.parametrize("option", [{"xtc_probability": 0.5}, {"mirostat": 2}, {"dynatemp_range": 0.3}], ids=str)
def test_options_that_need_the_temperature_of_the_run(target: FakeTarget, option: dict[str, Any]) -> None:
    place = ""

    @rt.program
    def body(s: Any) -> None:
        nonlocal place
        place = here(1)
        s += rt.gen("x", **option)

    body.graph(params=rt.Sampling(temperature=0.7))
    body.graph(params=rt.Sampling(temperature=0.7, **option))
    with pytest.raises(rt.ParameterError, match="with temperature 0") as caught:
        body.run()
    assert_at(caught.value, "x", place)


PLACES: dict[str, str] = {}


@rt.program
def chain(s: Any) -> Any:
    PLACES["a"] = here(1)
    s += rt.gen("a")
    PLACES["b"] = here(1)
    s += " and " + rt.gen("b", type=int)
    PLACES["none"] = here(1)
    s += rt.gen()
    return s["b"]


def outcomes(target: FakeTarget) -> list[BaseException | None]:
    """The error of `chain` in every way to run it."""
    result = chain.run(on_error="result")
    found: list[BaseException | None] = [result.error, chain.run_batch([{}])[0].error]
    with pytest.raises(rt.RtlangError) as raised:
        chain.run()
    found.append(raised.value)
    with pytest.raises(rt.RtlangError) as raised:
        result.value  # noqa: B018
    found.append(raised.value)
    with chain.stream(on_error="result") as events:
        found.extend(event.error for event in events if isinstance(event, rt.ErrorEvent))
    return found


@pytest.mark.parametrize(
    "error",
    [
        rt.ConstraintError("unknown keyword", "#/type"),
        rt.ContextLengthError(900, 4, 512),
        rt.DeadlineError("too late for this node"),
        rt.ParameterError("stop_token_ids", 9999, "expected a token id below 300"),
        rt.BudgetError(3, 5),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failed_node_and_all_that_depend_on_it(error: rt.RtlangError, target: FakeTarget) -> None:
    target.script = by_name({"a": error})
    found = outcomes(target)
    assert len(found) == 7
    for each in found:
        assert type(each) is type(error)
        assert_at(each, "a", PLACES["a"])


def test_a_text_that_does_not_parse(target: FakeTarget) -> None:
    target.script = by_name({"b": "many"})
    found = outcomes(target)
    assert len(found) == 5
    for each in found:
        assert isinstance(each, rt.ValueParseError)
        assert_at(each, "b", PLACES["b"])


def test_a_parse_tree_that_cannot_be_made(target: FakeTarget) -> None:
    target.script = by_name({"x": "b"})
    place = ""

    @rt.program
    def body(s: Any) -> None:
        nonlocal place
        place = here(1)
        s += rt.gen("x", grammar='start: "a"')
        str(s.tree("x"))

    with pytest.raises(rt.ValueParseError) as caught:
        body.run()
    assert_at(caught.value, "x", place)


def test_a_deadline_names_what_was_not_finished(target: FakeTarget) -> None:
    target.script = by_name({"b": "2"})
    target.hold("b")
    place = ""

    @rt.program
    def body(s: Any) -> None:
        nonlocal place
        s += rt.gen("a")
        place = here(1)
        s += rt.gen("b", type=int)
        s += rt.gen("c")
        target.expire()
        int(s["b"])

    with pytest.raises(rt.DeadlineError, match="unfinished: generation 'b'") as caught:
        body.run(deadline_s=100)
    assert_at(caught.value, "b", place)


def test_the_end_of_the_runtime_names_the_first_unfinished_generation(target: FakeTarget) -> None:
    target.hold("b")
    stream = chain.stream(on_error="result")
    for event in stream:
        if isinstance(event, rt.ValueEvent) and event.name == "a":
            target.die()
    result = stream.result()
    assert isinstance(result.error, rt.EngineDeadError)
    assert_at(result.error, "b", PLACES["b"])


@pytest.mark.parametrize("how", ["run", "graph"])
def test_a_refused_graph_names_the_generation_behind_the_wrong_text(how: str, target: FakeTarget) -> None:
    place = ""

    @rt.program
    def body(s: Any) -> None:
        nonlocal place
        s += rt.gen("first")
        forks = s.fork(2)
        forks[0] += "fine" + rt.gen("other")
        forks[1] += "a lone \ud800 surrogate"
        place = here(1)
        forks[1] += rt.gen("x")

    with pytest.raises(rt.GraphError, match="surrogate") as caught:
        getattr(body, how)()
    assert_at(caught.value, "x", place)


def test_a_place_is_named_once() -> None:
    once = at_generation(rebuild("request", "broken"), "x", "file:1")
    assert str(once) == "broken (generation 'x' at file:1)"
    assert str(at_generation(once, "y", "file:2")) == str(once)
    assert rt.RequestError("free").recorded_at is None
