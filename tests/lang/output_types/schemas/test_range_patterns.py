"""Patterns of ranges match exactly the values of the range, each in one spelling."""

from __future__ import annotations

import random
import re
from fractions import Fraction

import pytest

from rtlang.lang.output_types.schemas.range_patterns import (
    MAX_LISTED,
    NOTHING,
    between,
    decimals,
    either,
    integers,
    multiples,
)


def matches(pattern: str, text: str) -> bool:
    return pattern != NOTHING and re.fullmatch(pattern, text) is not None


@pytest.mark.parametrize("seed", range(3))
def test_integers_are_those_within_the_bounds(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        low, high = (rng.choice([None, rng.randint(-3000, 3000), rng.randint(-30, 30)]) for _ in range(2))
        pattern = integers(low, high)
        near = [each + step for each in (low, high, 0) if each is not None for step in (-1, 0, 1)]
        for number in [*near, *(rng.randint(-4000, 4000) for _ in range(20))]:
            is_inside = (low is None or number >= low) and (high is None or number <= high)
            assert matches(pattern, str(number)) == is_inside, (low, high, number)
        assert not matches(pattern, "-0")
        assert not matches(pattern, "007")


@pytest.mark.parametrize("seed", range(3))
def test_decimals_are_within_the_bounds_and_spelled_in_one_way(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        low, high = (
            rng.choice([None, Fraction(rng.randint(-300, 300), rng.choice([1, 2, 10, 100]))]) for _ in range(2)
        )
        is_above, is_below = rng.random() < 0.5, rng.random() < 0.5
        pattern = decimals(low, high, open_low=is_above, open_high=is_below)
        for number in [each for each in (low, high) if each is not None] + [Fraction(rng.randint(-4000, 4000), 10)]:
            text = f"{float(number):.6f}".rstrip("0").removesuffix(".")
            is_inside = (low is None or number > low or (number == low and not is_above)) and (
                high is None or number < high or (number == high and not is_below)
            )
            assert is_inside or not matches(pattern, text), (low, high, text)
        assert not matches(pattern, "1.50")


def test_decimals_keep_to_their_digits() -> None:
    pattern = decimals(None, None, whole_digits=2, places=2)
    assert all(matches(pattern, text) for text in ("0", "-12", "12.5", "99.99", "0.01"))
    assert not any(matches(pattern, text) for text in ("100", "1.125", "-0", "1.0"))
    assert matches(decimals(Fraction(1, 10), Fraction(7, 20)), "0.250000")
    assert decimals(Fraction(2), Fraction(1)) == NOTHING


def test_texts_of_one_form_are_in_order() -> None:
    pattern = between("2023-05-17", "2024-03-02")
    for text in ("2023-05-17", "2023-12-31", "2024-03-02"):
        assert matches(pattern, text)
    for text in ("2023-05-16", "2024-03-03", "2022-06-01"):
        assert not matches(pattern, text)
    assert between("10:00", "09:00") == NOTHING
    assert len(between("000000000000000", "999999999999999")) < 20


def test_multiples_are_those_nearest_to_zero() -> None:
    assert set(multiples(Fraction(7), -1, 2)) == {-7, 0, 7, 14}
    assert list(multiples(Fraction(1, 4), 3, 3)) == [Fraction(3, 4)]
    assert len(list(multiples(Fraction(1), None, None))) == MAX_LISTED
    assert list(multiples(Fraction(1), 3, 2)) == []


def test_alternatives_leave_out_what_is_nothing() -> None:
    assert either(NOTHING, "a", "a") == "a"
    assert either() == NOTHING
