"""Arguments in Cohere's style of structural tags: every value stands in a tag with its type, and objects and arrays nest as such tags.

    <cofl:value name="city" type="raw">Oslo</cofl:value>
    <cofl:value name="days" type="list"><cofl:value type="json">1</cofl:value></cofl:value>

Source: `cohere_xml` of xgrammar 0.2.9. Values that a schema does not describe nest at most `_MAX_DEPTH` levels.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rtlang_grammars.formats.description import JSON_BLANKS
from rtlang_grammars.formats.schemas import narrowed, resolved, types_of, with_definitions
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, PropertyOrder
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.structures import MAX_UNORDERED, any_of, members, raw_text, repeat, sequence

_MAX_DEPTH = 3
_END = "</cofl:value>"
_NAME = Constraint(ConstraintKind.REGEX, "[a-zA-Z_][a-zA-Z0-9_]*")
_BLANKS = Constraint(ConstraintKind.REGEX, JSON_BLANKS)
_SCALARS = frozenset(("null", "boolean", "integer", "number"))
_SAYS_NOTHING = frozenset(
    ("type", "title", "description", "default", "examples", "deprecated", "$defs", "definitions", "$schema")
)
_OF_OBJECTS = frozenset(("properties", "required", "additionalProperties"))
_OF_ARRAYS = frozenset(("items", "minItems", "maxItems"))
_OF_SCALARS = frozenset(
    (
        *("enum", "const", "minLength", "maxLength", "pattern", "format"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    )
)


def nested_arguments(parameters: Mapping[str, Any], excludes: Sequence[str], style: JsonStyle) -> Constraint:
    """The arguments that a schema of an object allows; `excludes` are in no string.

    Raises:
        GrammarError: a keyword cannot be enforced in this style; without a location.
    """
    return _Writer(parameters, [_END, *excludes], style).members(parameters, 0)


class _Writer:
    def __init__(self, document: Mapping[str, Any], excludes: Sequence[str], style: JsonStyle) -> None:
        self._document, self._excludes, self._style = document, excludes, style

    def members(self, schema: Mapping[str, Any], depth: int) -> Constraint:
        """The members of an object, one tag after the other."""
        _check(schema, _OF_OBJECTS | _OF_ARRAYS | _OF_SCALARS)
        declared, required = schema.get("properties", {}), frozenset(schema.get("required", ()))
        for name in sorted(required - declared.keys()):
            raise GrammarError(f"required property {name!r} is not declared; declare it in properties")
        parts: list[tuple[str | Constraint, bool]] = []
        for name, each in declared.items():
            if not name.isprintable() or set(name) & set('<>&"'):
                raise GrammarError(f"property {name!r} cannot be written in the style cohere_xml")
            parts.append((self._member(name, each, depth), name in required))
        order = self._style.order if len(parts) <= MAX_UNORDERED else PropertyOrder.DECLARED
        found = [members(parts, "", order)] if parts else []
        additional = schema.get("additionalProperties", not declared)
        if additional is not False and depth <= _MAX_DEPTH:
            found.append(repeat(self._member(_NAME, additional, depth)))
        return sequence(*found, _BLANKS)

    def _member(self, name: str | Constraint, schema: Any, depth: int) -> Constraint:
        return sequence(_BLANKS, '<cofl:value name="', name, '"', self._value(schema, depth))

    def _value(self, given: Any, depth: int) -> Constraint:
        """A value from its type on."""
        schema = resolved(given, self._document)
        if depth > 4 * _MAX_DEPTH or schema is None:
            raise GrammarError("$ref: a schema that contains itself cannot be written in the style cohere_xml")
        found = schema if isinstance(schema, Mapping) else {}
        whole = with_definitions(schema, self._document)
        for key in ("anyOf", "oneOf"):
            if isinstance(found.get(key), list):
                _check(found, frozenset((key,)))
                return any_of(*(self._value(each, depth + 1) for each in found[key]))
        _check(found, _OF_OBJECTS | _OF_ARRAYS | _OF_SCALARS)
        types, parts = types_of(whole), list[Constraint]()
        if "string" in types:
            text = raw_text(narrowed(whole, frozenset(("string",))), excludes=self._excludes)
            parts.append(sequence(' type="raw">', text))
        if scalars := types & _SCALARS:
            source = json.dumps(narrowed(whole, scalars), ensure_ascii=False)
            value = Constraint(ConstraintKind.JSON_SCHEMA, source, self._style)
            parts.append(sequence(' type="json">', _BLANKS, value, _BLANKS))
        is_listed = "enum" in found or "const" in found
        if is_listed and types & {"object", "array"}:
            raise GrammarError("enum: listed objects and arrays cannot be written in the style cohere_xml")
        is_open = isinstance(schema, bool) or not found.keys() & (_OF_OBJECTS | _OF_ARRAYS)
        if not is_open or depth < _MAX_DEPTH:
            if "object" in types:
                parts.append(sequence(' type="dict">', self.members(found, depth + 1)))
            if "array" in types:
                item = sequence("<cofl:value", self._value(found.get("items", True), depth + 1))
                items = repeat(item, found.get("minItems", 0), found.get("maxItems"))
                parts.append(sequence(' type="list">', _BLANKS, items, _BLANKS))
        if not parts:
            raise GrammarError("a property allows no value")
        return sequence(any_of(*parts), _END)


def _check(schema: Mapping[str, Any], allowed: frozenset[str]) -> None:
    unknown = schema.keys() - _SAYS_NOTHING - allowed
    if unknown:
        raise GrammarError(f"{min(unknown)} cannot be enforced in the style cohere_xml")
