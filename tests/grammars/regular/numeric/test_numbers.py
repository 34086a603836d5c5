"""Numbers by value, checked against exact fractions."""

from __future__ import annotations

import itertools
import json
import random
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtlang_grammars.regular.language import Language
from rtlang_grammars.regular.numeric.numbers import number_language
from rtlang_grammars.spec.errors import GrammarError
from tests.support.long_tests import sized

decimals = st.builds(
    lambda digits, places: Fraction(digits, 10**places), st.integers(-12_000, 12_000), st.integers(0, 3)
)
steps = st.sampled_from([Fraction(each) for each in ("1", "2", "0.5", "0.01", "2.5", "7", "10", "300", "0.15", "12")])
written_numbers = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "-"]),
    st.one_of(st.integers(0, 20), st.integers(0, 20_000)),
    st.sampled_from(["", "", "", ".0", ".5", ".25", ".05", ".125", ".999", ".50", ".001"]),
    st.sampled_from(["", "", "", "e0", "E1", "e+2", "e-1", "e-02", "e3", "E-0", "e12"]),
)
constraints = st.fixed_dictionaries(
    {},
    optional={
        "minimum": decimals,
        "maximum": decimals,
        "exclusive_minimum": st.booleans(),
        "exclusive_maximum": st.booleans(),
        "multiple_of": steps,
        "not_multiple_of": st.lists(steps, max_size=1),
        "integer": st.booleans(),
    },
)


def _satisfies(value: Fraction, constraint: dict[str, Any]) -> bool:
    minimum, maximum = constraint.get("minimum"), constraint.get("maximum")
    return (
        (minimum is None or value > minimum or (value == minimum and not constraint.get("exclusive_minimum")))
        and (maximum is None or value < maximum or (value == maximum and not constraint.get("exclusive_maximum")))
        and ("multiple_of" not in constraint or value % constraint["multiple_of"] == 0)
        and all(value % step for step in constraint.get("not_multiple_of", ()))
        and not (constraint.get("integer") and value.denominator != 1)
    )


@settings(max_examples=sized(120), deadline=None, derandomize=True)
@given(constraints, st.lists(written_numbers, min_size=25, max_size=25))
def test_plain_decimals_are_exact_and_exponents_are_sound(constraint: dict[str, Any], spellings: list[str]) -> None:
    language = number_language(**constraint)
    for spelling in spellings:
        expected = _satisfies(Fraction(Decimal(spelling)), constraint)
        if "e" in spelling.lower():
            assert expected or not language.accepts(spelling), spelling
        else:
            assert language.accepts(spelling) == expected, spelling


@settings(max_examples=sized(50), deadline=None, derandomize=True)
@given(constraints)
def test_samples_are_json_numbers_that_satisfy_the_constraints(constraint: dict[str, Any]) -> None:
    language = number_language(**constraint)
    for text in language.samples(random.Random(0), 10):
        if len(text.lower().partition("e")[2]) > 4:
            continue  # correct, but too large to compute with
        assert json.loads(text) is not None
        assert _satisfies(Fraction(Decimal(text)), constraint), text


@settings(max_examples=sized(80), deadline=None, derandomize=True)
@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_written_by_python_compare_correctly(value: float, bound: float) -> None:
    text, limit = json.dumps(value), Fraction(Decimal(json.dumps(bound)))
    exact = Fraction(Decimal(text))
    assert number_language(minimum=limit).accepts(text) == (exact >= limit)
    assert number_language(maximum=limit, exclusive_maximum=True).accepts(text) == (exact < limit)


@pytest.mark.parametrize(("low", "high"), list(itertools.combinations([-105, -10, -1, 0, 3, 9, 10, 99, 1000], 2)))
def test_integer_ranges_have_exactly_their_integers(low: int, high: int) -> None:
    language = number_language(low, high, integer=True, integer_form=True)
    words = language.finite_words(3000)
    assert words is not None
    assert sorted(int(word) for word in words if word != "-0") == list(range(low, high + 1))


def test_unsatisfiable_constraints_give_the_empty_language() -> None:
    assert number_language(3, 2).is_empty()
    assert number_language(3, 3, exclusive_minimum=True).is_empty()
    assert number_language(1, 2, exclusive_minimum=True, exclusive_maximum=True, integer=True).is_empty()
    assert number_language(multiple_of=2, not_multiple_of=[1]).is_empty()


@pytest.mark.parametrize("text", ["1.0", "1e0", "10E-0", "1.00e+5", "-0", "0.000", "0e9"])
def test_integers_are_recognized_by_value(text: str) -> None:
    assert number_language(integer=True).accepts(text)
    assert not number_language(not_multiple_of=[1]).accepts(text)


