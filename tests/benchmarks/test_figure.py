"""Figures, their lines, and the two statistics."""

from __future__ import annotations

import math

import pytest

from rtlang.bench.measure import percentile
from rtlang_bench.figure import Figure, fairness


@pytest.mark.parametrize(
    ("figure", "is_met", "line"),
    [
        (Figure("gap", 200.0, "<=", 250.0, "ms"), True, "gap: 200 ms, bound <= 250 ms, met"),
        (Figure("gap", 251.0, "<=", 250.0, "ms", "x"), False, "gap: 251 ms, bound <= 250 ms, MISSED (x)"),
        (Figure("fair", 0.95, ">=", 0.95), True, "fair: 0.95, bound >= 0.95, met"),
        (Figure("texts", 2, "==", 1, "texts"), False, "texts: 2 texts, bound == 1 texts, MISSED"),
        (Figure("kill", math.nan, "==", 0), False, "kill: not measured, bound == 0, MISSED"),
    ],
)
def test_a_line_says_value_bound_and_verdict(figure: Figure, is_met: bool, line: str) -> None:
    assert figure.is_met == is_met
    assert str(figure) == line


def test_fairness_is_one_for_equals_and_small_for_one_that_has_all() -> None:
    assert fairness([3.0] * 7) == 1.0
    assert fairness([5.0, 0.0, 0.0, 0.0]) == 0.25
    assert fairness([0.0, 0.0]) == 0.0


@pytest.mark.parametrize(
    ("share", "expected"), [(0.01, 1.0), (0.5, 2.0), (0.75, 3.0), (0.76, 4.0), (0.99, 4.0), (1.0, 4.0)]
)
def test_a_percentile_is_the_nearest_rank(share: float, expected: float) -> None:
    assert percentile([3.0, 1.0, 4.0, 2.0], share) == expected


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(n) for n in range(100, 0, -1)]
    assert (percentile(values, 0.99), percentile(values, 0.5), percentile(values, 1.0)) == (99.0, 50.0, 100.0)
    assert math.isnan(percentile([], 0.5))
