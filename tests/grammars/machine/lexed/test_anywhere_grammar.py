"""Grammars without a lexer: verdicts against an Earley parser, and masks, steps and forced text against the bytes of every token."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rtlang_grammars.context_free.cfg import Cfg, with_ignored
from rtlang_grammars.context_free.gbnf_reader import read_gbnf
from rtlang_grammars.context_free.lark_reader import read_lark_apart
from rtlang_grammars.lowering.anywhere_tables import AnywhereTables
from rtlang_grammars.machine.lexed.anywhere_grammar import AnywhereCompletion, AnywhereGrammar, AnywhereState
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars_bench.gbnf_fuzz import random_rules, random_texts, source_of
from tests.support.grammars.cfg_membership import cfg_accepts
from tests.support.grammars.lexed_grammars import small_index
from tests.support.long_tests import sized

C = r"""
root ::= (dataType identifier "(" ")" "{" statement* "}")*
dataType ::= "int" ws | "float" ws
identifier ::= [a-zA-Z_] [a-zA-Z_0-9]*
statement ::= dataType identifier ws "=" ws expression ";" | identifier ws "=" ws expression ";" | "return" ws expression ";"
expression ::= term (("+" | "-") term)*
term ::= identifier | [0-9]+ | "(" ws expression ws ")" | identifier "(" (expression ("," ws expression)*)? ")"
ws ::= [ \t\n]+
"""


def grammar_of(source: str) -> AnywhereGrammar:
    return AnywhereGrammar(small_index(), AnywhereTables(read_gbnf(source), Budget()))


def after(grammar: AnywhereGrammar, place: AnywhereState, data: bytes) -> AnywhereState | None:
    return grammar.advance(place.configuration, np.frombuffer(data, dtype=np.uint8), 0, len(data))


def place_after(grammar: AnywhereGrammar, data: bytes) -> AnywhereState | None:
    return after(grammar, grammar.start_place, data)


def allowed(grammar: AnywhereGrammar, place: AnywhereState) -> tuple[set[int], list[bytes]]:
    """The tokens that may follow a place, by trying each, and their bytes."""
    vocabulary, tokens, texts = grammar.index.vocabulary, set(), []
    for token_id, data in enumerate(vocabulary.token_bytes):
        if token_id in vocabulary.eos_token_ids:
            if place.is_complete:
                tokens.add(token_id)
        elif after(grammar, place, data) is not None:
            tokens.add(token_id)
            texts.append(data)
    return tokens, texts


def bits(grammar: AnywhereGrammar, place: AnywhereState) -> set[int]:
    mask = grammar.mask(place.configuration).base
    return set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist())


def check(cfg: Cfg, grammar: AnywhereGrammar, rng: random.Random, num_steps: int) -> int:
    """Walk over allowed tokens: masks are those of the bytes, no place is a dead end, and completions are texts of the grammar."""
    place, text, completion = grammar.start_place, b"", AnywhereCompletion(grammar)
    for step in range(num_steps):
        expected, texts = allowed(grammar, place)
        assert bits(grammar, place) == expected, text
        assert expected, text
        rest, _ = completion.find(place.configuration)
        assert rest is not None
        if len(text + rest) < 40:
            assert cfg_accepts(cfg, text + rest), (text, rest)
        forced = grammar.forced(place.configuration)
        assert rest.startswith(forced)
        if not texts:
            return step
        text += (data := rng.choice(texts))
        reached = after(grammar, place, data)
        assert reached is not None
        place = reached
    return num_steps


def test_random_gbnf_is_what_an_earley_parser_accepts() -> None:
    num_accepted = num_masks = num_several = 0
    for seed in range(sized(24)):
        rng = random.Random(seed)
        rules = random_rules(rng)
        try:
            cfg = read_gbnf(source_of(rules))
            grammar = AnywhereGrammar(small_index(), AnywhereTables(cfg, Budget()))
        except GrammarError:
            continue
        for text in random_texts(rng, rules)[:8]:
            place = place_after(grammar, text.encode()) if text else grammar.start_place
            expected = cfg_accepts(cfg, text)
            assert (place is not None and place.is_complete) == expected, (seed, text)
            num_accepted += expected
            places = (place_after(grammar, text.encode()[:end]) for end in range(1, len(text)))
            num_several += sum(1 for each in places if each is not None and len(each.configuration) > 1)
        num_masks += check(cfg, grammar, rng, 4)
    assert num_accepted > sized(24)
    assert num_masks > sized(24)
    assert num_several > 0


@pytest.mark.parametrize(
    "source",
    [
        'start: "(" start ")" | A+ "."\nA: /[ab]+/\n%ignore " "\n%ignore /#[ab.]*/',
        'start: start "b" | x\nx: "a" x "a" | B\nB: /b+|ab/\n%ignore /a?b/',
    ],
)
def test_ignored_terminals_end_anywhere_too(source: str) -> None:
    cfg, ignored = read_lark_apart(source)
    grammar = AnywhereGrammar(small_index(), AnywhereTables(cfg, Budget(), ignored))
    spelled = with_ignored(cfg, ignored)
    rng, num_accepted = random.Random(2), 0
    for _ in range(sized(300)):
        text = "".join(rng.choice("aabb. #()") for _ in range(rng.randint(1, 6)))
        expected = cfg_accepts(spelled, text)
        place = place_after(grammar, text.encode())
        assert (place is not None and place.is_complete) == expected, text
        num_accepted += expected
    assert num_accepted > 1
    check(spelled, grammar, rng, 5)


def test_a_keyword_and_a_name_are_both_read() -> None:
    grammar = grammar_of(C)
    for text, num_readings in (("int f(){int", 1), ("int f(){int ", 2), ("int f(){int x", 1), ("int f(){intx ", 1)):
        place = place_after(grammar, text.encode())
        assert place is not None
        assert len(place.configuration) == num_readings, text
    assert place_after(grammar, b"int f(){x 1") is None
    text = "int main(){int x = 1+( y-2 );f = g(1, x);return x;}"
    place = place_after(grammar, text.encode())
    assert place is not None
    assert place.is_complete
    for end in range(0, len(text), 5):
        place = place_after(grammar, text[:end].encode()) if end else grammar.start_place
        assert place is not None
        assert bits(grammar, place) == allowed(grammar, place)[0], text[:end]


def test_steps_of_any_size_lead_to_equal_places() -> None:
    grammar, text = grammar_of(C), b"int f(){return (  a-1 );"
    place = grammar.start_place
    for byte in text:
        following = after(grammar, place, bytes([byte]))
        assert following is not None
        place = following
    whole = place_after(grammar, text)
    assert whole is not None
    assert whole.configuration == place.configuration
    renewed = place_after(grammar.renewed(), text)
    assert renewed is not None
    assert bits(grammar, place) == bits(grammar, whole)


def test_deep_nesting_and_many_splits_stay_small() -> None:
    grammar = grammar_of('root ::= (a | b)* "." | "(" root ")"\na ::= "x"+ | a "y"\nb ::= "x" b? | "y"')
    place = place_after(grammar, b"(" * 300 + b"xyx" * 100)
    assert place is not None
    assert len(place.configuration) < 20
    assert bits(grammar, place) == allowed(grammar, place)[0]


LIST = 'root ::= "(" root ")" | name "+" root | name\nname ::= [a-z]+ | "a" [0-9] "!"\n'


@pytest.mark.parametrize(("text", "expected"), [(b"a", b""), (b"((a", b"))"), (b"(a1", b"!)")])
def test_a_completion_is_the_shortest_of_all_readings(text: bytes, expected: bytes) -> None:
    grammar = grammar_of(LIST)
    place = place_after(grammar, text)
    assert place is not None
    assert AnywhereCompletion(grammar).find(place.configuration)[0] == expected


def test_open_brackets_are_closed_however_many_there_are() -> None:
    grammar = grammar_of(LIST)
    place = place_after(grammar, b"(" * 200)
    assert place is not None
    found = AnywhereCompletion(grammar).find(place.configuration)[0]
    assert found is not None
    assert found[1:] == b")" * 200
