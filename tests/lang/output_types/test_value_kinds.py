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
from rtlang.lang.output_types.kinds import (
    BOOL,
    FLOAT,
    INT,
    STR,
    Listed,
    Mapped,
    Member,
    NullableKind,
    Reading,
    Record,
)
from rtlang.lang.output_types.types import OutputType, choice_type, output_type
from rtlang.lang.output_types.value_kinds import reading_of_type


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


def reading(given: OutputType) -> Reading | None:
    return reading_of_type(given.python_type) if given.reading is None else given.reading()


def kind(given: Any) -> Any:
    found = reading(output_type(type=given))
    return None if found is None else found.kind


@pytest.mark.parametrize(
    ("given", "function", "expected"),
    [
        (int, "parse_int", INT),
        (float, "parse_float", FLOAT),
        (bool, "parse_bool", BOOL),
        (Annotated[int, Field(ge=0)], "parse_json", INT),
        (Literal[1, 2], "parse_int", INT),
        (Literal[True], "parse_bool", BOOL),
    ],
)
def test_simple_types_are_read_by_their_function(given: Any, function: str, expected: Any) -> None:
    assert reading(output_type(type=given)) == (function, expected, (), ())


@pytest.mark.parametrize(
    "given",
    [
        datetime.date,
        Color,
        Decimal,
        Literal["a", "b"],  # is text
        Literal[1, "b"],
        Literal[1, True],
        None,
        tuple[int, int],
        int | str,
        Changing,
        Checked,
        Hooked,
        Watching,
        Stripping,
        RootModel[str],
        list[datetime.date] | tuple[int],
    ],
)
def test_other_types_have_no_kind(given: Any) -> None:
    assert kind(given) is None


def test_choices_of_numbers_have_a_kind() -> None:
    assert reading(choice_type([0.5, 2.0])[1]) == Reading("parse_float", FLOAT)
    assert reading(choice_type([float("inf"), 2.0])[1]) is None
    assert reading(choice_type([1, 2.0])[1]) is None


def test_forms_and_functions_have_no_kind() -> None:
    assert reading(rt.sequence("a", int)) is None
    assert reading(output_type(type=test_forms_and_functions_have_no_kind)) is None


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
    assert known["alias"] == Member("other", STR)
    assert known["letter"].kind == STR
    assert known["digit"].kind == INT
    assert known["days"].kind.item is None  # type: ignore[union-attr]
    assert known["counts"].kind.item == INT  # type: ignore[union-attr]


def test_fields_that_may_be_missing_have_their_default_or_are_uncertain() -> None:
    point = kind(Point)
    assert [name for name in ("x", "y", "z") if point.field(name)] == ["x", "y"]
    assert point.field("y") == Member("y", INT, (0,))
    assert not point.by_key
    both = kind(Dict)
    assert [name for name in ("a", "b", "c") if both.field(name)] == ["a", "b"]
    assert [both.field(name).is_certain for name in ("a", "b")] == [True, False]
    assert both.by_key


class Defaults(BaseModel):
    text: str = "x"
    number: float = 3  # type: ignore[assignment]
    whole: int | None = 3
    nothing: str | None = None
    names: list[str] = []
    counts: dict[str, int] = Field(default_factory=dict)
    points: list[Point] = Field(default_factory=lambda: [Point(1)])
    required: int | None


def test_defaults_are_known_if_they_are_of_the_kind() -> None:
    found = {name: kind(Defaults).field(name) for name in Defaults.model_fields}
    assert found["number"] is found["points"] is None  # 3 is no float; the default is no plain data
    assert found["text"] == Member("text", STR, ("x",))
    assert found["whole"] == Member("whole", NullableKind(INT), (3,))
    assert found["nothing"] == Member("nothing", NullableKind(STR), (None,))
    assert (found["names"].default, found["counts"].default) == (([],), ({},))
    assert found["required"] == Member("required", NullableKind(INT))


def test_recursive_types_have_kinds_at_every_depth() -> None:
    node = kind(Node)
    for _ in range(3):
        assert node.field("name") == Member("name", STR)
        assert node.field("left").default == (None,)
        assert node.field("children").default == ([],)
        node = node.field("parent").kind.item


def test_a_setting_of_an_inner_model_concerns_that_model() -> None:
    inside = kind(Inside)
    assert inside.field("fine") == Member("fine", STR)
    assert inside.field("stripping") is None
