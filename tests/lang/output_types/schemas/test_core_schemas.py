"""Questions to core schemas and JSON schemas."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from pydantic import SecretBytes, TypeAdapter

from rtlang.lang.output_types.schemas.core_schemas import (
    decimal_literal,
    is_text,
    leaf_of,
    pattern_with_flags,
    whole_bounds,
)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, True),
        ({"title": "Any"}, True),
        ({"type": "string", "pattern": "a"}, True),
        ({"type": "integer"}, False),
        ({"anyOf": [{"type": "string"}, {"type": "string", "enum": ["a"]}]}, True),
        ({"anyOf": [{"type": "string"}, {"type": "array"}]}, False),
        ({"$ref": "#/$defs/A"}, False),
    ],
)
def test_texts_are_recognized(schema: dict[str, Any], expected: bool) -> None:
    assert is_text(schema) is expected


def test_integers_within_bounds() -> None:
    assert whole_bounds((Fraction(1, 2), Fraction(5, 2), False, True)) == (1, 2)
    assert whole_bounds((Fraction(1), Fraction(3), True, True)) == (2, 2)
    assert whole_bounds((None, None, False, False)) == (None, None)


@pytest.mark.parametrize(("value", "text"), [("1.50", "1[.]5"), ("100", "100"), ("1E+2", "100"), ("-0.25", "-0[.]25")])
def test_decimals_are_written_in_one_way(value: str, text: str) -> None:
    assert decimal_literal(Decimal(value)) == text


@pytest.mark.parametrize(
    ("pattern", "text"),
    [(re.compile("a"), "a"), (re.compile("a", re.I | re.S), "(?is)a"), (re.compile("(?x) a"), "(?x) a")],
)
def test_flags_stand_before_a_pattern(pattern: re.Pattern[str], text: str) -> None:
    assert pattern_with_flags(pattern) == text
    assert re.compile(pattern_with_flags(pattern)).flags == pattern.flags


def test_the_leaf_is_what_reads_json() -> None:
    assert leaf_of(TypeAdapter(SecretBytes).core_schema)["type"] == "bytes"
    assert leaf_of({"type": "function-plain", "function": None})["type"] == "function-plain"
