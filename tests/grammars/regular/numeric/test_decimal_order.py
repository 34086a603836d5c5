"""Decimal digits of exact numbers."""

from __future__ import annotations

from fractions import Fraction

import pytest

from rtlang_grammars.regular.numeric.decimal_order import EQUAL, GREATER, LESS, decimal_digits, order_of
from rtlang_grammars.spec.errors import GrammarError


@pytest.mark.parametrize(
    ("value", "digits"),
    [("0", ("0", "")), ("12", ("12", "")), ("0.05", ("0", "05")), ("100.250", ("100", "25")), ("1/8", ("0", "125"))],
)
def test_digits_have_no_redundant_zeros(value: str, digits: tuple[str, str]) -> None:
    assert decimal_digits(Fraction(value)) == digits


def test_infinite_decimals_are_an_error() -> None:
    with pytest.raises(GrammarError, match="no finite decimal form"):
        decimal_digits(Fraction(2, 7))


def test_order_of_is_a_three_way_comparison() -> None:
    assert [order_of(1, 2), order_of(2, 2), order_of(3, 2)] == [LESS, EQUAL, GREATER]
