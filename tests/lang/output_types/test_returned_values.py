"""What tools return, as plain data and back."""

from __future__ import annotations

import datetime
import enum
import functools
import uuid
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from rtlang.contract.graph.value_size import check_plain
from rtlang.lang.output_types.returned_values import plain_of, reader_of_result


class Sheet(BaseModel):
    name: str
    day: datetime.date


@dataclass
class Point:
    x: int
    tags: tuple[str, ...]


class Color(enum.Enum):
    RED = "red"


def sheet() -> Sheet: ...  # type: ignore[empty-body]
def points() -> list[Point]: ...  # type: ignore[empty-body]
def color() -> Color: ...  # type: ignore[empty-body]
def ids() -> set[uuid.UUID]: ...  # type: ignore[empty-body]
def maybe() -> Sheet | None: ...  # type: ignore[empty-body]
def text() -> str: ...  # type: ignore[empty-body]
def number() -> float: ...  # type: ignore[empty-body]
def undefined() -> Missing: ...  # type: ignore[name-defined]  # noqa: F821
def bare(): ...  # type: ignore[no-untyped-def]


async def later() -> datetime.timedelta: ...  # type: ignore[empty-body]


class Tool:
    def __call__(self) -> Sheet: ...  # type: ignore[empty-body]


SHEET = Sheet(name="a", day=datetime.date(2026, 1, 2))


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (sheet, SHEET),
        (points, [Point(1, ("a", "b"))]),
        (color, Color.RED),
        (ids, {uuid.UUID(int=5)}),
        (maybe, None),
        (maybe, SHEET),
        (text, "a"),
        (number, 3),
        (later, datetime.timedelta(seconds=5)),
        (Tool(), SHEET),
        (functools.partial(sheet), SHEET),
    ],
)
def test_the_annotated_type_comes_back(function: Any, value: Any) -> None:
    plain = plain_of(value)
    assert check_plain(plain) is None
    found = reader_of_result(function)(plain)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("function", [bare, undefined, None, text, sheet, len])
def test_without_a_fitting_annotation_data_stays_as_it_is(function: Any) -> None:
    assert reader_of_result(function)({"a": [1]}) == {"a": [1]}
    assert plain_of(datetime.date(2026, 1, 2)) == "2026-01-02"
