"""Explanations: breaks with file, line and reason."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

import rtlang as rt
from rtlang.testing import ScriptedRuntime
from tests.support.programs.fake_target import FakeTarget, by_name
from tests.support.servers.html_check import read_html


@rt.program
def straight(s: Any, name: str) -> None:
    s += rt.user("a") + rt.user(name) + rt.assistant(rt.gen("x"))


@rt.program
def breaking(s: Any, name: str) -> None:
    s += name + rt.gen("x")
    if s["x"] == "go":
        s += rt.gen("y")
    s += str(s["y"]) + rt.gen("z")


LINE = breaking._body.function.__code__.co_firstlineno


def test_a_program_without_breaks_is_said_to_be_one_graph() -> None:
    found = rt.explain(straight, name="Ada")
    assert (found.breaks, found.is_complete, found.error) == ((), True, None)
    assert str(found).splitlines() == [
        "straight: 2 nodes (1 generate, 1 text)",
        "no graph break: submitted once, as one graph",
        "passes:",
        "  prune:   0 nodes dropped (0 generations, up to 0 tokens); 0 generations run after the awaited ones",
        "  reorder: 0 texts laid out anew, shared pieces first",
        "  fold:    2 text nodes joined; 1 constant texts (4 characters) tokenized once per process",
        "  merge:   0 nodes merged (0 generations, up to 0 tokens)",
        "  retain:  pages of 0 sequences kept until they are continued; pages of 1 last uses freed first",
        "  path:    longest path about 145 tokens of 145 in all, run before shorter ones",
        "estimated: about 17 prompt tokens, at most 128 generated",
    ]


def test_breaks_are_listed_with_file_line_and_reason(target: FakeTarget) -> None:
    target.script = by_name({"x": "go"})
    found = rt.explain(breaking, "Ada")
    assert [(each.location, each.what, each.reason) for each in found.breaks] == [
        (f"{__file__}:{LINE + 3}", "'x' == 'go'", "a truth test"),
        (f"{__file__}:{LINE + 5}", "'y'", "str() or an f-string"),
    ]
    assert found.is_complete
    assert "2 graph break(s), 3 submission(s)" in str(found)
    assert f"{__file__}:{LINE + 3}: needs 'x' == 'go' for a truth test" in str(found)
    assert len(found.graph.nodes) == 5


def test_without_a_runtime_recording_stops_at_the_first_break() -> None:
    found = rt.explain(breaking, "Ada")
    assert [each.location for each in found.breaks] == [f"{__file__}:{LINE + 3}"]
    assert not found.is_complete
    assert "no runtime" in str(found)


def test_an_error_behind_a_break_is_told(target: FakeTarget) -> None:
    target.script = by_name({"x": "stop"})
    found = rt.explain(breaking, "Ada", runtime=target)
    assert isinstance(found.error, rt.TraceError)
    assert "TraceError" in str(found)


def test_a_wrong_program_raises() -> None:
    @rt.program
    def wrong(s: Any) -> None:
        s += None

    with pytest.raises(rt.TraceError, match="None"):
        rt.explain(wrong)


def test_async_programs_are_explained_too(target: FakeTarget) -> None:
    @rt.program
    async def coroutine(s: Any) -> None:
        s += rt.gen("x")
        await s["x"]
        s += rt.gen("y")

    (found,) = rt.explain(coroutine).breaks
    line = coroutine._body.function.__code__.co_firstlineno
    assert (found.location, found.reason) == (f"{__file__}:{line + 3}", "await")


def test_a_budget_of_the_program_holds_while_it_is_explained() -> None:
    with ScriptedRuntime({"x": "go" * 20, "y": "a", "z": "b"}) as runtime:
        found = rt.explain(breaking.with_options(budget=rt.Budget(tokens=5)), "Ada", runtime=runtime)
    assert found.usage is not None
    assert found.usage.completion_tokens == 5


def test_an_explanation_has_a_page_and_a_view_with_its_graph_and_every_line() -> None:
    found = rt.explain(straight, name="<b>Ada</b>")
    view = read_html(found._repr_html_())
    for line in str(found).splitlines():
        assert line in view.words
    assert "<b>Ada</b>" in view.words
    assert len(view.all("svg")) == 1
    assert "<title>straight</title>" in found.to_html()
    shown: list[str] = []
    found._repr_pretty_(SimpleNamespace(text=shown.append), False)
    found.graph._repr_pretty_(SimpleNamespace(text=shown.append), False)
    assert shown == [str(found), "<RequestGraph 2 nodes, inputs []>"]


@pytest.mark.parametrize("count", [1, 4, 16])
def test_values_that_coroutines_wait_for_at_once_are_one_break(count: int) -> None:
    sent: list[int] = []

    class Counted(ScriptedRuntime):
        def submit(self, *args: Any, **kwargs: Any) -> Any:
            sent.append(1)
            run = super().submit(*args, **kwargs)
            extend = run.extend
            run.extend = lambda *nodes, **known: (sent.append(1), extend(*nodes, **known))[1]
            return run

    @rt.program
    async def many(s: Any) -> None:
        async def one(fork: Any) -> str:
            fork += rt.gen("x")
            return str(await fork["x"])

        for text in await asyncio.gather(*map(one, s.fork(count))):
            s += text
        s += rt.gen("y")

    with Counted() as runtime:
        found = rt.explain(many, runtime=runtime)
        assert found.num_submissions == len(sent)
    assert len(found.breaks) <= found.num_submissions
    assert found.breaks[-1].location.endswith(f":{many._body.function.__code__.co_firstlineno + 4}")
    assert f"{len(found.breaks)} graph break(s), {len(sent)} submission(s):" in str(found)


def test_tools_and_functions_of_the_program_are_not_called_unless_asked_for() -> None:
    called: list[str] = []

    def search(query: str) -> str:
        called.append(query)
        return "found"

    @rt.program
    def by_node(s: Any) -> Any:
        s += rt.gen("query")
        if s["query"]:
            s += "Result: " + rt.call(search, s["query"]) + rt.gen("answer")
        return s["answer"]

    @rt.program
    def by_tool(s: Any) -> None:
        s += rt.gen("call", tools=[search])
        s += str(s["call"].run()) + rt.gen("answer")

    @rt.program
    async def by_async_tool(s: Any) -> None:
        s += rt.gen("call", tools=[search])
        call = await s["call"]
        s += str(await call.arun()) + rt.gen("answer")

    answers = {"query": "q", "call": '{"name": "search", "arguments": {"query": "q"}}'}
    with ScriptedRuntime(answers, checks=False) as runtime:
        for program in (by_node, by_tool, by_async_tool):
            found = rt.explain(program, runtime=runtime)
            assert not called
            assert "search" in str(found.error)
            assert "run_tools=True" in str(found)
            found = rt.explain(program, runtime=runtime, run_tools=True)
            assert (called, found.error, found.is_complete) == (["q"], None, True)
            called.clear()
            program.run(runtime=runtime)
            assert called == ["q"]  # a run calls it as before
            called.clear()
        found = rt.explain(by_node, runtime=runtime)
        assert (found.not_called, found.is_complete) == (("search",), False)
        assert found.usage is not None
