"""Decimal digits of exact numbers, and three-way comparison."""

from __future__ import annotations

from fractions import Fraction

from rtlang_grammars.spec.errors import GrammarError

LESS, EQUAL, GREATER = -1, 0, 1
_MAX_DIGITS = 400


def decimal_digits(value: Fraction) -> tuple[str, str]:
    """Return the digits of a value >= 0 before and after the point, without leading or trailing zeros (the integer part is at least "0").

    Raises:
        GrammarError: the value has no finite decimal form or more than 400 digits.
    """
    places, denominator = 0, value.denominator
    while denominator % 10 == 0:
        denominator //= 10
        places += 1
    while denominator != 1:
        factor = 2 if denominator % 2 == 0 else 5
        if denominator % factor:
            raise GrammarError(f"{value} has no finite decimal form: bounds and steps must be finite decimals")
        denominator //= factor
        places += 1
    if places > _MAX_DIGITS or value >= Fraction(10) ** _MAX_DIGITS:
        raise GrammarError(f"bounds and steps of numbers may have at most {_MAX_DIGITS} digits")
    digits = str(value.numerator * 10**places // value.denominator).rjust(places + 1, "0")
    whole, fraction = (digits[:-places], digits[-places:].rstrip("0")) if places else (digits, "")
    return whole, fraction


def order_of(one: int, other: int) -> int:
    """Compare two numbers: LESS, EQUAL or GREATER."""
    return (one > other) - (one < other)
