"""Tools and thoughts as output types: whose format they have, what they read, what they refuse, and that budgets hold end to end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.errors import ParameterError, TraceError
from rtlang.contract.request_graph import Generate
from rtlang.runtime.texts.shortest_text import allows
from rtlang_grammars import ANY_STYLE, JsonStyle, Whitespace
from rtlang_grammars.formats.parsing import ToolCall as ParsedCall
from rtlang_grammars.formats.rendering import rendered_calls
from tests.support.programs.fake_target import FakeTarget


def set_timer(minutes: int, label: str = "") -> None:
    """Start a timer."""


def now() -> None:
    """The time."""


@rt.program
def ask(s: Any, question: str, choice: Any) -> None:
    s += rt.user(question)
    s += rt.assistant(rt.gen("answer", 60, type=rt.tools([set_timer, now], choice=choice)))


@rt.program
def think(s: Any, budget: int, format: str | None) -> None:
    s += rt.user("Set a timer for 12 minutes for tea.")
    with s.assistant():
        s += rt.gen("thoughts", budget, type=rt.thoughts(format=format))
        s += rt.gen("answer", 80, type=rt.tools([set_timer], choice="required", format=format, reasoning="forbidden"))


@pytest.fixture(scope="module")
def tiny() -> Iterator[rt.Runtime]:
    with rt.Runtime("rtlang:tiny") as runtime:
        yield runtime


def test_calls_are_read_in_the_format_of_the_target() -> None:
    text = 'Yes.\n<tool_call>\n{"name": "set_timer", "arguments": {"minutes": 3}}\n</tool_call>'
    with FakeTarget(script=lambda call: text) as target:
        target.tool_format = "hermes"
        answer = ask.run("?", "auto", runtime=target)["answer"]
    call = rt.ToolCall("set_timer", {"minutes": 3, "label": ""}, {"minutes": 3})
    assert answer == rt.ToolReply("Yes.", "", (call,))


def test_a_graph_without_a_model_needs_the_name_of_the_format() -> None:
    with pytest.raises(TraceError, match="pass format="):
        ask.graph(question="?", choice="auto")


@pytest.mark.parametrize(("choice", "names"), [("required", ["set_timer"]), ("none", []), ({"name": "now"}, ["now"])])
def test_a_model_calls_as_it_is_told(tiny: rt.Runtime, choice: Any, names: list[str]) -> None:
    answer = ask.run("Set a timer for 12 minutes.", choice, runtime=tiny)["answer"]
    assert [each.name for each in answer.calls] == names


@pytest.mark.parametrize("format", ["hermes", "qwen-coder", "llama-4", "json"])
def test_arguments_are_written_in_the_style_of_the_type(format: str) -> None:
    @rt.program
    def program(s: Any, **options: Any) -> None:
        s += rt.user("?") + rt.assistant(rt.gen("a", 60, type=rt.tools([set_timer], format=format, **options)))

    some: tuple[dict[str, str], ...] = ({}, {"order": "any", "numbers": "any"})
    graphs = [program.bind(**options).graph() for options in some]
    made = [
        node.constraint for graph in graphs for node in graph.nodes if isinstance(node, Generate) and node.constraint
    ]
    assert [each.style for each in made] == [
        replace(style, whitespace=Whitespace.LINE) for style in (JsonStyle(), ANY_STYLE)
    ]
    call = ParsedCall("set_timer", {"label": "tea", "minutes": 3})
    text = "".join(part for part, _ in rendered_calls(format, [call]))
    assert [allows(each, text) is None for each in made] == [False, True]


@pytest.mark.parametrize("budget", [24, 40])
@pytest.mark.parametrize("format", [None, "hermes"])
def test_thoughts_end_within_their_budget(tiny: rt.Runtime, budget: int, format: str | None) -> None:
    found = think.run(budget, format, runtime=tiny)
    text = found.text("thoughts")
    assert text.endswith("</think>")
    assert found.meta("thoughts").usage.completion_tokens <= budget
    assert found["thoughts"] == text.strip("\n").removeprefix("<think>").removesuffix("</think>").strip("\n")
    assert found["answer"].calls[0].name == "set_timer"


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: rt.tools("f"), "tools"),
        (lambda: rt.tools([]), "tools"),
        (lambda: rt.tools([now, now]), "tools"),
        (lambda: rt.tools([{"name": "a b"}]), "name"),
        (lambda: rt.tools([now], choice="maybe"), "tool_choice"),
        (lambda: rt.tools([now], format="xml"), "format"),
        (lambda: rt.tools([now], reasoning="much"), "reasoning"),
        (lambda: rt.tools([now], order="sorted"), "order"),  # type: ignore[arg-type]
        (lambda: rt.tools([now], numbers="short"), "numbers"),  # type: ignore[arg-type]
        (lambda: rt.thoughts(format="xml"), "format"),
    ],
)
def test_what_is_no_tool_is_refused(make: Any, field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        make()
    assert caught.value.field == field
