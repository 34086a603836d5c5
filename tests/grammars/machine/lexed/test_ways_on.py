"""Every text that is allowed can be completed, and every text that can be completed is allowed: against all short texts."""

from __future__ import annotations

from itertools import product

import pytest

from rtlang_grammars.context_free.lark_source import read_source
from rtlang_grammars.context_free.lexer_build.tokenization import LexemeTokenizer
from rtlang_grammars.lowering.lexed_tables import LexedTables
from rtlang_grammars.machine.lexed.lexed_grammar import LexedGrammar
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.spec.errors import GrammarError
from rtlang_grammars.spec.limits import Budget, Limits
from rtlang_grammars.spec.vocabulary import Vocabulary
from tests.support.grammars.lexed_grammars import place_after

CASES = [
    # grammar, letters, longest text
    ('start: "a" TEXT "." | "b"\nTEXT: /[a.]+/', "ab.", 6),
    ('start: N N | N "."\nN: /[0-9]+/', "1.", 6),
    ('start: N [".." N]\nN: /[0-9]+(\\.[0-9]+)?/', "1.", 7),
    ('start: A "c" | "b"\nA: /a(?=[cd])/', "abcd", 5),
    ('start: A "d" | "b" A\nA: /a(?=c)/', "abcd", 5),
    ('start: "(" start ")" | T\nT: /[a(]+/', "a()", 6),
    ('start: "(" start ")" | "b" | T "!"\nT: /[a!]+/', "ab()!", 5),
    ("start: A A | A B\nA.2: /a+/\nB: /a+b?/", "ab", 7),
    ('start: (W "b")+ "!"\nW: /[ab]+/\n%ignore " "', "ab !", 6),
    ('start: (W | "b")+ "!"\nW: /a+\\b/\n%ignore "-"', "ab-!", 5),
    ("start: A+ A B\nA: /[ab]+/\nB: /a/", "ab", 7),
    ('start: r "=" | T\nr: T T r* | "i"\nT: /a+(?=[i ])/\n%ignore " "', "ai= ", 5),
    ('start: W+ W X+ | (X W? X)*\nW: /[a-z]+\\b/\nX: /x(ab|a)/\n%ignore " "', "xa ", 6),
    ('start: (T? "i" E?)+\nE: /=(?=a|é)/\nT: /a*?b/', "ab=i", 5),
    ("start: A B\nA: /a/ | /a.bc/\nB: /.b/ | /.b[^c]/", "abc.", 6),
]


@pytest.mark.parametrize("is_lark", [False, True])
def test_exactly_the_beginnings_of_texts_are_allowed(is_lark: bool) -> None:
    vocabulary = Vocabulary((*(bytes([byte]) for byte in range(256)), b""), frozenset([256]), frozenset([256]), 257)
    index = VocabularyIndex(vocabulary)
    num_refused = num_dead = 0
    for source, letters, length in CASES:
        budget = Budget(Limits(max_seconds=60.0))
        tokenizer = LexemeTokenizer(read_source(source), budget, is_lark=is_lark)
        texts = ["".join(each) for size in range(length + 1) for each in product(letters, repeat=size)]
        begun = {text[:size] for text in texts if _belongs(tokenizer, text) for size in range(len(text) + 1)}
        if not begun:
            with pytest.raises(GrammarError, match="matches no string"):
                LexedGrammar(index, LexedTables(source, budget, is_lark=is_lark))
            num_refused += 1
            continue
        grammar = LexedGrammar(index, LexedTables(source, budget, is_lark=is_lark))
        for text in texts:
            if len(text) <= length - 4:
                is_alive = place_after(grammar, text.encode()) is not None
                assert is_alive == (text in begun), (source, text)
                num_dead += not is_alive
    assert num_refused >= 1
    assert num_dead > 20


def _belongs(tokenizer: LexemeTokenizer, text: str) -> bool:
    try:
        tokenizer.lexemes(text.encode())
    except GrammarError:
        return False
    return True
