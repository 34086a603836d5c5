"""The keywords of a run: all of them come from the fields of the options, wherever they are listed."""

from __future__ import annotations

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
