"""The error tree: every error keeps its facts, has a code of its own, and comes back the same from its plain form."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from rtlang.contract import errors
from rtlang.contract.errors import ERRORS_BY_CODE, RtlangError, rebuild

SAMPLES = [
    errors.InternalError("0123456789ab"),
    errors.RtlangError("odd"),
    errors.ConfigError("port", -1, "expected 0 to 65535"),
    errors.ModelLoadError("there", "no config.json"),
    errors.ProgramError("wrong"),
    errors.ParameterError("top_p", 7, "at most 1"),
    errors.TraceError("no value yet", "essay.py:12"),
    errors.GraphError(3, "parent", "comes later"),
    errors.RequestError("failed"),
    errors.ConstraintError("unknown type", "/properties/a"),
    errors.BudgetError(4, 9),
    errors.DeadEndError("say "),
    errors.InvalidValueError("[1, 1]", "two elements are equal (at #)", 3),
    errors.ValueParseError("age", "x", "not a number"),
    errors.ToolError("search", "KeyError: 'x'", "agent.py:12"),
    errors.ScriptError("no reply for the second message (script.yaml, rules[0])"),
    errors.McpError("files", "no answer within 60 s"),
    errors.ContextLengthError(5000, 100, 4096),
    errors.CapacityError(70, 64),
    errors.ValueMemoryError("the graph", "max_value_bytes / 4", 1_000, 900, 200),
    errors.DeadlineError("too late"),
    errors.AbortedError("cancelled"),
    errors.DependencyError(4, "budget", "too small"),
    errors.ApplyError("item", ["[]", "0"], "list index out of range"),
    errors.CallError("search", "TimeoutError: too slow"),
    errors.CheckError("invoice", {"total": 3}, "total: expected 4", 3),
    errors.SwitchError("'green'", ["'red'", "'blue'"]),
    errors.NumericsError("NaN"),
    errors.SlowConsumerError("10 s without reading"),
    errors.OverloadError("20000 wait", 1.5),
    errors.ProtocolError("no such type", 1002, "type"),
    errors.ConnectionLostError("refused"),
    errors.SpentError("tokens", 100),
    errors.CassetteError("run.cassette", "it is empty"),
    errors.EffectError("an effect needs a person"),
    errors.UnknownOutcomeError("pay", "7, 'Ada'", "pay()", "find out"),
    errors.QuestionError("ask", "Pay?", "nobody answered"),
    errors.UnansweredError("ask", "Pay?", "nobody has answered yet"),
    errors.JournalError("run.journal", "'x' differs", "x", "'Hello'", "'Hi'"),
    errors.GoneError("no such stream", param="rid"),
    errors.EngineDeadError("out of memory"),
]


def test_there_is_a_sample_of_every_class() -> None:
    assert {type(error) for error in SAMPLES} == set(ERRORS_BY_CODE.values())


def test_codes_are_unique() -> None:
    assert len(ERRORS_BY_CODE) == len({type(error) for error in SAMPLES})
    assert all(ERRORS_BY_CODE[error.code] is type(error) for error in SAMPLES)


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_from_its_plain_form(error: RtlangError) -> None:
    facts = json.loads(json.dumps(error.facts))
    again = rebuild(error.code, error.message, facts)
    assert type(again) is type(error)
    assert str(again) == str(error) == error.message
    assert again.facts == error.facts
    with pytest.raises(type(error)):
        raise again


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_can_be_pickled_and_copied(error: RtlangError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert (str(again), again.facts) == (str(error), error.facts)


@pytest.mark.parametrize("kind", [errors.ConfigError, errors.ParameterError])
def test_a_large_or_deep_value_is_shown_in_part(kind: type[errors.ParameterError]) -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for value in ("x" * 10**6, [0] * 10**6, {i: i for i in range(10**5)}, deep):
        error = kind("schema", value, "expected something smaller")
        assert len(str(error)) < 500
        assert len(error.value) < 400


def test_an_unknown_code_gives_the_root_class() -> None:
    error = rebuild("from_the_future", "something", {"detail": 1})
    assert type(error) is RtlangError
    assert error.facts == {"detail": 1}


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (errors.ConfigError("port", -1, "expected 0 to 65535"), ["port", "-1", "65535"]),
        (errors.ContextLengthError(5000, 100, 4096), ["5000", "100", "4096"]),
        (errors.CapacityError(70, 64), ["70", "64"]),
        (errors.ValueMemoryError("the graph", "max_value_bytes / 4", 1_000, 900, 200), ["graph", "900", "200", "1000"]),
        (errors.BudgetError(4, 9), ["4", "9"]),
        (errors.BudgetError(4, None), ["4", "no completion"]),
        (errors.TraceError("no value yet", "essay.py:12"), ["essay.py:12", "no value yet"]),
        (errors.GraphError(None, "nodes", "empty"), ["graph", "nodes", "empty"]),
        (errors.GraphError(3, "parent", "comes later"), ["node 3", "parent"]),
        (errors.ConstraintError("unknown type", "/properties/a"), ["unknown type", "/properties/a"]),
        (errors.OverloadError("20000 wait", 1.5), ["20000 wait", "1.5 s"]),
    ],
)
def test_messages_say_what_was_given_and_what_is_allowed(error: RtlangError, says: list[str]) -> None:
    assert [part for part in says if part not in str(error)] == []


def test_a_failed_request_is_told_apart_from_a_wrong_program() -> None:
    failed = {type(error) for error in SAMPLES if isinstance(error, errors.RequestError)}
    wrong = {type(error) for error in SAMPLES if isinstance(error, errors.ProgramError)}
    assert not failed & wrong
    assert {errors.BudgetError, errors.CapacityError, errors.DependencyError} <= failed
    assert {errors.ParameterError, errors.TraceError, errors.GraphError} <= wrong
