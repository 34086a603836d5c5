"""Typed values while their texts grow: snapshots at any length."""

from __future__ import annotations

import datetime
import json

import pytest
from pydantic import BaseModel

from rtlang.lang.partials.partial_object import PartialObject
from rtlang.lang.partials.shapes import shape_of


class Visit(BaseModel):
    city: str
    day: datetime.date
    scores: list[int]


TEXT = '{"city": "S\\u00e3o", "day": "2020-01-02", "scores": [1, 23]}'


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (0, None),
        (1, {}),
        (11, {"city": "S"}),
        (14, {"city": "S"}),
        (17, {"city": "Sã"}),
        (TEXT.index(', "scores'), {"city": "São", "day": datetime.date(2020, 1, 2)}),
        (TEXT.index(" 23]"), {"city": "São", "day": datetime.date(2020, 1, 2), "scores": [1]}),
        (TEXT.index("]"), {"city": "São", "day": datetime.date(2020, 1, 2), "scores": [1]}),
        (len(TEXT), Visit.model_validate_json(TEXT)),
    ],
)
def test_a_snapshot_is_the_value_so_far_then_and_later(end: int, expected: object) -> None:
    growing = PartialObject(shape_of(Visit))
    growing.push(TEXT[:end])
    assert growing.snapshot(end) == expected
    growing.push(TEXT[end:])
    assert growing.snapshot(end) == expected


def test_plain_json_needs_no_type_and_values_that_do_not_parse_are_left_out() -> None:
    growing = PartialObject()
    growing.push(json.dumps({"a": [1, {"b": None}]}))
    assert growing.snapshot(growing.text.length) == {"a": [1, {"b": None}]}
    wrong = PartialObject(shape_of(Visit))
    (place,) = wrong.push('{"day": "no date"')[0]
    with pytest.raises(ValueError, match="date"):
        wrong.value_at(place)
    assert wrong.snapshot(wrong.text.length) == {}
    number = PartialObject(shape_of(int))
    assert number.push("12")[0] == ()
    assert [number.value_at(place) for place in number.finish()] == [12]
