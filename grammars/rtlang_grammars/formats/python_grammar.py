"""Values of a JSON schema written as Python literals: True, None, strings in either quotes, lists and dicts as `repr` writes them.

Schemas whose parts can be told apart by their type are followed to the ground. Other values (references that recurse, `not`, `if`) are
written as JSON, which readers of this format take as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rtlang_grammars.formats.schemas import JSON_TYPES, resolved, type_of, types_of
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, PropertyOrder
from rtlang_grammars.spec.structures import MAX_UNORDERED, any_of, members, repeat, sequence

_MAX_DEPTH = 5
_MAX_PARTS = 500
_HEX = "[0-9a-f]"
_ESCAPE = rf"\\[\\'\"nrt]|\\x{_HEX}{{2}}|\\u(?:[0-9a-cef]{_HEX}|d[0-7]){_HEX}{{2}}|\\U00(?:0[1-9a-f]|10){_HEX}{{4}}"
_STRING = rf"""'(?:[^'\\\x00-\x1f\x7f]|{_ESCAPE})*'|"(?:[^"\\\x00-\x1f\x7f]|{_ESCAPE})*\""""
_ANY = r"""
root ::= string | number | "True" | "False" | "None" | list | dict
list ::= "[" (root (", " root)*)? "]"
dict ::= "{" (pair (", " pair)*)? "}"
pair ::= string ": " root
number ::= "-"? ("0" | [1-9] [0-9]{0,64}) ("." [0-9]{1,64})? (("e" | "e-" | "e+") [0-9] [0-9]?)?
string ::= "'" one* "'" | "\"" two* "\""
one ::= [^'\\\x00-\x1f\x7f] | escape
two ::= [^"\\\x00-\x1f\x7f] | escape
hex ::= [0-9a-f]
escape ::= "\\" (["'\\nrt] | "x" hex hex | "u" ([0-9a-cef] hex | "d" [0-7]) hex hex | "U00" ("0" [1-9a-f] | "10") hex hex hex hex)
"""
_SIMPLE = frozenset(
    ("title", "description", "default", "examples", "type", "$defs", "definitions", "$schema", "deprecated")
)
_BY_TYPE = {
    "string": frozenset[str](),
    "array": frozenset(("items", "minItems", "maxItems")),
    "object": frozenset(("properties", "required", "additionalProperties")),
}


def python_value(schema: dict[str, Any] | bool, style: JsonStyle) -> Constraint:
    """A value of a schema as a Python literal, with properties in the order of a style."""
    source = _Source(schema, style)
    try:
        return _value(schema, source, 0)
    except _TooManyParts:
        return _json(schema, source)


class _TooManyParts(Exception):
    """A schema has more than `_MAX_PARTS` parts once its references are replaced."""


class _Source:
    """The document of a schema, how its values are written, and how many parts have been written."""

    def __init__(self, document: Any, style: JsonStyle) -> None:
        self.document, self.style = document, style
        self._num_parts = 0

    def count_part(self) -> None:
        self._num_parts += 1
        if self._num_parts > _MAX_PARTS:
            raise _TooManyParts


def _value(schema: Any, source: _Source, depth: int) -> Constraint:
    source.count_part()
    schema = resolved(schema, source.document)
    if schema is True or schema == {}:
        return Constraint(ConstraintKind.GBNF, _ANY)
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH or not _is_well_formed(schema):
        return _json(schema, source)
    if "const" in schema or isinstance(schema.get("enum"), list):
        values = schema["enum"] if "enum" in schema else [schema["const"]]
        types = types_of(schema, source.document)
        if all(type_of(each) not in ("array", "object") for each in values) and types:
            allowed = [each for each in values if type_of(each) in types]
            texts = [text for each in allowed for text in _spellings(each)]
            return Constraint(ConstraintKind.CHOICE, json.dumps(list(dict.fromkeys(texts)), ensure_ascii=False))
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list) and schema.keys() - _SIMPLE == {key} and "type" not in schema:
            return any_of(*(_value(each, source, depth + 1) for each in schema[key]))
    types = types_of(schema, source.document)
    if types == JSON_TYPES and schema.keys() <= _SIMPLE:
        return Constraint(ConstraintKind.GBNF, _ANY)
    parts = [_of_type(each, schema, source, depth) for each in sorted(types - _implied(types))]
    return any_of(*parts) if parts else _json(schema, source)


