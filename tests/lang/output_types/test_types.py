"""Output types: constraints against independent readers of text, and text back to values."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import re
import typing
import uuid
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator
from pydantic_core import to_json

from rtlang.contract.errors import ParameterError, ValueParseError
from rtlang.contract.params import ConstraintKind
from rtlang.lang.output_types.types import TEXT, OutputType, choice_type, output_type


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Odd(enum.Enum):
    PAIR = (1, 2)
    NONE = None


class Sheet(BaseModel):
    name: str
    age: int
    traits: list[str] = []

    @field_validator("age")
    @classmethod
    def not_negative(cls, age: int) -> int:
        if age < 0:
            raise ValueError("age is negative")
        return age


@dataclasses.dataclass
class Point:
    x: float
    y: float


class Movie(TypedDict):
    title: str
    year: int


class Shelf(TypedDict):
    movies: list[Movie]
    note: NotRequired[str]


def pattern_of(kind: OutputType) -> re.Pattern[str]:
    assert kind.constraint is not None
    assert kind.constraint.kind is ConstraintKind.REGEX
    return re.compile(kind.constraint.source, re.ASCII)


def choices_of(kind: OutputType) -> list[str]:
    assert kind.constraint is not None
    assert kind.constraint.kind is ConstraintKind.CHOICE
    found: list[str] = json.loads(kind.constraint.source)
    return found


def schema_of(kind: OutputType) -> Any:
    assert kind.constraint is not None
    assert kind.constraint.kind is ConstraintKind.JSON_SCHEMA
    return json.loads(kind.constraint.source)


SIMPLE_VALUES: list[tuple[type, st.SearchStrategy[Any]]] = [
    (int, st.integers()),
    (float, st.floats(-1e15, 1e15).map(lambda value: round(value, 3)).filter(lambda value: "e" not in str(value))),
    (decimal.Decimal, st.decimals(-(10**6), 10**6, places=4)),
    (datetime.date, st.dates()),
    (datetime.time, st.times().map(lambda value: value.replace(microsecond=0))),
    (datetime.datetime, st.datetimes().map(lambda value: value.replace(microsecond=0))),
    (uuid.UUID, st.uuids()),
]


@pytest.mark.parametrize(("kind", "values"), SIMPLE_VALUES, ids=lambda item: getattr(item, "__name__", ""))
def test_values_written_by_python_are_allowed_and_come_back(kind: type, values: st.SearchStrategy[Any]) -> None:
    found = output_type(type=kind)

    @given(values)
    def check(value: Any) -> None:
        text = value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)
        assert pattern_of(found).fullmatch(text)
        assert found.read("x", text) == value
        assert type(found.read("x", text)) is kind

    check()


@pytest.mark.parametrize(("kind", "values"), SIMPLE_VALUES, ids=lambda item: getattr(item, "__name__", ""))
def test_every_text_that_is_allowed_can_be_read(kind: type, values: st.SearchStrategy[Any]) -> None:
    found = output_type(type=kind)

    @given(st.from_regex(pattern_of(found), fullmatch=True))
    def check(text: str) -> None:
        assert isinstance(found.read("x", text), kind)

    check()


def test_dates_are_those_of_the_calendar() -> None:
    pattern = pattern_of(output_type(type=datetime.date))
    for year in (1, 4, 99, 100, 400, 1900, 1999, 2000, 2023, 2024, 2100, 9996, 9999):
        for month in range(14):
            for day in range(33):
                text = f"{year:04}-{month:02}-{day:02}"
                try:
                    datetime.date(year, month, day)
                except ValueError:
                    assert not pattern.fullmatch(text), text
                else:
                    assert pattern.fullmatch(text), text
    assert not pattern.fullmatch("0000-01-01")
    assert not pattern.fullmatch("0000-02-29")


@pytest.mark.parametrize("text", ["042", "-", "+1", "1.", ".5", "1e3", "nan", "0x1", " 1", "1 "])
def test_numbers_are_as_a_person_writes_them(text: str) -> None:
    assert not pattern_of(output_type(type=float)).fullmatch(text)
    assert not pattern_of(output_type(type=int)).fullmatch(text)


def test_text_is_not_constrained() -> None:
    assert output_type() is TEXT
    assert output_type(type=str) is TEXT
    assert TEXT.read("x", "anything") == "anything"


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (bool, {"true": True, "false": False}),
        (type(None), {"null": None}),
        (Literal["a", 1, 2.5, True, None], {"a": "a", "1": 1, "2.5": 2.5, "true": True, "null": None}),
        (Colour, {"red": Colour.RED, "blue": Colour.BLUE}),
        (Level, {"1": Level.LOW, "2": Level.HIGH}),
        (Odd, {"PAIR": Odd.PAIR, "NONE": Odd.NONE}),
    ],
)
def test_finite_types_are_choices(kind: Any, texts: dict[str, Any]) -> None:
    found = output_type(type=kind)
    assert choices_of(found) == list(texts)
    for text, value in texts.items():
        assert found.read("x", text) is value or found.read("x", text) == value
    with pytest.raises(ValueParseError):
        found.read("x", "other")


@pytest.mark.parametrize("choices", [["a", "b"], ("a", "b"), [1, 2.5, True], Colour])
def test_choices_give_back_the_item(choices: Any) -> None:
    found = output_type(choices=choices)
    assert [found.read("x", text) for text in choices_of(found)] == list(choices)
    assert found.is_text == all(isinstance(item, str) for item in choices)


@pytest.mark.parametrize("wrong", [[], "abc", b"abc", {"a": 1}, 3, [""], [None, object()], ["1", 1], [["a"]]])
def test_bad_choices_are_refused(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="choices"):
        choice_type(wrong)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Sheet, Sheet(name="Ada", age=36, traits=["sharp"])),
        (Point, Point(1.5, -2.0)),
        (Movie, {"title": "M", "year": 1931}),
        (list[Movie], [{"title": "M", "year": 1931}]),
        (Shelf, {"movies": [{"title": "M", "year": 1931}], "note": "a"}),
        (Shelf, {"movies": []}),
        (list[int], [1, 2, 3]),
        (dict[str, float], {"a": 0.5}),
        (tuple[int, str], (1, "a")),
        (int | None, None),
        (typing.Optional[str], "a"),  # noqa: UP045
        (Annotated[int, Field(ge=3)], 4),
        (list[Sheet], [Sheet(name="B", age=1)]),
        (set[int], {1, 2}),
        (Any, {"free": [1, None]}),
    ],
)
@pytest.mark.parametrize("option", ["type", "schema"])
def test_structured_types_are_json_of_their_schema(kind: Any, value: Any, option: str) -> None:
    found = output_type(**{option: kind})
    text = to_json(value).decode()
    jsonschema.validate(json.loads(text), schema_of(found))
    assert found.read("x", text) == value
    assert type(found.read("x", text)) is type(value)


def test_a_model_is_validated_wholly() -> None:
    found = output_type(schema=Sheet)
    with pytest.raises(ValueParseError, match="age is negative") as caught:
        found.read("sheet", '{"name": "Ada", "age": -1}')
    assert caught.value.name == "sheet"
    assert caught.value.text == '{"name": "Ada", "age": -1}'
    with pytest.raises(ValueParseError):
        found.read("sheet", '{"name": "Ada"')


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]}


@pytest.mark.parametrize("given_as", [SCHEMA, json.dumps(SCHEMA)], ids=["mapping", "text"])
def test_json_schemas_are_kept_and_checked(given_as: Any) -> None:
    found = output_type(schema=given_as)
    assert schema_of(found) == SCHEMA
    assert found.read("x", '{"n": 3}') == {"n": 3}
    for wrong in ('{"n": 2}', "{}", "[", '{"n": NaN}'):
        with pytest.raises(ValueParseError):
            found.read("x", wrong)


@pytest.mark.parametrize(
    ("schema", "text", "wrong"),
    [
        ({"type": "number", "multipleOf": 0.01}, "19.99", "19.995"),
        ({"type": "number", "multipleOf": 0.1}, "0.3", "0.35"),
        ({"type": "number", "multipleOf": 1e-7}, "0.0000003", "0.00000035"),
        ({"type": "integer", "minimum": 9007199254740993}, "9007199254740993.0", "9007199254740992"),
        ({"const": 12345678901234567890123}, "1.2345678901234567890123E22", "1.2345678901234567890124E22"),
        ({"type": "string", "pattern": "^\\W$"}, '"é"', '"e"'),
        ({"type": "string", "pattern": "^\\S$"}, '"\\u001c"', '" "'),
    ],
)
def test_values_are_checked_as_exactly_as_the_engine_holds_them(schema: Any, text: str, wrong: str) -> None:
    found = output_type(schema=schema)
    assert found.read("x", text) == json.loads(text)
    with pytest.raises(ValueParseError):
        found.read("x", wrong)


@pytest.mark.parametrize(
    ("schema", "text"),
    [({"type": "number"}, "9" * 700), ({"pattern": r"^(a)\1$"}, '"aa"')],
    ids=["long number", "back-reference"],
)
def test_what_the_check_does_not_know_is_left_to_the_engine(schema: Any, text: str) -> None:
    assert output_type(schema=schema).read("x", text) == json.loads(text)


def test_a_schema_that_cannot_be_resolved_is_a_parse_error_of_the_value() -> None:
    found = output_type(schema={"$ref": "#/nowhere"})
    with pytest.raises(ValueParseError):
        found.read("x", "1")


def test_a_pattern_that_only_the_engine_can_read_is_left_to_it() -> None:
    assert output_type(schema={"type": "string", "pattern": r"\p{L}+"}).read("x", '"ab"') == "ab"


def test_a_boolean_schema_is_a_schema() -> None:
    assert output_type(schema=True).read("x", "[1]") == [1]
    assert output_type(schema="true").read("x", "[1]") == [1]


@pytest.mark.parametrize("wrong", ["{not json", "[1]", {"a": object()}, {"a": float("nan")}, 3])
def test_bad_schemas_are_refused(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="schema"):
        output_type(schema=wrong)


class Opaque:
    pass


@pytest.mark.parametrize("wrong", ["int", 3, {"type": "integer"}, Opaque, bytes(3), [int]])
def test_what_is_no_type_is_refused(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="type"):
        output_type(type=wrong)


def test_a_function_gives_its_arguments() -> None:
    def search(query: str, limit: int = 3) -> None: ...

    found = output_type(type=search)
    assert found.read("x", '{"query": "a"}') == {"query": "a", "limit": 3}
    assert schema_of(found)["required"] == ["query"]

    def variadic(*args: int) -> None: ...

    with pytest.raises(ParameterError, match="args"):
        output_type(type=variadic)


def test_patterns_may_be_compiled() -> None:
    assert pattern_of(output_type(regex="[a-c]+")).pattern == "[a-c]+"
    found = output_type(regex=re.compile("[a-c]+"))
    assert pattern_of(found).pattern == "[a-c]+"
    assert found.read("x", "ab") == "ab"


@pytest.mark.parametrize("wrong", ["", 3, re.compile("a", re.IGNORECASE), re.compile(b"a")])
def test_bad_patterns_are_refused(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="regex"):
        output_type(regex=wrong)


def test_grammars_are_text_or_files(tmp_path: Path) -> None:
    text = 'start: "a"+\n'
    path = tmp_path / "g.lark"
    path.write_text(text)
    for given_as in (text, path):
        constraint = output_type(grammar=given_as).constraint
        assert constraint is not None
        assert (constraint.kind, constraint.source) == (ConstraintKind.LARK, text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('start: "a::=" b\nb: /x ::= y/', ConstraintKind.LARK),
        ('root ::= "a: b"', ConstraintKind.GBNF),
        ('# a comment\n  my-rule  ::= "a"\nroot ::= my-rule', ConstraintKind.GBNF),
    ],
)
def test_the_notation_of_a_grammar_is_seen(tmp_path: Path, text: str, kind: ConstraintKind) -> None:
    path = tmp_path / "g.txt"
    path.write_text(text)
    for given_as in (text, path):
        found = output_type(grammar=given_as).constraint
        assert found is not None
        assert found.kind is kind
    path = tmp_path / "g.ebnf"
    path.write_text(text)
    found = output_type(grammar=path).constraint
    assert found is not None
    assert found.kind is ConstraintKind.EBNF


def test_a_grammar_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    binary = tmp_path / "binary.lark"
    binary.write_bytes(b"start: \xff\xfe\x00")
    for path in (tmp_path / "missing.lark", tmp_path, binary, Path("nul\0.lark")):
        with pytest.raises(ParameterError, match="grammar = ") as caught:
            output_type(grammar=path)
        assert caught.value.field == "grammar"
        assert caught.value.value in (str(path), repr(str(path)))


@pytest.mark.parametrize("wrong", ["", "  ", 3, "no_such_grammar"])
def test_bad_grammars_are_refused(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="grammar"):
        output_type(grammar=wrong)


def test_only_one_constraint_is_allowed() -> None:
    with pytest.raises(ParameterError, match="type and regex"):
        output_type(type=int, regex="a")


def test_types_of_outlines_are_understood() -> None:
    types = pytest.importorskip("outlines.types")
    assert pattern_of(output_type(type=types.regex("[0-9]{3}"))).pattern == "([0-9]{3})"
    assert pattern_of(output_type(type=types.ipv4)).fullmatch("192.168.0.1")
    assert pattern_of(output_type(type=types.digit.exactly(2) + "-x")).fullmatch("12-x")
    assert pattern_of(output_type(type=types.either("yes", "no"))).fullmatch("yes")
    assert choices_of(output_type(type=types.Choice(["a", "b"]))) == ["a", "b"]
    assert output_type(type=types.Choice([1, 2])).read("x", "2") == 2
    found = output_type(schema=types.json_schema(SCHEMA))
    assert schema_of(found) == SCHEMA
    assert found.read("x", '{"n": 4}') == {"n": 4}
    grammar = output_type(grammar=types.cfg('start: "a"')).constraint
    assert grammar is not None
    assert (grammar.kind, grammar.source) == (ConstraintKind.LARK, 'start: "a"')


def test_named_types_of_outlines_are_python_values() -> None:
    types = pytest.importorskip("outlines.types")
    for term, text, value in (
        (types.integer, "+5", 5),
        (types.number, "-1.5e3", -1500.0),
        (types.boolean, "False", False),
        (types.date, "2024-02-29", datetime.date(2024, 2, 29)),
        (types.time, "09:30:00", datetime.time(9, 30)),
        (types.datetime, "2024-02-29 09:30:00", datetime.datetime(2024, 2, 29, 9, 30)),
        (types.uuid4, "00000000-0000-4000-8000-00000000000a", uuid.UUID("00000000-0000-4000-8000-00000000000a")),
        (types.email, "a@b.co", "a@b.co"),
    ):
        found = output_type(type=term)
        assert found.read("x", text) == value
        assert type(found.read("x", text)) is type(value)
        assert re.fullmatch(term.pattern, text)
        assert pattern_of(found).fullmatch(text)
    assert not pattern_of(output_type(type=types.date)).fullmatch("2024-02-31")


def test_a_schema_builder_of_genson_is_a_schema() -> None:
    genson = pytest.importorskip("genson")
    builder = genson.SchemaBuilder()
    builder.add_object({"a": 1})
    assert schema_of(output_type(schema=builder))["properties"] == {"a": {"type": "integer"}}


def test_the_same_type_is_made_once() -> None:
    assert output_type(type=Sheet) is output_type(type=Sheet)


def test_whatever_a_users_validator_raises_is_a_parse_error() -> None:
    class Broken(BaseModel):
        name: str

        @field_validator("name")
        @classmethod
        def look_up(cls, name: str) -> str:
            return dict[str, str]()[name]

    with pytest.raises(ValueParseError) as caught:
        output_type(schema=Broken).read("who", '{"name": "x"}')
    assert isinstance(caught.value.__cause__, KeyError)
