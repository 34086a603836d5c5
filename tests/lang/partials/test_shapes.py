"""The types inside types: what is known early equals the same place of the whole value, and nothing else is said."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator
from typing_extensions import TypedDict

from rtlang.contract.growing_json import GrowingJson, JsonKind
from rtlang.lang.partials.partial_object import PartialObject
from rtlang.lang.partials.shapes import PLAIN, ValueShape, shape_of, whole


class Color(enum.Enum):
    RED = "red"


class City(BaseModel):
    name: str
    since: datetime.date


@dataclass
class Pair:
    left: int
    right: decimal.Decimal


class Row(TypedDict):
    key: uuid.UUID


class Sheet(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)
    title: str
    color: Color
    city: City | None
    pairs: list[Pair]
    row: Row
    short: Annotated[str, Field(min_length=1)]
    kind: Literal["a", "b"]
    both: tuple[int, datetime.date]
    by_name: dict[str, City]
    called: int = Field(alias="as")
    any: Any
    several: City | Pair


SHEET = Sheet.model_validate(
    {
        "title": " t ",
        "color": "red",
        "city": {"name": "Rome", "since": "1999-01-02"},
        "pairs": [{"left": 1, "right": "2.5"}, {"left": 3, "right": "1"}],
        "row": {"key": "12345678-1234-5678-1234-567812345678"},
        "short": "s",
        "kind": "b",
        "both": [1, "2020-02-02"],
        "by_name": {"x": {"name": "Y", "since": "2000-01-01"}},
        "as": 4,
        "any": {"deep": [1, None]},
        "several": {"left": 1, "right": "2"},
    }
)
ALIASES = {"as": "called"}


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        if isinstance(value, (dict, list, tuple)):
            value = value[step]
        else:
            value = getattr(value, ALIASES.get(str(step), str(step)))
    return value


def test_every_early_value_of_a_typed_object_is_that_of_the_whole() -> None:
    text = SHEET.model_dump_json(by_alias=True)
    whole_value = Sheet.model_validate_json(text)
    found = {}
    growing = PartialObject(shape_of(Sheet))
    for character in text:
        for place in growing.push(character)[0]:
            found[place.path] = value = growing.value_at(place)
            expected = at(whole_value, place.path)
            assert value == expected
            assert type(value) is type(expected)
    assert found[()] == whole_value
    assert {("city", "since"), ("pairs", 0), ("pairs", 1, "right"), ("row", "key"), ("both", 1)} <= set(found)
    assert {("by_name", "x", "name"), ("any", "deep", 1), ("as",), ("several",)} <= set(found)
    assert ("several", "left") not in found  # which of the two it is, is known at its end


class Checked(BaseModel):
    plain: int
    doubled: int

    @field_validator("doubled")
    @classmethod
    def _double(cls, value: int) -> int:
        return 2 * value


class Hooked(BaseModel):
    x: int

    def model_post_init(self, context: object) -> None:
        self.x += 1


class Rewritten(BaseModel):
    x: int

    @model_validator(mode="after")
    def _rewrite(self) -> Rewritten:
        self.x = 7
        return self


@dataclass
class Completed:
    x: int

    def __post_init__(self) -> None:
        self.x += 1


@pytest.mark.parametrize(
    ("hint", "step"),
    [
        (Checked, "doubled"),
        (Hooked, "x"),
        (Rewritten, "x"),
        (Completed, "x"),
        (Annotated[dict[str, int], AfterValidator(lambda value: {})], "x"),
        (City | Pair, "left"),
        (dict[int, int], "1"),
        (City, "undeclared"),
        (int, "x"),
    ],
)
def test_what_a_type_may_change_is_not_known_early(hint: Any, step: str) -> None:
    assert shape_of(hint).inside(JsonKind.OBJECT, step) is None


def test_other_fields_of_a_checked_model_are_known() -> None:
    inner = shape_of(Checked).inside(JsonKind.OBJECT, "plain")
    assert inner is not None
    assert inner.parse("3") == 3


@pytest.mark.parametrize("hint", [set[int], frozenset[int], tuple[int, int]])
def test_items_of_sets_and_beyond_a_tuple_are_not_known(hint: Any) -> None:
    assert shape_of(hint).inside(JsonKind.ARRAY, 2) is None


def test_plain_data_is_plain_all_the_way_and_a_whole_has_no_inside() -> None:
    inner = PLAIN.inside(JsonKind.OBJECT, "a")
    assert inner is not None
    assert inner.inside(JsonKind.ARRAY, 0) is PLAIN
    assert whole(int).inside(JsonKind.OBJECT, "a") is None
    assert isinstance(shape_of(Any), ValueShape)
    assert GrowingJson().root is None
