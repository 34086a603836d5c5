"""DFAs of bounds, checked against exact fractions."""

from __future__ import annotations

import itertools
import random
import re
from decimal import Decimal
from fractions import Fraction

import pytest

from rtlang_grammars.regular.numeric.bound_machines import NUM_SYMBOLS, Table, bound_table
from rtlang_grammars.spec.errors import GrammarError

_SYMBOLS = "0123456789-+.e"
_JSON = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]{1,3})?")
_NORMAL = re.compile(r"-?([1-9]|0(?=(\.0+)?e))(\.[0-9]+)?e.*|.*e[+-]?0+")
BOUNDS = [Fraction(text) for text in ("0", "7", "10", "-12", "99.5", "0.03", "-0.9", "250", "1.05", "-1e3", "4e-4")]


def _accepts(table: Table, text: str) -> bool:
    rows, accepting = table
    state = 0
    for character in text:
        state = rows[state][_SYMBOLS.index(character)]
        if state < 0:
            return False
    return accepting[state]


def _expected(bound: Fraction, is_minimum: bool, is_exclusive: bool, text: str) -> bool:
    if not _JSON.fullmatch(text) or ("e" in text and not _NORMAL.fullmatch(text)):
        return False
    if "e" in text and not -324 <= int(text.partition("e")[2]) <= 308:
        return False
    value = Fraction(Decimal(text))
    return (value == bound and not is_exclusive) or (value > bound if is_minimum else value < bound)


def _candidates(bound: Fraction, rng: random.Random) -> list[str]:
    """Numbers around a bound in many notations, and strings that are not numbers."""
    texts = [
        "",
        "-",
        "01",
        "1.",
        ".5",
        "1e",
        "1e+",
        "--1",
        "1e5e",
        "0.e1",
        "1e0009",
        "-0",
        "-0.00e-7",
        "0e308",
        "0e-324",
    ]
    scale = abs(bound).numerator.bit_length() * 3 // 10
    for _ in range(200):
        whole = rng.choice(["0", str(rng.randint(1, 9)), str(rng.randint(0, 10 ** (scale + 1)))])
        part = rng.choice(["", "", "." + "".join(rng.choices("0059", k=rng.randint(1, 4)))])
        exponent = rng.choice(
            ["", "", f"e{rng.choice(['', '+', '-'])}{rng.choice(['', '0', '00'])}{rng.randint(0, 4)}"]
        )
        texts.append(rng.choice(["", "-"]) + whole + part + exponent)
    exact = format(Decimal(bound.numerator) / Decimal(bound.denominator), "f")
    texts += [exact, exact + "0" if "." in exact else exact + ".0", exact + ("1" if "." in exact else ".001")]
    for mantissa, exponent in itertools.product(("1", "9.99", "2.5", "4"), range(-5, 5)):
        texts += [f"{mantissa}e{exponent}", f"-{mantissa}e{exponent}"]
    texts += [
        f"{digits}e{sign}{size}" for digits in "15" for sign in ("", "-") for size in (300, 307, 308, 309, 324, 325)
    ]
    return texts


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_numbers_are_compared_by_value(bound: Fraction) -> None:
    texts = _candidates(bound, random.Random(5))
    for is_minimum, is_exclusive in itertools.product((True, False), repeat=2):
        table = bound_table(bound, is_minimum=is_minimum, is_exclusive=is_exclusive)
        for text in texts:
            assert _accepts(table, text) is _expected(bound, is_minimum, is_exclusive, text), (text, is_minimum)


def test_numbers_near_an_extreme_bound_need_an_exponent() -> None:
    large = bound_table(Fraction(10) ** 60, is_minimum=False, is_exclusive=True)
    assert _accepts(large, "9" * 40)
    assert not _accepts(large, "9" * 41)
    assert _accepts(large, "9.99e59")
    assert not _accepts(large, "1e60")
    assert _accepts(large, "-" + "9" * 100)
    small = bound_table(Fraction(1, 10**60), is_minimum=True, is_exclusive=False)
    assert _accepts(small, "0." + "0" * 39 + "1")
    assert not _accepts(small, "0." + "0" * 60 + "1")
    assert _accepts(small, "1e-60")
    assert not _accepts(small, "9.9e-61")


@pytest.mark.parametrize("text", ["0", "1", "-65535", "0.125", "1e300", "123456789.987654321"])
def test_tables_are_small_and_well_formed(text: str) -> None:
    bound = Fraction(Decimal(text))
    rows, accepting = bound_table(bound, is_minimum=True, is_exclusive=True)
    assert len(rows) == len(accepting) <= 150
    assert all(len(row) == NUM_SYMBOLS and max(row) < len(rows) and min(row) >= -1 for row in rows)


def test_a_bound_without_a_finite_decimal_form_is_an_error() -> None:
    with pytest.raises(GrammarError, match="no finite decimal form"):
        bound_table(Fraction(1, 3), is_minimum=True, is_exclusive=False)
