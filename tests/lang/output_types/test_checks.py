"""Checks of a value: what they accept, their order, and what they say to the model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel, Field, field_validator

import rtlang as rt
from rtlang.contract.errors import CheckError, ParameterError
from rtlang.lang.output_types.checks import Checks, check_call, checks_of
from rtlang.lang.output_types.types import TEXT, output_type


class Invoice(BaseModel):
    total: int = Field(ge=1)
    currency: str = "EUR"

    @field_validator("currency")
    @classmethod
    def _known(cls, currency: str) -> str:
        if currency not in ("EUR", "USD"):
            raise ValueError(f"{currency} is unknown")
        return currency


INVOICE = output_type(type=Invoice)


def refuse(value: object) -> str:
    return f"no {value}"


@rt.program
def judge(s: rt.State, value: Any) -> bool:
    return True


async def refuse_later(value: object) -> str:
    await asyncio.sleep(0)
    return "later"


def said(text: str, *checks: Any, kind: Any = TEXT) -> Any:
    found: Any = check_call("x", kind, checks, None, None)((text,))
    return asyncio.run(found) if asyncio.iscoroutine(found) else found


def raising(error: Exception) -> Any:
    def check(value: object) -> None:
        raise error

    return check


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda value: None, None),
        (lambda value: True, None),
        (lambda value: False, "the value was refused"),
        (lambda value: "", "the value was refused"),
        (str.isdigit, "the check isdigit refused the value"),
        (refuse, "no ab"),
        (raising(ValueError("too short")), "too short"),
        (raising(AssertionError()), "AssertionError"),
        (refuse_later, "later"),
    ],
)
def test_a_check_accepts_with_none_and_true_and_refuses_with_the_rest(check: Any, message: str | None) -> None:
    assert said("ab", check) == message


def test_a_check_that_says_something_else_is_a_mistake_of_the_program() -> None:
    with pytest.raises(TypeError, match="the check len returned 2: expected None or True, False, or a message"):
        said("ab", len)


def test_the_first_refusal_counts_and_later_checks_are_not_asked() -> None:
    asked: list[str] = []

    def note(value: str) -> None:
        asked.append(value)

    assert said("ab", note, refuse_later, note, refuse) == "later"
    assert asked == ["ab"]


def test_validators_come_before_checks_and_name_the_places() -> None:
    assert said('{"total":0,"currency":"X"}', refuse, kind=INVOICE) == (
        "total: Input should be greater than or equal to 1\ncurrency: X is unknown"
    )
    assert said('{"total":2}', lambda value: value.total == 2, kind=INVOICE) is None


def test_keywords_of_a_schema_that_no_parser_enforces_are_checked_before_the_checks() -> None:
    class Odd(BaseModel):
        model_config = {"json_schema_extra": {"minProperties": 2}}
        a: int
        b: int = 0

    assert "too few" in said('{"a":1}', refuse, kind=output_type(type=Odd))
    assert said('{"a":1,"b":2}', kind=output_type(type=Odd)) is None
    assert "multiple" in said("4", kind=output_type(schema={"type": "integer", "multipleOf": 3}))


def test_the_last_attempt_raises_with_the_plain_value_or_the_text() -> None:
    last: Any = check_call("x", INVOICE, (lambda value: "too much",), None, 3)
    with pytest.raises(CheckError, match="the value of 'x' was refused in 3 attempts: too much") as caught:
        last(('{"total":2}',))
    assert caught.value.facts == {
        "name": "x",
        "value": {"total": 2, "currency": "EUR"},
        "reason": "too much",
        "num_attempts": 3,
    }
    with pytest.raises(CheckError, match="refused in 3 attempts: total: ") as caught:
        last(('{"total":0}',))
    assert caught.value.value == '{"total":0}'


def test_a_verdict_of_a_program_comes_before_the_functions_after_it() -> None:
    after: Any = check_call("x", TEXT, (refuse,), judge, None)
    assert after(("ab", False)) == "the check judge refused the value"
    assert after(("ab", "it is short")) == "it is short"
    assert after(("ab", True)) == after(("ab", None)) == "no ab"


def test_functions_run_in_groups_between_programs() -> None:
    groups = Checks((refuse, judge, judge, len)).groups()
    assert groups == [((refuse,), judge), ((), judge), ((len,), None)]
    assert Checks().groups() == [((), None)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repair": 11}, "repair = 11: expected 0 to 10"),
        ({"repair": True}, "repair = True: expected 0 to 10"),
        ({"repair": 1}, "repair = 1: nothing is checked: expected check=..., or a type or schema"),
        ({"check": 3}, "check = 3: expected a function of the value"),
        ({"check": [len, 3]}, "check = 3: expected a function"),
        ({"check": lambda: None}, "expected a function of one argument"),
        ({"check": lambda value, state: None}, "expected a function of one argument"),
        ({"check": rt.program(lambda s: None)}, "expected a program of the state and the value"),
        ({"check": len, "keep": "all"}, "keep = 'all': allowed only with repair="),
        ({"check": len, "repair": 1, "keep": "none"}, 'keep = \'none\': expected "last" or "all"'),
        ({"check": len, "on_repair": "{message}"}, "on_repair = .*: allowed only with repair="),
        ({"check": len, "repair": 1, "on_repair": "again"}, "on_repair = 'again': expected a text with {message}"),
        ({"check": len, "repair": 1, "on_repair": 3}, "on_repair = 3: expected a text with {message}"),
    ],
)
def test_wrong_options_are_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        rt.gen("x", **options)


def test_an_async_program_is_refused_as_a_check() -> None:
    @rt.program
    async def later(s: rt.State, value: Any) -> bool:
        return True

    with pytest.raises(ParameterError, match="expected a plain program"):
        rt.gen("x", check=later)


def test_without_check_and_repair_there_are_no_checks() -> None:
    assert checks_of(INVOICE, None, 0, "last", None) is None
