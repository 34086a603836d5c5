"""Regexes of JSON texts: what they match is JSON of the schema."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import jsonschema
import pytest

from rtlang.lang.output_types.schemas.json_texts import ANY_JSON, json_text_pattern
from rtlang_grammars.regular.language import compile_regex

OBJECT = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}, "c": {"enum": ["x/y", 1]}},
    "required": ["b"],
}
SCHEMAS: list[dict[str, Any]] = [
    {"type": "integer", "minimum": 3, "exclusiveMaximum": 120},
    {"type": "integer", "multipleOf": 7, "minimum": 1},
    {"type": "number", "minimum": 0.5, "maximum": 0.75},
    {"type": "string", "minLength": 2, "maxLength": 4},
    {"type": "string", "pattern": "^([a-c]+|x)$", "maxLength": 3},
    {"anyOf": [{"type": "null"}, {"const": "a.b"}, {"type": "boolean"}]},
    {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "null"}], "minItems": 2, "maxItems": 2},
    {"type": "object", "additionalProperties": {"type": "integer"}, "propertyNames": {"pattern": "^([a-z]+)$"}},
    OBJECT,
    {"type": "array", "items": OBJECT},
]


def resolve(schema: Any) -> Any:
    return schema


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_texts_are_json_of_the_schema(schema: dict[str, Any]) -> None:
    language = compile_regex(json_text_pattern(schema, resolve))
    texts = set(language.samples(random.Random(0), 40))
    for text in texts:
        jsonschema.validate(json.loads(text), schema)
    assert len(texts) > 3


@pytest.mark.parametrize(
    "value", [{"b": True}, {"a": 1, "b": False}, {"b": True, "c": "x/y"}, {"a": -2, "b": True, "c": 1}]
)
def test_members_that_are_not_required_may_be_left_out(value: Any) -> None:
    pattern = json_text_pattern(OBJECT, resolve)
    assert re.fullmatch(pattern, json.dumps(value))
    assert re.fullmatch(pattern, json.dumps(value, separators=(",", ":")))
    assert not re.fullmatch(pattern, "{}")


def test_any_json_has_two_levels() -> None:
    assert re.fullmatch(ANY_JSON, '{"a": [1, "b", null], "c": {}}')
    assert not re.fullmatch(ANY_JSON, "[[[1]]]")


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "array", "items": "again"}, "a recursive type"),
        ({"type": "string", "pattern": "a", "x-pattern-dialect": "rust"}, "custom pattern"),
        ({"type": "string", "pattern": "a|b"}, "this pattern is not supported"),
        ({"type": "object", "minProperties": 2}, "minimum number of entries"),
        ({"type": "array", "prefixItems": [{"type": "null"}]}, "items with defaults"),
    ],
)
def test_what_has_no_regex_is_refused(schema: dict[str, Any], reason: str) -> None:
    def follow(each: Any) -> Any:
        return schema if each == "again" else each

    with pytest.raises(ValueError, match=reason):
        json_text_pattern(schema, follow)
