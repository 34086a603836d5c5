"""Failures of candidates are no errors of a run whose decision has a winner, and of no other run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import rtlang as rt
from rtlang.testing import ScriptedRuntime


def answers(*texts: str | Exception) -> Callable[[str], str]:
    """Answers of forks by the number in their prompt; an exception fails the generation."""

    def answer(prompt: str) -> str:
        found = texts[int(re.findall(r"Candidate (\d)", prompt)[-1])]
        if isinstance(found, Exception):
            raise found
        return found

    return answer


@rt.program
def decide(s: Any, how: str, count: int, *, reads_all: bool = False) -> Any:
    forks = s.fork(count)
    for number, fork in enumerate(forks):
        fork += rt.user("Candidate ", number)
        fork += rt.assistant(rt.gen("x", max_tokens=8))
    values = [fork["x"] for fork in forks]
    if how == "first":
        found = rt.first(values)
    elif how == "vote":
        found = rt.vote([value.strip() for value in values])
    else:
        found = rt.best(values, by=[rt.length(value) for value in values])
    if reads_all:
        s += rt.text("All: ", *values, rt.gen("end", max_tokens=4))
    s += rt.text("Found: ", found)
    return found


@pytest.mark.parametrize("how", ["first", "vote", "best"])
def test_a_decision_with_a_winner_makes_up_for_failed_candidates(how: str) -> None:
    with ScriptedRuntime({"x": answers(ValueError("broken"), "yes", "yes"), "end": "e"}, checks=False) as runtime:
        result = decide.run(how, 3, runtime=runtime)
        assert result.value == "yes"
        assert result.error is None


@pytest.mark.parametrize("how", ["first", "vote", "best"])
def test_a_failed_candidate_that_something_else_needs_is_an_error(how: str) -> None:
    with (
        ScriptedRuntime({"x": answers(ValueError("broken"), "yes", "yes"), "end": "e"}, checks=False) as runtime,
        pytest.raises(rt.RtlangError, match="broken"),
    ):
        decide.run(how, 3, reads_all=True, runtime=runtime)


@pytest.mark.parametrize("how", ["first", "vote", "best"])
def test_a_decision_without_a_winner_is_the_error_of_a_candidate(how: str) -> None:
    with (
        ScriptedRuntime({"x": answers(ValueError("a"), ValueError("a"))}, checks=False) as runtime,
        pytest.raises(rt.RtlangError, match="a"),
    ):
        decide.run(how, 2, runtime=runtime)