def test_forms_can_be_required() -> None:
    written = number_language(integer=True, integer_form=True)
    assert [text for text in ("1", "1.0", "1e0", "-12") if written.accepts(text)] == ["1", "-12"]
    fraction = number_language(fraction_form=True)
    assert [text for text in ("1", "1.0", "1e0", "-12") if fraction.accepts(text)] == ["1.0", "1e0"]
    short = number_language(max_digits=3)
    assert [text for text in ("123", "1234", "1.23", "1.234", "1e308", "1e309", "1e-325") if short.accepts(text)] == [
        "123",
        "1.23",
        "1e308",
    ]


@pytest.mark.parametrize("text", ["01", "+1", ".5", "1.", "", "-", "1e", "1e+", "NaN", "--1", "1.5.2", "1e1.0", " 1"])
def test_invalid_json_numbers_are_rejected(text: str) -> None:
    for language in (number_language(), number_language(-100, 100), number_language(integer=True)):
        assert not language.accepts(text)


@pytest.mark.parametrize(
    ("constraint", "reason"),
    [
        ({"minimum": Fraction(1, 3)}, "no finite decimal form"),
        ({"multiple_of": 2003}, "may be at most 2000"),
        ({"multiple_of": 0}, "greater than 0"),
        ({"maximum": 10**500}, "at most 400 digits"),
    ],
)
def test_unsupported_bounds_and_steps_are_errors(constraint: dict[str, Any], reason: str) -> None:
    with pytest.raises(GrammarError, match=reason):
        number_language(**constraint)


def test_large_round_steps_and_distant_bounds_stay_small() -> None:
    million = number_language(multiple_of=10**12)
    assert million.accepts("7000000000000")
    assert not million.accepts("7000000000001")
    largest = number_language(maximum=Fraction(Decimal("1.7976931348623157e308")))
    assert largest.accepts("1.7976931348623157e308")
    assert not largest.accepts("1.7976931348623158e308")
    assert isinstance(largest, Language)


PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?|-?[1-9](\.[0-9]+)?[eE][+-]?[0-9]+")


@settings(max_examples=sized(120), deadline=None, derandomize=True)
@given(constraints, st.lists(written_numbers, min_size=25, max_size=25))
def test_plain_numbers_are_those_that_satisfy_a_constraint_in_one_notation(
    constraint: dict[str, Any], spellings: list[str]
) -> None:
    plain, every = number_language(**constraint, is_plain=True), number_language(**constraint)
    steps = [constraint["multiple_of"]] if "multiple_of" in constraint else []
    is_whole = bool(constraint.get("integer")) or any(step.denominator == 1 for step in steps)
    for spelling in spellings:
        value = Fraction(spelling)
        written = str(value.numerator) if value.denominator == 1 else str(Decimal(value.numerator) / value.denominator)
        assert plain.accepts(written) == _satisfies(value, constraint), written
        if plain.accepts(spelling):
            assert every.accepts(spelling)
            assert (PLAIN_INTEGER if is_whole else PLAIN_NUMBER).fullmatch(spelling)
            assert not steps or "e" not in spelling.lower()


FINITE = ["1e307", "9.99e307", "1.5e+300", "2E-324", "-1e307", "0.5", "-0.0", "1e16", "1e-07"]
ODD = ["1e308", "-9e308", "12e3", "0e0", "0.5e3", "10.5e-1"]


@pytest.mark.parametrize(
    "bounds",
    [{}, {"minimum": -(10**309)}, {"maximum": Fraction(10**309)}, {"minimum": -(10**399), "maximum": 10**399}],
    ids=str,
)
def test_plain_numbers_are_finite_unless_a_bound_is_beyond_doubles(bounds: dict[str, Any]) -> None:
    language = number_language(**bounds, is_plain=True)
    assert [text for text in FINITE if not language.accepts(text)] == []
    accepted = [text for text in ODD if language.accepts(text)]
    assert accepted == (["1e308", "-9e308"] if bounds else [])


@pytest.mark.parametrize(
    "bounds", [{"minimum": 0}, {"maximum": 5}, {"minimum": 0.5, "exclusive_minimum": True}], ids=str
)
def test_a_number_with_one_bound_is_finite_too(bounds: dict[str, Any]) -> None:
    bounds = {key: Fraction(value) if key != "exclusive_minimum" else value for key, value in bounds.items()}
    language = number_language(**bounds, is_plain=True)
    sign = "-" if "maximum" in bounds else ""
    assert language.accepts(f"{sign}1e307")
    assert not language.accepts(f"{sign}1e308")


@pytest.mark.parametrize("digits", [40, 41, 60, 200, 308, 350])
def test_plain_integers_have_every_digit_that_a_bound_has(digits: int) -> None:
    low, high = 10**digits, 10**digits + 5
    language = number_language(low, high, integer=True, is_plain=True)
    accepted = [number - low for number in range(low - 3, high + 4) if language.accepts(str(number))]
    assert accepted == [0, 1, 2, 3, 4, 5]
    assert not language.accepts(f"1e{digits}")
    only_low = number_language(low, integer=True, is_plain=True)
    assert [only_low.accepts(str(number)) for number in (low - 1, low, 10 * low)] == [False, True, True]
