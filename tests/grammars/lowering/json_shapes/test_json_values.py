"""Values written in other ways than `json.dumps` writes them: names with any escapes, numbers with exponents and zeros, blanks.

A random writer spells values as RFC 8259 allows; `jsonschema` says which of them are valid.
"""

from __future__ import annotations

import json
import math
import random
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import Field, StrictFloat, StrictInt, TypeAdapter

from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.spec.constraint import JsonStyle
from rtlang_grammars_bench.conformance import Judge, accepts
from tests.support.long_tests import sized

_SHORT = {'"': '"', "\\": "\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}


class Writer:
    """Writes values at random. Declared names are escaped only in objects that allow others; their ASCII characters in any way."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def text(self, value: str) -> str:
        return '"' + "".join(map(self._char, value)) + '"'

    def _char(self, char: str) -> str:
        way = self._rng.randrange(4)
        if way == 0 and char in _SHORT:
            return "\\" + _SHORT[char]
        if way <= 1 or char < " " or char in '"\\':
            units = char.encode("utf-16-be").hex()
            units = units.upper() if self._rng.random() < 0.5 else units
            return "".join("\\u" + units[at : at + 4] for at in range(0, len(units), 4))
        return char

    def number(self, value: float) -> str:
        if isinstance(value, int):
            ways = [str(value), f"{value}.0", f"{value}.000", f"{value}e0", f"{value}E+0", f"{value}.0e-0"]
            if value and value % 10 == 0:
                zeros = len(str(value)) - len(str(value).rstrip("0"))
                head = str(value)[:-zeros]
                ways += [f"{head}e{zeros}", f"{head}E+{zeros}"] if len(head.lstrip("-")) == 1 else []
            return self._rng.choice(ways)
        return self._rng.choice([repr(value), f"{value!r}0", f"{value!r}e0", f"{value!r}E-00"])

    def blanks(self) -> str:
        return self._rng.choice(["", "", "", " ", "  ", "\n", "\r\n  ", "\n\t\t"])

    def value(self, value: Any) -> str:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            items = [*value.items()]
            self._rng.shuffle(items)
            parts = [
                f"{self.blanks()}{self.text(k)}{self.blanks()}:{self.blanks()}{self.value(v)}{self.blanks()}"
                for k, v in items
            ]
            return "{" + (",".join(parts) or self.blanks()) + "}"
        if isinstance(value, list):
            parts = [f"{self.blanks()}{self.value(each)}{self.blanks()}" for each in value]
            return "[" + (",".join(parts) or self.blanks()) + "]"
        return (
            self.number(value) if isinstance(value, int | float) and not isinstance(value, bool) else json.dumps(value)
        )


SCHEMAS: list[Any] = [
    {
        "properties": {"name": {"type": "integer"}, "nam": {"type": "string"}, "n/a": {"type": "null"}},
        "required": ["name"],
    },
    {"properties": {"name": {"type": "integer"}}, "additionalProperties": {"type": ["integer", "string"]}},
    {"properties": {"a": {"type": "integer", "minimum": 0, "maximum": 100}, "b": {"type": "number", "minimum": -1}}},
    {"patternProperties": {"^n": {"type": ["integer", "null"]}}, "properties": {"é": False}},
    {"properties": {"a": {"items": {"type": "integer", "multipleOf": 5}}}, "minProperties": 1},
    {"properties": {"name": {"enum": [1, 50]}}, "maxProperties": 3},
    {"propertyNames": {"pattern": "^[^x]*$"}, "additionalProperties": {"type": ["integer", "string", "null", "array"]}},
    {"properties": {"name": {"type": "integer"}}, "minProperties": 2},
]
NAMES = [
    "name",
    "nam",
    "name2",
    "n/a",
    "n",
    "",
    "a",
    "b",
    "é",
    "日本",
    "😀",
    'q"',
    "back\\",
    "new\nline",
    "\x7f",
    "\x01",
    "x",
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_values_are_judged_alike_however_they_are_spelled(schema: Any) -> None:
    rng = random.Random(5)
    schema = {"type": "object", **schema}
    grammar, validator = Judge().compile(schema, SchemaOptions(default_dialect="2020-12")), Draft202012Validator(schema)
    check, writer, counts = grammar.value_check, Writer(rng), [0, 0]
    for _ in range(sized(400, usual=200)):
        some = rng.sample(NAMES, rng.randrange(5))
        value = {
            name: rng.choice([0, 1, 5, 50, 100, -20, 0.5, 12.25, "a/b", "\té", None, [5, 50], [7]]) for name in some
        }
        text = writer.value(value)
        assert json.loads(text) == value
        is_valid = validator.is_valid(value)
        counts[is_valid] += 1
        found = accepts(grammar, text) and (check is None or check.error_in(text) is None)
        # Enumerated values are spelled as programs write them.
        if found != is_valid:
            assert is_valid, text
            assert "enum" in json.dumps(schema), text
    assert min(counts) > sized(10, usual=4)


@pytest.mark.parametrize("schema", SCHEMAS[:4], ids=str)
def test_no_spelling_writes_a_name_twice(schema: Any) -> None:
    rng, writer = random.Random(7), Writer(random.Random(8))
    grammar = Judge().compile({"type": "object", **schema}, SchemaOptions(default_dialect="2020-12"))
    num_accepted = 0
    for _ in range(sized(200, usual=100)):
        name = rng.choice(NAMES)
        value = "1" if name in ("name", "a", "b") else '"1"' if name == "nam" else "null" if name == "n/a" else "5"
        members = [f"{writer.text(each)}:1" for each in ("name",) if each != name]
        once = [f"{writer.text(name)}:{value}"]
        num_accepted += accepts(grammar, "{" + ",".join(members + once) + "}")
        assert not accepts(grammar, "{" + ",".join([*members, *once, f"{writer.text(name)}:{value}"]) + "}")
    assert num_accepted > 25


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (
            {"type": "integer"},
            ["1e3", "50e0", "1E+2", "1.000", "0e0", "1.0e2", "1e308", "-0", "9" * 65],
            ["1.5", "1.0000", "1e-1", "1e309", "9" * 66, "1.", "1e"],
        ),
        ({"type": "number"}, ["3." + "1" * 65, "1e-324", "0.1"], ["3." + "1" * 66]),
        (
            {"type": "integer", "minimum": 0, "maximum": 100},
            ["50e0", "1e2", "100.000", "5.0e1", "1E+1"],
            ["101", "1e3", "50e1", "1.0000"],
        ),
        (
            {"type": "number", "minimum": 0, "maximum": 1},
            ["0.12345678901234567", "1.2345678901234567e-05"],
            ["0." + "1" * 60],
        ),
        ({"type": "integer", "multipleOf": 7}, ["14", "7e2", "-21.0"], ["7" * 200]),
        ({"type": "integer", "multipleOf": 1999}, ["3998"], ["1999" * 200]),
        ({"type": "number", "not": {"multipleOf": 3}}, ["1", "0.5"], ["0." + "5" * 100, "1" * 100]),
    ],
)
def test_numbers_have_finitely_many_digits(schema: Any, good: list[str], bad: list[str]) -> None:
    grammar = Judge().compile(schema, SchemaOptions())
    assert [text for text in good if not accepts(grammar, text)] == []
    assert [text for text in bad if accepts(grammar, text)] == []


WHOLE = ["0", "7", "-21", "9" * 19]
NOT_WHOLE = ["1.0", "7.00", "4e1", "40e0", "7E+0", "-0", "01", "+7", "7."]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, [*WHOLE, "9" * 65], [*NOT_WHOLE, "9" * 66]),
        ({"type": ["integer", "string"]}, WHOLE, NOT_WHOLE),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, WHOLE, NOT_WHOLE),
        ({"allOf": [{"type": "number"}, {"type": "integer"}]}, WHOLE, NOT_WHOLE),
        ({"type": "integer", "minimum": -30}, ["0", "-21", "7"], [*NOT_WHOLE, "-31"]),
        ({"type": "integer", "minimum": 0, "maximum": 100}, ["0", "7", "100"], [*NOT_WHOLE, "1e2", "101", "-1"]),
        ({"type": "integer", "multipleOf": 7}, ["0", "7", "-21"], [*NOT_WHOLE, "8"]),
        ({"type": "number", "multipleOf": 7}, ["0", "7", "-21"], [*NOT_WHOLE, "8"]),
        ({"type": "integer", "not": {"const": 7}}, ["0", "8"], [*NOT_WHOLE, "7"]),
        ({"type": "integer", "not": {"multipleOf": 2}}, ["7", "-21"], [*NOT_WHOLE, "8"]),
        ({"type": "integer", "enum": [1.0, 2, 1e2]}, ["1", "2", "100"], ["1.0", "2.0", "100.0", "1e2"]),
        ({"type": "integer", "const": 1.0}, ["1"], ["1.0", "1e0"]),
        ({"allOf": [{"enum": [1.0, 2.5]}, {"type": "integer"}]}, ["1"], ["1.0", "2.5"]),
        ({"const": 1}, ["1"], ["1.0"]),
        ({"const": 1.0}, ["1.0"], ["1", "1.00"]),
        ({"enum": [1, 2.5, 1e22]}, ["1", "2.5", "1e+22"], ["1.0", "2.50", "1e22"]),
        ({"type": "number"}, ["1", "1.0", "0.1", "-0.0", "1e-07", "1.5E+22", "9e307"], ["12e3", "0e0", "1e308", ".5"]),
        ({"type": "number", "minimum": 0}, ["1", "1.0", "0.1", "1e-07", "1.5e22"], ["12e3", "1e308", "-1"]),
        ({"type": "number", "multipleOf": 0.01}, ["1", "1.5", "1.50", "0.01"], ["0.001", "1e2"]),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, ["1", "1.0", "1e3"], ["12e3"]),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 1}, ["[1]", "[1, -2]"], ["[1.0]", "[1e0]"]),
        ({"items": {"enum": [1.0, 2]}, "type": "array", "uniqueItems": True}, ["[1.0, 2]"], ["[1]", "[2.0]"]),
        ({"items": {"enum": [1.0], "type": "integer"}, "type": "array", "uniqueItems": True}, ["[1]"], ["[1.0]"]),
        ({"type": "array", "prefixItems": [{"const": 1}, {"const": 1.0}]}, ["[1, 1.0]"], ["[1.0, 1.0]", "[1, 1]"]),
        ({"$schema": "http://json-schema.org/draft-04/schema", "type": "integer"}, WHOLE, NOT_WHOLE),
    ],
    ids=str,
)
def test_plain_numbers_are_written_as_programs_write_them(schema: Any, good: list[str], bad: list[str]) -> None:
    grammar, loose = Judge(JsonStyle()).compile(schema, SchemaOptions()), Judge().compile(schema, SchemaOptions())
    assert [text for text in good if not accepts(grammar, text)] == []
    assert [text for text in bad if accepts(grammar, text)] == []
    assert [text for text in good if not accepts(loose, text)] == []


@pytest.mark.parametrize(
    "kind",
    [
        list[StrictInt],
        list[Annotated[StrictInt, Field(ge=-5, le=3000)]],
        list[Annotated[StrictInt, Field(multiple_of=5)]],
        list[StrictFloat],
        list[Annotated[StrictFloat, Field(gt=0)]],
        list[StrictInt | StrictFloat],
        list[Literal[1, 2, -7]],
        dict[Literal["a", "b"], list[StrictInt]],
    ],
    ids=str,
)
def test_random_texts_are_read_by_the_strict_types_of_pydantic(kind: Any) -> None:
    adapter, rng = TypeAdapter(kind), random.Random(3)
    grammar = Judge(JsonStyle()).compile(adapter.json_schema(), SchemaOptions())
    num_numbers = 0
    for _ in range(sized(30, usual=10)):
        text = drawn(grammar.matcher(), rng, 60)
        value = adapter.validate_json(text)
        found = [each for item in (value.values() if isinstance(value, dict) else [value]) for each in item]
        assert all(map(math.isfinite, found)), text
        num_numbers += len(found)
    assert num_numbers > sized(10, usual=3)


def drawn(matcher: MachineMatcher, rng: random.Random, length: int) -> str:
    """A random text of a grammar of the byte vocabulary, in which letters of numbers are likelier than others."""
    text = b""
    for _ in range(length):
        allowed = [byte for byte in range(256) if matcher.fork().accept_token(byte)]
        liked = [byte for byte in allowed if byte in b"[{:,-.0123456789eE+"]
        if not allowed:
            break
        text += bytes([rng.choice(liked or allowed)])
        assert matcher.accept_token(text[-1])
    closing = matcher.closing_bytes()
    assert closing is not None
    return (text + closing).decode()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer"},
        {"type": "number"},
        {"type": "number", "minimum": 0, "maximum": 1},
        {"type": "number", "multipleOf": 0.15},
        {"type": "integer", "multipleOf": 1999},
        {"type": "number", "not": {"multipleOf": 3}},
        {"type": "number", "exclusiveMinimum": 0.001, "maximum": 1e300},
    ],
    ids=str,
)
def test_numbers_end_however_long_digits_are_preferred(schema: Any) -> None:
    rng, grammar = random.Random(1), Judge().compile(schema, SchemaOptions())
    validator = Draft202012Validator({"type": schema["type"]})
    for _ in range(5):
        matcher, text = grammar.matcher(), b""
        while True:
            allowed = [byte for byte in b"0123456789-+.eE" if matcher.fork().accept_token(byte)]
            assert allowed or matcher.is_accepting, text
            if not allowed:
                break
            digits = [byte for byte in allowed if byte in b"0123456789"]
            byte = rng.choice(digits if digits and rng.random() < 0.97 else allowed)
            assert matcher.accept_token(byte)
            text += bytes((byte,))
            assert len(text) < 300
            if len(text) % 16 == 0:
                closing = matcher.closing_bytes()
                assert closing is not None, text
        assert validator.is_valid(json.loads(text))
