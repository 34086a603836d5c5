"""Keys of objects: a name may be begun only where some name may be ended, and objects are ended with names that their patterns allow."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from rtlang_grammars.api.rtlang_backend import RtlangBackend, RtlangGrammar
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.schema.reading.options import SchemaOptions
from rtlang_grammars.spec.constraint import ANY_STYLE, Constraint, ConstraintKind, JsonStyle
from tests.support.grammars.vocabularies import small_vocabulary
from tests.support.schemas.random_schemas import with_python_patterns

AB, NONE_ELSE = {"ab": True}, {"additionalProperties": False}
ONLY_LETTERS = {"^[ab]$": True}


@functools.cache
def backend() -> RtlangBackend:
    options = SchemaOptions(default_dialect="2020-12")
    return RtlangBackend(VocabularyIndex(small_vocabulary()), schema_options=options, allow_checked=True)


def compiled(schema: dict[str, Any], style: JsonStyle = ANY_STYLE) -> RtlangGrammar:
    return backend().compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema), style))


def behind(schema: dict[str, Any], text: str) -> MachineMatcher:
    matcher = compiled(schema).matcher()
    assert all(map(matcher.accept_token, text.encode())), (schema, text)
    return matcher


@pytest.mark.parametrize(
    ("schema", "text", "refused"),
    [
        ({"properties": {"a": False}, "patternProperties": {"a": False}, "if": False}, '{ "', "a"),
        ({"properties": AB, "patternProperties": {"^b": True}, **NONE_ELSE}, '{"ab":0,"', "a"),
        ({"properties": AB, "patternProperties": {"^b": True}, **NONE_ELSE, "maxProperties": 3}, '{"ab":0,"', "a"),
        ({"properties": {"a": True}, "patternProperties": {"^a$": True}, **NONE_ELSE}, '{"a":0', ","),
        ({"properties": {"a": True}, "patternProperties": {"a": False}, "propertyNames": {"pattern": "^a"}}, "{", '"'),
        ({"required": ["a"], "patternProperties": {"[\\s\\S]{2}|[^a]|^$": False}}, '{"a":0', ","),
    ],
)
def test_a_name_is_begun_only_where_one_can_be_ended(schema: dict[str, Any], text: str, refused: str) -> None:
    matcher = behind(schema, text)
    assert not matcher.accept_token(ord(refused))
    assert matcher.closing_bytes() is not None


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": {"a": False, "^.?$": False}, "not": {"additionalProperties": False}},
        {"patternProperties": {"^[0-9]": False}, "minProperties": 1},
        {
            "patternProperties": {"^[0-9]": {"type": "null"}},
            "additionalProperties": {"type": "integer"},
            "required": ["x"],
        },
        {"patternProperties": ONLY_LETTERS, **NONE_ELSE, "minProperties": 2},
        {"propertyNames": {"pattern": "^[ab]$"}, "minProperties": 2},
        {"patternProperties": {"[\\s\\S]": False}, "minProperties": 1},
        {"properties": {"x": {"const": 1}}, "patternProperties": ONLY_LETTERS, "required": ["x"], "minProperties": 3},
        {"patternProperties": {"^S_": True}, **NONE_ELSE, "minProperties": 5},
        {"patternProperties": {"^S_": {"type": "null"}, "é$": False}, "minProperties": 40, "maxProperties": 40},
        {"patternProperties": {"^[abc]$": {"enum": [1]}, "^[0-9]{2,3}$": False}, **NONE_ELSE, "minProperties": 3},
    ],
)
def test_objects_are_ended_with_names_that_their_patterns_allow(schema: dict[str, Any]) -> None:
    schema = {"type": "object", **schema}
    grammar = compiled(schema)
    assert grammar.report is not None
    for text in ("", "{", '{ "'):
        closing = behind(schema, text).closing_bytes()
        assert closing is not None
        value = json.loads(text + closing.decode())
        Draft202012Validator(with_python_patterns(schema)).validate(value)


COUNTED = {"^[ab]{1,3}$": {"type": "integer"}}


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": COUNTED, **NONE_ELSE},
        {"patternProperties": COUNTED, "properties": {"abc": {"type": "null"}, "b_": True}, **NONE_ELSE},
        {"patternProperties": COUNTED, "properties": {"ab": {"type": "null"}}, **NONE_ELSE},
        {"patternProperties": COUNTED, "properties": {"abba": {"type": "null"}}, "required": ["abba"], **NONE_ELSE},
        {"patternProperties": {"^.{0,2}$": {"type": "integer"}}, **NONE_ELSE},
        {"patternProperties": COUNTED, "maxProperties": 1, **NONE_ELSE},
        {"patternProperties": COUNTED, "additionalProperties": {"type": "null"}},
    ],
)
def test_names_are_counted_as_their_pattern_says(schema: dict[str, Any]) -> None:
    schema = {"type": "object", **schema}
    validator = Draft202012Validator(with_python_patterns(schema))
    matcher = compiled(schema).matcher()
    names = [
        "",
        "a",
        "b",
        "ab",
        "ba",
        "abc",
        "aba",
        "abba",
        "b_",
        "\\u0061b",
        "aa\\u0062",
        "é",
        "😀",
        "\\ud83d\\ude00a",
    ]
    members = [f'"{name}":{value}' for name in names for value in ("1", "null")]
    texts = ["{}", *(f"{{{one}}}" for one in members), *(f"{{{one}, {two}}}" for one in members for two in members)]
    num_accepted = 0
    for text in texts:
        value = json.loads(
            text, object_pairs_hook=lambda pairs: pairs if len(dict(pairs)) < len(pairs) else dict(pairs)
        )
        if not isinstance(value, dict):
            continue  # the same name twice
        fork = matcher.fork()
        row = np.zeros(backend()._index.num_words, dtype=np.int32)
        accepted = True
        for byte in text.encode():
            fork.fill_bitmask(row)
            accepted = fork.accept_token(byte)
            assert accepted == bool(row[byte >> 5] >> (byte & 31) & 1)
            if not accepted:
                break
            closing = fork.closing_bytes()
            assert closing is not None
            assert fork.completes_bytes(closing)
        accepted = accepted and fork.is_accepting
        assert accepted == validator.is_valid(value), text
        num_accepted += accepted
    assert num_accepted
