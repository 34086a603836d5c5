"""Number rules, digit by digit."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction

import pytest

from rtlang_grammars.regular.numeric.number_rules import Form, Multiple, NumberRule


def _read(rule: NumberRule, text: str) -> bool | None:
    """Whether a rule accepts a number; None if it rejects early."""
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
    ("text", "is_multiple"), [("0", True), ("1.5", True), ("1.25", None), ("0.75", None), ("-4.50", True), ("1", False)]
)
def test_multiples_are_recognized_by_their_digits(text: str, is_multiple: bool | None) -> None:
    assert _read(Multiple(Fraction("1.5")), text) is is_multiple
    assert _read(Multiple(Fraction("1.5"), is_negated=True), text) is (not is_multiple)


def test_multiples_allow_only_safe_exponents() -> None:
    assert _read(Multiple(Fraction(3)), "6e5") is True
    assert _read(Multiple(Fraction(3)), "6e-1") is None
    assert _read(Multiple(Fraction(3)), "2e1") is None
    assert _read(Multiple(Fraction(3), is_negated=True), "2e00") is True
    assert _read(Multiple(Fraction(3), is_negated=True), "2e1") is None


def test_forms_count_digits() -> None:
    assert _read(Form(max_digits=3), "1.25") is True
    assert _read(Form(max_digits=3), "1.255") is None
    assert _read(Form(allows_fraction=False), "1.0") is None
    assert _read(Form(needs_fraction=True), "10") is False
