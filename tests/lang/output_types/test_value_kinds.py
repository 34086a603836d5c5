"""Kinds of values: where plain data is certainly what Python has, and nowhere else."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, NotRequired

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    StringConstraints,
    model_validator,
)
from typing_extensions import TypedDict

import rtlang as rt
from rtlang.lang.output_types.types import output_type
from rtlang.lang.output_types.value_kinds import BOOL, FLOAT, INT, STR, Listed, Mapped, Record, kind_of


class Color(enum.Enum):
    RED = "red"


class Node(BaseModel):
    name: str
    children: list[Node] = []
    left: Node | None = None
    parent: list[Node]


@dataclass
class Point:
    x: int
    y: int = 0
    z: int = field(default=0, init=False)


@dataclass
class Changing:
    x: int

    def __post_init__(self) -> None:
        self.x += 1


class Dict(TypedDict):
    a: str
    b: NotRequired[int]


class Stripping(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)
    a: str


class Inside(BaseModel):
    stripping: Stripping
    fine: str


class Checked(BaseModel):
    a: str

    @model_validator(mode="after")
    def check(self) -> Checked:
        return self


class Hooked(BaseModel):
    a: str

    def model_post_init(self, context: Any) -> None:
        self.a = "other"


class Watching(BaseModel):
    a: str

    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__(name)


class Many(BaseModel):
    alias: str = Field(alias="other")
    choice: str = Field(validation_alias=AliasChoices("a", "b"))
    day: datetime.date
    color: Color
    exact: Decimal
    short: Annotated[str, Field(max_length=3)]
    upper: Annotated[str, StringConstraints(to_upper=True)]
    after: Annotated[int, AfterValidator(lambda value: value + 1)]
    either: int | str
    letter: Literal["a", "b"]
    digit: Literal[1, 2]
    mixed: Literal[1, "b"]
    days: dict[str, datetime.date]
    numbered: dict[int, str]
    counts: dict[str, int]
    pair: tuple[int, str]


def kind(given: Any) -> Any:
    found = kind_of(output_type(type=given))
    return None if found is None else found[1]


@pytest.mark.parametrize(
    ("given", "function", "expected"),
    [
        (int, "parse_int", INT),
        (float, "parse_float", FLOAT),
        (bool, "parse_bool", BOOL),
        (Annotated[int, Field(ge=0)], "parse_json", INT),
    ],
)
def test_simple_types_are_read_by_their_function(given: Any, function: str, expected: Any) -> None:
    assert kind_of(output_type(type=given)) == (function, expected)


@pytest.mark.parametrize(
    "given",
    [
        datetime.date,
        Color,
        Decimal,
        Literal["a", "b"],
        Literal[1, 2],
        None,
        tuple[int, int],
        int | str,
        Changing,
        Checked,
        Hooked,
        Watching,
        Stripping,
        RootModel[str],
        list[datetime.date] | None,
    ],
)
def test_other_types_have_no_kind(given: Any) -> None:
    assert kind(given) is None


def test_schemas_and_forms_have_no_kind() -> None:
    assert kind_of(output_type(schema={"type": "object"})) is None
    assert kind_of(rt.sequence("a", int)) is None
    assert kind_of(output_type(type=test_schemas_and_forms_have_no_kind)) is None


def test_containers_know_their_items() -> None:
    assert isinstance(kind(list[str]), Listed)
    assert kind(list[str]).item == STR
    assert kind(list[datetime.date]).item is None
    assert isinstance(kind(dict[str, list[int]]), Mapped)
    assert kind(dict[str, list[int]]).item.item == INT
    assert kind(rt.json_text(list[int], indent=2)).item == INT


def test_fields_have_kinds_if_nothing_changes_them() -> None:
    many = kind(Many)
    assert isinstance(many, Record)
    known = {name: found for name in Many.model_fields if (found := many.field(name)) is not None}
    assert set(known) == {"alias", "short", "letter", "digit", "days", "counts"}
    assert known["alias"] == ("other", STR)
    assert known["letter"][1] == STR
    assert known["digit"][1] == INT
    assert known["days"][1].item is None
    assert known["counts"][1].item == INT


def test_fields_that_may_be_missing_have_none() -> None:
    point = kind(Point)
    assert [name for name in ("x", "y", "z") if point.field(name)] == ["x"]
    assert not point.by_key
    both = kind(Dict)
    assert [name for name in ("a", "b", "c") if both.field(name)] == ["a"]
    assert both.by_key


def test_recursive_types_have_kinds_at_every_depth() -> None:
    node = kind(Node)
    for _ in range(3):
        assert node.field("name") == ("name", STR)
        assert node.field("left") is node.field("children") is None
        node = node.field("parent")[1].item


def test_a_setting_of_an_inner_model_concerns_that_model() -> None:
    inside = kind(Inside)
    assert inside.field("fine") == ("fine", STR)
    assert inside.field("stripping") is None
