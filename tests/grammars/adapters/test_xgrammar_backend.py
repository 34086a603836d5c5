"""The adapter for xgrammar: masks are what it accepts, and texts are judged right. Skipped where the library is not installed."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from rtlang_grammars.adapters.xgrammar_backend import XGrammarBackend
from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.completion.token_budget import TokenBudget
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind, JsonStyle, PropertyOrder, Whitespace
from rtlang_grammars.spec.errors import GrammarError
from tests.support.vocabularies import allowed_ids, random_text, small_vocabulary, spell

pytest.importorskip("xgrammar")

VOCABULARY = small_vocabulary()
END = min(VOCABULARY.eos_token_ids)
SEARCH = CompletionSearch(VOCABULARY)
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
CONSTRAINTS = [
    (ConstraintKind.REGEX, "[0-9]{2,3}(x|yz)?", ["12x", "123", "99yz"], ["1", "1234", "12y", ""]),
    (ConstraintKind.CHOICE, '["left", "a \\"b\\"", "é日"]', ["left", 'a "b"', "é日"], ["lef", "", "right"]),
    (
        ConstraintKind.JSON_SCHEMA,
        json.dumps(SCHEMA),
        ['{"name": "Ada", "age": 36}', '{"name":"é","age":0}'],
        ['{"name": "Ada"}', '{"age": 1, "name": 2}', "[]"],
    ),
    (ConstraintKind.GBNF, 'root ::= "<" root ">" | [ab]+', ["<<ab>>", "a"], ["<a", ""]),
]


@pytest.fixture(scope="module")
def backend() -> XGrammarBackend:
    return XGrammarBackend.create(VOCABULARY, SEARCH)


@pytest.mark.parametrize(("kind", "source", "good", "bad"), CONSTRAINTS)
def test_texts_are_judged_right_and_masks_are_what_is_accepted(
    backend: XGrammarBackend, kind: ConstraintKind, source: str, good: list[str], bad: list[str]
) -> None:
    grammar = backend.compile(Constraint(kind, source))
    assert grammar.size_bytes > 0
    for text in [*good, *bad]:
        assert grammar.matcher().accepts([*spell(VOCABULARY, text), END]) == (text in good), text
    row = np.empty(VOCABULARY.num_mask_words, dtype=np.int32)
    matcher = grammar.matcher()
    for count, token in enumerate(spell(VOCABULARY, good[0])):
        matcher.fill_bitmask(row)
        assert allowed_ids(row) == [t for t in range(-1, VOCABULARY.vocab_size + 1) if matcher.fork().accept_token(t)]
        assert matcher.is_accepting == (END in allowed_ids(row))
        fork = matcher.fork()
        assert matcher.accept_token(token)
        assert fork.accept_token(token)
        fork.rollback(count + 1)
        assert fork.completes(spell(VOCABULARY, good[0]))
    assert matcher.is_accepting
    assert matcher.accept_token(END)
    assert matcher.is_terminated
    assert not matcher.accept_token(END)
    matcher.rollback(1)
    assert matcher.is_accepting
    with pytest.raises(ValueError, match="num_tokens = "):
        matcher.rollback(1000)
    with pytest.raises(ValueError, match="int32"):
        matcher.fill_bitmask(row[:-1])


def test_generated_values_end_in_time(backend: XGrammarBackend) -> None:
    style = JsonStyle(Whitespace.COMPACT, PropertyOrder.DECLARED)
    grammar = backend.compile(Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(SCHEMA), style))
    for seed in range(3):
        matcher = grammar.matcher()
        path = SEARCH.find(matcher, 30)
        assert path is not None
        text = random_text(VOCABULARY, matcher, TokenBudget(SEARCH, path), 30, random.Random(seed))
        assert text.startswith('{"name":"')
        assert set(json.loads(text, strict=False)) == {"name", "age"}


def test_what_must_come_is_told(backend: XGrammarBackend) -> None:
    matcher = backend.compile(Constraint(ConstraintKind.REGEX, "\u00e9x[ab]")).matcher()
    forced = []
    while step := matcher.forced_tokens():
        forced += step
        assert matcher.accept_token(step[0])
    assert VOCABULARY.text_of(forced).decode() in ("", "\u00e9x")
    assert matcher.shortest_completion(9) is not None


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        (ConstraintKind.REGEX, "(a"),
        (ConstraintKind.JSON_SCHEMA, "{"),
        (ConstraintKind.CHOICE, "[]"),
        (ConstraintKind.CHOICE, "["),
        (ConstraintKind.LARK, 'start: "a"'),
        (ConstraintKind.STRUCTURE, '"a"'),
    ],
)
def test_what_it_does_not_take_is_refused(backend: XGrammarBackend, kind: ConstraintKind, source: str) -> None:
    with pytest.raises(GrammarError):
        backend.compile(Constraint(kind, source))
