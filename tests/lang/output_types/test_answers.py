"""Types of answers: their schemas, and what fits."""

from __future__ import annotations

import datetime
import enum
from typing import Any

import pytest

from rtlang.lang.output_types.answers import answer_type
from rtlang.lang.output_types.kinds import BOOL, INT, STR


class Color(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("schema", "described", "plain", "value"),
    [
        (None, None, "x", "x"),
        (str, None, "x", "x"),
        (bool, {"type": "boolean"}, True, True),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, None),
        (datetime.date, {"type": "string", "format": "date"}, "2026-01-02", datetime.date(2026, 1, 2)),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": 1}),
        ({"type": "integer"}, {"type": "integer"}, 4, 4),
        (True, True, {"any": []}, {"any": []}),
    ],
)
def test_a_type_describes_checks_and_reads(schema: Any, described: Any, plain: Any, value: Any) -> None:
    found = answer_type(schema)
    assert found.schema == described
    assert found.read(found.check(plain)) == value


def test_kinds_are_known_where_data_equals_the_value() -> None:
    assert [answer_type(each).kind for each in (None, bool, int, datetime.date)] == [STR, BOOL, INT, None]


@pytest.mark.parametrize(("schema", "plain"), [(None, 1), (int, "x"), (Color, "blue"), ({"enum": [1]}, 2), (False, 1)])
def test_what_does_not_fit_is_a_value_error(schema: Any, plain: Any) -> None:
    with pytest.raises(ValueError):
        answer_type(schema).check(plain)
