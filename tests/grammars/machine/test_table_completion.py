"""Short ways to the end: inside strings with patterns, names with patterns, and objects whose values call each other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.machine.native import walks
from rtlang_grammars.machine.table_completion import TableCompletion
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.regular.language import compile_regex
from rtlang_grammars.spec.constraint import ANY_STYLE, Constraint, ConstraintKind, JsonStyle
from rtlang_grammars.spec.vocabulary import Vocabulary

INDEX = VocabularyIndex(
    Vocabulary(tuple(bytes((byte,)) for byte in range(256)), frozenset((256,)), frozenset((256,)), 257)
)
BACKEND = RtlangBackend(INDEX)
CHECKED_BACKEND = RtlangBackend(INDEX, allow_checked=True)


def behind(
    schema: object, text: str, backend: RtlangBackend = BACKEND, style: JsonStyle | None = None
) -> MachineMatcher:
    style = style or JsonStyle()
    matcher = backend.compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema), style)).matcher()
    assert all(matcher.accept_token(byte) for byte in text.encode())
    return matcher


@pytest.mark.parametrize(
    "pattern",
    [
        "[a-f]{3}-[0-9]{4,9}(xyz|z)",
        "(?=.*[0-9])(?=.*é).{3,8}",
        r"\d{4}-(0[1-9]|1[0-2])-\d\d",
        '\\\\"\\n[^a-z]x*',
        "(?!a).+q",
        "[ab]*a[ab]{12}",
    ],
)
def test_a_string_with_a_pattern_is_ended_by_as_few_characters_as_can_be(pattern: str) -> None:
    closing = behind({"type": "string", "pattern": f"^(?:{pattern})$"}, '"').closing_bytes()
    assert closing is not None
    language = compile_regex(pattern)
    value = json.loads('"' + closing.decode())
    shortest = language.shortest()
    assert language.accepts(value)
    assert shortest is not None
    assert len(value) == len(shortest)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (
            {"patternProperties": {"^x-[0-9]+$": {"type": "null"}}, "additionalProperties": False, "type": "object"},
            '{"x',
        ),
        ({"patternProperties": {"^a": {"const": "long" * 9}, "^b{12}": False}, "type": "object"}, '{"'),
        ({"propertyNames": {"pattern": "^[a-c]{5}$"}, "minProperties": 1, "type": "object"}, '{"ab'),
        (
            {
                "patternProperties": {"^(..)*$": {"minLength": 5, "type": "string"}},
                "maxProperties": 1,
                "type": "object",
            },
            '{"a',
        ),
    ],
)
def test_names_with_patterns_are_ended(schema: object, text: str) -> None:
    closing = behind(schema, text).closing_bytes()
    assert closing is not None
    assert Draft202012Validator(schema).is_valid(json.loads(text + closing.decode()))  # type: ignore[arg-type]
    assert len(closing) < 70


@pytest.mark.parametrize(("count", "text"), [(3, '{"'), (12, '{"ab')])
def test_several_names_that_a_pattern_restricts_differ(count: int, text: str) -> None:
    schema = {"propertyNames": {"pattern": "^a"}, "minProperties": count, "type": "object"}
    closing = behind(schema, text, CHECKED_BACKEND).closing_bytes()
    assert closing is not None
    assert Draft202012Validator(schema).is_valid(json.loads(text + closing.decode()))


def test_values_that_call_each_other_are_ended_by_the_way_out() -> None:
    schema = {
        "$defs": {
            "a": {
                "type": "object",
                "required": ["b", "c"],
                "properties": {"b": {"$ref": "#/$defs/b"}, "c": {"$ref": "#/$defs/d"}},
            },
            "b": {
                "anyOf": [
                    {"$ref": "#/$defs/a"},
                    {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1},
                    {"$ref": "#/$defs/d"},
                ]
            },
            "d": {
                "type": "object",
                "required": ["e"],
                "properties": {"e": {"anyOf": [{"$ref": "#/$defs/b"}, {"const": 7}]}},
            },
        },
        "$ref": "#/$defs/a",
    }
    for text in ("", "{", '{"b":', '{"b":[', '{"b":{"e":{"b"'):
        closing = behind(schema, text).closing_bytes()
        assert closing is not None
        assert Draft202012Validator(schema).is_valid(json.loads(text + closing.decode()))
        assert len(closing) < 60


def test_values_of_many_members_are_worked_out_with_a_search_each(monkeypatch: pytest.MonkeyPatch) -> None:
    num_searches = 0
    search = TableCompletion._search

    def counted(self: TableCompletion, *arguments: Any) -> bytes | None:
        nonlocal num_searches
        num_searches += 1
        return search(self, *arguments)

    monkeypatch.setattr(TableCompletion, "_search", counted)
    value = {f"k{i}": i for i in range(300)}
    closing = behind({"const": value}, "").closing_bytes()
    assert closing is not None
    assert json.loads(closing) == value
    assert num_searches < 310


@pytest.mark.parametrize(
    ("style", "texts"),
    [
        (ANY_STYLE, ('{"k12', '{"k7":7,"k1', '{"k1":1,"k2":2,"k3":3,"k')),
        (JsonStyle(), ('{"k', '{"k1":1,"k', '{"k7":7,"k1', '{"k1":1,"k2":2,"k3":3,"k7":7,"k')),
    ],
    ids=["any order", "declared order"],
)
def test_names_of_an_object_with_many_are_ended(style: JsonStyle, texts: tuple[str, ...]) -> None:
    properties = {f"k{i}": {"const": i} for i in range(2000)}
    schema = {
        "type": "object",
        "properties": properties,
        "required": ["k7", "k1999"],
        "minProperties": 4,
        "maxProperties": 5,
        "additionalProperties": False,
    }
    for text in texts:
        closing = behind(schema, text, style=style).closing_bytes()
        assert closing is not None
        assert Draft202012Validator(schema).is_valid(json.loads(text + closing.decode()))


@pytest.mark.parametrize("count", [1, 63, 5000])
def test_what_must_come_is_walked_through_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    num_walked = 0
    forced = walks.forced

    def counted(*arguments: Any) -> int:
        nonlocal num_walked
        code = int(forced(*arguments))
        num_walked += int(arguments[-1][1])
        return code

    monkeypatch.setattr(walks, "forced", counted)
    matcher = BACKEND.compile(Constraint(ConstraintKind.REGEX, f"(?:ab){{{count}}}[cd]")).matcher()
    found = b""
    while part := matcher.forced_bytes():
        found += part
        assert all(map(matcher.accept_token, part))
    assert found == b"ab" * count
    assert num_walked == len(found)
