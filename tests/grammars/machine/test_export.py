"""Exported automata accept what the machine accepts: every token at every place of random texts, and where a text may end."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.export import DEAD, FIRST_CALL, POP, Walk, export
from rtlang_grammars.spec import structures
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, Lexer
from rtlang_grammars.spec.protocols import GrammarMatcher
from rtlang_grammars.spec.structures import raw_text, sequence
from tests.support.grammars.vocabularies import allowed_ids, small_vocabulary

VOCABULARY = small_vocabulary()

SCHEMAS: list[Any] = [
    {"type": "string", "minLength": 2, "maxLength": 5},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3},
    {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
    {
        "type": "object",
        "properties": {"a": {"type": "null"}, "abc": {"type": "integer"}, "name": {"enum": ["x", "é"]}},
        "required": ["abc"],
        "additionalProperties": False,
    },
    {"type": "object", "properties": {"next": {"$ref": "#"}, "id": {"type": "number"}}, "additionalProperties": False},
]
PATTERNS = ["[ab]{2,4}c", "(abc|abd)*é?", r"-?\d{1,3}(\.\d+)?"]


def matcher_of(kind: ConstraintKind, source: str) -> GrammarMatcher:
    return RtlangBackend.create(VOCABULARY).compile(Constraint(kind, source, lexer=Lexer.ANYWHERE)).matcher()


def follow(matcher: GrammarMatcher, seed: int) -> int:
    """Walk both together over random tokens; how many were compared."""
    automaton = export(matcher)
    assert automaton is not None
    rng, walk = random.Random(seed), Walk.at_start(automaton)
    for turn in range(30):
        assert walk.is_complete == matcher.is_accepting
        row = np.zeros(VOCABULARY.num_mask_words, dtype=np.int32)
        matcher.fill_bitmask(row)
        allowed = set(allowed_ids(row)) - VOCABULARY.eos_token_ids
        for token in range(len(VOCABULARY.token_bytes)):
            text = VOCABULARY.token_bytes[token]
            if text and token not in VOCABULARY.silent_ids:
                ahead = Walk(automaton, walk.state, list(walk.stack))
                assert ahead.advance(text) == (token in allowed), (turn, text)
        if not allowed:
            return turn
        token = rng.choice(sorted(allowed))
        assert matcher.accept_token(token)
        assert walk.advance(VOCABULARY.token_bytes[token])
    return 30


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:40])
def test_schemas(schema: Any) -> None:
    assert sum(follow(matcher_of(ConstraintKind.JSON_SCHEMA, json.dumps(schema)), seed) for seed in range(3)) > 4


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(pattern: str) -> None:
    assert sum(follow(matcher_of(ConstraintKind.REGEX, pattern), seed) for seed in range(3)) > 4


def test_a_context_free_grammar() -> None:
    source = 'start: a | b\na: "x" start "y" |  "x"\nb: "x" start "z"\n'
    assert sum(follow(matcher_of(ConstraintKind.LARK, source), seed) for seed in range(3)) > 4


def test_arrays_say_what_they_hold() -> None:
    automaton = export(matcher_of(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMAS[3])))
    assert automaton is not None
    num_states, num_classes = automaton.trans.shape
    assert automaton.classes.shape == (256,)
    assert int(automaton.classes.max()) + 1 == num_classes < 64
    assert automaton.may_end.shape == (num_states,)
    assert (automaton.trans < num_states).all()
    assert (FIRST_CALL - automaton.trans.min()) < len(automaton.calls)
    assert {DEAD, POP} <= set(np.unique(automaton.trans).tolist())


def test_what_is_ambiguous_or_large_stays_on_the_host() -> None:
    ambiguous = 'start: "x" start "x" | "x"'
    assert export(matcher_of(ConstraintKind.LARK, ambiguous)) is None
    long = matcher_of(ConstraintKind.JSON_SCHEMA, '{"type": "string", "maxLength": 9000}')
    assert export(long) is None
    assert export(matcher_of(ConstraintKind.REGEX, "[ab]{2,400}"), max_states=50) is None
    counted = RtlangBackend.create(VOCABULARY).compile(sequence("<", raw_text(excludes=[">"], max_tokens=3), ">"))
    assert export(counted.matcher()) is None


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
