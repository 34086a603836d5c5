"""Rules alone, digit by digit."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction

import pytest

from rtlang_grammars.regular.number_rules import Bound, Form, Multiple, Rule, decimal_digits
from rtlang_grammars.spec import GrammarError


def _read(rule: Rule, text: str) -> bool | None:
    """Whether a rule accepts a number; None where it gives up."""
    state: Hashable | None = rule.start()
    is_fraction = is_exponent = False
    for character in text:
        if state is None:
            return None
        if character == "-":
            state = rule.exponent_minus(state) if is_exponent else rule.minus(state)
        elif character == ".":
            is_fraction, state = True, rule.point(state)
        elif character == "e":
            is_exponent, state = True, rule.exponent(state)
        elif is_exponent:
            state = rule.exponent_digit(state, int(character))
        else:
            state = rule.digit(state, int(character), is_fraction)
    return None if state is None else rule.accepts(state)


@pytest.mark.parametrize(
    ("value", "digits"),
    [("0", ("0", "")), ("12", ("12", "")), ("0.05", ("0", "05")), ("100.250", ("100", "25")), ("1/8", ("0", "125"))],
)
def test_digits_are_without_needless_zeros(value: str, digits: tuple[str, str]) -> None:
    assert decimal_digits(Fraction(value)) == digits


def test_endless_decimals_are_refused() -> None:
    with pytest.raises(GrammarError, match="no finite decimal form"):
        decimal_digits(Fraction(2, 7))


@pytest.mark.parametrize(
    ("text", "is_at_least"),
    [
        ("3.25", True),
        ("3.250", True),
        ("3.2499", False),
        ("3.3", True),
        ("10", True),
        ("3", False),
        ("-4", False),
        ("1e1", True),
        ("9e-1", False),
    ],
)
def test_a_bound_compares_in_decimal(text: str, is_at_least: bool) -> None:
    assert _read(Bound(Fraction("3.25"), is_minimum=True, is_exclusive=False), text) is is_at_least
    assert _read(Bound(Fraction("3.25"), is_minimum=False, is_exclusive=True), text) is not is_at_least


def test_a_bound_gives_up_on_mantissas_that_are_not_normal() -> None:
    bound = Bound(Fraction(5), is_minimum=True, is_exclusive=False)
    assert _read(bound, "12e0") is None
    assert _read(bound, "0.5e1") is None
    assert _read(bound, "0.0e7") is False


@pytest.mark.parametrize(
    ("text", "is_multiple"), [("0", True), ("1.5", True), ("1.25", None), ("0.75", None), ("-4.50", True), ("1", False)]
)
def test_a_multiple_is_told_by_its_digits(text: str, is_multiple: bool | None) -> None:
    assert _read(Multiple(Fraction("1.5")), text) is is_multiple
    assert _read(Multiple(Fraction("1.5"), is_negated=True), text) is (not is_multiple)


def test_a_multiple_takes_only_exponents_that_keep_it_one() -> None:
    assert _read(Multiple(Fraction(3)), "6e5") is True
    assert _read(Multiple(Fraction(3)), "6e-1") is None
    assert _read(Multiple(Fraction(3)), "2e1") is None
    assert _read(Multiple(Fraction(3), is_negated=True), "2e00") is True
    assert _read(Multiple(Fraction(3), is_negated=True), "2e1") is None


def test_a_form_counts_digits() -> None:
    assert _read(Form(max_digits=3), "1.25") is True
    assert _read(Form(max_digits=3), "1.255") is None
    assert _read(Form(allows_fraction=False), "1.0") is None
    assert _read(Form(needs_fraction=True), "10") is False
