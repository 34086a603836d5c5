"""What functions and tools return, as plain data and back."""

from __future__ import annotations

import datetime
import enum
import functools
import uuid
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from rtlang.contract.graph.value_size import check_plain
from rtlang.lang.output_types.returned_values import plain_of, return_reader


class Color(enum.Enum):
    RED = "red"


class City(BaseModel):
    name: str = Field(alias="cityName", default="")
    color: Color = Color.RED


class Sheet(BaseModel):
    name: str
    day: datetime.date


class StrictSheet(Sheet, strict=True):
    pass


@dataclass
class Point:
    x: int
    colors: tuple[Color, ...] = ()


class Pair(NamedTuple):
    first: int
    second: Point


class Entry(TypedDict):
    day: datetime.date


class PlainEntry(TypedDict, total=False):
    name: str
    tags: list[str | None]


CITY, POINT = City(cityName="Rome"), Point(3, (Color.RED,))
SHEET = Sheet(name="a", day=datetime.date(2026, 1, 2))
STRICT = StrictSheet(name="a", day=datetime.date(2026, 1, 2))


def city() -> City: ...  # type: ignore[empty-body]
def cities() -> list[City | None]: ...  # type: ignore[empty-body]
def pair() -> Pair: ...  # type: ignore[empty-body]
def by_name() -> dict[str, Point]: ...  # type: ignore[empty-body]
def color() -> Color: ...  # type: ignore[empty-body]
def sheet() -> Sheet: ...  # type: ignore[empty-body]
def strict() -> StrictSheet: ...  # type: ignore[empty-body]
def ids() -> set[uuid.UUID]: ...  # type: ignore[empty-body]
def maybe() -> Sheet | None: ...  # type: ignore[empty-body]
def entry() -> Entry: ...  # type: ignore[empty-body]
async def later() -> datetime.timedelta: ...  # type: ignore[empty-body]


class Tool:
    def __call__(self) -> Sheet: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (city, CITY),
        (cities, [CITY, None]),
        (pair, Pair(1, POINT)),
        (by_name, {"a": POINT}),
        (color, Color.RED),
        (sheet, SHEET),
        (strict, STRICT),
        (ids, {uuid.UUID(int=5)}),
        (maybe, None),
        (maybe, SHEET),
        (entry, {"day": SHEET.day}),
        (later, datetime.timedelta(seconds=5)),
        (Tool(), SHEET),
        (functools.partial(sheet), SHEET),
    ],
)
def test_the_declared_type_comes_back(function: Any, value: Any) -> None:
    plain = plain_of(value)
    assert check_plain(plain) is None
    reader = return_reader(function)
    assert reader is not None
    assert (reader(plain), type(reader(plain))) == (value, type(value))


def nested() -> dict[str, list[int | None]]: ...  # type: ignore[empty-body]
def text() -> str: ...  # type: ignore[empty-body]
def word() -> Literal["a", 3]: ...  # type: ignore[empty-body]
def plain_entry() -> PlainEntry: ...  # type: ignore[empty-body]
def undefined() -> Missing: ...  # type: ignore[name-defined]  # noqa: F821
def bare(): ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize("function", [nested, text, word, plain_entry, undefined, bare, None, len, lambda: 3])
def test_plain_types_and_no_types_need_no_reader(function: Any) -> None:
    assert return_reader(function) is None


def bounded() -> Annotated[int, Field(ge=5)]: ...  # type: ignore[empty-body]


@pytest.mark.parametrize("function", [city, sheet, bounded])
@pytest.mark.parametrize("plain", ["Error: no such city", {"color": "blue"}, 3, [1]])
def test_data_of_another_form_stays_as_it_is(function: Any, plain: Any) -> None:
    reader = return_reader(function)
    assert reader is not None
    assert reader(plain) == plain


def test_values_that_json_has_no_form_for_become_text() -> None:
    assert plain_of({"day": SHEET.day}) == {"day": "2026-01-02"}
