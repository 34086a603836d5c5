"""Masks inside raw text: equal to trying every token, whatever the schema of the text and whatever stands around it."""

from __future__ import annotations

import random
from typing import Any

import jsonschema
import numpy as np
import pytest

from rtlang_grammars import Constraint, ConstraintKind, GrammarStore, RtlangBackend, Vocabulary
from rtlang_grammars.machine.matcher import MachineMatcher
from rtlang_grammars.spec.structures import any_of, members, raw_text, sequence
from tests.support.grammars.mask_oracle import vocabulary_of
from tests.support.grammars.vocabularies import allowed_ids, spell
from tests.support.long_tests import sized
from tests.support.schemas.random_schemas import with_python_patterns

EXCLUDES = ["<v>", "</v>", "=é"]
SCHEMAS: dict[str, Any] = {
    "any": {"type": "string"},
    "bounds": {"type": "string", "minLength": 3, "maxLength": 9},
    "long": {"type": "string", "minLength": 2, "maxLength": 500},
    "minimum": {"type": "string", "minLength": 12},
    "maximum": {"type": "string", "maxLength": 2},
    "one": {"type": "string", "maxLength": 1},
    "pattern": {"type": "string", "pattern": "^[a-z_]+$"},
    "begin": {"type": "string", "pattern": "^a<?b"},
    "line": {"type": "string", "pattern": "^[^\\n]*$", "maxLength": 7},
    "both": {"type": "string", "pattern": "^[ab<]*$", "minLength": 2, "maxLength": 5},
    "listed": {"enum": ["a", "ab", "a<v>", "\n", ""]},
    "format": {"type": "string", "format": "date"},
}
TEXTS = [
    "",
    "a",
    "ab",
    "abc",
    "a<b",
    "a</",
    "abc_",
    "\n",
    "a\nb",
    "</v",
    "</v<v",
    "=",
    "=e",
    "=é",
    "a<v>",
    "日本語",
    "2031-04-12",
]
TEXTS += ["null", "nul", "é" * 5, "aaaaaaaaaaaaaaaa</v", "a < b > c = é"]


def constraint_of(schema: Any, closing: str, *, nullable: bool = False) -> Constraint:
    """Two values between tags, the second of which may be left out."""
    inside = raw_text(schema, excludes=EXCLUDES)
    if nullable:
        inside = any_of(inside, Constraint(ConstraintKind.JSON_SCHEMA, '{"type": ["null", "integer"]}'))
    part = sequence("<v>", inside, closing)
    return sequence(members([(sequence("x", part), True), (sequence("y", part), False)], ""), "end")


def is_valid(schema: Any, text: str) -> bool:
    return jsonschema.Draft202012Validator(
        with_python_patterns(schema), format_checker=jsonschema.FormatChecker()
    ).is_valid(text) and not any(each in text for each in EXCLUDES)


def vocabulary(closing: str) -> Vocabulary:
    texts = [f"x<v>{text}{closing}y<v>{text}{closing}end".encode() for text in TEXTS]
    return vocabulary_of([*texts, *texts], random.Random(0), 400)


def tried(matcher: MachineMatcher, tokens: Vocabulary) -> list[int]:
    """The tokens that are accepted one by one."""
    found = []
    for token_id in range(tokens.vocab_size):
        if token_id not in tokens.eos_token_ids and matcher.accept_token(token_id):
            found.append(token_id)
            matcher.rollback(1)
    return found


@pytest.mark.parametrize("closing", ["\n</v>\n", "</v>", ""], ids=["line", "tag", "none"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_masks_equal_what_trying_every_token_finds(name: str, closing: str) -> None:
    tokens, rng = vocabulary(closing), random.Random(name + closing)
    backend, row = RtlangBackend.create(tokens), np.empty(tokens.num_mask_words, dtype=np.int32)
    for nullable in (False, True):
        grammar = backend.compile(constraint_of(SCHEMAS[name], closing, nullable=nullable))
        num_compared = 0
        for _ in range(sized(8, usual=3)):
            matcher = grammar.matcher()
            for token_id in spell(tokens, "x<v>"):
                assert matcher.accept_token(token_id)
            for _ in range(10):
                matcher.fill_bitmask(row)
                allowed = [each for each in allowed_ids(row) if each not in tokens.eos_token_ids]
                assert allowed == tried(matcher, tokens)
                num_compared += 1
                assert matcher.shortest_completion(1000) is not None
                if not allowed:
                    break
                longer = [each for each in allowed if len(tokens.token_bytes[each]) > 1]
                assert matcher.accept_token(rng.choice(longer if longer and rng.random() < 0.7 else allowed))
        assert num_compared > sized(20, usual=5)


@pytest.mark.parametrize("name", SCHEMAS)
def test_texts_are_accepted_as_their_schema_says(name: str) -> None:
    closing = "\n</v>\n"
    tokens = vocabulary(closing)
    grammar = RtlangBackend.create(tokens).compile(constraint_of(SCHEMAS[name], closing))
    verdicts = set()
    for text in TEXTS:
        ids = spell(tokens, f"x<v>{text}{closing}end")
        accepted = grammar.matcher().accepts([*ids, min(tokens.eos_token_ids)])
        assert accepted is is_valid(SCHEMAS[name], text), text
        verdicts.add(accepted)
    assert verdicts == {True, False}


@pytest.mark.parametrize("name", ["any", "bounds", "line", "minimum"])
def test_masks_of_a_stored_grammar_are_the_same(name: str, tmp_path: Any) -> None:
    closing = "</v>"
    tokens = vocabulary(closing)
    row, other = (np.empty(tokens.num_mask_words, dtype=np.int32) for _ in range(2))
    store = GrammarStore(tmp_path, min_seconds=0.0)
    constraint = constraint_of(SCHEMAS[name], closing)
    made = RtlangBackend.create(tokens, store=store).compile(constraint).matcher()
    store.flush()
    loading = GrammarStore(tmp_path)
    loaded = RtlangBackend.create(tokens, store=loading).compile(constraint).matcher()
    assert loading.counts.hits == 1
    for token_id in spell(tokens, "x<v>abc< d</v>y<v>é\n日本語</v>end"):
        made.fill_bitmask(row)
        loaded.fill_bitmask(other)
        assert (row == other).all()
        assert made.accept_token(token_id) is loaded.accept_token(token_id)
