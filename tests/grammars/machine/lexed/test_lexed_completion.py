"""Completions complete the text, and are short."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rtlang_grammars.machine.lexed.lexed_completion import LexedCompletion
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars_bench.random_lark_grammars import random_grammar
from tests.support.grammars.lexed_grammars import lexed_grammar, place_after
from tests.support.long_tests import sized


def test_completions_of_random_grammars_complete() -> None:
    num_found = num_missing = 0
    num_grammars = sized(80, usual=30)
    for seed in range(num_grammars):
        rng = random.Random(seed)
        source = random_grammar(rng)
        try:
            grammar = lexed_grammar(source, is_lark=bool(seed % 2))
        except GrammarError:
            continue
        completion = LexedCompletion(grammar)
        place = grammar.start_place
        for _ in range(5):
            found, _ = completion.find(place.configuration)
            if found is None:
                num_missing += 1
                break
            num_found += 1
            reached = place_after(grammar, found, place.configuration)
            assert reached is not None, (source, found)
            assert reached.is_complete, (source, found)
            mask = np.unpackbits(grammar.mask(place.configuration).base.view(np.uint8), bitorder="little")
            tokens = [i for i in np.flatnonzero(mask).tolist() if grammar.index.vocabulary.token_bytes[i]]
            if not tokens:
                break
            following = place_after(
                grammar, grammar.index.vocabulary.token_bytes[rng.choice(tokens)], place.configuration
            )
            assert following is not None
            place = following
    assert num_found > 1.8 * num_grammars
    assert num_missing < 15  # only where look-ahead asks for what cannot follow


@pytest.mark.parametrize(
    "source",
    [
        'start: NAME "→" NAME\nNAME: /[a-z]+\\b/',
        'start: NAME "é"\nNAME: /[a-z]+(?!x)/',
        'start: KW NAME\nKW: /if(?=[ ]x)/\nNAME: /[a-z]+/\n%ignore " "',
    ],
)
def test_what_follows_may_begin_inside_look_ahead(source: str) -> None:
    grammar = lexed_grammar(source)
    found, _ = LexedCompletion(grammar).find(grammar.start_place.configuration)
    assert found is not None
    reached = place_after(grammar, found)
    assert reached is not None
    assert reached.is_complete


def test_deep_nesting_is_closed() -> None:
    grammar = lexed_grammar('start: v\nv: "[" v ("," v)* "]" | "(" v ")" | /[0-9]+/')
    place = place_after(grammar, b"[(" * 800)
    assert place is not None
    assert LexedCompletion(grammar).find(place.configuration)[0] == b"0" + b")]" * 800


@pytest.mark.parametrize(
    ("text", "longest"),
    [("", 9), ("(", 9), ("((((((", 14), ('["', 4), ("[1, (2", 4), ('"\\', 2)],
)
def test_completions_are_short(text: str, longest: int) -> None:
    source = r"""
start: v
v: "(" v ("," v)* ")" | "[" v ("," v)* "]" | S | N | "nothing" v
S: /"(\\.|[^"\\])*"/
N: /[0-9]+/
%ignore " "
"""
    grammar = lexed_grammar(source)
    place = place_after(grammar, text.encode())
    assert place is not None
    found, _ = LexedCompletion(grammar).find(place.configuration)
    assert found is not None
    assert len(found) <= longest
