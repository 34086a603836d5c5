"""Facts about JSON schemas of parameters that decide how values are written: their types and their references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JSON_TYPES = frozenset(("null", "boolean", "integer", "number", "string", "array", "object"))
_MAX_DEPTH = 16


def with_definitions(schema: Any, document: Mapping[str, Any]) -> dict[str, Any] | bool:
    """A schema from inside `document` as a document of its own, in which references to definitions still hold."""
    if not isinstance(schema, Mapping):
        return schema if isinstance(schema, bool) else True
    definitions = {key: document[key] for key in ("$defs", "definitions", "$schema") if key in document}
    return {**definitions, **schema}


def resolved(schema: Any, document: Any) -> Any:
    """The target of a schema that is a reference to a definition of `document`, else the schema; None if there is no such target."""
    for _ in range(_MAX_DEPTH):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            return schema
        reference = schema["$ref"]
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        found = document
        for step in reference[2:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or key not in found:
                return None
            found = found[key]
        schema = found
    return None


def types_of(schema: Any, document: Any = None) -> frozenset[str]:
    """The JSON types that values of a schema may have; more than the true ones where that is hard to tell."""
    return _types_of(schema, schema if document is None else document, 0, {})


def _types_of(schema: Any, document: Any, depth: int, known: dict[int, frozenset[str]]) -> frozenset[str]:
    """`known`: the types by the identity of the schema; all types for a schema that refers to itself."""
    if schema is False:
        return frozenset()
    schema = resolved(schema, document)
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return JSON_TYPES
    if id(schema) in known:
        return known[id(schema)]
    known[id(schema)] = JSON_TYPES
    found = JSON_TYPES
    named = schema.get("type")
    if isinstance(named, str):
        found &= _with_integers(frozenset([named]))
    elif isinstance(named, list | tuple):
        found &= _with_integers(frozenset(each for each in named if isinstance(each, str)))
    if isinstance(schema.get("enum"), list):
        found &= frozenset(map(type_of, schema["enum"]))
    if "const" in schema:
        found &= {type_of(schema["const"])}
    if isinstance(schema.get("allOf"), list):
        for each in schema["allOf"]:
            found &= _types_of(each, document, depth + 1, known)
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            found &= frozenset().union(*(_types_of(each, document, depth + 1, known) for each in schema[key]))
    known[id(schema)] = found
    return found


def narrowed(schema: dict[str, Any] | bool, types: frozenset[str]) -> dict[str, Any] | bool:
    """The values of a schema that have some types."""
    if types == JSON_TYPES:
        return schema
    wanted: dict[str, Any] = {"type": sorted(types)}
    if isinstance(schema, bool):
        return wanted
    if schema.keys().isdisjoint({"$ref", "allOf"}) and "type" in schema:
        return {**schema, "type": sorted(types)}
    return {**{key: schema[key] for key in ("$defs", "definitions") if key in schema}, "allOf": [schema, wanted]}


def _with_integers(types: frozenset[str]) -> frozenset[str]:
    return types | {"integer"} if "number" in types else types


def type_of(value: object) -> str:
    """The JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
    return "object"
