"""Ways to the end of a text, against brute force."""

from __future__ import annotations

import functools
import re
from threading import Event

import pytest

from rtlang_grammars.api.backends import create_backend
from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.protocols import CompiledGrammar, GrammarBackend
from tests.support.vocabularies import small_vocabulary

VOCABULARY = small_vocabulary()
END = min(VOCABULARY.eos_token_ids)
SEARCH = CompletionSearch(VOCABULARY)


@functools.cache
def backend() -> GrammarBackend:
    return create_backend("llguidance", VOCABULARY, SEARCH)


@functools.cache
def grammar(kind: ConstraintKind, source: str) -> CompiledGrammar:
    return backend().compile(Constraint(kind, source))


def test_a_budget_below_the_shortest_text_is_refused_at_the_start() -> None:
    for pattern in ("[a-z]{3}[0-9]{4}", "x{3}", "(ab){2}!"):
        compiled = grammar(ConstraintKind.REGEX, pattern)
        shortest = shortest_by_brute_force(compiled, 6)
        assert shortest is not None
        for max_tokens in range(8):
            path = SEARCH.find(compiled.matcher(), max_tokens)
            assert path is None if max_tokens < shortest else path is None or path.cost() <= max_tokens
        assert compiled.matcher().shortest_completion(shortest - 1) is None
        assert compiled.matcher().shortest_completion(20) is not None


def shortest_by_brute_force(compiled: CompiledGrammar, limit: int) -> int | None:
    """Breadth first over all tokens."""
    frontier = [compiled.matcher()]
    seen: set[bytes] = set()
    matcher_text = {id(frontier[0]): b""}
    for length in range(limit + 1):
        if any(matcher.is_accepting for matcher in frontier):
            return length
        following = []
        for matcher in frontier:
            for token in range(len(VOCABULARY.token_bytes)):
                text = b"".join([matcher_text[id(matcher)], VOCABULARY.token_bytes[token]])
                if text not in seen and matcher.accepts([token]):
                    seen.add(text)
                    fork = matcher.fork()
                    assert fork.accept_token(token)
                    matcher_text[id(fork)] = text
                    following.append(fork)
        frontier = following
    return None


@pytest.mark.parametrize("pattern", ["a{2}b", '"x": \\[\\]', "(abcd|zz)", "1(0|2)3?", "null|n"])
def test_short_ways_are_as_short_as_possible(pattern: str) -> None:
    compiled = grammar(ConstraintKind.REGEX, pattern)
    completion = compiled.matcher().shortest_completion(50)
    assert completion is not None
    assert compiled.matcher().accepts([*completion, END])
    assert len(completion) == shortest_by_brute_force(compiled, 4)


def test_a_constraint_without_any_text_is_hopeless() -> None:
    with_end = grammar(ConstraintKind.REGEX, "ab|c").matcher()
    assert not SEARCH.is_hopeless(with_end)
    assert SEARCH.find(grammar(ConstraintKind.LARK, 'start: "a" start').matcher(), 64) is None


def test_an_operand_after_an_operator_is_not_the_one_before_it() -> None:
    lark = 'start: NUM ("+" NUM)+\nNUM: /[0-9]+/'
    path = SEARCH.find(grammar(ConstraintKind.LARK, lark).matcher(), 40)
    assert path is not None
    assert re.fullmatch(rb"[0-9]+(\+[0-9]+)+", path.data)


def test_a_search_that_nobody_wants_any_more_stops() -> None:
    compiled = grammar(ConstraintKind.JSON_SCHEMA, '{"required": ["a", "b", "c", "d"], "type": "object"}')

    class Unwanted(Event):
        def __init__(self, most: int) -> None:
            super().__init__()
            self.num_looks, self.most = 0, most

        def is_set(self) -> bool:
            self.num_looks += 1
            return self.num_looks > self.most

    patient = Unwanted(1 << 20)
    assert SEARCH.find(compiled.matcher(), 400, is_unwanted=patient) is not None
    assert patient.num_looks > 3
    is_unwanted = Unwanted(patient.num_looks // 2)
    assert SEARCH.find(compiled.matcher(), 400, is_unwanted=is_unwanted) is None
    assert is_unwanted.num_looks == patient.num_looks // 2 + 1
