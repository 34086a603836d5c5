"""Kinds of JSON schemas: what a schema says about every value that it allows."""

from __future__ import annotations

from typing import Any

import pytest

from rtlang.lang.output_types.kinds import BOOL, NUMBER, STR, Listed, Member, NullableKind, Record, reading_of_json

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "size": {"type": "integer"},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
        "state": {"enum": ["a", "b"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "nick": {"type": ["string", "null"]},
        "next": {"$ref": "#"},
    },
    "required": ["city", "tags", "nick"],
    "$defs": {"tag": {"type": "string"}},
}


def kind(schema: Any) -> Any:
    found = reading_of_json(schema)
    assert found is None or found.function == "parse_json"
    return None if found is None else found.kind


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "pattern": "x"}, STR),
        ({"type": "boolean"}, BOOL),
        ({"type": "integer"}, NUMBER),
        ({"type": "number"}, NUMBER),
        ({"type": ["null", "string"]}, NullableKind(STR)),
        ({"enum": ["a", "b"]}, STR),
        ({"enum": [1, 2]}, NUMBER),
        ({"enum": [1, "a"]}, None),
        ({"const": True}, BOOL),
        ({"type": ["string", "integer"]}, None),
        ({"anyOf": [{"type": "string"}]}, None),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "string"}}}, STR),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/x"}}}, None),
        ({"$ref": "https://example.org/x"}, None),
        ({}, None),
        (True, None),
    ],
)
def test_schemas_have_the_kind_of_all_their_values(schema: Any, expected: Any) -> None:
    assert kind(schema) == expected


def test_objects_know_their_properties() -> None:
    found = kind(SCHEMA)
    assert isinstance(found, Record)
    assert found.by_key
    assert found.field("city") == Member("city", STR)
    assert found.field("size") == Member("size", NUMBER, is_certain=False)
    assert found.field("state") == Member("state", STR, is_certain=False)
    assert found.field("nick") == Member("nick", NullableKind(STR))
    assert found.field("either") is found.field("other") is None
    tags = found.field("tags")
    assert tags is not None
    assert isinstance(tags.kind, Listed)
    assert tags.kind.item == STR
    inner = found.field("next")
    assert inner is not None
    assert isinstance(inner.kind, Record)
    assert inner.kind.field("city") == Member("city", STR)


def test_other_properties_have_the_kind_that_the_schema_gives_them() -> None:
    assert kind({"type": "object", "additionalProperties": {"type": "boolean"}}).field("x").kind == BOOL
    patterns = {"type": "object", "additionalProperties": {"type": "boolean"}, "patternProperties": {"x": {}}}
    assert kind(patterns).field("x") is None


def test_tuples_have_no_item_kind() -> None:
    assert kind({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}}).item is None
