"""Whole programs: what is recorded, what is submitted, and random programs against a naive reading."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import rtlang as rt
from rtlang.contract.events import NodeFinished
from rtlang.contract.request_graph import Arg, Generate, Ref, RoleEnd, RoleStart, Select, Text
from rtlang.contract.runs.run_options import RunOptions
from tests.support.long_tests import sized
from tests.support.programs.fake_target import Call, FakeTarget, answer, by_name
from tests.support.programs.program_oracle import Oracle, programs, record, script


@rt.program
def random_program(s: Any, operations: tuple[Any, ...]) -> None:
    record(operations, s)


@rt.program
def greeting(s: Any, name: str, tone: str = "warm") -> Any:
    s += rt.user("Greet ", name, " in a ", tone, " tone.")
    s += rt.assistant(rt.gen("greeting"))
    return s["greeting"]


def texts_of(target: FakeTarget) -> list[tuple[str, str]]:
    """All generated texts of the last run with their names without scopes, in node order."""
    finished = [event for event in target.runs[-1].events if isinstance(event, NodeFinished)]
    return [
        ((event.name or "").rpartition(".")[2], completion.text)
        for event in sorted(finished, key=lambda event: event.node_id)
        for completion in event.completions
    ]


@given(programs(breaks=True))
@settings(max_examples=sized(120), deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_random_programs_give_the_texts_of_the_naive_reading(operations: tuple[Any, ...]) -> None:
    oracle = Oracle()
    oracle.run(operations)
    with FakeTarget(script) as target:
        result = random_program.run(operations, runtime=target, passes="-merge")  # texts depend on names
        assert (texts_of(target) if target.runs else []) == oracle.texts
        assert result.error is None


@given(programs(breaks=False))
@settings(max_examples=sized(80), deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_random_programs_without_breaks_are_one_submission_and_the_same_ahead_of_time(operations: Any) -> None:
    oracle = Oracle()
    oracle.run(operations)
    graph = random_program.graph(operations, passes="-merge")
    with FakeTarget(script) as target:
        random_program.run(operations, runtime=target, passes="-merge")
        if oracle.texts:
            assert len(target.runs) == 1
            assert target.runs[0].extensions == []
            assert texts_of(target) == oracle.texts
            assert not target.runs[0].is_open
        else:
            assert target.runs == []
        run = target.submit(graph, lambda event: None)
        assert run.ended.wait(60)
        assert texts_of(target) == oracle.texts


def test_a_straight_line_program_is_submitted_once(target: FakeTarget) -> None:
    result = greeting.run(name="Ada")
    prompt = "<user>Greet Ada in a warm tone.</><assistant>"
    assert result["greeting"] == result.value == answer(prompt, "greeting")
    (run,) = target.runs
    assert (run.extensions, run.is_open, result.breaks) == ([], False, ())


def test_adjacent_text_reaches_the_runtime_as_one_node(target: FakeTarget) -> None:
    greeting.run("Ada")
    nodes = target.runs[0].graph.nodes
    assert [type(node) for node in nodes] == [Text, Generate]
    assert nodes[0].parts == (  # type: ignore[union-attr]
        RoleStart("user"),
        "Greet Ada in a warm tone.",
        RoleEnd(),
        RoleStart("assistant"),
    )


def test_a_graph_ahead_of_time_has_inputs(target: FakeTarget) -> None:
    graph = greeting.graph(name=rt.arg("who"))
    assert graph.inputs == ("who",)
    assert isinstance(graph.nodes[0], Text)
    assert Arg("who") in graph.nodes[0].parts
    run = target.submit(graph, lambda event: None, RunOptions(inputs={"who": "Bo"}))
    assert run.ended.wait(60)
    assert texts_of(target) == [("greeting", answer("<user>Greet Bo in a warm tone.</><assistant>", "greeting"))]


def test_inputs_that_are_not_used_are_not_asked_for() -> None:
    @rt.program
    def ignores(s: Any, name: str) -> None:
        s += rt.gen("x")

    assert ignores.graph(name=rt.arg("who")).inputs == ()


def test_graph_refuses_a_break_and_names_the_line() -> None:
    @rt.program
    def branching(s: Any) -> None:
        s += rt.gen("tool")
        if s["tool"] == "search":
            s += rt.gen("query")

    with pytest.raises(rt.TraceError) as caught:
        branching.graph()
    line = branching._body.function.__code__.co_firstlineno + 3
    assert caught.value.location == f"{__file__}:{line}"
    assert "a truth test needs 'tool' == 'search'" in str(caught.value)


def test_graph_needs_every_argument() -> None:
    with pytest.raises(TypeError, match="name"):
        greeting.graph()


def test_an_input_has_no_value_while_it_is_recorded() -> None:
    @rt.program
    def looks(s: Any, n: Any) -> None:
        s += rt.gen("x", max_tokens=int(n))

    with pytest.raises(rt.TraceError, match="'count'"):
        looks.graph(n=rt.arg("count"))


def test_a_run_does_not_take_inputs_of_graphs(target: FakeTarget) -> None:
    with pytest.raises(rt.TraceError, match="name"):
        greeting.run(name=rt.arg("name"))
    assert target.runs == []


def test_an_async_program_has_a_graph_too() -> None:
    @rt.program
    async def quiet(s: Any) -> None:
        s += "a" + rt.gen("x")

    assert [type(node) for node in quiet.graph().nodes] == [Text, Generate]


def test_graph_refuses_to_await_a_value_or_anything_else() -> None:
    @rt.program
    async def waits(s: Any) -> None:
        s += rt.gen("x")
        await s["x"]

    @rt.program
    async def sleeps(s: Any) -> None:
        await asyncio.sleep(0)

    with pytest.raises(rt.TraceError, match="graph break") as first:
        waits.graph()
    with pytest.raises(rt.TraceError, match="outside the graph") as second:
        sleeps.graph()
    for caught in (first, second):
        assert caught.value.location is not None
        assert caught.value.location.startswith(__file__)


def test_arguments_are_bound_in_steps(target: FakeTarget) -> None:
    bound = greeting.bind(tone="cold").bind("Ada")
    assert bound.run().value == answer("<user>Greet Ada in a cold tone.</><assistant>", "greeting")
    assert greeting(name="Ada", tone="cold").run().value == bound.run().value
    with pytest.raises(TypeError, match="mood"):
        greeting.bind(mood="x")
    with pytest.raises(TypeError, match="name"):
        greeting.run(tone="cold")


def test_options_of_a_run_never_collide_with_arguments(target: FakeTarget) -> None:
    @rt.program
    def odd(s: Any, runtime: str, params: str) -> None:
        s += runtime + params + rt.gen("x")

    result = odd.bind(runtime="a", params="b").run(runtime=target, params=rt.Sampling(max_tokens=3))
    assert result["x"] == answer("ab", "x")
    node = target.runs[0].graph.nodes[-1]
    assert isinstance(node, Generate)
    assert node.params.max_tokens == 3


def test_params_of_a_generation_come_before_those_of_the_run(target: FakeTarget) -> None:
    @rt.program
    def three(s: Any) -> None:
        s += rt.gen("a") + rt.gen("b", temperature=0.5) + rt.gen("c", params=rt.Sampling(top_k=3), max_tokens=2)

    three.run(params=rt.Sampling(max_tokens=9, temperature=1.0))
    found = [node.params for node in target.runs[0].graph.nodes if isinstance(node, Generate)]
    assert found == [
        rt.Sampling(max_tokens=9, temperature=1.0),
        rt.Sampling(max_tokens=9, temperature=0.5),
        rt.Sampling(max_tokens=2, top_k=3),
    ]


@rt.program
def solve(s: Any, question: Any) -> Any:
    s += rt.text("Q: ", question, "\nA: ") + rt.gen("answer")
    return s["answer"]


def test_a_program_called_inside_is_part_of_the_graph(target: FakeTarget) -> None:
    @rt.program
    def outer(s: Any) -> Any:
        s += "Ask: " + rt.gen("question")
        first = solve(question=s["question"])
        second = solve(s, "again")
        s += rt.text("\nBoth: ", first, second) + rt.gen("end")
        return first

    result = outer.run()
    question = answer("Ask: ", "question")
    first = answer(f"Q: {question}\nA: ", "solve.answer")
    sequence = f"Ask: {question}Q: again\nA: "
    second = answer(sequence, "solve#2.answer")
    end = answer(f"{sequence}{second}\nBoth: {first}{second}", "end")
    assert (result["solve.answer"], result["solve#2.answer"], result["end"]) == (first, second, end)
    assert result.value == first
    assert len(target.runs) == 1
    assert not target.runs[0].extensions


def test_a_bound_program_can_be_appended(target: FakeTarget) -> None:
    @rt.program
    def outer(s: Any) -> None:
        s += "Hm. "
        s += solve.bind("why")
        s += rt.gen("end")

    result = outer.run()
    inner = answer("Hm. Q: why\nA: ", "solve.answer")
    assert result["end"] == answer(f"Hm. Q: why\nA: {inner}", "end")


def test_a_called_program_sees_its_own_names_only(target: FakeTarget) -> None:
    @rt.program
    def inner(s: Any) -> bool:
        s += rt.gen("x")
        return "y" in s

    @rt.program
    def outer(s: Any) -> Any:
        s += rt.gen("y") + rt.gen("x")
        return inner(s), inner(s), "inner.x" in s, "inner#2.x" in s

    assert outer.run().value == (False, False, True, True)


def test_programs_call_each_other_when_async(target: FakeTarget) -> None:
    @rt.program
    async def thinks(s: Any, topic: str) -> Any:
        s += topic + rt.gen("thought")
        return await s["thought"]

    @rt.program
    async def outer(s: Any) -> Any:
        return await asyncio.gather(thinks("a"), thinks(s, "b"))

    assert outer.run().value == [answer("a", "thinks.thought"), answer("b", "thinks#2.thought")]


def test_a_plain_program_cannot_call_an_async_one(target: FakeTarget) -> None:
    @rt.program
    async def inner(s: Any) -> None: ...

    @rt.program
    def outer(s: Any) -> None:
        inner(s)

    @rt.program
    def appends(s: Any) -> None:
        s += inner

    for program in (outer, appends):
        with pytest.raises(rt.TraceError, match="async"):
            program.run()


@pytest.mark.parametrize("wrong", [lambda: None, lambda *, s: None, "text", None])
def test_only_functions_that_take_a_state_are_programs(wrong: Callable[..., Any]) -> None:
    with pytest.raises(rt.TraceError):
        rt.program(wrong)


def test_a_program_keeps_its_functions_name_and_docstring() -> None:
    @rt.program
    def documented(s: Any) -> None:
        """What it does."""

    assert (documented.name, documented.__doc__, documented.is_async) == ("documented", "What it does.", False)
    assert repr(documented) == "<program documented>"


def test_typed_values_choices_and_probabilities(target: FakeTarget) -> None:
    target.script = by_name({"age": "42", "colour": "red"})

    @rt.program
    def typed(s: Any) -> Any:
        s += rt.gen("age", type=int) + rt.select("colour", ["red", "blue"])
        return s["age"] + 1

    result = typed.run()
    assert (result["age"], result.text("age"), result.value) == (42, "42", 43)
    probabilities = result.meta("colour").probabilities
    assert set(probabilities) == {"red", "blue"}
    assert sum(probabilities.values()) == pytest.approx(1.0)
    assert probabilities["red"] > probabilities["blue"]
    assert result.meta("colour").scores == {"red": -1.0, "blue": -2.0}


def test_many_texts_of_one_generation_are_side_branches(target: FakeTarget) -> None:
    @rt.program
    def several(s: Any) -> Any:
        s += "Idea: " + rt.gen("idea", n=3, temperature=1.0)
        s += rt.text("then ", s["idea"][1]) + rt.gen("end")
        return len(s["idea"])

    result = several.run()
    ideas = [answer("Idea: ", "idea", choice) for choice in range(3)]
    assert result["idea"] == ideas
    assert result.value == 3
    assert result["end"] == answer(f"Idea: then {ideas[1]}", "end")
    assert [meta.finish_reason for meta in result.meta("idea")] == [rt.FinishReason.STOP] * 3
    assert result.breaks == ()
    assert any(
        isinstance(part, Ref) and part.choice == 1 for node in result.graph.nodes for part in getattr(node, "parts", ())
    )


def test_logprobs_and_usage_are_in_meta(target: FakeTarget) -> None:
    @rt.program
    def scored(s: Any) -> Any:
        s += "abc" + rt.gen("x", logprobs=0)
        return s.meta("x").usage.prompt_tokens

    result = scored.run()
    meta = result.meta("x")
    assert result.value == meta.usage.prompt_tokens == 3
    assert len(meta.logprobs) == len(meta.token_ids) == len(result["x"])
    assert result.usage.completion_tokens == len(meta.token_ids)


def test_select_keeps_its_method_in_the_graph() -> None:
    @rt.program
    def chooses(s: Any) -> None:
        s += rt.select("x", ["a", "b"], method="full_likelihood")

    (node,) = chooses.graph(passes=False).nodes
    assert node == Select(0, None, "x", ("a", "b"), rt.SelectMethod.FULL_LIKELIHOOD, path="x")


def test_graph_breaks_extend_the_running_graph(target: FakeTarget) -> None:
    target.script = by_name({"tool": "search"})

    @rt.program
    def agent(s: Any) -> None:
        s += "Tool: " + rt.gen("tool")
        if s["tool"] == "search":
            s += " for " + rt.gen("query")
        s += " so " + rt.gen("answer")
        if len(s["answer"]) > 0:
            s += rt.gen("more")

    result = agent.run()
    (run,) = target.runs
    assert [len(nodes) for nodes in run.extensions] == [4, 1]
    assert not run.is_open
    query = answer("Tool: search for ", "query")
    assert result["answer"] == answer(f"Tool: search for {query} so ", "answer")
    assert [each.what for each in result.breaks] == ["'tool' == 'search'", "'answer'"]
    assert [each.reason for each in result.breaks] == ["a truth test", "len()"]


def test_a_value_that_is_there_breaks_no_second_time(target: FakeTarget) -> None:
    @rt.program
    def looks_twice(s: Any) -> None:
        s += rt.gen("x")
        assert f"{s['x']}" == str(s["x"])
        s += rt.gen("y")

    assert len(looks_twice.run().breaks) == 1


def test_names_of_calls_reach_the_script(target: FakeTarget) -> None:
    seen: list[str | None] = []

    def note(call: Call) -> str:
        seen.append(call.name)
        return "x"

    target.script = note

    @rt.program
    def named(s: Any) -> None:
        s += rt.gen() + rt.gen("a")
        with s.scope("part"):
            s += rt.gen("a")
            solve(s, "q")

    named.run()
    assert seen == [None, "a", "part.a", "part.solve.answer"]


def test_calls_inside_calls_have_names_inside_names(target: FakeTarget) -> None:
    @rt.program
    def middle(s: Any) -> Any:
        s += "middle "
        return solve(s, "deep")

    @rt.program
    def outer(s: Any) -> Any:
        middle(s)
        return middle(s)

    result = outer.run()
    first = answer("middle Q: deep\nA: ", "middle.solve.answer")
    second = answer(f"middle Q: deep\nA: {first}middle Q: deep\nA: ", "middle#2.solve.answer")
    assert result["middle.solve.answer"] == first
    assert result["middle#2.solve.answer"] == result.value == second


def test_a_graph_ahead_of_time_is_valid() -> None:
    @rt.program
    def surrogate(s: Any) -> None:
        s += "\ud800" + rt.gen("x")

    with pytest.raises(rt.GraphError, match="surrogate"):
        surrogate.graph()


def test_a_body_with_yield_is_refused_by_the_decorator() -> None:
    def plain(s: Any) -> Any:
        s += rt.gen("x")
        yield s["x"]

    async def coroutine(s: Any) -> Any:
        yield s["x"]

    for body in (plain, coroutine):
        with pytest.raises(rt.TraceError, match=rf"{body.__name__}\.stream") as caught:
            rt.program(body)
        assert caught.value.location.startswith(__file__)


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p["x"],
        lambda p: p.value,
        lambda p: p.text("x"),
        lambda p: p.messages,
        str,
        lambda p: f"{p}",
        bool,
        len,
        list,
        lambda p: p == "yes",
    ],
)
def test_a_program_called_outside_is_not_used_as_a_result(use: Any, target: FakeTarget) -> None:
    @rt.program
    def body(s: Any, text: str) -> Any:
        s += text + rt.gen("x")
        return s["x"]

    bound = body("a")
    with pytest.raises(rt.TraceError, match=r"body\.run\(") as caught:
        use(bound)
    assert caught.value.location.startswith(__file__)
    assert bound.run().value == bound.run()["x"]  # it is bound all the same
    assert repr({bound}) == "{<program body>}"
    assert not hasattr(body, "nothing")