def _is_well_formed(schema: Mapping[str, Any]) -> bool:
    """Whether the keywords that are read here have their types; others raise the error of their compilation as JSON."""
    counts = [schema[key] for key in ("minItems", "maxItems") if schema.get(key) is not None]
    required = schema.get("required", [])
    return (
        isinstance(schema.get("properties", {}), Mapping)
        and isinstance(required, list | tuple)
        and all(isinstance(each, str) for each in required)
        and all(type(each) is int and each >= 0 for each in counts)
    )


def _implied(types: frozenset[str]) -> frozenset[str]:
    return frozenset(("integer",)) if "number" in types else frozenset()


def _of_type(name: str, schema: Mapping[str, Any], source: _Source, depth: int) -> Constraint:
    """The values of one type."""
    if name == "boolean":
        return Constraint(ConstraintKind.CHOICE, '["True", "False"]')
    if name == "null":
        return Constraint(ConstraintKind.CHOICE, '["None"]')
    more = schema.keys() - _SIMPLE - frozenset().union(*(keys for key, keys in _BY_TYPE.items() if key != name))
    if name not in _BY_TYPE or more - _BY_TYPE[name]:
        return _json({**schema, "type": name}, source)
    if name == "string":
        return Constraint(ConstraintKind.REGEX, _STRING)
    if name == "array":
        return _array(schema, source, depth)
    return _object(schema, source, depth)


def _array(schema: Mapping[str, Any], source: _Source, depth: int) -> Constraint:
    item = _value(schema.get("items", True), source, depth + 1)
    low, high = schema.get("minItems", 0), schema.get("maxItems")
    if high is not None and high < max(low, 1):
        return sequence("[]")
    following = repeat(sequence(", ", item), max(low - 1, 0), None if high is None else high - 1)
    some = sequence("[", item, following, "]")
    return some if low else any_of("[]", some)


def _object(schema: Mapping[str, Any], source: _Source, depth: int) -> Constraint:
    properties = schema.get("properties", {})
    required = frozenset(schema.get("required", ()))
    if not properties and schema.get("additionalProperties") is not False:
        inner = schema.get("additionalProperties", True)
        pair = sequence(Constraint(ConstraintKind.REGEX, _STRING), ": ", _value(inner, source, depth + 1))
        return any_of("{}", sequence("{", pair, repeat(sequence(", ", pair)), "}"))
    if required - properties.keys():
        return _json(schema, source)
    parts: list[tuple[str | Constraint, bool]] = []
    for name, each in properties.items():
        key = Constraint(ConstraintKind.CHOICE, json.dumps(_spellings(name), ensure_ascii=False))
        parts.append((sequence(key, ": ", _value(each, source, depth + 1)), name in required))
    order = source.style.order if len(parts) <= MAX_UNORDERED else PropertyOrder.DECLARED
    if order is PropertyOrder.REQUIRED_FIRST:
        parts.sort(key=lambda each: not each[1])
    return sequence("{", members(parts, ", ", order), "}")


def _json(schema: Any, source: _Source) -> Constraint:
    document = source.document
    definitions = {
        key: document[key] for key in ("$defs", "definitions") if isinstance(document, Mapping) and key in document
    }
    plain = {**definitions, **schema} if isinstance(schema, Mapping) else schema
    return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(plain, ensure_ascii=False), source.style)


def _spellings(value: object) -> list[str]:
    """A scalar as Python writes it; a string also in double quotes."""
    return [repr(value), json.dumps(value, ensure_ascii=False)] if isinstance(value, str) else [repr(value)]
