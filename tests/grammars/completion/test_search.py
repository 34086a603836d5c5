"""Ways to the end of a text, against brute force."""

from __future__ import annotations

import functools
import re

import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.completion.search import CompletionSearch
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.protocols import CompiledGrammar
from tests.support.grammars.vocabularies import small_vocabulary

VOCABULARY = small_vocabulary()
END = min(VOCABULARY.eos_token_ids)
SEARCH = CompletionSearch(VOCABULARY)


@functools.cache
def backend() -> RtlangBackend:
    return RtlangBackend.create(VOCABULARY)


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


def shortest_by_brute_force(compiled: CompiledGrammar, limit: int, *, in_bytes: bool = False) -> int | None:
    """The fewest tokens, or bytes, of a complete text: breadth first over all tokens."""
    longest = 1 if in_bytes else max(map(len, VOCABULARY.token_bytes))
    tokens = [i for i, text in enumerate(VOCABULARY.token_bytes) if len(text) <= longest]
    frontier = [compiled.matcher()]
    seen: set[bytes] = set()
    matcher_text = {id(frontier[0]): b""}
    for length in range(limit + 1):
        if any(matcher.is_accepting for matcher in frontier):
            return length
        following = []
        for matcher in frontier:
            for token in tokens:
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
def test_short_paths_have_the_fewest_bytes(pattern: str) -> None:
    compiled = grammar(ConstraintKind.REGEX, pattern)
    completion = compiled.matcher().shortest_completion(50)
    assert completion is not None
    assert compiled.matcher().accepts([*completion, END])
    assert len(VOCABULARY.text_of(completion)) == shortest_by_brute_force(compiled, 8, in_bytes=True)


def test_an_operand_after_an_operator_is_not_the_one_before_it() -> None:
    lark = 'start: NUM ("+" NUM)+\nNUM: /[0-9]+/'
    path = SEARCH.find(grammar(ConstraintKind.LARK, lark).matcher(), 40)
    assert path is not None
    assert re.fullmatch(rb"[0-9]+(\+[0-9]+)+", path.data)
