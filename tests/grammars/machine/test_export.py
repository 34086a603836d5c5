"""Exported tables hold what the machine holds, and places of matchers are places of the tables.

That a device which follows them makes the masks of the host is tested with its kernels, in tests/kernels/triton/grammar.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine import export as exports
from rtlang_grammars.machine.automaton.layout import HEADS
from rtlang_grammars.machine.export import DEAD, FIRST_OP, HOLE, OP_WORDS, Walk, export, name_digest, owner_of
from rtlang_grammars.spec import structures
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Lexer
from rtlang_grammars.spec.protocols import GrammarMatcher
from rtlang_grammars.spec.structures import raw_text, sequence
from tests.support.grammars.vocabularies import small_vocabulary

VOCABULARY = small_vocabulary()

WHOLE: list[Any] = [
    {"type": "string", "minLength": 2, "maxLength": 5000},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 300},
    {"type": "object"},
    {"type": "object", "properties": {f"n{index}": {} for index in range(16)}, "additionalProperties": False},
    {"type": "object", "properties": {f"n{index}": {"type": "null"} for index in range(60)}, "required": ["n7", "n59"]},
    {"type": "object", "properties": {"next": {"$ref": "#"}, "id": {"type": "number"}}, "additionalProperties": False},
]
"""Schemas that a device follows from the start to the end; the first four had no automaton while registers were states."""


def matcher_of(kind: ConstraintKind, source: str) -> GrammarMatcher:
    return RtlangBackend.create(VOCABULARY).compile(Constraint(kind, source, lexer=Lexer.ANYWHERE)).matcher()


def schema_matcher(schema: Any, text: str = "") -> GrammarMatcher:
    """After a text, byte by byte."""
    matcher = matcher_of(ConstraintKind.JSON_SCHEMA, json.dumps(schema))
    for byte in text.encode():
        assert matcher.accept_token(byte)
    return matcher


@pytest.mark.parametrize("schema", WHOLE, ids=lambda schema: json.dumps(schema)[:40])
def test_registers_need_no_states(schema: Any) -> None:
    matcher = schema_matcher(schema)
    automaton = export(matcher)
    assert automaton is not None
    assert automaton.num_holes == 0
    owner = owner_of(matcher)
    assert owner is not None
    assert len(automaton.states) == owner.tables.num_states < 5000
    walk = Walk.of(automaton, matcher)
    assert walk is not None
    assert (walk.state, walk.register, walk.stack) == (automaton.start, 0, ())


def test_arrays_say_what_they_hold() -> None:
    automaton = export(schema_matcher(WHOLE[5]))
    assert automaton is not None
    num_rows, num_classes = automaton.rows.shape
    assert automaton.classes.shape == (256,)
    assert int(automaton.classes.max()) + 1 == num_classes < 64
    assert automaton.states.shape[1] == 8
    assert automaton.states[:, 0].max() < num_rows
    values = np.concatenate((automaton.rows.reshape(-1), automaton.states[:, 2]))
    assert values.max() < len(automaton.states)
    assert FIRST_OP - values.min() == len(automaton.ops) - 1
    assert automaton.ops.shape[1] == OP_WORDS
    assert DEAD in values
    assert HOLE not in values


def test_places_follow_the_matcher() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "null"}, "b": {"type": "array", "items": {"type": "string", "maxLength": 9}}},
    }
    automaton = export(schema_matcher(schema))
    assert automaton is not None
    begun = Walk.of(automaton, schema_matcher(schema, '{"a":null,"b":["xyz'))
    assert begun is not None
    assert begun.register == 3  # code points
    assert [register for _, register in begun.stack] == [3, 0]  # names seen, by bits; items are not counted
    assert begun.trail.containers == ((True, (name_digest(b"a"), name_digest(b"b"))), (False, ()))
    within = Walk.of(automaton, schema_matcher(schema, '{"a":null,"\\u00e9x'))
    assert within is not None
    assert within.trail.digest == name_digest("éx".encode())
    done = schema_matcher(schema, '{"a":null}')
    last = Walk.of(automaton, done)
    assert last is not None
    assert last.is_complete
    assert done.accept_token(min(VOCABULARY.eos_token_ids))
    assert Walk.of(automaton, done) is None


def test_counted_properties_and_names_share_a_word() -> None:
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in "abc"},
        "additionalProperties": False,
        "maxProperties": 2,
    }
    automaton = export(schema_matcher(schema))
    assert automaton is not None
    walk = Walk.of(automaton, schema_matcher(schema, '{"a":"","b":"'))
    assert walk is not None
    assert walk.stack[-1][1] == 2 << exports.COUNT_SHIFT | 3


def test_places_with_several_heads_are_the_hosts() -> None:
    """Both members of a union may have the name; the value tells them apart."""
    kinds = [{"const": 1}, {"const": 2}]
    union = {
        "anyOf": [
            {
                "type": "object",
                "properties": {"x": {"type": "string", "pattern": pattern}, "k": kind},
                "required": ["x", "k"],
            }
            for pattern, kind in zip(("^a+$", "^[ab]+$"), kinds, strict=True)
        ]
    }
    automaton = export(schema_matcher(union))
    assert automaton is not None
    assert automaton.num_holes > 0
    text = '{"x":"aa","k":'
    places = [Walk.of(automaton, schema_matcher(union, text[:end])) for end in range(len(text) + 1)]
    assert None in places
    assert places[0] is not None


def test_rows_that_are_not_built_are_holes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "MAX_BUILT", 1)
    automaton = export(matcher_of(ConstraintKind.REGEX, "[a-z]{3}(x|yz)*é"))
    assert automaton is None or automaton.num_holes > 0


def test_what_counts_tokens_or_is_large_stays_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = RtlangBackend.create(VOCABULARY).compile(sequence("<", raw_text(excludes=[">"], max_tokens=3), ">"))
    assert export(counted.matcher()) is None
    monkeypatch.setattr(exports, "MAX_STATES", 50)
    assert export(matcher_of(ConstraintKind.REGEX, "[ab]{2,400}")) is None


def test_digests_differ_by_each_byte() -> None:
    names = {bytes([first, second]) for first in range(0, 256, 5) for second in range(0, 256, 5)}
    assert len({name_digest(name) for name in names}) == len(names)
    assert name_digest(b"") == 0xCBF29CE484222325 - (1 << 64)


def test_an_ambiguous_grammar_is_placed_while_it_has_one_head() -> None:
    matcher = matcher_of(ConstraintKind.LARK, 'start: "x" start "x" | "x"')
    automaton = export(matcher)
    assert automaton is not None
    owner = owner_of(matcher)
    assert owner is not None
    assert automaton.start == owner.start_place.configuration[HEADS]


def test_grammars_with_a_lexer_stay_on_the_host() -> None:
    other = RtlangBackend.create(VOCABULARY).compile(Constraint(ConstraintKind.LARK, 'start: "ab"'))
    assert export(other.matcher()) is None


@pytest.mark.parametrize(
    "constraint",
    [
        structures.sequence("a", structures.token("<|tool|>")),
        structures.sequence("a<|tool|>"),
        structures.tagged([("<|tool|>", "x", "")]),
        Constraint(ConstraintKind.GBNF, "root ::= !<|tool|>"),
    ],
)
def test_grammars_with_tokens_stay_on_the_host(constraint: Constraint) -> None:
    assert export(RtlangBackend.create(VOCABULARY).compile(constraint).matcher()) is None
