"""The status of every JSON Schema keyword, found by compiling probes: the table of the README.

Each keyword has probes, small schemas that use it in easy and in hard positions. Their reports show whether it is enforced, checked after
generation, or asserts nothing; refused probes show what is not supported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rtlang_grammars.schema.compiler import compile_shapes
from rtlang_grammars.schema.reading.dialects import ANNOTATIONS, DIALECTS
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.schema.reading.report import KeywordStatus
from rtlang_grammars.spec.errors import GrammarError

_S, _I, _O, _A = {"type": "string"}, {"type": "integer"}, {"type": "object"}, {"type": "array"}
_XY = {"enum": ["x", "y"]}
_MULTIPLES = [{**_I, "multipleOf": factor} for factor in (2, 3, 5, 7, 11, 13)]

PROBES: Mapping[str, Sequence[Any]] = {
    "type": [_S, {"type": ["integer", "null"]}, {"not": _I}],
    "enum": [{"enum": [1, "a", {"b": [2]}]}, {"not": {"enum": [1, "a", [1], {"b": 2}]}}],
    "const": [{"const": {"a": [1.5]}}, {"not": {"const": "a"}}],
    "minimum": [{**_I, "minimum": -3}, {"minimum": 0.25, "maximum": 1e10}],
    "maximum": [{**_I, "maximum": 3}],
    "exclusiveMinimum": [
        {"exclusiveMinimum": 0.1},
        {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True},
    ],
    "exclusiveMaximum": [
        {"exclusiveMaximum": 10},
        {"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 1, "exclusiveMaximum": True},
    ],
    "multipleOf": [{"multipleOf": 7}, {"multipleOf": 0.01}, {"not": {"multipleOf": 3}}, {"multipleOf": 123457}],
    "minLength": [{**_S, "minLength": 3}],
    "maxLength": [{**_S, "maxLength": 300, "pattern": "^a"}],
    "pattern": [{"pattern": r"^(?=.*\d)\p{L}+\b"}, {"not": {"pattern": "a"}}, {"pattern": r"(a)\1"}],
    "x-pattern-dialect": [{"pattern": r"(?i)^[[:alpha:]]\z", "x-pattern-dialect": "rust"}],
    "format": [{"format": "date-time"}, {"format": "hostname"}, {"format": "regex"}, {"not": {"format": "hostname"}}],
    "properties": [{"properties": {"a": _I}}, {"not": {"properties": {"a": _I}}}],
    "patternProperties": [
        {"patternProperties": {"^a": _I, "b$": {"minimum": 2}}},
        {**_O, "not": {"patternProperties": {"^a": _I}}},
    ],
    "additionalProperties": [
        {"properties": {"a": _I}, "additionalProperties": _S},
        {**_O, "not": {"additionalProperties": _S}},
    ],
    "propertyNames": [{"propertyNames": {"pattern": "^[a-z]+$"}}, {**_O, "not": {"propertyNames": {"maxLength": 2}}}],
    "required": [{"required": ["a"]}, {**_O, "not": {"required": ["a"]}}],
    "minProperties": [{**_O, "minProperties": 2}],
    "maxProperties": [{**_O, "maxProperties": 2}],
    "dependentRequired": [{"dependentRequired": {"a": ["b"]}}, {**_O, "not": {"dependentRequired": {"a": ["b"]}}}],
    "dependentSchemas": [
        {"dependentSchemas": {"a": {"required": ["b"]}}},
        {**_O, "not": {"dependentSchemas": {"a": {"maxProperties": 1}}}},
    ],
    "dependencies": [
        {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": ["b"], "c": {"minProperties": 2}}}
    ],
    "items": [
        {"items": _I},
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [_I, _S]},
        {**_A, "not": {"items": _I}},
    ],
    "prefixItems": [{"prefixItems": [_I, _S]}, {**_A, "not": {"prefixItems": [_I]}}],
    "additionalItems": [{"$schema": "http://json-schema.org/draft-07/schema#", "items": [_I], "additionalItems": _S}],
    "minItems": [{**_A, "minItems": 1000}],
    "maxItems": [{**_A, "maxItems": 1000}],
    "uniqueItems": [
        {**_A, "items": _XY, "uniqueItems": True},
        {**_A, "items": _S, "uniqueItems": True},
        {**_A, "not": {"uniqueItems": True}},
    ],
    "contains": [
        {"contains": _I},
        {**_A, "not": {"contains": _I}},
        {**_A, "allOf": [{"contains": each} for each in _MULTIPLES]},
    ],
    "minContains": [{**_A, "contains": _I, "minContains": 2}],
    "maxContains": [{**_A, "contains": _I, "maxContains": 2}],
    "allOf": [{"allOf": [{"minimum": 1}, {"multipleOf": 2}]}, {"not": {"allOf": [_S, {"maxLength": 3}]}}],
    "anyOf": [{"anyOf": [_S, {"minimum": 1}]}, {"not": {"anyOf": [_S, _I]}}],
    "oneOf": [{"oneOf": [{"minimum": 1}, {"multipleOf": 2}]}, {"not": {"oneOf": [_S, {"maxLength": 3}]}}],
    "not": [{"not": {**_O, "properties": {"a": _I}, "required": ["a"]}}],
    "if": [{"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}],
    "then": [{"if": {"minimum": 1}, "then": {"multipleOf": 2}}],
    "else": [{"if": {"minimum": 1}, "else": {"multipleOf": 2}}],
    "unevaluatedProperties": [
        {"anyOf": [{"properties": {"a": _I}}, {"required": ["b"]}], "unevaluatedProperties": False},
        {**_O, "not": {"unevaluatedProperties": False}},
    ],
    "unevaluatedItems": [
        {"prefixItems": [_I], "contains": _S, "unevaluatedItems": False},
        {**_A, "not": {"unevaluatedItems": _I}},
    ],
    "$ref": [
        {"$ref": "#/$defs/t", "$defs": {"t": {"items": {"$ref": "#/$defs/t"}}}},
        {"$ref": "https://example.com/other.json"},
    ],
    "$dynamicRef": [{"$dynamicAnchor": "n", "items": {"$dynamicRef": "#n"}}],
    "$recursiveRef": [
        {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "$recursiveAnchor": True,
            "items": {"$recursiveRef": "#"},
        }
    ],
}
"""Schemas for each keyword that asserts something."""

ASSERTIONS = frozenset().union(*(dialect.keywords for dialect in DIALECTS.values()))
"""Every keyword that asserts something in some dialect."""


def keyword_table() -> str:
    """The table as Markdown, one row per keyword."""
    lines = ["| keyword | what becomes of it | notes |", "|---|---|---|"]
    for keyword in sorted(ASSERTIONS, key=lambda name: (name.startswith("$"), name)):
        statuses, notes = _told(keyword)
        lines.append(f"| `{keyword}` | {', '.join(statuses)} | {'; '.join(notes)} |")
    lines.append(
        f"| {', '.join(f'`{name}`' for name in sorted(ANNOTATIONS))} | annotation or identifier | assert nothing |"
    )
    return "\n".join(lines)


_SAID = {
    KeywordStatus.ENFORCED: "enforced",
    KeywordStatus.CHECKED: "else checked after generation",
    KeywordStatus.IGNORED: "asserts nothing",
}


def _told(keyword: str) -> tuple[list[str], list[str]]:
    statuses: dict[str, None] = {}
    notes: dict[str, None] = {}
    for schema in PROBES[keyword]:
        try:
            report = compile_shapes(schema, options=SchemaOptions(default_dialect="2020-12")).report
        except GrammarError as error:
            statuses["else refused"] = None
            notes[f"refused: {error.reason}"] = None
            continue
        for entry in report.entries:
            if entry.keyword == keyword:
                statuses[_SAID[entry.status]] = None
                if entry.reason:
                    notes[f"{'checked: ' if entry.status is KeywordStatus.CHECKED else ''}{entry.reason}"] = None
    return [*statuses], [note.replace("|", "\\|") for note in notes]
