"""Batches that take over the results of an earlier batch."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.errors import ConstraintError, ParameterError
from rtlang.testing import ScriptedRuntime

ROWS = [{"x": str(number)} for number in range(6)]


@pytest.fixture
def scripted() -> Iterator[ScriptedRuntime]:
    with ScriptedRuntime(default=lambda prompt: f"<{len(prompt)}>") as found:
        yield found


def five(last: str) -> Any:
    """Five prompts a row, of which the last is given."""

    def prompts(s: Any, x: str) -> Any:
        for number, fork in enumerate(s.fork(5)):
            fork += rt.user(last if number == 4 else f"Question {number}", " about ", x)
            fork += rt.assistant(rt.gen("answer", max_tokens=40, temperature=1.0))
        return x

    return rt.program(prompts)


def test_of_five_prompts_only_the_edited_one_is_computed(scripted: ScriptedRuntime) -> None:
    first = five("Question 4").run_batch(ROWS, runtime=scripted)
    assert len(scripted.requests) == 30
    second = five("Another one").run_batch(ROWS, runtime=scripted, base=first)
    assert len(scripted.requests) == 36
    for before, after in zip(first, second, strict=True):
        assert before.text("answer")[:4] == after.text("answer")[:4]
        assert after.usage.completion_tokens * 4 < before.usage.completion_tokens


async def slow(s: Any, x: str) -> Any:
    s += x + rt.gen("a", temperature=1.0)
    return await s["a"]


def test_rows_may_move_and_be_added_and_removed(scripted: ScriptedRuntime) -> None:
    for body in (five("q"), rt.program(slow)):
        first = body.run_batch(ROWS, runtime=scripted)
        before = len(scripted.requests)
        moved = [{"x": "new"}, *ROWS[:0:-1]]
        second = body.run_batch(moved, runtime=scripted, base=first)
        assert len({request.prompt for request in scripted.requests[before:]}) in (1, 5)
        assert all("new" in request.prompt for request in scripted.requests[before:])
        assert [each.text() for each in second[1:]] == [each.text() for each in first[:0:-1]]


def test_equal_rows_take_over_results_of_their_own() -> None:
    numbers = iter(range(100))
    with ScriptedRuntime(default=lambda prompt: str(next(numbers))) as scripted:
        first = rt.program(slow).run_batch([{"x": "a"}] * 3, runtime=scripted)
        second = rt.program(slow).run_batch([{"x": "a"}] * 4, runtime=scripted, base=first)
    assert sorted(each.value for each in second) == ["0", "1", "2", "3"]


def test_failed_rows_run_again(scripted: ScriptedRuntime) -> None:
    with ScriptedRuntime({"a": [ConstraintError("no"), "fine", ConstraintError("no")]}) as failing:
        first = rt.program(slow).run_batch([{"x": str(number)} for number in range(3)], runtime=failing)
    assert sum(each.error is not None for each in first) == 2
    second = rt.program(slow).run_batch([{"x": str(number)} for number in range(3)], runtime=scripted, base=first)
    assert len(scripted.requests) == 2
    assert [each.error for each in second] == [None] * 3


def test_pickled_results_know_their_rows(scripted: ScriptedRuntime) -> None:
    first = pickle.loads(pickle.dumps(rt.program(slow).run_batch(ROWS, runtime=scripted)))
    before = len(scripted.requests)
    rt.program(slow).run_batch(ROWS[::-1], runtime=scripted, base=first)
    assert len(scripted.requests) == before


def test_what_is_no_result_is_refused_before_a_row_runs(scripted: ScriptedRuntime, tmp_path: Any) -> None:
    first = five("q").run_batch(ROWS, runtime=scripted)
    with pytest.raises(ParameterError, match="for a batch a list of results"):
        five("q").run_batch(ROWS, runtime=scripted, base=[1])  # type: ignore[list-item]
    with rt.record(tmp_path / "x", scripted) as recorder, pytest.raises(ParameterError, match="takes no outcomes"):
        five("q").run_batch(ROWS, runtime=recorder, base=first)
