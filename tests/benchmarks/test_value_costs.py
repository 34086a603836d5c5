"""Prices of pure functions beside measured times; times decide nothing here."""

from __future__ import annotations

import pytest

from rtlang.contract.graph.pure_functions import FUNCTIONS
from rtlang_bench.value_costs import MAX_HOLD_S, MAX_RATIO, Row, ValueCosts, cases, measure_value_costs


def test_every_function_has_arguments() -> None:
    assert set(cases(1_000)) == set(FUNCTIONS)


def test_functions_run_on_their_arguments() -> None:
    found = measure_value_costs(1_000, 1, names=("upper", "split", "list"))
    assert {row.name for row in found.rows} == {"upper", "split", "list"}
    assert all(row.price_s > 0 and row.seconds > 0 and not row.error for row in found.rows)
    assert [line.split()[0] for line in str(found).splitlines()] == [
        "function",
        *(row.name for row in found.rows),
        "worst",
        "longest",
    ]


@pytest.mark.parametrize(
    ("seconds", "hold_s", "is_met"),
    [
        (0.009, 0.0, True),
        (0.009 * MAX_RATIO + 0.0009, MAX_HOLD_S, True),
        (0.009 * MAX_RATIO + 0.0011, 0.0, False),
        (0.009, MAX_HOLD_S + 0.001, False),
    ],
)
def test_a_call_above_its_bounds_is_told(seconds: float, hold_s: float, is_met: bool) -> None:
    rows = (Row("len", 1e-6, 2e-6, 0.0, ""), Row("upper", 0.009, seconds, hold_s, ""))
    assert ValueCosts(rows).is_met == is_met
    assert "(upper)" in str(ValueCosts(rows)).splitlines()[-2]
