"""Equality of JSON values and exact numbers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from rtlang_grammars.schema.reading.values import check_nesting, exact, json_key
from rtlang_grammars.spec.errors import GrammarError


def test_values_share_a_key_if_and_only_if_they_are_equal() -> None:
    different: list[Any] = [
        None,
        False,
        True,
        0,
        1,
        "",
        "1",
        [],
        [0],
        [False],
        [[]],
        {},
        {"a": 0},
        {"a": False},
        {"b": 0},
        "a",
    ]
    for one, other in combinations(different, 2):
        assert json_key(one) != json_key(other), (one, other)
    equal: list[tuple[Any, Any]] = [
        (1, 1.0),
        (0.1, Decimal("0.1")),
        ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}),
        (10**30, Decimal("1e30")),
    ]
    for one, other in equal:
        assert json_key(one) == json_key(other), (one, other)


def test_numbers_are_exact_in_their_decimal_notation() -> None:
    assert exact(0.1) == Fraction(1, 10)
    assert exact(Decimal("1.10")) == Fraction(11, 10)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**2000, Decimal("1e999999")])
def test_numbers_that_are_not_finite_or_have_too_many_digits_are_refused(value: Any) -> None:
    with pytest.raises(GrammarError):
        exact(value)


def test_nesting_is_checked_without_recursion() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(GrammarError, match="nested too deeply"):
        check_nesting(value, 50, "#")
    check_nesting([[{"a": []}]], 4, "#")
    while value:  # the interpreter would deallocate it recursively
        value = value.pop()
