"""Schemas inside Lark grammars, against jsonschema: every schema with every value."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from rtlang_grammars.spec.errors import GrammarError
from tests.support.grammars.lexed_grammars import accepts, lexed_grammar
from tests.support.long_tests import spread

OPEN = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["b"]}
SCHEMAS: tuple[Any, ...] = (
    {"type": "string", "maxLength": 2},
    {"type": "string", "pattern": "^a[0-9]+$"},
    {"type": ["integer", "null"], "minimum": -3, "exclusiveMaximum": 13},
    {"enum": ["a1", 3, None, True, {"a": 1, "b": ""}, [1, "é"]]},
    {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": {"type": "null"}, "minItems": 1},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
    {"type": "array", "maxItems": 0},
    OPEN,
    OPEN | {"additionalProperties": False},
    {"type": "object", "patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
    {"type": "object", "minProperties": 1, "additionalProperties": {"type": "integer"}},
    {"anyOf": [{"properties": {"a": {"const": 1}, "b": {"type": "integer"}}, "required": ["a"]}, OPEN, {"type": "number"}]},
    {"anyOf": [{"type": "array", "items": {"const": "a1"}}, {"type": "array", "items": {"type": "string", "maxLength": 1}}]},
    {"$ref": "#/$defs/t", "$defs": {"t": {"type": "object", "properties": {"a": {"$ref": "#/$defs/t"}}, "additionalProperties": False}}},
    True,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 3, -3, 13, 12, 1.5, "", "a1", "é", "abc", [], [1], [1, 2, 3], [1, 2, 3, 4], ["a1", "a1"], ["a", "a1"],
    ["a", ""], [1, "é"], [1, "a", None, None], [1, "a", 1], {}, {"a": 1}, {"b": ""}, {"a": 1, "b": ""}, {"a": 1, "b": "", "c": []},
    {"a": "x", "b": ""}, {"a": 1, "b": 2}, {"a": {}}, {"a": {"a": {}}}, {"ab": 1, "x": "é"}, {"ab": "x"}, {"b": "", "c": {"d": [None]}},
)  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:40])
def test_values_stand_where_jsonschema_finds_them_valid(schema: Any) -> None:
    grammar = lexed_grammar(f'start: "<" %json {json.dumps(schema)} ">"') if isinstance(schema, dict) else None
    grammar = grammar or lexed_grammar('start: "<" %json {} ">"')
    validator = jsonschema.Draft202012Validator(schema)
    for value, indent in spread(VALUES, (None, 2), usual=2):
        text = f"<{json.dumps(value, ensure_ascii=indent is None, indent=indent)}>"
        assert accepts(grammar, text) == validator.is_valid(value), (value, indent)


def test_ignored_terminals_stand_before_and_after_the_value_only() -> None:
    grammar = lexed_grammar(
        'start: "a" value ";" value\nvalue: %json {"type": "object", "properties": {"x": {"const": [1]}}}\n%ignore /#+/\n'
    )
    assert accepts(grammar, 'a##{"x": [1]}#;#{}##')
    for text in ('a{#"x":[1]};{}', 'a{"x"#:[1]};{}', 'a{"x":#[1]};{}', 'a{"x":[#1]};{}', 'a{"x":[1]#};{}'):
        assert not accepts(grammar, text), text


def test_calls_of_tools_in_free_text() -> None:
    grammar = lexed_grammar(r"""
        start: tool* tail
        tail: TEXT
        head[lazy]: TEXT "<call>"
        tool: head (%json {"const": 1} | %json {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}) "</call>"
        TEXT: /(\n|.)*/
    """)
    for text in ("", "text <cal", '<call>1</call>a<call>{ "x" : -3 }</call>tail'):
        assert accepts(grammar, text), text
    for text in ("<call>", "<call>2</call>", '<call>{"x":1}', 'a<call>{"x":"1"}</call>', '<call> {"x":1}</call>'):
        assert not accepts(grammar, text), text


def test_schemas_that_begin_alike_are_followed_together() -> None:
    grammar = lexed_grammar("""
        start: a ";" (a | b | c)
        a: %json {"type": "object", "properties": {"k": {"const": "a"}, "v": {"type": "integer"}}, "required": ["k", "v"]}
        b: %json {
            "type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"], "additionalProperties": {"type": "number"}
        } "!"
        c: %json {"type": "array", "items": {"type": "string"}} | %json {"type": "array", "items": {"enum": ["x", 1]}} "?"
    """)
    first = '{"k": "a", "v": 1};'
    for text in (
        '{"k":"a","v":2}',
        '{"k":"a","w":2.5}!',
        '{"k":"b"}!',
        '["x","x"]',
        '["x","x"]?',
        '["y"]',
        "[1]?",
        "[]?",
        "[]",
    ):
        assert accepts(grammar, first + text), text
    for text in ('{"k":"b","v":2}', '{"k":"a","w":"x"}!', '["y"]?', "[1]", '{"k":"a"}'):
        assert not accepts(grammar, first + text), text


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ('{"type": "array", "uniqueItems": true}', "uniqueItems"),
        ('{"type": "array", "contains": {"type": "integer"}}', "contains: not supported in a grammar"),
        ('{"type": "object", "maxProperties": 2}', "minProperties, maxProperties: not supported in a grammar"),
        ('{"type": "foo"}', "type"),
        ("[]", "expected a JSON object"),
        ('{"const": 1, "type": "string"}', "no"),
    ],
)
def test_what_rules_cannot_say_is_refused_with_its_place(schema: str, reason: str) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        lexed_grammar(f"start: a\na: %json {schema}")
    assert caught.value.location == "2:4"
