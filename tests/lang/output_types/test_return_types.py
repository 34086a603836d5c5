"""The declared type of a function makes its value from plain data."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, Field

from rtlang.contract.graph.host_calls import to_plain
from rtlang.lang.output_types.return_types import return_reader


class Color(enum.Enum):
    RED = "red"


class City(BaseModel):
    name: str = Field(alias="cityName", default="")
    color: Color = Color.RED


@dataclass
class Point:
    x: int
    colors: tuple[Color, ...] = ()


class Pair(NamedTuple):
    first: int
    second: Point


def city() -> City:
    return City(cityName="Rome")


def cities() -> list[City | None]:
    return [city(), None]


def point() -> Point:
    return Point(3, (Color.RED,))


def pair() -> Pair:
    return Pair(1, point())


def by_name() -> dict[str, Point]:
    return {"a": point()}


def color() -> Color:
    return Color.RED


async def later() -> City:
    return city()


class Called:
    def __call__(self) -> City:
        return city()


@pytest.mark.parametrize("function", [city, cities, point, pair, by_name, color, Called(), functools.partial(city)])
def test_a_value_is_what_the_function_returned(function: Any) -> None:
    value = function()
    reader = return_reader(function)
    assert reader is not None
    assert reader(to_plain(value)) == value
    assert type(reader(to_plain(value))) is type(value)


def test_a_coroutine_function_declares_its_result() -> None:
    reader = return_reader(later)
    assert reader is not None
    assert reader(to_plain(city())) == city()


def test_plain_types_and_no_types_need_no_reader() -> None:
    def plain() -> dict[str, list[int]]:
        return {}

    def unknown() -> "Missing":  # noqa: F821, UP037
        return None

    assert return_reader(plain) is None
    assert return_reader(lambda: 3) is None
    assert return_reader(unknown) is None
    assert return_reader(None) is None
    assert return_reader(len) is None


def test_data_of_another_form_stays_as_it_is() -> None:
    reader = return_reader(city)
    assert reader is not None
    assert reader("Error: no such city") == "Error: no such city"
    assert reader({"color": "blue"}) == {"color": "blue"}
