"""Masks, completions and steps of grammars whose lines are indented, against every token tried one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rtlang_grammars.api.rtlang_backend import RtlangBackend
from rtlang_grammars.machine.lexed.lexed_completion import LexedCompletion
from rtlang_grammars.machine.lexed.lexed_grammar import LexedGrammar, LexedState
from rtlang_grammars.spec.constraint import Constraint, ConstraintKind
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars_bench.random_indented_grammars import (
    TREE_LINES,
    TREES,
    lark_of,
    lark_tree,
    random_indented_grammar,
)
from tests.support.grammars.lexed_grammars import accepts, indented_index, lexed_grammar, place_after


def bits(mask: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist())


def allowed(grammar: LexedGrammar, place: LexedState) -> tuple[set[int], list[int]]:
    """The tokens that may follow a place, by trying each, and those that are ordinary."""
    vocabulary = grammar.index.vocabulary
    tokens = [
        token_id
        for token_id, data in enumerate(vocabulary.token_bytes)
        if data and place_after(grammar, data, place.configuration) is not None
    ]
    return {*tokens, *(vocabulary.eos_token_ids if place.is_complete else ())}, tokens


@pytest.mark.parametrize("is_lark", [False, True], ids=["longest", "lark"])
def test_masks_of_random_grammars_are_exact_and_completions_complete(*, is_lark: bool) -> None:
    num_masks = num_breaks = 0
    for seed in range(12):
        rng = random.Random(seed)
        source, lines = random_indented_grammar(rng)
        try:
            grammar = lexed_grammar(source, is_lark=is_lark, indentation=lines)
        except GrammarError:
            continue
        parser = lark_of(source, lines) if is_lark else None
        completion = LexedCompletion(grammar)
        place, text = grammar.start_place, b""
        for _ in range(14):
            expected, tokens = allowed(grammar, place)
            assert bits(grammar.mask(place.configuration).base) == expected, (seed, text, source, lines)
            found, _ = completion.find(place.configuration)
            assert found is not None, (seed, text, source, lines)
            whole = text + found
            if whole.decode(errors="replace").isascii():
                assert accepts(grammar, whole.decode()), (seed, text, found, source, lines)
                if parser is not None and not grammar.tables.rules.num_conflicts:
                    assert lark_tree(parser, whole.decode()) is not None, (seed, text, found, source, lines)
            num_masks += 1
            if not tokens:
                break
            token_bytes = grammar.index.vocabulary.token_bytes
            breaks = [token for token in tokens if b"\n" in token_bytes[token]]
            token = rng.choice(breaks if breaks and rng.random() < 0.5 else tokens)
            num_breaks += token in breaks
            text += token_bytes[token]
            following = place_after(grammar, token_bytes[token], place.configuration)
            assert following is not None
            place = following
    assert num_masks > 80
    assert num_breaks > 30


def test_a_dedent_to_no_enclosing_line_is_refused_at_the_byte_that_begins_it() -> None:
    grammar = lexed_grammar(TREES, indentation=TREE_LINES)
    assert place_after(grammar, b"a:\n    b:\n        c\n  ") is not None  # more blanks may come
    assert place_after(grammar, b"a:\n    b:\n        c\n  d") is None
    assert place_after(grammar, b"a:\n    b:\n        c\n    d") is not None
    only_blanks = TREES.replace("(\\r?\\n[\\t ]*)+", "\\n {0,8}")
    grammar = lexed_grammar(only_blanks, indentation=TREE_LINES)
    assert place_after(grammar, b"a:\n  b:\n    c\n    ") is not None
    assert place_after(grammar, b"a:\n  b:\n    c\n     ") is None


def test_steps_of_any_size_lead_to_equal_places() -> None:
    grammar = lexed_grammar(TREES, indentation=TREE_LINES)
    text = b"a:\n  b:\n\t  (c\n d)\n\t  e\n\n  f\ng\n"
    place = grammar.start_place
    for byte in text:
        following = place_after(grammar, bytes([byte]), place.configuration)
        assert following is not None
        place = following
    assert place == place_after(grammar, text)
    assert place.is_complete


def test_a_matcher_closes_open_blocks_within_its_budget() -> None:
    constraint = Constraint(ConstraintKind.LARK, TREES, indentation=TREE_LINES)
    compiled = RtlangBackend(indented_index()).compile(constraint)
    tokens = indented_index().vocabulary.token_bytes
    matcher = compiled.matcher()
    for token in (b"a", b":\n\t", b"("):
        assert matcher.accept_token(tokens.index(token))
    closing = matcher.closing_bytes()
    assert closing is not None
    assert matcher.completes_bytes(closing)
    assert len(closing) <= 2
