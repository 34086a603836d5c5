"""The keywords of a run: all of them come from the fields of the options, wherever they are listed."""

from __future__ import annotations

import asyncio
import inspect
import re
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.errors import ParameterError
from rtlang.lang.sessions.program_options import (
    DEFAULT_PROGRAM_OPTIONS,
    KEYWORDS,
    ProgramOptions,
    RunKeywords,
    RunMethod,
    arguments_in,
    given_options,
)
from rtlang.testing import ScriptedRuntime


@rt.program
def greet(s: Any, name: str) -> None:
    s += name


def test_type_checkers_and_signatures_know_the_same_keywords() -> None:
    assert set(KEYWORDS) == set(RunKeywords.__annotations__)
    typed = re.findall(r"(\w+): [^,]+, \*\*others: Any", inspect.getsource(RunMethod))
    assert sorted(typed) == sorted(KEYWORDS)
    for method in (greet.run, greet.arun, greet.stream):
        assert list(inspect.signature(method).parameters) == ["args", *KEYWORDS, "keywords"]
    documented = type(greet).run.__doc__ or ""
    assert all(f"            {name}: " in documented for name in KEYWORDS)


def test_options_and_arguments_are_told_apart() -> None:
    keywords = {"name": "Ada", "priority": 0, "deadline_s": None, "passes": False}
    assert given_options(keywords) == {"passes": False, "priority": 0}
    assert arguments_in(keywords) == {"name": "Ada"}
    options = ProgramOptions.of({"priority": 3, "deadline_s": 2.0, "outputs": ["x"]})
    assert (options.run.priority, options.run.deadline_s, options.outputs) == (3, 2.0, ["x"])
    assert ProgramOptions.of({}) == DEFAULT_PROGRAM_OPTIONS


@pytest.mark.parametrize(
    "wrong",
    [{"params": {}}, {"priority": "x"}, {"deadline_s": 0}, {"budget": 3}, {"outputs": "x"}, {"on_error": "ignore"}],
)
def test_a_wrong_option_is_named_before_a_run(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        greet.with_options(**wrong)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match="with_options"):
        greet.with_options(colour="red")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="run_batch"):
        greet.run_batch([], colour="red")  # type: ignore[call-arg]


@rt.program
def ticket(s: Any, text: str, priority: str = "low", *, runtime: str = "python") -> Any:
    """A program whose parameters have names of options."""
    s += rt.text(text, " ", priority, " ", runtime)
    return s.text()


def test_a_parameter_with_the_name_of_an_option_gets_the_keyword() -> None:
    with ScriptedRuntime() as scripted:
        bound = ticket.with_options(runtime=scripted, priority=3)
        assert bound.run("a", priority="high", runtime="rust").value == "a high rust"
        assert bound.run(text="a", priority="high").value == "a high python"
        assert bound.run("a", "high", priority=2).value == "a high python"
        assert bound.bind(priority="high").run("a", priority=2).value == "a high python"
        assert bound.run_batch([{"text": "a", "priority": "high"}])[0].value == "a high python"
        assert asyncio.run(bound.arun("a", priority="high")).value == "a high python"
        with bound.stream("a", priority="high") as stream:
            assert stream.result().value == "a high python"
        assert rt.explain(bound, "a", runtime="rust").error is None

        @rt.program
        def recorded(s: Any, params: str) -> None:
            s += params + rt.gen("x")

        assert "from params" in repr(recorded.graph(params="from params").nodes[0])
        assert "from params" in repr(rt.explain(recorded, params="from params").graph.nodes[0])


def test_a_missing_parameter_is_still_missing() -> None:
    @rt.program
    def asked(s: Any, priority: int, text: str) -> None:
        s += text

    with ScriptedRuntime() as scripted, pytest.raises(TypeError, match="missing a required argument: 'text'"):
        asked.run(priority=3, runtime=scripted)
