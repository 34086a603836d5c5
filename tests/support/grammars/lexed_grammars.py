"""Lark grammars with a lexer, bound to a small vocabulary."""

from __future__ import annotations

import functools
import random

import numpy as np

from rtlang_grammars.lowering.lexed_tables import LexedTables
from rtlang_grammars.machine.lexed.lexed_grammar import LexedGrammar, LexedState
from rtlang_grammars.machine.lexed.lexed_places import Configuration
from rtlang_grammars.machine.token_index.vocabulary_index import VocabularyIndex
from rtlang_grammars.spec.constraint import Indentation
from rtlang_grammars.spec.limits import Budget, Limits
from rtlang_grammars.spec.vocabulary import Vocabulary

_PIECES = ("a", "b", "ab", "if", "1", ".", "..", "=", "(", ")", "-", "e", "é", "'", " ", "\n", "#", "x", '"', "i")


@functools.cache
def small_index() -> VocabularyIndex:
    """All bytes and some hundred tokens that cross the ends of lexemes."""
    rng = random.Random(5)
    tokens = {bytes([byte]) for byte in range(256)}
    while len(tokens) < 700:
        tokens.add("".join(rng.choice(_PIECES) for _ in range(rng.randint(2, 5))).encode()[: rng.randint(1, 9)])
    end = len(tokens)
    return VocabularyIndex(
        Vocabulary(
            token_bytes=(*sorted(tokens), b""),
            eos_token_ids=frozenset([end]),
            special_token_ids=frozenset([end]),
            vocab_size=end + 1,
        )
    )


@functools.cache
def indented_index() -> VocabularyIndex:
    """All bytes and some hundred tokens that cross line breaks and blanks."""
    rng = random.Random(7)
    pieces = ("a", "if", "x", "=", "(", ")", "[", ":", " ", "  ", "    ", "\n", "\n", "\n  ", "\t", "#", "\r\n", ";")
    tokens = {bytes([byte]) for byte in range(256)} | {b"\n    ", b":\n\t", b"\n\n  x", b"\n\n\n\n", b" " * 16}
    while len(tokens) < 600:
        tokens.add("".join(rng.choice(pieces) for _ in range(rng.randint(2, 5))).encode())
    end = len(tokens)
    return VocabularyIndex(Vocabulary((*sorted(tokens), b""), frozenset([end]), frozenset([end]), end + 1))


def lexed_grammar(source: str, *, is_lark: bool = False, indentation: Indentation | None = None) -> LexedGrammar:
    """Compile a grammar; compiling native code meanwhile may take longer than a grammar may."""
    budget = Budget(Limits(max_seconds=60.0))
    index = small_index() if indentation is None else indented_index()
    return LexedGrammar(index, LexedTables(source, budget, is_lark=is_lark, indentation=indentation))


def place_after(grammar: LexedGrammar, data: bytes, before: Configuration | None = None) -> LexedState | None:
    """The place after some bytes, from the start by default."""
    start = grammar.start_place if before is None else LexedState(before, grammar.is_complete(before))
    if not data:
        return start
    return grammar.advance(start.configuration, np.frombuffer(data, dtype=np.uint8), 0, len(data))


def accepts(grammar: LexedGrammar, text: str) -> bool:
    """Whether a text is complete under a grammar."""
    reached = place_after(grammar, text.encode())
    return reached is not None and reached.is_complete
