"""The plain lexer and the compiled one agree on random grammars: what one accepts, the other divides."""

from __future__ import annotations

import random

from rtlang_grammars.context_free.lark_source import read_source
from rtlang_grammars.context_free.lexer_build.tokenization import MAX_BACK, Lexeme, LexemeTokenizer
from rtlang_grammars.machine.lexer_run import lexer_layout as layout
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget
from rtlang_grammars_bench.random_lark_grammars import random_grammar, random_texts
from tests.support.grammars.lexed_grammars import accepts, lexed_grammar


def test_random_texts_are_accepted_by_both_or_none() -> None:
    num_accepted = 0
    for seed in range(120):
        rng = random.Random(seed)
        source, is_lark = random_grammar(rng), bool(seed % 2)
        try:
            grammar = lexed_grammar(source, is_lark=is_lark)
        except GrammarError:
            continue
        tokenizer = LexemeTokenizer(read_source(source), Budget(), is_lark=is_lark)
        for text in random_texts(rng, source, 30):
            try:
                lexemes = tokenizer.lexemes(text.encode())
            except GrammarError:
                lexemes = None
            assert accepts(grammar, text) == (lexemes is not None), (seed, text, source)
            num_accepted += lexemes is not None
    assert num_accepted > 50


def test_lexemes_leave_out_what_is_ignored() -> None:
    tokenizer = LexemeTokenizer(read_source('start: A+\nA: /a|é/\n%ignore " "'), Budget(), is_lark=False)
    assert tokenizer.lexemes("a é".encode()) == [Lexeme("A", 0, 1), Lexeme("A", 2, 4)]


def test_both_go_back_equally_far() -> None:
    assert MAX_BACK == layout.MAX_BACK
