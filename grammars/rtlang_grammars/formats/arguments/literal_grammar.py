"""Values of a JSON schema written as literals: as Python's `repr` writes them, or with marks around strings and keys without quotes.

Schemas whose parts differ in their types are followed to the ground. Other values (references that recurse, `not`, `if`) are
written as JSON between Python's literals, which readers of those formats take as well. Between marked strings JSON cannot be read: there
the constraint allows any value of the type, and `unenforced_keyword` names the keyword.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rtlang_grammars.formats.description import Literals
from rtlang_grammars.formats.schemas import JSON_TYPES, resolved, type_of, types_of
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, PropertyOrder
from rtlang_grammars.spec.structures import (
    MAX_UNORDERED,
    any_of,
    define,
    defined,
    members,
    raw_text,
    repeat,
    sequence,
)

_MAX_DEPTH = 5
_MAX_PARTS = 500
_HEX = "[0-9a-f]"
_ESCAPE = rf"\\[\\'\"nrt]|\\x{_HEX}{{2}}|\\u(?:[0-9a-cef]{_HEX}|d[0-7]){_HEX}{{2}}|\\U00(?:0[1-9a-f]|10){_HEX}{{4}}"
_STRING = rf"""'(?:[^'\\\x00-\x1f\x7f]|{_ESCAPE})*'|"(?:[^"\\\x00-\x1f\x7f]|{_ESCAPE})*\""""
_ANY = r"""
root ::= string | number | TRUE | FALSE | NULL | list | dict
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
_KEY = r"[A-Za-z_][A-Za-z0-9_.\-]{0,63}"
"""Keys without quotes of objects that may have any."""
_SIMPLE = frozenset(
    ("title", "description", "default", "examples", "type", "$defs", "definitions", "$schema", "deprecated")
)
_BY_TYPE = {
    "string": frozenset[str](),
    "array": frozenset(("items", "minItems", "maxItems")),
    "object": frozenset(("properties", "required", "additionalProperties")),
}
_OF_STRINGS = frozenset(("minLength", "maxLength", "pattern", "format"))


def literal_value(
    schema: dict[str, Any] | bool, style: JsonStyle, literals: Literals, excludes: Iterable[str] = ()
) -> Constraint:
    """A value of a schema as a literal, with properties in the order of a style; marked strings contain none of the excluded texts."""
    return _Writer(schema, style, literals, excludes).root()


def unenforced_keyword(schema: dict[str, Any] | bool, literals: Literals) -> str | None:
    """A keyword that `literal_value` does not enforce; None if there is none."""
    writer = _Writer(schema, JsonStyle(), literals)
    writer.root()
    return writer.unenforced


def is_bare_key(name: str) -> bool:
    """Whether a key can be written without quotes."""
    return bool(name) and name.isprintable() and not set(name) & set(":,{}[]<>|\"' ")


class _TooManyParts(Exception):
    """A schema has more than `_MAX_PARTS` parts once its references are replaced."""


class _Writer:
    """Writes one document; counts its parts, and notes a keyword that is not enforced."""

    def __init__(self, document: Any, style: JsonStyle, literals: Literals, excludes: Iterable[str] = ()) -> None:
        self._document, self._style, self._literals = document, style, literals
        self._excludes = [literals.quote, *excludes]
        self._true, self._false, self._null = literals.constants
        self._num_parts = 0
        self.unenforced: str | None = None

    def root(self) -> Constraint:
        try:
            return self._value(self._document, 0)
        except _TooManyParts:
            return self._otherwise(self._document, "$ref")

    def _value(self, schema: Any, depth: int) -> Constraint:
        self._num_parts += 1
        if self._num_parts > _MAX_PARTS:
            raise _TooManyParts
        schema = resolved(schema, self._document)
        if schema is True or schema == {}:
            return self._any()
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH or not _is_well_formed(schema):
            return self._otherwise(schema, "$ref")
        if "const" in schema or isinstance(schema.get("enum"), list):
            values = schema["enum"] if "enum" in schema else [schema["const"]]
            types = types_of(schema, self._document)
            if all(type_of(each) not in ("array", "object") for each in values) and types:
                allowed = [each for each in values if type_of(each) in types]
                return self._choice(allowed)
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list) and schema.keys() - _SIMPLE == {key} and "type" not in schema:
                return any_of(*(self._value(each, depth + 1) for each in schema[key]))
        types = types_of(schema, self._document)
        if types == JSON_TYPES and schema.keys() <= _SIMPLE:
            return self._any()
        parts = [self._of_type(each, schema, depth) for each in sorted(types - _implied(types))]
        return any_of(*parts) if parts else self._json(schema)

    def _of_type(self, name: str, schema: Mapping[str, Any], depth: int) -> Constraint:
        """The values of one type."""
        if name == "boolean":
            return self._choice([True, False])
        if name == "null":
            return self._choice([None])
        more = schema.keys() - _SIMPLE - frozenset().union(*(keys for key, keys in _BY_TYPE.items() if key != name))
        if name == "string" and self._literals.quote:
            if more - _OF_STRINGS:
                self.unenforced = self.unenforced or min(more - _OF_STRINGS)
            kept = {key: schema[key] for key in sorted(more & _OF_STRINGS)}
            return self._marked({"type": "string", **kept})
        if name not in _BY_TYPE or more - _BY_TYPE[name]:
            return self._otherwise({**schema, "type": name}, min(more, default=name))
        if name == "string":
            return Constraint(ConstraintKind.REGEX, _STRING)
        if name == "array":
            return self._array(schema, depth)
        return self._object(schema, depth)

    def _array(self, schema: Mapping[str, Any], depth: int) -> Constraint:
        item = self._value(schema.get("items", True), depth + 1)
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        if high is not None and high < max(low, 1):
            return sequence("[]")
        following = repeat(
            sequence(self._literals.separator, item), max(low - 1, 0), None if high is None else high - 1
        )
        some = sequence("[", item, following, "]")
        return some if low else any_of("[]", some)

    def _object(self, schema: Mapping[str, Any], depth: int) -> Constraint:
        properties = schema.get("properties", {})
        required = frozenset(schema.get("required", ()))
        if not properties and schema.get("additionalProperties") is not False:
            return self._map(self._value(schema.get("additionalProperties", True), depth + 1))
        if required - properties.keys():
            return self._otherwise(schema, "required")
        parts: list[tuple[str | Constraint, bool]] = []
        for name, each in properties.items():
            if self._literals.quote and not is_bare_key(name):
                self.unenforced = self.unenforced or "properties"
                if name in required:
                    return self._otherwise(schema, "properties")
                continue
            key: str | Constraint = name if self._literals.quote else self._choice([name])
            parts.append((sequence(key, self._literals.colon, self._value(each, depth + 1)), name in required))
        if schema.get("additionalProperties", False) is not False:
            parts.append((self._others(properties, schema["additionalProperties"], depth), False))
        order = self._style.order if len(parts) <= MAX_UNORDERED else PropertyOrder.DECLARED
        if order is PropertyOrder.REQUIRED_FIRST:
            parts.sort(key=lambda each: not each[1])
        return sequence("{", members(parts, self._literals.separator, order) if parts else "", "}")

    def _others(self, declared: Iterable[str], schema: Any, depth: int) -> Constraint:
        """One or more members with names that are not declared. They have no escapes, which could spell a declared name."""
        names = "|".join(sorted(map(re.escape, declared)))
        key = rf"(?!(?:{names}){re.escape(self._literals.colon)}){_KEY}"
        if not self._literals.quote:
            key = "|".join(rf"{quote}(?!(?:{names}){quote})[^{quote}\\\x00-\x1f\x7f]*{quote}" for quote in "'\"")
        value = self._value(schema, depth + 1)
        pair = sequence(Constraint(ConstraintKind.REGEX, key), self._literals.colon, value)
        return sequence(pair, repeat(sequence(self._literals.separator, pair)))

    def _map(self, value: Constraint) -> Constraint:
        """An object with any keys."""
        key = Constraint(ConstraintKind.REGEX, _KEY if self._literals.quote else _STRING)
        pair = sequence(key, self._literals.colon, value)
        return any_of("{}", sequence("{", pair, repeat(sequence(self._literals.separator, pair)), "}"))

    def _any(self) -> Constraint:
        """Any value; between marks, of at most `_MAX_DEPTH` levels."""
        if not self._literals.quote:
            words = dict(zip(("TRUE", "FALSE", "NULL"), self._literals.constants, strict=True))
            grammar = _ANY
            for name, word in words.items():
                grammar = grammar.replace(name, json.dumps(word))
            return Constraint(ConstraintKind.GBNF, grammar)
        number = Constraint(ConstraintKind.JSON_SCHEMA, '{"type": "number"}', self._style)
        levels: dict[str, Constraint] = {}
        inner = any_of(number, self._true, self._false, self._null, self._marked(True))
        for level in range(1, _MAX_DEPTH):
            levels[f"level {level}"] = inner
            known = defined(f"level {level}")
            listed = sequence("[", known, repeat(sequence(self._literals.separator, known)), "]")
            inner = any_of(known, "[]", listed, self._map(known))
        return define(levels, inner)

    def _marked(self, schema: dict[str, Any] | bool) -> Constraint:
        quote = self._literals.quote
        return sequence(quote, raw_text(schema, excludes=self._excludes), quote)

    def _otherwise(self, schema: Any, keyword: str) -> Constraint:
        """A value of a schema that is not followed: as JSON, or any value of its types where JSON cannot be read."""
        if not self._literals.quote:
            return self._json(schema)
        types = types_of(schema, self._document)
        if types <= {"integer", "number"}:
            return self._json(schema)
        self.unenforced = self.unenforced or keyword
        parts: list[Constraint] = []
        for each in sorted(types - _implied(types)):
            match each:
                case "object":
                    parts.append(self._map(self._any()))
                case "array":
                    any_value = self._any()
                    some = sequence("[", any_value, repeat(sequence(self._literals.separator, any_value)), "]")
                    parts.append(any_of("[]", some))
                case "integer" | "number":
                    parts.append(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps({"type": each}), self._style))
                case _:
                    parts.append(self._of_type(each, {}, 0))
        return any_of(*parts) if parts else self._json(schema)

    def _json(self, schema: Any) -> Constraint:
        document = self._document
        definitions = {
            key: document[key] for key in ("$defs", "definitions") if isinstance(document, Mapping) and key in document
        }
        plain = {**definitions, **schema} if isinstance(schema, Mapping) else schema
        return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(plain, ensure_ascii=False), self._style)

    def _choice(self, values: Iterable[object]) -> Constraint:
        """One of some scalars; in Python a string also in double quotes."""
        texts: list[str] = []
        marked: list[str] = []
        for value in values:
            match value:
                case bool() | None:
                    texts.append(self._null if value is None else self._true if value else self._false)
                case str() if self._literals.quote:
                    marked.append(value)
                case str():
                    texts += [repr(value), json.dumps(value, ensure_ascii=False)]
                case _:
                    texts.append(repr(value))
        parts = [_one_of(texts)] if texts or not marked else []
        if marked:
            parts.append(sequence(self._literals.quote, _one_of(marked), self._literals.quote))
        return any_of(*parts)


def _one_of(texts: Iterable[str]) -> Constraint:
    return Constraint(ConstraintKind.CHOICE, json.dumps(list(dict.fromkeys(texts)), ensure_ascii=False))


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
