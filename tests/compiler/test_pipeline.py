"""The pipeline: its switches, and that no pass changes what a program sees."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import rtlang as rt
from rtlang.compiler.context import Context
from rtlang.compiler.pipeline import PASSES, chosen_passes, compile_graph
from rtlang.contract.errors import ParameterError
from rtlang.contract.params import SamplingParams
from rtlang.contract.request_graph import Block, Const, Generate, Marks, Ref, RequestGraph, Select, Switch, Text
from tests.support.long_tests import sized
from tests.support.programs.fake_target import Call, FakeTarget
from tests.support.programs.program_oracle import programs, record

SWITCHES: list[Any] = [True, False, *([f"-{name}"] for name in PASSES), *([name] for name in PASSES)]


def of_prompt(call: Call) -> str:
    """Texts as of a greedy model: a function of the sequence alone."""
    if isinstance(call.node, Select):
        return call.node.choices[len(call.prompt) % len(call.node.choices)]
    return f"<{hashlib.sha256(f'{call.prompt}{call.choice}'.encode()).hexdigest()[:2]}>"


@rt.program
def random_program(s: Any, operations: tuple[Any, ...]) -> Any:
    record(operations, s)
    return s.messages()


def seen(result: rt.Result[Any]) -> Any:
    """All that a program and its caller see."""
    return (
        result.names,
        {name: result.text(name) for name in result.names},
        {name: result[name] for name in result.names},
        result.value,
        result.messages,
    )


@given(programs(breaks=True, max_leaves=20))
@settings(max_examples=sized(150), deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_no_pass_changes_what_a_program_sees(operations: tuple[Any, ...]) -> None:
    with FakeTarget(of_prompt) as target:
        plain = seen(random_program.run(operations, runtime=target, passes=False))
        for passes in SWITCHES:
            assert seen(random_program.run(operations, runtime=target, passes=passes)) == plain, passes


@given(programs(breaks=True, max_leaves=20))
@settings(max_examples=sized(60), deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_streams_tell_the_same_texts_with_and_without_passes(operations: tuple[Any, ...]) -> None:
    def streamed(passes: Any) -> dict[tuple[int, int], str]:
        texts: dict[tuple[int, int], str] = {}
        with random_program.stream(operations, runtime=target, passes=passes) as stream:
            for event in stream:
                if isinstance(event, rt.TextEvent):
                    key = (event.node_id, event.choice)
                    texts[key] = texts.get(key, "") + event.text
        return texts

    with FakeTarget(of_prompt) as target:
        assert streamed("-prune") == streamed(False)


@pytest.mark.parametrize(
    ("given_passes", "chosen"),
    [
        (True, set(PASSES)),
        (False, set()),
        ("merge", {"merge"}),
        ("-merge", set(PASSES) - {"merge"}),
        (["merge", "fold"], {"merge", "fold"}),
        (("-merge", "-fold"), set(PASSES) - {"merge", "fold"}),
        (["merge", "-merge"], set()),
        ([], set()),
    ],
)
def test_passes_are_chosen_by_name(given_passes: Any, chosen: set[str]) -> None:
    assert chosen_passes(given_passes) == chosen


@pytest.mark.parametrize("wrong", ["inline", ["fold", "inline"], [3], 7, None, "--merge"])
def test_an_unknown_pass_is_refused(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="fold") as caught:
        chosen_passes(wrong)
    assert caught.value.field == "passes"


def test_every_pass_leaves_its_count() -> None:
    params = SamplingParams(max_tokens=10)
    nodes = (
        Text(0, None, ("a",)),
        Text(1, 0, ("b",)),
        Generate(2, 1, "x", params),
        Generate(3, 1, "y", params),
        Generate(4, 1, None, SamplingParams(max_tokens=7, temperature=1.0)),
        Text(5, 2, ("c", Ref(3))),
        Generate(6, 5, "z", params),
    )
    graph, savings = compile_graph(RequestGraph(nodes), PASSES, Context(needed={2, 3, 6}))
    assert [node.node_id for node in graph.nodes] == [1, 2, 5, 6]
    assert graph.nodes[2] == Text(5, 2, ("c", Ref(2)))
    assert savings.aliases == {3: 2}
    assert (savings.folded_nodes, savings.constant_texts, savings.constant_chars) == (1, 1, 2)
    assert (savings.pruned_nodes, savings.pruned_generations, savings.pruned_tokens) == (1, 1, 7)
    assert (savings.merged_nodes, savings.merged_generations, savings.merged_tokens) == (1, 1, 10)
    marks = {node.node_id: node.marks for node in graph.nodes}
    assert marks[1].is_constant
    assert not marks[5].is_constant
    assert (marks[2].lifetime, marks[6].lifetime) == ("part", "part")
    assert (savings.kept_sequences, savings.last_uses) == (1, 1)
    assert marks[2].remaining_tokens > marks[6].remaining_tokens == 0


def test_without_passes_a_graph_keeps_its_nodes() -> None:
    nodes = (Generate(0, None, "x", SamplingParams()), Generate(1, None, "y", SamplingParams()))
    graph, savings = compile_graph(RequestGraph(nodes, ("input",)), ())
    assert graph == RequestGraph(nodes, ("input",))
    assert savings.aliases == {}


def test_a_graph_ahead_of_time_keeps_every_name() -> None:
    @rt.program
    def twice(s: Any) -> None:
        left, right = s.fork(2)
        left += "a" + rt.gen("x")
        right += "a" + rt.gen("y")
        third = s.copy()
        third += "a" + rt.gen()

    names = [node.name for node in twice.graph().nodes if isinstance(node, Generate)]
    assert names == ["x", "y"]


def test_paths_in_a_block_include_what_follows_the_control_node() -> None:
    params = SamplingParams(max_tokens=10)
    block = Block((Generate(2, 1, "a", params), Generate(3, 2, "b", params)), 3)
    nodes = (
        Text(0, None, ("x",)),
        Switch(1, 0, Const(1), ((1, block),)),
        Generate(4, 1, "c", SamplingParams(max_tokens=7)),
    )
    graph, _ = compile_graph(RequestGraph(nodes), ("path",))
    control = graph.nodes[1]
    assert isinstance(control, Switch)
    (inner,) = (case for _, case in control.cases)
    assert [node.marks.remaining_tokens for node in inner.nodes if isinstance(node, Generate)] == [17, 7]


def test_texts_that_later_parts_continue_again_are_marked() -> None:
    nodes = (Text(0, None, ("a",)), Text(1, 0, ("b",)), Generate(2, 1, "x", SamplingParams()), Text(3, 1, (Ref(2, 0),)))

    def marks(passes: str | bool, *, is_open: bool) -> dict[int, Marks]:
        context = Context(keep={1, 3}, is_open=is_open)
        graph, _ = compile_graph(RequestGraph(nodes), chosen_passes(passes), context)
        return {node.node_id: node.marks for node in graph.nodes if isinstance(node, Text)}

    assert marks(True, is_open=True) == {
        1: Marks(lifetime="program", is_constant=True),
        3: Marks(lifetime="program"),
    }
    assert marks(True, is_open=False) == {1: Marks(is_constant=True), 3: Marks()}
    assert marks("-retain", is_open=True) == {1: Marks(is_constant=True), 3: Marks()}
