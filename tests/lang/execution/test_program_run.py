"""Errors of a generation name it and the line that recorded it, however the program is run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import rtlang as rt
from rtlang.contract.errors import (
    BudgetError,
    CapacityError,
    ConstraintError,
    ContextLengthError,
    DeadlineError,
    InvalidValueError,
    NumericsError,
    ParameterError,
    RequestError,
    RtlangError,
)
from tests.support.programs.fake_target import FakeTarget

ERRORS = [
    ConstraintError("unknown keyword", "#/type"),
    BudgetError(4, 9),
    InvalidValueError("12", "not even", 3),
    ContextLengthError(900, 4, 512),
    CapacityError(9, 4),
    NumericsError("the logits are not finite"),
    ParameterError("stop_token_ids", 9999, "expected a token id below 300"),
    RequestError("the prompt is empty"),
]


@rt.program
def report(s: rt.State) -> Any:
    s += rt.text("Report: ", rt.gen("summary", max_tokens=4))
    return s["summary"]


def with_run(target: FakeTarget) -> None:
    report.run(runtime=target)


def with_arun(target: FakeTarget) -> None:
    asyncio.run(report.arun(runtime=target))


def with_batch(target: FakeTarget) -> None:
    report.run_batch([{}], runtime=target, on_error="raise")


def with_stream(target: FakeTarget) -> None:
    report.stream(runtime=target).result()


@pytest.mark.parametrize("run", [with_run, with_arun, with_batch, with_stream], ids=lambda run: run.__name__)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_names_its_generation_and_its_line(run: Callable[[FakeTarget], None], error: RtlangError) -> None:
    with FakeTarget(lambda call: error) as target, pytest.raises(type(error)) as caught:
        run(target)
    raised = caught.value
    assert isinstance(raised, RtlangError)
    line = f"{__file__}:{report.__wrapped__.__code__.co_firstlineno + 2}"  # type: ignore[attr-defined]
    assert raised.facts == error.facts | {"generation": "summary", "node_path": "summary", "recorded_at": line}
    assert raised.message.startswith(f"{error.message} (generation 'summary' at ")
    assert f"{line})" in raised.message
    assert error.message in str(raised)


def test_text_that_does_not_parse_names_its_generation() -> None:
    @rt.program
    def count(s: rt.State) -> Any:
        s += rt.gen("count", type=int, max_tokens=4)

    with FakeTarget(lambda call: "many") as target:
        result = count.run(runtime=target, on_error="result")
    assert "'count'" in str(result.error)
    assert __file__ in str(result.error)


def test_an_error_that_ends_the_run_names_an_unfinished_generation() -> None:
    with FakeTarget() as target:
        target.hold("summary")
        error = report.run(runtime=target, deadline_s=0.01, on_error="result").error
    assert isinstance(error, DeadlineError)
    assert "unfinished: generation 'summary'" in str(error)
    assert error.generation == "summary"
    assert error.recorded_at is not None


@pytest.mark.parametrize(
    "options",
    [
        {"stop": ["a"]},
        {"stop": "a"},
        {"stop_token_ids": [3]},
        {"logit_bias": {5: 1.0}},
        {"logit_bias": [[5, 1.0]]},
        {"stop_regex": "a+"},
        {"stop_regex": [r"\d"]},
    ],
    ids=str,
)
def test_sampling_and_gen_accept_the_same_forms_of_options(options: dict[str, Any]) -> None:
    def recorded(**given: Any) -> rt.SamplingParams:
        @rt.program
        def program(s: rt.State) -> None:
            s += rt.gen("x", **given)

        (node,) = program.graph().nodes
        return node.params  # type: ignore[union-attr, no-any-return]

    assert rt.Sampling(**options) == recorded(**options) == recorded(params=rt.Sampling(**options))


def test_an_invalid_stop_regex_is_refused_where_it_is_given() -> None:
    with pytest.raises(ParameterError, match=r"stop_regex = '\(a'.*Python re pattern"):
        rt.Sampling(stop_regex=("(a",))
    with pytest.raises(ParameterError, match="stop_regex"):
        rt.gen("x", stop_regex="(a")
