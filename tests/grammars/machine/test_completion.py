"""Short ways to the end: inside strings with patterns, names with patterns, and objects whose values call each other."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from rtlang_grammars.engine_backend import EngineBackend
from rtlang_grammars.machine.engine import Engine
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.regular.language import compile_regex
from rtlang_grammars.spec import Constraint, ConstraintKind
from rtlang_grammars.vocabulary import Vocabulary

BACKEND = EngineBackend(
    Engine(Vocabulary(tuple(bytes((byte,)) for byte in range(256)), frozenset((256,)), frozenset((256,)), 257))
)


def behind(schema: object, text: str) -> MachineMatcher:
    matcher = BACKEND.compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema))).matcher()
    assert all(matcher.accept_token(byte) for byte in text.encode())
    return matcher


@pytest.mark.parametrize(
    "pattern",
    [
        "[a-f]{3}-[0-9]{4,9}(xyz|z)",
        "(?=.*[0-9])(?=.*é).{3,8}",
        r"\d{4}-(0[1-9]|1[0-2])-\d\d",
        '\\\\"\\n[^a-z]x*',
        "(?!a).+q",
        "[ab]*a[ab]{12}",
    ],
)
def test_a_string_with_a_pattern_is_ended_by_as_few_characters_as_can_be(pattern: str) -> None:
    closing = behind({"type": "string", "pattern": f"^(?:{pattern})$"}, '"').closing_bytes()
    assert closing is not None
    language = compile_regex(pattern)
    value = json.loads('"' + closing.decode())
    shortest = language.shortest()
    assert language.accepts(value)
    assert shortest is not None
    assert len(value) == len(shortest)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (
            {"patternProperties": {"^x-[0-9]+$": {"type": "null"}}, "additionalProperties": False, "type": "object"},
            '{"x',
        ),
        ({"patternProperties": {"^a": {"const": "long" * 9}, "^b{12}": False}, "type": "object"}, '{"'),
        ({"propertyNames": {"pattern": "^[a-c]{5}$"}, "minProperties": 1, "type": "object"}, '{"ab'),
        (
            {
                "patternProperties": {"^(..)*$": {"minLength": 5, "type": "string"}},
                "maxProperties": 1,
                "type": "object",
            },
            '{"a',
        ),
    ],
)
def test_names_with_patterns_are_ended(schema: object, text: str) -> None:
    closing = behind(schema, text).closing_bytes()
    assert closing is not None
    assert Draft202012Validator(schema).is_valid(json.loads(text + closing.decode()))  # type: ignore[arg-type]
    assert len(closing) < 70


def test_values_that_call_each_other_are_ended_by_the_way_out() -> None:
    schema = {
        "$defs": {
            "a": {
                "type": "object",
                "required": ["b", "c"],
                "properties": {"b": {"$ref": "#/$defs/b"}, "c": {"$ref": "#/$defs/d"}},
            },
            "b": {
                "anyOf": [
                    {"$ref": "#/$defs/a"},
                    {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1},
                    {"$ref": "#/$defs/d"},
                ]
            },
            "d": {
                "type": "object",
                "required": ["e"],
                "properties": {"e": {"anyOf": [{"$ref": "#/$defs/b"}, {"const": 7}]}},
            },
        },
        "$ref": "#/$defs/a",
    }
    for text in ("", "{", '{"b":', '{"b":[', '{"c":{"e":{"b"'):
        closing = behind(schema, text).closing_bytes()
        assert closing is not None
        assert Draft202012Validator(schema).is_valid(json.loads(text + closing.decode()))
        assert len(closing) < 60
