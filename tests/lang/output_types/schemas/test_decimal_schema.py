"""Schemas of decimals; their values are compared with pydantic in `test_pydantic_schema`."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from rtlang.lang.output_types.schemas.decimal_schema import decimal_bounds, decimal_schema


@pytest.mark.parametrize(
    ("schema", "bounds"),
    [
        ({}, (None, None, False, False)),
        ({"ge": 1, "lt": 2.5}, (1, Fraction(5, 2), False, True)),
        ({"ge": 1, "gt": 1}, (1, None, True, False)),
        ({"gt": 0, "ge": 3}, (3, None, False, False)),
        ({"le": Decimal("0.1"), "lt": 4}, (None, Fraction(1, 10), False, False)),
        ({"ge": float("-inf")}, (None, None, False, False)),
    ],
)
def test_the_narrower_bound_holds(schema: dict[str, Any], bounds: Any) -> None:
    assert decimal_bounds(schema) == bounds


def test_multiples_are_small_enough_for_a_decimal_context() -> None:
    found = decimal_schema({"multiple_of": Decimal("0.25")})
    assert found["multipleOf"] == 0.25
    assert found["maximum"] == -found["minimum"] == 10**15
    assert decimal_schema({"multiple_of": 2, "ge": 5})["minimum"] == 5
