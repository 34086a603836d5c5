"""Values between tags whose objects and arrays are written as tags again: members under their names, items under one name.

A member's closing tag repeats its name, so only declared properties and items of a declared type are written as elements. Other objects
and arrays (with keys that `additionalProperties` allows, or deeper than `_MAX_DEPTH`) are written as JSON, which readers of these formats
take as well. Without `additionalProperties`, only declared properties are allowed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rtlang_grammars.formats.description import TaggedArguments
from rtlang_grammars.formats.schemas import narrowed, resolved, types_of, with_definitions
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, PropertyOrder
from rtlang_grammars.spec.structures import MAX_UNORDERED, any_of, members, raw_text, repeat, sequence

_MAX_DEPTH = 5
_SIMPLE = frozenset(
    ("type", "title", "description", "default", "examples", "deprecated", "$defs", "definitions", "$schema")
)
_OF_OBJECTS = frozenset(("properties", "required", "additionalProperties"))
_OF_ARRAYS = frozenset(("items", "minItems", "maxItems"))


def nested_value(schema: dict[str, Any] | bool, around: TaggedArguments, style: JsonStyle) -> Constraint:
    """A value of a schema between tags."""
    return _value(schema, schema, around, style, 0)


def _value(schema: Any, document: Any, around: TaggedArguments, style: JsonStyle, depth: int) -> Constraint:
    found = resolved(schema, document)
    whole = with_definitions(found, document if isinstance(document, Mapping) else {})
    types = types_of(whole)
    parts: list[Constraint] = []
    rest = set(types)
    if depth < _MAX_DEPTH and isinstance(found, Mapping):
        if "object" in types and _is_plain(found, _OF_OBJECTS) and _are_declared(found, around):
            if found.get("additionalProperties", False) is False:
                rest.discard("object")
            parts.append(_object(found, document, around, style, depth))
        if "array" in types and _is_plain(found, _OF_ARRAYS) and isinstance(found.get("items"), Mapping):
            rest.discard("array")
            parts.append(_array(found, document, around, style, depth))
    if "string" in rest:
        parts.append(raw_text(narrowed(whole, frozenset(("string",))), excludes=around.excludes))
        rest.discard("string")
    if len(rest) == 1 and rest <= {"object", "array"} and isinstance(found, Mapping) and found.keys() <= _SIMPLE:
        parts.append(sequence(""))  # empty, as the templates write it
    if rest:
        json_schema = json.dumps(narrowed(whole, frozenset(rest)), ensure_ascii=False)
        parts.append(Constraint(ConstraintKind.JSON_SCHEMA, json_schema, style))
    return any_of(*parts)


def _is_plain(schema: Mapping[str, Any], allowed: frozenset[str]) -> bool:
    """Whether a schema has only keywords that are followed here."""
    counts = [schema[key] for key in ("minItems", "maxItems") if schema.get(key) is not None]
    return schema.keys() <= _SIMPLE | allowed and all(type(each) is int and each >= 0 for each in counts)


def _are_declared(schema: Mapping[str, Any], around: TaggedArguments) -> bool:
    properties, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(properties, Mapping) or not properties or not isinstance(required, list):
        return False
    return set(required) <= properties.keys() and all(map(is_element_name, properties))


def is_element_name(name: str) -> bool:
    """Whether a name can stand in a tag."""
    return bool(name) and name.isprintable() and not set(name) & set("<>[]&/\"'= ")


def _object(
    schema: Mapping[str, Any], document: Any, around: TaggedArguments, style: JsonStyle, depth: int
) -> Constraint:
    required = frozenset(schema.get("required", ()))
    parts: list[tuple[str | Constraint, bool]] = [
        (_element(name, each, document, around, style, depth), name in required)
        for name, each in schema["properties"].items()
    ]
    order = style.order if len(parts) <= MAX_UNORDERED else PropertyOrder.DECLARED
    if order is PropertyOrder.REQUIRED_FIRST:
        parts.sort(key=lambda each: not each[1])
    return members(parts, "", order)


def _array(
    schema: Mapping[str, Any], document: Any, around: TaggedArguments, style: JsonStyle, depth: int
) -> Constraint:
    item = _element(around.item, schema["items"], document, around, style, depth)
    high = schema.get("maxItems")
    return repeat(item, schema.get("minItems", 0), high)


def _element(
    name: str, schema: Any, document: Any, around: TaggedArguments, style: JsonStyle, depth: int
) -> Constraint:
    value = _value(schema, document, around, style, depth + 1)
    return sequence(around.before_name, name, around.before_value, value, around.value_end(name))
