"""Ends that are too long are not written out, and shorter ones are found beside them."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.machine.automaton.text_limit import MAX_BYTES, MAX_CACHED_BYTES, LongTextError, Room
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.vocabulary import Vocabulary

VOCABULARY = Vocabulary(tuple(bytes((byte,)) for byte in range(256)), frozenset((256,)), frozenset((256,)), 257)
BACKEND = RtlangBackend(VocabularyIndex(VOCABULARY), allow_checked=True)
SEARCH = CompletionSearch(VOCABULARY)
MANY = 10**9
LONG: dict[str, Any] = {
    "elements": {"type": "array", "minItems": MANY},
    "elements after others": {"type": "array", "prefixItems": [{"type": "null"}] * 3, "minItems": MANY},
    "arrays of arrays": {
        "type": "array",
        "minItems": 10**4,
        "items": {"type": "array", "minItems": 10**4, "items": {"type": "array", "minItems": 10**4}},
    },
    "letters": {"type": "string", "minLength": MANY},
    "names": {"type": "object", "minProperties": MANY},
    "members": {
        "type": "object",
        "properties": {f"p{i}": {"$ref": "#/$defs/long"} for i in range(50)},
        "required": [f"p{i}" for i in range(50)],
        "$defs": {"long": {"type": "array", "minItems": 10**6}},
    },
    "different members": {
        "type": "object",
        "properties": {f"p{i}": {"type": "array", "minItems": 10**6 + i} for i in range(20)},
        "required": [f"p{i}" for i in range(20)],
    },
}


def matcher_of(schema: Any, kind: ConstraintKind = ConstraintKind.JSON_SCHEMA) -> MachineMatcher:
    return BACKEND.compile(Constraint(kind, json.dumps(schema))).matcher()


@pytest.mark.parametrize("name", LONG)
def test_an_end_that_is_too_long_is_none_and_takes_no_memory(name: str) -> None:
    matcher = matcher_of(LONG[name])
    tracemalloc.start()
    try:
        assert matcher.closing() == (None, True)
        assert matcher.closing_bytes() is None
        assert matcher.shortest_completion(1 << 24) is None
        assert SEARCH.find(matcher, 4096) is None
        assert tracemalloc.get_traced_memory()[1] < 3 * MAX_CACHED_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", LONG)
def test_a_shorter_end_beside_it_is_found(name: str) -> None:
    choice = {key: value for key, value in LONG[name].items() if key != "$defs"}
    schema = {"anyOf": [choice, {"const": "a short one"}], "$defs": LONG[name].get("$defs", {})}
    assert matcher_of(schema).closing() == (b'"a short one"', False)


def test_what_calls_itself_beside_a_long_end_is_ended() -> None:
    tree = {
        "type": "object",
        "required": ["next", "long"],
        "properties": {
            "next": {"$ref": "#/$defs/more"},
            "long": {"anyOf": [LONG["elements"], {"$ref": "#/$defs/more"}]},
        },
        "additionalProperties": False,
    }
    more = {"anyOf": [LONG["letters"], {"$ref": "#/$defs/tree"}, {"type": "array", "items": {"$ref": "#/$defs/tree"}}]}
    data, is_far = matcher_of({"$ref": "#/$defs/tree", "$defs": {"tree": tree, "more": more}}).closing()
    assert not is_far
    assert data is not None
    assert json.loads(data) == {"next": [], "long": []}


def test_ends_within_the_bound_are_written_out() -> None:
    for schema in ({"type": "array", "minItems": 10**6}, {"type": "string", "minLength": MAX_BYTES - 2}):
        data, is_far = matcher_of(schema).closing()
        assert data is not None
        assert not is_far
        assert len(json.loads(data)) == schema.get("minItems", schema.get("minLength"))
    assert matcher_of({"type": "string", "minLength": MAX_BYTES}).closing() == (None, True)


def test_parts_that_are_long_together_are_too_long() -> None:
    part = {"kind": "json_schema", "source": json.dumps({"type": "array", "minItems": 10**6})}
    assert matcher_of({"sequence": [part, ";", part]}, ConstraintKind.STRUCTURE).closing()[0] is not None
    assert matcher_of({"sequence": [part, ";"] * 30}, ConstraintKind.STRUCTURE).closing() == (None, True)


def test_room_is_taken_until_there_is_none() -> None:
    room = Room()
    room.take(MAX_BYTES - 1)
    room.take(1)
    with pytest.raises(LongTextError):
        room.take(1)
